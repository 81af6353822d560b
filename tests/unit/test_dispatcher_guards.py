"""The dispatcher's guards: captured values that are compared at every call, and the versions of a kernel that are kept."""

from __future__ import annotations

import gc
import math
import types
import weakref
from typing import Any

import numpy as np
import pytest

from tack import _runtime

import hand_kernels  # isort: skip
from dispatcher_support import Recorder, array  # isort: skip


def guarded(namespace: dict[str, Any], name: str = "G") -> Recorder:
    """A kernel that captured ``name`` and stores it as a float."""

    def make(device: Any, args: tuple[Any, ...]) -> Any:
        value = namespace.get(name, -1.0)
        return hand_kernels.fill(device, float(value[0] if isinstance(value, tuple) else value), name=f"fill_{len(k.misses)}")

    k = Recorder(make, ("out",), guards=lambda: [(namespace, name, namespace.get(name, _runtime.ABSENT))])
    return k


def test_a_changed_global_is_seen_and_a_restored_one_remembered() -> None:
    namespace: dict[str, Any] = {"G": 2.0}
    k, out = guarded(namespace), array(np.zeros(4, np.float32))
    for value, misses in [(2.0, 1), (3.0, 2), (2.0, 2), (3.0, 2), (4.0, 3), (float("2.0"), 3)]:
        namespace["G"] = value
        k.call(out)
        assert out.numpy().tolist() == [value] * 4
        assert len(k.misses) == misses
    del namespace["G"]
    k.call(out)
    assert out.numpy().tolist() == [-1.0] * 4  # the miss saw that it is gone
    k.call(out)
    assert len(k.misses) == 4
    namespace["G"] = 2.0
    k.call(out)
    assert out.numpy().tolist() == [2.0] * 4
    assert len(k.misses) == 4


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1000, int("1000"), True),
        (10**30, 10**30 + 0, True),
        (1, True, False),
        (1, 1.0, False),
        (0.0, -0.0, False),
        (math.nan, float("nan"), True),
        (1.5, float("1.5"), True),
        ((1.0, 2.0), (1.0, float("2.0")), True),
        ((0.0,), (-0.0,), False),
        ((1, 2), (1, 2, 3), False),
        ((1, (2, 3.0)), (1, (2, float("3"))), True),
        (np.float32(2), np.float32(2), True),
        (np.float32(2), np.float64(2), False),
        (np.float64(0.0), np.float64(-0.0), False),
        (np.int32(7), np.int32(7), True),
        ("word", "".join(["wo", "rd"]), True),
        ([1], [1], False),
    ],
)
def test_captured_values_are_compared_as_kernels_see_them(one: Any, other: Any, same: bool) -> None:
    namespace = {"G": one}
    k = Recorder(lambda device, args: hand_kernels.fill(device, 1.0), ("out",), guards=lambda: [(namespace, "G", one)])
    out = array(np.zeros(4, np.float32))
    k.call(out)
    namespace["G"] = other
    k.call(out)
    assert len(k.misses) == (1 if same else 2)


def test_cells_modules_and_objects_are_guarded() -> None:
    captured = 1.0

    def function() -> float:
        return captured

    (cell,) = function.__closure__ or ()
    module = types.ModuleType("m")
    module.C = 1.0  # type: ignore[attr-defined]

    class Holder:
        attribute = 1.0

    out = array(np.zeros(4, np.float32))
    guards = [(cell, None, 1.0), (module, "C", 1.0), (Holder, "attribute", 1.0), (Holder, "missing", _runtime.ABSENT)]
    k = Recorder(lambda device, args: hand_kernels.fill(device, 1.0), ("out",), guards=guards)
    k.call(out)
    k.call(out)
    assert len(k.misses) == 1
    cell.cell_contents = 2.0
    k.call(out)
    cell.cell_contents = 1.0
    k.call(out)
    assert len(k.misses) == 2
    del cell.cell_contents
    k.call(out)
    cell.cell_contents = 1.0
    assert len(k.misses) == 3
    module.C = 5.0  # type: ignore[attr-defined]
    k.call(out)
    assert len(k.misses) == 4
    del module.C  # type: ignore[attr-defined]
    k.call(out)
    assert len(k.misses) == 5
    module.C = 1.0  # type: ignore[attr-defined]
    Holder.attribute = 3.0
    k.call(out)
    Holder.attribute = 1.0
    Holder.missing = 1  # type: ignore[attr-defined]
    k.call(out)
    assert len(k.misses) == 7
    del Holder.missing  # type: ignore[attr-defined]
    k.call(out)
    assert len(k.misses) == 7


