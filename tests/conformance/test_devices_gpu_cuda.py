"""CUDA: contexts and neighbours in them, the documentation's own programs, NVRTC only where needed, every driver call failing once."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import child
import pytest
from documentation import page

import tack

pytestmark = pytest.mark.needs("CUDA")


class Driver:
    """The CUDA driver that tack uses, called as another library of the process would."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(os.environ.get("TACK_LIBCUDA") or "libcuda.so.1")

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.library, name)(*arguments)
        assert code == 0, f"{name} answered {code}"

    def current(self) -> int | None:
        context = ctypes.c_void_p()
        self.call("cuCtxGetCurrent", ctypes.byref(context))
        return context.value

    def set_current(self, context: int | None) -> None:
        self.call("cuCtxSetCurrent", ctypes.c_void_p(context))

    def primary(self, device: int) -> int:
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        assert context.value
        return context.value

    def release(self, device: int) -> None:
        self.call("cuDevicePrimaryCtxRelease_v2", device)

    def is_active(self, device: int) -> bool:
        flags, active = ctypes.c_uint(), ctypes.c_int()
        self.call("cuDevicePrimaryCtxGetState", device, ctypes.byref(flags), ctypes.byref(active))
        return bool(active.value)


@tack.kernel
def add_one(x):
    for i in range(x.shape[0]):
        x[i] = x[i] + 1


@pytest.fixture
def driver(device: tack.Device) -> Iterator[Driver]:
    driver = Driver()
    before = driver.current()
    yield driver
    driver.set_current(before)


def on_a_thread(work: Callable[[], Any]) -> Any:
    """The result of ``work`` on a new thread, which has no context."""
    results: list[Any] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


# -- contexts


def test_asking_for_the_device_makes_its_context_current_on_that_thread(device: tack.Device, driver: Driver) -> None:
    primary = driver.primary(device.index)
    try:
        for ask in (
            lambda: tack.device("cuda"),
            lambda: tack.zeros(1, device="cuda"),
            lambda: tack.set_default_device("cuda"),
            lambda: tack.device(f"cuda:{device.index}"),
        ):

            def asked(ask: Callable[[], Any] = ask) -> tuple[Any, Any]:
                before = driver.current()
                ask()
                return before, driver.current()

            default = tack.device("cpu")
            try:
                assert on_a_thread(asked) == (None, primary)
            finally:
                tack.set_default_device(default)
    finally:
        driver.release(device.index)


