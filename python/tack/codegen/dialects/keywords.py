"""Words that no variable of printed C may have, whatever the dialect."""

from __future__ import annotations

from typing import Final

__all__ = ["C_WORDS", "VECTOR_WORDS"]

_C: Final = """auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while"""
_CPP: Final = """alignas alignof and and_eq asm bitand bitor bool catch char8_t char16_t char32_t class co_await co_return co_yield compl
concept consteval constexpr constinit const_cast decltype delete dynamic_cast explicit export false friend mutable namespace new
noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires static_assert static_cast template
this thread_local throw true try typeid typename using virtual wchar_t xor xor_eq final override import module typeof"""
# Macros that compilers or their C libraries define without being asked.
_MACROS: Final = "NULL NAN INFINITY HUGE_VAL EOF errno assert linux unix i386 stdin stdout stderr signbit isnan isinf isfinite"
# Names of the printed code itself, and words that it has for itself.
_PRINTED: Final = "i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 main"

C_WORDS: Final = frozenset(f"{_C} {_CPP} {_MACROS} {_PRINTED}".split())

_ELEMENTS: Final = "char uchar short ushort int uint long ulong half float double bool"
VECTOR_WORDS: Final = frozenset(f"{element}{size}" for element in _ELEMENTS.split() for size in ("", "2", "3", "4", "8", "16"))
