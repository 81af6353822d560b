"""The typed IR: structured statements over values. What the front end makes, passes rewrite, printers read.

A ``Kernel`` is a list of top-level items (segments, parallel loops, sequences). Inside them, a ``Block`` is a list of
statements; a statement is an ``Instr`` or a structured node (``If``, ``For``, ``While``, ``Scope``, ``Break``, ``Continue``,
``Leave``). An ``Instr`` is itself the value that it computes, as in LLVM: other instructions name it as an argument. A value may
be used in the block that computes it, after it, and in blocks nested there. What changes over time is a ``Var``: a typed slot
with ``get`` and ``set``. Nothing here recurses over expressions, so a chain of 5,000 terms is just 5,000 instructions.

Types are concrete (``tack.types.DType``, ``BOOL`` for conditions): weak numbers are resolved by inference. Operations have the
meaning of docs/kernel-language.md (``floordiv`` by 0 is 0, shifts out of range, saturating casts, ...); ``codegen.lower``
rewrites them to the primitive ones of ``PRIMITIVE`` where a target needs it.

Groups: of a parallel loop's n iterations, thread t of group g runs the one at g * block + t of the row-major order; ``block`` is the
kernel's option, set wherever groups are used. Threads of the last group that have no iteration are absent: they execute nothing, but
reach every barrier, and add the identity to every block_reduce. ``barrier`` and ``block_reduce`` are collectives: all threads of a
group execute the same ones (``ir.uniformity``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from ..types import DType, Layout

__all__ = [
    "Array",
    "ArrayParam",
    "Block",
    "Break",
    "Continue",
    "Extent",
    "For",
    "Function",
    "If",
    "Instr",
    "Kernel",
    "Leave",
    "Loc",
    "LocalArray",
    "Node",
    "NoneParam",
    "Parallel",
    "Reduction",
    "ScalarParam",
    "Scope",
    "ScratchArray",
    "Segment",
    "Sequence",
    "SharedArray",
    "Table",
    "Var",
    "While",
]


@dataclass(frozen=True, slots=True)
class Loc:
    """A place in the user's source: file, 1-based line, 0-based column, and the end of the construct."""

    file: str
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0


@dataclass(eq=False, slots=True)
class Var:
    """A mutable typed slot. ``name`` is the user's (made unique by the printers); temporaries start with ``_``."""

    name: str
    type: DType


@dataclass(frozen=True, slots=True)
class ArrayParam:
    """An array argument: ``index`` is its position among the kernel's parameters."""

    index: int
    name: str
    dtype: DType
    rank: int
    layout: Layout
    read_only: bool = False  # of the argument; ``Kernel.written`` says what the kernel writes
    texture: int = 0  # ``source.ArgumentSpec.texture``


@dataclass(frozen=True, slots=True)
class ScalarParam:
    """A scalar argument. ``kind``: "int" (weak, i64), "uint" (weak, u64), "float" (weak), "bool", "strong" (a NumPy scalar of ``dtype``).

    ``low``/``high``: the range that is checked at the call, where the parameter itself meets a narrower type.
    """

    index: int
    name: str
    kind: str
    dtype: DType
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class NoneParam:
    """An argument that is None in this specialization."""

    index: int
    name: str


Param: TypeAlias = ArrayParam | ScalarParam | NoneParam


@dataclass(eq=False, slots=True)
class ScratchArray:
    """Memory of constant shape that a kernel makes for itself."""

    name: str
    dtype: DType
    shape: tuple[int, ...]


@dataclass(eq=False, slots=True)
class LocalArray(ScratchArray):
    """Scratch memory of one iteration, zeros at first."""


@dataclass(eq=False, slots=True)
class SharedArray(ScratchArray):
    """Memory that the threads of a group share: made once per group, undefined until written."""

    loc: Loc | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers known at compile time that are looked up by position: a captured tuple."""

    values: tuple[int | float, ...]


Array: TypeAlias = ArrayParam | ScratchArray
Attr: TypeAlias = "int | float | bool | str | Var | Array | tuple[Array, int] | tuple[str, Array] | DType | ScalarParam | Table | None"


@dataclass(eq=False, slots=True, repr=False)
class Instr:
    """One operation and the value it computes. ``type`` is None where there is no value (set, store).

    ==============  ==============================================================================================
    op              meaning (args; attr)
    ==============  ==============================================================================================
    const           attr: the Python number, representable in ``type``
    arg             attr: ScalarParam; its value, of the parameter's dtype
    shape           attr: (ArrayParam, dim); i64
    get, set        attr: Var; set takes the value
    load            (indices...), attr: Array; one i64 index per dimension, all in [0, n)
    store           (value, indices...), attr: Array
    load_flat       (index), attr: ArrayParam; flat row-major position of a contiguous array
    store_flat      (value, index), attr: ArrayParam
    sample          (x, y, z), attr: (mode, ArrayParam of a texture); what the device's texture units give. mode: nearest or linear, where
                    texel k has its centre at k + 0.5 and those at the edge stand for what is beyond; repeat, linear, where texel k of n has
                    it at (k + 0.5) / n and texel n is texel 0 again. They mix texels in 1/256ths or finer
    atomic          (value, indices...), attr: (kind, Array); the old value. kind: add sub min max and or xor exchange.
                    kind cas takes (compare, value, indices...)
    add sub mul     ints wrap; floats IEEE
    div             floats only
    floordiv mod    Python's; ints: x // 0 and x % 0 are 0
    pow             ints: exact modulo 2^N, negative exponent 0; floats: tack.pow
    neg abs         ints wrap
    shl shr         counts outside [0, N): 0, or -1 for a negative signed shr; the count has the left type
    and or xor not  bitwise; ``not`` on ints only; and or xor also on bool
    lnot            bool
    eq ne lt le gt ge   operands of one type; bool
    min max         prefer the number to a NaN; of equals the first
    select          (cond, a, b); both computed, nothing trapped
    table           (index), attr: Table; the number at a position in [0, n), each representable in ``type``
    cast            to ``type``; float to int truncates and saturates, NaN gives 0; to bool: != 0
    bitcast         same size
    fma             (a, b, c); one rounding
    math            attr: name; the functions of section 2 (exp, sin, ...), args of one float type; isnan isinf isfinite give bool
    bits            attr: name; popcount clz ctz rotl rotr mulhi add_sat sub_sat
    thread_id       position of the thread in its group; i64
    block_id        position of the group in the launch; i64
    barrier         waits for all threads of the group; orders their accesses to all memory
    block_reduce    (value), attr: add, min or max; over the threads of the group, in the order of ``ir.groups``
    print           (values...), attr: the text, line end included, with a placeholder for each value (see ``records``)
    assert_         (cond, values...), attr: the message, likewise; checked in debug mode only
    inside          (index), attr: the length of the tuple that it indexes; checked in debug mode only
    ==============  ==============================================================================================
    """

    op: str
    type: DType | None
    args: tuple[Instr, ...] = ()
    attr: Attr = None
    loc: Loc | None = None

    def __repr__(self) -> str:
        """Without the arguments' own: written out, a graph of n instructions can have 2^n of them."""
        return f"<{self.op}{'' if self.type is None else ' ' + self.type.name} at {id(self):#x}>"