def test_the_primary_context_is_the_one_that_is_used(device: tack.Device, tmp_path: Path) -> None:
    program = f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import tack
        from test_devices_gpu_cuda import Driver, add_one
        driver = Driver()
        driver.call("cuInit", 0)
        assert not driver.is_active(0)
        x = tack.zeros(10, device="cuda:0")
        add_one(x)
        assert driver.is_active(0) and x.sum() == 10.0
        primary = driver.primary(0)
        assert driver.current() == primary
        driver.release(0)
        assert driver.is_active(0), "tack holds it too"
        add_one(x)
        print(x.sum())
    """
    assert child.run(program, tmp_path).out == "20.0\n"


USES: dict[str, Callable[[tack.Array], Any]] = {
    "launch": lambda x: add_one(x),
    "allocate": lambda x: tack.empty(1_000_003, device=x.device),
    "free": lambda x: (tack.empty(5_000_011, device=x.device), x.device.trim()),
    "upload": lambda x: tack.array([1.0, 2.0], device=x.device),
    "download": lambda x: x.numpy(),
    "copy": lambda x: x.copy(),
    "fill": lambda x: x.fill(3.0),
    "read an element": lambda x: x[0],
    "write an element": lambda x: x.__setitem__(0, 1.0),
    "sum": lambda x: x.sum(),
    "wait": lambda x: x.device.synchronize(),
    "wait for all": lambda x: tack.sync(),
    "export": lambda x: x.__dlpack__(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_the_context_that_was_current_before_is_current_after(
    device: tack.Device, driver: Driver, use: Callable[[tack.Array], Any]
) -> None:
    x = tack.zeros(1000)
    add_one(x)
    assert on_a_thread(lambda: (use(x), driver.current())[1]) is None
    if tack.device_count("cuda") > 1:
        another = driver.primary(1 - device.index)
        try:

            def with_another() -> int | None:
                driver.set_current(another)
                use(x)
                return driver.current()

            assert on_a_thread(with_another) == another
        finally:
            driver.release(1 - device.index)
    assert x.tolist()[5] in (1.0, 2.0, 3.0)


@pytest.mark.needs("simulator")
def test_a_call_returns_once_it_is_queued_unless_its_memory_is_shared(device: tack.Device, tmp_path: Path) -> None:
    """Asked of the driver, over a stand-in that starts no work by itself."""
    program = f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import tack
        from test_devices_gpu_cuda import Driver, add_one
        driver = Driver()
        tack.set_default_device("cuda")

        def is_done():
            return {{0: True, 600: False}}[driver.library.cuStreamQuery(None)]  # CUDA_ERROR_NOT_READY

        def after(work):
            work()
            return is_done()

        x, y = tack.zeros(1000), tack.ones(1000)
        add_one(x)
        tack.sync()
        assert is_done()
        assert not after(lambda: add_one(x))             # queued
        tack.sync()
        x.fill(1.0)
        assert not is_done()
        tack.sync()
        seen = tack.from_dlpack(x)                       # from now on another library may look at any time
        for shared in (x, seen, x[5:], tack.array_from_ptr(y.pointer, 1000, tack.f32, owner=y)):
            assert shared.shared
            assert after(lambda: add_one(shared))
            assert after(lambda: shared.fill(2.0))
            assert after(lambda: tack.copyto(shared, tack.zeros(shared.size)))
            assert after(lambda: shared.__setitem__(0, 1.0))
        z = tack.zeros(1000)
        tack.sync()
        assert after(lambda: tack.copyto(z, x))          # reads memory that others may write
        assert not after(lambda: add_one(z))
        print("seen")
    """
    assert child.run(program, tmp_path, order="lazy").out == "seen\n"


@pytest.mark.needs("neighbour")
def test_a_bare_name_is_the_gpu_that_the_thread_already_uses(device: tack.Device, driver: Driver) -> None:
    second = driver.primary(1)
    try:

        def asks() -> tuple[tack.Device, tack.Device, int | None]:
            driver.set_current(second)
            d = tack.device("cuda")
            return d, tack.zeros(1, device="cuda").device, driver.current()

        assert on_a_thread(asks) == (tack.device("cuda:1"), tack.device("cuda:1"), second)
        assert on_a_thread(lambda: tack.device("cuda")) is tack.device("cuda:0")
    finally:
        driver.release(1)


@pytest.mark.needs("simulator")
def test_a_context_that_is_current_first_is_adopted(device: tack.Device, tmp_path: Path) -> None:
    program = f"""
        import ctypes, os, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import tack
        from test_devices_gpu_cuda import Driver, add_one
        driver = Driver()
        driver.call("cuInit", 0)
        own = ctypes.c_void_p()
        driver.call("cuCtxCreate_v2", ctypes.byref(own), 0, 1)   # an application's, on the second GPU
        d = tack.device("cuda")
        assert str(d) == "cuda:1" and driver.current() == own.value
        x = tack.zeros(10, device=d)
        add_one(x)
        assert x.sum() == 10.0
        assert driver.current() == own.value and not driver.is_active(0) and not driver.is_active(1)  # there is no other context
        print("adopted")
    """
    assert child.run(program, tmp_path).out == "adopted\n"


@pytest.mark.needs("simulator")
def test_the_primary_context_is_released_and_not_destroyed(device: tack.Device, tmp_path: Path) -> None:
    program = """
        import tack
        @tack.kernel
        def add_one(x):
            for i in range(x.shape[0]):
                x[i] = x[i] + 1
        x = tack.zeros(10, device="cuda")
        add_one(x)
        print(x.sum())
    """
    ended = child.run(program, tmp_path)
    assert ended.out == "10.0\n" and ended.calls("libcuda", "cuDevicePrimaryCtxRetain") >= 1
    for function in ("cuDevicePrimaryCtxReset_v2", "cuDevicePrimaryCtxReset", "cuCtxDestroy_v2", "cuCtxDestroy"):
        assert ended.calls("libcuda", function) == 0


# -- the documentation's own programs


