"""Cleans lowered IR: forwards variables, turns small branches into selects, removes what nothing reads. Changes its input."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from ..ir.nodes import Block, Break, Continue, For, If, Instr, Leave, Node, Scope, Var, While
from .walk import CHECKED, EFFECTS, Walk, blocks_of, instructions, nodes, run

__all__ = ["is_pure", "reads", "simplify"]

# What a flattened branch may cost; a branch on lanes costs a test of the mask and a jump that the processor may mispredict.
_BUDGET = 8
_FREE = frozenset({"const", "arg", "shape", "index", "get", "set", "freeze"})
_CHEAP = frozenset(
    {
        "add",
        "sub",
        "mul",
        "neg",
        "abs",
        "and",
        "or",
        "xor",
        "not",
        "lnot",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "min",
        "max",
        "select",
        "cast",
        "bitcast",
        "fma",
    }
    | {"lshift", "rshift"}
)


def simplify(prologue: Block, body: Block, results: Iterable[Var] = ()) -> None:
    """Runs the passes over an entry's blocks, in order of execution. ``results`` are read after them: the variables of reductions."""
    for convert in (False, True):
        _Forward(convert).blocks(prologue, body)
        _prune((prologue, body), results)


class _Forward:
    """Replaces reads of variables by the values that they are known to hold (and, if asked, cheap Ifs by selects)."""

    def __init__(self, convert: bool) -> None:
        self.convert = convert
        self.alias: dict[Instr, Instr] = {}
        # What may change variables, in source order; where in it a node's own begin and end; where a variable's are.
        self.sets: list[Var] = []
        self.span: dict[Node, tuple[int, int]] = {}
        self.places: dict[Var, list[int]] = {}

    def blocks(self, *blocks: Block) -> None:
        run(self._collect(blocks))
        known: dict[Var, Instr] = {}
        for block in blocks:
            run(self._block(block, known))

    def _collect(self, blocks: tuple[Block, ...]) -> Walk[None]:
        """Notes which variables each structured node may change."""
        for block in blocks:
            for node in block.body:
                if isinstance(node, Instr):
                    if node.op == "set":
                        assert isinstance(node.attr, Var)
                        self._note(node.attr)
                    continue
                begin = len(self.sets)
                if isinstance(node, For):
                    self._note(node.var)
                yield self._collect(blocks_of(node))
                self.span[node] = begin, len(self.sets)

    def _note(self, var: Var) -> None:
        self.places.setdefault(var, []).append(len(self.sets))
        self.sets.append(var)

    def _forget(self, known: dict[Var, Instr], node: Node) -> None:
        """Drops what the node may change, in time of the smaller of both: neither long code nor deep nests take their square."""
        begin, end = self.span[node]
        if end - begin <= len(known):
            for var in self.sets[begin:end]:
                known.pop(var, None)
            return
        for var in list(known):
            places = self.places.get(var, ())
            k = bisect_left(places, begin)
            if k < len(places) and places[k] < end:
                del known[var]

    def _value(self, value: Instr) -> Instr:
        return self.alias.get(value, value)

    def _instr(self, node: Instr, known: dict[Var, Instr], out: list[Node]) -> None:
        if self.alias and node.args:
            alias = self.alias
            node.args = tuple(alias.get(a, a) for a in node.args)
        if node.op == "get":
            assert isinstance(node.attr, Var)
            held = known.get(node.attr)
            if held is not None:
                self.alias[node] = held
                return
            known[node.attr] = node
        elif node.op == "set":
            assert isinstance(node.attr, Var)
            known[node.attr] = node.args[0]
        out.append(node)

    def _block(self, block: Block, known: dict[Var, Instr]) -> Walk[None]:
        out: list[Node] = []
        for node in block.body:
            if isinstance(node, Instr):
                self._instr(node, known, out)
                continue
            if isinstance(node, Break | Continue | Leave):
                out.append(node)
                break  # nothing after it is reached
            if isinstance(node, If):
                node.cond = self._value(node.cond)
                then, orelse = dict(known), dict(known)
                yield self._block(node.then, then)
                yield self._block(node.orelse, orelse)
                if self.convert and _cheap(node):
                    self._flatten(node, known, then, orelse, out)
                    continue
            elif isinstance(node, For):
                node.start, node.stop, node.step = self._value(node.start), self._value(node.stop), self._value(node.step)
                self._forget(known, node)
                yield self._block(node.body, dict(known))
                yield self._block(node.orelse, dict(known))
                out.append(node)
                continue
            elif isinstance(node, While):
                self._forget(known, node)
                inside = dict(known)
                yield self._block(node.test, inside)
                node.cond = self._value(node.cond)
                yield self._block(node.body, inside)
                # Lanes may have left in earlier rounds: what the last test computed is not theirs.
                yield self._block(node.orelse, dict(known))
                out.append(node)
                continue
            else:
                yield self._block(node.body, known if _straight(node) else dict(known))
                if _straight(node):
                    out.extend(node.body.body[:-1] if _ends_with_leave(node) else node.body.body)
                    continue
            self._forget(known, node)
            out.append(node)
        block.body = out

    def _flatten(self, node: If, known: dict[Var, Instr], then: dict[Var, Instr], orelse: dict[Var, Instr], out: list[Node]) -> None:
        changed: dict[Var, None] = {}
        for arm in (node.then, node.orelse):
            for instr in arm.body:
                assert isinstance(instr, Instr)
                if instr.op == "set":
                    assert isinstance(instr.attr, Var)
                    changed[instr.attr] = None
                else:
                    out.append(instr)
        values: list[tuple[Var, Instr]] = []
        for var in changed:
            sides = []
            for held in (then, orelse):
                value = held.get(var) if held.get(var) is not None else known.get(var)
                if value is None:
                    value = Instr("get", var.type, (), var, node.loc)
                    out.append(value)
                    known[var] = value
                sides.append(value)
            values.append((var, Instr("select", var.type, (node.cond, sides[0], sides[1]), None, node.loc)))
        for var, value in values:
            out.append(value)
            out.append(Instr("set", None, (value,), var, node.loc))
            known[var] = value


