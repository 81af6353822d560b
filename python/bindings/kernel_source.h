// kernel_source.h -- tack.ir.source.KernelSource (Python) as tack::KernelSource, and the words that both sides use for enumerators.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <string_view>

#include "tack/kernel.hpp"

namespace tack::python {

/// Copies the Python object field by field. Throws ValueError naming the place of a word that C++ does not know, or Python's own error.
KernelSource kernel_source_from(nanobind::handle source);

// Position i is the name of the enumerator with the value i.
inline constexpr std::array<std::string_view, 11> param_kinds{"pointer", "shape",    "stride",  "scalar",  "extent", "start",
                                                              "step",    "sequence", "scratch", "records", "texture"};
inline constexpr std::array<std::string_view, 25> extent_ops{
    "constant", "shape", "scalar", "sequence", "add", "sub", "mul", "floordiv", "mod", "min", "max",      "neg", "select",
    "lt",       "le",    "eq",     "ne",       "shl", "shr", "and", "or",       "xor", "pow", "popcount", "clz"};
inline constexpr std::array<std::string_view, 4> step_kinds{"launch", "sequence_begin", "sequence_end", "check"};
inline constexpr std::array<std::string_view, 7> argument_kinds{"array", "integer", "unsigned", "floating", "boolean", "none", "strong"};
inline constexpr std::array<std::string_view, 3> site_kinds{"print", "assertion", "index"};

}  // namespace tack::python
