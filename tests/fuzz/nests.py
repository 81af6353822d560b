"""Random kernels of a parallel loop over rows and inner loops along them: ``nests.py [FIRST] [COUNT]`` runs seeds FIRST, FIRST + 1, ...

Each is run with many numbers of lanes, with shapes of many sizes, and with arrays that overlap (in place, shifted, interleaved); what it
stores is compared with the interpreter's, bit for bit. Iterations touch rows of their own alone, whatever overlaps, so that nothing races;
some add to totals of all of them.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check import Difference, Level, differing, load  # noqa: E402

import tack  # noqa: E402
from tack.codegen import build_source, cost  # noqa: E402
from tack.compiler import _infer, target_of  # noqa: E402
from tack.ir import interpret  # noqa: E402
from tack.ir.fma import form_fma  # noqa: E402
from tack.kernels import kernel_function  # noqa: E402
from tack.mathlink import math as math_library  # noqa: E402

WIDTHS = (0, 1, 2, 4, 8, 16, 32)
SHAPES = ((1, 1), (2, 5), (3, 16), (5, 17), (17, 33), (18, 16), (33, 7), (9, 70), (4, 0), (2, 131))
EDGE = 9  # columns beyond those that loops run over
ARRAYS = {"x": "f32", "y": "i32", "o": "f32", "u": "i32", "d": "f64", "c": "i8"}
ALIKE = {"f32": ("x", "o"), "i32": ("y", "u")}


class Nest:
    """Writes one kernel."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(f"nest {seed}")
        self.lines: list[str] = []
        self.depth = 1
        self.fresh = 0
        self.counters: list[str] = []
        self.names: dict[str, list[str]] = {"f32": [], "i32": [], "f64": [], "int": []}
        self.sums: dict[str, str] = {}
        self.local = False  # whether iterations have an array of their own
        self.totals: dict[str, tuple[str, str]] = {}  # type and operation

    def say(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def chance(self, p: float) -> bool:
        return self.r.random() < p

    def column(self) -> str:
        j = self.r.choice(self.counters)
        return self.r.choice(
            (j, j, j, j, f"{j} + 1", f"{j} - 1", f"{j} + 2", f"m + 6 - {j}", "2", "m", f"2 + ({j} * 3) % m", f"2 + y[i, {j}] % m")
        )

    def number(self, t: str, depth: int = 0) -> str:
        """An expression of a type."""
        r = self.r
        if depth > 2 or self.chance(0.35):
            own = self.names[t]
            if own and self.chance(0.4):
                return r.choice(own)
            if t == "f32":
                if self.local and self.chance(0.25):
                    return f"l[{self.column()}]"
                return r.choice(
                    (
                        f"x[i, {self.column()}]",
                        f"x[i, {r.choice(self.counters)}]",
                        f"b[{self.column()}]",
                        f"o[i, {self.column()}]",
                        "p",
                        "tack.f32(0.75)",
                    )
                )
            if t == "f64":
                return r.choice((f"d[i, {self.column()}]", "tack.f64(1.5)", f"tack.f64({self.number('f32', depth + 1)})"))
            return r.choice(
                (
                    f"y[i, {self.column()}]",
                    f"tack.i32(c[i, {r.choice(self.counters)}])",
                    f"tack.i32({r.choice(self.counters)})",
                    "tack.i32(i)",
                    "q",
                    "tack.i32(5)",
                )
            )
        a = self.number(t, depth + 1)
        b = self.number(t, depth + 1)
        if t == "i32":
            return r.choice(
                (
                    f"({a} + {b})",
                    f"({a} - {b})",
                    f"({a} * {b})",
                    f"({a} & {b})",
                    f"({a} ^ {b})",
                    f"({a} // {b})",
                    f"({a} % 7)",
                    f"min({a}, {b})",
                    f"({a} >> 2)",
                    f"({a} if {self.test(depth + 1)} else {b})",
                )
            )
        return r.choice(
            (
                f"({a} + {b})",
                f"({a} - {b})",
                f"({a} * {b})",
                f"({a} * {b})",
                f"max({a}, {b})",
                f"min({a}, {b})",
                f"abs({a})",
                f"({a} if {self.test(depth + 1)} else {b})",
            )
        )

    def test(self, depth: int = 1) -> str:
        t = self.r.choice(("f32", "i32"))
        return f"{self.number(t, depth + 1)} {self.r.choice(('<', '>', '==', '>='))} {self.number(t, depth + 1)}"

    def loop(self) -> str:
        r = self.r
        return r.choice(
            ("range(2, m + 2)",) * 5
            + (
                "range(m, 1, -1)",
                "range(2, m + 2, 2)",
                "range(2, 2 + i % 5)",
                "range(3, 7)",
                "range(2, 2 + y[i, 2] % (m + 1))",
                "range(2, hi)",
            )
        )

    def block(self, count: int, loops: int) -> None:
        """Statements of a loop's body."""
        before = len(self.lines)
        for _ in range(count):
            self.statement(loops)
        if len(self.lines) == before:
            self.say("pass")

    def statement(self, loops: int) -> None:
        r = self.r
        kind = r.choice(("let", "let", "store", "store", "store", "sum", "sum", "sum", "when", "jump", "loop", "both", "total", "choice"))
        if kind == "let":
            t = r.choice(("f32", "i32", "f64"))
            value = self.number(t)
            self.fresh += 1
            self.say(f"t{self.fresh} = {value}")
            self.names[t].append(f"t{self.fresh}")
        elif kind == "store":
            if self.local and self.chance(0.3):
                self.say(f"l[{self.column()}] {r.choice(('=', '+='))} {self.number('f32')}")
                return
            array = r.choice(("o", "o", "u", "u", "d", "c"))
            t = {"c": "i32"}.get(array, ARRAYS[array])
            column = self.column() if self.chance(0.15) else r.choice(self.counters)
            self.say(f"{array}[i, {column}] {r.choice(('=', '=', '+='))} {self.number(t)}")
        elif kind == "sum" and self.sums:
            self.add(r.choice(list(self.sums)))
        elif kind == "total" and self.totals:
            self.reduce(r.choice(list(self.totals)))
        elif kind == "both" and self.sums:
            name = r.choice(list(self.sums))
            self.add(name)
            if self.sums[name] in ("f32", "i32"):
                self.say(f"{'o' if self.sums[name] == 'f32' else 'u'}[i, {r.choice(self.counters)}] = {name}")
        elif kind == "when":
            self.say(f"if {self.test()}:")
            self.inside(r.randint(1, 2), 0)
            if self.chance(0.3):
                self.say("else:")
                self.inside(1, 0)
        elif kind == "choice":
            place = r.choice((f"o[i, {r.choice(self.counters)}]", f"o[i, {self.column()}]"))
            for head in (f"if {self.test()}:", "else:"):
                self.say(head)
                self.say(f"    {place} = {self.number('f32', 1)}")
        elif kind == "jump":
            self.say(f"if {self.test()}:")
            self.say(f"    {'break' if self.chance(0.15) else 'continue'}")
        elif kind == "loop" and loops:
            self.nest(loops - 1)

    def add(self, name: str) -> None:
        t = self.sums[name]
        value = self.number({"int": "i32"}.get(t, t))
        if self.chance(0.2):
            self.say(f"{name} = {self.r.choice(('min', 'max'))}({name}, {value})")
        elif self.chance(0.2):
            self.say(f"{name} -= {value}")
        else:
            self.say(f"{name} += {value}")

    def reduce(self, name: str) -> None:
        t, op = self.totals[name]
        value = self.number(t)
        if op in ("min", "max"):
            self.say(f"{name} = {op}({name}, {f'abs({value})' if t != 'i32' and self.chance(0.7) else value})")
        else:
            self.say(f"{name} {op} {value}")

    def inside(self, count: int, loops: int) -> None:
        held = {t: list(n) for t, n in self.names.items()}
        self.depth += 1
        self.block(count, loops)
        self.depth -= 1
        self.names = held

    def nest(self, loops: int) -> None:
        self.fresh += 1
        counter = f"j{self.fresh}"
        self.say(f"for {counter} in {self.loop()}:")
        self.counters.append(counter)
        self.inside(self.r.choice((1, 1, 2, 3)), loops)
        self.counters.pop()

    def text(self) -> str:
        r = self.r
        options = r.choice(("", "", "(exact=True)"))
        for k in range(r.choice((0, 0, 1, 2))):
            t = r.choice(("f32", "i32", "f64"))
            self.say(f"e{k} = tack.{t}({r.choice((0, 1, -2))})")
            self.totals[f"e{k}"] = t, r.choice(("+=", "+=", "-=", "min", "max", "max"))
        self.say("for i in range(n):")
        self.depth = 2
        self.counters = ["2"]
        self.local = self.chance(0.25)
        if self.local:
            self.say(f"l = tack.local_array(tack.f32, {SHAPES[-1][1] + EDGE})")
        for k in range(r.choice((0, 1, 1, 2))):
            t = r.choice(("f32", "f32", "i32", "int", "f64"))
            self.say(f"s{k} = {'0' if t == 'int' else f'tack.{t}({r.choice((0, 1, -2))})'}")
            self.sums[f"s{k}"] = t
        for _ in range(r.choice((1, 1, 2, 3))):
            self.nest(r.choice((0, 0, 1)))
        for k, (name, t) in enumerate(self.sums.items()):
            self.say(f"{'d' if t[0] == 'f' else 'u'}[i, {k}] = {name if t != 'int' else f'tack.i32({name})'}")
        for name in self.totals:
            self.reduce(name)
        self.depth = 1
        for k, name in enumerate(self.totals):
            self.say(f"z[{k}] = tack.f64({name})")
        body = "\n".join(self.lines)
        return f"@tack.kernel{options}\ndef k(x, y, o, u, d, c, b, z, n, m, hi, p, q):\n{body}\n"


def arguments(n: int, m: int, overlap: str, seed: int) -> tuple[list[Any], dict[str, Any]]:
    """The arguments, and the memory that the arrays are views of."""
    r = np.random.default_rng(seed)
    wide = m + EDGE
    memory: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    for name, t in ARRAYS.items():
        count = n * (2 * wide + 8)
        kind = np.dtype({"f": "float", "i": "int"}[t[0]] + t[1:])
        values = (
            r.choice(np.array([0.0, -0.0, 1.5, -2.25, 3.0, 1e9, np.inf, np.nan, 0.1]), count)
            if t[0] == "f" and seed % 4 == 0
            else r.integers(-9, 99, count) / (4 if t[0] == "f" else 1)
        )
        memory[name] = values.astype(kind).reshape(n, 2 * wide + 8)
        arrays[name] = memory[name][:, :wide]
        if overlap == "none":
            memory[name] = arrays[name] = np.ascontiguousarray(arrays[name])
    for one, other in ALIKE.values():
        held = memory[one]
        if overlap == "same":
            arrays[other] = arrays[one]
        elif overlap == "shifted":
            k = seed % 3 + 1
            arrays[other] = held[:, k : k + wide]
        elif overlap == "woven":
            arrays[one], arrays[other] = held[:, 0 : 2 * wide : 2], held[:, 1 : 2 * wide + 1 : 2]
    memory["b"] = (r.integers(-8, 8, wide) / 2).astype(np.float32)
    memory["z"] = np.zeros(2)
    return [*arrays.values(), memory["b"], memory["z"], n, m, min(m + 2, 11), np.float32(0.5), np.int32(3)], memory


def check(seed: int, shapes: Any = None) -> Difference | None:
    """The first difference of a seed's kernel, or None."""
    r = random.Random(seed)
    text = Nest(seed).text()
    overlap = ("none", "none", "same", "shifted", "woven")[seed % 5]
    n, m = r.choice(shapes or SHAPES)
    args, memory = arguments(n, m, overlap, seed)
    function = kernel_function(load(text, {"tack": tack}))
    device = tack.device("cpu", num_threads=1)
    special = function.specialize(tuple(args), device)
    ir = _infer(function, special)
    if not ir.options.get("exact"):
        form_fma(ir)
    interpret.run(ir, args, math_library=math_library)
    for width in (0, *r.sample(WIDTHS[1:], 3)):
        for factor in (0.8, 100.0):  # how willing lanes are to share inner loops
            ir = _infer(function, special)
            if width:
                ir.options["simd"] = width
            cost._CLEARLY, held = factor, cost._CLEARLY
            try:
                with Level(1 + width % 3):
                    kernel = device.build(build_source(ir, target_of(device, False), math_library), b"")
            finally:
                cost._CLEARLY = held
            mine, found = arguments(n, m, overlap, seed)
            kernel.launch(mine)
            where = differing(memory, found)
            if where:
                name, places = next(iter(where.items()))
                at = places[0]
                return Difference(
                    "nest",
                    f"seed {seed}, {n} x {m}, {overlap}, simd={width}, {factor}: {name}{list(at)} is {found[name][at]!r} and by the "
                    f"interpreter {memory[name][at]!r} ({len(places)} such)\n{text}",
                )
            if width == 1:
                break
    return None


def run(first: int, count: int) -> Iterator[Difference]:
    for seed in range(first, first + count):
        found = check(seed)
        if found is not None:
            yield found


if __name__ == "__main__":
    start, number = (int(v) for v in sys.argv[1:] + ["0", "100"][len(sys.argv) - 1 :])
    failures = 0
    for failure in run(start, number):
        failures += 1
        print(failure, flush=True)
    print(f"{number} kernels, {failures} differences")
    sys.exit(failures > 0)
