"""HIP C++, as hipRTC compiles it: CUDA's words, but for what AMD's compilers lack or do otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from .cuda import CUDA

__all__ = ["HIP"]

# Up to clang 17 the square root is the hardware's, which is one unit off here and there: the neighbour that the remainders ask for is
# taken. Small numbers are scaled, so that no remainder underflows.
_SQRT: Final = """static __device__ inline float tack_sqrt_f32(float x) {
#if __clang_major__ < 18
  const bool small = x < 0x1p-96f;
  const float a = small ? x * 0x1p32f : x;
  const float s = sqrtf(a);
  const float below = __uint_as_float(__float_as_uint(s) - 1u);
  const float above = __uint_as_float(__float_as_uint(s) + 1u);
  float r = fmaf(-below, s, a) <= 0.0f ? below : s;
  r = fmaf(-above, s, a) > 0.0f ? above : r;
  r = small ? r * 0x1p-16f : r;
  return s > 0.0f && s <= 0x1.fffffep127f ? r : s;
#else
  return sqrtf(x);
#endif
}"""


def _options(fast_math: bool) -> str:
    return "-ffast-math" if fast_math else ""


HIP: Final = replace(
    CUDA,
    title="HIP C++",
    math={**CUDA.math, ("sqrt", "f32"): "tack_sqrt_f32({})"},
    # hipRTC 5.2 has neither of i64; they are made of compare-exchanges.
    atomics={key: template for key, template in CUDA.atomics.items() if key not in {("min", "i64"), ("max", "i64")}},
    texture="hipTextureObject_t",
    options=_options,
    readable=None,  # there is machine code only
    functions={"tack_sqrt_f32": _SQRT},
)
