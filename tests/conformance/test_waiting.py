"""Waiting: from asyncio in worker threads, and for several devices of which more than one has failed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import child
import numpy as np
import pytest

import tack


@tack.kernel
def add_one(x):
    for i in range(x.shape[0]):
        x[i] = x[i] + 1


@tack.kernel
def far(x, distance):
    for i in range(x.shape[0]):
        x[i + distance] = 1.0


N = 5000


def counted(times: int = 20) -> tack.Array:
    """An array with a queue of work behind it: its elements are ``times`` when that is done."""
    x = tack.zeros(N, dtype=tack.i32)
    for _ in range(times):
        add_one(x)
    return x


def test_asyncio_waits_for_what_was_queued(device: tack.Device) -> None:
    async def program() -> None:
        x = counted()
        assert (await x.numpy_async())[-1] == 20
        add_one(x)
        host = await x[::7].numpy_async()
        assert host.tolist() == [21] * len(host) and host.dtype == np.int32
        host[0] = 0
        assert x[0] == 21, "a copy"
        assert await device.synchronize_async() is None
        assert await tack.sync_async() is None

    asyncio.run(program())


async def ticking(work: Any) -> tuple[Any, int]:
    """The result of ``work`` and how often the event loop came round while it was awaited."""
    task = asyncio.ensure_future(work)
    ticks = 0
    while not task.done():
        ticks += 1
        await asyncio.sleep(0.002)
    return task.result(), ticks


@pytest.mark.needs("simulator", "queue")
def test_the_event_loop_keeps_running(device: tack.Device, tmp_path: Path) -> None:
    """Each of 40 launches begins 10 ms late: a wait takes 400 ms, during which a loop that stood still would come round once."""
    program = f"""
        import asyncio, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import tack
        from test_waiting import add_one, ticking
        tack.set_default_device({device.type!r})

        def queue():
            x = tack.zeros(100)
            for _ in range(40):
                add_one(x)
            return x

        async def program():
            tack.sync()
            d = tack.get_default_device()
            for wait in (lambda x: tack.sync_async(), lambda x: d.synchronize_async(), lambda x: x.numpy_async()):
                x = queue()
                result, ticks = await ticking(wait(x))
                assert ticks >= 5, ticks  # 200 where the machine has nothing else to do
                assert x[99] == 40.0
            assert result.tolist() == [40.0] * 100

        add_one(tack.zeros(1))
        asyncio.run(program())
        print("ticked")
    """
    assert child.run(program, tmp_path, order="delayed", delay=10_000).out == "ticked\n"


def test_a_thousand_waits_make_a_few_threads(device: tack.Device) -> None:
    most = 0

    async def one(k: int, arrays: list[tack.Array]) -> None:
        nonlocal most
        x = arrays[k % len(arrays)]
        if k % 3 == 0:
            assert (await x.numpy_async())[0] == 3
        elif k % 3 == 1:
            await device.synchronize_async()
        else:
            await tack.sync_async()
        most = max(most, threading.active_count())

    async def program() -> None:
        arrays = [counted(3) for _ in range(10)]
        await asyncio.gather(*(one(k, arrays) for k in range(1000)))

    before = threading.active_count()
    asyncio.run(program())
    assert 0 < most <= before + 3


def test_cancelling_leaves_everything_usable(device: tack.Device) -> None:
    async def program() -> None:
        x = counted()
        waits = [
            asyncio.ensure_future(w) for w in (x.numpy_async(), device.synchronize_async(), device.synchronize_async(), tack.sync_async())
        ]
        await asyncio.sleep(0)
        for wait in waits[:2]:
            wait.cancel()
        done = await asyncio.gather(*waits, return_exceptions=True)
        assert [type(d) for d in done] == [asyncio.CancelledError, asyncio.CancelledError, type(None), type(None)]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(asyncio.sleep(30)), 0.001)
        add_one(x)
        assert (await x.numpy_async())[0] == 21

    asyncio.run(program())
    x = counted(2)
    assert x[0] == 2


def test_several_event_loops_wait_at_once(device: tack.Device) -> None:
    failures: list[BaseException] = []

    def loop(n: int) -> None:
        async def program() -> None:
            with device:
                x = counted(n)
            for _ in range(10):
                await asyncio.gather(device.synchronize_async(), tack.sync_async())
                assert (await x.numpy_async())[-1] == n

        try:
            asyncio.run(program())
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=loop, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


FAILING = """
    import asyncio, sys
    sys.path.insert(0, {here!r})
    import tack
    from test_waiting import add_one, far
    d = tack.device({device!r})
    tack.set_default_device(d)
    reported = []

    async def program():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
        far(tack.zeros(100), 1 << 40)
        waits = [asyncio.ensure_future(w()) for w in {waits}]
        await asyncio.sleep(0)
        if {cancel}:
            for wait in waits:
                wait.cancel()
        done = await asyncio.gather(*waits, return_exceptions=True)
        print(type(done[0]).__name__, "far" in str(done[0]))
        # Those that came after the first wait had begun share the next one, which fails too where a device is lost for good.
        assert all(type(d) is type(done[0]) or d is None for d in done), done
        for _ in range(1000):
            if reported or not {cancel}:
                break
            await asyncio.sleep(0.01)

    asyncio.run(program())
    print(bool(reported), all("far" in str(c["exception"]) for c in reported))
