"""Puts the checks of debug mode into lowered bodies, and turns asserts and prints into records of numbered sites.

The result has, instead of ``assert_``, ``inside`` and ``print``, and before every access to an array,

===========  =====================================================================================================
check        (cond, values...), attr: site; where cond is false the values are reported and the iteration ends
check_index  (indices..., lengths..., values...), attr: (site, rank); the same where an index is not in [0, length)
record       (values...), attr: site; a print
report       (values...), attr: site; a failed check that ends nothing
===========  =====================================================================================================

An iteration that fails ends before the access: nothing outside of an array is touched. A printer may end others with it (those that
share its vector), and all of them stop soon: the launch has failed. Where threads of a group wait for each other none may end: a body
with collectives has conditions and ``report`` instead of ``check`` and ``check_index``. A load that fails gives 0 there, a store is
dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..ir.nodes import Array, Block, Break, Continue, If, Instr, Kernel, Leave, Loc, Node, ScratchArray, Sequence, Var
from ..ir.records import MAX_VALUES, escaped
from ..ir.source import RecordSite
from ..ir.uniformity import COLLECTIVES
from ..types import DType, i64
from .affine import indices_of
from .lower_ops import Builder
from .walk import CHECKED, Walk, blocks_of, instructions, run

__all__ = ["Checks"]

_MOST_STEPS = 4  # innermost sequences that a message names
_MEMORY = frozenset({"load", "store", "load_flat", "store_flat", "atomic"})


@dataclass(slots=True)
class Checks:
    """The sites of a kernel, numbered as they are met. ``checked``: indices and asserts are checked; prints are records anyhow."""

    kernel: Kernel
    checked: bool
    sites: list[RecordSite] = field(default_factory=list)

    @property
    def stops(self) -> bool:
        """Whether an iteration can fail, so that all entries look whether one has."""
        return any(site.kind != "print" for site in self.sites)

    def rewrite(self, body: Block, indices: list[Var], path: tuple[Sequence, ...]) -> None:
        """Changes the lowered body of one entry. ``indices``: the variables of its loop, if any; ``path``: the sequences around it."""
        if not any(i.op == "print" or i.op in CHECKED or (self.checked and i.op in _MEMORY) for i in instructions(body)):
            return
        b = Builder()
        place = _Place(b, indices, path)
        together = any(i.op in COLLECTIVES for i in instructions(body))
        run(_Rewrite(self, place, together).block(body, frozenset()))
        body.body[:0] = b.out

    def number(self, kind: str, text: str, values: tuple[Instr, ...], loc: Loc | None) -> int:
        """Adds a site."""
        assert len(values) <= MAX_VALUES, "the front end leaves room for the iteration"
        site = RecordSite(kind, text, tuple(_type(v) for v in values), loc.file if loc else "", loc.line if loc else 0)
        self.sites.append(site)
        return len(self.sites) - 1


class _Place:
    """Which iteration it is: the values that tell it, and the text around them."""

    def __init__(self, b: Builder, indices: list[Var], path: tuple[Sequence, ...]) -> None:
        loop = tuple(b.emit("index", i64, (), d) for d in range(len(indices)))
        first = max(0, len(path) - _MOST_STEPS)
        path = path[first:]
        steps = tuple(b.emit("sequence", i64, (), first + k) for k in range(len(path)))
        self.values = (*loop, *steps)
        self.text = ""
        if indices:
            self.text = f"\n  in iteration {_named([v.name for v in indices])}"
        if path:
            self.text += f"{' of' if indices else chr(10) + '  in'} step {_named([s.var.name for s in path])}"


def _named(names: list[str]) -> str:
    """A placeholder for each value, with its name where the user gave one to all."""
    if any(name.startswith("_") for name in names):
        return _tuple(len(names)) if len(names) > 1 else "{}"
    return ", ".join(f"{escaped(name)} = {{}}" for name in names)


def _tuple(count: int) -> str:
    return "({},)" if count == 1 else f"({', '.join(['{}'] * count)})"


class _Rewrite:
    def __init__(self, checks: Checks, place: _Place, together: bool) -> None:
        self.checks = checks
        self.place = place
        self.together = together  # no iteration may end by itself

    def block(self, block: Block, known: frozenset[object]) -> Walk[None]:
        """``known``: the accesses that a check before this block has passed."""
        out: list[Node] = []
        b = Builder(out)
        passed = set(known)
        for node in block.body:
            if isinstance(node, Instr):
                b.loc = node.loc
                self._instr(node, b, passed)
            elif isinstance(node, Break | Continue | Leave):
                out.append(node)
            else:
                for inner in blocks_of(node):
                    yield self.block(inner, frozenset(passed))
                out.append(node)
        block.body = out

    def _instr(self, node: Instr, b: Builder, passed: set[object]) -> None:
        if node.op == "print":
            b.emit("record", None, node.args, self.checks.number("print", str(node.attr), node.args, node.loc))
            return
        if node.op == "assert_":
            values = (*node.args[1:], *self.place.values)
            site = self.checks.number("assertion", str(node.attr) + self.place.text, values, node.loc)
            if self.together:
                b.out.append(If(node.args[0], Block(), Block([Instr("report", None, values, site, node.loc)]), node.loc))
            else:
                b.emit("check", None, (node.args[0], *values), site)
            return
        if node.op == "inside":
            assert isinstance(node.attr, int)
            bounds = (node.args[0], b.const(i64, node.attr))
            values = (*bounds, *self.place.values)
            site = self.checks.number("index", "index {} is outside of the tuple of {} items" + self.place.text, values, node.loc)
            if self.together:
                report = Instr("report", None, values, site, node.loc)
                b.out.append(If(self._is_inside([bounds], b), Block(), Block([report]), node.loc))
            else:
                b.emit("check_index", None, values, (site, 1))
            return
        if self.checks.checked and node.op in _MEMORY and indices_of(node)[1]:
            self._access(node, b, passed)
        else:
            b.out.append(node)

    def _access(self, node: Instr, b: Builder, passed: set[object]) -> None:
        array, indices = indices_of(node)
        flat = node.op in ("load_flat", "store_flat")
        key = (id(array) if isinstance(array, ScratchArray) else array.index, flat, tuple(_same(i) for i in indices))
        if key in passed and not self.together:
            b.out.append(node)
            return
        passed.add(key)
        shape = self._shape(array, b)
        lengths, extra = shape, self.place.values
        subject = f"of '{escaped(array.name)}' of shape"
        if flat:
            total = shape[0]
            for length in shape[1:]:
                total = b.mul(total, length)
            lengths, extra = (total,), (*shape, *extra)
            text = f"flat index {{}} is outside of the {{}} elements {subject} {_tuple(len(shape))}"
        else:
            index = "{}" if len(indices) == 1 else _tuple(len(indices))
            text = f"index {index} is outside {subject} {_tuple(len(shape))}"
        values = (*indices, *lengths, *extra)
        site = self.checks.number("index", text + self.place.text, values, node.loc)
        if self.together:
            self._guarded(node, b, list(zip(indices, lengths, strict=True)), Instr("report", None, values, site, node.loc))
        else:
            b.emit("check_index", None, values, (site, len(indices)))
            b.out.append(node)

    @staticmethod
    def _is_inside(bounds: list[tuple[Instr, Instr]], b: Builder) -> Instr:
        inside: Instr | None = None
        for index, length in bounds:
            here = b.both(b.compare("ge", index, b.const(i64, 0)), b.compare("lt", index, length))
            inside = here if inside is None else b.both(inside, here)
        assert inside is not None
        return inside

    @staticmethod
    def _guarded(node: Instr, b: Builder, bounds: list[tuple[Instr, Instr]], report: Instr) -> None:
        """The access where its indices are in bounds, else the report; ``node`` becomes what it gives."""
        inside = _Rewrite._is_inside(bounds, b)
        access: list[Node] = [node]
        if node.type is not None:
            own = Instr(node.op, node.type, node.args, node.attr, node.loc)
            value = Var("_value", node.type)
            b.emit("set", None, (b.const(node.type, 0.0 if node.type.is_float else 0),), value)
            access = [own, Instr("set", None, (own,), value, node.loc)]
            node.op, node.args, node.attr = "get", (), value
        b.out.append(If(inside, Block(access), Block([report]), node.loc))
        if node.type is not None:
            b.out.append(node)

    @staticmethod
    def _shape(array: Array, b: Builder) -> tuple[Instr, ...]:
        if isinstance(array, ScratchArray):
            return tuple(b.const(i64, n) for n in array.shape)
        return tuple(b.emit("shape", i64, (), (array, d)) for d in range(array.rank))


def _same(index: Instr) -> object:
    return ("const", index.attr) if index.op == "const" else index


def _type(value: Instr) -> DType:
    assert value.type is not None
    return value.type
