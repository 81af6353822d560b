// objc-stub.h -- the types of the Objective-C language that its runtime's headers declare.
#pragma once

typedef bool BOOL;  // on Apple silicon
#define YES true
#define NO false
#define nil nullptr