def test_only_the_captured_names_matter_wherever_they_are_looked_up() -> None:
    cell = types.CellType(1.0)
    namespaces: list[dict[str, Any]] = [{"G": 1.0} for _ in range(6)]
    guards = [(space, "G", 1.0) for space in namespaces] + [(namespaces[0], "H", _runtime.ABSENT), (cell, None, 1.0)]
    k = Recorder(lambda device, args: hand_kernels.fill(device, 1.0), ("out",), guards=guards)
    out = array(np.zeros(4, np.float32))
    k.call(out)
    for space in namespaces:  # changes beside the captured names, and a value that is equal
        space["other"] = 3
        k.call(out)
        space["G"] = float("1.0")
        k.call(out)
    assert len(k.misses) == 1
    for change, restore in [
        *((lambda s=s: s.update(G=2.0), lambda s=s: s.update(G=1.0)) for s in namespaces),
        (lambda: namespaces[0].update(H=1), lambda: namespaces[0].pop("H")),
        (lambda: setattr(cell, "cell_contents", 2.0), lambda: setattr(cell, "cell_contents", 1.0)),
    ]:
        before = len(k.misses)
        change()
        k.call(out)
        assert len(k.misses) == before + 1
        restore()
        for _ in range(2):
            k.call(out)
        assert len(k.misses) == before + 1, "the restored values are known"


def test_eight_versions_are_kept_the_newest_first() -> None:
    namespace: dict[str, Any] = {}
    k, out = guarded(namespace), array(np.zeros(4, np.float32))
    for value in range(10):
        namespace["G"] = float(value)
        k.call(out)
    assert k.call.specializations == 8
    namespace["G"] = 2.0
    k.call(out)
    assert len(k.misses) == 10
    namespace["G"] = 1.0
    k.call(out)
    assert len(k.misses) == 11
    assert out.numpy().tolist() == [1.0] * 4


def test_a_guard_that_clears_the_dispatcher_harms_nothing() -> None:
    out = array(np.zeros(4, np.float32))

    class Hostile:
        def __getattr__(self, name: str) -> float:
            k.call.clear()
            gc.collect()
            return 1.0

    k = Recorder(lambda device, args: hand_kernels.fill(device, 1.0), ("out",), guards=[(Hostile(), "x", 1.0), (Hostile(), "y", 1.0)])
    for _ in range(20):
        k.call(out)
    assert out.numpy().tolist() == [1.0] * 4


@pytest.mark.parametrize("guard", [1, (), ({}, "a"), ({}, None, 1), ({}, 3, 1), [({}, "a", 1)]])
def test_malformed_guards_are_type_errors(guard: Any) -> None:
    k = Recorder(lambda device, args: hand_kernels.fill(device, 1.0), ("out",), guards=[guard])
    with pytest.raises(TypeError, match="guard"):
        k.call(array(np.zeros(4, np.float32)))
    assert k.call.specializations == 0


def test_cycles_through_it_are_collected() -> None:
    class Holder:
        pass

    holder = Holder()
    namespace = {"holder": holder, "G": 1.0}
    k = guarded(namespace)
    k.call(array(np.zeros(4, np.float32)))
    holder.k = k  # type: ignore[attr-defined]
    k.call.holder = holder
    gone = weakref.ref(holder)
    del holder, namespace, k
    gc.collect()
    assert gone() is None
