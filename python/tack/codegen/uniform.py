"""Finds what differs between lanes: values, variables, and control flow that only some lanes take.

A *region* is a part of the body that the same lanes run: the arm of an If whose condition differs, the body of a loop that lanes leave at
different times, and what follows a jump that only some took. The body itself is region 0. A variable whose accesses all lie in one
region and those inside it never needs a mask for what is set in that very region, and is one scalar if only uniform values are set there.
Nor does one that only a loop reads, which is set anew before each run of it, for what is set where all lanes that are off have left the
loop: nobody looks at what becomes of their values, and the next round need not wait for the mask.

Where lanes share the rounds of inner loops (``lane_loops``), nothing differs outside of these, and the body of such a loop is a region.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..ir.nodes import Block, Break, Continue, For, If, Instr, Leave, LocalArray, Node, Scope, Var, While
from .affine import Form, access, stride_of
from .lane_loops import LaneLoop
from .walk import Walk, nodes, run

__all__ = ["Flow", "Target", "analyse"]

# Where lanes can jump to: (what, node). ("continue", None) ends the iteration.
Target = tuple[str, "For | While | Scope | None"]

_MEMORY = frozenset({"load", "load_flat", "store", "store_flat", "atomic"})


@dataclass(slots=True)
class Flow:
    """What ``analyse`` found. With one lane nothing differs and all sets are empty."""

    lanes: int
    forms: dict[Instr, Form] = field(default_factory=dict)  # uniform values are left out
    varying: set[Var] = field(default_factory=set)
    masked: set[Instr] = field(default_factory=set)  # sets that must keep the other lanes' values
    divergent: set[Node] = field(default_factory=set)  # Ifs and loops that split lanes; jumps that leave some behind
    exits: dict[Node, tuple[Target, ...]] = field(default_factory=dict)  # where lanes inside a node may have gone, beyond its end
    inner_exits: dict[Node, tuple[Target, ...]] = field(default_factory=dict)  # of a loop: those that leave its body
    targets: set[Target] = field(default_factory=set)
    pair: int | None = None  # lanes run over the launch's dimensions ``pair - 1`` and ``pair`` as one
    vectors: set[Instr] = field(default_factory=set)  # uniform and affine values that are needed lane by lane as well

    def form(self, value: Instr) -> Form:
        return self.forms.get(value, 0)

    def uniform(self, value: Instr) -> bool:
        return self.forms.get(value, 0) == 0


class _Analysis:
    def __init__(self, lanes: int, rank: int, inner_step: int | None, root: set[Var]) -> None:
        self.flow = Flow(lanes)
        self.rank, self.inner_step = rank, inner_step
        self.root = root
        self.counters: set[Var] = set()  # of loops whose rounds lanes share
        self.flow.varying |= root
        self.changed = False
        self.parent: list[int] = [0]
        self.depth: list[int] = [0]

    def round(self, blocks: tuple[Block, ...]) -> None:
        flow = self.flow
        self.parent, self.depth = [0], [0]
        self.sets: dict[Var, list[tuple[int, Instr | None]]] = {}
        self.common: dict[Var, int] = dict.fromkeys(self.root, 0)
        flow.exits, flow.inner_exits, flow.targets = {}, {}, set()
        self.loops: list[tuple[For | While | None, int]] = [(None, 0)]
        self.scopes: dict[Scope, int] = {}
        self.left: dict[int, For | While] = {}  # of a region inside a loop, where the lanes that are off have left that loop
        self.readers: dict[Var, tuple[For | While | None, ...]] = {}  # the loops around all reads, outermost first
        self.fresh: dict[Var, set[For | While]] = {}  # loops in front of which a variable is set in the same block
        for block in blocks:
            run(self._block(block, 0))
        flow.masked = set()
        if self.changed:
            return  # where lanes are is not known yet
        for var, sets in self.sets.items():
            common = self.common[var]
            loop = self.readers[var][-1] if self.readers.get(var) else None
            if loop is not None and (var in self.root or loop not in self.fresh.get(var, ())):
                loop = None
            for region, instr in sets:
                if region != common and (loop is None or self.left.get(region) is not loop):
                    self._vary(var)
                    if instr is not None:
                        flow.masked.add(instr)

    def _region(self, parent: int) -> int:
        self.parent.append(parent)
        self.depth.append(self.depth[parent] + 1)
        return len(self.parent) - 1

    def _touch(self, var: Var, region: int) -> None:
        a = self.common.get(var, region)
        b = region
        while a != b:
            if self.depth[a] >= self.depth[b]:
                a = self.parent[a]
            else:
                b = self.parent[b]
        self.common[var] = a

    def _vary(self, var: Var) -> None:
        """Said as soon as it is known, so that what follows in this round knows it too."""
        if var not in self.flow.varying:
            self.flow.varying.add(var)
            self.changed = True

    def _set(self, var: Var, region: int, instr: Instr | None, differs: bool) -> None:
        self._touch(var, region)
        self.sets.setdefault(var, []).append((region, instr))
        if differs:
            self._vary(var)

    def _split(self, node: Node) -> None:
        if node not in self.flow.divergent:
            self.flow.divergent.add(node)
            self.changed = True

    def _form(self, instr: Instr) -> Form:
        flow = self.flow
        op = instr.op
        if op == "get":
            return None if instr.attr in flow.varying else 1 if instr.attr in self.counters else 0
        if op in ("fold", "chain"):
            return 0
        if op == "index":
            if flow.pair is not None:
                return None if instr.attr in (flow.pair - 1, flow.pair) else 0
            return self.inner_step if instr.attr == self.rank - 1 else 0
        if op in ("load", "load_flat"):
            if isinstance(instr.attr, LocalArray) or any(not flow.uniform(a) for a in instr.args):
                return None
            return 0
        if op == "atomic":
            return None
        if all(flow.uniform(a) for a in instr.args):
            return 0
        return stride_of(instr, flow.form)

    def _instr(self, instr: Instr, region: int) -> None:
        flow = self.flow
        form = self._form(instr)
        if form != 0:
            flow.forms[instr] = form
        elif instr in flow.forms:
            del flow.forms[instr]
        if instr.op == "get":
            assert isinstance(instr.attr, Var)
            self._touch(instr.attr, region)
            self._read(instr.attr)
        elif instr.op == "set":
            assert isinstance(instr.attr, Var)
            if instr.args[0].op == "chain":  # takes account of the mask itself
                self._touch(instr.attr, region)
            else:
                self._set(instr.attr, region, instr, not flow.uniform(instr.args[0]))

    def _read(self, var: Var) -> None:
        loops = tuple(loop for loop, _ in self.loops)
        known = self.readers.get(var)
        if known is None or known == loops:
            self.readers[var] = loops
            return
        same = 0
        while same < min(len(known), len(loops)) and known[same] is loops[same]:
            same += 1
        self.readers[var] = known[:same]

    def _block(self, block: Block, region: int) -> Walk[dict[Target, None]]:
        """Visits a block; answers where lanes that entered it may have jumped to."""
        flow = self.flow
        assigned: list[Var] = []
        gone: dict[Target, None] = {}  # ordered, so that the text is the same in every process
        for node in block.body:
            if isinstance(node, Instr):
                self._instr(node, region)
                if node.op == "set":
                    assert isinstance(node.attr, Var)
                    assigned.append(node.attr)
                continue
            if isinstance(node, For | While):
                for var in assigned:
                    self.fresh.setdefault(var, set()).add(node)
            if isinstance(node, Break | Continue | Leave):
                if isinstance(node, Leave):
                    target: Target = ("leave", node.scope)
                    home = self.scopes[node.scope]
                else:
                    loop, home = self.loops[-1]
                    target = ("break" if isinstance(node, Break) else "continue", loop)
                if region != home or self._counted(target):
                    self._split(node)
                    gone[target] = None
                    flow.targets.add(target)
                break
            left: dict[Target, None]
            if isinstance(node, If):
                then = orelse = region
                if not flow.uniform(node.cond):
                    self._split(node)
                if node in flow.divergent:
                    then, orelse = self._region(region), self._region(region)
                left = yield self._block(node.then, then)
                left |= yield self._block(node.orelse, orelse)
            elif isinstance(node, Scope):
                self.scopes[node] = region
                left = yield self._block(node.body, region)
                left.pop(("leave", node), None)
            else:
                left = yield self._loop(node, region)
            if left:
                flow.exits[node] = tuple(left)
                loop = self.left.get(region)
                region = self._region(region)
                if loop is not None and all(target in (("break", loop), ("continue", None)) for target in left):
                    self.left[region] = loop
                gone |= left
        return gone

    def _counted(self, target: Target) -> bool:
        """A loop that lanes leave one by one keeps account of breaks where others have an else to run."""
        what, node = target
        return what == "break" and isinstance(node, For | While) and node in self.flow.divergent and bool(node.orelse.body)

    def _loop(self, node: For | While, region: int) -> Walk[dict[Target, None]]:
        flow = self.flow
        inside = region
        if node in flow.divergent:
            inside = self._region(region)
            self.left[inside] = node
        elif isinstance(node, LaneLoop):
            inside = self._region(region)
            self.counters.add(node.var)
        left: dict[Target, None]
        self.loops.append((node, inside))
        if isinstance(node, For):
            if not all(flow.uniform(v) for v in (node.start, node.stop, node.step)):
                self._split(node)
            own = not (flow.uniform(node.start) and flow.uniform(node.step))
            self._set(node.var, inside, None, own)
            left = yield self._block(node.body, inside)
        else:
            left = yield self._block(node.test, inside)
            if not flow.uniform(node.cond):
                self._split(node)
            left |= yield self._block(node.body, inside)
        self.loops.pop()
        flow.inner_exits[node] = tuple(left)
        left.pop(("continue", node), None)
        if left:
            self._split(node)
        left.pop(("break", node), None)
        after = self._region(region) if node in flow.divergent else region
        orelse: dict[Target, None] = yield self._block(node.orelse, after)
        return left | orelse


def analyse(prologue: Block, body: Block, lanes: int, rank: int, inner_step: int | None, root: set[Var], collapsed: bool = False) -> Flow:
    """``inner_step``: the constant step of the last index, or None. ``root``: variables that the printer reads in all lanes at the end.
    ``collapsed``: lanes run over the last two indices."""
    analysis = _Analysis(lanes, rank, inner_step, root)
    analysis.flow.pair = rank - 1 if collapsed else None
    if lanes == 1:
        return Flow(1)
    while True:
        analysis.changed = False
        analysis.round((prologue, body))
        if not analysis.changed:
            break
    _find_vectors(analysis.flow, prologue, body)
    return analysis.flow


def _find_vectors(flow: Flow, *blocks: Block) -> None:
    need = flow.vectors

    def want(*values: Instr) -> None:
        need.update(v for v in values if flow.form(v) is not None and v.op != "const")

    for node in nodes(*blocks):
        if isinstance(node, For):
            if node in flow.divergent and not all(flow.uniform(v) for v in (node.start, node.stop, node.step)):
                want(node.start, node.stop, node.step)
        elif isinstance(node, Instr):
            if node.op in ("check", "check_index"):
                continue  # they make the vectors that they need where they need them
            if node.op in _MEMORY:
                _memory_vectors(flow, node, want)
            elif node.op == "set":
                if node.attr in flow.varying:
                    want(node.args[0])
            elif flow.form(node) is None:
                if node.op == "select" and flow.uniform(node.args[0]):
                    want(*node.args[1:])
                else:
                    want(*node.args)
            elif node.op == "chain":
                want(*node.args[1:])
            elif node.op == "fold":
                want(*node.args)


def _memory_vectors(flow: Flow, node: Instr, want: object) -> None:
    assert callable(want)
    split = access(node, flow.form, flow.pair)
    want(*(index for _, index in split.lanes))
    if node.op == "atomic":
        want(*node.args)  # lanes take turns, each with its own operands
    elif node.op in ("store", "store_flat"):
        local = isinstance(node.attr, LocalArray)
        if local or split.step != 0 or not flow.uniform(node.args[0]):
            want(node.args[0])
    if isinstance(node.attr, LocalArray) and split.step != 0:
        want(*node.args[1 if node.op == "store" else 0 :])
