"""tack.Array and everything that makes one, against NumPy."""

from __future__ import annotations

import copy
import hashlib
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tack

DTYPES = {
    tack.i8: np.int8, tack.u8: np.uint8, tack.i16: np.int16, tack.u16: np.uint16, tack.i32: np.int32, tack.u32: np.uint32,
    tack.i64: np.int64, tack.u64: np.uint64, tack.f32: np.float32, tack.f64: np.float64,
}  # fmt: skip


def same(a: tack.Array, b: np.ndarray) -> None:
    assert a.shape == b.shape
    got = a.numpy()
    assert got.dtype == b.dtype
    np.testing.assert_array_equal(got, b)


def numbers(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


# -- constructors


def test_defaults_are_f32_but_for_array_and_integer_arange() -> None:
    assert tack.empty(3).dtype == tack.f32
    assert tack.zeros((2, 2)).dtype == tack.f32
    assert tack.ones(3).dtype == tack.f32
    assert tack.full(3, 7).dtype == tack.f32
    assert tack.linspace(0, 1).dtype == tack.f32
    assert tack.arange(3).dtype == tack.i32
    assert tack.arange(0.0, 1.0, 0.25).dtype == tack.f32
    assert tack.arange(3, dtype=tack.f32).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(("dtype", "numpy"), DTYPES.items(), ids=str)
def test_array_keeps_the_dtype_of_its_input(dtype: tack.types.DType, numpy: type) -> None:
    source = np.array([[0, 1, 2], [3, 100, 127]], numpy)
    a = tack.array(source)
    assert a.dtype == dtype and a.itemsize == source.itemsize and a.nbytes == source.nbytes
    same(a, source)
    source[:] = 1
    assert a[1, 2] == 127, "array() copies"
    assert tack.array(a).dtype == dtype
    assert tack.array(numpy(3)).dtype == dtype


def test_array_of_python_numbers() -> None:
    assert tack.array([1.5, 2]).dtype == tack.f32
    assert tack.array([1, 2]).dtype == tack.i32
    assert tack.array(range(3)).dtype == tack.array([range(2), [3, 4]]).dtype == tack.i32
    assert tack.array(range(0, 9, 4)).tolist() == [0, 4, 8] and tack.array([]).dtype == tack.array(range(0)).dtype == tack.f32
    assert tack.array([True, False]).dtype == tack.u8
    assert tack.array([]).dtype == tack.f32
    assert tack.array(3.5).shape == () and tack.array(3.5).item() == 3.5
    assert tack.array([[1, 2], [3, 4]]).shape == (2, 2)
    assert tack.array([np.float64(1.0)]).dtype == tack.f64
    assert tack.array([1, 2], dtype=tack.f64).tolist() == [1.0, 2.0]
    with pytest.raises(OverflowError, match=r"tack\.i32.*dtype=tack\.i64"):
        tack.array([1, 2**31])
    assert tack.array([1, 2**40], dtype=tack.i64).tolist() == [1, 2**40]
    assert tack.array([2**64 - 1], dtype=tack.u64).tolist() == [2**64 - 1]
    with pytest.raises(OverflowError, match="-1"):
        tack.array([-1], dtype=tack.u8)
    with pytest.raises(TypeError, match="convert them to int"):
        tack.array([1.5], dtype=tack.i32)


def test_numpy_bool_is_u8() -> None:
    a = tack.array(np.array([True, False, True]))
    assert a.dtype == tack.u8 and a.tolist() == [1, 0, 1]
    assert tack.zeros(2, dtype=np.bool_).dtype == tack.u8


@pytest.mark.parametrize("bad", [np.zeros(2, np.float16), np.zeros(2, complex), np.array(["a"]), np.array([object()])])
def test_array_refuses_what_has_no_dtype(bad: np.ndarray) -> None:
    with pytest.raises(TypeError, match="dtype"):
        tack.array(bad)


def test_numpy_dtypes_are_dtypes() -> None:
    assert tack.zeros(2, dtype=np.int16).dtype == tack.i16
    assert tack.zeros(2, dtype=np.dtype("float64")).dtype == tack.f64
    for ambiguous in ("i8", float, "float32", None):
        if ambiguous is not None:
            with pytest.raises(TypeError, match=r"tack\.f32"):
                tack.zeros(2, dtype=ambiguous)


def test_byte_swapped_input_is_copied_right() -> None:
    swapped = np.array([1, 2, 300], ">i4")
    same(tack.array(swapped), swapped.astype(np.int32))
    same(tack.asarray(swapped), swapped.astype(np.int32))


def test_full_checks_the_value() -> None:
    assert tack.full((2, 3), 7, tack.i16).tolist() == [[7] * 3] * 2
    assert tack.full(2, np.float64(0.5), tack.f64).tolist() == [0.5, 0.5]
    with pytest.raises(OverflowError, match=r"300.*tack\.u8"):
        tack.full(2, 300, tack.u8)
    with pytest.raises(TypeError, match="int"):
        tack.full(2, 1.5, tack.i32)
    assert tack.full(1, 1e300).item() == float("inf")


def test_like_constructors() -> None:
    a = tack.zeros((2, 3), tack.i16)
    for make in (tack.empty_like, tack.zeros_like, tack.ones_like):
        b = make(a)
        assert (b.shape, b.dtype, b.device) == (a.shape, a.dtype, a.device)
    assert tack.ones_like(a).sum() == 6 and tack.zeros_like(a).sum() == 0
    assert tack.full_like(a, 4).sum() == 24
    assert tack.empty_like(a, dtype=tack.f64).dtype == tack.f64
    assert tack.zeros_like(np.zeros((4, 1), np.uint16)).dtype == tack.u16
    assert tack.empty_like(a.T).strides == (4, 2)
    with pytest.raises(TypeError, match="prototype"):
        tack.empty_like(3)


def test_arange_and_linspace() -> None:
    assert tack.arange(2, 11, 3).tolist() == [2, 5, 8]
    assert tack.arange(3, -3, -2).tolist() == [3, 1, -1]
    np.testing.assert_array_equal(tack.arange(0, 1, 0.1).numpy(), np.arange(0, 1, 0.1).astype(np.float32))
    assert tack.arange(2**40, 2**40 + 2, dtype=tack.i64).tolist() == [2**40, 2**40 + 1]
    assert tack.arange(2**63, 2**63 + 2, dtype=tack.u64).tolist() == [2**63, 2**63 + 1]
    assert tack.arange(0).shape == (0,)
    with pytest.raises(OverflowError, match="dtype="):
        tack.arange(2**31, 2**31 + 2)
    with pytest.raises(ValueError, match="step"):
        tack.arange(0, 1, 0)
    with pytest.raises(TypeError, match="numbers"):
        tack.arange("3")
    np.testing.assert_array_equal(tack.linspace(0, 1, 5).numpy(), np.linspace(0, 1, 5, dtype=np.float32))
    assert tack.linspace(0, 1, 4, endpoint=False).tolist() == [0, 0.25, 0.5, 0.75]


def test_shapes_are_checked() -> None:
    for bad in (-1, (2, -3)):
        with pytest.raises(ValueError, match="negative"):
            tack.empty(bad)
    for odd in (2.5, "3", (1, "2")):
        with pytest.raises(TypeError, match="shape"):
            tack.empty(odd)
    with pytest.raises(ValueError, match="8 dimensions"):
        tack.empty((1,) * 9)
    assert tack.empty(np.int64(3)).shape == (3,)
    assert tack.empty([2, 3]).shape == (2, 3)
    assert tack.zeros((0, 3)).shape == (0, 3) and tack.zeros(()).item() == 0.0


def test_asarray_shares_memory_where_it_can() -> None:
    a = tack.zeros(3)
    assert tack.asarray(a) is a and tack.asarray(a, device="cpu") is a
    assert tack.asarray(a, dtype=tack.f64).dtype == tack.f64
    host = np.zeros((3, 4), np.float32)
    shared = tack.asarray(host[:, ::2])
    assert shared.shape == (3, 2) and shared.strides == (16, 8)
    shared[1, 1] = 5
    assert host[1, 2] == 5
    host.flags.writeable = False
    frozen = tack.asarray(host)
    assert frozen.read_only
    with pytest.raises(ValueError, match="read-only"):
        frozen[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        frozen.fill(1)


def test_wrapped_memory_outlives_its_name() -> None:
    a = tack.asarray(np.full(1000, 7, np.int32))
    assert a.sum() == 7000


def test_concatenate() -> None:
    a, b = numbers(2, 3), numbers(4, 3, dtype=np.int32)
    got = tack.concatenate([tack.array(a), tack.array(b)])
    same(got, np.concatenate([a, b]))
    same(tack.concatenate([tack.array(a), a], axis=-1), np.concatenate([a, a], axis=1))
    assert tack.concatenate([tack.zeros(0), tack.ones(2)]).tolist() == [1, 1]
    with pytest.raises(ValueError, match="at least one"):
        tack.concatenate([])
    with pytest.raises(ValueError, match="does not join"):
        tack.concatenate([tack.zeros((2, 2)), tack.zeros((2, 3))])
    with pytest.raises(ValueError, match="axis"):
        tack.concatenate([tack.zeros(2)], axis=1)
    with pytest.raises(ValueError, match="0-d"):
        tack.concatenate([tack.zeros(())])


# -- views

INDEX = st.one_of(
    st.integers(-4, 3),
    st.slices(4),
    st.just(Ellipsis),
    st.none(),
)


def _is_legal(key: list[object]) -> bool:
    """One '...' at most, and no more indices than a cube has dimensions."""
    return sum(k is Ellipsis for k in key) <= 1 and sum(k is not None and k is not Ellipsis for k in key) <= 3


KEYS = st.lists(INDEX, max_size=4).filter(_is_legal).map(tuple)
# Those that answer an array in any case, be it of 0 dimensions.
VIEW_KEYS = KEYS.map(lambda key: key if Ellipsis in key else (*key, ...))


@given(KEYS)
def test_subscripts_are_numpys(key: tuple[object, ...]) -> None:
    source = numbers(4, 4, 4)
    a = tack.array(source)
    want = source[key]
    got = a[key]
    if isinstance(want, np.ndarray):
        same(got, want)
        assert got.size == 0 or got.strides == want.strides or 1 in want.shape
    else:
        assert type(got) is float and got == want


def test_views_share_memory() -> None:
    a = tack.array(numbers(3, 4))
    a[1][2] = 50
    a[:, ::-1][0, 0] = 60
    a.T[2, 0] = 70
    a.reshape(-1)[11] = 80
    a[...][0, 1] = 90
    assert (a[1, 2], a[0, 3], a[0, 2], a[2, 3], a[0, 1]) == (50, 60, 70, 80, 90)


@pytest.mark.parametrize("key", [3, -4, (0, 4), (0, 0, 0)])
def test_index_errors(key: object) -> None:
    with pytest.raises(IndexError, match=r"out of range|3 indices"):
        tack.zeros((3, 4))[key]


@pytest.mark.parametrize("key", [[0, 1], np.array([0, 1]), 1.0, "x", True, tack.zeros(2)])
def test_fancy_subscripts_are_refused_with_the_cure(key: object) -> None:
    with pytest.raises(TypeError, match="write a kernel, or use NumPy"):
        tack.zeros((3, 4))[key]


def test_elements_are_python_numbers() -> None:
    for dtype in DTYPES:
        a = tack.ones(3, dtype)
        assert type(a[0]) is (float if dtype.is_float else int) and type(a[-1]) is type(a.item() if a.size == 1 else a[0])
    assert tack.array(np.float32(2.5))[()] == 2.5
    a = tack.zeros(())
    a[()] = 4
    assert a.item() == 4.0 and float(a) == 4.0 and int(a) == 4 and bool(a)
    assert [10, 20, 30][tack.array(np.int32(1))] == 20


def test_assignment() -> None:
    a, want = tack.zeros((3, 4)), np.zeros((3, 4), np.float32)
    for target in (a, want):
        target[1] = 3
        target[:, 2] = [7, 8, 9]
        target[0, :2] = np.array([5, 6], np.float32)
        target[2:, 3] = np.float32(1.5)
    same(a, want)
    a[1:] = a[:-1].copy()
    want[1:] = want[:-1].copy()
    same(a, want)


def test_overlapping_assignment_reads_before_it_writes() -> None:
    a = tack.arange(10)
    a[1:] = a[:-1]
    assert a.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    b = tack.arange(6, dtype=tack.f32)
    tack.copyto(b, b[::-1])
    assert b.tolist() == [5, 4, 3, 2, 1, 0]


def test_assignment_refuses_what_would_change_value() -> None:
    a = tack.zeros(3, tack.i8)
    with pytest.raises(OverflowError, match=r"a\[0\].*128.*tack\.i8"):
        a[0] = 128
    with pytest.raises(TypeError, match="int"):
        a[0] = 1.5
    with pytest.raises(TypeError, match="element is a number"):
        a[0] = "x"
    with pytest.raises(ValueError, match="broadcast"):
        a[:] = [1, 2]
    assert a.tolist() == [0, 0, 0]


@given(
    st.sampled_from([(2, 3, 4), (4, 6), (24,), (1, 24, 1), (2, 2, 2, 3)]), st.sampled_from([(6, 4), (24,), (-1, 2), (3, 8, 1), (2, -1, 2)])
)
def test_reshape_is_numpys(shape: tuple[int, ...], new: tuple[int, ...]) -> None:
    source = numbers(*shape)
    same(tack.array(source).reshape(new), source.reshape(new))
    same(tack.array(source).reshape(*new), source.reshape(new))


def test_reshape_makes_views_or_says_why_not() -> None:
    a = tack.array(numbers(4, 6))
    rows = a[::2]
    assert rows.reshape(2, 2, 3)[1, 1, 2] == a[2, 5]
    with pytest.raises(ValueError, match=r"copy\(\)\.reshape"):
        a.T.reshape(24)
    with pytest.raises(ValueError, match="24 elements"):
        a.reshape(5, 5)
    with pytest.raises(ValueError, match="cannot become"):
        a.reshape(-1, 5)
    assert tack.zeros((0, 3)).reshape(3, 0).shape == (3, 0)
    assert tack.ones(1).reshape(()).item() == 1


# -- values


def test_numpy_and_array_protocol() -> None:
    source = numbers(3, 4)
    a = tack.array(source)
    host = a.numpy()
    host[0, 0] = 99
    assert a[0, 0] == 0
    np.testing.assert_array_equal(np.asarray(a), source)
    np.testing.assert_array_equal(a.__array__(np.float64), source.astype(np.float64))
    np.testing.assert_array_equal(np.array(a[::2, ::-1]), source[::2, ::-1])
    assert a.__array__(copy=False).base is not None
    with pytest.raises(ValueError, match="without a copy"):
        a.__array__(np.float64, copy=False)
    assert np.exp(a).shape == (3, 4)


def test_fill_and_copy() -> None:
    a = tack.zeros((4, 4))
    a[1:3, ::2].fill(2)
    want = np.zeros((4, 4), np.float32)
    want[1:3, ::2] = 2
    same(a, want)
    b = a.T.copy()
    assert b.strides == (16, 4)
    same(b, want.T)


def test_astype_is_a_kernel_cast() -> None:
    a = tack.array(np.array([1.9, -1.9, 300.0, -300.0, np.nan, np.inf, -np.inf]))
    assert a.astype(tack.i8).tolist() == [1, -1, 127, -128, 0, 127, -128]
    assert a.astype(tack.u8).tolist() == [1, 0, 255, 0, 0, 255, 0]
    assert a.astype(tack.i64).tolist() == [1, -1, 300, -300, 0, 2**63 - 1, -(2**63)]
    assert a.astype(tack.u64).tolist()[5] == 2**64 - 1
    assert tack.array([300, -1]).astype(np.uint8).tolist() == [44, 255]
    assert tack.array(np.array([1e300])).astype(tack.f32).item() == float("inf")
    for dtype in DTYPES:
        for value in (-1.5, 2.5e9, 1e20, float("nan")):
            assert tack.array(np.array([value])).astype(dtype).numpy()[0] == pytest.approx(dtype(value), nan_ok=True)


def test_reductions() -> None:
    source = np.random.default_rng(0).standard_normal((30, 20)).astype(np.float32)
    a = tack.array(source)
    assert a.sum() == float(source.sum()) and type(a.sum()) is float
    assert a.min() == float(source.min()) and a.max() == float(source.max())
    assert a[::2, 3:].max() == float(source[::2, 3:].max())
    assert a.mean() == pytest.approx(source.mean(), rel=1e-5)
    counts = tack.array(np.arange(10, dtype=np.uint8))
    assert counts.sum() == 45 and type(counts.sum()) is int and type(counts.min()) is int
    assert counts.mean() == 4.5


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32, np.int8])
def test_integer_sums_are_exact(dtype: type) -> None:
    limits = np.iinfo(dtype)
    source = np.array([limits.max] * 5 + [limits.min] * 2 + [3], dtype)
    assert tack.array(source).sum() == sum(int(v) for v in source)
    assert tack.array(source[:0]).sum() == 0


