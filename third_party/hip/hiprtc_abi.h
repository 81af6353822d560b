// hip/hiprtc_abi.h -- the part of hipRTC's binary interface that tack uses, in tack's own words. Source: AMD's "HIP RTC" reference
// (rocm.docs.amd.com/projects/HIP), releases 5.2 to 7; tests/unit/test_abi.py compares all of it with the real hiprtc.h.
#pragma once

#include <cstddef>

namespace tack::hip::abi {

struct ProgramObject;
using Program = ProgramObject*;

// X(name, the reference's name, value)
#define TACK_HIPRTC_RESULTS(X)                      \
  X(success, HIPRTC_SUCCESS, 0)                     \
  X(out_of_memory, HIPRTC_ERROR_OUT_OF_MEMORY, 1)   \
  X(invalid_option, HIPRTC_ERROR_INVALID_OPTION, 5) \
  X(compilation, HIPRTC_ERROR_COMPILATION, 6)

#define TACK_HIPRTC_ENUMERATOR(name, original, value) name = value,
enum class CompileResult : int { TACK_HIPRTC_RESULTS(TACK_HIPRTC_ENUMERATOR) };
#undef TACK_HIPRTC_ENUMERATOR

}  // namespace tack::hip::abi
