"""The kernel language: names and their types, kernels as objects, and kernels of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from language import define, kernel, refused, same

import tack

OUT = tack.i64


def run(body: str, n: int = 1, dtype: Any = OUT, **names: Any) -> list[Any]:
    """The array that a kernel without a loop fills."""
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    out = tack.zeros(n, dtype)
    kernel(f"@tack.kernel\ndef k(out):\n{lines}\n", **names)(out)
    return out.tolist()


# -- names


def test_a_name_has_the_type_of_its_latest_assignment(device: tack.Device) -> None:
    assert run(
        """
a = 1
out[0] = a.dtype == tack.i64
a = tack.f32(1)
out[1] = a.dtype == tack.f32
a = (1, 2.5)
out[2] = int(a[1] * 2)
a = out
out[3] = len(a)
""",
        4,
    ) == [1, 1, 5, 4]


def test_where_paths_meet_types_join(device: tack.Device) -> None:
    k = kernel("""
    @tack.func
    def total(x, n):
        t = 0
        for i in range(n):
            t += x[i]
        return t
    @tack.func
    def either(n):
        u = tack.i8(1)
        if n > 2:
            u = tack.i16(300)
        return u
    @tack.func
    def tripled(n):
        w = 1
        while w < n:
            w = w * tack.u8(3)
        return w
    @tack.kernel
    def k(out, x, n):
        for i in range(1):
            out[0] = total(x, n).dtype == tack.f32
            out[1] = either(n)
            out[2] = either(n).dtype == tack.i16
            out[3] = tripled(n)
            out[4] = tripled(n).dtype == tack.u8
            out[5] = total(x, n)
    """)
    out = tack.zeros(6, tack.f64)
    k(out, np.full(4, 0.5, np.float32), 4)
    assert out.tolist() == [1, 300, 1, 9, 1, 2.0]


def test_a_join_that_promotion_refuses_names_both_lines(device: tack.Device) -> None:
    text = """
    @tack.kernel
    def k(x, n):
        for i in range(len(x)):
            t = tack.u64(1)
            if i > n:
                t = tack.i32(2)
            x[i] = t
    """
    message = refused(text, TypeError, tack.zeros(3), 1)
    assert "line 4" in message and "line 6" in message and "'t'" in message


@pytest.mark.parametrize(
    "name",
    [
        "int",
        "float",
        "auto",
        "register",
        "double",
        "struct",
        "define",
        "i32",
        "x86",
        "label",
        "ret",
        "undef",
        "entry",
        "store",
        "ptr",
        "null",
    ]
    + ["größe", "переменная", "变量", "ﬁ", "_", "__", "_result", "_value", "_i", "tack_", "self", "len", "range", "min", "print", "str"]
    + ["main", "nullptr", "this", "template", "kernel", "device", "global_", "threadgroup", "asm", "inline", "extern", "static"],
)
def test_any_identifier_is_a_name(device: tack.Device, name: str) -> None:
    if name == "range":
        text = f"@tack.kernel\ndef k(out, {name}):\n    out[0] = {name} + 1\n    {name} = 2\n    out[1] = {name}\n"
    else:
        text = (
            f"@tack.kernel\ndef k(out, {name}):\n    for i in range(1):\n        out[0] = {name} + 1\n        {name} = 2\n"
            f"        while {name} < 5:\n            {name} += 1\n        out[1] = {name}\n"
        )
    out = tack.zeros(2, tack.i32)
    kernel(text)(out, 7)
    assert out.tolist() == [8, 2 if name == "range" else 5]


@pytest.mark.parametrize("name", ["größe", "double", "main", "memcpy", "sin", "k", "变量", "tack_run"])
def test_any_identifier_is_the_name_of_a_kernel_an_array_a_func_and_a_loop(device: tack.Device, name: str) -> None:
    names = define(f"""
    @tack.func
    def {name}(x):
        return x + 1
    f = {name}
    @tack.kernel
    def {name}({name}):
        for i in range(len({name})):
            {name}[i] = f({name}[i])
    @tack.kernel
    def loop(out):
        for {name} in range(len(out)):
            for {name}_ in range(2):
                out[{name}] += {name}
    """)
    x = tack.zeros(3, tack.i32)
    names[name](x)
    assert x.tolist() == [1, 1, 1]
    names["loop"](x)
    assert x.tolist() == [1, 3, 5]


def test_locals_hide_builtins_and_captured_names(device: tack.Device) -> None:
    assert run(
        """
