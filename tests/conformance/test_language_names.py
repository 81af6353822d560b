"""The kernel language: names and their types, kernels as objects, and kernels of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from language import define, here, kernel, refused, same

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


@pytest.mark.needs("f64")
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
    k(out, here(np.full(4, 0.5, np.float32)), 4)
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
    k(out, here(x))
    assert out[0] == a


def test_a_chain_of_5000_terms(device: tack.Device) -> None:
    terms = [f"x[i] * {n}" if n % 3 else f"{n}" for n in range(5000)]
    k = kernel("@tack.kernel\ndef k(out, x):\n    for i in range(len(x)):\n        out[i] = " + " + ".join(terms) + "\n")
    x = np.arange(4, dtype=np.int64)
    out = tack.zeros(4, tack.i64)
    k(out, here(x))
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


def test_statements_nest_as_deep_as_python_lets_them(device: tack.Device) -> None:
    """Its tokenizer takes 99 levels of indentation beside the outermost, and its compiler 20 loops in one another."""
    deepest = 96
    lines = [f"{' ' * (n + 2)}y = {n}\n{' ' * (n + 2)}if x[i] > {n}:" for n in range(deepest)]
    text = "@tack.kernel\ndef k(out, x):\n for i in range(len(x)):\n" + "\n".join(lines) + f"\n{' ' * 98}y = 500\n  out[i] = y\n"
    x, out = tack.arange(0, 200), tack.zeros(200, tack.i32)
    kernel(text)(out, x)
    assert out.tolist() == [v if v < deepest else 500 for v in range(200)]
    with pytest.raises(SyntaxError, match="too many levels of indentation"):
        kernel("@tack.kernel\ndef k(x):\n" + "".join(f"{' ' * (n + 1)}if x[0]:\n" for n in range(100)) + " " * 101 + "x[1] = 1\n")


def test_loops_nest_as_deep_as_python_lets_them(device: tack.Device) -> None:
    depth = 18
    loops = "".join(f"{' ' * (n + 1)}for j{n} in range(s % 3, 2):\n" for n in range(depth))
    text = f"@tack.kernel\ndef k(out):\n s = 1\n t = 0\n{loops}{' ' * (depth + 1)}s += 1\n"
    text += "".join(f"{' ' * (n + 1)}t = t + s % 7\n" for n in range(depth, 0, -1)) + " out[0] = s\n out[1] = t\n"
    text = text.replace("def k(out):\n", "def k(out):\n for i in range(1):\n").replace("\n ", "\n  ").replace("\n  for i", "\n for i")
    out = tack.zeros(2, tack.i64)
    kernel(text)(out)
    space: dict[str, Any] = {}
    exec(text.replace("@tack.kernel\n", ""), space)
    wanted = [0, 0]
    space["k"](wanted)
    assert out.tolist() == wanted


def arms(form: str, count: int) -> str:
    """A kernel that finds x[i] among ``count`` numbers, or answers -1."""
    is_it = [f"x[i] == {n}" for n in range(count)]
    body = "  out[i] = found(x[i])\n"
    functions = ""
    if form == "elif":
        body = "  if x[i] < 0:\n   y = -2\n" + "".join(f"  elif {c}:\n   y = {n}\n" for n, c in enumerate(is_it))
        body += "  else:\n   y = -1\n  out[i] = y\n"
    elif form == "early returns":
        functions = "@tack.func\ndef found(v):\n" + "".join(f" if v == {n}:\n  return {n}\n" for n in range(count)) + " return -1\n"
    elif form == "early returns of a loop":
        functions = "@tack.func\ndef found(v):\n for j in range(2):\n"
        functions += "".join(f"  if v == {n} + j * 2000:\n   return {n}\n" for n in range(count)) + " return -1\n"
    elif form == "conditional expressions":
        body = "  out[i] = " + "".join(f"{n} if {c} else " for n, c in enumerate(is_it)) + "-1\n"
    elif form == "operands":
        body = "  out[i] = " + " or ".join(f"(x[i] == {n}) * {n}" for n in range(count)) + " or -(x[i] != 0)\n"
    elif form == "conditions":
        body = "  out[i] = -1\n  if " + " or ".join(is_it) + ":\n   out[i] = x[i]\n"
    elif form == "comparisons":
        body = f"  out[i] = x[i] if 0 <= x[i]{' <= x[i]' * count} < {count} else -1\n"
    elif form == "continue":
        body = "".join(f"  if {c}:\n   out[i] = {n}\n   continue\n" for n, c in enumerate(is_it)) + "  out[i] = -1\n"
    else:
        body = "  if KIND == -1:\n   out[i] = 7\n"
        body += "".join(f"  elif KIND == {n}:\n   out[i] = x[i] if x[i] < {n} else -1\n" for n in range(count + 1))
    return f"{functions}@tack.kernel\ndef k(out, x):\n for i in range(len(x)):\n{body}"


FORMS = {
    "elif": 1500,
    "early returns": 400,
    "early returns of a loop": 400,
    "conditional expressions": 400,
    "operands": 400,
    "conditions": 400,
    "comparisons": 400,
    "continue": 400,
    "decided at compile time": 1500,
}


@pytest.mark.parametrize("form", FORMS)
def test_hundreds_of_arms(device: tack.Device, form: str) -> None:
    """They nest in Python's own tree, and in each other."""
    count = FORMS[form]
    x = np.array([0, 1, 2, count // 2, count - 2, count - 1, count, 1900], np.int32)
    out = tack.zeros(len(x), tack.i32)
    try:
        k = kernel(arms(form, count), KIND=count)
    except (RecursionError, MemoryError) as error:
        pytest.skip(f"Python's own compiler refuses it: {error}")
    k(out, here(x))
    assert out.tolist() == [int(v) if v < count else -1 for v in x]


def test_400_functions_that_call_each_other(device: tack.Device) -> None:
    functions = "".join(f"@tack.func\ndef f{n + 1}(v):\n return f{n}(v) + 1\n" for n in range(400))
    k = kernel(f"@tack.func\ndef f0(v):\n return v\n{functions}@tack.kernel\ndef k(x):\n for i in range(len(x)):\n  x[i] = f400(x[i])\n")
    x = tack.arange(3)
    k(x)
    assert x.tolist() == [400, 401, 402]


def test_tuples_inside_one_another(device: tack.Device) -> None:
    nested = "  t = x[i]\n" + "  t = t, 1\n" * 100 + "  if x[i] > 0:\n   t = t[0], 5\n  out[i] = t[1]\n"
    out = tack.zeros(2, tack.i32)
    kernel(f"@tack.kernel\ndef k(out, x):\n for i in range(len(x)):\n{nested}")(out, tack.arange(2))
    assert out.tolist() == [1, 5]
    message = refused(
        f"@tack.kernel\ndef k(out, x):\n for i in range(len(x)):\n{nested.replace('  if', '  t = t, 1' + chr(10) + '  if')}",
        TypeError,
        out,
        tack.arange(2),
    )
    assert "tuples lie more than 100 deep inside one another" in message


def test_same_is_strict() -> None:
    with pytest.raises(AssertionError):
        same(np.array([0.0]), np.array([-0.0]))
