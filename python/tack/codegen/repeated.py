"""Loads an element once that is loaded again before anything is stored: ``if a[i, j] > m: m = a[i, j]``.

LLVM does so too, but not under masks, and not before tiles and gathers have been chosen for each load. Changes the body; the meaning stays.
"""

from __future__ import annotations

from itertools import count

from ..ir.nodes import Block, For, If, Instr, Var, While
from .walk import EFFECTS, Walk, blocks_of, nodes, run, variables_set

__all__ = ["load_once"]

_PURE = frozenset({"add", "sub", "mul", "neg", "cast", "and", "or", "xor", "lshift", "rshift", "min", "max", "quot", "rem", "select"})
_WORDS = frozenset({"arg", "shape", "index", "sequence"})
_LOADS = ("load", "load_flat")


def load_once(body: Block) -> None:
    if sum(i.op in _LOADS for i in nodes(body) if isinstance(i, Instr)) < 2:
        return
    pass_ = _Pass()
    run(pass_.block(body, {}))
    same = pass_.same
    if not same:
        return
    for node in nodes(body):
        if isinstance(node, Instr):
            node.args = tuple(same.get(a, a) for a in node.args)
        elif isinstance(node, If | While):
            node.cond = same.get(node.cond, node.cond)
        elif isinstance(node, For):
            node.start, node.stop, node.step = (same.get(v, v) for v in (node.start, node.stop, node.step))
    blocks = [body]
    for block in blocks:
        block.body = [n for n in block.body if n not in same]
        blocks += [b for n in block.body if not isinstance(n, Instr) for b in blocks_of(n)]


class _Pass:
    """Numbers values: equal ones alike."""

    def __init__(self) -> None:
        self.same: dict[Instr, Instr] = {}  # loads, and those that bring the same
        self._numbers: dict[Instr, int] = {}
        self._known: dict[object, int] = {}
        self._fresh = count()
        self._held: dict[Var, int] = {}  # a number for what a variable holds
        self._memory = 0

    def _number(self, instr: Instr) -> int:
        if instr.op == "const":
            key: object = (instr.op, instr.type, repr(instr.attr))
        elif instr.op == "get":
            assert isinstance(instr.attr, Var)
            return self._held.setdefault(instr.attr, next(self._fresh))
        elif instr.op in _WORDS or instr.op in _PURE:
            key = (instr.op, instr.type, instr.attr, *(self._of(a) for a in instr.args))
        else:
            return next(self._fresh)
        if key not in self._known:
            self._known[key] = next(self._fresh)
        return self._known[key]

    def _of(self, value: Instr) -> int:
        if value not in self._numbers:
            self._numbers[value] = self._number(value)
        return self._numbers[value]

    def _after(self, *blocks: Block) -> None:
        """Forgets what the blocks may change."""
        for var in variables_set(*blocks):
            self._held[var] = next(self._fresh)
        if any(isinstance(n, Instr) and n.op in EFFECTS for n in nodes(*blocks)):
            self._memory = next(self._fresh)

    def block(self, block: Block, loaded: dict[object, Instr]) -> Walk[None]:
        """``loaded``: what has been loaded where all come by that come here."""
        loaded = dict(loaded)
        for node in block.body:
            if not isinstance(node, Instr):
                for inner in blocks_of(node):
                    if isinstance(node, For | While):  # the blocks follow each other, again and again
                        self._after(Block([node]))
                    held, memory = dict(self._held), self._memory
                    yield self.block(inner, loaded)
                    self._held, self._memory = held, memory
                self._after(Block([node]))
            elif node.op in _LOADS:
                key = (node.op, node.attr, self._memory, *(self._of(a) for a in node.args))
                first = loaded.setdefault(key, node)
                if first is not node:
                    self.same[node] = first
                    self._numbers[node] = self._of(first)
            elif node.op == "set":
                assert isinstance(node.attr, Var)
                self._held[node.attr] = self._of(node.args[0])
            elif node.op in EFFECTS:
                self._memory = next(self._fresh)
            else:
                self._of(node)
