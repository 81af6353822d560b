"""Expressions of Python's AST to HIR ops, with a work list instead of recursion: depth costs no stack."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final, NoReturn

from ..errors import CompileNotImplementedError
from ..ir.nodes import Loc
from .diagnostics import error
from .hir import Attr, IfNode, Item, Op, Path
from .meaning import FunctionSource
from .refusals import REFUSED

__all__ = ["Flattener"]

BINARY: Final[dict[type[ast.operator], str]] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "shl",
    ast.RShift: "shr",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.MatMult: "matmul",
}
_UNARY: Final[dict[type[ast.unaryop], str]] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert", ast.Not: "not"}
_COMPARE: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Is: "is",
    ast.IsNot: "isnot",
    ast.In: "in",
    ast.NotIn: "notin",
}

Visitor = Callable[["Flattener", Any], None]


class Flattener:
    """Writes ops into ``self.block``. A work item is an AST node to visit, or (function, node, ...) to run when its operands are done."""

    def __init__(self, source: FunctionSource, kernel: str, line_offset: int) -> None:
        self.source = source
        self.kernel = kernel
        self.file = source.file
        self.offset = line_offset  # from a line of the AST to a line of the file
        self.ascii = source.text.isascii()
        self.block: list[Item] = []
        self.registers = 0
        self.bound = 0  # names bound since the innermost arm or loop body began
        self.bits: dict[str, int] = {}
        self.paths: set[Path] = set()
        self.used: set[Path] = set()  # those that are more than compared
        self.pseudo = 0
        self.work: list[Any] = []
        self.values: list[int] = []

    # -- places and errors

    def loc(self, node: Any) -> Loc:
        end = node.end_lineno + self.offset
        line = node.lineno + self.offset
        if self.ascii:
            return Loc(self.file, line, node.col_offset, end, node.end_col_offset)
        return Loc(self.file, line, self._column(line, node.col_offset), end, self._column(end, node.end_col_offset))

    def _column(self, line: int, offset: int) -> int:
        """The column in characters; the AST counts bytes of UTF-8."""
        lines = self.source.text.split("\n")
        position = line - self.source.line
        if not 0 <= position < len(lines):
            return offset
        return len(lines[position].encode()[:offset].decode(errors="ignore"))

    def refuse(self, node: Any, what: str, hint: str) -> NoReturn:
        raise error(CompileNotImplementedError, what, kernel=self.kernel, source=self.source, loc=self.loc(node), hint=hint)

    def refuse_construct(self, node: ast.AST) -> NoReturn:
        name, hint = REFUSED.get(type(node), (f"'{type(node).__name__}'", "See docs/kernel-language.md for what a kernel may contain."))
        self.refuse(node, f"{name} is not part of the kernel language.", hint)

    # -- building

    def op(self, kind: str, args: tuple[int, ...], attr: Attr, loc: Loc) -> int:
        register = self.registers
        self.registers = register + 1
        self.block.append(Op(kind, register, args, attr, loc))
        return register

    def effect(self, kind: str, args: tuple[int, ...], attr: Attr, loc: Loc) -> None:
        self.block.append(Op(kind, -1, args, attr, loc))

    def bit(self, name: str) -> int:
        bit = self.bits.get(name)
        if bit is None:
            bit = self.bits[name] = 1 << len(self.bits)
        return bit

    def bind(self, name: str, value: int, loc: Loc) -> None:
        self.bound |= self.bit(name)
        self.block.append(Op("bind", -1, (value,), name, loc))

    def fresh(self) -> str:
        """A name for the value of a lazily evaluated expression."""
        self.pseudo += 1
        return f"%{self.pseudo - 1}"

    def test(self, node: ast.expr) -> int:
        """The register of an expression that is only asked for its truth: its ``and`` and ``or`` need not give an operand."""
        self.mark_truth(node)
        return self.expression(node)

    @staticmethod
    def mark_truth(node: ast.expr) -> None:
        work: list[Any] = [node]
        while work:
            item = work.pop()
            if isinstance(item, ast.BoolOp):
                item.truth = True  # type: ignore[attr-defined]
                work.extend(item.values)
            elif isinstance(item, ast.UnaryOp) and isinstance(item.op, ast.Not):
                work.append(item.operand)

    def expression(self, node: ast.expr) -> int:
        """The register of the value of an expression."""
        work, values = self.work, self.values
        base = len(work)
        work.append(node)
        while len(work) > base:
            item = work.pop()
            if item.__class__ is tuple:
                item[0](self, *item[1:])
                continue
            visit = _VISIT.get(item.__class__)
            if visit is None:
                self.refuse_construct(item)
            visit(self, item)
        return values.pop()

    def take(self, count: int) -> tuple[int, ...]:
        """The last ``count`` values, in order of evaluation."""
        if count == 0:
            return ()
        taken = tuple(self.values[-count:])
        del self.values[-count:]
        return taken

    @staticmethod
    def mark_printed(node: ast.expr) -> None:
        """Strings may stand here: in an argument of print, in the message of an assert, in tuples of these."""
        work = [node]
        while work:
            item = work.pop()
            item.printed = True  # type: ignore[attr-defined]
            if isinstance(item, ast.Tuple):
                work += item.elts

    # -- leaves

    def constant(self, node: ast.Constant) -> None:
        value = node.value
        if value is Ellipsis:
            self.refuse(node, "... is not part of the kernel language.", "Write one index per dimension.")
        if isinstance(value, complex):
            self.refuse(
                node, "complex numbers are not part of the kernel language.", "Compute with the real and imaginary parts, two floats."
            )
        if isinstance(value, str) and not hasattr(node, "printed"):
            self.refuse(
                node,
                "a string is not part of the kernel language.",
                "Strings stand in print and in the message of an assert only; use numbers to tell cases apart, math.inf for infinity.",
            )
        if isinstance(value, bytes):
            self.refuse(node, "bytes are not part of the kernel language.", "Pass a tack.u8 array.")
        self.values.append(self.op("const", (), value, self.loc(node)))

    def name(self, node: ast.Name) -> None:
        path = (node.id,)
        self.mention(path, node)
        self.values.append(self.op("augread" if hasattr(node, "update") else "path", (), path, self.loc(node)))

    def mention(self, path: Path, node: ast.expr) -> None:
        self.paths.add(path)
        if not hasattr(node, "compared"):
            self.used.add(path)

    def attribute(self, node: ast.Attribute) -> None:
        names = [node.attr]
        inner: ast.expr = node.value
        while isinstance(inner, ast.Attribute):
            names.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            names.append(inner.id)
            path = tuple(reversed(names))
            self.mention(path, node)
            self.values.append(self.op("path", (), path, self.loc(node)))
        else:
            self.work.append((Flattener.attribute_of, node))
            self.work.append(node.value)

    def attribute_of(self, node: ast.Attribute) -> None:
        self.values.append(self.op("attribute", (self.values.pop(),), node.attr, self.loc(node)))

    def f_string(self, node: ast.JoinedStr) -> None:
        if not hasattr(node, "printed"):
            self.refuse_construct(node)
        values: list[ast.expr] = []
        parts: list[tuple[str, str | None]] = []  # (text, "") and ("", format specification); a value of its own for each of the latter
        for item in node.values:
            if isinstance(item, ast.Constant):
                parts.append((str(item.value), None))
                continue
            assert isinstance(item, ast.FormattedValue)
            spec = item.format_spec
            fixed = spec.values if isinstance(spec, ast.JoinedStr) else []
            if not all(isinstance(part, ast.Constant) for part in fixed):
                self.refuse(node, "a format specification must be a literal.", "Write the width and the precision as numbers: f'{x:8.3f}'.")
            parts.append(("", "".join(str(part.value) for part in fixed if isinstance(part, ast.Constant))))
            self.mark_printed(item.value)
            values.append(item.value)
        self.work.append((Flattener.f_string_of, node, tuple(parts), len(values)))
        self.work.extend(reversed(values))

    def f_string_of(self, node: ast.JoinedStr, parts: tuple[tuple[str, str | None], ...], count: int) -> None:
        self.values.append(self.op("text", self.take(count), parts, self.loc(node)))

    # -- operations

    def binary(self, node: ast.BinOp) -> None:
        self.work += ((Flattener.binary_of, node), node.right, node.left)

    def binary_of(self, node: ast.BinOp) -> None:
        values = self.values
        right = values.pop()
        values[-1] = self.op("binary", (values[-1], right), BINARY[type(node.op)], self.loc(node))

    def unary(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self.mark_truth(node.operand)
        self.work += ((Flattener.unary_of, node), node.operand)

    def unary_of(self, node: ast.UnaryOp) -> None:
        self.values[-1] = self.op("unary", (self.values[-1],), _UNARY[type(node.op)], self.loc(node))

    def tuple_display(self, node: ast.Tuple) -> None:
        self.work.append((Flattener.tuple_of, node))
        self.work.extend(reversed(node.elts))

    def tuple_of(self, node: ast.Tuple) -> None:
        self.values.append(self.op("tuple", self.take(len(node.elts)), None, self.loc(node)))

    def subscript(self, node: ast.Subscript) -> None:
        self.work.append((Flattener.subscript_of, node))
        self.push_subscript(node)

    def push_subscript(self, node: ast.Subscript) -> None:
        """Puts the base and the indices on the work list; a tuple's items count one by one."""
        if isinstance(node.slice, ast.Tuple):
            self.work.extend(reversed(node.slice.elts))
        else:
            self.work.append(node.slice)
        self.work.append(node.value)

    @staticmethod
    def index_count(node: ast.Subscript) -> int:
        return len(node.slice.elts) if isinstance(node.slice, ast.Tuple) else 1

    def subscript_of(self, node: ast.Subscript) -> None:
        args = self.take(1 + self.index_count(node))
        self.values.append(self.op("index", args, None, self.loc(node)))

    def call(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            if keyword.arg is None:
                self.refuse(keyword, "** in a call is not part of the kernel language.", "Write the keyword arguments one by one.")
        if isinstance(node.func, ast.Name) and node.func.id == "print":
            for arg in (*node.args, *(keyword.value for keyword in node.keywords)):
                self.mark_printed(arg)
        self.work.append((Flattener.call_of, node))
        self.work.extend(keyword.value for keyword in reversed(node.keywords))
        self.work.extend(reversed(node.args))
        self.work.append(node.func)

    def call_of(self, node: ast.Call) -> None:
        args = self.take(1 + len(node.args) + len(node.keywords))
        self.values.append(self.op("call", args, tuple(str(k.arg) for k in node.keywords), self.loc(node)))

    def walrus(self, node: ast.NamedExpr) -> None:
        self.work += ((Flattener.walrus_of, node), node.value)

    def walrus_of(self, node: ast.NamedExpr) -> None:
        self.bind(node.target.id, self.values[-1], self.loc(node))

    # -- lazily evaluated parts. An arm is a list of items; (node, outer list, outer bound) are kept on the work list.

    def open_if(self, cond: int, kind: str, loc: Loc) -> tuple[IfNode, list[Item], int]:
        node = IfNode(cond, [], [], loc, kind)
        outer = (node, self.block, self.bound)
        self.block.append(node)
        self.block = node.then
        self.bound = 0
        return outer

    def close_if(self, state: tuple[IfNode, list[Item], int]) -> None:
        node, block, bound = state
        node.bound |= self.bound
        self.block = block
        self.bound = bound | node.bound

    def conditional(self, node: ast.IfExp) -> None:
        self.mark_truth(node.test)
        self.work += ((Flattener.conditional_then, node), node.test)

    def conditional_then(self, node: ast.IfExp) -> None:
        state = self.open_if(self.values.pop(), "ifexp", self.loc(node))
        self.work += ((Flattener.conditional_else, node, state, self.fresh()), node.body)

    def conditional_else(self, node: ast.IfExp, state: tuple[IfNode, list[Item], int], name: str) -> None:
        self.bind(name, self.values.pop(), self.loc(node.body))
        state[0].bound = self.bound
        self.block = state[0].orelse
        self.bound = 0
        self.work += ((Flattener.conditional_end, node, state, name), node.orelse)

    def conditional_end(self, node: ast.IfExp, state: tuple[IfNode, list[Item], int], name: str) -> None:
        self.bind(name, self.values.pop(), self.loc(node.orelse))
        self.close_if(state)
        self.values.append(self.op("path", (), (name,), self.loc(node)))

    def boolean(self, node: ast.BoolOp) -> None:
        self.work += ((Flattener.boolean_next, node, 0, self.fresh(), ()), node.values[0])

    def boolean_next(self, node: ast.BoolOp, position: int, name: str, states: tuple[Any, ...]) -> None:
        """Operand ``position`` is done: it becomes the value, and the next one is evaluated only if this one does not decide.

        Where only the truth counts, each operand follows the one before. Where operands are given, it stands inside of what the one
        before decides, so that all of them meet in one place.
        """
        value = self.values.pop()
        operand = node.values[position]
        loc, whole = self.loc(operand), self.loc(node)
        last = position + 1 == len(node.values)
        if hasattr(node, "truth"):
            value = self.op("truth", (value,), None, loc)
        self.bind(name, value, loc)
        if states and (last or hasattr(node, "truth")):
            for state in reversed(states):
                self.close_if(state)
            states = ()
            value = self.op("path", (), (name,), whole)
        if last:
            self.values.append(value)
            return
        is_and = isinstance(node.op, ast.And)
        state = self.open_if(value, "and" if is_and else "or", whole)
        if not is_and:
            self.block = state[0].orelse
        self.work += ((Flattener.boolean_next, node, position + 1, name, (*states, state)), node.values[position + 1])

    def compare(self, node: ast.Compare) -> None:
        for side in (node.left, *node.comparators):
            side.compared = True  # type: ignore[attr-defined]
        if len(node.ops) == 1:
            self.work += ((Flattener.compare_of, node), node.comparators[0], node.left)
        else:
            self.work += ((Flattener.chain_next, node, 0, self.fresh(), ()), node.comparators[0], node.left)

    def compare_of(self, node: ast.Compare) -> None:
        right = self.values.pop()
        self.values[-1] = self.op("compare", (self.values[-1], right), _COMPARE[type(node.ops[0])], self.loc(node))

    def chain_next(self, node: ast.Compare, position: int, name: str, states: tuple[Any, ...]) -> None:
        """a < b < c: c is evaluated, and compared with b, only where a < b."""
        right = self.values.pop()
        left = self.values.pop()
        loc = self.loc(node)
        value = self.op("compare", (left, right), _COMPARE[type(node.ops[position])], loc)
        self.bind(name, value, loc)
        if position + 1 < len(node.ops):
            state = self.open_if(value, "compare", loc)
            self.values.append(right)
            self.work += ((Flattener.chain_next, node, position + 1, name, (*states, state)), node.comparators[position + 1])
            return
        for state in reversed(states):
            self.close_if(state)
        self.values.append(self.op("path", (), (name,), loc))


_VISIT: Final[dict[type[ast.AST], Visitor]] = {
    ast.Constant: Flattener.constant,
    ast.JoinedStr: Flattener.f_string,
    ast.Name: Flattener.name,
    ast.Attribute: Flattener.attribute,
    ast.BinOp: Flattener.binary,
    ast.UnaryOp: Flattener.unary,
    ast.Tuple: Flattener.tuple_display,
    ast.Subscript: Flattener.subscript,
    ast.Call: Flattener.call,
    ast.NamedExpr: Flattener.walrus,
    ast.IfExp: Flattener.conditional,
    ast.BoolOp: Flattener.boolean,
    ast.Compare: Flattener.compare,
}
