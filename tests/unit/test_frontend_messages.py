"""What errors say, to the letter where a user will meet them most, and of which class they are."""

from __future__ import annotations

import dataclasses

import pytest
from frontend_env import CPU, FLOAT, I32, INT, X32, X64, DictEnvironment, kernel, source

from tack import types
from tack.errors import CompileError, CompileNameError, CompileNotImplementedError, CompileTypeError, CompileValueError, UnsupportedError
from tack.frontend.capabilities import CapabilityError, check_uses, scan
from tack.frontend.infer import infer
from tack.frontend.meaning import ArgType, ArrayArg, FuncMeaning, Intrinsic, Opaque
from tack.frontend.parse import parse
from tack.types import Layout

X2 = ArrayArg(types.f32, 2)
U64, I64, I8, U8 = (ArrayArg(types.by_name(n), 1) for n in ("u64", "i64", "i8", "u8"))


def loop(line: str) -> str:
    return f"def k(x, y):\n    for i in range(len(x)):\n        {line}\n"


def failure(text: str, *args: ArgType, **names: object) -> CompileError:
    with pytest.raises(CompileError) as caught:
        kernel(text, *args, **names)
    return caught.value


EXACT = [
    (
        loop("y[i] = x[i] * 0.5"),
        (X32, I32),
        {},
        CompileTypeError,
        """\
Kernel 'k': tack.i32 array 'y' cannot take a tack.f32 value.
  File "/x/kernels.py", line 12
    y[i] = x[i] * 0.5
           ^^^^^^^^^^
  Write int(...) or tack.i32(...) to convert.""",
    ),
    (
        loop("x[i] = sqrt(x[i])"),
        (X32, I32),
        {},
        CompileNameError,
        """\
Kernel 'k': name 'sqrt' is not defined.
  File "/x/kernels.py", line 12
    x[i] = sqrt(x[i])
           ^^^^
  Write tack.sqrt.""",
    ),
    (
        loop("x[i] = 0"),
        (X2, I32),
        {},
        CompileTypeError,
        """\
Kernel 'k': the array 'x' has 2 dimensions and is indexed with 1.
  File "/x/kernels.py", line 12
    x[i] = 0
    ^^^^
  Write x[i, j] with one index per dimension, or x.flat[i] for the flat position in a contiguous array.""",
    ),
    (
        loop("x[i, 0] = 0"),
        (X32, I32),
        {},
        CompileTypeError,
        """\
Kernel 'k': the array 'x' has 1 dimension and is indexed with 2.
  File "/x/kernels.py", line 12
    x[i, 0] = 0
    ^^^^^^^
  Write x[i] with one index per dimension.""",
    ),
    (
        "def k(x):\n    for i in range(len(x)):\n        if x[i] > 0:\n            t = 1\n        x[i] = t\n",
        (X32,),
        {},
        CompileNameError,
        """\
Kernel 'k': 't' may be unbound here: it is assigned at line 13, but not on every path that leads here.
  File "/x/kernels.py", line 14
    x[i] = t
           ^
  Assign it on every path, e.g. before the branch or loop.""",
    ),
    (
        "def k(x):\n    for i in range(len(x)):\n        for j in range(i):\n            t = 1\n        x[i] = j\n",
        (X32,),
        {},
        CompileNameError,
        """\
Kernel 'k': 'j' may be unbound here: the loop at line 12 assigns it, and may run zero times.
  File "/x/kernels.py", line 14
    x[i] = j
           ^
  Assign it before the loop.""",
    ),
    (
        (
            "def k(x, y):\n"
            "    for i in range(len(x)):\n"
            "        if i > 3:\n"
            "            q = x[i]\n"
            "        else:\n"
            "            q = y[i]\n"
            "        y[i] = q\n"
        ),
        (U64, I64),
        {},
        CompileTypeError,
        """\
Kernel 'k': 'q' is a tack.u64 value from line 13 and a tack.i64 value from line 15, which do not join.
  File "/x/kernels.py", line 16
    y[i] = q
           ^
  Convert one of them: tack.i64(...) or tack.u64(...).""",
    ),
    (
        "def k(x, n):\n    for i in range(int(x[0]) + n):\n        x[i] = 0\n",
        (X32, INT),
        {},
        CompileTypeError,
        """\
Kernel 'k': the bounds of a parallel loop depend on an element of an array.
  File "/x/kernels.py", line 11
    for i in range(int(x[0]) + n):
             ^^^^^^^^^^^^^^^^^^^^
  Loop bounds come from scalar arguments, shapes and captured values: pass the value as an argument, n = int(a[0]) at the call.""",
    ),
    (
        "def k(x):\n    for i in range(len(x)):\n        t = x[i]\n    x[0] = t\n",
        (X32,),
        {},
        CompileTypeError,
        """\
Kernel 'k': 't' is assigned inside the parallel loop at line 11, whose iterations are independent: it has no one value after it.
  File "/x/kernels.py", line 13
    x[0] = t
           ^
  Update it only by s += e, s -= e, s *= e, s &= e, s |= e, s ^= e, s = min(s, e) or s = max(s, e), \
or store into an array (tack.atomic_add, ...).""",
    ),
    (
        "def k(x):\n    s = 0.0\n    for i in range(len(x)):\n        s += x[i]\n        x[i] = s\n    x[0] = s\n",
        (X32,),
        {},
        CompileTypeError,
        """\
Kernel 'k': 's' is assigned inside the parallel loop at line 12, whose iterations are independent: it has no one value after it.
  File "/x/kernels.py", line 15
    x[0] = s
           ^
  At line 14 it is read. Update it only by s += e, s -= e, s *= e, s &= e, s |= e, s ^= e, s = min(s, e) or s = max(s, e), \
or store into an array (tack.atomic_add, ...).""",
    ),
    (
        loop("x[i] = f(x[i])"),
        (X32, I32),
        {"f": "def f(v):\n    return g(v)\n", "g": "def g(v):\n    return f(v)\n"},
        CompileNotImplementedError,
        """\
Kernel 'k': recursion is not part of the kernel language (f -> g -> f).
  File "/x/kernels.py", line 11
    return f(v)
           ^^^^
  In 'g', called at /x/kernels.py:11.
  In 'f', called at /x/kernels.py:12.
  Write a loop, with a tack.local_array as the stack where one is needed.""",
    ),
]


