"""The dispatcher: binding arguments, keys, guards, devices, results; with kernels that are written in LLVM IR by hand."""

from __future__ import annotations

import contextlib
import enum
import pickle
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import tack
from tack import _runtime
from tack.types import BOOL, f32, f64, i32, i64, u8

import hand_kernels  # isort: skip
from dispatcher_support import Recorder, array, saxpy  # isort: skip

CPU = _runtime.device("cpu")


@pytest.fixture
def xyz() -> tuple[Any, Any, Any]:
    return array(np.arange(8, dtype=np.float32)), array(np.ones(8, np.float32)), array(np.zeros(8, np.float32))


def expected(a: float) -> Any:
    return np.float32(a) * np.arange(8, dtype=np.float32) + 1


# ---- binding ----


def test_positions_keywords_and_defaults_reach_the_same_parameters(xyz: Any) -> None:
    x, y, out = xyz
    k = saxpy(defaults=(7.0,))
    calls: list[tuple[tuple[Any, ...], dict[str, Any], float]] = [
        ((x, y, out, 2.0), {}, 2.0),
        ((x, y, out), {}, 7.0),
        ((x, y), {"out": out, "a": 3.0}, 3.0),
        ((x, y), {"a": 3.5, "out": out}, 3.5),
        ((x,), {"out": out, "y": y}, 7.0),
        ((), {"a": 4.0, "out": out, "y": y, "x": x}, 4.0),
    ]
    for args, kwargs, a in calls:
        out.fill(0)
        assert k.call(*args, **kwargs) is None
        np.testing.assert_array_equal(out.numpy(), expected(a))
    assert len(k.misses) == 1
    assert k.misses[0][0][0] is x
    assert k.misses[0][1] is CPU


def test_keyword_names_need_not_be_interned(xyz: Any) -> None:
    x, y, out = xyz
    k = saxpy()
    name = "".join(["o", "ut"])
    assert name is not sys.intern("out")
    k.call(x, y, **{name: out, "a": 2.0})
    np.testing.assert_array_equal(out.numpy(), expected(2.0))


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((1, 2, 3, 4, 5), {}),
        ((1, 2, 3), {}),
        ((1, 2, 3), {"b": 4}),
        ((1, 2, 3, 4), {"a": 4}),
        ((1, 2, 3), {"x": 4}),
        ((1, 2, 3, "text"), {}),
        ((1, 2, 3, object()), {}),
        ((1, 2, 3, 1j), {}),
        ((1, 2, 3, [1.0]), {}),
        ((1, 2, 3, np.float16(1)), {}),
        ((1, 2, 3, np.zeros(3, ">f4")), {}),
        ((1, 2, 3, np.zeros(3, "M8[s]")), {}),
        ((1, 2, 3, np.zeros(3, "c8")), {}),
        ((1, 2, 3, np.zeros(3, [("p", "f4"), ("q", "f4")])), {}),
        ((1, 2, 3, np.frombuffer(b"\0" * 9, "u1")[1:9].view("f4")), {}),
        ((1, 2, 3, np.zeros(4, [("p", "f4"), ("q", "u1")])["p"]), {}),
        ((1, 2, 3, np.zeros((1,) * 9, "f4")), {}),
        ((1, 2, 3, tack.Array.__new__(tack.Array)), {}),
    ],
)
def test_what_does_not_fit_goes_to_bad_call_as_it_came(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    k = saxpy()
    with pytest.raises(TypeError, match="refused"):
        k.call(*args, **kwargs)
    (got,) = k.bad
    assert got[0] == args if not any(isinstance(a, np.ndarray) for a in args) else got[0][3] is args[3]
    assert got[1] == kwargs
    assert not k.misses


def test_position_only_and_keyword_only_parameters(xyz: tuple[Any, Any, Any]) -> None:
    x, y, out = xyz
    k = Recorder(lambda device, args: hand_kernels.saxpy(device), ("x", "y", "out", "a"), (2.0, _runtime.ABSENT, 0.5), only=(1, 2))
    for args, kwargs in (((x, y), {"out": out}), ((x, y), {"out": out, "a": 0.5}), ((x,), {"a": 0.5, "out": out, "y": y})):
        out.fill(0)
        k.call(*args, **kwargs)
        assert out.tolist() == [0.5 * v + 1 for v in range(8)]
    bad: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), {"x": x, "y": y, "out": out}),
        ((x, y, out), {}),
        ((x, y, out, 0.5), {}),
        ((x, y), {}),
        ((x, y), {"a": 0.5}),
        ((x, y), {"x": x, "out": out}),
    ]
    for args, kwargs in bad:
        with pytest.raises(TypeError, match="refused"):
            k.call(*args, **kwargs)
    assert len(k.bad) == len(bad) and len(k.misses) == 1


