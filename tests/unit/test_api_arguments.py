"""What kernels take, and the messages for what they don't."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest

import tack
from tack._runtime import ABSENT
from tack.arguments import Argument, check_dtypes, classify, raise_bad_call
from tack.types import Layout


class Number(enum.IntEnum):
    THREE = 3


class Half(float):
    pass


READ_ONLY = np.zeros(3)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("value", "token", "shown"),
    [
        (3, "int", "int"),
        (-(2**63), "int", "int"),
        (2**63, "uint", "int"),
        (2**64 - 1, "uint", "int"),
        (True, "bool", "bool"),
        (np.bool_(True), "bool", "bool"),
        (1.5, "float", "float"),
        (Half(1.5), "float", "float"),
        (Number.THREE, "int", "int"),
        (None, "none", "None"),
        (np.float32(1), "strong:f32", "tack.f32"),
        (np.float64(1), "strong:f64", "tack.f64"),
        (np.uint8(1), "strong:u8", "tack.u8"),
        (np.zeros((2, 3), np.int16), "ai16,2,0", "tack.i16[:, :]"),
        (np.zeros((4, 3))[::2], "af64,2,1", "tack.f64[:, :]"),
        (np.zeros((4, 3))[:, ::2], "af64,2,2", "tack.f64[:, :]"),
        (np.zeros(3, bool), "au8,1,0", "tack.u8[:]"),
        (np.zeros(()), "af64,0,0", "tack.f64[]"),
        (READ_ONLY, "af64,1,0r", "tack.f64[:]"),
        (tack.f32[:, :], "af32,2,0", "tack.f32[:, :]"),
    ],
    ids=lambda value: repr(value).split(" at 0x")[0],
)
def test_types_of_arguments(value: Any, token: str, shown: str) -> None:
    found = classify("k", "p", value)
    assert (found.token(), str(found)) == (token, shown)


@pytest.mark.parametrize(
    ("shape", "key"),
    [
        ((4, 5), ()),
        ((4, 5), np.s_[::2]),
        ((4, 5), np.s_[:, ::-1]),
        ((1, 5), np.s_[:, ::2]),
        ((4, 1), np.s_[::2]),
        ((0, 3), ()),
        ((4, 5, 6), np.s_[:, 1]),
        ((4, 5), np.s_[2:2]),
    ],
    ids=str,
)
def test_layouts_of_numpy_arrays_are_the_runtimes(shape: tuple[int, ...], key: Any) -> None:
    host = np.zeros(shape, np.float32)[key]
    mine = tack.zeros(shape)[key]
    assert classify("k", "p", host).layout == mine.layout == classify("k", "p", mine).layout
    assert Layout(mine.layout) in Layout


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ([1, 2], TypeError, "tack.array"),
        ((1, 2), TypeError, "tack.array"),
        ("abc", TypeError, "str"),
        (1 + 2j, TypeError, "real and imaginary"),
        (tack.f32, TypeError, "capture"),
        (np.float32, TypeError, "capture"),
        (len, TypeError, "function"),
        ({}, TypeError, "dict"),
        (object(), TypeError, "object"),
        (np.zeros(2, np.float16), TypeError, "float16"),
        (np.float16(1), TypeError, "float16"),
        (np.zeros(2, complex), TypeError, "complex128"),
        (np.zeros(2, ">f4"), ValueError, "ascontiguousarray"),
        (np.zeros(9, np.uint8)[1:].view(np.float32), ValueError, "ascontiguousarray"),
        (np.zeros(4, [("a", "f4"), ("b", "i2")])["a"], ValueError, "ascontiguousarray"),
        (np.zeros((1,) * 9), ValueError, "8"),
        (2**64, OverflowError, "64 bits"),
        (-(2**63) - 1, OverflowError, "64 bits"),
    ],
    ids=lambda value: repr(value).split(" at 0x")[0],
)
def test_refusals_name_kernel_parameter_and_cure(value: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error) as info:
        classify("my_kernel", "data", value)
    assert str(info.value).startswith("Kernel 'my_kernel': parameter 'data'") and words in str(info.value)


class Metal:
    """A device without f64, as the page's example has it."""

    type = "metal"
    array_dtypes = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32")


