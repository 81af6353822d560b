"""What a body's text depends on: how often values are used and where, where variables live, what statements change."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..ir.nodes import Array, Block, Break, For, If, Instr, Leave, LocalArray, Node, Scope, SharedArray, Var, While
from .affine import indices_of
from .c_expr import Cell
from .c_joins import Joins
from .walk import Walk, blocks_of, run

__all__ = ["STORES", "Facts", "changes", "memory_of"]

STORES = frozenset({"store", "store_flat", "atomic"})
_NOTHING: frozenset[Cell] = frozenset()
_BARRIER: frozenset[Cell] = frozenset({"memory", "shared"})


def memory_of(array: Array) -> Cell:
    """What an access to an array touches: local arrays are each their own, all others of a kind may overlap."""
    return array if isinstance(array, LocalArray) else "shared" if isinstance(array, SharedArray) else "memory"


def changes(instr: Instr) -> frozenset[Cell]:
    """What an instruction changes."""
    if instr.op == "set":
        assert isinstance(instr.attr, Var)
        return frozenset({instr.attr})
    if instr.op in STORES:
        return frozenset({memory_of(indices_of(instr)[0])})
    if instr.op == "set_cell":
        return frozenset({"scratch"})
    return _BARRIER if instr.op == "barrier" else _NOTHING


@dataclass(slots=True)
class Facts:
    """Of the blocks of one function."""

    uses: dict[Instr, int] = field(default_factory=dict)
    user: dict[Instr, Block] = field(default_factory=dict)  # the block of a use, for values that are used once
    changed: dict[Node, frozenset[Cell]] = field(default_factory=dict)  # by structured nodes
    declared: dict[Node, list[Var]] = field(default_factory=dict)  # variables whose declaration stands before a node, or is it
    stored: set[Instr] = field(default_factory=set)  # values that the very next instruction puts into a variable
    broken: set[Node] = field(default_factory=set)  # loops with a break
    left: set[Scope] = field(default_factory=set)  # scopes that something leaves
    joins: Joins = field(default_factory=Joins)

    @staticmethod
    def of(*blocks: Block, outer: frozenset[Var] = frozenset()) -> Facts:
        """``blocks`` run one after another, each inside the first one. ``outer``: variables that are declared elsewhere."""
        return _Collector(outer).run(blocks)


class _Collector:
    def __init__(self, outer: frozenset[Var]) -> None:
        self.joins = Joins()
        self.facts = Facts()
        self.outer = outer
        self.parent: dict[Block, tuple[Block, Node] | None] = {}
        self.depth: dict[Block, int] = {}
        self.home: dict[Var, Block] = {}
        self.first: dict[Var, tuple[Block, Node]] = {}
        self.headers: set[Var] = set()  # counters, declared in their loop's head

    def run(self, blocks: tuple[Block, ...]) -> Facts:
        self.joins = self.facts.joins = Joins.find(blocks, self.outer)
        self.parent[blocks[0]], self.depth[blocks[0]] = None, 0
        anchor: Node | None = None
        for block in blocks[1:]:
            anchor = Instr("body", None)
            self._enter(block, blocks[0], anchor)
        for block in blocks:
            run(self._block(block))
        for var, (block, node) in self.first.items():
            home = self.home[var]
            while block is not home:
                above = self.parent[block]
                assert above is not None
                block, node = above
            self.facts.declared.setdefault(node, []).append(var)
        return self.facts

    def _enter(self, block: Block, parent: Block, node: Node) -> None:
        self.parent[block], self.depth[block] = (parent, node), self.depth[parent] + 1

    def _use(self, value: Instr, block: Block) -> None:
        self.facts.uses[value] = self.facts.uses.get(value, 0) + 1
        self.facts.user[value] = block

    def _access(self, var: Var, block: Block, node: Node) -> None:
        if var in self.outer or var in self.headers:
            return
        self.first.setdefault(var, (block, node))
        a, b = self.home.get(var, block), block
        while a is not b:
            if self.depth[a] < self.depth[b]:
                a, b = b, a
            above = self.parent[a]
            assert above is not None
            a = above[0]
        self.home[var] = a

    def _block(self, block: Block) -> Walk[frozenset[Cell]]:
        changed: set[Cell] = set()
        before: Node | None = None
        for node in block.body:
            if node in self.joins.copies:
                continue
            if isinstance(node, Instr):
                if node.op == "set" and node.args[0] is before:
                    self.facts.stored.add(node.args[0])
                if node.op != "const":
                    before = node
                for value in node.args:
                    self._use(value, block)
                if isinstance(node.attr, Var) and node.op != "keep":
                    self._access(self.joins.of(node.attr), block, node)
                changed |= changes(node) if node.op != "set" else {self.joins.of(node.attr)}  # type: ignore[arg-type]
                continue
            if isinstance(node, If):
                self._use(node.cond, block)
            elif isinstance(node, For):
                for value in (node.start, node.stop, node.step):
                    self._use(value, block)
                self.headers.add(node.var)
            elif isinstance(node, Leave):
                self.facts.left.add(node.scope)
            inside: set[Cell] = set()
            for inner in blocks_of(node):
                self._enter(inner, block, node)
                inside |= yield self._block(inner)
            if isinstance(node, While):
                self._use(node.cond, node.test)
            if isinstance(node, For | While) and _has_break(node.body):
                self.facts.broken.add(node)
            self.facts.changed[node] = frozenset(inside)
            changed |= inside
        return frozenset(changed)


def _has_break(body: Block) -> bool:
    """Whether a loop's body has a break of its own."""
    stack = [body]
    while stack:
        for node in stack.pop().body:
            if isinstance(node, Break):
                return True
            if isinstance(node, If):
                stack += (node.then, node.orelse)
            elif isinstance(node, Scope):
                stack.append(node.body)
            elif isinstance(node, For | While):
                stack.append(node.orelse)
    return False