@pytest.mark.parametrize(("text", "args", "names", "kind", "expected"), EXACT, ids=[e[4].split(": ", 1)[1][:40] for e in EXACT])
def test_exact(text: str, args: tuple[ArgType, ...], names: dict[str, object], kind: type[CompileError], expected: str) -> None:
    error = failure(text, *args, **names)
    assert type(error) is kind
    assert str(error) == expected
    assert error.message == expected.split("\n")[0]
    assert error.kernel == "k"
    assert f"line {error.line}" in expected


PLAIN = Opaque("function", "helper()")
CASES = [
    # names
    (loop("x[i] = xx"), (X32, I32), CompileNameError, "name 'xx' is not defined", ""),
    ("def k(value, y):\n    y[0] = valeu\n", (FLOAT, X32), CompileNameError, "name 'valeu' is not defined", "Did you mean 'value'?"),
    (loop("x[i] = tack.sqr(i)"), (X32, I32), CompileNameError, "'tack' has no attribute 'sqr'", "Did you mean 'sqrt'?"),
    (loop("x[i] = t\n        t = 1"), (X32, I32), CompileNameError, "'t' is read before it is assigned", "Assign it first."),
    (
        loop("for j in range(9):\n            x[i] = t\n            t = 1"),
        (X32, I32),
        CompileNameError,
        "'t' may be unbound here: it is assigned in the loop",
        "",
    ),
    # calls
    (loop("x[i] = plain(i)"), (X32, I32), CompileTypeError, "helper() is a plain Python function", "Add @tack.func above its definition."),
    (loop("x[i] = other(i)"), (X32, I32), CompileTypeError, "other() is a kernel", "Make the common part a @tack.func"),
    (loop("x[i] = x(i)"), (X32, I32), CompileTypeError, "the array 'x' cannot be called", ""),
    (loop("x[i] = two(1)"), (X32, I32), CompileTypeError, "'two' is called without its parameter 'b'", "Its signature is two(a, b, c)."),
    (loop("x[i] = two(1, 2, 3, 4)"), (X32, I32), CompileTypeError, "'two' takes 3 positional arguments, not 4", "two(a, b, c)"),
    (loop("x[i] = two(1, 2, d=4)"), (X32, I32), CompileTypeError, "'two' has no parameter 'd'", ""),
    (loop("x[i] = two(1, b=2, a=4)"), (X32, I32), CompileTypeError, "'two' gets its parameter 'a' twice", ""),
    (loop("x[i] = two(1, 2)"), (X32, I32), CompileTypeError, "the default of 'c' in 'two' is not known", "Pass c"),
    (loop("x[i] = sum(T)"), (X32, I32), CompileNotImplementedError, "sum has no meaning in a kernel", "Loop over the items"),
    (loop("x[i] = tack.sqrt(i, 2)"), (X32, I32), CompileTypeError, "'sqrt' takes 1 argument, not 2", ""),
    (loop("x[i] = tack.sqrt(x)"), (X32, I32), CompileTypeError, "'sqrt' takes numbers, not the array 'x'", "Call it for each element"),
    (loop("x[i] = max(x)"), (X32, I32), CompileTypeError, "'max' takes two or more numbers", "Call a.max() outside the kernel"),
    (loop("x[i] = round(x[i], 2)"), (X32, I32), CompileNotImplementedError, "round with a number of digits", "round(x * 100) / 100"),
    (loop("print(x)"), (X32, I32), CompileTypeError, "the array 'x' cannot be printed in a kernel", "Print its elements, or x outside"),
    (loop("print(x[i], file=None)"), (X32, I32), CompileNotImplementedError, "print takes no 'file' in a kernel", "sep= and end="),
    (loop("print(x[i], sep=1)"), (X32, I32), CompileTypeError, "sep= of print must be a string literal, not a Python int.", ""),
    (loop("print(f'{x[i]:>8}')"), (X32, I32), CompileNotImplementedError, "a tack.f32 value cannot be written as '>8'", "f'{x:8.3f}'"),
    (loop("print(f'{x[i]:d}')"), (X32, I32), CompileNotImplementedError, "cannot be written as 'd'", ""),
    (loop("print(f'{x[i]:{i}}')"), (X32, I32), CompileNotImplementedError, "a format specification must be a literal", "as numbers"),
    (loop("print((f'{x[i]}', 1))"), (X32, I32), CompileNotImplementedError, "an f-string inside a tuple", "Print it by itself"),
    (loop("s = 'text'"), (X32, I32), CompileNotImplementedError, "a string is not part of the kernel language", "print and in the message"),
    (
        loop("s = f'{i}'"),
        (X32, I32),
        CompileNotImplementedError,
        "an f-string is not part of the kernel language",
        "print and in the message",
    ),
    (loop("assert x[i] > 0, L"), (X32, I32), CompileTypeError, "a list has no meaning in a kernel", ""),
    (loop("print(" + "i, " * 57 + ")"), (X32, I32), CompileTypeError, "one message has 57 values; the limit is 56", ""),
    # captured values
    (loop("x[i] = W[i]"), (X32, I32), CompileTypeError, "the array 'W' cannot be captured", "add the parameter 'W' to the kernel"),
    (loop("x[i] = L[i]"), (X32, I32), CompileTypeError, "a list has no meaning in a kernel", "Kernels can capture numbers"),
    (loop("x[i] = L + 1"), (X32, I32), CompileTypeError, "a list has no meaning in a kernel", ""),
    (loop("m = math\n        x[i] = m.pi"), (X32, I32), CompileTypeError, "the module 'math' cannot be kept in a name", "Write math.x"),
    # numbers
    (
        loop("x[i] = x[i] + 300"),
        (I8, I32),
        CompileTypeError,
        "300 does not fit tack.i8, whose range is -128 to 127",
        "tack.i8(300) to wrap it",
    ),
    (loop("x[i] = -1"), (U8, I32), CompileTypeError, "-1 does not fit tack.u8, whose range is 0 to 255", ""),
    (loop("x[i] = 2 ** 64"), (U64, I32), CompileTypeError, "18446744073709551616 does not fit tack.u64", ""),
    (
        loop("x[i] = x[i] + y[i]"),
        (U64, I64),
        CompileTypeError,
        "+ of tack.u64 and tack.i64 is refused",
        "Write tack.u64(...) around the tack.i64 value",
    ),
    (loop("x[i] = min(x[i], y[i])"), (U64, I64), CompileTypeError, "'min' of tack.u64 and tack.i64 is refused", ""),
    (loop("x[i] = (i + 1) * x[i]"), (U64, I64), CompileTypeError, "* of tack.i64 and tack.u64 is refused", ""),
    (loop("x[i] = 1 / 0"), (X32, I32), CompileError, "the constant expression 1 / 0 fails: division by zero", ""),
    (loop("x[i] = (-8) ** 0.5"), (X32, I32), CompileError, "the constant expression (-8) ** 0.5 is a complex number", ""),
    (loop("x[i] = 10 ** 10000"), (X32, I32), CompileError, "the result is too large", ""),
    (loop("x[i] = i ** -1"), (X32, I32), CompileTypeError, "an integer to the power -1 is no integer", "float(x) ** e"),
    (loop("x[i] = x[i] << 1"), (X32, I32), CompileTypeError, "<< works on integers, not on a tack.f32 value", "Convert with int(...)"),
    (loop("x[i] = x[i] & True"), (X32, I32), CompileTypeError, "& works on integers", ""),
    (loop("x[i] = ~(i > 2)"), (X32, I32), CompileTypeError, "~ of a bool is refused", "Write not x."),
    (
        loop("x[i] = x + 1"),
        (X32, I32),
        CompileTypeError,
        "+ does not work on the array 'x' and a Python int",
        "index arrays and tuples first",
    ),
    (loop("x[i] = x[i] @ y[i]"), (X32, I32), CompileNotImplementedError, "@ is not part of the kernel language", ""),
    (
        loop("x[i] = 1 if i in (1, 2) else 0"),
        (X32, I32),
        CompileNotImplementedError,
        "'in' is not part of the kernel language",
        "x == a or x == b",
    ),
    (loop("x[i] = 1 if i is 2 else 0"), (X32, I32), CompileNotImplementedError, "'is' compares with None only", "Write == for numbers."),
    (loop("if x:\n            y[i] = 1"), (X32, I32), CompileTypeError, "the array 'x' has no truth value in a kernel", "len(a) > 0"),
    # statements that do nothing; calls, := and what may not run them (and, or) do something
    (loop("x[i] == 3"), (X32, I32), CompileNotImplementedError, "this statement has no effect", "One = assigns: x[i] = 3."),
    (loop("x[i] > 3"), (X32, I32), CompileNotImplementedError, "this statement has no effect", "or leave it out."),
    (loop("x[-9]"), (X32, I32), CompileNotImplementedError, "this statement has no effect", "Assign its value to a name"),
    (loop("x.shape"), (X32, I32), CompileNotImplementedError, "this statement has no effect", ""),
    (loop("3"), (X32, I32), CompileNotImplementedError, "this statement has no effect", ""),
    (loop("if False:\n            i"), (X32, I32), CompileNotImplementedError, "this statement has no effect", ""),
    # arrays and tuples
    (
        loop("x[x[i]] = 1"),
        (X32, I32),
        CompileTypeError,
        "index 0 of the array 'x' must be an integer, not a tack.f32 value",
        "Convert it with int(...).",
    ),
    (loop("x[i > 0] = 1"), (X32, I32), CompileTypeError, "index 0 of the array 'x' must be an integer, not a bool", ""),
    (loop("x[i][0] = 1"), (X32, I32), CompileTypeError, "a tack.f32 value cannot be stored to", ""),
    (loop("y[i] = x[i][0]"), (X32, I32), CompileTypeError, "a tack.f32 value cannot be indexed", "all indices in one pair of brackets"),
    (loop("x[i] = x.T[i]"), (X32, I32), CompileNotImplementedError, "the array 'x' has no attribute 'T' in a kernel", "it is a view"),
    (
        loop("x[i] = x.shape[i]"),
        (X32, I32),
        CompileTypeError,
        "the dimension in x.shape[...] must be known at compile time",
        "n0, = x.shape",
    ),
    (loop("h, w = x.shape"), (X32, I32), CompileTypeError, "'x.shape' has 1 item and is unpacked to 2 names", ""),
    (loop("a, b = x[i]"), (X32, I32), CompileTypeError, "a tack.f32 value cannot be unpacked", ""),
    (loop("x[i] = T[3]"), (X32, I32), CompileTypeError, "index 3 is outside of the tuple, which has 2 items", ""),
    (
        "def k(x):\n    t = x[0]\n" + "    t = t, 1\n" * 101 + "    x[0] = t[1]\n",
        (X32,),
        CompileTypeError,
        "tuples lie more than 100 deep inside one another",
        "several names",
    ),
    (loop("T[0] = 3"), (X32, I32), CompileTypeError, "a tuple cannot be changed", "tack.local_array"),
    (
        loop("y[i] /= 2"),
        (X32, I32),
        CompileTypeError,
        "tack.i32 array 'y' cannot take",
        "Write y[...] = int(y[...] / ...) to convert, or y[...] //= ...",
    ),
    (loop("y[i] += 0.5"), (X32, I32), CompileTypeError, "tack.i32 array 'y' cannot take", "Write y[...] = int(y[...] + ...) to convert."),
    (loop("x[i] = (1, 2)"), (X32, I32), CompileTypeError, "tack.f32 array 'x' cannot take a tuple of 2", ""),
    (loop("x[i] = None"), (X32, I32), CompileTypeError, "tack.f32 array 'x' cannot take None", ""),
    (
        loop("t = tack.local_array(tack.f32, i)"),
        (X32, I32),
        CompileTypeError,
        "the shape of tack.local_array must be known at compile time",
        "",
    ),
    (
        loop("t = tack.local_array(tack.f32, 4)\n        t[4] = 1"),
        (X32, I32),
        CompileTypeError,
        "index 4 is outside of dimension 0 of the local array 't'",
        "",
    ),
    (
        loop("for v in x:\n            y[i] = v"),
        (X32, I32),
        CompileTypeError,
        "not over the array 'x'",
        "Write for i in range(len(x)), and x[i] in the loop.",
    ),
    (
        loop("tack.atomic_and_(x, i, 1)"),
        (X32, I32),
        CompileTypeError,
        "tack.atomic_and_ works on integers, and 'x' is a tack.f32 array",
        "",
    ),
    (loop("tack.atomic_add(y, i, 0.5)"), (X32, I32), CompileTypeError, "tack.i32 array 'y' cannot take a Python float", "tack.i32(...)"),
    # the top level
    (
        "def k(x, n):\n    if n > 0:\n        for i in range(n):\n            x[i] = 0\n",
        (X32, INT),
        CompileNotImplementedError,
        "a parallel loop inside if, while",
        "tack.sequential",
    ),
    (
        "def k(x, n):\n    while n > 0:\n        for i in range(n):\n            x[i] = 0\n",
        (X32, INT),
        CompileNotImplementedError,
        "a parallel loop inside if, while",
        "",
    ),
    (
        "def k(x, n):\n    for i in range(n):\n        x[i] = 0\n    else:\n        n = 1\n",
        (X32, INT),
        CompileNotImplementedError,
        "else on a parallel loop",
        "",
    ),
    (
        "def k(x, n):\n    for i in range(n):\n        break\n",
        (X32, INT),
        CompileNotImplementedError,
        "break of a parallel loop",
        "write continue",
    ),
    (
        "def k(x, n):\n    for i in range(n):\n        if x[i] > 1:\n            return\n",
        (X32, INT),
        CompileNotImplementedError,
        "return inside a parallel loop",
        "Write continue",
    ),
    (
        "def k(x, n):\n    for i in range(n):\n        return 3\n",
        (X32, INT),
        CompileNotImplementedError,
        "return inside a parallel loop",
        "Write continue",
    ),
    (
        "def k(x, n):\n    if n == 0:\n        return\n    for i in range(n):\n        x[i] = 1\n",
        (X32, INT),
        CompileNotImplementedError,
        "a kernel returns only in its last statement",
        "",
    ),
    (
        "def k(x, n):\n    return x\n",
        (X32, INT),
        CompileTypeError,
        "a kernel returns one number, not the array 'x'",
        "Store more values into an array.",
    ),
    (
        "def k(x, n):\n    tack.atomic_add(x, 0, 1)\n    for i in range(n):\n        x[i] = 0\n",
        (X32, INT),
        CompileNotImplementedError,
        "an atomic outside the parallel loops",
        "a[i] += v",
    ),
    (
        "def k(x, n):\n    for t in tack.sequential(n):\n        break\n",
        (X32, INT),
        CompileNotImplementedError,
        "break of a tack.sequential loop",
        "",
    ),
    ("def k(x, n):\n    for i in range(0, n, 0):\n        x[i] = 1\n", (X32, INT), CompileTypeError, "the step of range is 0", ""),
    (
        "def k(x, n):\n    for i in range(n / 2):\n        x[i] = 1\n",
        (X32, INT),
        CompileTypeError,
        "range takes integers, not a Python float",
        "write //",
    ),
    (
        "def k(x, n):\n    for i in tack.ndrange(1, 2, 3, 4, 5):\n        x[0] = 1\n",
        (X32, INT),
        CompileTypeError,
        "tack.ndrange takes 1 to 4 sizes",
        "",
    ),
    (
        "def k(x, n):\n    s = 0\n    for i in range(n):\n        s += x[i]\n        x[i] = s\n    return s\n",
        (X32, INT),
        CompileTypeError,
        "'s' is assigned inside the parallel loop",
        "s += e",
    ),
    (
        "def k(x, n):\n    s = 1\n    for i in range(n):\n        s += x[i]\n        s *= 2\n    return s\n",
        (X32, INT),
        CompileTypeError,
        "'s' is assigned inside the parallel loop",
        "",
    ),
    (
        "def k(x, n):\n    s = 1\n    for i in range(n):\n        s = s + x[i]\n    return s\n",
        (X32, INT),
        CompileTypeError,
        "'s' is assigned inside the parallel loop",
        "",
    ),
    (
        "def k(x, n):\n    for i in range(n):\n        s = x[i]\n    for i in range(n):\n        x[i] = s\n",
        (X32, INT),
        CompileTypeError,
        "'s' is assigned inside the parallel loop",
        "",
    ),
    (
        "def k(x, n):\n    t = tack.local_array(tack.f32, 4)\n    for i in range(n):\n        x[i] = t[0]\n",
        (X32, INT),
        CompileTypeError,
        "'t' is a local array that was made outside this loop",
        "",
    ),
]
NAMES = {
    "plain": PLAIN,
    "other": Opaque("kernel", "other()"),
    "W": Opaque("array", "a numpy.ndarray"),
    "L": Opaque("other", "a list"),
    "T": (1, 2),
    "two": "def two(a, b, c=N):\n    return a + b\n",
}


