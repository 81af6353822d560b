"""Variables that are one in printed C: what joins the arms of an inner ``if`` and is only copied to what joins those of the outer one.

Without the copies a chain of ``elif`` ends with its last ``if``, and is printed as one: compilers take few hundred levels of nesting.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from ..ir.nodes import Block, Break, Continue, For, If, Instr, Leave, Node, Var, While
from .walk import Walk, blocks_of, run

__all__ = ["Joins"]


@dataclass(slots=True)
class Joins:
    """``same``: variable -> the one that it is. ``copies``: the reads and sets that are no statements then."""

    same: dict[Var, Var] = field(default_factory=dict)
    copies: set[Node] = field(default_factory=set)

    def of(self, var: Var) -> Var:
        """The variable that a variable is printed as."""
        return self.same.get(var, var)

    @staticmethod
    def find(blocks: tuple[Block, ...], outer: frozenset[Var]) -> Joins:
        """``outer``: variables that others see too."""
        finder = _Finder()
        for block in blocks:
            run(finder.block(block))
        joins = Joins()
        for copy in finder.found:  # inner ones first
            if copy.target not in outer and finder.is_one(copy):
                joins.same[copy.var] = copy.target
                joins.copies |= {copy.read, copy.set}
        for var in reversed(list(joins.same)):  # outer ones are final
            joins.same[var] = joins.of(joins.same[var])
        return joins


@dataclass(slots=True)
class _Copy:
    """``var``, which an ``if`` at the places [begin, end] sets for certain, is read and put into ``target`` at the place ``at``."""

    var: Var
    target: Var
    read: Instr
    set: Instr
    begin: int
    end: int
    at: int


def _values(node: Node) -> tuple[Instr, ...]:
    """What a structured node takes where it begins."""
    return (node.cond,) if isinstance(node, If) else (node.start, node.stop, node.step) if isinstance(node, For) else ()


class _Finder:
    """Numbers the nodes in the order of the text."""

    def __init__(self) -> None:
        self.place = 0
        self.found: list[_Copy] = []
        self._accesses: dict[Var, list[int]] = {}
        self._read: dict[Var, list[Instr]] = {}
        self._uses: dict[Instr, int] = {}  # of reads
        self._jumps: list[int] = []

    def block(self, block: Block) -> Walk[set[Var]]:
        """Answers the variables that the block sets for certain, if it reaches its end."""
        certain: set[Var] = set()
        joined: tuple[int, int, set[Var]] | None = None  # the ``if`` before, with nothing but reads and sets in between
        for node in block.body:
            self.place += 1
            self._use(*(node.args if isinstance(node, Instr) else _values(node)))
            if isinstance(node, Instr):
                if node.op == "set" and joined is not None:
                    self._note(node, *joined)
                if isinstance(node.attr, Var):
                    self._access(node, node.attr)
                if node.op == "set":
                    assert isinstance(node.attr, Var)
                    certain.add(node.attr)
                elif node.op not in ("get", "const"):
                    joined = None
                continue
            joined = None
            begin = self.place
            if isinstance(node, If):
                then = yield self.block(node.then)
                both = then & (yield self.block(node.orelse))
                certain |= both
                joined = begin, self.place, both
                continue
            if isinstance(node, Break | Continue | Leave):
                self._jumps.append(begin)
            elif isinstance(node, For):
                self._accesses.setdefault(node.var, []).append(begin)
            for inner in blocks_of(node):
                yield self.block(inner)
            if isinstance(node, While):
                self._use(node.cond)
        return certain

    def _use(self, *values: Instr) -> None:
        for value in values:
            if value.op == "get":
                self._uses[value] = self._uses.get(value, 0) + 1

    def _access(self, node: Instr, var: Var) -> None:
        self._accesses.setdefault(var, []).append(self.place)
        if node.op != "set":
            self._read.setdefault(var, []).append(node)

    def _note(self, node: Instr, begin: int, end: int, certain: set[Var]) -> None:
        read, target = node.args[0], node.attr
        assert isinstance(target, Var)
        if read.op == "get" and isinstance(read.attr, Var) and read.attr in certain and read.attr.type == target.type:
            self.found.append(_Copy(read.attr, target, read, node, begin, end, self.place))

    def is_one(self, copy: _Copy) -> bool:
        """Whether all that uses the variable is the ``if`` and the copy, always the copy follows, and nothing uses the target meanwhile."""
        places = self._accesses[copy.var]
        once = self._read[copy.var] == [copy.read] and self._uses[copy.read] == 1
        inside = copy.begin <= places[0] and copy.end < places[-1] and places[-2] <= copy.end
        if not once or not inside or self._any(self._jumps, copy.begin, copy.end):
            return False
        return not self._any(self._accesses[copy.target], copy.begin, copy.at - 1)

    @staticmethod
    def _any(places: list[int], first: int, last: int) -> bool:
        at = bisect_left(places, first)
        return at < len(places) and places[at] <= last
