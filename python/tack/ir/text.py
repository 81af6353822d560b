"""The text form of the IR: readable, deterministic, the same for equal kernels. What ``tack.inspect(..., mode="ir")`` shows.

A value that is used once, in its own block, is printed where it is used, unless that would move it past something that changes what
it reads; any other becomes ``%n``. Equal names of different variables get a suffix: ``x``, ``x.1``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ..types import BOOL, DType, f32
from .arith import round_to
from .nodes import (
    ArrayParam,
    Attr,
    Block,
    Break,
    Extent,
    For,
    Function,
    If,
    Instr,
    Item,
    Kernel,
    Leave,
    Node,
    NoneParam,
    Parallel,
    Param,
    ScalarParam,
    Scope,
    ScratchArray,
    Segment,
    SharedArray,
    Table,
    Var,
    While,
)
from .symbols import INFIX, PREFIX

__all__ = ["extent_text", "function_to_text", "to_text"]

_MEMORY: Final = ("load", "load_flat")
_EFFECTS: Final = ("store", "store_flat", "atomic", "barrier", "block_reduce", "print", "assert_", "inside")
_VALUED_EFFECTS: Final = ("atomic", "block_reduce")
_WIDTH: Final = 100  # longer expressions are given a name


def to_text(kernel: Kernel) -> str:
    """The kernel as text, ending with a newline."""
    return _Printer().kernel(kernel)


def function_to_text(function: Function) -> str:
    """A device function as text, ending with a newline."""
    return _Printer().function(function)


def extent_text(extent: Extent, params: list[Param] | None = None, sequences: list[str] | None = None) -> str:
    """An extent as an expression; parameters and sequence variables by name where known."""
    names = {p.index: p.name for p in params or []}
    stack: list[str] = []
    for op, arg, dim, value in extent.terms:
        if op == "constant":
            stack.append(str(value))
        elif op == "shape":
            stack.append(f"{names.get(arg, f'arg{arg}')}.shape[{dim}]")
        elif op == "scalar":
            stack.append(names.get(arg, f"arg{arg}"))
        elif op == "sequence":
            stack.append(sequences[arg] if sequences and arg < len(sequences) else f"sequence{arg}")
        elif op == "neg":
            stack.append(f"-{_wrapped(stack.pop())}")
        elif op in ("popcount", "clz"):
            stack.append(f"{op}({stack.pop()})")
        elif op == "select":
            other, value_, cond = stack.pop(), stack.pop(), stack.pop()
            stack.append(f"select({cond}, {value_}, {other})")
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(f"{op}({left}, {right})" if op in ("min", "max") else f"{_wrapped(left)} {INFIX[op]} {_wrapped(right)}")
    return stack[-1]


def _wrapped(text: str) -> str:
    """In parentheses if an operator stands outside all brackets."""
    depth = 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == " " and depth == 0:
            return f"({text})"
    return text


@dataclass(eq=False, slots=True)
class _Pending:
    """A value that is waiting for its only use. ``reads``: the Vars and (as None) the memory that its text depends on."""

    text: str
    reads: set[int | None]
    compound: bool  # needs parentheses inside an operator


class _Printer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = 0
        self.names: dict[int, str] = {}  # of Vars, ScratchArrays, Scopes by id
        self.declared: set[int] = set()
        self.counts: dict[str, int] = {}
        self.values: dict[int, str] = {}  # named values
        self.uses: dict[int, int] = {}
        self.home: dict[int, int] = {}  # id of the block that uses a value, if all its uses are there
        self.keep: list[object] = []  # what ids belong to
        self.changing: set[int] = set()  # ids of Vars that the item being printed sets
        self.temporaries = 0

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    def name(self, thing: Var | ScratchArray | Scope) -> str:
        known = self.names.get(id(thing))
        if known is None:
            base = (thing.label if isinstance(thing, Scope) else thing.name) or "scope"
            count = self.counts.get(base, 0)
            self.counts[base] = count + 1
            known = self.names[id(thing)] = f"{base}.{count}" if count else base
            self.keep.append(thing)
        return known

    # -- top level

    def kernel(self, kernel: Kernel) -> str:
        for p in kernel.params:
            self.counts[p.name] = 1
        result = f" -> {kernel.result.type.name}" if kernel.result else ""
        self.lines.append(f"kernel {kernel.name}({', '.join(_param(p, kernel) for p in kernel.params)}){result}")
        for key, value in sorted(kernel.options.items()):
            self.line(f"  option {key} = {value!r}")
        if kernel.uses:
            self.line(f"  uses {', '.join(sorted(kernel.uses))}")
        self.items(kernel)
        if kernel.result is not None:
            self.line(f"  return {self.name(kernel.result)}")
        return "\n".join(self.lines) + "\n"

    def items(self, kernel: Kernel) -> None:
        work: list[tuple[Item, list[str]]] = [(item, []) for item in reversed(kernel.items)]
        while work:
            item, sequences = work.pop()
            self.indent = 1 + len(sequences)
            if isinstance(item, Segment):
                self.line("segment:")
                self.block(item.body)
            elif isinstance(item, Parallel):
                bounds = zip(item.indices, item.start, item.stop, item.step, strict=True)
                ranges = ", ".join(f"{self.name(v)} in {_range(a, b, c, kernel.params, sequences)}" for v, a, b, c in bounds)
                self.declared.update(map(id, item.indices))
                reductions = "".join(f", {r.op} {self.name(r.var)}" for r in item.reductions)
                self.line(f"parallel {ranges}{' reduces' + reductions[1:] if reductions else ''}:")
                self.block(item.body)
            else:
                name = self.name(item.var)
                self.declared.add(id(item.var))
                self.line(f"sequence {name} in {_range(item.start, item.stop, item.step, kernel.params, sequences)}:")
                work.extend((inner, [*sequences, name]) for inner in reversed(item.items))
        self.indent = 0

    def function(self, function: Function) -> str:
        params = ", ".join(f"{self.name(v)}: {v.type.name}" for v in function.params)
        self.declared.update(map(id, function.params))
        results = ", ".join(f"{self.name(v)}: {v.type.name}" for v in function.results)
        self.declared.update(map(id, function.results))
        self.lines.append(f"function {function.name}({params}) -> {results}")
        self.block(function.body)
        return "\n".join(self.lines) + "\n"

    # -- blocks

    def count(self, root: Block) -> None:
        """How often each value is used, whether only in one block, and which variables change."""
        work = [root]
        self.changing = set()
        while work:
            block = work.pop()
            for node in block.body:
                if isinstance(node, For):
                    self.changing.add(id(node.var))
                elif isinstance(node, Instr) and node.op == "set":
                    self.changing.add(id(node.attr))
                for value in _operands(node):
                    self.uses[id(value)] = self.uses.get(id(value), 0) + 1
                    self.home[id(value)] = id(block) if self.home.get(id(value), id(block)) == id(block) else 0
                if isinstance(node, While):
                    self.uses[id(node.cond)] = self.uses.get(id(node.cond), 0) + 1
                    self.home[id(node.cond)] = id(node.test) if self.home.get(id(node.cond), id(node.test)) == id(node.test) else 0
                work.extend(_blocks(node))

    def block(self, root: Block) -> None:
        self.count(root)
        self.indent += 1
        walk = [self.body(root)]  # generators instead of recursion: nesting may be deep
        while walk:
            inner = next(walk[-1], None)
            if inner is None:
                walk.pop()
            else:
                walk.append(self.body(inner))
        self.indent -= 1

    def body(self, block: Block, cond: Instr | None = None) -> Iterator[Block]:
        """Prints a block; yields the blocks inside, to be printed by the caller before it goes on."""
        pending: dict[int, _Pending] = {}
        if not block.body:
            self.line("pass")
        for node in block.body:
            if isinstance(node, Instr):
                self.instr(node, block, pending)
            elif isinstance(node, If):
                text = self.operand(node.cond, pending)
                self.flush(pending)
                yield from self.branches(node, text)
            elif isinstance(node, For):
                parts = [self.operand(v, pending) for v in (node.start, node.stop, node.step)]
                self.flush(pending)
                self.line(f"for {self.variable(node.var)} in range({', '.join(parts)}):")
                yield from self.inside(node.body)
                yield from self.otherwise(node.orelse)
            elif isinstance(node, While):
                self.flush(pending)
                test = self.test_text(node)
                if test is not None:
                    self.line(f"while {test}:")
                else:
                    self.line("while:")
                    yield from self.inside(node.test)
                    self.line(f"test {self.operand(node.cond, {})}:")
                yield from self.inside(node.body)
                yield from self.otherwise(node.orelse)
            elif isinstance(node, Scope):
                self.flush(pending)
                self.line(f"scope {self.name(node)}:")
                yield from self.inside(node.body)
            elif isinstance(node, Leave):
                self.flush(pending)
                self.line(f"leave {self.name(node.scope)}")
            else:
                self.flush(pending)
                self.line("break" if isinstance(node, Break) else "continue")
        self.flush(pending)

    def branches(self, node: If, text: str) -> Iterator[Block]:
        self.line(f"if {text}:")
        yield from self.inside(node.then)
        yield from self.otherwise(node.orelse)

    def otherwise(self, block: Block) -> Iterator[Block]:
        if block.body:
            self.line("else:")
            yield from self.inside(block)

    def inside(self, block: Block) -> Iterator[Block]:
        self.indent += 1
        yield block
        self.indent -= 1

    def test_text(self, node: While) -> str | None:
        """The test of a while loop as one expression, if it is one: then it has printed nothing."""
        pending: dict[int, _Pending] = {}
        before, known, temporaries = len(self.lines), len(self.values), self.temporaries
        for inner in node.test.body:
            if not isinstance(inner, Instr) or inner.type is None or inner.op in _EFFECTS:
                return None
        for inner in node.test.body:
            assert isinstance(inner, Instr)
            self.instr(inner, node.test, pending)
        if len(self.lines) == before and set(pending) <= {id(node.cond)}:
            return self.operand(node.cond, pending)
        del self.lines[before:]
        for key in list(self.values)[known:]:
            del self.values[key]
        self.temporaries = temporaries
        return None

    # -- values

    def operand(self, value: Instr, pending: dict[int, _Pending], reads: set[int | None] | None = None, nested: bool = False) -> str:
        waiting = pending.pop(id(value), None)
        if waiting is None:
            return self.values.get(id(value), f"<{value.op}>")
        if reads is not None:
            reads |= waiting.reads
        return f"({waiting.text})" if nested and waiting.compound else waiting.text

    def flush(self, pending: dict[int, _Pending], touched: int | None = 0) -> None:
        """Gives names to waiting values: to all, or to those that read what is about to change."""
        for key, waiting in list(pending.items()):
            if touched == 0 or touched in waiting.reads:
                self.bind(key, waiting.text)
                del pending[key]

    def bind(self, key: int, text: str) -> None:
        name = self.values[key] = f"%{self.temporaries}"
        self.temporaries += 1
        self.line(f"{name} = {text}")

    def variable(self, var: Var) -> str:
        """The variable's name, with its type where it is first written."""
        name = self.name(var)
        if id(var) in self.declared:
            return name
        self.declared.add(id(var))
        return f"{name}: {var.type.name}"

    def instr(self, node: Instr, block: Block, pending: dict[int, _Pending]) -> None:
        reads: set[int | None] = set()
        compound = node.op in INFIX or node.op in PREFIX
        args = [self.operand(a, pending, reads, compound) for a in node.args]
        text = self.expression(node, args)
        if node.op == "get":
            reads.add(id(node.attr))
        elif node.op in _MEMORY:
            reads.add(None)
        if node.type is None or node.op in _VALUED_EFFECTS:
            if node.op == "set":
                self.flush(pending, id(node.attr))
            else:
                self.flush(pending, None)
            if node.type is not None and self.uses.get(id(node)):
                self.bind(id(node), text)
            else:
                self.line(text)
        elif node.op in ("const", "arg", "shape") or (node.op == "get" and id(node.attr) not in self.changing):
            self.values[id(node)] = text  # never changes: printed at every use
        elif self.uses.get(id(node), 0) == 1 and self.home[id(node)] == id(block) and len(text) <= _WIDTH:
            pending[id(node)] = _Pending(text, reads, compound)
        else:
            self.bind(id(node), text)

    def expression(self, node: Instr, args: list[str]) -> str:
        op, attr = node.op, node.attr
        if op == "const":
            return _constant(attr, node.type)
        if op == "arg":
            return attr.name if isinstance(attr, ScalarParam) else "?"
        if op == "shape":
            return f"{attr[0].name}.shape[{attr[1]}]" if isinstance(attr, tuple) and isinstance(attr[0], ArrayParam) else "?"
        if op == "get":
            return self.name(attr) if isinstance(attr, Var) else "?"
        if op == "set":
            return f"{self.variable(attr) if isinstance(attr, Var) else '?'} = {args[0]}"
        if op == "load":
            return f"{self.array(attr)}[{', '.join(args)}]"
        if op == "store":
            return f"{self.array(attr)}[{', '.join(args[1:])}] = {args[0]}"
        if op == "load_flat":
            return f"{self.array(attr)}.flat[{args[0]}]"
        if op == "store_flat":
            return f"{self.array(attr)}.flat[{args[1]}] = {args[0]}"
        if op == "atomic":
            kind, array = attr if isinstance(attr, tuple) else ("?", None)
            values = 2 if kind == "cas" else 1
            return f"atomic_{kind}({self.array(array)}[{', '.join(args[values:])}], {', '.join(args[:values])})"
        if op == "sample" and isinstance(attr, tuple):
            return f"sample_{attr[0]}({self.array(attr[1])}, {', '.join(args)})"
        if op in INFIX:
            return f"{args[0]} {INFIX[op]} {args[1]}"
        if op in PREFIX:
            return f"{PREFIX[op]}{args[0]}"
        if op == "cast":
            return f"{node.type.name if node.type else '?'}({args[0]})"
        if op == "bitcast":
            return f"bitcast_{node.type.name if node.type else '?'}({args[0]})"
        if op in ("math", "bits"):
            return f"{attr}({', '.join(args)})"
        if op == "block_reduce":
            return f"block_{attr}({args[0]})"
        if op in ("print", "assert_"):
            return f"{op.rstrip('_')} {', '.join([repr(attr), *args])}"
        if isinstance(attr, Table):
            return f"table({args[0]}; {', '.join(_constant(v, node.type) for v in attr.values)})"
        suffix = f", {attr!r}" if attr is not None else ""
        return f"{op}({', '.join(args)}{suffix})"

    def array(self, attr: Attr | object) -> str:
        if isinstance(attr, ScratchArray):
            if id(attr) not in self.declared:
                self.declared.add(id(attr))
                kind = "shared" if isinstance(attr, SharedArray) else "local"
                self.line(f"{kind} {self.name(attr)}: {attr.dtype.name}[{', '.join(map(str, attr.shape))}]")
            return self.name(attr)
        return attr.name if isinstance(attr, ArrayParam) else "?"


