"""Which values and which control flow are the same for all threads of a group, and which collectives need not be reached by all.

Uniform are constants, arguments, shapes, scalars bound outside of the loop, ``block_id``, the results of ``block_reduce``, and what
is computed of these alone. Not uniform are ``thread_id``, the loop's indices, what is loaded from memory, and what an atomic answers.
Flow is uniform where every branch and loop around it is decided by uniform values, and no thread can have jumped over it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from .nodes import Block, Break, Continue, For, If, Instr, Leave, Loc, Node, Scope, SharedArray, Var, While
from .walk import Walk, instructions, run

__all__ = ["COLLECTIVES", "GROUP_OPERATIONS", "Root", "Split", "Uniformity", "analyse", "shared_arrays", "uses_groups"]

COLLECTIVES: Final = frozenset({"barrier", "block_reduce"})
GROUP_OPERATIONS: Final = frozenset({"thread_id", "block_id", *COLLECTIVES})
_MEMORY: Final = frozenset({"load", "load_flat", "store", "store_flat", "atomic"})
_DIFFERENT: Final = frozenset({"thread_id", "index", "present", "load", "load_flat", "atomic"})

Root: TypeAlias = Instr | Var  # why something differs: an instruction of _DIFFERENT, or an index of the loop
_Target: TypeAlias = "tuple[str, For | While | Scope | None]"  # where a jump leads: ("break", loop); ("continue", None) ends the iteration


@dataclass(frozen=True, slots=True)
class Split:
    """Where threads of a group take different ways. ``kind``: branch, loop or jump."""

    kind: str
    loc: Loc | None
    root: Root


@dataclass(slots=True)
class Uniformity:
    """``values`` and ``variables`` differ between threads; all others are uniform. ``divided``: structured nodes and jumps in flow that
    is not uniform, or that split it. ``refused``: collectives there, with what splits the flow around each.
    """

    values: dict[Instr, Root] = field(default_factory=dict)
    variables: dict[Var, Root] = field(default_factory=dict)
    divided: set[Node] = field(default_factory=set)
    refused: list[tuple[Instr, Split]] = field(default_factory=list)


def shared_arrays(*blocks: Block) -> list[SharedArray]:
    """The shared arrays that the blocks access, in order of appearance."""
    found: dict[SharedArray, None] = {}
    for instr in instructions(*blocks):
        if instr.op in _MEMORY:
            array = instr.attr[-1] if isinstance(instr.attr, tuple) else instr.attr
            if isinstance(array, SharedArray):
                found[array] = None
    return list(found)


def uses_groups(*blocks: Block) -> bool:
    """Whether anything in the blocks depends on how iterations form groups."""
    return any(instr.op in GROUP_OPERATIONS for instr in instructions(*blocks)) or bool(shared_arrays(*blocks))


def analyse(indices: list[Var], *blocks: Block) -> Uniformity:
    """Analyses the blocks of one parallel loop, in order of execution. ``indices``: the loop's variables."""
    analysis = _Analysis(indices)
    while True:
        analysis.changed = False
        analysis.round(blocks)
        if not analysis.changed:
            return analysis.found


class _Analysis:
    """Rounds over the blocks until nothing more is found to differ: variables and loops that differ only become more."""

    def __init__(self, indices: list[Var]) -> None:
        self.found = Uniformity(variables={var: var for var in indices})
        self.loops: dict[Node, Split] = {}  # that threads leave at different times
        self.around: list[For | While | None] = [None]
        self.changed = False

    def round(self, blocks: tuple[Block, ...]) -> None:
        found = self.found
        found.values, found.divided, found.refused = {}, set(), []
        for block in blocks:
            run(self._block(block, None))

    def _differs(self, *values: Instr) -> Root | None:
        return next((root for v in values if (root := self.found.values.get(v)) is not None), None)

    def _set(self, var: Var, root: Root | None) -> None:
        if root is not None and var not in self.found.variables:
            self.found.variables[var] = root
            self.changed = True

    def _instr(self, instr: Instr, flow: Split | None) -> None:
        op = instr.op
        if op in COLLECTIVES:
            if flow is not None:
                self.found.refused.append((instr, flow))
            return
        if op == "set":
            assert isinstance(instr.attr, Var)
            self._set(instr.attr, flow.root if flow is not None else self._differs(*instr.args))
            return
        root: Root | None
        if op == "get":
            assert isinstance(instr.attr, Var)
            root = self.found.variables.get(instr.attr)
        else:
            root = instr if op in _DIFFERENT else self._differs(*instr.args)
        if root is not None:
            self.found.values[instr] = root

    def _block(self, block: Block, flow: Split | None) -> Walk[dict[_Target, Split]]:
        """Visits a block that threads enter by ``flow`` (None: all do). Answers where some of those that entered may have jumped to."""
        gone: dict[_Target, Split] = {}
        for node in block.body:
            if isinstance(node, Instr):
                self._instr(node, flow)
                continue
            if flow is not None:
                self.found.divided.add(node)
            if isinstance(node, (Break, Continue, Leave)):
                if flow is not None:
                    gone.setdefault(self._target(node), Split("jump", node.loc, flow.root))
                break
            left: dict[_Target, Split]
            if isinstance(node, If):
                inside = flow
                root = self._differs(node.cond)
                if root is not None:
                    self.found.divided.add(node)
                    inside = flow or Split("branch", node.loc, root)
                left = yield self._block(node.then, inside)
                other: dict[_Target, Split] = yield self._block(node.orelse, inside)
                left = other | left
            elif isinstance(node, Scope):
                left = yield self._block(node.body, flow)
                left.pop(("leave", node), None)
            else:
                left = yield self._loop(node, flow)
            if left:
                flow = flow or next(iter(left.values()))
                gone = left | gone
        return gone

    def _target(self, node: Break | Continue | Leave) -> _Target:
        if isinstance(node, Leave):
            return "leave", node.scope
        return "break" if isinstance(node, Break) else "continue", self.around[-1]

    def _loop(self, node: For | While, flow: Split | None) -> Walk[dict[_Target, Split]]:
        inside = flow or self.loops.get(node)
        if inside is not None:
            self.found.divided.add(node)
        self.around.append(node)
        left: dict[_Target, Split]
        if isinstance(node, For):
            root = self._differs(node.start, node.stop, node.step)
            self._split(node, None if root is None else Split("loop", node.loc, root))
            self._set(node.var, inside.root if inside is not None else root)
            left = yield self._block(node.body, inside)
        else:
            tested: dict[_Target, Split] = yield self._block(node.test, inside)
            root = self._differs(node.cond)
            self._split(node, None if root is None else Split("loop", node.loc, root))
            left = yield self._block(node.body, inside)
            left = tested | left
        self.around.pop()
        left.pop(("continue", node), None)
        self._split(node, next(iter(left.values()), None))  # who left is missing in the next round
        broke = left.pop(("break", node), None)
        orelse: dict[_Target, Split] = yield self._block(node.orelse, flow or broke)
        return orelse | left

    def _split(self, node: Node, split: Split | None) -> None:
        if split is not None and node not in self.loops:
            self.loops[node] = split
            self.changed = True