def test_a_bad_call_that_raises_nothing_is_still_an_error() -> None:
    k = saxpy()
    k.call.set_bad_call(lambda args, kwargs: None)
    with pytest.raises(TypeError, match="Kernel 'k': the arguments do not fit"):
        k.call()


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 10**40])
def test_an_int_beyond_64_bits_is_an_overflow_error_that_names_the_parameter(xyz: Any, value: int) -> None:
    k = saxpy()
    with pytest.raises(OverflowError, match=f"Kernel 'k': parameter 'a' is {value}"):
        k.call(*xyz, value)


# ---- keys ----


class Colour(enum.IntEnum):
    RED = 3


def test_scalar_kinds_have_kernels_of_their_own_and_values_do_not() -> None:
    x, y, out = (array(np.arange(8)), array(np.ones(8, np.int64)), array(np.zeros(8, np.int64)))
    kinds = {int: "integer", Colour: "integer", bool: "boolean", np.bool_: "boolean", np.int64: "strong"}

    def make(device: Any, args: tuple[Any, ...]) -> Any:
        kind = "unsigned" if isinstance(args[3], int) and args[3] > 2**63 - 1 else kinds[type(args[3])]
        return hand_kernels.saxpy(device, kind, i64, i64)

    k = Recorder(make, ("x", "y", "out", "a"))
    for values, count in [
        ((2, -5, 2**63 - 1, Colour.RED), 1),
        ((2**63, 2**64 - 1), 2),
        ((True, False, np.True_), 3),
        ((np.int64(-4), np.int64(9)), 4),
    ]:
        for a in values:
            k.call(x, y, out, a)
            wanted = (np.arange(8, dtype=object) * int(a) + 1) % 2**64
            np.testing.assert_array_equal(out.numpy().astype(np.uint64), wanted.astype(np.uint64))
        assert k.call.specializations == len(k.misses) == count


def test_floats_weak_and_strong(xyz: Any) -> None:
    strong = {np.float64: f64, np.float32: f32, np.int32: i32}

    def make(device: Any, args: tuple[Any, ...]) -> Any:
        dtype = strong.get(type(args[3]))
        return hand_kernels.saxpy(device, "strong" if dtype else "floating", f32, dtype or f64)

    k = Recorder(make, ("x", "y", "out", "a"))
    for n, a in enumerate([0.1, np.float64(0.1), np.float32(0.1), np.int32(3)], 1):
        for _ in range(2):
            k.call(*xyz, a)
            np.testing.assert_array_equal(xyz[2].numpy(), expected(float(a)))
        assert len(k.misses) == n


def test_a_kernel_made_for_another_kind_is_refused_not_misread(xyz: Any) -> None:
    k = saxpy()
    with pytest.raises(TypeError, match="parameter 'a' is a float, an int was given"):
        k.call(*xyz, 3)
    with pytest.raises(TypeError, match="parameter 'a' is a float, None was given"):
        k.call(*xyz, None)


