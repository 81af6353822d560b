"""Arrays as NumPy makes them: any dtype, shape, strides, offset, reversed, broadcast, transposed, read-only; kernels against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tack

DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")


@tack.kernel(exact=True)
def apply0(out, x, y):
    out[()] = x[()] * 2 + y[()]


@tack.kernel(exact=True)
def apply1(out, x, y):
    for i in range(len(out)):
        out[i] = x[i] * 2 + y[i]


@tack.kernel(exact=True)
def apply2(out, x, y):
    for i, j in tack.ndrange(out.shape[0], out.shape[1]):
        out[i, j] = x[i, j] * 2 + y[i, j]


@tack.kernel(exact=True)
def apply3(out, x, y):
    for i, j, k in tack.ndrange(out.shape[0], out.shape[1], out.shape[2]):
        out[i, j, k] = x[i, j, k] * 2 + y[i, j, k]


@tack.kernel(exact=True)
def apply4(out, x, y):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            for k in range(out.shape[2]):
                for m in range(out.shape[3]):
                    out[i, j, k, m] = x[i, j, k, m] * 2 + y[i, j, k, m]


@tack.kernel(exact=True)
def apply_flat(out, x, y):
    for i in range(out.size):
        out.flat[i] = x.flat[i] * 2 + y.flat[i]


@tack.kernel
def convert(out, x):
    for i, j in tack.ndrange(out.shape[0], out.shape[1]):
        out[i, j] = tack.i32(x[i, j])


@tack.kernel
def count(hits, x):
    for i, j in tack.ndrange(x.shape[0], x.shape[1]):
        tack.atomic_add(hits, int(x[i, j]) % 5, 1)


APPLY: tuple[Any, ...] = (apply0, apply1, apply2, apply3, apply4)
QUICK = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
shapes = st.integers(0, 4).flatmap(lambda rank: st.tuples(*[st.integers(0, 5)] * rank))


def numbers(n: int, dtype: str, seed: int) -> Any:
    """Any bits of an integer type; of a float type small numbers, infinities, NaN and both zeros."""
    r = np.random.default_rng(seed)
    if dtype.startswith("float"):
        values = r.integers(-40, 40, n) / 8
        return np.where(r.random(n) < 0.1, r.choice([np.inf, -np.inf, np.nan, -0.0, 0.0], n), values).astype(dtype)
    return r.integers(0, 256, n * np.dtype(dtype).itemsize, np.uint8).view(dtype)


@st.composite
def views(draw: st.DrawFn, shape: tuple[int, ...], dtype: str, *, writable: bool = False) -> tuple[Any, Any]:
    """A view of ``shape`` somewhere in a larger array, and that array: steps of any sign, gaps, an offset, swapped axes, stride 0."""
    steps = [draw(st.sampled_from((1, 1, 1, -1, 2, -2, 3))) for _ in shape]
    offsets = [draw(st.integers(0, 2)) for _ in shape]
    spread = [not writable and draw(st.integers(0, 5)) == 0 for _ in shape]
    order = draw(st.permutations(range(len(shape))))
    axes = list(zip(shape, steps, offsets, spread, strict=True))
    extents = [o + (1 if b else max(n - 1, 0) * abs(s) + 1) + draw(st.integers(0, 1)) for n, s, o, b in axes]
    base = numbers(int(np.prod(extents, dtype=np.int64)), dtype, draw(st.integers(0, 99)))
    whole = base.reshape([extents[k] for k in order]).transpose(np.argsort(order))
    parts: list[slice] = []
    for n, s, o, b in axes:
        if b:
            parts.append(slice(o, o + 1))
            continue
        positions = range(o, o + n * abs(s), abs(s)) if n else range(0)
        last = positions[-1] if n else 0
        parts.append(slice(0, 0) if not n else slice(o, last + 1, s) if s > 0 else slice(last, o - 1 if o else None, s))
    view = whole[(*parts, ...)]
    if any(spread):
        view = np.broadcast_to(view, shape)
    assert view.shape == shape
    if not writable and draw(st.booleans()):
        view.flags.writeable = False
    return view, base


def expected(x: Any, y: Any) -> Any:
    with np.errstate(all="ignore"):
        return x * 2 + y


def same(a: Any, b: Any) -> None:
    np.testing.assert_array_equal(a, b)
    if np.asarray(a).dtype.kind == "f":
        real = ~np.isnan(a)
        np.testing.assert_array_equal(np.signbit(a)[real], np.signbit(b)[real])


def untouched(base: Any, before: Any, view: Any) -> None:
    """What lies between a view's elements is as it was."""
    mine = np.zeros(base.shape, bool)
    start = base.__array_interface__["data"][0]
    at = view.__array_interface__["data"][0] - start
    for index in np.ndindex(view.shape):
        mine[(at + sum(k * s for k, s in zip(index, view.strides, strict=True))) // base.itemsize] = True
    same(base[~mine], before[~mine])


@QUICK
@given(st.data())
def test_elementwise_kernels_take_any_view(data: st.DataObject) -> None:
    shape = data.draw(shapes)
    dtype = data.draw(st.sampled_from(DTYPES))
    (x, _), (y, _) = data.draw(views(shape, dtype)), data.draw(views(shape, dtype))
    out, base = data.draw(views(shape, dtype, writable=True))
    before = base.copy()
    APPLY[len(shape)](out, x, y)
    same(out, expected(x, y))
    untouched(base, before, out)


@QUICK
@given(st.data())
def test_tack_arrays_of_any_view(data: st.DataObject) -> None:
    """A copy to the device of the same view, and views taken there."""
    shape = data.draw(st.tuples(st.integers(0, 5), st.integers(1, 5)))
    dtype = data.draw(st.sampled_from(DTYPES))
    x, _ = data.draw(views(shape, dtype))
    held = tack.array(x)
    same(held.numpy(), x)
    rows, columns = data.draw(st.sampled_from((1, 2, -1, -2))), data.draw(st.sampled_from((1, 2, -1, -3)))
    part, wanted = held[::rows, ::columns], x[::rows, ::columns]
    if data.draw(st.booleans()):
        part, wanted = part.T, wanted.T
    same(part.numpy(), wanted)
    out = tack.zeros(wanted.shape, part.dtype)
    apply2(out, part, part)
    same(out.numpy(), expected(wanted, wanted))


@QUICK
@given(st.data())
def test_flat_positions_of_contiguous_arrays(data: st.DataObject) -> None:
    shape = data.draw(shapes)
    dtype = data.draw(st.sampled_from(DTYPES))
    n = int(np.prod(shape, dtype=np.int64))
    x, y = numbers(n, dtype, 1).reshape(shape), numbers(n, dtype, 2).reshape(shape)
    out = np.zeros(shape, dtype)
    apply_flat(out, x, y)
    same(out, expected(x, y))


@QUICK
@given(st.data())
def test_in_place_and_mixed_dtypes(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(0, 6)))
    dtype = data.draw(st.sampled_from(DTYPES))
    x, _ = data.draw(views(shape, dtype, writable=True))
    wanted = expected(x, x)
    apply1(x, x, x)
    same(x, wanted)
    other = data.draw(st.sampled_from(("float32", "float64") if dtype.startswith("float") else DTYPES))
    out, _ = data.draw(views(shape, other, writable=True))
    apply1(out, x, x)
    with np.errstate(all="ignore"):
        same(out, expected(x, x).astype(other))


