"""The kernel language: device functions, what they take and give, and the same functions called from ordinary Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from language import define, here, kernel, refused

import tack


def filled(text: str, n: int, *arguments: Any, dtype: Any = tack.f64, **names: Any) -> list[Any]:
    out = tack.zeros(n, dtype)
    kernel(text, **names)(out, *map(here, arguments))
    return out.tolist()


def test_several_results_nested_and_unpacked(device: tack.Device) -> None:
    text = """
    @tack.func
    def both(a, b):
        return a + b, (a - b, a * b)
    @tack.func
    def outer(a):
        s, (d, p) = both(a, 2)
        return p, s, d
    @tack.kernel
    def k(out):
        p, s, d = outer(5)
        t = outer(7)
        out[0], out[1], out[2] = p, s, d
        out[3] = t[0] + t[1] * 100
    """
    assert filled(text, 4) == [10, 7, 3, 914]


def test_functions_are_generic(device: tack.Device) -> None:
    text = """
    @tack.func
    def twice(x):
        return x + x
    @tack.kernel
    def k(out, a):
        out[0] = twice(tack.i8(100))
        out[1] = twice(tack.f32(0.1)).dtype == tack.f32
        out[2] = twice(a[0])
        out[3] = twice(True)
        out[4] = twice(1) + twice(0.25)
    """
    assert filled(text, 5, np.array([2**31 - 1], np.int32)) == [-56, 1, -2, 2, 2.5]


def test_returns_anywhere_loops_included(device: tack.Device) -> None:
    names = define("""
    @tack.func
    def find(n, limit):
        if n < 0:
            return -1
        for i in range(n):
            for j in range(i):
                if i * j > limit:
                    return i * 100 + j
            k = 0
            while k < i:
                if k == 9:
                    return 9000
                k += 3
        else:
            if n == 3:
                return 33
        return n
    @tack.kernel
    def k(out, n, limit):
        for i in range(len(out)):
            out[i] = find(n[i], limit)
    """)
    n = np.array([-4, 0, 2, 3, 5, 9, 12, 40], np.int64)
    for limit in (3, 20, 10_000):
        out = tack.zeros(8, tack.i64)
        names["k"](out, here(n), limit)
        assert out.tolist() == [names["find"](int(v), limit) for v in n]


@pytest.mark.needs("f64")
def test_a_function_without_a_return_gives_none_and_has_effects(device: tack.Device) -> None:
    text = """
    @tack.func
    def put(a, i, v):
        if i < 0:
            return
        a[i] = v
    @tack.func
    def bump(a, i):
        a[i] += 1
    @tack.kernel
    def k(out):
        for i in range(len(out)):
            put(out, i - 1, i)
            bump(out, i)
            if put(out, 0, 0) is None:
                out[0] = 5
    """
    assert filled(text, 1) == [5]


@pytest.mark.needs("f64")
def test_parameters_by_position_keyword_and_default(device: tack.Device) -> None:
    text = """
    N = 3
    @tack.func
    def f(a, /, b=2, *, c=N, d=N * 2 + 0.5, e=None, g=SCALE):
        return a + 10 * b + 100 * c + 1000 * d + (0 if e is None else e) + g
    N = 1000
    @tack.kernel
    def k(out):
        out[0] = f(1)
        out[1] = f(1, c=0, b=1)
        out[2] = f(1, 3, d=0, e=0.25)
    """
    assert filled(text, 3, SCALE=np.float64(0.5)) == [1 + 20 + 300 + 6500 + 0.5, 1 + 10 + 6500 + 0.5, 1 + 30 + 300 + 0.25 + 0.5]


@pytest.mark.needs("f64")
def test_defaults_may_be_dtypes_tuples_and_functions(device: tack.Device) -> None:
    names = define("""
    @tack.func
    def one(x):
        return x + 1
    @tack.func
    def f(x, cast=tack.i8, weights=(1, 2.5), g=one):
        return g(cast(x)) * weights[1]
    def one(x):
        return 0
    @tack.kernel
    def k(out):
        out[0] = f(200)
        out[1] = f(200, cast=tack.i16)
    """)
    out = tack.zeros(2, tack.f64)
    names["k"](out)
    assert out.tolist() == [(-56 + 1) * 2.5, 201 * 2.5]


def test_a_default_that_changes_with_its_function_is_seen(device: tack.Device) -> None:
    def make(value: float) -> Any:
        return define("@tack.func\ndef f(x, a=VALUE):\n    return x + a\n", VALUE=value)["f"]

    names = define("@tack.kernel\ndef k(out):\n    out[0] = f(1)\n", f=make(1))
    out = tack.zeros(1)
    names["k"](out)
    assert out[0] == 2
    names["f"] = make(10)
    names["k"](out)
    assert out[0] == 11


@pytest.mark.needs("f64")
def test_arrays_local_arrays_dtypes_and_functions_as_arguments(device: tack.Device) -> None:
    text = """
    @tack.func
    def total(a, n):
        s = 0
        for i in range(n):
            s += a[i]
        return s
    @tack.func
    def fill(a, v):
        for i in range(len(a)):
            a[i] = v * i
    @tack.func
    def apply(f, x, to):
        return to(f(x))
    @tack.func
    def make(dtype):
        t = tack.local_array(dtype, 3)
        t[1] = dtype(200)
        return t
    @tack.func
    def cube(x):
        return x * x * x
    @tack.kernel
    def k(out, x):
        for i in range(1):
            t = tack.local_array(tack.i32, 5)
            fill(t, 3)
            out[0] = total(t, len(t))
            out[1] = total(x, x.shape[0])
            out[2] = apply(cube, 7, tack.i8)
            out[3] = apply(tack.sqrt, 9.0, tack.f32)
            out[4] = apply(int, 2.75, float)
            g = cube
            out[5] = g(2)
            out[6] = make(tack.u8)[1] + make(tack.i8)[1]
            h = cube if x is not None else total
            out[7] = h(3)
    """
    assert filled(text, 8, np.full(4, 2.5, np.float32)) == [30, 10, 343 - 256, 3, 2, 8, 200 - 56, 27]


def test_lambdas_bound_with_tack_func(device: tack.Device) -> None:
    names = define("""
    RATE = 3
    f = tack.func(lambda x, y=2: x * RATE + y)
    g = tack.func(
        lambda x: (
            x if x > 0
            else -x
        )
    )
    table = (tack.func(lambda x: x + 1),)
    @tack.kernel
    def k(out, a):
        out[0] = f(a)
        out[1] = f(a, y=10)
        out[2] = g(a)
        out[3] = table[0](a)
    """)
    out = tack.zeros(4, tack.i64)
    names["k"](out, -4)
    assert out.tolist() == [-10, -2, 4, -3]
    names["RATE"] = 5
    names["k"](out, -4)
    assert out.tolist() == [-18, -10, 4, -3] and names["f"](2) == 12


def test_functions_may_live_in_classes_closures_and_other_functions_may_share_their_names(device: tack.Device) -> None:
    names = define("""
    class Ops:
        @staticmethod
        @tack.func
        def inc(x):
            return x + 1
        @tack.func
        def dec(x):
            return x - 1
    def make(n):
        @tack.func
        def add(x):
            return x + n
        return add
    add1, add10 = make(1), make(10)
    @tack.kernel
    def k(out):
        out[0] = Ops.inc(5)
        out[1] = Ops.dec(5)
        out[2] = add1(0) * 100 + add10(0)
    """)
    out = tack.zeros(3, tack.i64)
    names["k"](out)
    assert out.tolist() == [6, 4, 110]


@pytest.mark.parametrize(
    ("functions", "chain"),
    [
        ("def f(n):\n    return f(n - 1)", "f -> f"),
        ("def f(n):\n    return g(n)\n@tack.func\ndef g(n):\n    return h(n)\n@tack.func\ndef h(n):\n    return g(n)", "g -> h -> g"),
        ("def f(n, g=None):\n    return 0 if g is None else g(n, g)\n@tack.func\ndef h(n, g):\n    return g(n, g)", ""),
    ],
)
def test_recursion_is_refused_with_its_chain(device: tack.Device, functions: str, chain: str) -> None:
    text = f"@tack.func\n{functions}\n@tack.kernel\ndef k(x):\n    x[0] = f(3)\n"
    if chain:
        message = refused(text, NotImplementedError, tack.zeros(1))
        assert "recursion" in message and chain in message
    else:
        kernel(text)(tack.zeros(1))


def test_a_plain_function_is_refused_with_the_cure(device: tack.Device) -> None:
    assert "@tack.func" in refused("def f(x):\n    return x\n@tack.kernel\ndef k(x):\n    x[0] = f(x[0])\n", TypeError, tack.zeros(1))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("f()", "'a'"),
        ("f(1, 2, 3)", "2 positional"),
        ("f(1, c=2)", "'c'"),
        ("f(1, a=2)", "twice"),
        ("f(*x)", "starred"),
        ("f(**x)", "**"),
    ],
)
def test_wrong_calls_show_the_signature(device: tack.Device, call: str, words: str) -> None:
    message = refused(
        f"@tack.func\ndef f(a, b=1):\n    return a\n@tack.kernel\ndef k(x):\n    x[0] = {call}\n", tack.CompileError, tack.zeros(1)
    )
    assert words in message and ("f(a, b)" in message or "*" in call)


def test_errors_in_functions_name_the_calls(device: tack.Device) -> None:
    text = """
    @tack.func
    def inner(x):
        return x + missing
    @tack.func
    def outer(x):
        return inner(x)
    @tack.kernel
    def k(x):
        x[0] = outer(1)
    """
    message = refused(text, NameError, tack.zeros(1))
    assert "'missing'" in message and "line 3" in message and "In 'inner', called at" in message and "In 'outer', called at" in message


# -- from ordinary Python


def test_functions_run_as_ordinary_python(device: tack.Device) -> None:
    names = define("""
    @tack.func
    def f(x, n=2):
        "Doc."
        s = tack.f32(0)
        for i in range(n):
            s += tack.sqrt(x) * tack.f32(i)
        return s, tack.i8(300)
    """)
    f = names["f"]
    s, w = f(np.float32(4))
    assert s == 2.0 and type(s) is np.float32 and w == 44 and type(w) is np.int8
    assert f.__doc__ == "Doc." and f.__name__ == "f" and f(np.float32(4), n=3)[0] == 6


@pytest.mark.parametrize(
    "call", ["atomic_add(x, 0, 1)", "local_array(tack.f32, 3)", "local_array_like(x, 3)", "barrier()", "thread_id()", "shared(tack.f32, 3)"]
)
def test_what_has_no_meaning_there_is_a_runtime_error(device: tack.Device, call: str) -> None:
    f = define(f"@tack.func\ndef f(x):\n    return tack.{call}\n")["f"]
    with pytest.raises(RuntimeError, match=call.partition("(")[0]):
        f(np.zeros(3, np.float32))


def test_what_cannot_be_decorated(device: tack.Device) -> None:
    for decorator in (tack.kernel, tack.func):
        with pytest.raises(TypeError, match="innermost"):
            decorator(staticmethod(lambda x: x))
    with pytest.raises(tack.CompileError, match="lambda"):
        tack.kernel(lambda x: x)
    with pytest.raises(TypeError):
        tack.func(3)


MARKED = """
@tack.func
def f(a, /, b, *, c=10):
    return a * 100 + b * 10 + c


