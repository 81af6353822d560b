"""Shared by the tests of the language: kernels made of text, one-number kernels, and the error that a text gives."""

from __future__ import annotations

import itertools
import linecache
import math
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

import tack

_numbers = itertools.count()

DTYPES = (tack.i8, tack.u8, tack.i16, tack.u16, tack.i32, tack.u32, tack.i64, tack.u64, tack.f32, tack.f64)
INTEGERS = DTYPES[:8]


def define(text: str, /, **names: Any) -> dict[str, Any]:
    """Runs a text as a notebook runs a cell; ``names`` are its globals beside tack, math and np."""
    source = textwrap.dedent(text).lstrip("\n")
    name = f"<language-{next(_numbers)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace: dict[str, Any] = {"__name__": name, "tack": tack, "math": math, "np": np, **names}
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)  # Python's own compiler recurses
    try:
        code = compile(source, name, "exec", dont_inherit=True)
    finally:
        sys.setrecursionlimit(limit)
    exec(code, namespace)
    return namespace


def kernel(text: str, /, **names: Any) -> Any:
    """The kernel ``k`` of a text."""
    return define(text, **names)["k"]


def here(value: Any) -> Any:
    """A NumPy array as it is where the default device can use it in place, else a copy there; anything else as it is."""
    return tack.array(value) if isinstance(value, np.ndarray) and tack.get_default_device().type != "cpu" else value


def values(expressions: list[str], dtype: Any, /, *arguments: Any, setup: str = "", params: str = "", **names: Any) -> list[Any]:
    """What a kernel computes for each expression, stored into an array of ``dtype``. ``params`` name the arguments."""
    lines = [*textwrap.dedent(setup).splitlines(), *(f"out[{n}] = {e}" for n, e in enumerate(expressions))]
    text = f"@tack.kernel\ndef k(out{', ' + params if params else ''}):\n" + textwrap.indent("\n".join(lines), "    ") + "\n"
    out = tack.zeros(len(expressions), dtype)
    kernel(text, **names)(out, *map(here, arguments))
    return out.numpy()  # type: ignore[no-any-return]


def refused(text: str, kind: type[Exception], /, *arguments: Any, **names: Any) -> str:
    """The message of the error that calling the text's kernel ``k`` gives, which inspect gives too; the arrays stay as they are."""
    k = kernel(text, **names)
    before = [a.tolist() if isinstance(a, tack.Array) else None for a in arguments]
    with pytest.raises(kind) as info:
        k(*arguments)
    with pytest.raises(kind):
        tack.inspect(k, *arguments)
    message = str(info.value)
    assert "Kernel 'k'" in message, message
    for word in ("llvm", "%0", "%1", "<return>", "traceback"):
        assert word not in message.lower() or word in text.lower(), message
    assert before == [a.tolist() if isinstance(a, tack.Array) else None for a in arguments]
    return message


def same(got: Any, expected: Any) -> None:
    """Equal to the bit, NaNs as one and zeros with their signs."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape and np.array_equal(got, expected, equal_nan=got.dtype.kind == "f"), f"{got} is not {expected}"
    if got.dtype.kind == "f":
        assert np.array_equal(np.signbit(got) & ~np.isnan(got), np.signbit(expected) & ~np.isnan(expected)), f"{got} is not {expected}"