def test_array_types_make_kernels_and_lengths_do_not() -> None:
    seen: list[Any] = []
    k = Recorder(lambda device, args: seen.append(args) or pytest.skip("unused"), ("a",))

    def misses(a: Any) -> bool:
        before = len(k.misses)
        with pytest.raises(RuntimeError, match="stop"):
            k.call(a)
        return len(k.misses) > before

    def stop(device: Any, args: Any) -> Any:
        raise RuntimeError("stop")

    k.make = stop
    assert misses(array(np.zeros(8, np.float32)))  # an exception in the miss passes, and nothing is remembered
    assert misses(array(np.zeros(8, np.float32)))

    k = Recorder(lambda device, args: hand_kernels.fill(device, 1.0), ("out",))
    base = np.zeros((6, 8), np.float32)
    k.call(array(base[0]))
    k.call(array(base[0, :3]))
    k.call(array(np.zeros(0, np.float32)))
    assert len(k.misses) == 1
    with pytest.raises(TypeError, match="dtype"):
        k.call(array(base[0].astype(np.float64)))
    with pytest.raises(TypeError, match="dimensions"):
        k.call(array(base))
    strided = array(base)[:, 2]
    with pytest.raises(TypeError, match="contiguous"):
        k.call(strided)
    assert len(k.misses) == 4
    k.call(array(base)[2])
    assert len(k.misses) == 4


# ---- NumPy ----


def test_numpy_arrays_are_used_in_place(xyz: Any) -> None:
    k = saxpy()
    x, y, out = np.arange(8, dtype=np.float32), np.ones(8, np.float32), np.zeros(8, np.float32)
    k.call(x, y, out, 2.0)
    np.testing.assert_array_equal(out, expected(2.0))
    k.call(xyz[0], y, out, 3.0)
    np.testing.assert_array_equal(out, expected(3.0))
    assert len(k.misses) == 1


def test_numpy_views_keep_their_layout_and_flags() -> None:
    signatures: list[tuple[int, bool]] = []

    def make(device: Any, args: tuple[Any, ...]) -> Any:
        signatures.append((args[0].strides[0], args[0].flags.writeable))
        return hand_kernels.fill(device, 1.0)

    k = Recorder(make, ("out",))
    data = np.zeros(16, np.float32)
    k.call(data[4:8])
    assert data.sum() == 4
    for view in (data[::2], data[::-1]):
        with pytest.raises(TypeError, match="contiguous"):
            k.call(view)
    frozen = data[:4]
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        k.call(frozen)
    assert signatures == [(4, True), (8, True), (-4, True), (4, False)]
    assert data.sum() == 4


def test_numpy_bools_are_u8() -> None:
    seen: list[str] = []
    k = Recorder(lambda device, args: seen.append("miss") or hand_kernels.saxpy(device, "integer", u8), ("x", "y", "out", "a"))
    x, y, out = np.array([True, False, True]), np.zeros(3, np.uint8), np.zeros(3, np.uint8)
    k.call(x, y, out, 5)
    np.testing.assert_array_equal(out, [5, 0, 5])
    k.call(y, x, out, 5)
    np.testing.assert_array_equal(out, [1, 0, 1])
    assert seen == ["miss"]


def test_many_numpy_arrays_in_one_call() -> None:
    names = tuple("abcdefghij")
    arrays = [np.zeros(4, np.float32) for _ in names]

    def make(device: Any, args: tuple[Any, ...]) -> Any:
        body = "  %po = getelementptr float, ptr %out, i64 %i\n  store float 5.0, ptr %po"
        text = hand_kernels.loop("many", hand_kernels.word(0, "out", "ptr"), body)
        arguments = [hand_kernels.array(name, written=True) for name in names]
        return device.build(hand_kernels.source(device, "many", text, arguments, [hand_kernels.ParamSlot("pointer", 0)]), b"")

    k = Recorder(make, names)
    counts = [sys.getrefcount(a) for a in arrays]
    for _ in range(3):
        k.call(*arrays)
    assert arrays[0].tolist() == [5.0] * 4
    k.misses.clear()
    assert [sys.getrefcount(a) for a in arrays] == counts
    with contextlib.suppress(TypeError):
        k.call(*arrays[:-1], np.zeros(4, "M8[s]"))
    assert len(k.bad) == 1
    k.bad.clear()
    assert [sys.getrefcount(a) for a in arrays] == counts


