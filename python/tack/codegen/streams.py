"""How a launch walks through memory: stores that may bypass the caches, the access whose address rows are aligned to, loads that run ahead.

Measured on a CPU with 64-byte lines (7-point stencil, 256^3 f32): five of seven 64-byte loads across two lines cost 80 % more than two of
them; the hardware's prefetchers stop at the 4 KiB page, so asking for the foremost of the rows a page ahead saves 15 %. Random accesses to
an array that no cache holds (40 MB, last level 32 MB) take 0.45 of the time (loads) and 0.65 (stores) where lines were asked for 64 to 256
iterations before; to one of 16 MB as long as without, to smaller ones up to 1.6 times as long.
"""

from __future__ import annotations

from ..ir.nodes import ArrayParam, Instr, Node
from ..types import Layout
from .affine import access, indices_of, offset
from .params import EntryPlan
from .uniform import Flow

__all__ = ["AHEAD_BYTES", "address_slice", "anchor", "far_accesses", "leading_loads", "streamed_store"]

AHEAD_BYTES = 4096  # how far ahead foremost rows are asked for
_SIZE = 150  # instructions of a body that is bound by memory
_STREAM_LOADS = 4  # of a body with non-temporal stores: a stencil's many loads hide what its stores cost, and gained nothing
_INDEX_MATH = ("const", "arg", "shape", "index", "add", "sub", "mul", "neg", "lshift", "cast")


def _memory(entry: EntryPlan) -> list[Instr] | None:
    """Loads and stores of a straight body of few instructions; None for other bodies."""
    if entry.single or entry.reductions or len(entry.body.body) > _SIZE:
        return None
    out = []
    for node in entry.body.body:
        if not isinstance(node, Instr) or node.op == "atomic":
            return None
        if node.op in ("store", "store_flat", "load", "load_flat"):
            out.append(node)
    return out


def _contiguous(instr: Instr, flow: Flow) -> ArrayParam | None:
    """The array argument of which the lanes access neighbours."""
    array, _ = indices_of(instr)
    if not isinstance(array, ArrayParam) or array.layout == Layout.GENERAL:
        return None
    return array if access(instr, flow.form).step == 1 else None


def address_slice(entry: EntryPlan, instr: Instr) -> list[Instr] | None:
    """The instructions that compute the indices of a memory access, if they are arithmetic of the launch's indices alone."""
    _, indices = indices_of(instr)
    need: set[Instr] = set()
    work = list(indices)
    while work:
        value = work.pop()
        if value in need:
            continue
        if value.op not in _INDEX_MATH:
            return None
        need.add(value)
        work += value.args
    out = [i for i in entry.body.body if isinstance(i, Instr) and i in need]
    return out if len(out) == len(need) else None


def streamed_store(entry: EntryPlan, flow: Flow) -> Instr | None:
    """The store that may bypass the caches: the only one, contiguous, of an array that is not read."""
    memory = _memory(entry)
    if flow.lanes == 1 or memory is None:
        return None
    stores = [i for i in memory if i.op in ("store", "store_flat")]
    if len(stores) != 1 or len(memory) - 1 > _STREAM_LOADS:
        return None
    store = stores[0]
    array = _contiguous(store, flow)
    if array is None or any(indices_of(i)[0] is array for i in memory if i is not store):
        return None
    if array.dtype.itemsize * flow.lanes not in (16, 32, 64):
        return None
    return store if address_slice(entry, store) is not None else None


def anchor(entry: EntryPlan, flow: Flow) -> Instr | None:
    """Of contiguous accesses, one of those that are most often at the same place within a vector: worth aligning rows to."""
    memory = _memory(entry)
    if flow.lanes == 1 or memory is None:
        return None
    classes: dict[tuple[object, ...], list[Instr]] = {}
    for instr in memory:
        array = _contiguous(instr, flow)
        if array is None or array.dtype.itemsize * flow.lanes < 32 or address_slice(entry, instr) is None:
            continue
        classes.setdefault((array, *offset(indices_of(instr)[1][-1])), []).append(instr)
    if sum(map(len, classes.values())) < 2:
        return None
    best = max(classes.values(), key=lambda c: (len(c), c[0].op in ("store", "store_flat")))
    return best[0]


def leading_loads(entry: EntryPlan, flow: Flow) -> set[Instr]:
    """Of loads that read several rows of one array, the ones that are the first to come to a place in memory."""
    memory = _memory(entry)
    if flow.lanes == 1 or memory is None:
        return set()
    groups: dict[tuple[object, ...], dict[tuple[int, ...], Instr]] = {}
    for instr in memory:
        array = _contiguous(instr, flow)
        if array is None or instr.op != "load":
            continue
        split = [offset(index) for index in indices_of(instr)[1]]
        rows = groups.setdefault((array, *(base for base, _ in split)), {})
        rows.setdefault(tuple(offset for _, offset in split[:-1]), instr)
    return {rows[max(rows)] for rows in groups.values() if len(rows) > 1}


def far_accesses(entry: EntryPlan) -> list[tuple[Instr, list[Instr]]]:
    """Accesses at places that elements of other arrays tell, each with the instructions that compute its indices, loads among them. These
    loads have indices of the launch's alone and happen in every iteration: a later one's can be done early."""
    body = entry.body.body
    if entry.single or not all(isinstance(n, Instr) and n.op not in ("check", "check_index", "record") for n in body):
        return []
    known = {i for i in entry.prologue.body if isinstance(i, Instr)}
    near: set[Instr] = set()  # values that can be computed for any iteration
    far: set[Instr] = set()  # of these, the ones that take a load
    out = []
    for instr in body:
        assert isinstance(instr, Instr)
        if instr.op in ("load", "load_flat", "store", "store_flat", "atomic"):
            array, indices = indices_of(instr)
            if not isinstance(array, ArrayParam) or any(i not in near and i not in known for i in indices):
                continue
            if far.isdisjoint(indices):
                if instr.op in ("load", "load_flat"):
                    near.add(instr)
                    far.add(instr)
            else:
                out.append((instr, _needed(body, indices)))
        elif instr.op in _INDEX_MATH and all(a in near or a in known for a in instr.args):
            near.add(instr)
            if not far.isdisjoint(instr.args):
                far.add(instr)
    return out


def _needed(body: list[Node], values: tuple[Instr, ...]) -> list[Instr]:
    """The instructions of a straight body that compute these values, in order."""
    need = set(values)
    for instr in reversed(body):
        if isinstance(instr, Instr) and instr in need:
            need.update(instr.args)
    return [i for i in body if isinstance(i, Instr) and i in need]