def test_unsupported_dtypes_are_told_in_the_documented_words() -> None:
    with pytest.raises(TypeError) as info:
        check_dtypes("my_kernel", ("out", "data"), (Argument("array", tack.f32, 1), Argument("array", tack.f64, 1)), Metal())  # type: ignore[arg-type]
    assert str(info.value) == (
        "Kernel 'my_kernel': parameter 'data' has dtype tack.f64, which is not supported on Metal. Supported dtypes: tack.f32, tack.i16, "
        "tack.i32, tack.i64, tack.i8, tack.u16, tack.u32, tack.u64, tack.u8"
    )
    check_dtypes("my_kernel", ("out", "n"), (Argument("array", tack.f32, 1), Argument("strong", tack.f64)), Metal())  # type: ignore[arg-type]


def python_message(call: str) -> str:
    """What Python says of the same call of a plain function."""

    def f(out, x, n=1):
        pass

    with pytest.raises(TypeError) as info:
        eval(call, {"f": f})
    return str(info.value).replace("test_api_arguments.", "").replace("python_message.<locals>.", "")


@pytest.mark.parametrize(
    ("args", "kwargs", "call"),
    [
        ((), {}, "f()"),
        ((1,), {}, "f(1)"),
        ((), {"x": 1}, "f(x=1)"),
        ((1, 2, 3, 4), {}, "f(1, 2, 3, 4)"),
        ((1, 2), {"x": 1}, "f(1, 2, x=1)"),
    ],
)
def test_wrong_counts_are_told_as_python_does(args: tuple[Any, ...], kwargs: dict[str, Any], call: str) -> None:
    with pytest.raises(TypeError) as info:
        raise_bad_call("f", ("out", "x", "n"), (1,), args, kwargs)
    assert str(info.value) == python_message(call)


def python_message_of_markers(call: str) -> str:
    def f(a, b=1, /, c=2, *, d, e=3, g):
        pass

    with pytest.raises(TypeError) as info:
        eval(call, {"f": f})
    return str(info.value).replace("python_message_of_markers.<locals>.", "")


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((1,), {}),
        ((1,), {"d": 1}),
        ((), {"a": 1, "d": 1, "g": 1}),
        ((1,), {"a": 1, "b": 2, "d": 1, "g": 1}),
        ((1, 2, 3, 4), {}),
        ((1, 2, 3, 4), {"d": 1}),
        ((1, 2, 3, 4), {"d": 1, "e": 1}),
        ((1, 2, 3), {"c": 1}),
        ((1, 2, 3, 4, 5, 6), {}),
    ],
)
def test_position_and_keyword_only_are_told_as_python_does(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    names, defaults = ("a", "b", "c", "d", "e", "g"), (1, 2, ABSENT, 3, ABSENT)
    with pytest.raises(TypeError) as info:
        raise_bad_call("f", names, defaults, args, kwargs, 2, 3)
    call = f"f({', '.join([*map(str, args), *(f'{k}={v}' for k, v in kwargs.items())])})"
    assert str(info.value) == python_message_of_markers(call)


def test_unknown_keywords_list_the_parameters() -> None:
    with pytest.raises(TypeError, match=r"f\(\) got an unexpected keyword argument 'y'; its parameters are out, x, n"):
        raise_bad_call("f", ("out", "x", "n"), (1,), (1, 2), {"y": 3})


def test_a_table_shows_all_arguments_and_marks_the_bad_one() -> None:
    with pytest.raises(TypeError) as info:
        raise_bad_call("f", ("out", "x", "n"), (1,), (tack.zeros(3), [1, 2]), {"n": 2.5})
    first, *rows = str(info.value).split("\n")
    assert first == "Kernel 'f': parameter 'x' is a list: pass an array, tack.array(...)"
    assert rows == ["    out  tack.f32[:]", "  > x    list  <- not accepted", "    n    float"]
