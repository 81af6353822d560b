"""Makes a lowered body with collectives one that every thread of a group runs, absent ones too, and spells out block reductions.

Threads of the last group that have no iteration must come to every barrier. So they take the control flow around collectives, whose
conditions are uniform, and nothing else: what touches memory, reports, or may differ between threads is put under a condition,

==============  ==========================================================================================
present         bool; whether this thread has an iteration
==============  ==========================================================================================

A printer that meets it lets all threads of the last group run the body. Values that are computed under the condition and used after
the next collective are kept in variables. A body without collectives stays as it is: absent threads return at once.

A block reduction becomes shared memory, barriers, and a tree of fixed order (``ir.groups.reduce``): with p the least power of two not
below the size of a group, thread t takes in the value of thread t + p/2, then of t + p/4, ..., t + 1, where t is below that distance.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..ir.arith import identity
from ..ir.nodes import Block, Break, Continue, For, If, Instr, Leave, Node, SharedArray, Var, While
from ..ir.uniformity import COLLECTIVES, analyse, uses_groups
from ..types import BOOL, DType, i64
from .lower_ops import Builder
from .walk import EFFECTS, Walk, blocks_of, instructions, nodes, run

__all__ = ["lower_groups"]

_GUARDED = EFFECTS | {"load", "load_flat"}


def lower_groups(prologue: Block, body: Block, group: int, alone: bool = False) -> None:
    """Changes the body of an entry, after simplification. ``prologue`` stands before it, and computes without memory of the group.

    ``group``: threads of a group. ``alone``: the entry is one iteration, run by one thread.
    """
    if not uses_groups(body):
        return
    if alone or group == 1:
        _alone(body, alone)
    elif any(i.op in COLLECTIVES for i in instructions(body)):
        rewrite = _Rewrite(_Common(prologue, body), group)
        run(rewrite.block(body))
        rewrite.finish(body)


def _alone(body: Block, only: bool) -> None:
    """Groups of one thread: nobody to wait for. ``only``: there is one group."""
    same: dict[Instr, Instr] = {}
    for block in _blocks(body):
        kept: list[Node] = []
        for node in block.body:
            if isinstance(node, Instr):
                node.args = tuple(same.get(a, a) for a in node.args)
                if node.op == "block_reduce":
                    same[node] = node.args[0]
                if node.op in COLLECTIVES:
                    continue
                if node.op == "thread_id" or (only and node.op == "block_id"):
                    node.op, node.attr = "const", 0
            elif isinstance(node, If):
                node.cond = same.get(node.cond, node.cond)
            elif isinstance(node, For):
                node.start, node.stop, node.step = (same.get(v, v) for v in (node.start, node.stop, node.step))
            kept.append(node)
        block.body = kept
    for node in nodes(body):
        if isinstance(node, While):
            node.cond = same.get(node.cond, node.cond)


def _blocks(root: Block) -> list[Block]:
    """All blocks, each before those inside it."""
    found = [root]
    for block in found:
        for node in block.body:
            found.extend(blocks_of(node))
    return found


class _Common:
    """What all threads run, absent ones included: the structured nodes around collectives (``nodes``), and the values (``needed``) and
    variables that decide where these lead.
    """

    def __init__(self, prologue: Block, body: Block) -> None:
        self.divided = analyse([], prologue, body).divided
        self.nodes: set[Node] = set()
        self.needed: set[Instr] = set()
        self.variables: set[Var] = set()
        self.parent: dict[Node, Node | None] = {}
        self.sets: dict[Var, list[Node]] = {}
        self.jumps: dict[Node | None, list[Node]] = {}  # those that all threads take, by where they lead; None: the iteration's end
        self.work: list[Instr] = []
        collectives: list[Instr] = []
        stack: list[tuple[Block, Node | None, Node | None]] = [(body, None, None)]
        while stack:
            block, around, loop = stack.pop()
            for node in block.body:
                self.parent[node] = around
                if isinstance(node, Instr):
                    if node.op in COLLECTIVES:
                        collectives.append(node)
                    elif node.op == "set" and isinstance(node.attr, Var):
                        self.sets.setdefault(node.attr, []).append(node)
                elif isinstance(node, Break | Continue | Leave):
                    if node not in self.divided:
                        self.jumps.setdefault(node.scope if isinstance(node, Leave) else loop, []).append(node)
                else:
                    if isinstance(node, For):
                        self.sets.setdefault(node.var, []).append(node)
                        stack.append((node.orelse, node, loop))
                        stack.append((node.body, node, node))
                    elif isinstance(node, While):
                        stack.append((node.orelse, node, loop))
                        stack += [(inner, node, node) for inner in (node.test, node.body)]
                    else:
                        stack += [(inner, node, loop) for inner in blocks_of(node)]
        for node in (*collectives, *self.jumps.get(None, ())):
            self._enter(self.parent[node])
        self._follow()

    def _enter(self, node: Node | None) -> None:
        """All threads come into a node, and into those around it."""
        while node is not None and node not in self.nodes:
            assert node not in self.divided, "a collective in flow that is not uniform"
            self.nodes.add(node)
            if isinstance(node, For):
                self.work += (node.start, node.stop, node.step)
            elif isinstance(node, If | While):
                self.work.append(node.cond)
            for jump in self.jumps.get(node, ()):
                self._enter(self.parent[jump])
            node = self.parent[node]

    def _follow(self) -> None:
        """What decides is needed, and what it is computed of; so are all sets of a variable that it reads, and what they depend on."""
        while self.work:
            instr = self.work.pop()
            if instr in self.needed:
                continue
            self.needed.add(instr)
            if instr.op not in COLLECTIVES:  # what these give is uniform, whatever they take
                self.work += instr.args
            if instr.op == "get" and isinstance(instr.attr, Var) and instr.attr not in self.variables:
                self.variables.add(instr.attr)
                for setter in self.sets.get(instr.attr, ()):
                    if isinstance(setter, Instr):
                        self.work += setter.args
                        self._enter(self.parent[setter])
                    else:
                        self._enter(setter)


@dataclass(eq=False, slots=True)
class _Guard:
    """Statements for present threads alone, and the variables that keep their values for later."""

    branch: If
    kept: list[Var] = field(default_factory=list)
    gets: dict[Instr, Instr] = field(default_factory=dict)  # values of earlier guards, read in this one


class _Rewrite:
    def __init__(self, common: _Common, group: int) -> None:
        self.common = common
        self.group = group
        self.present = Instr("present", BOOL)
        self.home: dict[Instr, _Guard] = {}  # of the values that are computed under a guard
        self.variables: dict[Instr, Var] = {}  # that keep such values
        self.guards: dict[If, _Guard] = {}
        self.scratch: dict[DType, SharedArray] = {}

    def block(self, block: Block) -> Walk[None]:
        out = Builder([])
        guard: _Guard | None = None
        for node in block.body:
            out.loc = node.loc
            if not self._for_all(node):
                guard = guard or _Guard(If(self.present, Block(), Block(), node.loc))
                self._take(node, guard, out)
                continue
            if isinstance(node, Instr) and node.op not in COLLECTIVES and node.op != "set":
                self._take(node, None, out)  # before what is guarded so far, which may use it
                continue
            self._close(guard, out)
            guard = None
            if isinstance(node, Instr):
                self._take(node, None, out, emit=node.op != "block_reduce")
                if node.op == "block_reduce":
                    self._reduce(node, out)
            else:
                if node in self.common.nodes:
                    for inner in blocks_of(node):
                        yield self.block(inner)
                out.out.append(node)
        self._close(guard, out)
        block.body = out.out

    def _close(self, guard: _Guard | None, out: Builder) -> None:
        if guard is not None:
            self.guards[guard.branch] = guard
            out.out.append(guard.branch)

    def _for_all(self, node: Node) -> bool:
        """Whether absent threads run it too."""
        common = self.common
        if not isinstance(node, Instr):
            return node in common.nodes or (isinstance(node, Break | Continue | Leave) and node not in common.divided)
        if node.op in COLLECTIVES or node in common.needed:
            return True
        if node.op in _GUARDED:
            return False
        if node.op in ("get", "set"):
            assert isinstance(node.attr, Var)
            return node.attr in common.variables or (node.op == "get" and node.attr not in common.sets)
        return not any(a in self.home for a in node.args)

    def _take(self, node: Node, guard: _Guard | None, out: Builder, emit: bool = True) -> None:
        """Appends a node to a guard, or to what all threads run; values of other guards are read from where they are kept."""
        into = Builder(out.out if guard is None else guard.branch.then.body, node.loc)
        gets = {} if guard is None else guard.gets

        def here(value: Instr) -> Instr:
            home = self.home.get(value)
            if home is None or home is guard:
                return value
            if value not in gets:
                var = self.variables.get(value)
                if var is None:
                    assert value.type is not None
                    var = self.variables[value] = Var("_kept", value.type)
                    home.branch.then.body.append(Instr("set", None, (value,), var, value.loc))
                    home.kept.append(var)
                gets[value] = into.emit("get", var.type, (), var)
            return gets[value]

        for inner in nodes(Block([node])):
            if isinstance(inner, Instr):
                inner.args = tuple(here(a) for a in inner.args)
            elif isinstance(inner, If | While):
                inner.cond = here(inner.cond)
            elif isinstance(inner, For):
                inner.start, inner.stop, inner.step = here(inner.start), here(inner.stop), here(inner.step)
        if emit:
            into.out.append(node)
            if guard is not None and isinstance(node, Instr):
                self.home[node] = guard

    def _reduce(self, node: Instr, b: Builder) -> None:
        """The tree; ``node`` becomes the load of what it gives. The last barrier parts it from later uses of the same memory."""
        dtype, op = node.type, str(node.attr)
        assert dtype is not None
        scratch = self.scratch.setdefault(dtype, SharedArray(f"_reduced_{dtype.name}", dtype, (self.group,)))
        width = 1 << (self.group - 1).bit_length()
        thread = b.emit("thread_id", i64)
        value = b.select(self.present, node.args[0], b.const(dtype, identity(op, dtype)))
        b.emit("store", None, (value, thread), scratch)
        b.emit("barrier", None)
        step = Var("_step", i64)
        fold, pair = Builder(loc=node.loc), Builder(loc=node.loc)
        distance = fold.emit("rshift", i64, (fold.const(i64, width // 2), fold.emit("get", i64, (), step)))
        other = fold.add(thread, distance)
        below = fold.compare("lt", thread, distance)
        if width != self.group:
            below = fold.both(below, fold.compare("lt", other, fold.const(i64, self.group)))
        mine, its = (pair.emit("load", dtype, (place,), scratch) for place in (thread, other))
        pair.emit("store", None, (pair.emit(op, dtype, (mine, its)), thread), scratch)
        fold.out.append(If(below, Block(pair.out), Block(), node.loc))
        fold.emit("barrier", None)
        zero, one = b.const(i64, 0), b.const(i64, 1)
        b.out.append(For(step, zero, b.const(i64, width.bit_length() - 1), one, Block(fold.out), Block(), node.loc))
        node.op, node.args, node.attr = "load", (zero,), scratch
        b.out.append(node)
        b.emit("barrier", None)

    def finish(self, body: Block) -> None:
        """Declares what guards keep, so that absent threads read something."""
        for block in _blocks(body):
            out: list[Node] = []
            for node in block.body:
                guard = self.guards.get(node) if isinstance(node, If) else None
                for var in guard.kept if guard is not None else ():
                    b = Builder(out, node.loc)
                    b.emit("set", None, (b.const(var.type, False if var.type == BOOL else 0.0 if var.type.is_float else 0),), var)
                out.append(node)
            block.body = out
        body.body.insert(0, self.present)
