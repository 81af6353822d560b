"""tack.interop.vtk with the real VTK: data arrays in both directions, on the same memory."""

from __future__ import annotations

import gc
from typing import Any

import heavy
import numpy as np
import pytest

import tack

heavy.require("vtkmodules")

from vtkmodules.util import numpy_support  # noqa: E402
from vtkmodules.vtkCommonCore import (  # noqa: E402
    vtkBitArray,
    vtkDoubleArray,
    vtkFloatArray,
    vtkIdTypeArray,
    vtkSOADataArrayTemplate,
    vtkStringArray,
)
from vtkmodules.vtkCommonDataModel import vtkPolyData  # noqa: E402

from tack.interop.vtk import from_vtk, to_vtk  # noqa: E402


@tack.kernel
def double(x):
    for i in range(x.shape[0]):
        x[i] = x[i] * 2


@tack.kernel
def double_all(x):
    for i, j in tack.ndrange(x.shape[0], x.shape[1]):
        x[i, j] = x[i, j] * 2


@pytest.mark.parametrize("dtype", tack.types.ARRAY_DTYPES, ids=lambda t: t.name)
def test_there_and_back_on_the_same_memory(dtype: tack.DType) -> None:
    a = tack.array(np.arange(12).reshape(4, 3), dtype=dtype, device="cpu")
    made = to_vtk(a, "numbers")
    assert (made.GetNumberOfTuples(), made.GetNumberOfComponents(), made.GetName()) == (4, 3, "numbers")
    assert made.GetTuple3(1) == (3.0, 4.0, 5.0)
    a[1, 2] = 50
    assert made.GetComponent(1, 2) == 50.0
    back = from_vtk(made)
    assert back.shape == (4, 3) and back.dtype == dtype and back.pointer == a.pointer
    double_all(back)
    assert made.GetComponent(1, 2) == 100.0 and a[1, 2] == 100
    flat = to_vtk(a.reshape(12))
    assert flat.GetNumberOfComponents() == 1 and from_vtk(flat).shape == (12,)


@pytest.mark.parametrize("kind", [vtkFloatArray, vtkDoubleArray, vtkIdTypeArray])
def test_vtks_own_arrays_are_used_in_place(kind: Any) -> None:
    theirs = kind()
    theirs.SetNumberOfComponents(2)
    theirs.SetNumberOfTuples(3)
    for k in range(3):
        theirs.SetTuple2(k, k, 10 * k)
    ours = from_vtk(theirs)
    assert ours.tolist() == [[0, 0], [1, 10], [2, 20]] and ours.shared
    double_all(ours)
    assert theirs.GetTuple2(2) == (4.0, 40.0)
    del theirs
    gc.collect()
    assert ours[2, 1] == 40, "the array keeps VTK's memory"


def test_components_apart() -> None:
    theirs = vtkSOADataArrayTemplate["float32"]()
    theirs.SetNumberOfComponents(2)
    theirs.SetNumberOfTuples(5)
    for k in range(5):
        theirs.SetTuple2(k, k, 10 * k)
    x, y = from_vtk(theirs)
    assert x.tolist() == [0, 1, 2, 3, 4] and y.tolist() == [0, 10, 20, 30, 40]
    double(y)
    assert theirs.GetTuple2(4) == (4.0, 80.0)
    del theirs
    gc.collect()
    assert y[4] == 80
    empty = vtkSOADataArrayTemplate["float64"]()
    empty.SetNumberOfComponents(3)
    assert [a.shape for a in from_vtk(empty)] == [(0,)] * 3


def test_arrays_for_components_share_their_memory() -> None:
    parts = [tack.arange(4, dtype=tack.f32, device="cpu") for _ in range(3)]
    made = to_vtk(parts, "velocity")
    assert (made.GetNumberOfTuples(), made.GetNumberOfComponents(), made.GetName()) == (4, 3, "velocity")
    double(parts[1])
    assert made.GetTuple3(3) == (3.0, 6.0, 3.0)
    assert [a.pointer for a in from_vtk(made)] == [p.pointer for p in parts]
    columns = tack.array(np.arange(8, dtype=np.float64).reshape(2, 4), device="cpu").T
    made = to_vtk(columns)
    assert made.GetNumberOfTuples() == 4 and made.GetTuple2(1) == (1.0, 5.0)
    assert [a.pointer for a in from_vtk(made)] == [columns.pointer, columns.pointer + 32]


@pytest.mark.parametrize("parts", [False, True])
def test_the_vtk_array_keeps_the_memory_without_python(parts: bool) -> None:
    data = vtkPolyData()
    before = tack.device("cpu").memory_stats()["in_use"]
    a = tack.full(100_000, 3.0, device="cpu")
    data.GetPointData().AddArray(to_vtk([a, a] if parts else a, "kept"))
    del a
    gc.collect()
    tack.device("cpu").trim()
    assert tack.device("cpu").memory_stats()["in_use"] > before
    again = data.GetPointData().GetArray("kept")
    assert again.GetComponent(99_999, 0) == 3.0
    del again
    data.GetPointData().RemoveArray("kept")
    gc.collect()
    assert tack.device("cpu").memory_stats()["in_use"] == before, "and gives it back"


def test_what_cannot_be_shared_is_copied(device: tack.Device) -> None:
    a = tack.array(np.arange(24, dtype=np.float32).reshape(4, 6))
    for view in (a, a[:, ::2], a[::-1], a[1:, 1:3], a.T):
        made = to_vtk(view)
        got = numpy_support.vtk_to_numpy(made) if "SOA" not in made.GetClassName() else np.stack([p.numpy() for p in from_vtk(made)], 1)
        np.testing.assert_array_equal(got, view.numpy())
    x = tack.ones(5)
    double(x)
    assert to_vtk(x).GetTuple1(4) == 2.0


def test_refusals() -> None:
    for wrong in (vtkStringArray(), np.zeros(3), tack.zeros(3)):
        with pytest.raises(TypeError, match="vtkDataArray"):
            from_vtk(wrong)
    bits = vtkBitArray()
    bits.SetNumberOfTuples(8)
    with pytest.raises(TypeError, match="bit"):
        from_vtk(bits)
    for wrong in (tack.zeros(()), tack.zeros((1, 2, 3))):
        with pytest.raises(ValueError, match="shape"):
            to_vtk(wrong)
    for parts in ([], [tack.zeros(2), tack.zeros(3)], [tack.zeros(2), tack.zeros(2, tack.f64)], [tack.zeros((2, 2))]):
        with pytest.raises(ValueError, match="at least one"):
            to_vtk(parts)