max = 3
tack_f = 4
G = G0 + max
len = (G, 2)
out[0] = max + len[0]
out[1] = len[1]
""",
        2,
        G0=10,
        G=99,
    ) == [16, 2]


# -- kernels as objects


def test_methods_and_closures(device: tack.Device) -> None:
    names = define("""
    class Model:
        RATE = 3
        @staticmethod
        def make(step):
            @tack.kernel
            def k(x):
                for i in range(len(x)):
                    x[i] += step * Model.RATE
            return k
        @tack.kernel
        def fill(out, v):
            for i in range(len(out)):
                out[i] = v
    """)
    x = tack.zeros(2, tack.i32)
    one, two = names["Model"].make(1), names["Model"].make(2)
    one(x)
    two(x)
    assert x.tolist() == [9, 9]
    names["Model"].RATE = 10
    one(x)
    assert x.tolist() == [19, 19]
    names["Model"].fill(x, 4)
    assert x.tolist() == [4, 4]


# -- size


def test_a_kernel_of_2000_lines(device: tack.Device) -> None:
    body = "\n".join(f"    a = a * 3 + {n} if a % 2 else a + x[{n % 4}]" for n in range(2000))
    k = kernel(f"@tack.kernel\ndef k(out, x):\n    a = 1\n{body}\n    out[0] = a\n")
    x = np.array([1, 5, 2, 7], np.int64)
    a = 1
    for n in range(2000):
        a = a * 3 + n if a % 2 else a + int(x[n % 4])
        a = (a + 2**63) % 2**64 - 2**63
    out = tack.zeros(1, tack.i64)
    k(out, x)
    assert out[0] == a


def test_a_chain_of_5000_terms(device: tack.Device) -> None:
    terms = [f"x[i] * {n}" if n % 3 else f"{n}" for n in range(5000)]
    k = kernel("@tack.kernel\ndef k(out, x):\n    for i in range(len(x)):\n        out[i] = " + " + ".join(terms) + "\n")
    x = np.arange(4, dtype=np.int64)
    out = tack.zeros(4, tack.i64)
    k(out, x)
    assert out.tolist() == [sum(int(v) * n if n % 3 else n for n in range(5000)) for v in x]


def test_180_levels_of_parentheses(device: tack.Device) -> None:
    text = "(" * 180 + "x[0]" + " + 1)" * 180
    k = kernel(f"@tack.kernel\ndef k(x):\n    x[1] = {text}\n")
    x = tack.zeros(2, tack.i32)
    k(x)
    assert x[1] == 180
    calls = "min(" * 90 + "x[0]" + ", 7)" * 90
    k = kernel(f"@tack.kernel\ndef k(x):\n    x[1] = {calls}\n")
    k(x)
    assert x[1] == 0


def test_statements_nest_90_deep(device: tack.Device) -> None:
    lines = [f"{'    ' * (n + 1)}if x[0] >= {n}:" for n in range(90)]
    k = kernel("@tack.kernel\ndef k(x):\n" + "\n".join(lines) + "\n" + "    " * 91 + "x[1] = 1\n")
    x = tack.zeros(2, tack.i32)
    k(x)
    assert x[1] == 0
    x[0] = 89
    k(x)
    assert x[1] == 1


def test_same_is_strict() -> None:
    with pytest.raises(AssertionError):
        same(np.array([0.0]), np.array([-0.0]))
