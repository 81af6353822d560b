"""CUDA C++ without headers, as NVRTC compiles it."""

from __future__ import annotations

from typing import Final

from . import Dialect
from .keywords import C_WORDS

__all__ = ["CUDA"]

_TYPES: Final = {
    "i8": "signed char",
    "u8": "unsigned char",
    "i16": "short",
    "u16": "unsigned short",
    "i32": "int",
    "u32": "unsigned int",
    "i64": "long long",
    "u64": "unsigned long long",
    "f32": "float",
    "f64": "double",
}
_MATH: Final = {
    (name, dtype): f"{function}{suffix}({', '.join(['{}'] * count)})"
    for name, function, count in (
        *(("sqrt", "sqrt", 1), ("floor", "floor", 1), ("ceil", "ceil", 1), ("trunc", "trunc", 1)),
        *(("rint", "rint", 1), ("fabs", "fabs", 1), ("copysign", "copysign", 2), ("fma", "fma", 3)),
    )
    for dtype, suffix in (("f32", "f"), ("f64", ""))
}
# Of i64, the driver's functions have min, max and none of the others; those of u64 do the same to the bits.
_ATOMICS: Final = {
    **{("add", t): "atomicAdd({}, {})" for t in ("i32", "u32", "u64", "f32", "f64")},
    **{("min", t): "atomicMin({}, {})" for t in ("i32", "u32", "i64", "u64")},
    **{("max", t): "atomicMax({}, {})" for t in ("i32", "u32", "i64", "u64")},
    **{
        (kind, t): f"atomic{name}({{}}, {{}})"
        for kind, name in (("and", "And"), ("or", "Or"), ("xor", "Xor"))
        for t in ("i32", "u32", "u64")
    },
    **{("exchange", t): "atomicExch({}, {})" for t in ("i32", "u32", "u64", "f32")},
    **{("cas", t): "atomicCAS({}, {}, {})" for t in ("i32", "u32", "u64")},
}


def _entry(symbol: str, threads: int) -> str:
    return f'extern "C" __global__ void __launch_bounds__({threads}) {symbol}('


def _options(fast_math: bool) -> str:
    return "--use_fast_math --fmad=true" if fast_math else ""


def _readable(arch: str) -> str:
    return arch.replace("sm_", "compute_")  # PTX


_WORDS: Final = """__global__ __device__ __shared__ threadIdx blockIdx blockDim gridDim warpSize dim3 float2 float3 float4 half
sqrtf floorf ceilf truncf rintf fabsf copysignf fmaf sqrt floor ceil trunc rint fabs copysign fma atomicAdd atomicSub atomicMin atomicMax
atomicAnd atomicOr atomicXor atomicExch atomicCAS cudaTextureObject_t tex3D"""

CUDA: Final = Dialect(
    title="CUDA C++",
    types=_TYPES,
    wide="ll",
    head=(),
    entry=_entry,
    spaces={"global": "", "shared": ""},
    function="static __device__ inline",
    outlined="static __device__ __noinline__",
    table="static __device__ const",
    shared="__shared__",
    barrier="__syncthreads();",
    thread="threadIdx.x",
    group="blockIdx.x",
    group_size="blockDim.x",
    progress='asm volatile("");',
    bits={
        ("f32", "i32"): "__float_as_int({})",
        ("f32", "u32"): "__float_as_uint({})",
        ("i32", "f32"): "__int_as_float({})",
        ("u32", "f32"): "__uint_as_float({})",
        ("f64", "i64"): "__double_as_longlong({})",
        ("f64", "u64"): "(unsigned long long)__double_as_longlong({})",
        ("i64", "f64"): "__longlong_as_double({})",
        ("u64", "f64"): "__longlong_as_double((long long)({}))",
    },
    math=_MATH,
    popcount={"u32": "__popc({})", "u64": "__popcll({})"},
    clz={"u32": "__clz((int)({}))", "u64": "__clzll((long long)({}))"},
    mulhi={"i64": "__mul64hi({}, {})", "u64": "__umul64hi({}, {})"},
    atomics=_ATOMICS,
    texture="cudaTextureObject_t",
    sample=dict.fromkeys(("nearest", "linear", "repeat"), "tex3D<float>({}, {}, {}, {})"),  # the texture object says which
    options=_options,
    readable=_readable,
    reserved=C_WORDS | frozenset(_WORDS.split()),
)
