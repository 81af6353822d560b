"""OpenCL C, as ocloc compiles it to SPIR-V: what every version from 1.2 on has, with 64-bit floats where the device has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from . import Dialect, Parameter
from .keywords import C_WORDS, VECTOR_WORDS
from .one_word import MATH, TYPES

__all__ = ["OPENCL"]

# The functions of OpenCL 1: relaxed, of 32 bits, in global and local memory. Floats can only be exchanged.
_ATOMICS: Final = {
    **{
        (kind, t): f"atomic_{function}({{}}, {{}})"
        for kind, function in (("exchange", "xchg"), *((k, k) for k in ("add", "sub", "min", "max", "and", "or", "xor")))
        for t in ("i32", "u32")
    },
    ("exchange", "f32"): "atomic_xchg({}, {})",
    **{("cas", t): "atomic_cmpxchg({}, {}, {})" for t in ("i32", "u32")},
}

_TEXTURE: Final = "read_only image3d_t"


def _parameters(words: Sequence[Parameter]) -> tuple[list[str], list[str]]:
    """One parameter for each word, but two for a texture: the image, and the sampler that says how it is read."""
    declared = []
    for p in words:
        declared.append(f"{p.type} {p.name}")
        if p.type == _TEXTURE:
            declared.append(f"sampler_t tack_sampler_{p.name}")
    return declared, []


def _entry(symbol: str, threads: int) -> str:
    return f"__kernel __attribute__((reqd_work_group_size({threads}, 1, 1))) void {symbol}("


def _options(fast_math: bool) -> str:
    return "-cl-fast-relaxed-math" if fast_math else "-cl-fp32-correctly-rounded-divide-sqrt"


_WORDS: Final = """kernel global local constant private generic uniform pipe read_only write_only read_write complex imaginary quad
event_t queue_t ndrange_t clk_event_t reserve_id_t sampler_t image1d_t image1d_array_t image1d_buffer_t image2d_t image2d_array_t
image2d_depth_t image2d_array_depth_t image2d_msaa_t image3d_t vec_step printf barrier read_imagef popcount clz mul_hi
sqrt floor ceil trunc rint fabs copysign fma get_local_id get_group_id get_local_size CLK_LOCAL_MEM_FENCE CLK_GLOBAL_MEM_FENCE
as_int as_uint as_long as_ulong as_float as_double
atomic_add atomic_sub atomic_min atomic_max atomic_and atomic_or atomic_xor atomic_xchg atomic_cmpxchg
MAXFLOAT HUGE_VALF FLT_DIG FLT_MANT_DIG FLT_MAX FLT_MIN FLT_EPSILON DBL_DIG DBL_MANT_DIG DBL_MAX DBL_MIN DBL_EPSILON
CHAR_BIT CHAR_MAX CHAR_MIN INT_MAX INT_MIN LONG_MAX LONG_MIN SCHAR_MAX SCHAR_MIN SHRT_MAX SHRT_MIN UCHAR_MAX USHRT_MAX UINT_MAX
ULONG_MAX M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_SQRT2 M_SQRT1_2
M_E_F M_LOG2E_F M_LOG10E_F M_LN2_F M_LN10_F M_PI_F M_PI_2_F M_PI_4_F M_1_PI_F M_2_PI_F M_2_SQRTPI_F M_SQRT2_F M_SQRT1_2_F"""

OPENCL: Final = Dialect(
    title="OpenCL C",
    types=TYPES,
    wide="l",
    head=("#pragma OPENCL FP_CONTRACT OFF",),
    entry=_entry,
    spaces={"global": "__global ", "shared": "__local "},
    function="static inline",
    outlined="static __attribute__((noinline))",
    table="static __constant",
    shared="__local",
    barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    thread="get_local_id(0)",
    group="get_group_id(0)",
    group_size="get_local_size(0)",
    progress="",  # C99: a loop may run for ever
    bits={
        ("f32", "i32"): "as_int({})",
        ("f32", "u32"): "as_uint({})",
        ("i32", "f32"): "as_float((int)({}))",
        ("u32", "f32"): "as_float({})",
        ("f64", "i64"): "as_long({})",
        ("f64", "u64"): "as_ulong({})",
        ("i64", "f64"): "as_double((long)({}))",
        ("u64", "f64"): "as_double({})",
    },
    math=MATH,
    popcount={"u32": "popcount({})", "u64": "popcount({})"},
    clz={"u32": "clz({})", "u64": "clz({})"},
    mulhi={"i64": "mul_hi({}, {})", "u64": "mul_hi({}, {})"},
    atomics=_ATOMICS,
    texture=_TEXTURE,
    sample=dict.fromkeys(("nearest", "linear", "repeat"), "read_imagef({0}, tack_sampler_{0}, (float4)({1}, {2}, {3}, 0.0f)).x"),
    options=_options,
    readable=None,
    reserved=C_WORDS | VECTOR_WORDS | frozenset(_WORDS.split()),
    parameters=_parameters,
)
