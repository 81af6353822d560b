"""Captured values: what they are as text, what is guarded, and what the compiler is told of them."""

from __future__ import annotations

import enum
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tack
from tack._runtime import ABSENT
from tack.capture import Captures, capture
from tack.environment import environment_of
from tack.frontend.meaning import Constant, DTypeMeaning, FuncMeaning, Intrinsic, ModuleMeaning, Opaque, TupleMeaning
from tack.source_text import SourceText


def source_of(text: str) -> SourceText:
    return SourceText("f", "f", "file.py", 1, text)


def captured(*names: str, closure: dict[str, Any] | None = None, **values: Any) -> Captures:
    """What a function captures whose text names ``names`` and whose globals are ``values``."""
    function = function_with(values)
    if closure is not None:
        cells = tuple(types.CellType(v) if v is not ABSENT else types.CellType() for v in closure.values())
        inner = function.__code__.replace(co_freevars=tuple(closure))
        function = types.FunctionType(inner, function.__globals__, closure=cells)
    return capture(function, source_of("text"), lambda source: tuple(tuple(n.split(".")) for n in names) if source.text == "text" else ())


def function_with(namespace: dict[str, Any]) -> types.FunctionType:
    namespace.setdefault("__builtins__", __builtins__)
    return types.FunctionType((lambda: None).__code__, namespace)


def token(value: Any) -> str:
    return captured("G", G=value).tokens[1]


class Colour(enum.IntEnum):
    RED = 3


DIFFERENT = [
    0, 1, -1, True, False, 0.0, -0.0, 1.0, float("nan"), float("inf"), np.float32(1), np.float64(1), np.int32(1), np.int64(1),
    np.bool_(True),    np.float32(-0.0), (1, 2), (1, 2.0), (1, (2,)), (1, 2, ()), (), tack.f32, tack.f64, math.sqrt,
    math.exp, np.sqrt, tack.sqrt, tack.exp,
    abs, int, float, range, min, max, None, "a", [1], np.zeros(2), math, np, tack, len, print, lambda: 1, object(),
]  # fmt: skip


def test_tokens_tell_meanings_apart() -> None:
    tokens = [token(value) for value in DIFFERENT]
    assert len(set(tokens)) == len(tokens), [t for t in tokens if tokens.count(t) > 1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, Colour.RED - 2),
        (3, Colour.RED),
        (np.float32, tack.f32),
        (np.dtype("int8"), tack.i8),
        (np.abs, np.absolute),
        (float("nan"), -float("nan")),
    ],
    ids=str,
)
def test_tokens_join_equal_meanings(one: object, other: object) -> None:
    assert token(one) == token(other)


def guards(captures: Captures) -> list[tuple[str | None, Any]]:
    return [(name, value) for _, name, value in captures.guards]


def test_globals_are_guarded_once_and_modules_by_identity() -> None:
    found = captured("G", "np.float32", "np.sqrt", "math.pi", "tack.sqrt", G=5, np=np, math=math, tack=tack)
    assert guards(found) == [("G", 5), ("np", np), ("math", math), ("tack", tack)]


def test_attributes_of_other_modules_and_classes_are_guarded() -> None:
    module = types.ModuleType("settings")
    module.RATE = 2.5

    class Config:
        N = 7

    found = captured("settings.RATE", "Config.N", "settings.NONE", settings=module, Config=Config)
    assert guards(found) == [("settings", module), ("RATE", 2.5), ("Config", Config), ("N", 7), ("NONE", ABSENT)]
    assert found.guards[1][0] is module and found.guards[3][0] is Config


def test_builtins_are_guarded_against_being_hidden() -> None:
    found = captured("range", "nowhere")
    assert guards(found) == [("range", ABSENT), ("nowhere", ABSENT)]
    assert found.tokens[1:] == ["range=builtins range", "nowhere=missing"]


def test_closures_go_before_globals() -> None:
    found = captured("G", closure={"G": 4}, G=5)
    assert found.tokens[1] == "G=int 4"
    assert isinstance(found.guards[0][0], types.CellType) and found.guards[0][1:] == (None, 4)
    assert captured("G", closure={"G": ABSENT}).guards[0][1:] == (None, ABSENT)


def test_paths_end_where_no_module_is() -> None:
    found = captured("a.shape", a=np.zeros(3))
    assert found.tokens[1] == "a.shape=opaque numpy.ndarray"
    assert len(found.guards) == 1


def func(text: str, **values: Any) -> Any:
    made = tack.func(function_with(values))
    made.source = source_of(text)
    return made


