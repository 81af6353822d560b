"""Devices: one test for each sentence of the documentation's section on them, in our own words, on the CPU."""

from __future__ import annotations

import gc
import runpy
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from documentation import page

import tack
from tack.runtime.dispatch import get_backend

NUMBERED = ("cuda", "hip", "level_zero")


@tack.kernel
def scale(x, out, factor):
    for i in range(x.shape[0]):
        out[i] = x[i] * factor


@tack.kernel
def nothing(n):
    for i in range(n):
        j = i


@pytest.fixture(autouse=True)
def _default_device_is_restored() -> Iterator[None]:
    before = tack.get_default_device()
    yield
    tack.set_default_device(before)


@pytest.fixture
def serial() -> Any:
    return tack.device("cpu", num_threads=1)


# -- names and identity


def test_the_cpu_is_always_there() -> None:
    d = tack.device("cpu")
    assert str(d) == "cpu" and d.type == "cpu" and repr(d) == "tack.device('cpu')"


@pytest.mark.parametrize("spec", ["metal", *NUMBERED, *(f"{kind}:1" for kind in NUMBERED)])
def test_every_documented_name_is_known(spec: str) -> None:
    """Here or not, it is a device's name: absence is a RuntimeError and not a ValueError."""
    try:
        assert tack.device(spec).type == spec.partition(":")[0]
    except RuntimeError as error:
        assert str(error).startswith(f"Cannot start the '{spec.partition(':')[0]}")


@pytest.mark.parametrize("spec", ["gpu", "", "CPU", "cpu:0", "cpu:1", "metal:0", "cuda:", "cuda:x", "cuda:-1", "cuda:1:2", " cpu"])
def test_other_names_are_value_errors(spec: str) -> None:
    with pytest.raises(ValueError) as info:
        tack.device(spec)
    assert repr(spec) in str(info.value)


def test_unknown_types_list_all() -> None:
    with pytest.raises(ValueError) as info:
        tack.device("gpu")
    for name in ("cpu", "metal", *NUMBERED):
        assert name in str(info.value)
    with pytest.raises(ValueError, match="cuda"):
        tack.device_count("gpu")


def test_asked_twice_it_is_the_same_device() -> None:
    assert tack.device("cpu") is tack.device("cpu")
    assert tack.device(tack.device("cpu")) is tack.device("cpu")


def test_the_same_device_has_the_kernels_it_compiled() -> None:
    @tack.kernel
    def twice(x):
        for i in range(x.shape[0]):
            x[i] = x[i] + x[i]

    x = tack.ones(4)
    twice(x)
    d = tack.device("cpu")
    before = d.compiled + d.loaded
    twice(tack.ones(9, device=tack.device("cpu")))
    assert d.compiled + d.loaded == before


def test_equality_is_identity(serial: Any) -> None:
    assert (
        tack.device("cpu") == tack.device("cpu")
        and tack.device("cpu") != serial
        and len({tack.device("cpu"), serial, tack.device("cpu")}) == 2
    )


# -- the default device


def test_with_nothing_set_the_default_is_the_cpu() -> None:
    assert tack.get_default_device() is tack.device("cpu")


def test_the_default_device_is_where_arrays_are_made_and_kernels_without_arrays_run(serial: Any) -> None:
    tack.set_default_device(serial)
    assert tack.get_default_device() is serial and tack.zeros(3).device is serial and tack.array([1]).device is serial
    before = serial.compiled + serial.loaded
    nothing(3)
    assert serial.compiled + serial.loaded == before + 1
    tack.set_default_device("cpu")
    assert tack.get_default_device() is tack.device("cpu") and tack.zeros(3).device is tack.device("cpu")


def test_with_makes_it_the_default_inside_the_block(serial: Any) -> None:
    with serial as entered:
        assert entered is serial and tack.get_default_device() is serial and tack.ones(2).device is serial
    assert tack.get_default_device() is tack.device("cpu")
    with pytest.raises(KeyError), serial:
        raise KeyError
    assert tack.get_default_device() is tack.device("cpu")


def test_with_is_for_one_thread_only(serial: Any) -> None:
    seen: list[Any] = []
    inside, done = threading.Event(), threading.Event()

    def other() -> None:
        inside.wait(10)
        seen.append(tack.get_default_device())
        with tack.device("cpu", num_threads=2):
            seen.append(tack.get_default_device())
            done.set()
            inside.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    with serial:
        inside.set()
        assert done.wait(10)
        assert tack.get_default_device() is serial
    thread.join(10)
    assert seen == [tack.device("cpu"), tack.device("cpu", num_threads=2)]