@pytest.mark.parametrize(("text", "args", "kind", "message", "hint"), CASES, ids=[f"{n}-{c[3][:40]}" for n, c in enumerate(CASES)])
def test_messages(text: str, args: tuple[ArgType, ...], kind: type[CompileError], message: str, hint: str) -> None:
    error = failure(text, *args, **NAMES)
    assert type(error) is kind, error
    assert message in error.message
    lines = str(error).split("\n")
    assert lines[1].startswith('  File "/x/kernels.py", line ')
    assert set(lines[3].strip()) == {"^"}
    if hint:
        assert hint in lines[-1]


def test_read_only_arrays_are_a_value_error() -> None:
    error = failure(loop("y[0] = x[i]\n        x[i] = 1"), ArrayArg(types.f32, 1, Layout.CONTIGUOUS, True), X32)
    assert type(error) is CompileValueError
    assert isinstance(error, ValueError)
    assert "the array 'x' is read-only, and the kernel writes to it" in str(error)
    assert kernel(loop("y[0] = x[i]"), ArrayArg(types.f32, 1, Layout.CONTIGUOUS, True), X32).written == {1}


def test_flat_needs_a_contiguous_array() -> None:
    error = failure(loop("y[i] = x.flat[i]"), ArrayArg(types.f32, 2, Layout.INNER), X32)
    assert isinstance(error, ValueError)
    assert "'x.flat' needs a contiguous array" in str(error)


