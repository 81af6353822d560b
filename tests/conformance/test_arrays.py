"""Arrays on every device: what the host reads and writes is in its place in the device's order, and sum, min and max."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tack
from tack import reductions


@tack.kernel
def add_one(x):
    for i in range(x.shape[0]):
        x[i] = x[i] + 1


@tack.kernel
def add_one_everywhere(x):
    for i, j in tack.ndrange(x.shape[0], x.shape[1]):
        x[i, j] = x[i, j] + 1


@tack.kernel
def total(x):
    s = tack.i64(0)
    for i in range(x.shape[0]):
        s += x[i]
    return s


N = 5000


def counted(times: int = 20, dtype: Any = tack.i32) -> tack.Array:
    """An array with a queue of work behind it: its elements are ``times`` when that is done, and read too early, fewer."""
    x = tack.zeros(N, dtype=dtype)
    for _ in range(times):
        add_one(x)
    return x


READS: dict[str, Callable[[tack.Array], Any]] = {
    "numpy": lambda x: x.numpy()[-1],
    "index": lambda x: x[N - 1],
    "negative index": lambda x: x[-1],
    "item": lambda x: x[-1:].item(),
    "0-d": lambda x: x[-1:].reshape(())[()],
    "tolist": lambda x: x.tolist()[-1],
    "iteration": lambda x: list(x[-2:])[1],
    "strided": lambda x: x[::-7].numpy()[0],
    "slice": lambda x: x[N // 2 :].tolist()[-1],
    "__array__": lambda x: np.asarray(x)[-1],
    "__array__ with a dtype": lambda x: np.array(x, dtype=np.float64)[-1],
    "repr": lambda x: int(repr(x[-1:]).split("[")[1].split("]")[0]),
    "int": lambda x: int(x[-1:]),
    "float": lambda x: float(x[-1:]),
    "bool": lambda x: 20 * bool(x[-1:]),
    "index protocol": lambda x: x[-1:].reshape(()).__index__(),
    "sum": lambda x: x.sum() / N,
    "min": lambda x: x.min(),
    "max": lambda x: x.max(),
    "mean": lambda x: x.mean(),
    "copy": lambda x: x.copy()[-1],
    "deepcopy": lambda x: copy.deepcopy(x)[-1],
    "astype": lambda x: x.astype(tack.f32)[-1],
    "to_device": lambda x: x.to_device("cpu")[-1],
    "pickle": lambda x: pickle.loads(pickle.dumps(x))[-1],
    "tack.array": lambda x: tack.array(x, dtype=tack.i64, device="cpu")[-1],
    "asarray": lambda x: tack.asarray(x, device="cpu")[-1],
    "concatenate": lambda x: tack.concatenate([x, x])[-1],
    "copyto NumPy": lambda x: _copied(x, np.zeros(N, np.int32)),
    "copyto another type": lambda x: _copied(x, np.zeros(N)),
    "copyto an array": lambda x: _copied(x, tack.zeros(N, dtype=tack.i32)),
    "copyto the CPU": lambda x: _copied(x, tack.zeros(N, dtype=tack.i32, device="cpu")),
    "DLPack": lambda x: tack.from_dlpack(x)[-1],
    "DLPack to the host": lambda x: np.from_dlpack(tack.from_dlpack(x.__dlpack__(dl_device=(1, 0))))[-1],
    "a returned scalar": lambda x: total(x) / N,
    "sync": lambda x: (tack.sync(), x[-1])[1],
    "synchronize": lambda x: (x.device.synchronize(), x[-1])[1],
}


def _copied(x: tack.Array, out: Any) -> Any:
    tack.copyto(out, x)
    return out[-1]


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_the_host_waits_where_it_reads(device: tack.Device, read: Callable[[tack.Array], Any]) -> None:
    assert read(counted()) == 20


def test_a_cuda_array_interface_waits_too(device: tack.Device) -> None:
    x = counted()
    if device.type != "cuda":
        assert not hasattr(x, "__cuda_array_interface__")
        return
    again = tack.array_from_ptr(x.__cuda_array_interface__["data"][0], N, tack.i32, owner=x)
    assert again[-1] == 20


def test_fills_and_host_writes_take_their_place(device: tack.Device) -> None:
    x = counted()
    x.fill(100)
    add_one(x)
    x[7] = 5
    add_one(x)
    x[10:20] = 0
    x[30:40:2] = np.arange(5, dtype=np.int32)
    x[50:60] = tack.full(10, 9, dtype=tack.i32)
    add_one(x)
    expected = np.full(N, 103)
    expected[7], expected[10:20], expected[30:40:2], expected[50:60] = 7, 1, np.arange(5) + 1, 10
    np.testing.assert_array_equal(x.numpy(), expected)


def test_copyto_has_taken_its_source_when_it_returns(device: tack.Device) -> None:
    source = np.zeros(200_000, np.int32)
    x = tack.empty(source.size, dtype=tack.i32)
    spread = tack.zeros((source.size, 2), dtype=tack.i32)[:, 0]
    results = []
    for value in range(5):
        source[:] = value
        for target in (x, spread):
            tack.copyto(target, source)
            results.append((target.copy(), value))
        source[:] = -1
    made = tack.array(source)
    source[:] = -2
    for got, value in [*results, (made, -1)]:
        np.testing.assert_array_equal(got.numpy(), value)


def test_copies_between_arrays_are_in_order(device: tack.Device) -> None:
    x = counted()
    y = x.copy()
    add_one(x)
    z = tack.empty_like(x)
    tack.copyto(z, x)
    add_one(x)
    tack.copyto(x[1:], x[:-1])  # overlapping: as if the source were copied first
    host = tack.zeros(N, dtype=tack.i32, device="cpu")
    tack.copyto(host, x)
    assert (y[0], z[0], x[0], x[-1], host[-1]) == (20, 21, 22, 22, 22)


def test_views_of_every_kind_read_and_write(device: tack.Device) -> None:
    values = np.arange(4 * 5 * 6, dtype=np.int32).reshape(4, 5, 6)
    for key in (np.s_[1:, ::2, ::-1], np.s_[..., 3], np.s_[2], np.s_[:, None, 1:3], np.s_[::-1, 4:1:-2], np.s_[1, 2, 3:4], np.s_[:0]):
        a, b = tack.array(values), values.copy()
        np.testing.assert_array_equal(a[key].numpy(), b[key])
        np.testing.assert_array_equal(a.T[tuple([slice(None)] * 3)].numpy(), b.T)
        assert a[key].tolist() == b[key].tolist() and a[key].sum() == b[key].sum()
        a[key] = -5
        b[key] = -5
        np.testing.assert_array_equal(a.numpy(), b)  # what lies between the elements is as it was
        a[key] = a[key].copy().astype(tack.i16).numpy() * 2
        b[key] = -10
        np.testing.assert_array_equal(a.numpy(), b)
        np.testing.assert_array_equal(tack.array(a[key], dtype=tack.f32).numpy(), b[key])


def test_a_strided_view_in_a_kernel_changes_only_its_elements(device: tack.Device) -> None:
    a, b = tack.array(np.zeros((6, 8), np.int32)), np.zeros((6, 8), np.int32)
    add_one_everywhere(a[::2, 6:0:-2])
    b[::2, 6:0:-2] += 1
    np.testing.assert_array_equal(a.numpy(), b)


def test_what_the_host_cannot_address_is_not_shown_in_place(device: tack.Device) -> None:
    x = tack.zeros((3, 4))
    if device.host_addressable:
        assert memoryview(x).shape == (3, 4) and x.__array__(copy=False).base is not None
        return
    with pytest.raises(BufferError, match="cannot address"):
        memoryview(x)
    with pytest.raises(ValueError, match="without a copy"):
        x.__array__(copy=False)
    assert np.asarray(x).tolist() == [[0.0] * 4] * 3 and "shape=(3, 4)" in repr(x)


# -- sum, min and max: by the array's own methods, and by the kernels that GPUs use, on every device


class Kernels:
    """The kernels that reduce f32 on GPUs, called as an array's methods are."""

    sum, min, max = staticmethod(reductions.total), staticmethod(reductions.smallest), staticmethod(reductions.greatest)


