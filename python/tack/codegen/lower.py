"""Lowers the language's operations to primitive ones that never trap, and inlines the math library.

The result is typed IR of the operations below. Beyond those of ``ir.nodes`` it uses

==============  ==========================================================================================
quot, rem       truncating integer division; the divisor is not 0, and MIN / -1 does not occur
lshift, rshift  shifts whose count is in [0, N); rshift is arithmetic for signed types
frem            C's fmod
index           attr: dim; the launch's index along it
cell, set_cell  attr: byte offset; a scalar in the kernel's scratch memory
sequence        attr: depth; the variable of an enclosing tack.sequential, 0 being the outermost
keep            (value), attr: Var; a value of the prologue that the printer asks for by that name
combine         (blocks), attr: (op, partials, cell, type); folds the blocks' results of a reduction into its cell
call            attr: (name, dtype); a function of the math library that is printed once instead of inlined at each of many uses
==============  ==========================================================================================

Fused multiply-adds are formed first, by the rule of ``ir.fma``; the bodies of math functions are taken as written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from ..ir.fma import form_fma
from ..ir.nodes import ArrayParam, Block, Break, Continue, For, Function, If, Instr, Leave, Loc, Node, Scope, ScratchArray, Var, While
from ..types import BOOL, DType, i64
from .legalize import reads
from .lower_ops import Builder, floor_divide, int_pow, modulo, shift
from .walk import CHECKED, Walk, instructions, run, variables_set

__all__ = ["NATIVE_MATH", "PRIMITIVE", "LibraryCall", "Lowering", "MathLibrary", "copy_block", "frequent", "index_prologue"]

MathLibrary = Callable[[str, DType], Function]
LibraryCall = tuple[str, DType]  # the function's name and its float type

_FEW_COPIES = 2  # of a library function, that are always inlined
_COPIES_SIZE = 2000  # instructions of all copies of one function, beyond which it is called

NATIVE_MATH = frozenset({"sqrt", "floor", "ceil", "trunc", "rint", "round", "fabs", "copysign", "fma", "isnan", "isinf", "isfinite"})
PRIMITIVE = frozenset(
    {
        *("const", "arg", "shape", "index", "sequence", "keep", "get", "set", "select", "cast", "bitcast", "freeze"),
        *("load", "store", "load_flat", "store_flat", "atomic", "cell", "set_cell", "combine", "print", *CHECKED),
        *("add", "sub", "mul", "div", "quot", "rem", "frem", "neg", "abs", "lshift", "rshift", "and", "or", "xor", "not", "lnot"),
        *("eq", "ne", "lt", "le", "gt", "ge", "min", "max", "fma", "math", "bits", "table", "call", "sample"),
        *("thread_id", "block_id", "barrier", "block_reduce", "present"),
    }
)


class Lowering:
    """Clones blocks of one entry. ``contract`` allows fma; ``checked`` keeps asserts, which count as uses for fma's rule in any case;
    functions of the math library in ``shared`` are called, others inlined."""

    def __init__(self, math: MathLibrary, contract: bool, checked: bool, shared: frozenset[LibraryCall] = frozenset()) -> None:
        self.math = math
        self.contract = contract
        self.checked = checked
        self.shared = shared
        self.values: dict[Instr, Instr] = {}
        self.variables: dict[Var, Var] = {}
        self.scopes: dict[Scope, Scope] = {}

    def block(self, block: Block) -> Block:
        """A lowered copy. Variables are shared with the original unless ``variables`` renames them."""
        if self.contract:
            block = run(copy_block(block, {}, {}))
            form_fma(Function("", [], block, []))
        return run(self._block(block))

    def _var(self, var: Var) -> Var:
        return self.variables.get(var, var)

    def _block(self, block: Block) -> Walk[Block]:
        b = Builder()
        values = self.values
        for node in block.body:
            if isinstance(node, Instr):
                b.loc = node.loc
                values[node] = yield self._instr(node, b)
            elif isinstance(node, If):
                then = yield self._block(node.then)
                orelse = yield self._block(node.orelse)
                b.out.append(If(values[node.cond], then, orelse, node.loc))
            elif isinstance(node, For):
                # A counter of its own, so that assigning the user's variable changes nothing and a variable that is also read after
                # the loop does not slow its uses inside.
                counter = Var(node.var.name, node.var.type)
                body = yield self._block(node.body)
                now = Instr("get", counter.type, (), counter, node.loc)
                body.body[:0] = [now, Instr("set", None, (now,), self._var(node.var), node.loc)]
                orelse = yield self._block(node.orelse)
                b.out.append(For(counter, values[node.start], values[node.stop], values[node.step], body, orelse, node.loc))
            elif isinstance(node, While):
                test = yield self._block(node.test)
                body = yield self._block(node.body)
                orelse = yield self._block(node.orelse)
                b.out.append(While(test, values[node.cond], body, orelse, node.loc))
            elif isinstance(node, Scope):
                scope = self.scopes[node] = Scope(Block(), node.label, node.loc)
                scope.body = yield self._block(node.body)
                b.out.append(scope)
            elif isinstance(node, Leave):
                b.out.append(Leave(self.scopes[node.scope], node.loc))
            else:
                b.out.append(Break(node.loc) if isinstance(node, Break) else Continue(node.loc))
        return Block(b.out)

    def _instr(self, node: Instr, b: Builder) -> Walk[Instr]:
        values = self.values
        args = tuple(values[a] for a in node.args)
        op, t = node.op, node.type
        if op in ("get", "set"):
            assert isinstance(node.attr, Var)
            return b.emit(op, t, args, self._var(node.attr))
        if op in ("floordiv", "mod"):
            assert t is not None
            if t.is_float:
                rest = yield self._call("fmod", t, args, b, node.loc)
                return floor_divide(b, args[0], args[1], rest) if op == "floordiv" else modulo(b, args[0], args[1], rest)
            return floor_divide(b, *args) if op == "floordiv" else modulo(b, *args)
        if op in ("shl", "shr"):
            return shift(b, op, args[0], args[1])
        if op == "pow":
            assert t is not None
            if t.is_int:
                return int_pow(b, args[0], args[1])
            if args[1].op == "const" and args[1].attr == 2:
                return b.mul(args[0], args[0])
            result: Instr = yield self._call("pow", t, args, b, node.loc)
            return result
        if op == "math":
            assert isinstance(node.attr, str)
            if node.attr == "fma":
                return b.emit("fma", t, args)
            if node.attr in NATIVE_MATH:
                return b.emit("math", t, args, node.attr)
            of = args[0].type
            assert of is not None
            answer: Instr = yield self._call(node.attr, of, args, b, node.loc)
            return answer
        if op == "store" or op == "store_flat":
            return self._store(node, args, b)
        if op == "cast" and t == args[0].type:
            return args[0]
        if op == "cast" and t == BOOL and args[0].type is not None:
            return b.emit("ne", BOOL, (args[0], b.const(args[0].type, 0)))
        if op in CHECKED and not self.checked:
            return b.emit("const", BOOL, (), True)
        assert op in PRIMITIVE, op
        return b.emit(op, t, args, node.attr)

    def _store(self, node: Instr, args: tuple[Instr, ...], b: Builder) -> Instr:
        array = node.attr
        assert isinstance(array, ArrayParam | ScratchArray)
        dtype = array.dtype
        value = args[0] if args[0].type == dtype else b.cast(args[0], dtype)
        return b.emit(node.op, None, (value, *args[1:]), array)

    def _call(self, name: str, dtype: DType, args: tuple[Instr, ...], b: Builder, loc: Loc | None) -> Walk[Instr]:
        """Inlines a function of the math library, or calls it."""
        try:
            function = self.math(name, dtype)
        except KeyError:
            if name == "fmod":
                return b.emit("frem", dtype, args)
            raise
        if (name, dtype) in self.shared:
            return b.emit("call", function.results[0].type, args, (name, dtype))
        saved = self.values, self.variables, self.scopes
        self.values, self.scopes = {}, {}
        self.variables = {v: Var(v.name, v.type) for v in _variables(function)}
        for param, value in zip(function.params, args, strict=True):
            b.emit("set", None, (value,), self.variables[param])
        body = yield self._block(function.body)
        result = self.variables[function.results[0]]
        self.values, self.variables, self.scopes = saved
        b.out.extend(body.body)
        return b.emit("get", result.type, (), result)


def copy_block(block: Block, values: dict[Instr, Instr], scopes: dict[Scope, Scope]) -> Walk[Block]:
    """A copy that shares nothing but variables and arrays."""
    out: list[Node] = []
    for node in block.body:
        if isinstance(node, Instr):
            values[node] = Instr(node.op, node.type, tuple(values[a] for a in node.args), node.attr, node.loc)
            out.append(values[node])
        elif isinstance(node, If):
            then = yield copy_block(node.then, values, scopes)
            orelse = yield copy_block(node.orelse, values, scopes)
            out.append(If(values[node.cond], then, orelse, node.loc))
        elif isinstance(node, For):
            body = yield copy_block(node.body, values, scopes)
            orelse = yield copy_block(node.orelse, values, scopes)
            out.append(For(node.var, values[node.start], values[node.stop], values[node.step], body, orelse, node.loc))
        elif isinstance(node, While):
            test = yield copy_block(node.test, values, scopes)
            body = yield copy_block(node.body, values, scopes)
            orelse = yield copy_block(node.orelse, values, scopes)
            out.append(While(test, values[node.cond], body, orelse, node.loc))
        elif isinstance(node, Scope):
            scope = scopes[node] = Scope(Block(), node.label, node.loc)
            scope.body = yield copy_block(node.body, values, scopes)
            out.append(scope)
        elif isinstance(node, Leave):
            out.append(Leave(scopes[node.scope], node.loc))
        else:
            out.append(Break(node.loc) if isinstance(node, Break) else Continue(node.loc))
    return Block(out)


def _library_call(node: Instr) -> LibraryCall | None:
    """The function of the math library that lowering ``node`` asks for (it may have none)."""
    t = node.args[0].type if node.args else None
    if t is None or not t.is_float:
        return None
    if node.op == "math" and isinstance(node.attr, str) and node.attr not in NATIVE_MATH:
        return node.attr, t
    if node.op == "pow":
        return None if node.args[1].op == "const" and node.args[1].attr == 2 else ("pow", t)
    return ("fmod", t) if node.op in ("floordiv", "mod") else None


def frequent(math: MathLibrary, blocks: Iterable[Block]) -> frozenset[LibraryCall]:
    """The library functions that are used so often that all copies together would be too much code."""
    uses = Counter(call for i in instructions(*blocks) if (call := _library_call(i)) is not None)
    out = set()
    for call, count in uses.items():
        if count <= _FEW_COPIES:
            continue
        try:
            function = math(*call)
        except KeyError:
            continue
        if count * sum(1 for _ in instructions(function.body)) > _COPIES_SIZE:
            out.add(call)
    return frozenset(out)


def _variables(function: Function) -> list[Var]:
    return list(dict.fromkeys([*function.params, *function.results, *variables_set(function.body), *reads(function.body)]))


def index_prologue(indices: list[Var]) -> list[Node]:
    """Binds a launch's index variables at the start of an iteration."""
    out: list[Node] = []
    for d, var in enumerate(indices):
        index = Instr("index", i64, (), d)
        out += [index, Instr("set", None, (index,), var)]
    return out
