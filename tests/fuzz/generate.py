"""Writes random legal programs of the kernel language, every expression with the type that the language's rules give it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from host import FLOATS, HIGH, INTS, LOW, Refused, Rules, dtype_of, promote
from tree import Expr, Function

LENGTH = 64  # of the input arrays, at least
TABLE = 16  # of a row of the atomics' tables
CAPTURED = {"G_INT": "int", "G_FLOAT": "float", "G_I16": "i16", "G_F32": "f32"}
TUPLES = {"T_INT": "int", "T_FLOAT": "float"}
SCALARS = {"p": "int", "q": "float", "b": "bool", "s": "i16", "h": "f32"}
UINT = "u"  # a parameter above 2^63: it meets u64, floats and weak numbers only, as its range is checked where it meets others
_ATOMICS = (("add", "sub"), ("min",), ("max",), ("and_",), ("or_",), ("xor",))
# What tack's own library computes, for which plain Python is no oracle.
_LIBRARY = (
    *("rsqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc"),
)
_COMPARE = ("<", "<=", ">", ">=", "==", "!=")


def is_wide(seed: int) -> bool:
    """Whether the program of a seed has f64."""
    return seed % 3 != 0


def is_fused(seed: int) -> bool:
    """Whether it forms fused multiply-adds and calls tack's own math: then the interpreter is the oracle, and plain Python is none."""
    return seed % 4 == 1


def arithmetic_type(a: str, b: str) -> str:
    t = promote(a, b)
    return "int" if t == "bool" else t


