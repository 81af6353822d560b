"""Waiting from asyncio: a worker thread waits for a device while the event loop keeps running. Imported when first used."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

from . import _runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from ._runtime import Device

    T = TypeVar("T")

__all__ = ["device_finished", "everything_finished", "in_worker"]


class _Wait:
    """Something that a worker does once, for everybody who awaits it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.takers: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[Any]]] = []  # guarded by the worker's lock until it begins
        self.untold = 0  # takers that have not been reached
        self.told = False  # somebody got the outcome
        self.lock = threading.Lock()

    def run(self) -> None:
        """On the worker's thread; nobody joins any more."""
        result, error = None, None
        try:
            result = self.work()
        except BaseException as failure:  # whatever it is, it is the awaiting task's
            error = failure
        self.untold = len(self.takers)
        for loop, future in self.takers:
            try:
                loop.call_soon_threadsafe(self._tell, loop, future, result, error)
            except RuntimeError:  # that loop has been closed
                with self.lock:
                    self.untold -= 1

    def _tell(self, loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        """On the event loop. An error that every task has stopped waiting for goes to the loop's handler: a device tells it only once."""
        with self.lock:
            self.untold -= 1
            self.told = self.told or not future.done()
            lost = error is not None and self.untold == 0 and not self.told
        if not future.done():
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
        elif lost:
            loop.call_exception_handler({"message": "tack: a wait that was cancelled has failed", "exception": error})


class _Worker:
    """A thread that waits for one device, or for all of them, and does nothing else."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"tack-wait-{name}")
        self._lock = threading.Lock()
        self._next: _Wait | None = None  # not begun, and the same for all who come: they share it

    def add(self, work: Callable[[], Any], shared: bool) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        with self._lock:
            if shared and self._next is not None:
                self._next.takers.append((loop, future))
                return future
            wait = _Wait(work)
            wait.takers.append((loop, future))
            if shared:
                self._next = wait
        self._thread.submit(self._run, wait)
        return future

    def _run(self, wait: _Wait) -> None:
        with self._lock:
            if self._next is wait:
                self._next = None
        wait.run()


_workers: dict[Device | None, _Worker] = {}
_lock = threading.Lock()


def _worker(device: Device | None) -> _Worker:
    with _lock:
        if device not in _workers:
            _workers[device] = _Worker("all" if device is None else str(device))
        return _workers[device]


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # a thread of the parent's may have held it
    _workers.clear()  # their threads are the parent's


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


async def everything_finished() -> None:
    """Waits as tack.sync() does."""
    await _worker(None).add(_runtime.synchronize, shared=True)


async def device_finished(device: Device) -> None:
    """Waits as ``device.synchronize()`` does."""
    await _worker(device).add(device.synchronize, shared=True)


async def in_worker(device: Device, work: Callable[[], T]) -> T:
    """Does ``work``, which waits for ``device``, on that device's thread, behind all that is awaited there already."""
    result: T = await _worker(device).add(work, shared=False)
    return result
