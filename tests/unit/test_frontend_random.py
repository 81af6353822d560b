"""Random kernels of nested branches, loops, jumps, lazy expressions and inlined functions, against the same text run by Python."""

from __future__ import annotations

import random

import numpy as np
import pytest
from frontend_env import INT, kernel

from tack import types
from tack.errors import CompileError
from tack.frontend.meaning import ArrayArg
from tack.ir.interpret import run

I64 = ArrayArg(types.i64, 1)
X = [3, 0, -7, 12, 5]


class Writer:
    """Writes statements over the names that are bound for sure; ``careless`` ones read any name at times."""

    def __init__(self, rng: random.Random, careless: bool) -> None:
        self.rng = rng
        self.careless = careless
        self.lines: list[str] = []
        self.counters = 0
        self.calls = 3

    def expression(self, names: list[str], depth: int = 0) -> str:
        r = self.rng
        if self.careless and r.random() < 0.02:
            return r.choice("abcde")
        if depth > 2 or r.random() < 0.25:
            return r.choice([*names, str(r.randint(-5, 9))])

        def e() -> str:
            return self.expression(names, depth + 1)

        kind = r.randint(0, 9)
        if kind < 3:
            return f"({e()} {r.choice('+-*')} {e()})"
        if kind == 3:
            return f"({e()} // ({e()} % 7 + 1))"
        if kind == 4:
            return f"({e()} if {self.condition(names, depth + 1)} else {e()})"
        if kind == 5:
            return f"({e()} {r.choice(['and', 'or'])} {e()})"
        if kind == 6:
            return f"{r.choice(['min', 'max'])}({e()}, {e()})"
        if kind == 7 and self.calls > 0:
            self.calls -= 1
            return f"f{r.randint(0, 1)}({e()}, {e()})"
        return f"abs({e()} % 11)"

    def condition(self, names: list[str], depth: int = 0) -> str:
        r = self.rng

        def e() -> str:
            return self.expression(names, depth + 1)

        kind = 0 if depth > 2 else r.randint(0, 5)
        if kind < 2:
            return f"{e()} {r.choice(['<', '>', '<=', '>=', '==', '!='])} {e()}"
        if kind == 2:
            return f"{e()} < {e()} <= {e()}"
        if kind == 3:
            return f"({self.condition(names, depth + 1)} and {self.condition(names, depth + 1)})"
        if kind == 4:
            return f"(not {self.condition(names, depth + 1)} or {self.condition(names, depth + 1)})"
        return e()

    def block(self, bound: set[str], indent: int, depth: int, in_loop: bool, in_function: bool) -> set[str]:
        """Writes a block and answers the names that are bound after it."""
        r = self.rng
        bound = set(bound)
        lead = "    " * indent

        def put(line: str) -> None:
            self.lines.append(lead + line)

        def nested(extra: set[str], loop: bool) -> set[str]:
            return self.block(bound | extra, indent + 1, depth + 1, loop, in_function)

        put("pass")
        for _ in range(r.randint(1, 4)):
            names = sorted(bound)
            kind = r.randint(0, 13)
            if kind < 5 or depth > 3:
                name = r.choice("abcde")
                if name in bound and r.random() < 0.3:
                    put(f"{name} {r.choice(['+=', '-=', '*='])} {self.expression(names)}")
                    put(f"{name} = {name} % 1009")
                else:
                    put(f"{name} = ({self.expression(names)}) % 1013")
                    bound.add(name)
            elif kind == 5:
                first, second = r.sample(names, 2)
                put(f"{first}, {second} = {second}, ({self.expression(names)}) % 1013")
            elif kind < 8:
                put(f"if {self.condition(names)}:")
                both = nested(set(), in_loop)
                if r.random() < 0.3:
                    put(f"elif {self.condition(names)}:")
                    both &= nested(set(), in_loop)
                if r.random() < 0.6:
                    put("else:")
                    bound |= both & nested(set(), in_loop)
            elif kind < 10:
                name = r.choice("pqrs")
                bounds = r.choice([str(r.randint(1, 4)), f"{self.expression(names)} % 4", f"3, {r.randint(-2, 2)}, -1"])
                put(f"for {name} in range({bounds}):")
                nested({name}, True)
                if r.random() < 0.4:
                    put("else:")
                    nested(set(), in_loop)
            elif kind == 10:
                counter = f"w{self.counters}"
                self.counters += 1
                put(f"{counter} = 0")
                put(f"while {counter} < {r.randint(1, 4)} and {self.condition(names)}:")
                put(f"    {counter} += 1")
                nested(set(), True)
                if r.random() < 0.3:
                    put("else:")
                    nested(set(), in_loop)
            elif kind == 11 and in_loop:
                put(f"if {self.condition(names)}:")
                put(f"    {r.choice(['break', 'continue'])}")
            elif kind == 12 and in_function:
                put(f"if {self.condition(names)}:")
                put(f"    return {self.expression(names)}")
            elif kind == 13:
                name = r.choice("uv")
                put(f"for {name} in (1, 5, {r.randint(-3, 3)}):")
                nested({name}, True)
        return bound