def test_numpy_arrays_at_odd_places() -> None:
    k = Recorder(lambda device, args: hand_kernels.fill(device, 1.0), ("out",))
    k.call(np.zeros((2, 0), np.float32)[1])
    memory = np.zeros(33, np.uint8)
    k.call(memory[1:1].view(np.float32))  # not aligned, but no element either
    assert len(k.misses) == 1
    for refused in (
        memory[1:].view(np.float32),  # not aligned
        memory[:32].view(">f4"),  # the other byte order
        memory[:30].view([("x", "f4"), ("y", "u1")])["x"],  # elements at odd distances
    ):
        with pytest.raises(TypeError, match="refused"):
            k.call(refused)
    assert not memory.any()


def test_a_numpy_array_is_let_go_after_the_call() -> None:
    k = saxpy()
    arrays = [np.zeros(8, np.float32) for _ in range(3)]
    before = [sys.getrefcount(a) for a in arrays]
    for _ in range(3):
        k.call(*arrays, 1.0)
    k.misses.clear()
    assert [sys.getrefcount(a) for a in arrays] == before
    arrays[0].resize(16, refcheck=False)


# ---- devices ----


def test_the_default_device_runs_it_and_has_a_kernel_of_its_own(xyz: Any) -> None:
    serial = _runtime.device("cpu", num_threads=1)
    k = saxpy()
    k.call(*xyz, 2.0)
    with serial:
        k.call(*xyz, 2.0)
        k.call(*(a.numpy() for a in xyz[:2]), np.zeros(8, np.float32), 2.0)
        with CPU:
            k.call(*xyz, 2.0)
        k.call(*xyz, 2.0)
    k.call(*xyz, 2.0)
    assert [device for _, device in k.misses] == [CPU, serial]


def test_a_with_block_is_its_threads_own(xyz: Any) -> None:
    k = saxpy()
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with _runtime.device("cpu", num_threads=1):
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(10)
    k.call(*xyz, 2.0)
    leave.set()
    thread.join()
    assert [device for _, device in k.misses] == [CPU]


def test_without_arrays_it_runs_on_the_default_device() -> None:
    seen: list[Any] = []

    def make(device: Any, args: Any) -> Any:
        seen.append(device)
        raise RuntimeError("stop")

    k = Recorder(make, ("n",))
    serial = _runtime.device("cpu", num_threads=1)
    for where in (CPU, serial):
        with where, pytest.raises(RuntimeError, match="stop"):
            k.call(1)
    assert seen == [CPU, serial]


def test_a_kernel_of_another_device_is_refused(xyz: Any) -> None:
    k = Recorder(lambda device, args: hand_kernels.saxpy(_runtime.device("cpu", num_threads=1)), ("x", "y", "out", "a"))
    with pytest.raises(RuntimeError, match=r"built for cpu\(num_threads=1\) but must run on cpu"):
        k.call(*xyz, 1.0)


# ---- results ----


@pytest.mark.parametrize(
    ("dtype", "bits", "value"),
    [
        (f32, 0x3FC00000, 1.5),
        (f64, 0xBFF8000000000000 - 2**64, -1.5),
        (i64, -(2**63), -(2**63)),
        (i32, -7, -7),
        (tack.u64, -1, 2**64 - 1),
        (u8, -1, 255),
        (BOOL, 1, True),
        (BOOL, 0, False),
    ],
)
def test_results_are_python_numbers(dtype: Any, bits: int, value: Any) -> None:
    k = Recorder(lambda device, args: hand_kernels.answer(device, dtype, bits), ("out",))
    got = k.call(array(np.zeros(4, np.float32)))
    assert got == value
    assert type(got) is type(value)


# ---- what a kernel object is ----


def test_attributes_and_representation() -> None:
    k = saxpy().call
    assert k.__name__ == k.__qualname__ == "k"
    assert repr(k) == "<tack.kernel k>"
    k.__qualname__, k.__doc__, k.__module__, k.anything = "Outer.k", "text", "somewhere", 3
    assert (k.__qualname__, k.__doc__, k.__module__, k.anything) == ("Outer.k", "text", "somewhere", 3)
    assert callable(k)
    assert weakref.ref(k)() is k
    assert {k: 1}[k] == 1


MODULE_LEVEL = saxpy().call
MODULE_LEVEL.__module__, MODULE_LEVEL.__qualname__ = __name__, "MODULE_LEVEL"