def test_with_blocks_nest(serial: Any) -> None:
    two = tack.device("cpu", num_threads=2)
    with serial:
        with two, serial:
            assert tack.get_default_device() is serial
        with two:
            assert tack.get_default_device() is two
        assert tack.get_default_device() is serial


def test_set_default_inside_a_block_holds_after_it(serial: Any) -> None:
    with tack.device("cpu"):
        tack.set_default_device(serial)
        assert tack.get_default_device() is tack.device("cpu")
    assert tack.get_default_device() is serial


# -- arrays and devices


@pytest.mark.parametrize("as_name", [True, False])
def test_every_constructor_takes_a_device(serial: Any, as_name: bool) -> None:
    d: Any = "cpu" if as_name else serial
    tack.set_default_device(tack.device("cpu", num_threads=2))
    a = tack.zeros(2)
    made = [
        tack.empty(2, device=d), tack.zeros(2, device=d), tack.ones(2, device=d), tack.full(2, 3, device=d), tack.arange(3, device=d),
        tack.linspace(0, 1, 3, device=d), tack.array([1, 2], device=d), tack.array(a, device=d), tack.array(np.ones(2), device=d),
        tack.asarray(np.ones(2), device=d), tack.asarray([1, 2], device=d), tack.empty_like(a, device=d), tack.zeros_like(a, device=d),
        tack.ones_like(a, device=d), tack.full_like(a, 2, device=d), tack.eye(3, device=d), tack.concatenate([a, a], device=d),
        tack.stack([a, a], device=d), tack.array_from_ptr(a.pointer, 2, tack.f32, device=d, owner=a),
    ]  # fmt: skip
    assert [x.device for x in made] == [tack.device(d)] * len(made)
    with pytest.raises(ValueError, match="nowhere"):
        tack.zeros(2, device="nowhere")
    with pytest.raises(TypeError, match="device="):
        tack.zeros(2, device=3)  # type: ignore[arg-type]


def test_to_device_answers_the_array_itself_where_its_memory_is_usable(serial: Any) -> None:
    a = tack.zeros(3)
    assert a.to_device(serial) is a and a.to_device("cpu") is a and a.device is tack.device("cpu")


def test_like_constructors_use_the_prototypes_device(serial: Any) -> None:
    a = tack.zeros(3, device=serial)
    for like in (tack.empty_like, tack.zeros_like, tack.ones_like):
        assert like(a).device is serial
    assert tack.full_like(a, 1).device is serial


def test_a_kernel_runs_on_the_default_device_when_that_can_address_its_arrays(serial: Any) -> None:
    x, out = tack.arange(8, dtype=tack.f32), tack.zeros(8)
    with serial:
        before = serial.compiled + serial.loaded
        scale(x, out, np.float64(3.0))
        assert serial.compiled + serial.loaded == before + 1
    assert out.tolist() == [3.0 * i for i in range(8)]


def test_copies_and_reductions_run_on_their_inputs_device(serial: Any) -> None:
    a = tack.ones((2, 2), device=serial)
    with tack.device("cpu", num_threads=2):
        assert {b.device for b in (a.copy(), a.astype(tack.f64), a[1:], a.T, a.reshape(4), tack.concatenate([a, a]))} == {serial}
        assert a.sum() == 4.0


def test_switching_the_default_invalidates_nothing(serial: Any) -> None:
    x, out = tack.arange(4, dtype=tack.f32), tack.zeros(4)
    scale(x, out, 2.0)
    tack.set_default_device(serial)
    assert x.device is tack.device("cpu")
    scale(x, out, 5.0)
    tack.set_default_device("cpu")
    scale(x, x, 2.0)
    assert out.tolist() == [0, 5, 10, 15] and x.tolist() == [0, 2, 4, 6]


# -- waiting and counting


def test_sync_and_synchronize_answer_nothing() -> None:
    assert tack.sync() is None and tack.device("cpu").synchronize() is None


@pytest.mark.parametrize("kind", NUMBERED)
def test_device_count_of_numbered_types(kind: str) -> None:
    count = tack.device_count(kind)
    assert isinstance(count, int) and count >= 0
    if count == 0:
        with pytest.raises(RuntimeError, match=f"^Cannot start the '{kind}' device: "):
            tack.device(kind)