@QUICK
@given(st.data())
def test_scattered_counts(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(0, 6), st.integers(0, 6)))
    x, _ = data.draw(views(shape, data.draw(st.sampled_from(DTYPES[:-2]))))
    hits, base = data.draw(views((5,), "int64", writable=True))
    before = base.copy()
    bins = x.astype(np.int64) % 5
    wanted = hits + np.bincount(bins.ravel(), minlength=5)
    count(hits, x)
    same(hits, wanted)
    untouched(base, before, hits)


@QUICK
@given(st.data())
def test_casts_of_any_view(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(0, 5), st.integers(0, 5)))
    x, _ = data.draw(views(shape, data.draw(st.sampled_from(DTYPES))))
    out, _ = data.draw(views(shape, "int32", writable=True))
    convert(out, x)
    if x.dtype.kind == "f":
        wanted = np.clip(np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0), -(2.0**31), 2.0**31 - 1).astype(np.int32)
    else:
        wanted = x.astype(np.int32)
    same(out, wanted)


@QUICK
@given(st.data())
def test_what_is_read_only_is_not_written(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(0, 4)))
    out, base = data.draw(views(shape, "float32", writable=True))
    before = base.copy()
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        apply1(out, np.ones(shape, np.float32), np.ones(shape, np.float32))
    same(base, before)