def of_texts(texts: dict[str, str], kernel: Callable[..., Any] | Any, text: str = "kernel") -> Captures:
    return capture(kernel, source_of(text), lambda s: tuple(tuple(n.split(".")) for n in texts[s.text].split()))


def test_funcs_bring_their_own_captures_at_any_depth() -> None:
    inner = func("inner", G=1)
    outer = func("outer", inner=inner)
    kernel = function_with({"outer": outer, "G": 2})
    texts = {"kernel": "outer G", "outer": "inner", "inner": "G"}
    found = of_texts(texts, kernel)
    assert found.tokens == ["kernel", "outer=func 1", "G=int 2", "outer", "inner=func 2", "inner", "G=int 1"]
    assert guards(found) == [("outer", outer), ("G", 2), ("inner", inner), ("G", 1)]
    inner.function.__globals__["G"] = 3
    assert of_texts(texts, kernel).tokens[-1] == "G=int 3"


def test_recursive_funcs_end() -> None:
    f, g = func("f"), func("g")
    f.function.__globals__["g"], g.function.__globals__["f"] = g, f
    found = of_texts({"kernel": "f", "f": "g", "g": "f"}, function_with({"f": f}))
    assert found.tokens == ["kernel", "f=func 1", "f", "g=func 2", "g", "f=func 1"]


def test_workgroup_functions_are_found_through_funcs_and_aliases() -> None:
    helper = func("helper", hush=tack.barrier)
    found = of_texts({"kernel": "helper", "helper": "hush"}, function_with({"helper": helper}))
    assert found.workgroup == {"barrier": "f"}
    assert captured("t.shared", t=tack).workgroup == {"shared": "f"}
    assert captured("local_array", local_array=tack.local_array).workgroup == {}


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        (3, Constant(3)),
        (True, Constant(True)),
        (2.5, Constant(2.5)),
        (Colour.RED, Constant(3)),
        (np.float32(2.5), Constant(2.5, tack.f32)),
        (np.uint8(7), Constant(7, tack.u8)),
        (np.bool_(True), Constant(True)),
        ((1, (2.0, True)), TupleMeaning((Constant(1), TupleMeaning((Constant(2.0), Constant(True)))))),
        (tack.i16, DTypeMeaning(tack.i16)),
        (np.int16, DTypeMeaning(tack.i16)),
        (np.dtype("f8"), DTypeMeaning(tack.f64)),
        (tack.atomic_add, Intrinsic("atomic_add", "tack")),
        (math.sqrt, Intrinsic("sqrt", "math")),
        (np.abs, Intrinsic("absolute", "numpy")),
        (min, Intrinsic("min", "builtins")),
        (int, Intrinsic("int", "builtins")),
        (range, Intrinsic("range", "builtins")),
        (math, ModuleMeaning("math", math)),
        (Colour, ModuleMeaning("Colour", Colour)),
        (None, Opaque("none", "None")),
        ("text", Opaque("str", "a str")),
        (np.zeros(1), Opaque("array", "a numpy.ndarray")),
        (of_texts, Opaque("function", "of_texts()")),
        ([1], Opaque("other", "a list")),
        (np.float16(1), Opaque("other", "a numpy.float16")),
    ],
    ids=lambda value: repr(value).split(" at 0x")[0],
)
def test_meanings(value: Any, meaning: Any) -> None:
    assert environment_of(captured("G", G=value)).lookup("G") == meaning


def test_meaning_of_tack_objects() -> None:
    @tack.kernel
    def other(a):
        a[0] = 1

    assert environment_of(captured("k", k=other)).lookup("k") == Opaque("kernel", "other()")
    assert environment_of(captured("a", a=tack.zeros(1))).lookup("a") == Opaque("array", "a tack.arrays.Array")
    assert environment_of(captured("nothing")).lookup("nothing") is None
    environment = environment_of(captured("math.pi", "math.nothing", math=math))
    module = environment.lookup("math")
    assert isinstance(module, ModuleMeaning)
    assert environment.attribute(module, "pi") == Constant(math.pi)
    assert environment.attribute(module, "nothing") is None


def test_meaning_of_a_func_has_its_own_environment() -> None:
    helper = func("helper", G=np.float32(1))
    found = of_texts({"kernel": "helper", "helper": "G"}, function_with({"helper": helper, "G": 2}))
    meaning = environment_of(found).lookup("helper")
    assert isinstance(meaning, FuncMeaning) and meaning.identity is helper and meaning.source.text == "helper"
    assert meaning.environment.lookup("G") == Constant(1.0, tack.f32)


def test_a_users_ufunc_is_not_numpys() -> None:
    mine = np.frompyfunc(lambda x: x, 1, 1)
    assert environment_of(captured("G", G=mine)).lookup("G").kind == "callable"
