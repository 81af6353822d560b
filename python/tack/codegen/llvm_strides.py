"""Every second, third or fourth element (x[2 * i], x[2 * i + 1]): whole registers are moved, and the lanes' elements picked from them.

A gather asks for each element by itself, and processors have none for small types (means of two by two bytes: 0.07 of the time).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.nodes import ArrayParam
from .affine import Access
from .llvm_text import identifier, llvm_type, suffix

if TYPE_CHECKING:
    from .llvm_memory import Memory

__all__ = ["is_short_step", "load_strided", "picks_elements", "store_strided"]

_LONGEST = 4


def is_short_step(step: int | None) -> bool:
    return step is not None and 2 <= abs(step) <= _LONGEST


def picks_elements(vector_bits: int) -> bool:
    """Whether elements of all types can be moved without those between them, which may not be there."""
    return vector_bits >= 512


def _lowest(memory: Memory, array: ArrayParam, split: Access, flat: bool, step: int) -> str:
    """The address of the lanes' lowest element."""
    at = memory.base(array, split, flat)
    if step > 0:
        return at
    return memory.w.op(f"{identifier(array.name)}.at", f"getelementptr {llvm_type(array.dtype)}, ptr {at}, i64 {(memory.lanes - 1) * step}")


def _places(step: int, lanes: int) -> list[int]:
    """How many elements behind the lowest one each lane's is."""
    return [(k if step > 0 else lanes - 1 - k) * abs(step) for k in range(lanes)]


def _lane_at(places: list[int]) -> dict[int, int]:
    """Which lane has an element."""
    return {place: lane for lane, place in enumerate(places)}


def _spread_mask(memory: Memory, places: list[int], mask: str | None) -> str:
    """Which elements are the lanes' that are on."""
    n, total, lanes = memory.lanes, max(places) + 1, _lane_at(places)
    if mask is None:
        return "<" + ", ".join(f"i1 {'true' if k in lanes else 'false'}" for k in range(total)) + ">"
    order = ", ".join(f"i32 {lanes.get(k, n)}" for k in range(total))
    return memory.w.op("spread", f"shufflevector <{n} x i1> {mask}, <{n} x i1> zeroinitializer, <{total} x i32> <{order}>")


def load_strided(memory: Memory, array: ArrayParam, split: Access, flat: bool, mask: str | None, hint: str) -> str:
    """The lanes' elements. Reads nothing before the first lane's and behind the last one's, which may be where the array ends.
    ``mask``: with one, the machine has to pick elements."""
    step = split.step
    assert step is not None
    w, n, apart = memory.w, memory.lanes, abs(step)
    t, vt, size = llvm_type(array.dtype), llvm_type(array.dtype, n), array.dtype.itemsize
    low = _lowest(memory, array, split, flat, step)
    places = _places(step, n)
    if mask is not None:
        total = max(places) + 1
        wide = llvm_type(array.dtype, total)
        name = f"llvm.masked.load.{suffix(array.dtype, total)}.p0"
        memory.arithmetic.declare(name, f"declare {wide} @{name}(ptr, <{total} x i1>, {wide})")
        on = _spread_mask(memory, places, mask)
        all_ = w.op("spread", f"call {wide} @{name}(ptr align {size} {low}, <{total} x i1> {on}, {wide} zeroinitializer)")
        picked = ", ".join(f"i32 {place}" for place in places)
        return w.op(hint, f"shufflevector {wide} {all_}, {wide} poison, <{n} x i32> <{picked}>")
    starts = [min(k * n, (n - 1) * (apart - 1)) for k in range(apart)]
    parts = []
    for start in starts:
        at = low if start == 0 else w.op(f"{identifier(array.name)}.at", f"getelementptr {t}, ptr {low}, i64 {start}")
        parts.append(w.op(f"{identifier(array.name)}.part", f"load {vt}, ptr {at}, align {size}"))
    home = [next(k for k, start in enumerate(starts) if start <= place < start + n) for place in places]
    value = parts[0]
    for k in range(1, apart):
        order = []
        for lane, (place, part) in enumerate(zip(places, home, strict=True)):
            if part == k:
                order.append(f"i32 {n + place - starts[k]}")
            elif part < k:
                order.append(f"i32 {place if k == 1 else lane}")  # picked before, but for the first part's
            else:
                order.append("i32 poison")
        value = w.op(hint, f"shufflevector {vt} {value}, {vt} {parts[k]}, <{n} x i32> <{', '.join(order)}>")
    return value


def store_strided(memory: Memory, array: ArrayParam, split: Access, flat: bool, value: str, mask: str | None) -> None:
    """Stores the lanes' elements, and touches nothing else. The machine has to pick elements."""
    step = split.step
    assert step is not None
    w, n = memory.w, memory.lanes
    places = _places(step, n)
    total, lanes = max(places) + 1, _lane_at(places)
    vt, wide = llvm_type(array.dtype, n), llvm_type(array.dtype, total)
    order = ", ".join(f"i32 {lanes[k]}" if k in lanes else "i32 poison" for k in range(total))
    spread = w.op("spread", f"shufflevector {vt} {value}, {vt} poison, <{total} x i32> <{order}>")
    name = f"llvm.masked.store.{suffix(array.dtype, total)}.p0"
    memory.arithmetic.declare(name, f"declare void @{name}({wide}, ptr, <{total} x i1>)")
    at, on = _lowest(memory, array, split, flat, step), _spread_mask(memory, places, mask)
    w.do(f"call void @{name}({wide} {spread}, ptr align {array.dtype.itemsize} {at}, <{total} x i1> {on})")
