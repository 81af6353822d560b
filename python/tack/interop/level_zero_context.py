"""The Level Zero context that VTK and tack share: memory of one is of no use in another."""

from __future__ import annotations

import importlib
from typing import Protocol

from ..devices import Device, device, set_default_device

__all__ = ["ContextProvider", "init_level_zero"]


class ContextProvider(Protocol):
    """Who has a Level Zero context: methods that answer its handle and that of the GPU in it, as VTK's Python classes answer pointers
    (an int, or a string such as "_000055d0c0de_p_void")."""

    def GetContext(self) -> int | str: ...  # noqa: N802 - as VTK names methods
    def GetDevice(self) -> int | str: ...  # noqa: N802


def init_level_zero(provider: ContextProvider | None = None) -> Device:
    """Starts tack's Level Zero device in VTK's context, makes it the default device and returns it.

    ``provider`` has the context; without one it is VTK's ``vtkLevelZeroContext``. RuntimeError where VTK is missing or was built without
    Level Zero, and where the device cannot start. VTK keeps the context; it must outlive the device's arrays.
    """
    if provider is None:
        provider = _of_vtk()
    made = device("level_zero", context=_address(provider.GetContext()), device=_address(provider.GetDevice()))
    set_default_device(made)
    return made


def _of_vtk() -> ContextProvider:
    try:
        core = importlib.import_module("vtkmodules.vtkCommonCore")
    except ImportError as error:
        raise RuntimeError(f"tack.interop.vtk.init_level_zero(): VTK is missing: {error}. pip install vtk") from None
    found = getattr(core, "vtkLevelZeroContext", None)
    if found is None:
        version = core.vtkVersion.GetVTKVersion() if hasattr(core, "vtkVersion") else "of unknown version"
        raise RuntimeError(
            f"tack.interop.vtk.init_level_zero(): this VTK ({version}) has no Level Zero context (vtkLevelZeroContext). Use a VTK that was "
            "built with it, give init_level_zero() an object with GetContext() and GetDevice(), or use "
            "tack.set_default_device('level_zero') and copy arrays through the host."
        )
    shared: ContextProvider = found.GetInstance()
    return shared


def _address(pointer: int | str) -> int:
    """The number in "_000055d0c0de_p_void", as VTK's wrappers write addresses."""
    if isinstance(pointer, int):
        return pointer
    return int(pointer.removeprefix("_").split("_", 1)[0], 16)