METHODS = [pytest.param(tack.Array, id="methods"), pytest.param(Kernels, id="kernels")]
VIEWS = [
    np.s_[...], np.s_[::2], np.s_[:, 1:], np.s_[:, ::-1], np.s_[..., 2], np.s_[1, :, 3:], np.s_[..., ::3], np.s_[:1, :1, :1], np.s_[3, 2],
]  # fmt: skip


@pytest.mark.parametrize("how", METHODS)
def test_reductions_of_floats(device: tack.Device, how: Any) -> None:
    values = np.random.default_rng(3).standard_normal((7, 6, 50)).astype(np.float32)
    a = tack.array(values)
    cases = [(a[key], values[key]) for key in VIEWS] + [(a.T, values.T), (a.T[::2], values.T[::2])]
    deep = values.reshape(7, 2, 3, 2, 5, 5)
    cases.append((a.reshape(deep.shape)[::2, :, ::2, :, ::2, ::2], deep[::2, :, ::2, :, ::2, ::2]))
    for got, want in cases:
        assert math.isclose(how.sum(got), want.astype(np.float64).sum(), rel_tol=1e-5, abs_tol=1e-4)
        assert how.min(got) == want.min() and how.max(got) == want.max()
        assert type(how.sum(got)) is type(how.min(got)) is type(how.max(got)) is float
    assert how.sum(tack.full((), 2.5)) == how.min(tack.full((), 2.5)) == how.max(tack.full((), 2.5)) == 2.5