def generate(seed: int, careless: bool) -> tuple[str, dict[str, str]]:
    rng = random.Random(seed)
    functions = {}
    for k in range(2):
        w = Writer(rng, careless)
        w.calls = 0 if k == 0 else 2
        w.lines = [f"def f{k}(a, b):"]
        bound = w.block({"a", "b"}, 1, 1, False, True)
        w.lines.append(f"    return {w.expression(sorted(bound))}")
        functions[f"f{k}"] = "\n".join(w.lines).replace("f1(", "f0(").replace("def f0", f"def f{k}", 1) + "\n"
    w = Writer(rng, careless)
    w.lines = ["def k(x, out, n):", "    for i in range(len(x)):", "        a = x[i]", "        b = i - n"]
    bound = w.block({"a", "b"}, 2, 0, False, False)
    w.lines.append(f"        out[i] = ({' + 3 * '.join(sorted(bound))}) % 100003")
    return "\n".join(w.lines) + "\n", functions


def python(text: str, functions: dict[str, str]) -> list[int] | None:
    """What Python computes; None where it meets an unbound name."""
    space: dict[str, object] = {}
    for code in (*functions.values(), text):
        exec(code, space)
    out = [0] * len(X)
    try:
        space["k"](list(X), out, 4)  # type: ignore[operator]
    except NameError:
        return None
    return out


@pytest.mark.parametrize("seed", range(60))
def test_random_kernels_compute_what_python_computes(seed: int) -> None:
    text, functions = generate(seed, careless=False)
    expected = python(text, functions)
    assert expected is not None
    out = np.zeros(len(X), np.int64)
    run(kernel(text, I64, I64, INT, **functions), [np.array(X), out, 4])
    assert list(out) == expected


def test_random_kernels_that_read_unbound_names_are_refused() -> None:
    seen = {True: 0, False: 0}
    for seed in range(1000, 1050):
        text, functions = generate(seed, careless=True)
        expected = python(text, functions)
        seen[expected is None] += 1
        try:
            k = kernel(text, I64, I64, INT, **functions)
        except CompileError as error:
            assert isinstance(error, NameError)
            continue
        assert expected is not None, text
        out = np.zeros(len(X), np.int64)
        run(k, [np.array(X), out, 4])
        assert list(out) == expected
    assert min(seen.values()) > 10


@pytest.mark.parametrize("dtypes", ["f32 f64", "i32 f32", "u8 i64", "i16 u32", "u64 u64"])
def test_random_kernels_of_mixed_types_are_well_formed_or_refused(dtypes: str) -> None:
    """``kernel`` verifies what it answers; types that do not fit are errors about the text, nothing else."""
    first, second = (ArrayArg(types.by_name(name), 1) for name in dtypes.split())
    well_formed = 0
    for seed in range(2000, 2020):
        text, functions = generate(seed, careless=False)
        try:
            kernel(text.replace("1009", "107").replace("1013", "109").replace("100003", "113"), first, second, INT, **functions)
        except CompileError as error:
            assert isinstance(error, TypeError), error
        else:
            well_formed += 1
    assert well_formed > 0
