"""get_backend(), as the documentation of the backends has it: ask a backend what it can do rather than checking its name."""

from __future__ import annotations

from ..devices import Backend, get_default_device

__all__ = ["Backend", "get_backend"]


def get_backend() -> Backend:
    """The backend of the default device: ``get_backend().supports_f64``, ``.supports_workgroups``, ``.supported_atomic_dtypes``."""
    return Backend(get_default_device())