def test_the_documented_program_for_gpus_runs_word_for_word(device: tack.Device, tmp_path: Path) -> None:
    host = page("import numpy as np\nimport tack", "On a machine with a GPU the same calls")
    gpu = page('gpu = tack.device("cuda")', "\nCapabilities\n")
    check = "\nassert c.device == gpu and c.tolist() == [2.0 * i for i in range(8)] and grid.device == gpu\nprint('ran')\n"
    assert child.run(host + gpu + check, tmp_path).out == "ran\n"


def test_our_words_for_the_documented_program(device: tack.Device) -> None:
    x = tack.arange(8, dtype=tack.f32, device="cpu")
    grid = tack.zeros(1024, device="cuda")
    b = x.to_device(tack.device("cuda"))
    with tack.device("cpu"):  # whatever the default
        c = tack.empty_like(b)
        tack.copyto(c, b)
        add_one(c)
    assert grid.device == b.device == c.device == tack.device("cuda") and c.tolist() == [i + 1.0 for i in range(8)]


SNIPPET_AROUND = """
import threading
import tack

@tack.kernel
def add_one(x):
    for i in range(x.shape[0]):
        x[i] = x[i] + 1

x = tack.zeros(100, device="cuda")

def other_thread():
{snippet}
    assert int(driver.cuCtxGetCurrent()[1]) == int(primary) != 0
    add_one(x)
    assert int(driver.cuCtxGetCurrent()[1]) == int(primary)

thread = threading.Thread(target=other_thread)
thread.start()
thread.join()
print(x.sum())
"""
SNIPPET = """
from cuda.bindings import driver

_, gpu = driver.cuDeviceGet(0)
_, primary = driver.cuDevicePrimaryCtxRetain(gpu)
driver.cuCtxSetCurrent(primary)
"""


@pytest.mark.parametrize("words", ["ours", "the documentation's"])
def test_the_documented_snippet_for_other_threads_works(device: tack.Device, tmp_path: Path, words: str) -> None:
    if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.bindings") is None:
        pytest.skip("needs cuda-bindings (pip install cuda-bindings)")
    snippet = SNIPPET if words == "ours" else page("from cuda.bindings import driver", "\nCalls of one kernel from several threads")
    indented = "\n".join("    " + line for line in snippet.strip().splitlines())
    folder = str(Path(os.environ["TACK_LIBCUDA"]).parent) if os.environ.get("TACK_LIBCUDA") else ""
    environment = {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, (folder, os.environ.get("LD_LIBRARY_PATH"))))}
    assert child.run(SNIPPET_AROUND.format(snippet=indented), tmp_path, environment=environment).out == "100.0\n"


# -- NVRTC


@pytest.mark.needs("simulator")
def test_a_second_process_makes_no_nvrtc_call(device: tack.Device, tmp_path: Path) -> None:
    first = child.run(child.CACHED.format(device.type), tmp_path)
    assert first.out == "3000.0 3.0\n" and first.calls("libnvrtc", "nvrtcCompileProgram") == 3
    second = child.run(child.CACHED.format(device.type), tmp_path)
    assert (
        second.out == first.out and second.calls("libnvrtc", "nvrtcCompileProgram") == second.calls("libnvrtc", "nvrtcCreateProgram") == 0
    )
    without = child.run(child.CACHED.format(device.type), tmp_path, environment={"TACK_LIBNVRTC": str(tmp_path / "nothing.so")})
    assert without.out == first.out, "nor is the library needed"


@pytest.mark.needs("simulator")
def test_a_compile_without_nvrtc_says_what_is_missing(device: tack.Device, tmp_path: Path) -> None:
    ended = child.run(child.CACHED.format(device.type), tmp_path, environment={"TACK_LIBNVRTC": str(tmp_path / "nothing.so")}, ok=False)
    last = ended.err.strip().splitlines()
    assert ended.status == 1 and "RuntimeError" in ended.err and "NVRTC" in ended.err and "pip install" in ended.err, last


# -- every driver call fails once

