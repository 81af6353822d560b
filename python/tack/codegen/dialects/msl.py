"""Metal's shading language: C++14 with address spaces, without 64-bit floats.

An entry's buffers. Its words that are pointers (arrays, scratch, records) are buffers 0, 1, ... in the order of the words. If there are
any others, they are all in one buffer behind those, in ``constant`` memory: 8 bytes each, in the order of the words, a narrower number in
the low bytes. So an entry of the words (pointer a, shape a, scalar n, pointer b, extent) binds a to buffer 0, b to buffer 1, and (shape
of a, n, extent), 24 bytes, to buffer 2. Words that are textures are textures 0, 1, ... in the order of the words, and no buffers. Groups
are launched whole (dispatchThreadgroups) and along x alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...types import u64
from . import Dialect, Parameter
from .keywords import C_WORDS, VECTOR_WORDS
from .one_word import MATH, TYPES

__all__ = ["MSL"]

_ATOMICS: Final = {
    **{
        (kind, t): f"atomic_{function}_explicit(({{space}}atomic_{of}*)({{}}), {{}}, memory_order_relaxed)"
        for kind, function in (("exchange", "exchange"), *((k, f"fetch_{k}") for k in ("add", "sub", "min", "max", "and", "or", "xor")))
        for t, of in (("i32", "int"), ("u32", "uint"))
    },
    ("cas", "u32"): "tack_compare_exchange(({space}atomic_uint*)({}), {}, {})",
}
_COMPARE_EXCHANGE: Final = """static inline uint tack_compare_exchange({space} atomic_uint* at, uint seen, uint value) {{
  uint old = seen;  // the one that there is may fail for no reason
  while (!atomic_compare_exchange_weak_explicit(at, &old, value, memory_order_relaxed, memory_order_relaxed) && old == seen) {{
  }}
  return old;
}}"""

_TEXTURE: Final = "texture3d<float, access::sample>"
_SAMPLERS: Final = {
    "nearest": ("coord::pixel", "address::clamp_to_edge", "filter::nearest"),
    "linear": ("coord::pixel", "address::clamp_to_edge", "filter::linear"),
    "repeat": ("coord::normalized", "address::repeat", "filter::linear"),
}
_SAMPLE: Final = """static inline float tack_sample_{way}(texture3d<float, access::sample> texels, float x, float y, float z) {{
  constexpr sampler way({sampler});
  return texels.sample(way, float3(x, y, z)).x;
}}"""


def _entry(symbol: str, threads: int) -> str:
    return f"[[max_total_threads_per_threadgroup({threads})]] kernel void {symbol}("


def _parameters(words: Sequence[Parameter]) -> tuple[list[str], list[str]]:
    textures = [p for p in words if p.type == _TEXTURE]
    buffers = [p for p in words if p.dtype is None and p.type != _TEXTURE]
    numbers = [p for p in words if p.dtype is not None]
    declared = [f"{p.type} {p.name} [[buffer({k})]]" for k, p in enumerate(buffers)]
    if numbers:
        declared.append(f"constant ulong* tack_words [[buffer({len(buffers)})]]")
    declared += [f"{p.type} {p.name} [[texture({k})]]" for k, p in enumerate(textures)]
    declared += [
        "uint tack_thread [[thread_position_in_threadgroup]]",
        "uint tack_group [[threadgroup_position_in_grid]]",
        "uint tack_group_size [[threads_per_threadgroup]]",
    ]
    return declared, [f"const {p.type} {p.name} = {_number(p, f'tack_words[{k}]')};" for k, p in enumerate(numbers)]


def _number(p: Parameter, word: str) -> str:
    """What is in the low bytes of a word."""
    assert p.dtype is not None
    return f"as_type<float>((uint){word})" if p.dtype.is_float else word if p.dtype == u64 else f"({p.type}){word}"


def _options(fast_math: bool) -> str:
    return "-ffast-math" if fast_math else "-fno-fast-math"


_WORDS: Final = """metal kernel vertex fragment visible stitchable intersection mesh object device constant thread threadgroup
threadgroup_imageblock ray_data object_data coherent access sampler half bfloat uchar ushort uint ulong size_t ptrdiff_t
texture1d texture1d_array texture2d texture2d_array texture3d texturecube depth2d packed_float2 packed_float3 packed_float4
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t patch_control_point r8unorm rg8unorm rgba8unorm
atomic_int atomic_uint atomic_bool atomic_float atomic_ulong memory_order memory_order_relaxed mem_flags threadgroup_barrier as_type
popcount clz sqrt floor ceil trunc rint fabs copysign fma FLT_MAX FLT_MIN FLT_EPSILON FLT_DIG FLT_MANT_DIG MAXFLOAT HUGE_VALF
CHAR_BIT CHAR_MAX CHAR_MIN INT_MAX INT_MIN LONG_MAX LONG_MIN SCHAR_MAX SCHAR_MIN SHRT_MAX SHRT_MIN UCHAR_MAX USHRT_MAX UINT_MAX ULONG_MAX
M_E_F M_LOG2E_F M_LOG10E_F M_LN2_F M_LN10_F M_PI_F M_PI_2_F M_PI_4_F M_1_PI_F M_2_PI_F M_2_SQRTPI_F M_SQRT2_F M_SQRT1_2_F"""

MSL: Final = Dialect(
    title="Metal",
    types={name: word for name, word in TYPES.items() if name != "f64"},
    wide="l",
    head=(
        "#include <metal_stdlib>",
        "using namespace metal;",
        "#pragma METAL fp contract(off)",
        "#pragma clang fp contract(off)",
    ),
    entry=_entry,
    spaces={"global": "device ", "shared": "threadgroup "},
    function="static inline",
    outlined="static __attribute__((noinline))",
    table="constant",
    shared="threadgroup",
    barrier="threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);",
    thread="tack_thread",
    group="tack_group",
    group_size="tack_group_size",
    progress="{ volatile bool tack_progress = true; (void)tack_progress; }",
    bits={
        ("f32", "i32"): "as_type<int>({})",
        ("f32", "u32"): "as_type<uint>({})",
        ("i32", "f32"): "as_type<float>((int)({}))",
        ("u32", "f32"): "as_type<float>({})",
    },
    math={(name, t): text for (name, t), text in MATH.items() if t != "f64"},
    popcount={"u32": "popcount({})", "u64": "popcount((uint)({0})) + popcount((uint)(({0}) >> 32))"},
    clz={"u32": "clz({})", "u64": "(({0}) >> 32 != 0 ? clz((uint)(({0}) >> 32)) : 32 + clz((uint)({0})))"},
    mulhi={},
    atomics=_ATOMICS,
    texture=_TEXTURE,
    sample={way: f"tack_sample_{way}({{}}, {{}}, {{}}, {{}})" for way in _SAMPLERS},
    options=_options,
    readable=None,
    reserved=C_WORDS | VECTOR_WORDS | frozenset(_WORDS.split()),
    parameters=_parameters,
    functions={
        "tack_compare_exchange": "\n".join(_COMPARE_EXCHANGE.format(space=space) for space in ("device", "threadgroup")),
        **{f"tack_sample_{way}": _SAMPLE.format(way=way, sampler=", ".join(sampler)) for way, sampler in _SAMPLERS.items()},
    },
)
