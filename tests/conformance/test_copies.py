"""Copies, conversions and fills of any layout: their elements, their place in the device's order, and that no host is in their way."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import child
import numpy as np
import pytest
from test_arrays import N, add_one, counted

import tack
from tack.runtime.host_types import cast_array
from tack.types import ARRAY_DTYPES, DType

DEEP = (2, 3, 2, 3, 2, 2, 3, 2)
LAYOUTS = {
    "dense": ((60, 44), np.s_[:, :]),
    "rows": ((60, 44), np.s_[::3]),
    "columns": ((60, 44), np.s_[:, 5:9]),
    "backwards": ((60, 44), np.s_[::-1, ::-2]),
    "one column": ((60, 44), np.s_[:, 7]),
    "transposed": ((60, 44), "T"),
    "a block": ((9, 10, 11, 12), np.s_[1:8, ::2, 1:, ::-3]),
    "turned": ((9, 10, 11, 12), (2, 0, 3, 1)),
    "eight dimensions": (tuple(2 * n for n in DEEP), (np.s_[::2],) * 8),
    "eight turned": (DEEP, (7, 1, 5, 3, 4, 0, 6, 2)),
    "0-d": ((3, 4), np.s_[1, 2, ...]),
    "nothing": ((3, 4), np.s_[3:, ::2]),
}


def laid_out(values: Any, how: Any) -> Any:
    """A view of an array of tack's or NumPy's."""
    if how == "T":
        return values.T
    axes = isinstance(how, tuple) and sorted(map(str, how)) == sorted(map(str, range(values.ndim)))
    return values.transpose(how) if axes else values[how]


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_is_copied_from_and_to(device: tack.Device, name: str) -> None:
    shape, how = LAYOUTS[name]
    host = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    source, want = laid_out(tack.array(host), how), laid_out(host, how)
    copied = source.copy()
    assert copied.flags.c_contiguous
    np.testing.assert_array_equal(copied.numpy(), want)
    np.testing.assert_array_equal(source.numpy(), want)
    np.testing.assert_array_equal(source.to_device("cpu").numpy(), want)
    for values in (copied, want, source):  # a device's array without gaps, the host's, and one of the same layout
        base, expected = tack.full(shape, -1, tack.i32), np.full(shape, -1, np.int32)
        tack.copyto(laid_out(base, how), values)
        laid_out(expected, how)[...] = want
        np.testing.assert_array_equal(base.numpy(), expected)  # what lies between is as it was
    base, expected = tack.zeros(shape, tack.i32), np.zeros(shape, np.int32)
    laid_out(base, how).fill(-7)
    laid_out(expected, how)[...] = -7
    np.testing.assert_array_equal(base.numpy(), expected)


@pytest.mark.parametrize("to", ["columns", "transposed"])
@pytest.mark.parametrize("of", ["rows", "backwards"])
def test_layouts_that_differ(device: tack.Device, of: str, to: str) -> None:
    host = np.arange(40 * 30, dtype=np.int16).reshape(40, 30)
    base, want = tack.zeros((40, 30), tack.i16), np.zeros((40, 30), np.int16)
    source, wanted = laid_out(tack.array(host), LAYOUTS[of][1]), laid_out(host, LAYOUTS[of][1])
    target, expected = laid_out(base, LAYOUTS[to][1]), laid_out(want, LAYOUTS[to][1])
    lines, columns = min(source.shape[0], target.shape[0]), min(source.shape[1], target.shape[1])
    tack.copyto(target[:lines, -columns:], source[-lines:, :columns])
    expected[:lines, -columns:] = wanted[-lines:, :columns]
    np.testing.assert_array_equal(base.numpy(), want)


def awkward(dtype: DType) -> np.ndarray:
    """Values at which conversions differ from one another."""
    numpy = tack.arrays.numpy_dtype(dtype)
    if dtype.is_int:
        return np.array([dtype.min, dtype.min + 1, 0, 1, 77, dtype.max - 1, dtype.max], numpy)
    halves = [0.5, 1.5, 2.5, 127.5, 255.9, 65535.5, 2.0**31, 2.0**32, 2.0**63, 2.0**64, 1e30, np.inf]
    with np.errstate(over="ignore"):
        return np.array([0.0, -0.0, np.nan, *halves, *(-h for h in halves), 1e300], numpy)


# Every conversion is a kernel: the quick run takes the pairs that can go wrong, the long one all.
RISKY = {("f32", "i8"), ("f32", "u64"), ("f64", "i64"), ("f64", "f32"), ("u64", "f32"), ("i64", "u8"), ("i8", "u32"), ("u16", "f64")}
PAIRS = [
    pytest.param(
        of,
        to,
        id=f"{of}-{to}",
        marks=[
            *([] if (of.name, to.name) in RISKY else [pytest.mark.long]),
            *([pytest.mark.needs("f64")] if "f64" in (of.name, to.name) else []),
        ],
    )
    for of, to in itertools.permutations(ARRAY_DTYPES, 2)
]


@pytest.mark.parametrize(("of", "to"), PAIRS)
def test_conversions_are_a_kernels_casts(device: tack.Device, of: DType, to: DType) -> None:
    host = awkward(of)
    want = cast_array(host, to)
    a = tack.array(np.stack([host, host], 1))
    for got in (a.astype(to), a.T.astype(to).T, tack.array(a, dtype=to), tack.concatenate([a.T[:1], a.T[1:]], dtype=to).T):
        assert got.dtype == to and got.device is device
        np.testing.assert_array_equal(got.numpy(), np.stack([want, want], 1))
    spread = tack.zeros((host.size, 2), to)
    tack.copyto(spread[:, 1], a[:, 0], casting="unsafe")
    np.testing.assert_array_equal(spread.numpy(), np.stack([np.zeros_like(want), want], 1))


def test_astype_refuses_what_the_device_has_not(device: tack.Device) -> None:
    x = tack.zeros(3)
    if not device.supports_f64:
        with pytest.raises(TypeError, match=r"astype\(\): dtype tack\.f64, which is not supported"):
            x.astype(tack.f64)
        with pytest.raises(TypeError, match=r"to_device\(\): dtype tack\.f64, which is not supported"):
            tack.zeros(3, tack.f64, device="cpu").to_device(device)
        return
    assert x.astype(np.float64).dtype == tack.f64 and tack.zeros(3, tack.f64, device="cpu").to_device(device).dtype == tack.f64


@pytest.mark.parametrize("bits", [32, pytest.param(64, marks=pytest.mark.needs("f64"))])
def test_copies_keep_the_bits_of_every_float(device: tack.Device, bits: int) -> None:
    patterns = {32: [0x7F800001, 0xFFC12345, 1, 0x80000000, 0x7FFFFFFF], 64: [0x7FF0000000000001, 0xFFF8123456789ABC, 1, 1 << 63]}[bits]
    host = np.array([*patterns, *patterns], f"u{bits // 8}").view(f"f{bits // 8}")
    a = tack.array(host)
    spread = tack.zeros(2 * host.size, a.dtype)
    tack.copyto(spread[::2], a)
    for got in (a[::2].copy(), a[::-1], spread[::2]):
        want = {a[::2].shape: host[::2]}.get(got.shape, host if got.strides[0] > 0 else host[::-1])
        np.testing.assert_array_equal(got.numpy().view(f"u{bits // 8}"), want.view(f"u{bits // 8}"))


def test_sources_are_broadcast(device: tack.Device) -> None:
    host = np.arange(12, dtype=np.float32).reshape(3, 4)
    for value in (host[0], host[:, :1], host[1, 2], host[None]):
        base, want = tack.zeros((2, 3, 8)), np.zeros((2, 3, 8), np.float32)
        tack.copyto(base[:, :, ::2], tack.array(value))
        want[:, :, ::2] = value
        np.testing.assert_array_equal(base.numpy(), want)
    with pytest.raises(ValueError, match=r"shape \(3, 4\) does not broadcast to \(3, 3\)"):
        tack.copyto(tack.zeros((3, 3)), tack.array(host))


def test_overlapping_copies_read_all_of_the_source_first(device: tack.Device) -> None:
    host = np.arange(60, dtype=np.int32).reshape(6, 10)
    for to, of in (
        (np.s_[1:, ::2], np.s_[:-1, ::2]), (np.s_[:, ::-1], np.s_[:, :]), (np.s_[:, 1::2], np.s_[:, ::2]),
        (np.s_[::2, :6], np.s_[::-2, 4:]),
    ):  # fmt: skip
        a, want = tack.array(host), host.copy()
        a[to] = a[of]
        want[to] = host[of]
        np.testing.assert_array_equal(a.numpy(), want)
    a = tack.array(host[:, :6])
    a[...] = a[:, :]  # onto themselves
    tack.copyto(a[:, ::2], a[:, ::2])
    np.testing.assert_array_equal(a.numpy(), host[:, :6])


def test_they_take_their_place_in_the_devices_order(device: tack.Device) -> None:
    x = counted()
    apart = tack.zeros((N, 2), tack.i32)
    tack.copyto(apart[:, 1], x)
    add_one(x)
    apart[:, 0] = x
    add_one(x)
    back = apart.T.copy()
    apart[::2].fill(-1)
    apart[1::2, 1] = np.arange(N // 2, dtype=np.int32)
    floats = apart.astype(tack.f32)
    add_one(x)
    assert (back[1, N - 1], back[0, N - 1], x[0]) == (20, 21, 23)
    assert floats[0].tolist() == [-1.0, -1.0] and floats[N - 1].tolist() == [21.0, N // 2 - 1]


def test_memory_that_others_see_is_done_when_the_call_returns(device: tack.Device) -> None:
    base = tack.zeros((N, 2), tack.i32)
    raw = tack.array_from_ptr(base.pointer, (N, 2), tack.i32, device=device, owner=base)
    for value in range(1, 6):
        raw[:, 1] = tack.full(N, value, tack.i32)
        assert np.asarray(tack.array_from_ptr(base.pointer, (N, 2), tack.i32, device=device, owner=base))[N - 1, 1] == value


def test_read_only_sources(device: tack.Device) -> None:
    base = tack.arange(20, dtype=tack.i32)
    frozen = tack.array_from_ptr(base.pointer, (10,), tack.i32, strides=(8,), device=device, owner=base, read_only=True)
    assert frozen.copy().tolist() == frozen.tolist() == list(range(0, 20, 2)) and frozen.astype(tack.f32)[1] == 2.0
    for write in (lambda: frozen.fill(1), lambda: tack.copyto(frozen, base[:10]), lambda: frozen.__setitem__(0, 1)):
        with pytest.raises(ValueError, match="read-only"):
            write()


# The function by which a driver copies memory to the host, in the stand-in's counters.
DOWNLOADS = {"cuda": ("libcuda", "cuMemcpyDtoHAsync_v2"), "hip": ("libamdhip64", "hipMemcpyDtoHAsync")}
PROGRAM = """
    import tack
    tack.set_default_device({device!r})
    a = tack.array(list(range(48)), dtype=tack.i32).reshape(6, 8)
    b = a[::2, ::-1].copy()
    c = a.astype(tack.f32)
    d = tack.concatenate([a[:, ::2], b[:, :1].reshape(3)[:1].reshape(1, 1).copy(), a[:1, 1:2]][:1], axis=1)
    e = tack.stack([a.T, a.T])
    a[:, 1] = a[:, 0]
    a[1:, ::2] = a[:-1, ::2]
    a[:, 3].fill(9)
    a[4] = tack.zeros(1, tack.i32)
    total = float(c[:, ::2].sum())
    {read}
