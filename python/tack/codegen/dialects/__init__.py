"""Dialects: what C-like kernel languages spell differently, as data. The printer reads these and never a target's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...types import DType

__all__ = ["Dialect", "Parameter", "dialect_of"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A word of an entry: a pointer to global memory or a texture, whose ``dtype`` is None, or a number in the low bits. ``type``: as it is
    declared; ``Dialect.texture`` of a texture."""

    type: str
    name: str
    dtype: DType | None


def each_by_itself(words: Sequence[Parameter]) -> tuple[list[str], list[str]]:
    """One parameter for each word, and nothing to do about them."""
    return [f"{p.type} {p.name}" for p in words], []


@dataclass(frozen=True, slots=True)
class Dialect:
    """One language. Templates take their operands by position, ``"__float_as_uint({})"``; types are named as tack names them.

    Code is printed over the types ``i8 ... u64 f32 f64`` (declared from ``types`` where used) and ``bool``, in the common part of C and
    C++: no goto, no overloads, no templates, no references, casts as in C.

    Attributes:
        title: what the text's first line calls the language.
        types: tack's name of a type -> the language's.
        wide: suffix of 64-bit integer constants: "ll".
        head: lines at the top of every text, before the types.
        entry: (symbol, most threads of a group) -> what stands before an entry's parameters, the parenthesis included.
        spaces: what stands before the type that a pointer points to, the space behind it included: of "global" memory, and of "shared"
            memory of a group.
        function, outlined: qualifiers of helper functions; of those that must not be inlined.
        table: qualifiers of a constant array outside of functions.
        shared: qualifiers of an array that a group's threads share; inside an entry.
        barrier: a statement; all threads of a group, and their shared memory.
        thread, group, group_size: a thread's place in its group, the group's in the grid, its size; unsigned expressions.
        progress: a statement without effect that compilers count as one, so that an endless loop stays; empty where they all do.
        bits: (from, to) -> reinterprets a float as an integer of its size, or back. What comes as a signed integer may be a narrower one.
        math: (function, float type) -> a template; of sqrt floor ceil trunc rint fabs copysign fma.
        popcount, clz: of u32 and u64; clz of 0 is the width.
        mulhi: of i64 and u64; made of narrower products where absent.
        atomics: (kind, type) -> a template of address and operands, relaxed, that answers the old value; ``{space}`` is the address's entry
            of ``spaces``. What is absent is made of a compare-exchange, or of an operation of the same bits: ("cas", u32) is always there,
            ("cas", u64) where the device has atomics of 64 bits. Records and prints take those of u64 if there are any, else of u32.
        texture: the type of a parameter that is a 3-D texture of floats; empty where none is sampled by hardware.
        sample: way of sampling (nearest, linear, repeat: see ``ir.nodes``) -> a template of texture, x, y and z.
        options: whether fast math is asked for -> the compiler's options.
        readable: architecture -> the one whose binary is text that people can read; None where there is none.
        reserved: words that no variable may have: keywords, and what the language or the printed code calls.
        parameters: an entry's words, in their order -> its parameters, and the statements at its top that define what they do not.
        functions: name -> definition of what templates call that the language lacks; printed where it is called.
    """

    title: str
    types: Mapping[str, str]
    wide: str
    head: tuple[str, ...]
    entry: Callable[[str, int], str]
    spaces: Mapping[str, str]
    function: str
    outlined: str
    table: str
    shared: str
    barrier: str
    thread: str
    group: str
    group_size: str
    progress: str
    bits: Mapping[tuple[str, str], str]
    math: Mapping[tuple[str, str], str]
    popcount: Mapping[str, str]
    clz: Mapping[str, str]
    mulhi: Mapping[str, str]
    atomics: Mapping[tuple[str, str], str]
    texture: str
    sample: Mapping[str, str]
    options: Callable[[bool], str]
    readable: Callable[[str], str] | None
    reserved: frozenset[str]
    parameters: Callable[[Sequence[Parameter]], tuple[list[str], list[str]]] = each_by_itself
    functions: Mapping[str, str] = field(default_factory=dict)


def dialect_of(backend: str) -> Dialect | None:
    """The language of a backend's kernels, or None where they are not printed as C."""
    if backend in ("cuda", "null"):  # nobody reads what is printed for the null device
        from .cuda import CUDA

        return CUDA
    if backend == "hip":
        from .hip import HIP

        return HIP
    if backend == "level_zero":
        from .opencl import OPENCL

        return OPENCL
    if backend == "metal":
        from .msl import MSL

        return MSL
    return None