"""


@pytest.mark.needs("simulator", "queue")
@pytest.mark.parametrize(
    ("waits", "cancel", "printed"),
    [
        ("[d.synchronize_async]", False, "RuntimeError True\nFalse True\n"),
        ("[tack.sync_async]", False, "RuntimeError True\nFalse True\n"),
        ("[tack.zeros(3).numpy_async]", False, "RuntimeError True\nFalse True\n"),
        ("[d.synchronize_async] * 3", False, "RuntimeError True\nFalse True\n"),
        ("[d.synchronize_async] * 3", True, "CancelledError False\nTrue True\n"),  # nobody hears it: the loop's handler does
    ],
)
def test_an_error_is_raised_where_it_is_awaited(device: tack.Device, tmp_path: Path, waits: str, cancel: bool, printed: str) -> None:
    program = FAILING.format(here=str(Path(__file__).parent), device=device.type, waits=waits, cancel=cancel)
    assert child.run(program, tmp_path, ok=False, order="lazy").out == printed


@pytest.mark.needs("simulator", "neighbour", "queue")
@pytest.mark.parametrize("wait", ["tack.sync()", "asyncio.run(tack.sync_async())"])
def test_of_two_devices_errors_the_first_is_raised_and_the_other_attached(device: tack.Device, tmp_path: Path, wait: str) -> None:
    program = f"""
        import asyncio, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import tack

        @tack.kernel
        def first(x, distance):
            for i in range(x.shape[0]):
                x[i + distance] = 1.0

        @tack.kernel
        def second(x, distance):
            for i in range(x.shape[0]):
                x[i + distance] = 2.0

        a, b = tack.device("{device.type}:0"), tack.device("{device.type}:1")
        second(tack.zeros(10, device=b), 1 << 40)
        first(tack.zeros(10, device=a), 1 << 40)
        try:
            {wait}
        except RuntimeError as error:
            print("first" in str(error), "second" in str(error), len(error.__notes__))
            note = error.__notes__[0]
            print(note.startswith("'{device.type}:1' failed as well: RuntimeError: "), "second" in note)
        x = tack.ones(4, device="cpu")  # other devices are as they were
        print(x.sum())
    """
    assert child.run(program, tmp_path, ok=False).out == "True False 1\nTrue True\n4.0\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_waits_with_threads_of_its_own(tmp_path: Path) -> None:
    program = tmp_path / "forks.py"
    program.write_text(
        textwrap.dedent("""
        import asyncio, os
        import tack

        async def program():
            await tack.sync_async()
            await tack.device("cpu").synchronize_async()
            return (await tack.full(3, 4.0, device="cpu").numpy_async()).tolist()

        assert asyncio.run(program()) == [4.0] * 3
        child = os.fork()
        if child == 0:
            os._exit(0 if asyncio.run(program()) == [4.0] * 3 else 1)
        _, status = os.waitpid(child, 0)
        print("status", status)
        """)
    )
    run = subprocess.run([sys.executable, "-W", "ignore", str(program)], capture_output=True, text=True, timeout=120)
    assert run.stdout == "status 0\n", run.stderr
