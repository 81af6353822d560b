"""What OpenCL C and MSL share: types of one word, and math functions that are overloaded by type."""

from __future__ import annotations

from typing import Final

__all__ = ["MATH", "TYPES"]

TYPES: Final = {
    "i8": "char",
    "u8": "uchar",
    "i16": "short",
    "u16": "ushort",
    "i32": "int",
    "u32": "uint",
    "i64": "long",
    "u64": "ulong",
    "f32": "float",
    "f64": "double",
}
MATH: Final = {
    (name, dtype): f"{name}({', '.join(['{}'] * count)})"
    for name, count in (*((f, 1) for f in ("sqrt", "floor", "ceil", "trunc", "rint", "fabs")), ("copysign", 2), ("fma", 3))
    for dtype in ("f32", "f64")
}