def test_min_max_propagate_nan_and_refuse_nothing() -> None:
    a = tack.array(np.array([1.0, np.nan, -1.0]))
    assert np.isnan(a.min()) and np.isnan(a.max())
    for reduce in (tack.zeros(0).min, tack.zeros(0).max, tack.zeros((3, 0)).mean):
        with pytest.raises(ValueError, match="empty"):
            reduce()
    assert tack.zeros(0).sum() == 0.0


def test_copyto() -> None:
    a = tack.zeros((2, 3))
    tack.copyto(a, np.arange(3, dtype=np.float64))
    assert a.tolist() == [[0, 1, 2]] * 2
    tack.copyto(a, 7)
    assert a.sum() == 42
    out = np.zeros((2, 3), np.float32)
    tack.copyto(out, a)
    assert out.sum() == 42
    ints = tack.zeros(2, tack.i32)
    with pytest.raises(TypeError, match="casting="):
        tack.copyto(ints, tack.array([1.5, 300.0]))
    tack.copyto(ints, tack.array(np.array([1.5, 3e9])), casting="unsafe")
    assert ints.tolist() == [1, 2**31 - 1]
    with pytest.raises(ValueError, match="broadcast"):
        tack.copyto(ints, [1, 2, 3])
    with pytest.raises(TypeError, match="writes to"):
        tack.copyto([1], ints)


