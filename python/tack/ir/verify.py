"""The rules of well-formed IR: one table of operations, and a check of structure, scopes, types and extents in linear time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from ..types import BOOL, DType, Layout, f32, i64
from .nodes import (
    ArrayParam,
    Block,
    Break,
    Continue,
    Extent,
    For,
    Function,
    If,
    Instr,
    Item,
    Kernel,
    Leave,
    Loc,
    NoneParam,
    Parallel,
    ScalarParam,
    Scope,
    ScratchArray,
    Segment,
    Sequence,
    Table,
    Var,
    While,
)
from .records import placeholders, spec_fits
from .uniformity import uses_groups

__all__ = [
    "ATOMICS",
    "BIT_FUNCTIONS",
    "EXTENT_OPERATORS",
    "GROUP_REDUCTIONS",
    "MATH_FUNCTIONS",
    "OPERATIONS",
    "REDUCTIONS",
    "SAMPLING",
    "InvalidIR",
    "Operation",
    "operations_table",
    "verify",
    "verify_function",
]


class InvalidIR(Exception):  # noqa: N818 - it names the state, as in InvalidIR: ...
    """The IR breaks a rule: a defect of the compiler, never of the user's kernel. The text names the node and its place."""


# --- the table of operations ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Operation:
    """The rule of one operation.

    ``args``: a type or type variable for each argument: "T" (one common type within ``among``), "S" (any other type), "bool",
    "i64"; "index*" is one i64 per dimension of the array, "element" the array's dtype, "any*" any number of any type.
    ``result``: like an argument, "type" (what the instruction says, within ``among`` where T is not bound), or "" for no value.
    ``attr``: the kind of the attribute, a key of the table of attribute checks.
    """

    args: tuple[str, ...]
    result: str
    attr: str = "none"
    among: str = "number"


_CLASSES: Final[dict[str, Callable[[DType], bool]]] = {
    "int": lambda t: t.is_int,
    "float": lambda t: t.is_float,
    "number": lambda t: t.is_int or t.is_float,
    "logic": lambda t: t.is_int or t == BOOL,
    "any": lambda t: True,
}

_BINARY: Final = ("T", "T")

OPERATIONS: Final[dict[str, Operation]] = {
    "const": Operation((), "type", "number", "any"),
    "arg": Operation((), "type", "scalar", "any"),
    "shape": Operation((), "i64", "dimension"),
    "get": Operation((), "type", "var", "any"),
    "set": Operation(("T",), "", "var", "any"),
    "load": Operation(("index*",), "element", "array"),
    "store": Operation(("element", "index*"), "", "array"),
    "load_flat": Operation(("i64",), "element", "flat"),
    "store_flat": Operation(("element", "i64"), "", "flat"),
    "sample": Operation(("T", "T", "T"), "T", "texture", "float"),
    "atomic": Operation(("element", "index*"), "element", "atomic"),  # cas has one element more, in front
    "add": Operation(_BINARY, "T"),
    "sub": Operation(_BINARY, "T"),
    "mul": Operation(_BINARY, "T"),
    "div": Operation(_BINARY, "T", among="float"),
    "floordiv": Operation(_BINARY, "T"),
    "mod": Operation(_BINARY, "T"),
    "pow": Operation(_BINARY, "T"),
    "neg": Operation(("T",), "T"),
    "abs": Operation(("T",), "T"),
    "shl": Operation(_BINARY, "T", among="int"),
    "shr": Operation(_BINARY, "T", among="int"),
    "and": Operation(_BINARY, "T", among="logic"),
    "or": Operation(_BINARY, "T", among="logic"),
    "xor": Operation(_BINARY, "T", among="logic"),
    "not": Operation(("T",), "T", among="int"),
    "lnot": Operation(("bool",), "bool"),
    "eq": Operation(_BINARY, "bool", among="any"),
    "ne": Operation(_BINARY, "bool", among="any"),
    "lt": Operation(_BINARY, "bool"),
    "le": Operation(_BINARY, "bool"),
    "gt": Operation(_BINARY, "bool"),
    "ge": Operation(_BINARY, "bool"),
    "min": Operation(_BINARY, "T"),
    "max": Operation(_BINARY, "T"),
    "select": Operation(("bool", "T", "T"), "T", among="any"),
    "table": Operation(("i64",), "type", "table"),
    "cast": Operation(("S",), "type", among="any"),
    "bitcast": Operation(("S",), "type"),
    "fma": Operation(("T", "T", "T"), "T", among="float"),
    "math": Operation((), "", "math", "float"),  # arguments and result: MATH_FUNCTIONS
    "bits": Operation((), "", "bits", "int"),  # arguments and result: BIT_FUNCTIONS
    "thread_id": Operation((), "i64"),
    "block_id": Operation((), "i64"),
    "barrier": Operation((), ""),
    "block_reduce": Operation(("T",), "T", "group"),
    "print": Operation(("any*",), "", "format", "any"),
    "assert_": Operation(("bool", "any*"), "", "format", "any"),
    "inside": Operation(("i64",), "", "length"),
}

