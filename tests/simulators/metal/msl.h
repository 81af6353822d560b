// metal/msl.h -- Metal's shading language for the host's C++ compiler: what is rewritten in a text, and how its kernels take arguments.
#pragma once

#include <string>
#include <string_view>

#include "../engine/compile.h"

namespace sim::metal {

struct Translated {
  std::string problem;  // empty, or what is no MSL that the stand-in knows, as the compiler would say it
  CompileRequest request;
};

// The text as the stand-in compiles it. Attributes go, arrays in threadgroup memory become the simulator's, and behind the text comes a
// function for each kernel that takes buffers by their number.
Translated translate(std::string_view text, bool fast_math);

}  // namespace sim::metal