def test_conversions_of_one_and_many() -> None:
    with pytest.raises(ValueError, match="only element"):
        tack.zeros(2).item()
    with pytest.raises(ValueError, match="ambiguous"):
        bool(tack.zeros(2))
    with pytest.raises(TypeError, match="0-d"):
        len(tack.zeros(()))
    assert len(tack.zeros((3, 2))) == 3
    assert [row.tolist() for row in tack.array([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    assert tack.array(5).tolist() == 5


UNARY = ["-a", "+a", "~a", "abs(a)"]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!="]
OTHERS = ["a", "2", "2.5", "host", "np.float32(2)", "[1, 2, 3]"]
PAIRS = [(f"{x} {op} {y}") for op in BINARY for other in OTHERS for x, y in (("a", other), (other, "a"))]


@pytest.mark.parametrize("operation", [*UNARY, "divmod(a, 2)", "divmod(2, a)", *dict.fromkeys(PAIRS)])
def test_operators_are_refused_with_the_cure(operation: str) -> None:
    """Beside NumPy's arrays too, which would compute with a copy otherwise, without a word."""
    with pytest.raises(TypeError, match=r"tack\.Array has no operator '.+': write a kernel.*a\.numpy\(\)"):
        eval(operation, {"a": tack.zeros(3), "host": np.zeros(3, np.float32), "np": np})


@pytest.mark.parametrize("operator", BINARY[:13])
@pytest.mark.parametrize("target", ["a", "host"])
def test_operators_in_place_are_refused_too(operator: str, target: str) -> None:
    names = {"a": tack.zeros(3), "host": np.zeros(3, np.float32)}
    with pytest.raises(TypeError, match=r"write a kernel.*a\.numpy\(\)"):
        exec(f"{target} {operator}= a", names)
    assert names[target].tolist() == [0.0] * 3


def test_numpys_functions_take_arrays_on_the_cpu() -> None:
    a = tack.ones(3)
    assert np.add(np.ones(3), a).tolist() == [2.0] * 3 and np.sqrt(a).tolist() == [1.0] * 3 and np.array_equal(a, np.ones(3))


def test_arrays_work_in_sets_and_beside_none() -> None:
    a = tack.zeros(3)
    assert a in {a} and (a == None) is False and (a != None) is True  # noqa: E711


def test_copies_and_pickles() -> None:
    a = tack.array(numbers(2, 3))
    for b in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert b is not a
        same(b, a.numpy())
        b[0, 0] = 9
        assert a[0, 0] == 0


def test_repr_is_short() -> None:
    assert repr(tack.array([1, 2])) == "tack.Array([1, 2], shape=(2,), dtype=tack.i32, device='cpu')"
    assert len(repr(tack.zeros((1000, 1000)))) < 800
    assert repr(tack.zeros((0, 2))) == "tack.Array(shape=(0, 2), dtype=tack.f32, device='cpu')"
    assert "3.0" in repr(tack.full((), 3))


# -- diagonals, stacks, axes, flags, protocols


@given(st.integers(0, 5), st.one_of(st.none(), st.integers(0, 5)), st.integers(-6, 6), st.sampled_from(list(DTYPES)))
def test_eye_is_numpys(rows: int, columns: int | None, k: int, dtype: tack.types.DType) -> None:
    same(tack.eye(rows, columns, k, dtype), np.eye(rows, columns, k, DTYPES[dtype]))
    assert tack.eye(2).dtype == tack.f32
    with pytest.raises(ValueError, match="negative"):
        tack.eye(-1)


@given(st.sampled_from([(), (3,), (2, 3), (0, 2), (2, 1, 3)]), st.integers(1, 4), st.data())
def test_stack_is_numpys(shape: tuple[int, ...], count: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    parts = [numbers(*shape, dtype=data.draw(st.sampled_from(list(DTYPES.values())))) + k for k in range(count)]
    parts = [np.asarray(p) for p in parts]
    same(tack.stack([tack.array(p) for p in parts], axis), np.stack(parts, axis))


def test_stack_refuses_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="at least one"):
        tack.stack([])
    with pytest.raises(ValueError, match=r"\(3,\) differs from \(2,\)"):
        tack.stack([tack.zeros(2), tack.zeros(3)])
    with pytest.raises(ValueError, match="axis 2"):
        tack.stack([tack.zeros(2)], axis=2)
    assert tack.stack([np.ones(2, np.float32), tack.zeros(2)], dtype=tack.i8).tolist() == [[1, 1], [0, 0]]


@given(st.permutations(range(4)), st.booleans())
def test_transpose_is_numpys(order: list[int], negative: bool) -> None:
    source = numbers(2, 3, 4, 5)
    axes = [axis - 4 for axis in order] if negative else order
    for a in (tack.array(source).transpose(*axes), tack.array(source).transpose(axes)):
        same(a, source.transpose(order))
        assert a.strides == source.transpose(order).strides
    same(tack.array(source).transpose(), source.T)
    same(tack.array(source).transpose(None), source.T)
    same(tack.array(source).T, source.T)


@pytest.mark.parametrize("axes", [(0, 0), (0,), (0, 1, 2), (0, 2)])
def test_transpose_takes_each_axis_once(axes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="each axis once"):
        tack.zeros((2, 3)).transpose(*axes)


@given(VIEW_KEYS)
def test_ravel_is_numpys_and_a_view_where_one_can_be(key: tuple[object, ...]) -> None:
    source = numbers(4, 4, 4)
    a = tack.array(source)
    want, got = source[key], a[key]
    flat = got.ravel()
    same(flat, want.ravel())
    if flat.size:
        shares = a.pointer <= flat.pointer < a.pointer + a.nbytes
        assert shares or not want.flags.c_contiguous
        if shares:
            flat[0] = -1
            assert got.tolist() != want.tolist() and a.min() == -1


@given(VIEW_KEYS, st.booleans())
def test_flags_are_numpys(key: tuple[object, ...], transposed: bool) -> None:
    source = numbers(4, 4, 4)
    a, b = tack.array(source), source
    if transposed:
        a, b = a.T, b.T
    a, b = a[key], b[key]
    assert a.flags.c_contiguous == b.flags.c_contiguous and a.flags.f_contiguous == b.flags.f_contiguous
    assert a.flags["C_CONTIGUOUS"] == b.flags["C_CONTIGUOUS"] and a.flags.contiguous == (b.flags.c_contiguous or b.flags.f_contiguous)
    assert a.flags.writeable and a.flags.aligned and a.flags == a.flags


def test_flags_of_shared_and_read_only_memory() -> None:
    values = np.zeros(3)
    values.flags.writeable = False
    shared = tack.asarray(values)
    assert not shared.flags.writeable and not shared.flags.owndata and tack.zeros(3).flags.owndata
    assert shared.flags != tack.zeros(3).flags and "WRITEABLE : False" in repr(shared.flags)
    with pytest.raises(KeyError, match="FLYING.*writeable"):
        shared.flags["FLYING"]


def test_numpy_2_decides_about_copies() -> None:
    a = tack.array(numbers(2, 3))
    for shared in (a.__array__(), a.__array__(copy=None), a.__array__(copy=False), a.__array__(np.float32), np.asarray(a)):
        assert shared.ctypes.data == a.pointer and shared.shape == (2, 3)
    for copied in (a.__array__(copy=True), a.__array__(np.float64), np.array(a), a.numpy()):
        assert copied.ctypes.data != a.pointer and copied.tolist() == a.tolist()
    for dtype in (np.float64, np.int32, ">f4"):
        with pytest.raises(ValueError, match="without a copy"):
            a.__array__(dtype, copy=False)
    frozen = tack.asarray(np.broadcast_to(np.float32(2), (2, 2)))
    assert not np.asarray(frozen).flags.writeable and np.array(frozen).flags.writeable
    assert tack.zeros(()).__array__().shape == ()
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        assert np.array(a, copy=False).ctypes.data == a.pointer
        with pytest.raises(ValueError):
            np.array(a, dtype=np.float64, copy=False)


@pytest.mark.parametrize(("dtype", "numpy"), DTYPES.items(), ids=str)
def test_the_buffer_protocol(dtype: tack.types.DType, numpy: type) -> None:
    source = numbers(3, 4, dtype=numpy)
    a = tack.array(source)
    for view, want in ((a, source), (a[::2, ::-1], source[::2, ::-1]), (a.T, source.T), (a[:, :0], source[:, :0])):
        buffer = memoryview(view)
        assert (buffer.shape, buffer.itemsize, buffer.readonly) == (want.shape, want.itemsize, False)
        assert buffer.format == want.data.format or buffer.format in "qQ"
        assert buffer.tolist() == want.tolist()
    memoryview(a)[1, 2] = 7
    assert a[1, 2] == 7
    assert bytes(a) == a.numpy().tobytes()
    with pytest.raises(BufferError, match="not contiguous"):
        hashlib.sha1(a[:, ::2])


@given(st.sampled_from(list(DTYPES)), VIEW_KEYS, st.integers(2, pickle.HIGHEST_PROTOCOL))
def test_pickles_keep_dtype_shape_and_elements(dtype: tack.types.DType, key: tuple[object, ...], protocol: int) -> None:
    view = tack.array(numbers(4, 4, 4, dtype=DTYPES[dtype]))[key]
    again = pickle.loads(pickle.dumps(view, protocol))
    assert again.dtype == dtype and again.flags.c_contiguous
    same(again, view.numpy())


CASTS = ["no", "equiv", "safe", "same_kind", "unsafe"]


@given(st.sampled_from(list(DTYPES)), st.sampled_from(list(DTYPES)), st.sampled_from(CASTS), st.booleans(), st.booleans())
def test_copyto_casts_as_numpy(target: tack.types.DType, source: tack.types.DType, casting: str, from_numpy: bool, to_numpy: bool) -> None:
    if from_numpy and to_numpy:
        return
    values = numbers(3, 4, dtype=DTYPES[source])[:, ::-1]
    a = values if from_numpy else tack.array(values)
    out = np.zeros((2, 3, 4), DTYPES[target]) if to_numpy else tack.zeros((2, 3, 4), target)
    want = np.zeros((2, 3, 4), DTYPES[target])
    if not np.can_cast(values.dtype, want.dtype, casting):
        with pytest.raises(TypeError, match="casting"):
            tack.copyto(out, a, casting=casting)
        return
    tack.copyto(out, a, casting=casting)
    np.copyto(want, values, casting=casting)
    np.testing.assert_array_equal(np.asarray(out), want)


@pytest.mark.parametrize("name", ["_repr_html_", "_repr_png_", "_repr_mimebundle_", "_ipython_display_", "__len_hint__"])
def test_notebooks_show_the_repr(name: str) -> None:
    assert not hasattr(tack.zeros(3), name) and repr(tack.zeros(3)) == str(tack.zeros(3))
