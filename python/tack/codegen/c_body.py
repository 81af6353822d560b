"""Prints the instructions of a function as C statements; expressions are nested where they are used once and nothing comes between.

A value that is not printed yet is *pending*: its text goes where it is used. A statement that changes what a pending text reads makes
a constant of it first. Texts that grow long or deep become constants too, so that no compiler meets deep nesting.
"""

from __future__ import annotations

from ..ir.nodes import Block, Break, Continue, For, If, Instr, Leave, Loc, Scope, ScratchArray, Var
from ..types import DType, i32, i64
from .affine import indices_of
from .c_control import Control
from .c_expr import Cell, Expr
from .c_facts import Facts, changes
from .c_helpers import Helpers
from .c_memory import Memory, Parameters
from .c_names import Names
from .c_ops import Ops
from .c_records import check, record, report
from .c_text import Writer
from .lower import LibraryCall
from .walk import Walk, instructions, run

__all__ = ["Body"]

_LONGEST, _DEEPEST = 96, 10  # characters and operations of an expression
_NAMED = frozenset({"const", "arg", "shape", "sequence", "index", "present", "thread_id", "block_id"})  # written anew at each use


class Body:
    """Prints blocks of one function."""

    def __init__(self, helpers: Helpers, parameters: Parameters, names: Names, facts: Facts, records: int) -> None:
        self.h, self.p, self.names, self.facts = helpers, parameters, names, facts
        self.w = Writer()
        self.ops = Ops(helpers)
        self.memory = Memory(self.ops, parameters, names)
        self.control = Control(self)
        self.records = records  # words of a record
        self.index: list[Expr] = []  # the launch's indices
        self.place: dict[str, Expr] = {}  # present, thread_id, block_id
        self.kept: dict[Var, str] = {}
        self.calls: dict[LibraryCall, str] = {}  # shared functions of the math library
        self.variables: dict[Var, str] = {}
        self.counters: dict[Var, Expr] = {}
        self._known: dict[Instr, Expr] = {}
        self._pending: dict[Instr, Expr] = {}
        self._left: dict[Instr, int] = {}
        self._undeclared: set[Var] = set()
        self._blocks: list[Block] = []

    # ---- blocks

    def print(self, block: Block) -> None:
        run(self.block(block))

    def block(self, block: Block) -> Walk[None]:
        """The statements of a block, without braces."""
        self._blocks.append(block)
        for node in block.body:
            if node in self.facts.joins.copies:
                continue
            self._declare(node)
            if isinstance(node, Instr):
                self._instr(node)
                continue
            if isinstance(node, Break | Continue | Leave):
                self.control.jump(node)
                break
            cond = self.value(node.cond) if isinstance(node, If) else None  # it is looked at before the arms change anything
            self.flush(self.facts.changed[node])
            if isinstance(node, If):
                assert cond is not None
                yield self.control.when(node, cond)
            elif isinstance(node, For):
                yield self.control.counted(node)
            elif isinstance(node, Scope):
                yield self.control.scope(node)
            else:
                yield self.control.loop(node)
        self._blocks.pop()

    def before_last(self, block: Block) -> tuple[If, Expr] | None:
        """Prints the instructions of a block that are followed by an If and nothing else; answers that and its condition, its block still
        open."""
        last = self.last_if(block)
        if last is None:
            return None
        self._blocks.append(block)
        for node in block.body:
            if node is last:
                break
            if node in self.facts.joins.copies:
                continue
            assert isinstance(node, Instr)
            self._declare(node)
            self._instr(node)
        self._declare(last)
        cond = self.value(last.cond)
        self.flush(self.facts.changed[last])
        return last, cond

    def last_if(self, block: Block) -> If | None:
        """The If that a block ends with, where only instructions stand before it."""
        nodes = [node for node in block.body if node not in self.facts.joins.copies]
        last = nodes.pop() if nodes else None
        return last if isinstance(last, If) and all(isinstance(node, Instr) for node in nodes) else None

    def close(self, blocks: int) -> None:
        """Ends blocks that ``before_last`` has left open."""
        del self._blocks[len(self._blocks) - blocks :]

    def looped(self, block: Block) -> None:
        """The body of a loop over iterations."""
        self.arrays(block)
        self.control.iterate(block)

    def arrays(self, block: Block) -> None:
        """Declares the local and shared arrays of an iteration."""
        for instr in instructions(block):
            array = instr.attr[1] if instr.op == "atomic" and isinstance(instr.attr, tuple) else instr.attr
            if isinstance(array, ScratchArray) and array not in self.memory.arrays:
                self.w.do(self.memory.declare(array))

    def _declare(self, node: object) -> None:
        """Declares the variables that a node or what it contains is the first to use."""
        for var in self.facts.declared.get(node, ()):  # type: ignore[call-overload]
            name = self.variables[var] = self.names.new(var.name.lstrip("_") or "t")
            if isinstance(node, Instr) and node.op == "set":
                self._undeclared.add(var)
            else:
                self.w.do(f"{self.h.type(var.type)} {name} = 0;")

    # ---- values

    def value(self, instr: Instr) -> Expr:
        """The text of an operand; each use asks once."""
        if instr.op == "const":
            assert instr.type is not None
            return self.ops.constant(instr.type, instr.attr)
        if instr.op in ("arg", "shape", "sequence"):
            return self.memory.word(instr)
        if instr.op == "index":
            assert isinstance(instr.attr, int)
            return self.index[instr.attr]
        if instr.op in ("present", "thread_id", "block_id"):
            return self.place[instr.op]
        found = self._known.get(instr)
        if found is not None:
            return found
        left = self._left[instr] - 1
        self._left[instr] = left
        return self._pending[instr] if left else self._pending.pop(instr)

    def held(self, instr: Instr, expr: Expr, hint: str, loc: Loc | None) -> Expr:
        """An operand's expression as a text that may be written several times: a constant, unless it is as short as one."""
        if not expr.size:
            return expr
        assert instr.type is not None
        return self._constant(instr.type, expr, hint, loc)

    def flush(self, changed: frozenset[Cell]) -> None:
        """Makes constants of pending values that read what is about to change."""
        if not changed:
            return
        for instr in [i for i, e in self._pending.items() if e.reads & changed]:
            expr = self._pending.pop(instr)
            assert instr.type is not None
            self._known[instr] = self._constant(instr.type, expr, self._hint(instr), instr.loc)

    def _constant(self, dtype: DType, expr: Expr, hint: str, loc: Loc | None) -> Expr:
        name = self.names.new(hint)
        held = i32 if dtype == i64 and expr.small else dtype
        self.w.do(f"const {self.h.type(held)} {name} = {expr.text};", loc)
        return expr.named(name)

    def name(self, instr: Instr, expr: Expr) -> None:
        """Notes what an instruction computes: pending, or a constant."""
        uses = self.facts.uses.get(instr, 0)
        if not uses:
            return
        if instr in self.facts.stored:  # the variable's name serves the other uses
            self._pending[instr], self._left[instr] = expr, uses
            return
        long = len(expr.text) > _LONGEST or expr.size > _DEEPEST
        if not long and (not expr.size or (uses == 1 and self.facts.user[instr] is self._blocks[-1])):
            if expr.reads or expr.size:
                self._pending[instr], self._left[instr] = expr, uses
            else:
                self._known[instr] = expr
            return
        assert instr.type is not None
        self._known[instr] = self._constant(instr.type, expr, self._hint(instr), instr.loc)

    @staticmethod
    def _hint(instr: Instr) -> str:
        """What a constant is called."""
        if instr.op == "get":
            assert isinstance(instr.attr, Var)
            return f"{instr.attr.name}_before"
        if instr.op in ("load", "load_flat"):
            return f"{indices_of(instr)[0].name}_value"
        if instr.op in ("math", "bits"):
            return f"{instr.attr}_value"
        return {"call": "math_value", "atomic": "old", "lnot": "test", "and": "test" if instr.type and instr.type.bits == 1 else "t"}.get(
            instr.op, "test" if instr.type is not None and instr.type.bits == 1 else "t"
        )

    # ---- instructions

    def _instr(self, node: Instr) -> None:
        op = node.op
        if op in _NAMED:
            return
        if op == "get":
            assert isinstance(node.attr, Var)
            self.name(node, self.variable(self.facts.joins.of(node.attr)))
        elif op == "set":
            self._set(node)
        elif op in ("load", "load_flat"):
            self.name(node, self.memory.element(node, [self.value(a) for a in node.args]))
        elif op in ("store", "store_flat"):
            self._store(node)
        elif op == "atomic":
            self._atomic(node)
        elif op == "cell":
            assert isinstance(node.attr, int)
            assert node.type is not None
            self.name(node, self.memory.cell(node.type, str(node.attr // 8)))
        elif op == "set_cell":
            assert isinstance(node.attr, int)
            assert node.args[0].type is not None
            value = self.value(node.args[0])
            self.flush(frozenset({"scratch"}))
            self.w.do(self.memory.set_cell(node.args[0].type, str(node.attr // 8), value), node.loc)
        elif op == "keep":
            assert isinstance(node.attr, Var)
            self.kept[node.attr] = self.held(node.args[0], self.value(node.args[0]), node.attr.name, node.loc).text
        elif op in ("check", "check_index"):
            check(self, node)
        elif op in ("record", "report"):
            (record if op == "record" else report)(self, node)
        elif op == "barrier":
            self.flush(changes(node))
            self.w.do(self.h.dialect.barrier, node.loc)
        elif op == "return":
            self.w.do(f"return {self.value(node.args[0]).text};", node.loc)
        elif op == "call":
            assert isinstance(node.attr, tuple)
            assert node.type is not None
            call: LibraryCall = node.attr  # type: ignore[assignment]
            function = self.calls.setdefault(call, f"tack_math_{call[0]}_{call[1].name}")
            self.name(node, self.ops.call(function, node.type, [self.value(a) for a in node.args]))
        elif op == "sample":
            self.name(node, self.memory.sample(node, [self.value(a) for a in node.args]))
        elif op == "table":
            self.name(node, self.memory.table(node, self.value(node.args[0])))
        else:
            self.name(node, self.ops.emit(node, [self.value(a) for a in node.args]))

    def variable(self, var: Var) -> Expr:
        """The value that a variable has now."""
        counter = self.counters.get(var)
        if counter is not None:
            return counter
        return self.ops.value(var.type, self.variables[var], frozenset({var}))

    def _set(self, node: Instr) -> None:
        assert isinstance(node.attr, Var)
        var, source = self.facts.joins.of(node.attr), node.args[0]
        value = self.value(source)
        self.flush(frozenset({var}))
        name = self.variables[var]
        if var in self._undeclared:
            self._undeclared.remove(var)
            self.w.do(f"{self.h.type(var.type)} {name} = {value.text};", node.loc)
        elif value.text != name:
            self.w.do(f"{name} = {value.text};", node.loc)
        if value.size and source in self._pending:  # from here on the variable is the value, until it changes
            self._pending[source] = Expr(
                name, reads=frozenset({var}), low=value.low, high=value.high, small=value.small and var.type != i64
            )

    def _store(self, node: Instr) -> None:
        value = self.value(node.args[0])
        element = self.memory.element(node, [self.value(a) for a in node.args[1:]])
        self.flush(changes(node))
        self.w.do(f"{element.text} = {value.text};", node.loc)

    def _atomic(self, node: Instr) -> None:
        assert isinstance(node.attr, tuple)
        array, indices = indices_of(node)
        count = len(node.args) - len(indices)
        operands = [self.value(a) for a in node.args[:count]]
        element = self.memory.element(node, [self.value(a) for a in indices])
        self.flush(changes(node))
        text = self.memory.atomic(node, operands, element)
        if self.facts.uses.get(node):
            self._known[node] = self._constant(array.dtype, self.ops.value(array.dtype, text), "old", node.loc)
        else:
            self.w.do(f"{text};", node.loc)