def _ends_with_leave(scope: Scope) -> bool:
    last = scope.body.body[-1] if scope.body.body else None
    return isinstance(last, Leave) and last.scope is scope


def _straight(scope: Scope) -> bool:
    """Whether nothing jumps to the scope's end but its last statement: then it is no more than its statements."""
    leaves = [n for n in nodes(scope.body) if isinstance(n, Leave) and n.scope is scope]
    return not leaves or (len(leaves) == 1 and _ends_with_leave(scope))


def _cheap(node: If) -> bool:
    cost = 0
    for arm in (node.then, node.orelse):
        if len(arm.body) > 3 * _BUDGET:
            return False
        for instr in arm.body:
            if not isinstance(instr, Instr) or (instr.op not in _CHEAP and instr.op not in _FREE):
                return False
            cost += instr.op in _CHEAP
    return cost <= _BUDGET


def _prune(blocks: tuple[Block, ...], results: Iterable[Var]) -> None:
    """Removes instructions that nothing needs and branches that do nothing."""
    setters: dict[Var, list[Instr]] = {}
    work: list[Instr] = []
    for node in nodes(*blocks):
        if isinstance(node, Instr):
            if node.op in EFFECTS:
                work.append(node)
            elif node.op == "set":
                assert isinstance(node.attr, Var)
                setters.setdefault(node.attr, []).append(node)
        elif isinstance(node, If | While):
            work.append(node.cond)
        elif isinstance(node, For):
            work += (node.start, node.stop, node.step)
    live: set[Instr] = set()
    read: set[Var] = set(results)
    for var in read:
        work += setters.get(var, ())
    while work:
        instr = work.pop()
        if instr in live:
            continue
        live.add(instr)
        work += instr.args
        if instr.op == "get" and instr.attr not in read:
            assert isinstance(instr.attr, Var)
            read.add(instr.attr)
            work += setters.get(instr.attr, ())
    for block in blocks:
        run(_sweep(block, live))


def _sweep(block: Block, live: set[Instr]) -> Walk[None]:
    out: list[Node] = []
    for node in block.body:
        if isinstance(node, Instr):
            if node in live:
                out.append(node)
            continue
        if isinstance(node, If):
            yield _sweep(node.then, live)
            yield _sweep(node.orelse, live)
            if not node.then.body and not node.orelse.body:
                continue
        elif isinstance(node, For):
            yield _sweep(node.body, live)
            yield _sweep(node.orelse, live)
            if not node.body.body and not node.orelse.body:
                continue
        elif isinstance(node, While):
            yield _sweep(node.test, live)
            yield _sweep(node.body, live)
            yield _sweep(node.orelse, live)
        elif isinstance(node, Scope):
            yield _sweep(node.body, live)
        out.append(node)
    block.body = out


def is_pure(block: Block, checked: bool) -> bool:
    """Whether running the block twice is the same as once: it neither reads nor writes memory. Asserts count where they are checked."""
    return not any(i.op in EFFECTS or i.op in ("load", "load_flat", "cell") for i in instructions(block) if checked or i.op not in CHECKED)


def reads(block: Block) -> set[Var]:
    """The variables that the block reads, set before or not."""
    return {i.attr for i in instructions(block) if i.op == "get" and isinstance(i.attr, Var)}
