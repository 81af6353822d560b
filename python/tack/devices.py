"""Devices as users see them: tack.device, the default device, waiting, and what a backend can do."""

from __future__ import annotations

from . import _runtime
from ._runtime import Device
from .types import DType, by_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from ._runtime import Target

    DeviceLike: TypeAlias = Device | str | None

__all__ = [
    "Backend", "Device", "as_device", "device", "device_count", "get_default_device", "set_default_device", "sync", "sync_async",
    "title_of", "unsupported_dtype",
]  # fmt: skip

_TITLES = {"cpu": "CPU", "metal": "Metal", "cuda": "CUDA", "hip": "HIP", "level_zero": "Level Zero", "null": "Null"}


def title_of(device_type: str) -> str:
    """How messages call a backend: "CPU", "Metal", "CUDA", "HIP", "Level Zero"."""
    return _TITLES.get(device_type, device_type)


def unsupported_dtype(dtype: DType, device: Device | Target) -> str:
    """The end of the message for a dtype that a device's arrays cannot have."""
    known = ", ".join(sorted(f"tack.{name}" for name in device.array_dtypes))
    return f"{dtype}, which is not supported on {title_of(device.type)}. Supported dtypes: {known}"


class Backend:
    """What the backend of one device can do. Data, filled when the device started; ask it instead of checking names.

    Attributes: ``name`` ("cpu"), ``title`` ("CPU"), ``device``, ``supports_f64``, ``supports_workgroups`` (shared memory, barriers,
    thread_id, block reductions), ``supports_images`` (hardware texture sampling), ``f32_denormals``, ``supported_dtypes`` and
    ``supported_atomic_dtypes`` (frozensets of tack dtypes), ``max_iterations`` of a launch (None: no limit), ``block`` (threads a group).
    """

    __slots__ = ("device",)

    def __init__(self, device: Device) -> None:
        self.device = device

    @property
    def name(self) -> str:
        return self.device.type

    @property
    def title(self) -> str:
        return title_of(self.device.type)

    @property
    def supports_f64(self) -> bool:
        return self.device.supports_f64

    @property
    def supports_workgroups(self) -> bool:
        return self.device.supports_workgroups

    @property
    def supports_images(self) -> bool:
        return self.device.supports_images

    @property
    def f32_denormals(self) -> bool:
        return self.device.f32_denormals

    @property
    def supported_dtypes(self) -> frozenset[DType]:
        return frozenset(by_name(name) for name in self.device.array_dtypes)

    @property
    def supported_atomic_dtypes(self) -> frozenset[DType]:
        return frozenset(by_name(name) for name in self.device.atomic_dtypes)

    @property
    def max_iterations(self) -> int | None:
        return self.device.max_iterations or None

    @property
    def block(self) -> int:
        return self.device.block

    def __repr__(self) -> str:
        return f"<{self.title} backend of {self.device}>"


def device(spec: str | Device, num_threads: int | None = None, *, context: int | None = None, device: int | None = None) -> Device:
    """The device called ``spec``: "cpu", "metal", "cuda", "hip", "level_zero", or "cuda:1" and its like for numbered types.

    Asked for twice, it is the same object, with the kernels it has compiled. ``num_threads`` (CPU only, at least 1) makes a separate
    device that shares the CPU's memory. ``context`` and ``device`` (Level Zero only, both) are handles of an application's context, which
    the application keeps for as long as the device is used, and of a GPU in it: a separate device that works there. Raises ValueError for
    an unknown spec or option, RuntimeError where the device cannot start.
    """
    if isinstance(spec, Device):
        if num_threads is not None:
            raise ValueError(f"num_threads= goes with a name, not with a device: tack.device({spec.type!r}, num_threads={num_threads})")
        if context is not None or device is not None:
            raise ValueError("context= and device= go with a name, not with a device: tack.device('level_zero', context=..., device=...)")
        return spec
    if not isinstance(spec, str):
        raise TypeError(f"tack.device() takes a name such as 'cpu' or 'cuda:1', not {type(spec).__name__}")
    if num_threads is not None and (isinstance(num_threads, bool) or not isinstance(num_threads, int)):
        raise TypeError(f"num_threads must be an int, not {type(num_threads).__name__}")
    if context is None and device is None:
        return _runtime.device(spec, num_threads)
    return _runtime.device(spec, num_threads, _handle("context", context), _handle("device", device))


def _handle(name: str, given: int | None) -> int:
    """An address as the runtime takes it; 0 for none."""
    if given is None:
        return 0
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"{name}= takes the address of a handle as an int, not {type(given).__name__}")
    if not 0 < given < 1 << 64:
        raise ValueError(f"{name}={given} is no address of a handle")
    return given


def as_device(where: DeviceLike) -> Device:
    """The device that a ``device=`` argument means; None is the default device."""
    if where is None:
        return _runtime.default_device()
    if isinstance(where, Device):
        return where
    if isinstance(where, str):
        return _runtime.device(where, None)
    raise TypeError(f"device= takes a device or its name, not {type(where).__name__}")


def set_default_device(where: Device | str) -> None:
    """Makes ``where`` the default of all threads: arrays are allocated there, and kernels without array arguments run there.

    Arrays made before keep their device. A ``with device:`` block on a thread goes before it.
    """
    if where is None:
        raise TypeError("tack.set_default_device() takes a device or its name, not None")
    _runtime.set_default_device(as_device(where))


def get_default_device() -> Device:
    """The default device: of the innermost ``with device:`` block on this thread, else as set, else the CPU."""
    return _runtime.default_device()


def sync() -> None:
    """Waits until every device has finished its queued work.

    Raises the first error of a queued launch; the errors of further devices are its notes (``error.__notes__``).
    """
    _runtime.synchronize()


async def sync_async() -> None:
    """``await tack.sync_async()``: as sync(), in a worker thread, while the event loop keeps running.

    It waits for what was queued before it began; cancelling it ends the waiting, not the work. ``d.synchronize_async()`` waits for one
    device.
    """
    from .waiting import everything_finished

    await everything_finished()


def device_count(kind: str) -> int:
    """How many devices of a type there are: ``tack.device_count("cuda")``. 0 without a driver. ValueError for an unknown type."""
    return _runtime.device_count(kind)


Device._backend = property(Backend)  # type: ignore[attr-defined]  # a nanobind class takes Python members