def test_an_error_in_a_function_names_the_calls_that_led_there() -> None:
    env = DictEnvironment({"f": "def f(v):\n    w = v\n    return w + nothing\n"})
    meaning = env.names["f"]
    assert isinstance(meaning, FuncMeaning)
    env.names["f"] = dataclasses.replace(meaning, source=dataclasses.replace(meaning.source, file="/lib/f.py", line=3))
    with pytest.raises(CompileNameError) as caught:
        infer(parse(source(loop("x[i] = f(x[i])"))), [X32, I32], env, CPU, {})
    assert str(caught.value) == (
        "Kernel 'k': name 'nothing' is not defined.\n"
        '  File "/lib/f.py", line 5\n'
        "    return w + nothing\n"
        "               ^^^^^^^\n"
        "  In 'f', called at /x/kernels.py:12."
    )


@pytest.mark.parametrize(
    "name", ["shared", "shared_like", "barrier", "thread_id", "block_id", "block_dim", "block_sum", "block_min", "block_max"]
)
def test_workgroup_functions_are_refused_before_anything_else(name: str) -> None:
    text = loop("x[i] = undefined_name")
    hidden = f"def f(v):\n    if False:\n        g = tack.{name}\n    return v\n"
    for kernel_text, names in (
        (text + f"        if False:\n            tack.{name}(x)\n", {}),
        (text + "        if False:\n            f(i)\n", {"f": hidden}),
        (text + "        a(i)\n", {"a": Intrinsic(name, "tack")}),
    ):
        error = failure(kernel_text, X32, I32, **names)
        assert type(error) is CapabilityError
        assert isinstance(error, UnsupportedError) and isinstance(error, NotImplementedError)
        assert error.capability == "workgroups"
        assert str(error).startswith("Kernel 'k': shared memory, barriers, thread_id and block reductions are not supported on CPU.")
        assert "tack.local_array" in str(error)


def test_f64_and_atomics_that_a_device_lacks() -> None:
    metal = dataclasses.replace(CPU, title="Metal", supports_f64=False, atomic_dtypes=frozenset((types.i32, types.u32, types.f32)))
    for text, args in ((loop("x[i] = tack.f64(x[i])"), (X32, I32)), (loop("y[i] = 1"), (X32, X64)), (loop("t: tack.f64 = 1"), (X32, I32))):
        with pytest.raises(CapabilityError, match=r"Kernel 'k': tack.f64 is not supported on Metal") as caught:
            kernel(text, *args, target=metal)
        assert caught.value.capability == "f64"
    with pytest.raises(
        CapabilityError,
        match=r"tack.atomic_add of tack.i64 arrays is not supported on Metal.\n  Atomic array types there: tack.f32, tack.i32, tack.u32.",
    ):
        kernel(loop("tack.atomic_add(y, i, 1)"), X32, I64, target=metal)
    kernel(loop("tack.atomic_add(x, i, 1)"), X32, I64, target=metal)
    assert scan(parse(source(loop("x[i] = 1 if x.dtype == tack.f64 else 2"))), DictEnvironment()) == frozenset()
    check_uses("k", {"print"}, metal)