TEN_CALLS = """
    import gc, sys
    import tack

    @tack.kernel
    def add(x, y, n):
        for i in range(x.shape[0]):
            x[i] = x[i] + y[i] * n

    @tack.kernel
    def total(x):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i]
        return s

    def program(device):
        x = tack.zeros(5000, device=device)
        y = tack.array([1.0] * 5000, device=device)
        add(x, y, 2.0)
        x[7] = 5.0
        y.fill(3.0)
        z = x.copy()
        add(z, y, 1.0)
        found = z.numpy().sum(), total(x), z[7]
        tack.sync()
        return [float(f) for f in found]

    expected = [5.0 * 5000 + 3.0, 2.0 * 5000 + 3.0, 8.0]

    def attempt():
        global device
        try:
            device = tack.device("cuda")
            found = program(device)
        except (RuntimeError, MemoryError) as error:  # the classes that users are told of
            return type(error).__name__, str(error)
        assert found == expected, found
        return None

    failed = attempt()
    if failed:
        print(*failed)
        gc.collect()
        failed = attempt()       # the device is usable after, or it says once more why it is not
    if failed:
        print("again", *failed)
    else:
        print("usable")
        assert device.memory_stats()["in_use"] == 0, device.memory_stats()
        device.trim()
"""
OUT_OF_MEMORY, INVALID_VALUE, LAUNCH_FAILED = 2, 1, 719


def every_call_fails_once(folder: Path, code: int, name: str, step: int = 1) -> None:
    """Lets the n-th driver call fail for n = 1, 1 + step, ... until a run passes without."""
    child.run(TEN_CALLS, folder)  # fills the kernel cache
    usual = child.run(TEN_CALLS, folder).alive  # what an ending process leaves to the driver
    n = 1
    while True:
        ended = child.run(TEN_CALLS, folder, fail=f"libcuda:{n}:{code}")
        lines = ended.out.splitlines()
        if not ended.counted["libcuda"]["injected"]:
            assert lines == ["usable"] and n > 30, (n, ended)
            return
        where = f"call {n} of the driver failing with {name}: {ended.out}{ended.err}"
        assert lines[-1] == "usable", where
        assert len(lines) == 1 or name in ended.out or "out of memory" in ended.out.lower(), where
        pools = {"events", "pinned memory"}  # staging is kept for later copies; the C++ tests see that it goes with its device
        lost = {name: count for name, count in ended.alive.items() if name not in pools and count > usual.get(name, 0)}
        if "tack: error" in ended.err and "usable\n" == ended.out:  # the failing call was that of a free: it is told, and cannot be undone
            lost = {name: count for name, count in lost.items() if name not in ("device memory", "device bytes")}
        assert not lost and all(ended.alive.get(name, 0) <= usual[name] + 4 for name in pools), (where, lost, ended.alive, usual)
        n += step


@pytest.mark.needs("simulator")
def test_every_driver_call_may_fail_once(device: tack.Device, tmp_path: Path) -> None:
    every_call_fails_once(tmp_path, INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", step=3)


@pytest.mark.long
@pytest.mark.needs("simulator")
@pytest.mark.parametrize(("code", "name"), [(INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"), (OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY")])
def test_every_driver_call_fails_once(device: tack.Device, tmp_path: Path, code: int, name: str) -> None:
    every_call_fails_once(tmp_path, code, name)


# -- a process may end at any time


@pytest.mark.needs("simulator")
@pytest.mark.parametrize("end", ["", "sys.exit(0)", "os._exit(0)", "raise SystemExit", "threading.Thread(target=work).start()"])
def test_a_process_may_end_with_work_queued(device: tack.Device, tmp_path: Path, end: str) -> None:
    program = f"""
        import os, sys, threading
        import tack

        @tack.kernel
        def add_one(x):
            for i in range(x.shape[0]):
                x[i] = x[i] + 1

        x = tack.zeros(100_000, device="cuda")

        def work():
            for _ in range(10):
                add_one(x)

        work()
        {end}
    """
    for order in ("lazy", "delayed"):
        child.run(program, tmp_path, order=order)


def test_importing_tack_opens_no_driver(tmp_path: Path) -> None:
    """Not the simulator's either: only a device that is asked for does."""
    program = "import sys, tack\ntack.zeros(3, device='cpu')\nprint(any('libcuda' in line for line in open('/proc/self/maps')))"
    if not Path("/proc/self/maps").exists():
        pytest.skip("there is no /proc here")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