@pytest.mark.parametrize("how", METHODS)
def test_a_sum_of_many_floats_is_as_exact_as_numpys(device: tack.Device, how: Any) -> None:
    values = np.random.default_rng(5).random(2_000_000, dtype=np.float32)
    exact = math.fsum(values.tolist())
    assert abs(how.sum(tack.array(values)) - exact) <= 1e-6 * exact  # one running f32 sum would be off by 1e-4


@pytest.mark.parametrize("how", METHODS)
@pytest.mark.parametrize("at", [0, 1, 777, 2999])
def test_minimum_and_maximum_propagate_nans(device: tack.Device, how: Any, at: int) -> None:
    values = np.arange(3000, dtype=np.float32)
    values[at] = np.nan
    for a in (tack.array(values), tack.array(np.stack([values, values], 1))[:, 0]):
        assert math.isnan(how.min(a)) and math.isnan(how.max(a)) and math.isnan(how.sum(a))


@pytest.mark.parametrize("how", METHODS)
def test_infinities(device: tack.Device, how: Any) -> None:
    for value in (math.inf, -math.inf):
        a = tack.full((4, 3), value)
        assert how.sum(a) == how.min(a) == how.max(a) == value
    mixed = tack.array([1.0, math.inf, -math.inf])
    assert how.min(mixed) == -math.inf and how.max(mixed) == math.inf and math.isnan(how.sum(mixed))


def test_empty_arrays(device: tack.Device) -> None:
    for shape in (0, (3, 0), (0, 4, 0)):
        for dtype in (tack.f32, tack.i32, tack.u64, *([tack.f64] if device.supports_f64 else [])):
            a = tack.zeros(shape, dtype=dtype)
            assert a.sum() == 0 and type(a.sum()) is (float if dtype.is_float else int)
            for method in (a.min, a.max, a.mean):
                with pytest.raises(ValueError, match="of an empty array"):
                    method()


@pytest.mark.parametrize("dtype", [t for t in tack.types.ARRAY_DTYPES if t.is_int], ids=lambda t: t.name)
def test_sums_of_integers_are_exact(device: tack.Device, dtype: tack.DType) -> None:
    a = tack.full(70_000, dtype.max, dtype=dtype)
    a[0] = dtype.min
    assert a.sum() == 69_999 * dtype.max + dtype.min and a.min() == dtype.min and a.max() == dtype.max
    assert type(a.sum()) is type(a.min()) is int and a[::2].sum() == 34_999 * dtype.max + dtype.min


def test_means(device: tack.Device) -> None:
    assert tack.array([1, 2, 4, 5]).mean() == 3.0 and tack.array([0.5, 1.5]).mean() == 1.0
    assert tack.arange(10, dtype=tack.f32)[::3].mean() == 4.5
    if device.supports_f64:
        assert tack.arange(10, dtype=tack.f64)[::3].mean() == 4.5


def test_reductions_run_on_the_arrays_device_whatever_the_default(device: tack.Device) -> None:
    a = tack.arange(100, dtype=tack.f32)
    with tack.device("cpu"):
        kernels = tack.device("cpu").compiled + tack.device("cpu").loaded
        assert (a.sum(), a.min(), a.max()) == (4950.0, 0.0, 99.0)
        assert tack.device("cpu").compiled + tack.device("cpu").loaded == kernels  # there NumPy reduces
