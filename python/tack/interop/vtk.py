"""tack.interop.vtk: VTK's data arrays as tack arrays and the other way round, without a copy where the memory is the host's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy
from vtkmodules.util import numpy_support
from vtkmodules.vtkCommonCore import vtkDataArray, vtkSOADataArrayTemplate

from ..arrays import Array, as_dtype, numpy_dtype
from ..creation import asarray, empty
from ..sharing import array_from_ptr
from .level_zero_context import init_level_zero

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..types import DType

__all__ = ["from_vtk", "init_level_zero", "to_vtk"]


def from_vtk(data_array: Any) -> Array | tuple[Array, ...]:
    """VTK's array as an array on its memory: of shape (tuples,), or (tuples, components) where there are several components.

    An array whose components lie apart (SoA) becomes a tuple of arrays of shape (tuples,), one for each component, which a kernel takes as
    so many parameters. The memory lives as long as a tack array on it; it must not be resized meanwhile, as that moves it.

    Raises TypeError for what is no vtkDataArray, and for element types that tack has not (bits, strings).
    """
    if not isinstance(data_array, vtkDataArray):
        raise TypeError(f"from_vtk() takes a vtkDataArray, not {type(data_array).__name__}")
    kind = data_array.GetDataTypeAsString()
    try:
        if kind == "bit":  # NumPy could only have a copy
            raise TypeError("bits are packed")
        dtype = as_dtype(numpy.dtype(numpy_support.get_numpy_array_type(data_array.GetDataType())))
    except (TypeError, KeyError) as error:
        raise TypeError(f"{data_array.GetClassName()} has elements of type {kind!r}, which is no dtype of tack's") from error
    if _has_components_apart(data_array):
        return tuple(_component(data_array, k, dtype) for k in range(data_array.GetNumberOfComponents()))
    if not data_array.HasStandardMemoryLayout():
        raise TypeError(f"{data_array.GetClassName()} does not hold its elements in memory: copy it to one that does (DeepCopy)")
    return asarray(numpy_support.vtk_to_numpy(data_array))


def to_vtk(arrays: Array | Sequence[Array], name: str | None = None) -> Any:
    """A vtkDataArray on the memory of an array of shape (tuples,) or (tuples, components).

    A sequence of arrays of shape (tuples,), one for each component, becomes an array whose components lie apart (SoA), and so does an
    array whose columns are contiguous. Arrays of other layouts, and those that are on a GPU, are copied to the host first. The VTK array
    keeps the memory alive for as long as it exists, whoever holds it. It sees later writes; kernels on the CPU are done when their call
    returns. ``name``: what the array is called in a data set.

    Raises TypeError or ValueError for what has no such shape.
    """
    if isinstance(arrays, Array):
        if arrays.ndim not in (1, 2):
            raise ValueError(f"to_vtk() takes arrays of shape (tuples,) or (tuples, components), not {arrays.shape}")
        host = arrays.to_device("cpu")
        if host.ndim == 2 and host.shape[1] > 1 and host.flags.f_contiguous and not host.flags.c_contiguous:
            return to_vtk([host[:, k] for k in range(host.shape[1])], name)
        if not host.flags.c_contiguous or host.read_only:
            host = host.copy()
        values = host.__array__(copy=False)
        made = numpy_support.create_vtk_array(numpy_support.get_vtk_array_type(values.dtype))
        made.SetNumberOfComponents(1 if values.ndim == 1 else values.shape[1])
        made.SetVoidArray(values.reshape(-1), values.size, 1)  # 1: VTK does not free it
        made.SetNumberOfTuples(values.shape[0])
        return _finished(made, name, host)
    parts = [part.to_device("cpu") for part in arrays]
    if not parts or any(p.ndim != 1 or p.shape != parts[0].shape or p.dtype != parts[0].dtype for p in parts):
        raise ValueError("to_vtk() takes at least one array for the components, all of one shape (tuples,) and one dtype")
    parts = [part if part.flags.c_contiguous and not part.read_only else part.copy() for part in parts]
    made = vtkSOADataArrayTemplate[str(numpy_dtype(parts[0].dtype))]()
    made.SetNumberOfComponents(len(parts))
    for k, part in enumerate(parts):
        made.SetArray(k, part.__array__(copy=False), part.size, k == len(parts) - 1, True, 0)
    return _finished(made, name, parts)


def _finished(made: Any, name: str | None, memory: Any) -> Any:
    """Ties the memory's life to that of the C++ object, which data sets hold without Python."""
    made.AddObserver("DeleteEvent", lambda *_: memory)
    if name is not None:
        made.SetName(name)
    return made


def _has_components_apart(data_array: Any) -> bool:
    name = data_array.GetClassName()
    return "SOA" in name and "Scaled" not in name and hasattr(data_array, "GetComponentArrayPointer")


def _component(data_array: Any, k: int, dtype: DType) -> Array:
    if not data_array.GetNumberOfTuples():
        return empty(0, dtype, "cpu")
    pointer = data_array.GetComponentArrayPointer(k)  # "_0000562545e86fe0_p_void", as VTK writes pointers to what has no length
    return array_from_ptr(int(pointer.split("_")[1], 16), data_array.GetNumberOfTuples(), dtype, device="cpu", owner=data_array)
