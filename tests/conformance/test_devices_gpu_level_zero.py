"""Level Zero: contexts of an application's, VTK's among them; ocloc only where needed; how the driver is asked to compile."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import child
import pytest

import tack
from tack.interop import level_zero_context

pytestmark = pytest.mark.needs("Level Zero")


class Application:
    """An application with a Level Zero context of its own, which has it as VTK would."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(os.environ.get("TACK_LIBZE") or "libze_loader.so.1")
        self.context, self.driver, self.device = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        one = ctypes.c_uint32(1)
        self.call("zeInit", 1)
        self.call("zeDriverGet", ctypes.byref(one), ctypes.byref(self.driver))
        self.call("zeDeviceGet", self.driver, ctypes.byref(one), ctypes.byref(self.device))
        # ze_context_desc_t: stype 0xd, pNext, flags
        desc = (ctypes.c_uint64 * 3)(0xD, 0, 0)
        self.call("zeContextCreate", self.driver, desc, ctypes.byref(self.context))

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.library, name)(*arguments)
        assert code == 0, f"{name} answered {code:#x}"

    def GetContext(self) -> int:  # noqa: N802
        assert self.context.value
        return self.context.value

    def GetDevice(self) -> str:  # noqa: N802
        return f"_{self.device.value:016x}_p_void"  # as VTK's wrappers write addresses


@pytest.fixture(scope="module")
def application() -> Application:
    return Application()  # kept: tack's device in its context lives as long as the process


@pytest.fixture
def default_device() -> Iterator[None]:
    before = tack.get_default_device()
    yield
    tack.set_default_device(before)


@tack.kernel
def add(x, y):
    for i in range(x.shape[0]):
        x[i] = x[i] + y[i]


def test_arrays_in_an_applications_context(device: tack.Device, application: Application) -> None:
    theirs = tack.device("level_zero", context=application.GetContext(), device=application.device.value)
    assert theirs is tack.device("level_zero", context=application.GetContext(), device=application.device.value)
    assert theirs is not device and theirs.index == 0 and not theirs.can_address(device)
    x, y = tack.ones(8, device=theirs), tack.arange(8, dtype=tack.f32, device=theirs)
    add(x, y)
    assert x.tolist() == [float(1 + i) for i in range(8)]


def test_arrays_of_two_contexts_cannot_be_mixed(device: tack.Device, application: Application) -> None:
    theirs = tack.device("level_zero", context=application.GetContext(), device=application.device.value)
    x, y = tack.ones(8, device=theirs), tack.ones(8, device=device)
    with pytest.raises(ValueError, match="level_zero"):
        add(x, y)
    add(x, y.to_device(theirs))
    assert x.tolist() == [2.0] * 8


def test_handles_that_are_none(device: tack.Device, application: Application) -> None:
    with pytest.raises(ValueError, match="context= and device= go together"):
        tack.device("level_zero", context=application.GetContext())
    with pytest.raises(ValueError, match="is no handle of one of the"):
        tack.device("level_zero", context=application.GetContext(), device=4096)
    with pytest.raises(TypeError, match="context= takes the address of a handle as an int, not str"):
        tack.device("level_zero", context="here", device=4096)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="The 'cpu' device takes no context"):
        tack.device("cpu", context=4096, device=4096)


def test_vtks_context_becomes_the_default_devices(device: tack.Device, application: Application, default_device: None) -> None:
    made = level_zero_context.init_level_zero(application)
    assert made.type == "level_zero" and made is not device
    found = []  # on a thread that is not in the fixture's `with device:` block
    thread = threading.Thread(target=lambda: found.append((tack.get_default_device(), tack.zeros(3).device)))
    thread.start()
    thread.join()
    assert found == [(made, made)]


def test_vtks_own_class_is_found(
    monkeypatch: pytest.MonkeyPatch, device: tack.Device, application: Application, default_device: None
) -> None:
    class vtkLevelZeroContext:  # noqa: N801
        @staticmethod
        def GetInstance() -> Application:  # noqa: N802
            return application

    module = types.ModuleType("vtkmodules.vtkCommonCore")
    module.vtkLevelZeroContext = vtkLevelZeroContext  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vtkmodules", types.ModuleType("vtkmodules"))
    monkeypatch.setitem(sys.modules, "vtkmodules.vtkCommonCore", module)
    assert level_zero_context.init_level_zero() is level_zero_context.init_level_zero(application)