"""


@pytest.mark.needs("simulator")
@pytest.mark.parametrize("compiler", [True, False])
def test_no_host_is_in_their_way(device: tack.Device, tmp_path: Path, compiler: bool) -> None:
    """Where the driver tells its calls apart. Without the compiler, copies go through the host and are right."""
    if device.type not in DOWNLOADS:
        pytest.skip("this driver has one function for copies of all directions")
    program = PROGRAM.format(device=device.type, read="print(a[4, 0], a[5, 3], a[5, 1], a[5, 0], b[2, 0], d.shape, e[1, 7, 5])")
    variable = {"cuda": "TACK_LIBNVRTC", "hip": "TACK_LIBHIPRTC"}[device.type]
    if compiler:
        library, function = DOWNLOADS[device.type]
        nothing_read = child.run(PROGRAM.format(device=device.type, read=""), tmp_path)
        assert nothing_read.calls(library, function) == 1, "the sum alone"
        ended = child.run(program, tmp_path)
        assert ended.calls(library, function) == 1 + 6
    else:
        program = program.replace("total = float(c[:, ::2].sum())", "")  # which is a kernel of its own
        ended = child.run(program, tmp_path, environment={variable: str(tmp_path / "nothing.so")})
    assert ended.out == "0 9 40 32 39 (6, 4) 47\n"


def test_the_kernels_of_copies_work_on_every_device(device: tack.Device) -> None:
    """On the CPU too, which does not use them: what breaks them shows there first."""
    from tack.copies import _copiers

    x, numbers = tack.arange(6, dtype=tack.i32), (2, 3, 3, 1, 1, 2)  # 2 x 3, from columns to rows
    for dtype in (tack.i32, tack.f32):
        flat, deep, table = (tack.zeros(6, dtype) for _ in range(3))
        _copiers(dtype)[2](flat, x, 0, 0, *numbers)
        _copiers(dtype)[4](deep, x, 0, 0, 1, 1, 2, 3, 0, 0, 3, 1, 0, 0, 1, 2)
        _copiers(dtype)[0](table, x, 0, 0, tack.array([[2, 3], [3, 1], [1, 2]], dtype=tack.i64), 6)
        assert flat.tolist() == deep.tolist() == table.tolist() == [0, 2, 4, 1, 3, 5]
