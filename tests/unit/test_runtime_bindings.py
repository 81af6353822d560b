"""tack._runtime: arrays and buffers, devices, kernels by hand, errors, the compile callback, the Python thread pool."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hand_kernels  # isort: skip
import tack
from tack import _runtime
from tack.ir.nodes import Extent

CPU = _runtime.device("cpu")


def python(code: str, **env: str) -> str:
    """Runs a program in a process of its own and answers what it prints."""
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": path, **env},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def filled(values: Any) -> _runtime.Array:
    values = np.asarray(values)
    names = {"float32": "f32", "float64": "f64", "int32": "i32", "uint8": "u8"}
    a = _runtime.Array(CPU, names[values.dtype.name], values.shape)
    a.write_from(values)
    return a


# ---- arrays ----


def test_a_new_array_and_its_properties() -> None:
    a = _runtime.Array(CPU, "f32", (3, 4))
    assert (a.dtype_name, a.shape, a.strides, a.ndim, a.size, a.nbytes, a.itemsize) == ("f32", (3, 4), (16, 4), 2, 12, 48, 4)
    assert a.device is CPU
    assert a.pointer % 64 == 0
    assert (a.layout, a.read_only, a.shared) == (0, False, False)
    assert weakref.ref(a)() is a


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("f99", (3,)), ValueError),
        (("f32", (-1,)), ValueError),
        (("f32", (1,) * 9), ValueError),
        (("f32", (2**62, 4)), (ValueError, MemoryError)),
        (("f32", (2**50,)), MemoryError),
        (("f32", 3), TypeError),
        (("f32", ("a",)), TypeError),
    ],
)
def test_bad_shapes_and_dtypes(args: Any, error: Any) -> None:
    with pytest.raises(error):
        _runtime.Array(CPU, *args)
    assert _runtime.Array(CPU, "f32", (4,)).size == 4  # the device stays usable


def test_views_share_memory_and_stay_inside_it() -> None:
    base = filled(np.arange(12, dtype=np.float32).reshape(3, 4))
    column = _runtime.Array(base, "f32", (3,), (16,), 4, False)
    assert column.layout == 2
    np.testing.assert_array_equal(np.asarray(column), [1, 5, 9])
    backwards = _runtime.Array(column, "f32", (3,), (-16,), 32, True)
    np.testing.assert_array_equal(np.asarray(backwards), [9, 5, 1])
    assert backwards.read_only
    for shape, strides, offset in [((4,), (16,), 4), ((3,), (16,), -8), ((3,), (-16,), 0), ((2,), (3,), 0)]:
        with pytest.raises(ValueError, match=r"."):
            _runtime.Array(column, "f32", shape, strides, offset, False)
    del base, column
    gc.collect()
    np.testing.assert_array_equal(np.asarray(backwards), [9, 5, 1])


def test_wrapped_memory_keeps_its_owner() -> None:
    class Owner(np.ndarray):  # a class of its own, so that it takes weak references
        pass

    memory = np.arange(6, dtype=np.int32).view(Owner)
    gone = weakref.ref(memory)
    a = _runtime.Array(CPU, memory.ctypes.data + 20, "i32", (3,), (-8,), False, memory, True)
    assert a.shared
    np.testing.assert_array_equal(np.asarray(a), [5, 3, 1])
    del memory
    gc.collect()
    assert gone() is not None
    view = _runtime.Array(a, "i32", (2,), (-8,), 0, False)
    del a
    gc.collect()
    assert gone() is not None
    del view
    gc.collect()
    assert gone() is None


def test_a_misaligned_address_is_refused() -> None:
    memory = np.zeros(8, np.float64)
    with pytest.raises(ValueError, match="multiple of the 8"):
        _runtime.Array(CPU, memory.ctypes.data + 4, "f64", (2,), (8,), False, memory, False)


@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (2, 3, 4)])
def test_copies_from_and_to_any_buffer(shape: tuple[int, ...]) -> None:
    values = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)
    a = filled(values)
    wide = np.zeros(tuple(2 * n for n in shape))
    target = wide[(..., *(slice(None, None, -2) for _ in shape))]  # with ... it is an array at 0 dimensions too
    a.read_into(target)
    np.testing.assert_array_equal(target, values)
    np.negative(target, out=target)
    a.write_from(target)
    np.testing.assert_array_equal(np.asarray(a), -values)
    b = _runtime.Array(CPU, "f64", shape)
    b.copy_from(a)
    np.testing.assert_array_equal(np.asarray(b), -values)


def test_copies_check_shape_dtype_and_writability() -> None:
    a = filled(np.zeros((2, 3), np.float32))
    with pytest.raises(TypeError, match="dtype f64, the array f32"):
        a.read_into(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"shape \(3, 2\), the array \(2, 3\)"):
        a.write_from(np.zeros((3, 2), np.float32))
    with pytest.raises(BufferError):
        a.read_into(b"123")
    with pytest.raises(TypeError):
        a.write_from(3)
    with pytest.raises(ValueError, match="4"):
        a.fill(b"123")
    frozen = _runtime.Array(a, "f32", (2, 3), (12, 4), 0, True)
    with pytest.raises(ValueError, match="read-only"):
        frozen.write_from(np.zeros((2, 3), np.float32))


def test_large_copies_do_not_hold_the_gil() -> None:
    a, values = _runtime.Array(CPU, "u8", (256 << 20,)), np.zeros(256 << 20, np.uint8)
    turns, stop = 0, threading.Event()

    def count() -> None:
        nonlocal turns
        while not stop.wait(0.001):
            turns += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = turns
    for _ in range(3):
        a.write_from(values)
    after = turns
    stop.set()
    thread.join()
    assert after - before >= 5


def test_the_buffer_protocol() -> None:
    a = filled(np.arange(6, dtype=np.float32).reshape(2, 3))
    view = memoryview(a)
    assert (view.format, view.shape, view.strides, view.readonly, view.itemsize) == ("f", (2, 3), (12, 4), False, 4)
    view[0, 1] = 7.0
    assert np.asarray(a)[0, 1] == 7
    gone = weakref.ref(a)
    del a
    gc.collect()
    assert gone() is not None  # an export keeps its array
    view.release()
    gc.collect()
    assert gone() is None


def test_the_buffer_protocol_refuses_what_it_cannot_say() -> None:
    a = filled(np.zeros((2, 3), np.float32))
    frozen = _runtime.Array(a, "f32", (2, 3), (12, 4), 0, True)
    assert memoryview(frozen).readonly
    with pytest.raises((BufferError, TypeError, ValueError)):
        np.frombuffer(frozen, np.float32)[0] = 1
    column = _runtime.Array(a, "f32", (2,), (12,), 0, False)
    with pytest.raises((BufferError, ValueError)):
        np.frombuffer(column, np.float32)
    np.testing.assert_array_equal(np.asarray(column), [0, 0])
    broken = _runtime.Array.__new__(_runtime.Array)
    with pytest.raises(BufferError, match="never initialised"):
        memoryview(broken)


# ---- devices ----


def test_devices_are_the_same_object_every_time() -> None:
    assert _runtime.device("cpu") is CPU
    serial = _runtime.device("cpu", num_threads=1)
    assert serial is _runtime.device("cpu", 1) is not CPU
    assert serial.threads == 1
    assert serial.can_address(CPU)
    assert (str(serial), repr(serial), repr(CPU)) == ("cpu(num_threads=1)", "tack.device('cpu', num_threads=1)", "tack.device('cpu')")
    assert weakref.ref(serial)() is serial


def test_with_blocks_nest_and_close_in_any_order() -> None:
    one, two = _runtime.device("cpu", 1), _runtime.device("cpu", 2)
    before = _runtime.default_device()
    with one as entered:
        assert entered is one is _runtime.default_device()
        with two:
            assert _runtime.default_device() is two
        assert _runtime.default_device() is one
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    assert _runtime.default_device() is two
    two.__exit__(None, None, None)
    two.__exit__(None, None, None)  # one too many does nothing
    assert _runtime.default_device() is before


@pytest.mark.parametrize(
    ("spec", "error"), [("gpu", ValueError), ("cpu:0", ValueError), ("", ValueError), (3, TypeError), ("cuda:x", ValueError)]
)
def test_unknown_devices(spec: Any, error: Any) -> None:
    with pytest.raises(error):
        _runtime.device(spec)


def test_settings_are_a_table() -> None:
    names = [row[0] for row in _runtime.config_table()]
    assert "TACK_CPU_THREADS" in names
    for name in names:
        assert isinstance(_runtime.config_get(name), str)
    with pytest.raises(ValueError, match="TACK_NO_SUCH"):
        _runtime.config_get("TACK_NO_SUCH")


def test_a_setting_that_cannot_be_read_is_named_at_import() -> None:
    code = """
    try:
        import tack
    except ImportError as error:
        print(error)
    """
    printed = python(code, TACK_CPU_THREADS="many")
    assert "TACK_CPU_THREADS" in printed
    assert "many" in printed


def test_records_and_digests(tmp_path: Path) -> None:
    one, other = _runtime.digest(b"ab", b"c"), _runtime.digest(b"a", b"bc")
    assert len(one) == 32
    assert one != other
    assert one == _runtime.digest(b"ab", b"c")
    with pytest.raises(TypeError):
        _runtime.digest("text")  # type: ignore[arg-type]
    code = """
    from tack import _runtime
    key = _runtime.digest(b"record")
    print(_runtime.cache_get(key), _runtime.cache_put(key, b"value"), _runtime.cache_get(key))
    """
    assert python(code, TACK_CACHE="1", TACK_CACHE_DIR=str(tmp_path)) == "None None b'value'\n"
    assert python(code, TACK_CACHE="1", TACK_CACHE_DIR=str(tmp_path)) == "b'value' None b'value'\n"
    assert python(code, TACK_CACHE="0", TACK_CACHE_DIR=str(tmp_path)) == "None None None\n"


# ---- kernels by hand ----


def test_a_kernel_is_launched_by_hand_and_checks_everything() -> None:
    k = hand_kernels.saxpy(CPU)
    x, y, out = filled(np.arange(4, dtype=np.float32)), filled(np.ones(4, np.float32)), filled(np.zeros(4, np.float32))
    assert (k.name, k.device) == ("saxpy", CPU)
    assert k.launch((x, y, out, 2.0)) is None
    np.testing.assert_array_equal(np.asarray(out), [1, 3, 5, 7])
    assert k.launch([x, y, np.zeros(4, np.float32), 2.0]) is None
    for args, error, text in [
        ((x, y, out), TypeError, "takes 4 arguments"),
        ((x, y, out, 2), TypeError, "'a' is a float, an int was given"),
        ((x, y, out, "2"), TypeError, "'a' cannot be a str"),
        ((x, y, 3.0, 2.0), TypeError, "'out' is an array, a float was given"),
        ((x, y, filled(np.zeros(4)), 2.0), TypeError, "'out' has dtype tack.f64"),
        ((x, y, out, 2**70), OverflowError, "'a' does not fit"),
    ]:
        with pytest.raises(error, match=text):
            k.launch(args)
    schedule = k.schedule()
    assert schedule["threads"] == CPU.threads
    assert schedule["steps"][0]["stop"] == [[("shape", 0, 0, 0)]]
    assert schedule["entries"][0]["symbol"] == "saxpy"
    assert schedule["entries"][0]["serial"] + schedule["entries"][0]["parallel"] == 2


def test_words_that_the_runtime_does_not_know_are_named() -> None:
    made = hand_kernels.source(CPU, "k", "", [hand_kernels.array("a")], [])
    made.steps[0].kind = "jump"
    with pytest.raises(ValueError, match="'jump' is no step kind"):
        CPU.build(made, b"")
    made = hand_kernels.source(CPU, "k", "", [hand_kernels.array("a")], [], Extent((("tan", 0, 0, 0),)))
    with pytest.raises(ValueError, match="'tan' is no extent operation"):
        CPU.build(made, b"")
    made = hand_kernels.source(CPU, "k", "", [hand_kernels.array("a")], [], cost_hint="much")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cost_hint is 'much'"):
        CPU.build(made, b"")


# ---- the compile callback ----

COMPILER = """
    import threading, signal, sys, time
    import hand_kernels, tack
    from tack import _runtime
    cpu = _runtime.device("cpu")
    out = tack.zeros(4)
    import llvmlite.binding as llvm
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    def emit(text):
        machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="small")
        return machine.emit_object(llvm.parse_assembly(text))
    fail = None
    calls = []
    def compiler(*args):
        calls.append(args)
        if fail:
            fail()
        return emit(args[1])
    _runtime.set_cpu_compiler(compiler)
    def usable():
        global fail
        fail = None
        hand_kernels.fill(cpu, 5.0).launch([out])
        assert out.tolist() == [5.0] * 4