def test_a_vtk_without_a_context_says_so(monkeypatch: pytest.MonkeyPatch, device: tack.Device) -> None:
    monkeypatch.setitem(sys.modules, "vtkmodules", types.ModuleType("vtkmodules"))
    monkeypatch.setitem(sys.modules, "vtkmodules.vtkCommonCore", types.ModuleType("vtkmodules.vtkCommonCore"))
    before = tack.get_default_device()
    with pytest.raises(RuntimeError, match=r"this VTK \(of unknown version\) has no Level Zero context \(vtkLevelZeroContext\)"):
        level_zero_context.init_level_zero()
    assert tack.get_default_device() is before


CACHED = """
    import tack

    @tack.kernel
    def scale(x, f):
        for i in range(x.shape[0]):
            x[i] = x[i] / f

    gpu = tack.device("level_zero")
    x = tack.full(1000, 3.0, device=gpu)
    scale(x, 0.5)
    print(x.sum())
"""


@pytest.mark.needs("simulator")
def test_a_second_process_makes_no_ocloc_call(device: tack.Device, tmp_path: Path) -> None:
    first = child.run(CACHED, tmp_path)
    assert first.out == "6000.0\n" and first.calls("libocloc", "oclocInvoke") >= 1
    assert first.counted["libocloc"]["counters"]["ocloc outputs"] == 0
    second = child.run(CACHED, tmp_path)
    assert second.out == first.out and second.calls("libocloc", "oclocInvoke") == 0
    without = child.run(CACHED, tmp_path, environment={"TACK_LIBOCLOC": str(tmp_path / "nothing.so")})
    assert without.out == first.out, "nor is the library needed"


@pytest.mark.needs("simulator")
def test_the_driver_is_asked_for_correctly_rounded_division(device: tack.Device, tmp_path: Path) -> None:
    built = [name for name in child.run(CACHED, tmp_path).counted["libze"]["tallies"] if name.startswith("built with ")]
    assert built and all("-cl-fp32-correctly-rounded-divide-sqrt" in name.split() for name in built)


@pytest.mark.needs("simulator")
@pytest.mark.parametrize("version", [0x10004, 0x1000C], ids=["by barriers", "by the driver"])
def test_order_is_kept(device: tack.Device, tmp_path: Path, version: int) -> None:
    """Late and as disordered as the driver may: 1.4 keeps no order by itself, 1.12 does where it is asked to."""
    program = """
        import tack

        @tack.kernel
        def step(x, y):
            for i in range(x.shape[0]):
                x[i] = x[i] * 3 + y[i]

        gpu = tack.device("level_zero")
        x, y = tack.zeros(64, dtype=tack.i32, device=gpu), tack.zeros(64, dtype=tack.i32, device=gpu)
        expected = 0
        for k in range(12):
            y.fill(k)
            step(x, y)
            expected = expected * 3 + k
            if k % 4 == 3:
                z = tack.zeros(64, dtype=tack.i32, device=gpu)
                tack.copyto(z, x)
                x = z
        assert x.tolist() == [expected] * 64
    """
    ended = child.run(program, tmp_path, driver=version, order="delayed", delay=50)
    barriers = ended.calls("libze", "zeCommandListAppendBarrier")
    assert (barriers > 24) == (version == 0x10004)


ZEROS = """
    import math
    import tack

    @tack.kernel(exact=True)
    def zeros(out, j):
        for i in range(out.shape[0]):
            out[i] = 0.0 / tack.f32(j[i]) * 0.0

    gpu = tack.device("level_zero")
    out = tack.ones(2, device=gpu)
    zeros(out, tack.arange(2, dtype=tack.i64, device=gpu))
    print(*(math.isnan(v) for v in out.tolist()))
"""


@pytest.mark.needs("simulator")
def test_the_standin_runs_code_as_it_stands(device: tack.Device, tmp_path: Path) -> None:
    """Its OpenCL runtime optimizes 0.0 / 0 * 0.0 to 0, whether it is given text or SPIR-V, so its optimizer is kept out. Once this fails
    for the second line, that need not be."""
    assert child.run(ZEROS, tmp_path).out == "True False\n"
    assert child.run(ZEROS, tmp_path, optimize=1).out == "False False\n"