def _operands(node: Node) -> tuple[Instr, ...]:
    if isinstance(node, Instr):
        return node.args
    if isinstance(node, If):
        return (node.cond,)
    return (node.start, node.stop, node.step) if isinstance(node, For) else ()


def _blocks(node: Node) -> tuple[Block, ...]:
    if isinstance(node, If):
        return (node.then, node.orelse)
    if isinstance(node, For):
        return (node.body, node.orelse)
    if isinstance(node, While):
        return (node.test, node.body, node.orelse)
    return (node.body,) if isinstance(node, Scope) else ()


def _param(p: Param, kernel: Kernel) -> str:
    if isinstance(p, NoneParam):
        return f"{p.name}: none"
    if isinstance(p, ScalarParam):
        limits = f" in [{p.low}, {p.high}]" if p.low is not None or p.high is not None else ""
        return f"{p.name}: {p.kind} {p.dtype.name}{limits}"
    written = " written" if p.index in kernel.written else " read-only" if p.read_only else ""
    return f"{p.name}: {p.dtype.name}[{', '.join(':' * p.rank)}] {p.layout.name.lower()}{written}"


def _constant(value: Attr, dtype: DType | None) -> str:
    if dtype is None or dtype == BOOL:
        return "true" if value else "false"
    if dtype.name == "f32" and isinstance(value, float):
        return f"{_shortest_f32(value)}f32"
    return repr(value) if dtype.name in ("i64", "f64") else f"{value!r}{dtype.name}"


def _shortest_f32(value: float) -> str:
    """The fewest digits that give back the f32."""
    for digits in range(1, 9):
        text = f"{value:.{digits}g}"
        if round_to(float(text), f32) == value:
            return repr(float(text))
    return repr(value)


def _range(start: Extent, stop: Extent, step: Extent, params: list[Param], sequences: list[str]) -> str:
    parts = [extent_text(e, params, sequences) for e in (start, stop, step)]
    return f"range({', '.join(parts)})"