_ONE: Final = Operation(("T",), "T", among="float")
_TWO: Final = Operation(("T", "T"), "T", among="float")
_TEST: Final = Operation(("T",), "bool", among="float")
MATH_FUNCTIONS: Final[dict[str, Operation]] = {
    **dict.fromkeys(
        [
            *("sqrt", "rsqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
            *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
            *("erf", "erfc", "floor", "ceil", "trunc", "round", "fabs"),
        ],
        _ONE,
    ),
    **dict.fromkeys(["pow", "atan2", "fmod", "copysign", "hypot"], _TWO),
    **dict.fromkeys(["isnan", "isinf", "isfinite"], _TEST),
}
BIT_FUNCTIONS: Final[dict[str, Operation]] = {
    **dict.fromkeys(["popcount", "clz", "ctz"], Operation(("T",), "T", among="int")),
    **dict.fromkeys(["rotl", "rotr", "mulhi", "add_sat", "sub_sat"], Operation(_BINARY, "T", among="int")),
}
ATOMICS: Final = ("add", "sub", "min", "max", "and", "or", "xor", "exchange", "cas")
SAMPLING: Final = ("nearest", "linear", "repeat")
REDUCTIONS: Final = ("add", "mul", "and", "or", "xor", "min", "max")
GROUP_REDUCTIONS: Final = ("add", "min", "max")
EXTENT_OPERATORS: Final[dict[str, int]] = {
    **dict.fromkeys(("add", "sub", "mul", "floordiv", "mod", "min", "max", "lt", "le", "eq", "ne"), 2),
    **dict.fromkeys(("shl", "shr", "and", "or", "xor", "pow"), 2),
    **dict.fromkeys(("neg", "popcount", "clz"), 1),
    "select": 3,
}


def operations_table() -> str:
    """The table of operations as Markdown, for the documentation."""
    rows = [("op", "arguments", "result", "types", "attribute")]
    for name, o in OPERATIONS.items():
        if name in ("math", "bits"):
            for member, signature in (MATH_FUNCTIONS if name == "math" else BIT_FUNCTIONS).items():
                rows.append((f"{name} {member}", " ".join(signature.args), signature.result, signature.among, "name"))
        else:
            rows.append((name, " ".join(o.args), o.result or "-", o.among, o.attr))
    rows.insert(1, ("---",) * 5)
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


# --- the check --------------------------------------------------------------------------------------------------------------------


def verify(kernel: Kernel, operations: Mapping[str, Operation] = OPERATIONS) -> None:
    """Raises InvalidIR where ``kernel`` breaks a rule. ``operations``: the table, where a lowered form has more of them."""
    _Verifier(kernel.name, kernel.params, kernel.written, operations).kernel(kernel)


def verify_function(function: Function, operations: Mapping[str, Operation] = OPERATIONS) -> None:
    """The same for a device function: its body may use no kernel's arguments."""
    v = _Verifier(function.name, (), frozenset(), operations)
    for var in (*function.params, *function.results):
        v.var(var, None, "a parameter or result")
    v.block(function.body, in_parallel=False)


@dataclass(eq=False, slots=True)
class _Frame:
    """A block being walked: what it defines dies with it."""

    block: Block
    position: int
    kind: str  # plain, loop (Break and Continue may name it), scope, test (of a While)
    owner: object
    defined: list[Instr]


class _Verifier:
    def __init__(self, name: str, params: Iterable[object], written: frozenset[int], operations: Mapping[str, Operation]) -> None:
        self.name = name
        self.params = {p.index: p for p in params if isinstance(p, (ArrayParam, ScalarParam, NoneParam))}
        self.written = written
        self.operations = operations
        self.seen: set[int] = set()  # ids of all instructions and structured nodes met so far
        self.blocks: set[int] = set()

    def fail(self, rule: str, node: object, loc: Loc | None = None) -> NoReturn:
        place = loc or getattr(node, "loc", None)
        where = f"{place.file}:{place.line}: " if place else ""
        raise InvalidIR(f"{where}kernel {self.name!r}: {_describe(node)}: {rule}")

    # -- the kernel's frame

    def kernel(self, kernel: Kernel) -> None:
        for position, param in enumerate(kernel.params):
            if param.index != position:
                self.fail(f"parameter {param.name!r} says index {param.index} but stands at {position}", kernel)
        for index in sorted(kernel.written):
            param_ = self.params.get(index)
            if not isinstance(param_, ArrayParam):
                self.fail(f"written names parameter {index}, which is no array", kernel)
            if param_.read_only:
                self.fail(f"written names the read-only array {param_.name!r}", kernel)
        if kernel.result is not None:
            self.var(kernel.result, kernel.result.type, "the result")
        work: list[tuple[Item, int]] = [(item, 0) for item in reversed(kernel.items)]
        while work:  # depth: the number of tack.sequential loops around the item
            item, depth = work.pop()
            if id(item) in self.seen:
                self.fail("stands at two places", item)
            self.seen.add(id(item))
            if isinstance(item, Segment):
                self.block(item.body, in_parallel=False)
            elif isinstance(item, Parallel):
                self.parallel(item, depth)
            elif isinstance(item, Sequence):
                self.var(item.var, i64, "the variable")
                for extent in (item.start, item.stop, item.step):
                    self.extent(extent, item, depth)
                work.extend((inner, depth + 1) for inner in reversed(item.items))
            else:
                self.fail("is no segment, parallel loop or sequence", item)

    def parallel(self, item: Parallel, depth: int) -> None:
        rank = len(item.indices)
        if not 1 <= rank <= 4:
            self.fail(f"has {rank} dimensions; 1 to 4 are possible", item)
        if not len(item.start) == len(item.stop) == len(item.step) == rank:
            self.fail("start, stop and step need one extent per index", item)
        if len({id(v) for v in item.indices}) != rank:
            self.fail("an index variable stands twice", item)
        for var in item.indices:
            self.var(var, i64, "an index")
        for extent in (*item.start, *item.stop, *item.step):
            self.extent(extent, item, depth)
        for reduction in item.reductions:
            if reduction.op not in REDUCTIONS:
                self.fail(f"no reduction operator {reduction.op!r}", item)
            self.var(reduction.var, None, "a reduction variable")
            if reduction.op in ("and", "or", "xor") and reduction.var.type.is_float:
                self.fail(f"reduction {reduction.op} of {reduction.var.name!r} needs integers or bools", item)
            if reduction.var.type == BOOL and reduction.op not in ("and", "or", "xor"):
                self.fail(f"reduction {reduction.op} of the bool {reduction.var.name!r}", item)
        if len({id(r.var) for r in item.reductions} | {id(v) for v in item.indices}) != rank + len(item.reductions):
            self.fail("a variable is reduced twice, or is an index too", item)
        self.block(item.body, in_parallel=True)
        if item.reductions and uses_groups(item.body):
            self.fail("uses groups, and reduces into a variable", item)

    def extent(self, extent: Extent, node: object, depth: int) -> None:
        """A postfix program must leave one value, take none that is not there, and name what exists."""
        height = 0
        for op, arg, dim, _value in extent.terms:
            if op in EXTENT_OPERATORS:
                takes = EXTENT_OPERATORS[op]
                if height < takes:
                    self.fail(f"extent {extent.terms}: {op} takes {takes} values, there are {height}", node)
                height -= takes
            elif op == "shape":
                param = self.params.get(arg)
                if not isinstance(param, ArrayParam) or not 0 <= dim < param.rank:
                    self.fail(f"extent {extent.terms}: no dimension {dim} of parameter {arg}", node)
            elif op == "scalar":
                if not isinstance(self.params.get(arg), ScalarParam):
                    self.fail(f"extent {extent.terms}: parameter {arg} is no scalar", node)
            elif op == "sequence":
                if not 0 <= arg < depth:
                    self.fail(f"extent {extent.terms}: sequence {arg} is not around this loop (there are {depth})", node)
            elif op != "constant":
                self.fail(f"extent {extent.terms}: no operation {op!r}", node)
            height += 1
        if height != 1:
            self.fail(f"extent {extent.terms} leaves {height} values, not one", node)

    # -- blocks

    def block(self, root: Block, *, in_parallel: bool) -> None:
        available: set[int] = set()
        frames: list[_Frame] = []

        def enter(block: Block, kind: str = "plain", owner: object = None) -> None:
            if not isinstance(block, Block):
                self.fail("is no block", block)
            if id(block) in self.blocks:
                self.fail("a block stands at two places", owner or block)
            self.blocks.add(id(block))
            frames.append(_Frame(block, 0, kind, owner, []))

        def leave(frame: _Frame) -> None:
            if frame.kind == "test":  # the condition is still in scope here
                loop = frame.owner
                assert isinstance(loop, While)
                self.operand(loop.cond, BOOL, available, loop, "the condition")
            available.difference_update(map(id, frame.defined))

        enter(root)
        while frames:
            frame = frames[-1]
            if frame.position == len(frame.block.body):
                leave(frame)
                frames.pop()
                continue
            node = frame.block.body[frame.position]
            frame.position += 1
            if id(node) in self.seen:
                self.fail("stands at two places", node)
            self.seen.add(id(node))
            if isinstance(node, Instr):
                self.instr(node, available)
                available.add(id(node))
                frame.defined.append(node)
            elif isinstance(node, If):
                self.operand(node.cond, BOOL, available, node, "the condition")
                enter(node.orelse, owner=node)
                enter(node.then, owner=node)
            elif isinstance(node, For):
                if not node.var.type.is_int:
                    self.fail(f"the variable {node.var.name!r} is no integer", node)
                self.var(node.var, None, "the variable", node)
                for part, what in ((node.start, "start"), (node.stop, "stop"), (node.step, "step")):
                    self.operand(part, node.var.type, available, node, what)
                enter(node.orelse, owner=node)
                enter(node.body, "loop", node)
            elif isinstance(node, While):
                enter(node.orelse, owner=node)
                enter(node.body, "loop", node)
                enter(node.test, "test", node)
            elif isinstance(node, Scope):
                enter(node.body, "scope", node)
            elif isinstance(node, (Break, Continue, Leave)):
                self.jump(node, frames, in_parallel)
            else:
                self.fail("is no statement", node)

    def jump(self, node: Break | Continue | Leave, frames: list[_Frame], in_parallel: bool) -> None:
        for frame in reversed(self.around(frames)):
            if frame.kind == "test":
                self.fail("may not leave the test of a while loop", node)
            if isinstance(node, Leave):
                if frame.kind == "scope" and frame.owner is node.scope:
                    return
            elif frame.kind == "loop":
                return
        if isinstance(node, Leave):
            self.fail("names a scope that is not around it", node)
        if isinstance(node, Break) or not in_parallel:
            self.fail("is outside any loop", node)

    @staticmethod
    def around(frames: list[_Frame]) -> list[_Frame]:
        """The frames that are entered; those of later siblings wait below their siblings with position 0."""
        return [f for f in frames if f.position > 0]

    # -- instructions

    def instr(self, node: Instr, available: set[int]) -> None:
        operation = self.operations.get(node.op)
        if operation is None:
            self.fail(f"no operation {node.op!r}", node)
        if node.type is not None and not isinstance(node.type, DType):
            self.fail(f"its type {node.type!r} is no dtype", node)
        for arg in node.args:
            if not isinstance(arg, Instr) or id(arg) not in available:
                self.fail(f"uses {_describe(arg)}, which is not computed before it in its block or one around", node)
        self.attr(node, operation.attr)
        if node.op in ("math", "bits"):
            table = MATH_FUNCTIONS if node.op == "math" else BIT_FUNCTIONS
            if node.attr not in table:
                self.fail(f"no {node.op} function {node.attr!r}", node)
            operation = table[str(node.attr)]
        self.signature(node, operation)

    def signature(self, node: Instr, operation: Operation) -> None:
        array = _array_of(node)
        wanted: list[str] = []
        for word in operation.args:
            if word == "index*":
                wanted += ["i64"] * (array.rank if isinstance(array, ArrayParam) else len(array.shape) if array else 0)
            elif word == "any*":
                wanted += ["any"] * (len(node.args) - len(wanted))
            else:
                wanted.append(word)
        if node.op == "atomic" and isinstance(node.attr, tuple) and node.attr[0] == "cas":
            wanted.insert(0, "element")
        if len(node.args) != len(wanted):
            self.fail(f"takes {len(wanted)} arguments, has {len(node.args)}", node)
        common: DType | None = node.attr.type if node.op == "set" and isinstance(node.attr, Var) else None
        for position, (arg, want) in enumerate(zip(node.args, wanted, strict=True)):
            if arg.type is None:
                self.fail(f"argument {position} ({_describe(arg)}) has no value", node)
            if want == "T":
                common = common or arg.type
            expected = self.expected(want, common, array)
            if expected is not None and arg.type != expected:
                self.fail(f"argument {position} is {arg.type.name}, must be {expected.name}", node)
        bound = common if "T" in operation.args else node.type if operation.result == "type" else None
        if bound is not None and not _CLASSES[operation.among](bound):
            self.fail(f"does not work on {bound.name} (only on: {operation.among})", node)
        if operation.result == "":
            if node.type is not None:
                self.fail(f"has no value, but the type {node.type.name}", node)
        else:
            result = node.type if operation.result == "type" else self.expected(operation.result, common, array)
            if result is None or node.type != result:
                self.fail(f"its type is {node.type.name if node.type else None}, must be {result.name if result else 'a dtype'}", node)
        if node.op == "bitcast":
            source = node.args[0].type
            if source is None or source == BOOL or node.type is None or source.bits != node.type.bits:
                self.fail(f"{source} and {node.type} differ in size", node)
        elif node.op == "const" and node.type is not None and not _representable(node.attr, node.type):
            self.fail(f"{node.attr!r} is no value of {node.type.name}", node)

    @staticmethod
    def expected(word: str, common: DType | None, array: ArrayParam | ScratchArray | None) -> DType | None:
        """The dtype that a word of a signature stands for; None where any will do."""
        if word == "T":
            return common
        if word == "element":
            return array.dtype if array else None
        return BOOL if word == "bool" else i64 if word == "i64" else None

    def operand(self, value: Instr, wanted: DType, available: set[int], node: object, what: str) -> None:
        if not isinstance(value, Instr) or id(value) not in available:
            self.fail(f"{what} uses {_describe(value)}, which is not computed before it", node)
        if value.type != wanted:
            self.fail(f"{what} is {value.type.name if value.type else None}, must be {wanted.name}", node)

    def var(self, var: object, wanted: DType | None, what: str, node: object = None) -> None:
        if not isinstance(var, Var) or not isinstance(var.type, DType):
            self.fail(f"{what} is no typed variable", node or var)
        if wanted is not None and var.type != wanted:
            self.fail(f"{what} {var.name!r} is {var.type.name}, must be {wanted.name}", node or var)

    def attr(self, node: Instr, kind: str) -> None:
        a = node.attr
        ok = True
        if kind == "none":
            ok = a is None
        elif kind == "number":
            ok = isinstance(a, (bool, int, float))
        elif kind == "texture":
            ok = isinstance(a, tuple) and a[0] in SAMPLING and isinstance(a[1], ArrayParam) and a[1].texture > 0 and node.type == f32
        elif kind == "table":
            ok = isinstance(a, Table) and bool(a.values)
        elif kind == "scalar":
            ok = isinstance(a, ScalarParam) and self.params.get(a.index) is a and a.dtype == node.type
        elif kind == "dimension":
            ok = isinstance(a, tuple) and len(a) == 2 and isinstance(a[0], ArrayParam) and isinstance(a[1], int) and 0 <= a[1] < a[0].rank
        elif kind == "var":
            ok = isinstance(a, Var) and (node.op != "get" or a.type == node.type)
        elif kind == "flat":
            ok = isinstance(a, ArrayParam) and a.layout == Layout.CONTIGUOUS
        elif kind == "array":
            ok = isinstance(a, (ArrayParam, ScratchArray))
        elif kind == "atomic":
            ok = isinstance(a, tuple) and len(a) == 2 and a[0] in ATOMICS and isinstance(a[1], (ArrayParam, ScratchArray))
        elif kind == "group":
            ok = a in GROUP_REDUCTIONS
        elif kind == "format":
            ok = isinstance(a, str) and _says(a, node.args[1:] if node.op == "assert_" else node.args)
        elif kind in ("math", "bits"):
            ok = isinstance(a, str)
        elif kind == "length":
            ok = isinstance(a, int) and a > 0
        if not ok:
            self.fail(f"the attribute {a!r} is no {kind}, or does not fit", node)
        array = _array_of(node)
        if isinstance(array, ScratchArray):
            if not all(isinstance(n, int) and n >= 0 for n in array.shape):
                self.fail(f"the scratch array {array.name!r} has the shape {array.shape}", node)
        elif array is not None:
            if self.params.get(array.index) != array:
                self.fail(f"the array {array.name!r} is no parameter of this kernel", node)
            if node.op in ("store", "store_flat", "atomic") and array.index not in self.written:
                self.fail(f"writes the array {array.name!r}, which is not in written", node)
            if node.op == "atomic" and array.dtype.is_float and isinstance(a, tuple) and a[0] in ("and", "or", "xor"):
                self.fail(f"atomic {a[0]} needs integers", node)


def _says(text: str, values: tuple[Instr, ...]) -> bool:
    """Whether the text has a fitting placeholder for each value."""
    try:
        specs = placeholders(text)
    except ValueError:
        return False
    return len(specs) == len(values) and all(v.type is not None and spec_fits(s, v.type) for s, v in zip(specs, values, strict=True))


def _array_of(node: Instr) -> ArrayParam | ScratchArray | None:
    a = node.attr
    if isinstance(a, tuple) and a:
        a = a[0] if node.op == "shape" else a[-1]  # (array, dim) or (kind, array)
    return a if isinstance(a, (ArrayParam, ScratchArray)) else None


def _representable(value: object, dtype: DType) -> bool:
    if dtype == BOOL:
        return isinstance(value, bool)
    if dtype.is_int:
        return isinstance(value, int) and not isinstance(value, bool) and dtype.min <= value <= dtype.max
    if not isinstance(value, float):
        return False
    from .arith import round_to

    return value != value or round_to(value, dtype) == value


def _describe(node: object) -> str:
    if isinstance(node, Instr):
        parts = node.attr if isinstance(node.attr, tuple) else () if node.attr is None else (node.attr,)
        detail = " ".join(str(getattr(part, "name", part)) for part in parts)
        return f"{node.op} {detail}".rstrip() + (f": {node.type.name}" if isinstance(node.type, DType) else "")
    if isinstance(node, Var):
        return f"variable {node.name!r}"
    if isinstance(node, Kernel):
        return "the kernel"
    return type(node).__name__