"""


def test_what_the_compiler_raises_is_raised_by_build() -> None:
    code = """
    class Mine(Exception): pass
    error = Mine("text")
    def fail(): raise error
    try:
        hand_kernels.fill(cpu, 5.0)
    except Mine as e:
        assert e is error
        print("same")
    usable()
    fail = lambda: sys.exit(3)
    try:
        hand_kernels.fill(cpu, 6.0)
    except SystemExit as e:
        print(e.code)
    usable()
    _runtime.set_cpu_compiler(lambda *args: 3)
    try:
        hand_kernels.fill(cpu, 7.0)
    except TypeError as e:
        print(e)
    """
    assert python(COMPILER + code, TACK_CACHE="0") == "same\n3\nthe CPU compiler must answer bytes (or str, for text)\n"


def test_ctrl_c_during_a_compile_leaves_everything_usable() -> None:
    code = """
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background leaves it ignored
    def fail():
        signal.raise_signal(signal.SIGINT)
        time.sleep(10)
    try:
        hand_kernels.fill(cpu, 5.0)
    except KeyboardInterrupt:
        print("interrupted")
    usable()
    """
    assert python(COMPILER + code, TACK_CACHE="0") == "interrupted\n"


def test_an_interrupted_compile_is_taken_over_by_the_thread_that_waits_for_it() -> None:
    code = """
    started, done = threading.Event(), []
    def fail():
        global fail
        fail = None
        started.set()
        time.sleep(0.3)
        raise KeyboardInterrupt
    def wait():
        started.wait()
        done.append(hand_kernels.fill(cpu, 5.0))
    thread = threading.Thread(target=wait)
    thread.start()
    try:
        hand_kernels.fill(cpu, 5.0)
    except KeyboardInterrupt:
        print("interrupted")
    thread.join()
    done[0].launch([out])
    print(out.tolist(), len(calls))
    """
    assert python(COMPILER + code, TACK_CACHE="0") == "interrupted\n[5.0, 5.0, 5.0, 5.0] 2\n"


def test_threads_that_ask_at_once_compile_once() -> None:
    code = """
    made = []
    fail = lambda: time.sleep(0.2)
    threads = [threading.Thread(target=lambda: made.append(hand_kernels.fill(cpu, 5.0))) for _ in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
    print(len(calls), cpu.compiled, len(set(made)))
    """
    assert python(COMPILER + code, TACK_CACHE="0") == "1 1 1\n"


def test_llvm_text_that_is_wrong_is_a_compile_error() -> None:
    made = hand_kernels.source(CPU, "k", "define nonsense", [hand_kernels.array("a")], [])
    with pytest.raises(tack.CompileError):
        CPU.build(made, b"")


# ---- the Python thread pool ----

POOL = """
    import threading
    import numpy as np
    import hand_kernels, tack
    from tack import _runtime
    cpu = _runtime.device("cpu", 3)
    k = hand_kernels.saxpy(cpu)
    x, y, out = (tack.array(np.arange(2_000_000, dtype=np.float32)) for _ in range(3))
    def run(times=20):
        for a in range(times):
            k.launch([x, y, out, float(a)])
        np.testing.assert_array_equal(out.numpy(), np.float32(times - 1) * x.numpy() + y.numpy())
    def names():
        return sum(t.name.startswith("tack") for t in threading.enumerate())
"""


def test_the_python_pool_runs_kernels_on_python_threads() -> None:
    code = """
    run()
    entries = k.schedule()["entries"]
    print(names() > 0, entries[0]["parallel"] > 0)
    """
    assert python(POOL + code, TACK_CPU_POOL="python") == "True True\n"
    assert python(POOL + code, TACK_CPU_POOL="native").startswith("False")


@pytest.mark.skipif(sys.platform != "linux", reason="forbids new threads in Linux's way")
def test_the_python_pool_is_the_fallback_where_the_native_one_cannot_start() -> None:
    code = """
    import resource, time
    from tack.runtime import python_pool
    helped = set()
    def helper():
        helped.add(threading.current_thread().name)
        time.sleep(0.2)
    python_pool.run(helper, 2)  # its two threads exist before none can be started any more
    run_job = python_pool.run
    def counted(work, helpers):
        helped.clear()
        def named():
            helped.add(threading.current_thread().name)
            work()
        run_job(named, helpers)
    python_pool.run = counted
    pages = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + (4 << 20)
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages, before[1]))
    try:
        while True:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    except RuntimeError:
        pass
    for a in range(20):
        k.launch([x, y, out, float(a)])
    resource.setrlimit(resource.RLIMIT_AS, before)
    run()
    print(k.schedule()["entries"][0]["parallel"] > 0, len(helped) > 0, flush=True)
    import os
    os._exit(0)  # without waiting for the sleepers
    """
    assert python(POOL + code, TACK_CPU_POOL="native") == "True True\n"


def test_the_python_pool_survives_fork_callers_and_missing_threads() -> None:
    code = """
    import os
    run()
    child = os.fork()
    if child == 0:
        try:
            run()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    threads = [threading.Thread(target=run) for _ in range(3)]
    outs = []
    def own(a):
        mine = tack.zeros(2_000_000)
        for _ in range(10):
            k.launch([x, y, mine, float(a)])
        outs.append(np.array_equal(mine.numpy(), np.float32(a) * x.numpy() + y.numpy()))
    threads = [threading.Thread(target=own, args=(a,)) for a in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert outs == [True] * 4, outs
    from tack.runtime import python_pool
    python_pool._executor.shutdown()
    run()   # the executor takes no more work: the calling thread does it all
    print("done")
    """
    assert python(POOL + code, TACK_CPU_POOL="python") == "done\n"