class Generator:
    """One program. ``scope`` has the names that may be read here and their types; ``own`` those bound in the block being written."""

    def __init__(self, seed: int, row: int, wide: bool, atomics: Sequence[str] = INTS) -> None:
        """``atomics``: the integer types that a device's atomics have."""
        self.r = random.Random(seed)
        self.seed = seed
        self.row = row
        self.wide = wide
        self.atomics = atomics
        self.fused = is_fused(seed)
        Rules.weak_float = "f64" if wide else "f32"
        self.strong = [*INTS, *(FLOATS if wide else FLOATS[:1])]
        self.types = [*self.strong, "bool", "int", "uint", "float", "index"]
        self.pairs: dict[str, list[tuple[str, str]]] = {}
        self.joins: dict[str, list[tuple[str, str]]] = {}
        for a in self.types:
            for b in self.types:
                try:
                    self.pairs.setdefault(arithmetic_type(a, b), []).append((a, b))
                    if "index" not in (a, b) and ("uint" not in (a, b) or promote(a, b) == "uint"):
                        self.joins.setdefault(promote(a, b), []).append((a, b))
                except Refused:
                    continue
        self.functions: list[tuple[Function, list[str], list[str]]] = []  # parameter types, result types
        self.calls = 0
        self.scope: dict[str, str] = {}
        self.own: set[str] = set()
        self.frozen: set[str] = set()  # names that are not assigned: counters, loop variables
        self.constants: set[str] = set()
        self.arrays: dict[str, str] = {}  # name -> dtype, rank 1, read only
        self.locals: dict[str, str] = {}
        self.outputs: dict[str, str] = {}  # text of an element of this iteration's own -> dtype
        self.tables: dict[str, tuple[str, ...]] = {}
        self.reductions: dict[str, tuple[str, str]] = {}  # name -> (type, operator)
        self.weak: set[str] = set()  # those of them that start as a weak number
        self.loops = 0
        self.breakable = False
        self.in_function: list[str] | None = None
        self.fresh = 0
        self.depth = 0
        self.budget = self.r.choice((4, 8, 16))

    # -- small things

    def chance(self, p: float) -> bool:
        return self.r.random() < p

    def int_type(self) -> str:
        return self.r.choice(INTS)

    def any_type(self) -> str:
        return self.r.choice([*self.strong, "bool", "int", "float"])

    def literal(self, t: str) -> Expr:
        """A Python number that fits ``t``; of an integer's kind where ``t`` is one."""
        r, d = self.r, dtype_of(t)
        if d in FLOATS:
            if t != "float" and self.chance(0.2):
                return Expr("int", str(r.choice((0, 1, 2, 3, 7, 100))), const=True)
            return Expr(
                "float",
                r.choice(("0.5", "2.0", "0.1", "1e-3", "3.75", "1e10", "0.0", "1.5", "7.0", "(-0.5)", "(-2.0)", "(-0.0)")),
                const=True,
            )
        if d in INTS and self.chance(0.06):
            return Expr("int", f"({r.choice((LOW[d], HIGH[d], HIGH[d] - 1))})", const=True)
        if d in INTS and LOW[d] < 0 and self.chance(0.2):
            return Expr("int", f"({-r.randint(1, 9)})", const=True)
        return Expr("int", str(r.choice((0, 1, 2, 3, 5, 8, 10, 31, 64, 100))), const=True)

    def small(self) -> Expr:
        return Expr("int", str(self.r.choice((1, 2, 3, 5, 7, 10))), const=True)

    def variables(self, t: str) -> list[str]:
        return [name for name, kind in self.scope.items() if kind == t]

    def variable(self, name: str) -> Expr:
        t = self.scope[name]
        return Expr(t, name, host=f"C_{t}({name})", const=name in self.constants)

    # -- leaves

    def leaf(self, t: str, constant: bool = True) -> Expr:
        """A short expression of type ``t``; without ``constant`` none that is known at compile time."""
        r = self.r
        names = [n for n in self.variables(t) if constant or n not in self.constants]
        if t == "index":
            if names:
                return self.variable(r.choice(names))
            raise Refused("no index here")
        if names and self.chance(0.6):
            return self.variable(r.choice(names))
        if t == "uint":
            return Expr("uint", f"({UINT} {r.choice(('+', '-', '//', '%', '>>', '^'))} {{0}})", [self.small()])
        if t == "u64" and self.in_function is None and self.chance(0.1):
            return Expr("u64", f"({UINT} {r.choice(('+', '*', '^', '&'))} tack.u64({{0}}))", [self.runtime()])
        if t in self.strong:
            choices: list[Callable[[], Expr]] = []
            arrays = [n for n, kind in self.arrays.items() if kind == t]
            if arrays:
                choices += [lambda: self.load(r.choice(arrays))] * 3
            mine = [n for n, kind in self.locals.items() if kind == t]
            if mine:
                choices.append(lambda: Expr(t, f"{r.choice(mine)}[{{0}}]", [self.position(5)]))
            elements = [n for n, kind in self.outputs.items() if kind == t]
            if elements:
                choices.append(lambda: Expr(t, r.choice(elements)))
            if constant:
                choices.append(lambda: Expr(t, f"tack.{t}({{0}})", [self.literal(t)], const=True))
                captured = [n for n, kind in CAPTURED.items() if kind == t]
                if captured and self.in_function is None:
                    choices.append(lambda: Expr(t, captured[0], const=True))
            return r.choice(choices)() if choices else Expr(t, f"tack.{t}({{0}})", [self.runtime()])
        if t == "int":
            if constant and self.chance(0.3):
                return self.literal("int") if self.chance(0.7) else Expr("int", "G_INT", const=True)
            if self.chance(0.3):
                return Expr("int", "T_INT[{0}]", [self.position(3, constant=False)], host="J_int(T_INT[{0}])")
            return self.variable(r.choice(names)) if names else Expr("int", "({0} + {1})", [self.test(), self.small()])
        if t == "float":
            if constant and self.chance(0.3):
                return self.literal("float") if self.chance(0.7) else Expr("float", "G_FLOAT", const=True)
            if self.chance(0.3):
                return Expr("float", "T_FLOAT[{0}]", [self.position(3, constant=False)], host="J_float(T_FLOAT[{0}])")
            return (
                self.variable(r.choice(names)) if names else Expr("float", "({0} * {1})", [self.test(), Expr("float", "0.75", const=True)])
            )
        return self.test()

    def runtime(self) -> Expr:
        """Any number that is surely not known at compile time and needs no other expression."""
        names = [n for n in self.scope if n not in self.constants]
        return self.variable(self.r.choice(names))

    def test(self) -> Expr:
        """A short comparison."""
        return Expr("bool", f"({{0}} {self.r.choice(_COMPARE)} {{1}})", [self.runtime(), Expr("int", self.r.choice("0123"), const=True)])

    def load(self, name: str) -> Expr:
        return Expr(self.arrays[name], f"{name}[{{0}}]", [self.position(LENGTH)])

    def position(self, n: int, *, constant: bool = True) -> Expr:
        """An index in [0, n)."""
        if constant and self.chance(0.25):
            return Expr("int", str(self.r.randrange(n)), const=True)
        indices = self.variables("index")
        if indices and self.chance(0.5):
            kid = self.variable(self.r.choice(indices))
        elif self.depth < 3:
            kid = self.nonconstant(self.r.choice([*INTS, "int"]), 3)
        else:
            ints = [k for k in self.scope if dtype_of(self.scope[k]) in INTS and k not in self.constants]
            if not ints and not constant:
                kid = Expr("i32", "tack.i32({0})", [self.runtime()])
            elif not ints:
                return Expr("int", str(self.r.randrange(n)), const=True)
            else:
                kid = self.variable(self.r.choice(ints))
        return Expr("i64", f"{{0}} % {n}", [kid], fixed=True)

    # -- expressions

    def nonconstant(self, t: str, d: int = 0) -> Expr:
        e = self.expr(t, d)
        return self.leaf(t, constant=False) if e.const else e

    def expr(self, t: str, d: int = 0) -> Expr:
        """A random expression whose static type is ``t``."""
        self.depth += 1
        try:
            if t == "index" or d >= 4 or self.depth > 9 or self.chance(0.15 + 0.1 * d):
                return self.leaf(t)
            if t == "bool":
                return self.condition(d, strict=True)
            kinds = ["pair"] * 8 + ["literal"] * 4 + ["choice"] * 2 + ["lazy", "unary", "minmax", "call"]
            d_t = dtype_of(t)
            if d_t in INTS:
                kinds += ["shift"] * 2 + ["bits", "pow", "pair_bits"]
            else:
                kinds += ["div"] * 3 + ["math"] * 3
            if t in self.strong:
                kinds += ["cast"] * 3 + ["convert"]
            made = getattr(self, "make_" + self.r.choice(kinds))(t, d + 1)
            return made if made is not None else self.leaf(t)
        finally:
            self.depth -= 1

    def two(self, a: str, b: str, d: int) -> tuple[Expr, Expr]:
        """Two operands, at least one of them not known at compile time."""
        x, y = self.expr(a, d), self.expr(b, d)
        if x.const and y.const:
            if self.chance(0.5):
                x = self.leaf(a, constant=False)
            else:
                y = self.leaf(b, constant=False)
        return self.fitted(x, b), self.fitted(y, a)

    def fitted(self, x: Expr, other: str) -> Expr:
        """A literal that fits what it meets."""
        digits = x.kernel.strip("(-)")
        if x.const and x.t == "int" and dtype_of(other) in INTS and digits.isdigit() and (x.kernel != digits or int(digits) > 100):
            return self.literal(other)
        return x

    def pair(self, table: dict[str, list[tuple[str, str]]], t: str) -> tuple[str, str]:
        choices = [p for p in table[t] if "index" not in p or self.variables("index")]
        if self.in_function is not None:  # its functions may come before the kernel's parameters
            choices = [p for p in choices if "uint" not in p]
        same = [p for p in choices if p[0] == t or p[1] == t]
        return self.r.choice(same if same and self.chance(0.6) else choices)

    def make_pair(self, t: str, d: int) -> Expr:
        x, y = self.two(*self.pair(self.pairs, t), d)
        return Expr(t, f"({{0}} {self.r.choice(('+', '-', '*', '+', '-', '*', '//', '%'))} {{1}})", [x, y])

    def make_pair_bits(self, t: str, d: int) -> Expr | None:
        a, b = self.pair(self.pairs, t)
        if a == b == "bool":
            return None
        x, y = self.two(a, b, d)
        return Expr(t, f"({{0}} {self.r.choice('&|^')} {{1}})", [x, y])

    def make_literal(self, t: str, d: int) -> Expr:
        op = self.r.choice(("+", "-", "*", "//", "%"))
        x, y = self.nonconstant(t, d), self.literal(t)
        return Expr(t, f"({{0}} {op} {{1}})", [x, y] if self.chance(0.7) else [y, x])

    def make_choice(self, t: str, d: int) -> Expr:
        a, b = self.pair(self.joins, t)
        x, y = self.two(a, b, d)
        return Expr(t, "({0} if {1} else {2})", [x, self.condition(d), y], host=f"J_{t}({{0}} if {{1}} else {{2}})")

    def make_lazy(self, t: str, d: int) -> Expr:
        a, b = self.pair(self.joins, t)
        x, y = self.nonconstant(a, d), self.expr(b, d)
        op = self.r.choice(("and", "or"))
        return Expr(t, f"({{0}} {op} {{1}})", [x, self.fitted(y, a)], host=f"J_{t}({{0}} {op} {{1}})")

    def make_unary(self, t: str, d: int) -> Expr:
        x = self.nonconstant(t, d)
        if dtype_of(t) in INTS and self.chance(0.3):
            return Expr(t, "(~{0})", [x])
        return Expr(t, self.r.choice(("(-{0})", "abs({0})")), [x])

    def make_minmax(self, t: str, d: int) -> Expr:
        a, b = self.pair(self.pairs, t)
        if "index" in (a, b) and t == "u64":
            a, b = t, t
        x, y = self.two(a, b, d)
        name = self.r.choice(("min", "max", "tack.min", "tack.max"))
        if self.chance(0.2) and t not in ("bool",):
            return Expr(t, f"{name}({{0}}, {{1}}, {{2}})", [x, y, self.nonconstant(t, d)])
        return Expr(t, f"{name}({{0}}, {{1}})", [x, y])

    def make_shift(self, t: str, d: int) -> Expr:
        op = self.r.choice(("<<", ">>"))
        if self.chance(0.4):
            count = Expr("int", str(self.r.choice((0, 1, 3, 7, 8, 31, 33, 63, 64, 200))), const=True)
            return Expr(t, f"({{0}} {op} {{1}})", [self.nonconstant(t, d), count])
        if t in INTS and self.chance(0.2):
            return Expr(t, f"({{0}} {op} {{1}})", [self.small(), self.nonconstant(t, d)])
        by = self.r.choice([*INTS, "int"] if t in INTS else ["int"])
        count = Expr(by, "({0} % {1})", [self.nonconstant(by, d), Expr("int", self.r.choice(("9", "33", "70")), const=True)])
        return Expr(t, f"({{0}} {op} {{1}})", [self.nonconstant(t, d), count if self.chance(0.8) else self.nonconstant(by, d)])

    def make_pow(self, t: str, d: int) -> Expr:
        if self.chance(0.6):
            return Expr(t, "({0} ** {1})", [self.nonconstant(t, d), Expr("int", self.r.choice("012345"), const=True)])
        by = self.r.choice([*INTS, "int"] if t in INTS else ["int"])
        return Expr(t, "({0} ** {1})", [self.nonconstant(t, d), self.nonconstant(by, d)])

    def make_bits(self, t: str, d: int) -> Expr:
        if self.chance(0.4):
            return Expr(t, f"tack.{self.r.choice(('popcount', 'clz', 'ctz'))}({{0}})", [self.nonconstant(t, d)])
        if self.chance(0.5):
            by = self.r.choice([*INTS, "int"] if t in INTS else ["int"])
            return Expr(t, f"tack.{self.r.choice(('rotl', 'rotr'))}({{0}}, {{1}})", [self.nonconstant(t, d), self.nonconstant(by, d)])
        x, y = self.two(*self.pair(self.pairs, t), d)
        return Expr(t, f"tack.{self.r.choice(('mulhi', 'add_sat', 'sub_sat'))}({{0}}, {{1}})", [x, y])

    def make_div(self, t: str, d: int) -> Expr:
        if t == "float":
            a, b = self.r.choice((("float", "float"), ("int", "int"), ("float", "int"), ("bool", "float"), ("int", "float")))
        elif t == Rules.weak_float and self.chance(0.4):
            while True:
                a, b = self.r.choice([*INTS, "int"]), self.r.choice([*INTS, "int", "bool"])
                if {a, b} <= {"int", "bool"}:
                    continue
                try:
                    promote(a, b)
                except Refused:
                    continue
                break
        else:
            a, b = self.pair(self.pairs, t)
        x, y = self.two(a, b, d)
        return Expr(t, "({0} / {1})", [x, y])

    def make_math(self, t: str, d: int) -> Expr:
        r = self.r
        if self.fused and self.chance(0.4):
            return self.make_library(t, d)
        kind = r.randrange(6)
        if kind < 2:
            name = r.choice(("sqrt", "floor", "ceil", "trunc", "round", "fabs"))
            source = r.choice(INTS) if t == Rules.weak_float and self.chance(0.2) else "int" if t == "float" and self.chance(0.2) else t
            return Expr(t, f"tack.{name}({{0}})", [self.nonconstant(source, d)])
        if kind == 2:
            x, y = self.two(*self.pair(self.pairs, t), d)
            return Expr(t, "tack.fmod({0}, {1})", [x, y])
        if kind == 3:
            return Expr(t, "tack.fma({0}, {1}, {2})", [self.nonconstant(t, d), self.nonconstant(t, d), self.expr(t, d)])
        if kind == 4:
            return Expr(t, "({0} ** 2)", [self.nonconstant(t, d)])
        arrays = [n for n, k in self.arrays.items() if k == t]
        if not arrays:
            return self.leaf(t)
        return Expr(t, "tack.copysign({0}, {1})", [self.nonconstant(t, d), self.load(arrays[0])])

    def make_library(self, t: str, d: int) -> Expr:
        r = self.r
        if self.chance(0.2):
            x, y = self.two(*self.pair(self.pairs, t), d)
            return Expr(t, f"tack.{r.choice(('pow', 'atan2', 'hypot'))}({{0}}, {{1}})", [x, y])
        if self.chance(0.1):
            return Expr(t, "({0} ** {1})", [self.nonconstant(t, d), self.nonconstant(t, d)])
        source = r.choice(INTS) if t == Rules.weak_float and self.chance(0.2) else t
        return Expr(t, f"tack.{r.choice(_LIBRARY)}({{0}})", [self.nonconstant(source, d)])

    def make_cast(self, t: str, d: int) -> Expr:
        return Expr(t, f"tack.{t}({{0}})", [self.nonconstant(self.any_type(), d)])

    def make_convert(self, t: str, d: int) -> Expr:
        r = self.r
        if t == "i64":
            source = self.any_type()
            return Expr(t, f"{r.choice(('int', 'round', 'math.floor', 'math.ceil', 'math.trunc'))}({{0}})", [self.nonconstant(source, d)])
        if t == Rules.weak_float and self.chance(0.5):
            return Expr(t, "float({0})", [self.nonconstant(self.any_type(), d)])
        if t in ("f32", "f64"):
            bits = t[1:]
            return Expr(t, f"tack.bitcast({{0}}, tack.{t})", [self.nonconstant(r.choice("iu") + bits, d)])
        if t in ("i32", "u32"):
            arrays = [n for n, k in self.arrays.items() if k == "f32"]
            if arrays:
                load = self.load(arrays[0])
                load.fixed = True
                return Expr(t, f"tack.bitcast({{0}}, tack.{t})", [load], fixed=True)
        other = ("u" if t[0] == "i" else "i") + t[1:]
        return Expr(t, f"tack.bitcast({{0}}, tack.{t})", [self.nonconstant(other, d)])

    def make_call(self, t: str, d: int) -> Expr | None:
        made = [(f, ps) for f, ps, results in self.functions if results == [t]]
        if not made or self.calls >= 4 or self.in_function is not None and self.chance(0.5):
            return None
        self.calls += 1
        f, params = self.r.choice(made)
        kids = self.arguments(params, d)
        if not kids:
            return None
        text = self.call_text(f, params)
        return Expr(t, text, kids, host=f"J_{t}({text})")

    def call_text(self, f: Function, params: list[str]) -> str:
        return f"{f.name}({', '.join(f'{{{k}}}' for k in range(len(params)))})"

    def arguments(self, params: list[str], d: int) -> list[Expr]:
        kids = []
        for p in params:
            if p.startswith("array:"):
                arrays = [n for n, k in self.arrays.items() if k == p[6:]]
                if not arrays:
                    return []
                kids.append(Expr(p, arrays[0], fixed=True))
            else:
                kids.append(self.nonconstant(p, d))
        return kids

    # -- conditions

    def condition(self, d: int = 0, strict: bool = False) -> Expr:
        """Something to test that is not known at compile time; a bool if ``strict``."""
        r = self.r
        kind = r.randrange(12)
        if d > 3 or self.depth > 9:
            return self.test()
        if kind < 5:
            return self.comparison(d)
        if kind == 5:
            a = self.r.choice(INTS)
            x, y, z = self.nonconstant(a, d + 1), self.nonconstant(a, d + 1), self.literal(a)
            return Expr("bool", f"({{0}} {r.choice(_COMPARE)} {{1}} {r.choice(_COMPARE)} {{2}})", [x, y, z])
        if kind == 6:
            return Expr("bool", "(not {0})", [self.condition(d + 1)], host="not_({0})")
        if kind < 9:
            op = r.choice(("and", "or"))
            return Expr(
                "bool", f"({{0}} {op} {{1}})", [self.condition(d + 1, True), self.condition(d + 1, True)], host=f"J_bool({{0}} {op} {{1}})"
            )
        if kind == 9:
            return Expr("bool", f"({{0}} {r.choice('&|^')} {{1}})", [self.condition(d + 1, True), self.condition(d + 1, True)])
        if kind == 10:
            t = r.choice([k for k in self.strong if k in FLOATS])
            return Expr("bool", f"tack.{r.choice(('isnan', 'isfinite'))}({{0}})", [self.nonconstant(t, d + 1)])
        if strict:
            return Expr("bool", "bool({0})", [self.nonconstant(self.any_type(), d + 1)])
        return self.nonconstant(r.choice([*self.strong, "int"]), d + 1)

    def comparison(self, d: int) -> Expr:
        r = self.r
        a = self.any_type()
        x = self.nonconstant(a, d + 1)
        if self.chance(0.4):
            y = self.literal(a if self.chance(0.7) or dtype_of(a) in FLOATS else r.choice(INTS))
        else:
            y = self.expr(a if self.chance(0.4) else self.any_type(), d + 1)
        return Expr("bool", f"({{0}} {r.choice(_COMPARE)} {{1}})", [x, y] if self.chance(0.8) else [y, x])
