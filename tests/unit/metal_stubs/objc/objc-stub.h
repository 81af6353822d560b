// objc-stub.h -- the types of the Objective-C language that its runtime's headers declare.
#pragma once

#if __has_include(<Availability.h>)
#  include <Availability.h>  // as Apple's Foundation does: what says which SDK it is
#endif

typedef bool BOOL;  // on Apple silicon
#define YES true
#define NO false
#define nil nullptr