@dataclass(eq=False, slots=True)
class If:
    cond: Instr
    then: Block
    orelse: Block
    loc: Loc | None = None


@dataclass(eq=False, slots=True)
class For:
    """A sequential loop: ``var`` takes start, start + step, ...; a step of 0 runs nothing; assigning var does not change the iteration.

    The trip count is fixed at entry. var keeps its last value. ``orelse`` runs unless a Break left the loop.
    """

    var: Var
    start: Instr
    stop: Instr
    step: Instr
    body: Block
    orelse: Block
    loc: Loc | None = None


@dataclass(eq=False, slots=True)
class While:
    """``test`` is run before every round and computes ``cond``."""

    test: Block
    cond: Instr
    body: Block
    orelse: Block
    loc: Loc | None = None


@dataclass(eq=False, slots=True)
class Scope:
    """A block that ``Leave`` of this scope jumps to the end of: an inlined function's body, its returns being Leaves."""

    body: Block
    label: str = ""
    loc: Loc | None = None


@dataclass(eq=False, slots=True)
class Leave:
    scope: Scope
    loc: Loc | None = None


@dataclass(eq=False, slots=True)
class Break:
    """Of the innermost For or While."""

    loc: Loc | None = None


@dataclass(eq=False, slots=True)
class Continue:
    """Of the innermost For or While; outside any, it ends the iteration of the parallel loop."""

    loc: Loc | None = None


Node: TypeAlias = Instr | If | For | While | Scope | Leave | Break | Continue


@dataclass(eq=False, slots=True)
class Block:
    body: list[Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Extent:
    """A postfix integer program that C++ evaluates before a launch: a tuple of (op, arg, dim, value), see kernel.hpp.

    ``("constant", 0, 0, v)``, ``("shape", param, dim, 0)``, ``("scalar", param, 0, 0)``, ``("sequence", depth, 0, 0)``,
    then the operators ``add sub mul floordiv mod min max neg select lt le eq ne shl shr and or xor pow popcount clz``.
    """

    terms: tuple[tuple[str, int, int, int], ...]

    @staticmethod
    def constant(value: int) -> Extent:
        return Extent((("constant", 0, 0, value),))


@dataclass(eq=False, slots=True)
class Reduction:
    """``var``, bound before a parallel loop, receives all iterations' contributions. ``op``: add mul and or xor min max."""

    var: Var
    op: str


@dataclass(eq=False, slots=True)
class Segment:
    """Statements outside loops: run once, on the device, in their place. A kernel without a loop is one Segment."""

    body: Block
    loc: Loc | None = None


@dataclass(eq=False, slots=True)
class Parallel:
    """Independent iterations over 1 to 4 dimensions, last fastest. indices[d] (i64 Vars) take start + k * step, k < count.

    Vars that a Segment before set may be read inside; Vars set inside are private to an iteration, but for reductions.
    """

    indices: list[Var]
    start: list[Extent]
    stop: list[Extent]
    step: list[Extent]
    body: Block
    reductions: list[Reduction] = field(default_factory=list)
    loc: Loc | None = None


@dataclass(eq=False, slots=True)
class Sequence:
    """tack.sequential: runs ``items`` step after step inside the runtime."""

    var: Var
    start: Extent
    stop: Extent
    step: Extent
    items: list[Segment | Parallel | Sequence]
    loc: Loc | None = None


Item: TypeAlias = Segment | Parallel | Sequence


@dataclass(eq=False, slots=True)
class Kernel:
    """A specialization, typed. ``written``: positions of the array parameters that it stores to or updates atomically."""

    name: str
    params: list[Param]
    items: list[Item]
    written: frozenset[int] = frozenset()
    result: Var | None = None
    options: dict[str, object] = field(default_factory=dict)  # block, fast_math, exact, simd, debug
    uses: frozenset[str] = frozenset()  # capabilities asked for: "workgroups", "f64", "atomic:add:f32", "print", ...


@dataclass(eq=False, slots=True)
class Function:
    """A typed device function, ready to be inlined: its body sets ``results`` (returns are Leaves of an outer Scope)."""

    name: str
    params: list[Var]
    body: Block
    results: list[Var]