def test_it_pickles_by_reference() -> None:
    assert pickle.loads(pickle.dumps(MODULE_LEVEL)) is MODULE_LEVEL


def test_in_a_class_it_is_a_method(xyz: Any) -> None:
    k = saxpy()
    x, y, out = xyz

    class Data(tack.Array):
        run = k.call

    data = Data(CPU, "f32", (8,))
    data.write_from(x.numpy())
    data.run(y, out, 2.0)
    np.testing.assert_array_equal(out.numpy(), expected(2.0))
    bound = data.run
    assert bound.__self__ is data
    bound(y, out=out, a=3.0)
    np.testing.assert_array_equal(out.numpy(), expected(3.0))
    assert Data.run is k.call


def test_an_uninitialised_one_is_refused() -> None:
    k = _runtime.Dispatcher.__new__(_runtime.Dispatcher)  # type: ignore[call-arg]
    for use in (lambda: k(1), lambda: k.specializations, k.clear, lambda: repr(k)):
        with pytest.raises(TypeError, match="never initialised"):
            use()
    done = saxpy().call
    with pytest.raises(TypeError, match="twice"):
        done.__init__("k", (), (), print)  # type: ignore[misc]
    with pytest.raises(ValueError, match="more defaults"):
        _runtime.Dispatcher("k", ("a",), (1, 2), print)
    with pytest.raises(ValueError, match="more positional-only and keyword-only"):
        _runtime.Dispatcher("k", ("a", "b"), (), print, 1, 2)
    with pytest.raises(TypeError, match="tuple of str"):
        _runtime.Dispatcher("k", (1,), (), print)  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", [None, (), (1, []), (None, [])])
def test_a_malformed_answer_of_the_miss_is_an_error(answer: Any) -> None:
    k = _runtime.Dispatcher("k", ("a",), (), lambda *args: answer)
    with pytest.raises(RuntimeError, match="miss callback"):
        k(1)


# ---- no Python on a hit, and threads ----


def test_no_python_runs_on_a_hit(xyz: Any) -> None:
    namespace = {"G": 1.0}
    k = Recorder(lambda device, args: hand_kernels.saxpy(device), ("x", "y", "out", "a"), guards=[(namespace, "G", 1.0)])
    k.call(*xyz, 2.0)
    events: list[str] = []

    def profile(frame: Any, event: str, arg: Any) -> None:
        if event == "call" or (event == "c_call" and arg is not sys.setprofile and arg is not k.call):
            events.append(f"{event} {frame.f_code.co_name} {arg!r}")

    call, (x, y, out) = k.call, xyz
    sys.setprofile(profile)
    call(x, y, out, 2.0)
    call(x, y, out=out, a=3.0)
    sys.setprofile(None)
    assert events == []


def test_a_long_launch_lets_other_threads_run() -> None:
    k = Recorder(lambda device, args: hand_kernels.slow(device, 200_000_000), ("out",))
    out = array(np.zeros(1, np.float32))
    turns, stop = 0, threading.Event()

    def count() -> None:
        nonlocal turns
        while not stop.wait(0.001):
            turns += 1

    thread = threading.Thread(target=count)
    thread.start()
    while turns == 0:
        pass
    before = turns
    k.call(out)
    after = turns
    stop.set()
    thread.join()
    assert after - before >= 10


def test_calls_from_many_threads_while_it_is_cleared() -> None:
    namespace = {"G": 1.0}
    k = Recorder(lambda device, args: hand_kernels.saxpy(device), ("x", "y", "out", "a"), guards=[(namespace, "G", 1.0)])
    failures: list[Any] = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def work(a: float) -> None:
        try:
            x, y, out = (array(np.arange(8, dtype=np.float32)), array(np.ones(8, np.float32)), array(np.zeros(8, np.float32)))
            for turn in range(300):
                if turn % 50 == 0:
                    k.call.clear()
                k.call(x, y, out, a)
                if not np.array_equal(out.numpy(), expected(a)):
                    failures.append((a, out.numpy()))
        except BaseException as error:  # noqa: BLE001 -- whatever happens in a thread is a failure of the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(float(a),)) for a in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert not failures
