"""Loops along rows whose elements lanes of different rows take: they are moved by tiles, so many rows by so many rounds at a time.

What lanes of an inner loop's round load (or store) lies a row apart there, while rounds find it next to each other. Gathers would take one
element after the other. Instead the rows' elements for the next rounds are loaded whole, and the square is turned round in registers into
what each round needs. Each iteration still does its rounds in order, as sums that are not to be reassociated ask for.

A tile moves loads of later rounds before stores of earlier ones. So a round must not touch what others store (``lane_loops``), its loads
come first, and all of a tile's elements are such as the rounds touch in any case: there are no jumps, and no branches around them.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.nodes import ArrayParam, Block, For, Instr
from ..types import Layout, i64
from .affine import access, constant, indices_of
from .lane_loops import ArrayPair, RoundsOfLoop, is_short, stays
from .params import EntryPlan
from .uniform import Flow
from .walk import EFFECTS, blocks_of, instructions, run, variables_set

__all__ = ["MOVES", "Tiles", "find_tiles", "tiled_accesses", "worth"]

MOVES = 7.0  # what it costs to move a register of elements, in simple operations of lanes
_FREE = ("const", "arg", "shape", "get", "set", "index")
_SLOW = {"div": 4, "sqrt": 6, "call": 30, "minmax": 4}  # minmax: of floats, which asks for NaN
_FEW = 4  # iterations
_BITS = (32, 64)  # of an element
_LANES = 4  # from which on it pays
_MOST = 6  # of the accesses of a loop


class Tiles:
    """What of a loop is moved by tiles, in order; ``slice``: the instructions of its body that the addresses are made of; ``pairs``: as a
    LaneLoop has them."""

    def __init__(self, loads: list[Instr], stores: list[Instr], slice_: list[Instr], pairs: list[ArrayPair]) -> None:
        self.loads, self.stores, self.slice, self.pairs = loads, stores, slice_, pairs


def find_tiles(entry: EntryPlan, flow: Flow, vector_bits: int) -> dict[For, Tiles]:
    """The loops of an entry that have tiles. Below 256 bits there are no loads of parts of a register."""
    if flow.lanes < _LANES or entry.by_rounds or entry.single or flow.pair is not None or vector_bits < 256:
        return {}
    out: dict[For, Tiles] = {}
    stack: list[Block] = [entry.body]
    while stack:
        for node in stack.pop().body:
            if isinstance(node, For) and (found := _of_loop(node, flow)) is not None:
                out[node] = found
            stack += blocks_of(node)
    return out


def worth(loops: dict[For, Tiles], lanes: int) -> tuple[int, int]:
    """How many rounds it takes for lanes to gain, and how many iterations: of loops that do little but load (or store), about half a tile.
    Plain code's rounds wait for each other where floats are handed on, so that few iterations pay."""
    stores = sum(len(t.stores) for t in loops.values())
    moves = sum(len(t.loads) for t in loops.values()) + 2 * stores  # parts of registers are stored slowly
    inside = [i for loop in loops for i in instructions(loop.body)]
    work = sum(_plain_cost(i) for i in inside)
    most = max(8, lanes * 3 // 4) if stores else 8
    waits = any(i.op == "set" and i.args[0].type is not None and i.args[0].type.is_float for i in inside)
    return min(most, 1 + 2 * moves * int(MOVES) // max(1, work)), _FEW if waits else max(_FEW, lanes // 2)


def _plain_cost(instr: Instr) -> int:
    if instr.op in ("min", "max") and instr.type is not None and instr.type.is_float:
        return _SLOW["minmax"]
    return 0 if instr.op in _FREE else _SLOW.get(str(instr.attr) if instr.op == "math" else instr.op, 1)


def tiled_accesses(tiles: Iterable[Tiles]) -> set[Instr]:
    return {i for t in tiles for i in (*t.loads, *t.stores)}


def _of_loop(loop: For, flow: Flow) -> Tiles | None:
    if (
        loop in flow.divergent
        or loop.orelse.body
        or constant(loop.step) != 1
        or loop.var.type != i64
        or loop.var in variables_set(loop.body)
    ):
        return None
    if is_short(loop) or not any(_far(n, flow) for n in loop.body.body):
        return None
    if loop.var in variables_set(loop.body) or not run(stays(loop.body, True, frozenset(), continues=False)):
        return None
    rounds = RoundsOfLoop(loop)
    tiled = [n for n in loop.body.body if isinstance(n, Instr) and _far(n, flow) and rounds.along(n)]
    loads = [n for n in tiled if n.op in ("load", "load_flat")]
    stores = [n for n in instructions(loop.body) if n.op in EFFECTS]
    pairs: list[ArrayPair] = []
    if stores:
        found = rounds.pairs()
        if found is None or not _loads_first(loop.body):
            return None
        pairs = found
        if not all(s in tiled for s in stores):
            stores = []
    if not loads + stores or len(loads + stores) > _MOST:
        return None
    return Tiles(loads, stores, _slice(loop, [*loads, *stores]), pairs)


def _far(node: object, flow: Flow) -> bool:
    """Whether lanes find their elements apart."""
    if not isinstance(node, Instr) or node.op not in ("load", "load_flat", "store", "store_flat"):
        return False
    array, _ = indices_of(node)
    if not isinstance(array, ArrayParam) or array.dtype.bits not in _BITS:
        return False
    if array.layout == Layout.GENERAL or (node.op == "load_flat" and array.layout != Layout.CONTIGUOUS):
        return False
    return access(node, flow.form).step not in (-1, 0, 1)


def _loads_first(body: Block) -> bool:
    stored = False
    for instr in instructions(body):
        if instr.op in ("store", "store_flat"):
            stored = True
        elif stored and instr.op in ("load", "load_flat"):
            return False
    return True


def _slice(loop: For, accesses: list[Instr]) -> list[Instr]:
    needed: set[Instr] = set()
    work = [i for a in accesses for i in indices_of(a)[1]]
    while work:
        value = work.pop()
        if value not in needed:
            needed.add(value)
            work += value.args
    return [n for n in loop.body.body if isinstance(n, Instr) and n in needed]