def test_device_count_of_the_others() -> None:
    assert tack.device_count("cpu") == 1 and tack.device_count("metal") in (0, 1)


# -- options


def test_options_make_a_separate_device(serial: Any) -> None:
    assert serial is not tack.device("cpu") and serial is tack.device("cpu", num_threads=1)
    assert str(serial) == "cpu(num_threads=1)" and repr(serial) == "tack.device('cpu', num_threads=1)" and serial.threads == 1


def test_a_device_with_options_shares_memory_and_runs_on_arrays_made_before(serial: Any) -> None:
    x, out = tack.arange(5, dtype=tack.f32), tack.zeros(5)
    with serial:
        scale(x, out, 2.0)
        y = tack.ones(5)
    scale(y, out, 7.0)  # arrays of two devices that share memory
    assert out.tolist() == [7.0] * 5 and y.device is serial


def test_each_device_compiles_its_own_kernels(serial: Any) -> None:
    @tack.kernel
    def unique(x):
        for i in range(x.shape[0]):
            x[i] = x[i] * 3.0 + 17.0

    cpu = tack.device("cpu")
    x = tack.zeros(3)
    counts = [cpu.compiled + cpu.loaded, serial.compiled + serial.loaded]
    unique(x)
    with serial:
        unique(x)
    unique(x)
    assert [cpu.compiled + cpu.loaded, serial.compiled + serial.loaded] == [counts[0] + 1, counts[1] + 1]


@pytest.mark.parametrize("threads", [0, -1, 1 << 20])
def test_thread_counts_outside_the_range_are_value_errors(threads: int) -> None:
    with pytest.raises(ValueError, match=str(threads)):
        tack.device("cpu", num_threads=threads)


def test_options_are_checked() -> None:
    with pytest.raises(TypeError, match="num_threads"):
        tack.device("cpu", num_threads="2")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        tack.device("cpu", threads=2)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="num_threads"):
        tack.device("cuda", num_threads=2)
    with pytest.raises(ValueError, match="num_threads"):
        tack.device(tack.device("cpu"), num_threads=2)
    with pytest.raises(TypeError, match="name"):
        tack.device(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="None"):
        tack.set_default_device(None)  # type: ignore[arg-type]


# -- what a backend can do


def test_capabilities_are_asked_of_the_backend() -> None:
    be = get_backend()
    assert be.supports_f64 is True and be.supports_workgroups is False
    assert be.supported_atomic_dtypes == be.supported_dtypes == frozenset(tack.types.ARRAY_DTYPES)
    assert be.name == "cpu" and be.max_iterations is None
    assert tack.device("cpu")._backend.supports_f64 is True


def test_get_backend_follows_the_default_device(serial: Any) -> None:
    with serial:
        assert get_backend().device is serial
    assert get_backend().device is tack.device("cpu")


# -- unavailable devices

ABSENT = [kind for kind in ("metal", *NUMBERED) if tack.device_count(kind) == 0]


@pytest.mark.parametrize("kind", ABSENT)
def test_the_message_of_an_unavailable_device(kind: str) -> None:
    with pytest.raises(RuntimeError) as info:
        tack.device(kind)
    first, *rest = str(info.value).split("\n")
    assert first.startswith(f"Cannot start the '{kind}' device: ") and first.endswith(".")
    if first.endswith("missing dependency."):
        assert rest[0].startswith("  ") and rest[0].strip(), "the loader's reason"
        assert any(line.startswith("  Requires ") for line in rest)
        assert any("install" in line and line.startswith("    ") for line in rest)
    with pytest.raises(RuntimeError):
        tack.zeros(3, device=kind)
    with pytest.raises(RuntimeError):
        tack.set_default_device(kind)
    assert tack.get_default_device() is tack.device("cpu")


# -- the documentation's own example


def test_the_documented_program_runs_word_for_word(tmp_path: Path) -> None:
    program = tmp_path / "page.py"
    program.write_text(page("import numpy as np\nimport tack", "On a machine with a GPU the same calls"))
    names = runpy.run_path(str(program))
    assert names["out"].tolist() == [3.0 * i for i in range(8)]


def test_a_device_may_be_dropped_and_asked_for_again() -> None:
    d = tack.device("cpu", num_threads=2)
    key = id(d)
    del d
    gc.collect()
    assert id(tack.device("cpu", num_threads=2)) == key
