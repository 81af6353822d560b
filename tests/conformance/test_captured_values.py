"""Captured values belong to the specialization: a changed one, at any depth and in any file, is seen at the next call."""

from __future__ import annotations

import linecache
import math
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tack

pytestmark = pytest.mark.usefixtures("device")  # the arrays are made on it

G: Any = 2.0


@tack.kernel
def uses_global(x):
    for i in range(x.shape[0]):
        x[i] = G


def value() -> float:
    x = tack.zeros(2, tack.f64)
    uses_global(x)
    return float(x[1])


@pytest.fixture(autouse=True)
def _g_is_restored() -> Iterator[None]:
    yield
    globals()["G"] = 2.0


def compiled() -> int:
    d = tack.get_default_device()
    return d.compiled + d.loaded


@pytest.mark.needs("f64")
def test_a_changed_global_is_seen_and_a_known_value_compiles_nothing() -> None:
    global G
    assert value() == 2.0
    before = compiled()
    G = 5.0
    assert value() == 5.0 and compiled() == before + 1
    for G in (2.0, 5.0, 2.0):
        assert value() == G
    assert compiled() == before + 1


@pytest.mark.parametrize("changed", [3, True, np.float32(1.5), np.float64(0.1), np.int16(-3), -0.0, float("inf")], ids=repr)
@pytest.mark.needs("f64")
def test_values_of_all_kinds(changed: Any) -> None:
    global G
    value()
    G = changed
    assert value() == float(changed) and math.copysign(1, value()) == math.copysign(1, float(changed))


@pytest.mark.needs("f64")
def test_minus_zero_is_another_value_and_nan_is_itself() -> None:
    global G
    G = 0.0
    assert math.copysign(1, value()) == 1
    G = -0.0
    assert math.copysign(1, value()) == -1
    G = float("nan")
    assert math.isnan(value())
    before = compiled()
    G = float("nan")
    assert math.isnan(value()) and compiled() == before


def test_closures_are_seen() -> None:
    rate = 1.0

    @tack.kernel
    def inner(x):
        for i in range(x.shape[0]):
            x[i] = rate

    x = tack.zeros(2)
    inner(x)
    rate = 9.0
    inner(x)
    assert x.tolist() == [9.0, 9.0]


def test_two_closures_of_one_text_are_two_kernels() -> None:
    def make(rate: float) -> Any:
        @tack.kernel
        def inner(x):
            for i in range(x.shape[0]):
                x[i] = rate

        return inner

    one, two = make(1.0), make(2.0)
    x = tack.zeros(2)
    one(x)
    assert x[0] == 1.0
    two(x)
    assert x[0] == 2.0


class Config:
    N = 3


def test_class_attributes_are_seen() -> None:
    @tack.kernel
    def fill(x):
        for i in range(x.shape[0]):
            x[i] = Config.N

    x = tack.zeros(1)
    fill(x)
    Config.N = 4
    fill(x)
    assert x[0] == 4.0
    Config.N = 3


def test_tuples_are_seen() -> None:
    weights = (1.0, 2.0, 3.0)

    @tack.kernel
    def total(x):
        for i in range(x.shape[0]):
            s = 0.0
            for k in range(3):
                s += weights[k]
            x[i] = s

    x = tack.zeros(1)
    total(x)
    assert x[0] == 6.0
    weights = (1.0, 2.0, 30.0)
    total(x)
    assert x[0] == 33.0


@tack.func
def helper(v):
    return v + 1.0


def test_a_replaced_helper_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    @tack.kernel
    def use(x):
        for i in range(x.shape[0]):
            x[i] = helper(x[i])

    x = tack.zeros(1)
    use(x)
    assert x[0] == 1.0

    @tack.func
    def other(v):
        return v + 10.0

    monkeypatch.setitem(globals(), "helper", other)
    use(x)
    assert x[0] == 11.0


def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> types.ModuleType:
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return __import__(name)


def test_values_and_helpers_in_other_modules_are_seen_at_any_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = module(tmp_path, monkeypatch, "deep_module_t", "import tack\nK = 2.0\n@tack.func\ndef times(v):\n    return v * K\n")
    mid = module(
        tmp_path,
        monkeypatch,
        "mid_module_t",
        "import tack, deep_module_t\n@tack.func\ndef via(v):\n    return deep_module_t.times(v) + 1.0\n",
    )

    @tack.kernel
    def use(x):
        for i in range(x.shape[0]):
            x[i] = mid.via(x[i])

    x = tack.ones(1)
    use(x)
    assert x[0] == 3.0
    deep.K = 5.0
    use(x)
    assert x[0] == 16.0
    deep.times = tack.func(helper.function)
    use(x)
    assert x[0] == 18.0


def test_a_global_that_hides_a_builtin_is_seen() -> None:
    namespace: dict[str, Any] = {"tack": tack}
    cell("import tack\n@tack.kernel\ndef k(x):\n    for i in range(x.shape[0]):\n        x[i] = max(x[i], 3.0)\n", namespace)
    x = tack.ones(1)
    namespace["k"](x)
    assert x[0] == 3.0
    namespace["max"] = min
    namespace["k"](x)
    assert x[0] == 3.0
    x.fill(5)
    namespace["k"](x)
    assert x[0] == 3.0


_cells = 0


def cell(text: str, namespace: dict[str, Any]) -> None:
    """Runs ``text`` as a notebook runs a cell."""
    global _cells
    _cells += 1
    name = f"<ipython-input-{_cells}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), namespace)


def test_a_redefined_notebook_cell_takes_effect() -> None:
    namespace: dict[str, Any] = {"tack": tack}
    func = "@tack.func\ndef f(v):\n    return v + 1.0\n"
    cell(func, namespace)
    cell("@tack.kernel\ndef k(x):\n    for i in range(x.shape[0]):\n        x[i] = f(x[i])\n", namespace)
    x = tack.zeros(1)
    namespace["k"](x)
    assert x[0] == 1.0
    cell(func.replace("1.0", "100.0"), namespace)
    namespace["k"](x)
    assert x[0] == 101.0


@pytest.mark.needs("f64")
def test_np_and_math_constants() -> None:
    @tack.kernel
    def fill(x):
        x[0] = math.pi
        x[1] = np.e

    x = tack.zeros(2, tack.f64)
    fill(x)
    assert x.tolist() == [math.pi, math.e]


def test_captured_arrays_are_refused_with_the_cure() -> None:
    table = tack.ones(3)

    @tack.kernel
    def use(x):
        for i in range(x.shape[0]):
            x[i] = table[i]

    with pytest.raises(tack.CompileError, match="Pass it as an argument") as info:
        use(tack.zeros(3))
    assert "table" in str(info.value) and "use" in str(info.value)


def test_plain_functions_are_refused_with_the_cure() -> None:
    def plain(v: float) -> float:
        return v

    @tack.kernel
    def use(x):
        for i in range(x.shape[0]):
            x[i] = plain(x[i])

    with pytest.raises(tack.CompileError, match=r"@tack\.func") as info:
        use(tack.zeros(3))
    assert "plain" in str(info.value)
