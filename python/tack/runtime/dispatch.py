"""get_backend(), as the documentation of the backends has it: ask a backend what it can do rather than checking its name."""

from __future__ import annotations

from ..devices import Backend, Device, get_default_device

__all__ = ["Backend", "get_backend"]


def get_backend(device: Device | None = None) -> Backend:
    """The backend of a device, by default the default one: ``.supports_f64``, ``.supports_workgroups``, ``.supported_atomic_dtypes``."""
    return Backend(get_default_device() if device is None else device)