@tack.kernel
def k(out, /, n, *, scale=2, shift):
    out[0] = f(n, 3) * scale + shift
    out[1] = f(n, b=4, c=5)
"""


def test_position_only_and_keyword_only_parameters(device: tack.Device) -> None:
    k = kernel(MARKED)
    out = tack.zeros(2, tack.i64)
    k(out, 1, shift=7)
    assert out.tolist() == [(100 + 30 + 10) * 2 + 7, 145]
    k(out, n=2, shift=0, scale=1)
    assert out.tolist() == [240, 245]
    for call, message in {
        "k(out=out, n=1, shift=0)": "k() got some positional-only arguments passed as keyword arguments: 'out'",
        "k(out, 1, 2, shift=0)": "k() takes 2 positional arguments but 3 positional arguments (and 1 keyword-only argument) were given",
        "k(out, 1)": "k() missing 1 required keyword-only argument: 'shift'",
        "tack.inspect(k, out, 1)": "k() missing 1 required keyword-only argument: 'shift'",
        "tack.inspect(k, out=out, n=1, shift=0)": "k() got some positional-only arguments passed as keyword arguments: 'out'",
    }.items():
        with pytest.raises(TypeError) as info:
            eval(call, {"k": k, "out": out, "tack": tack})
        assert str(info.value) == message
    assert "scratch" not in tack.inspect(k, out, 1, shift=0, mode="ir")


@pytest.mark.parametrize(
    ("call", "message"),
    {
        "f(a=1, b=2)": "'f' takes its parameter 'a' by position only.",
        "f(1, 2, 3)": "'f' takes 2 positional arguments, not 3.",
        "f(1)": "'f' is called without its parameter 'b'.",
        "f(1, 2, d=3)": "'f' has no parameter 'd'.",
    }.items(),
)
def test_functions_take_their_arguments_as_declared(device: tack.Device, call: str, message: str) -> None:
    text = MARKED.replace("f(n, 3)", call)
    got = refused(text.replace("*, scale=2, shift", "scale=2, shift=0"), TypeError, tack.zeros(2, tack.i64), 1)
    assert message in got and "Its signature is f(a, /, b, *, c)." in got
