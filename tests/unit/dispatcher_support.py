"""What the dispatcher's tests share: a stand-in for the Python side of a kernel, and small arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import tack
from tack import _runtime

import hand_kernels  # isort: skip


class Recorder:
    """Stands for the Python side of a kernel: answers misses with what ``make`` builds and remembers them."""

    def __init__(
        self, make: Any, parameters: tuple[str, ...], defaults: tuple[Any, ...] = (), guards: Any = (), only: tuple[int, ...] = ()
    ) -> None:
        self.misses: list[tuple[tuple[Any, ...], _runtime.Device]] = []
        self.bad: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        self.make = make
        self.guards = guards
        self.call = _runtime.Dispatcher("k", parameters, defaults, self.miss, *only)
        self.call.set_bad_call(self.bad_call)

    def miss(self, dispatcher: Any, args: tuple[Any, ...], device: _runtime.Device) -> Any:
        assert dispatcher is self.call
        self.misses.append((args, device))
        guards = self.guards() if callable(self.guards) else self.guards
        return self.make(device, args), list(guards)

    def bad_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.bad.append((args, kwargs))
        raise TypeError("refused")


def array(values: Any, device: Any = None) -> Any:
    return tack.array(np.asarray(values), device=device)


def saxpy(defaults: tuple[Any, ...] = ()) -> Recorder:
    return Recorder(lambda device, args: hand_kernels.saxpy(device), ("x", "y", "out", "a"), defaults)
