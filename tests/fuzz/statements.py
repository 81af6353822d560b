"""Random statements, device functions and whole programs: the rest of the generator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from generate import _ATOMICS, INTS, SCALARS, TABLE, Generator, is_fused, is_wide
from host import FLOATS, Refused, Rules, dtype_of, promote, promote_all
from tree import Body, Expr, Function, Line, Program, Stmt

ROWS = 2  # of the output arrays, for each program
_JUMPS = ("break", "continue")


class Writer(Generator):
    # -- blocks and names

    @contextmanager
    def nested(self, names: dict[str, str] | None = None, *, frozen: bool = True) -> Iterator[None]:
        """What is bound inside is not seen after; ``names`` are bound at its start."""
        scope, own, held = dict(self.scope), self.own, set(self.frozen)
        self.own = set()
        self.scope.update(names or {})
        if frozen:
            self.frozen |= set(names or {})
        yield
        self.scope, self.own, self.frozen = scope, own, held

    def body(self, indent: int, names: dict[str, str] | None = None, *, loop: bool = False, least: int = 0) -> Body:
        outer = self.breakable
        self.breakable = outer or loop
        with self.nested(names):
            statements = self.block(self.r.randint(least, 3))
        self.breakable = outer
        return Body(statements, indent)

    def block(self, count: int) -> list[Stmt]:
        return [s for s in (self.statement() for _ in range(count)) if s is not None]

    def new_name(self) -> str:
        """A name that is not bound here, possibly bound in an earlier block."""
        free = [n for n in ("v0", "v1", "v2", "v3", "v4", "v5") if n not in self.scope]
        if free and self.chance(0.7):
            return self.r.choice(free)
        self.fresh += 1
        return f"u{self.fresh}"

    def bind(self, name: str, t: str) -> None:
        self.scope[name] = t
        self.own.add(name)

    def assignable(self) -> list[str]:
        return [n for n in self.scope if n not in self.frozen]

    # -- statements

    def statement(self) -> Stmt | None:
        self.budget -= 1
        deep = self.budget < 0
        kinds = ["assign"] * 4 + ["reassign"] * 3 + ["augmented"] * 3 + ["annotated", "tuple", "walrus", "default_join"]
        if self.outputs:
            kinds += ["store"] * 2 + ["aug_store"]
        if self.locals:
            kinds += ["local_store"] * 2
        if self.tables:
            kinds += ["atomic"]
        if self.reductions:
            kinds += ["reduce"] * 2
        if self.breakable and not deep:
            kinds += ["jump"] * 3
        if self.in_function is not None:
            kinds += ["early_return"] * 2
        elif not self.breakable and self.chance(0.1):
            kinds += ["end_iteration"]
        if not deep:
            kinds += ["when"] * 3 + ["if_join"] * 2
            if self.loops < 2:
                kinds += ["for"] * 2 + ["while", "accumulate", "unrolled"]
        return getattr(self, "do_" + self.r.choice(kinds))()  # type: ignore[no-any-return]

    def do_assign(self) -> Stmt:
        retyped = [n for n in self.own if n not in self.frozen and n in self.scope]
        name = self.r.choice(retyped) if retyped and self.chance(0.2) else self.new_name()
        t = self.any_type()
        e = self.nonconstant(t)
        self.bind(name, t)
        return Stmt([Line(f"{name} = {{0}}", [e])])

    def do_annotated(self) -> Stmt:
        name, t = self.new_name(), self.r.choice(self.strong)
        e = self.nonconstant(self.any_type())
        self.bind(name, t)
        return Stmt([Line(f"{name}: tack.{t} = {{0}}", [e], host=f"{name} = tack.{t}({{0}})")])

    def do_reassign(self) -> Stmt | None:
        names = self.assignable()
        if not names:
            return self.do_assign()
        name = self.r.choice(names)
        return Stmt([Line(f"{name} = {{0}}", [self.nonconstant(self.scope[name])])])

    def do_augmented(self) -> Stmt | None:
        names = [n for n in self.assignable() if self.scope[n] != "bool"]
        if not names:
            return self.do_assign()
        name = self.r.choice(names)
        op, e = self.update(self.scope[name])
        return Stmt([Line(f"{name} {op}= {{0}}", [e])])

    def update(self, t: str) -> tuple[str, Expr]:
        """An operator and an operand that keep the type of a ``t`` on the left."""
        r = self.r
        if self.chance(0.3):
            return r.choice(("+", "-", "*", "//", "%")), self.literal(t)
        if t in INTS and self.chance(0.3):
            return r.choice(("<<", ">>")), self.nonconstant(r.choice(INTS), 1)
        if dtype_of(t) in FLOATS and self.chance(0.3):
            return "/", self.nonconstant(t, 1)
        right = [b for a, b in self.pairs[t] if a == t and b != "index" and (b != "uint" or self.in_function is None)]
        op = r.choice(("+", "-", "*", "//", "%") if dtype_of(t) in FLOATS else ("+", "-", "*", "//", "%", "&", "|", "^"))
        return op, self.nonconstant(r.choice(right), 1)

    def do_tuple(self) -> Stmt:
        names = self.assignable()
        same = [(a, b) for a in names for b in names if a < b and self.scope[a] == self.scope[b]]
        if same and self.chance(0.5):
            a, b = self.r.choice(same)
            return Stmt([Line(f"{a}, {b} = {b}, {a}")])
        t, u = self.any_type(), self.any_type()
        a = self.new_name()
        self.fresh += 1
        b = f"u{self.fresh}"
        if self.chance(0.3):
            t = self.r.choice(self.strong)
            x, y = self.two(t, t, 1)
            self.bind(a, t)
            self.bind(b, t)
            return Stmt([Line(f"{a}, {b} = divmod({{0}}, {{1}})", [x, y])])
        x, y = self.nonconstant(t, 1), self.nonconstant(u, 1)
        self.bind(a, t)
        self.bind(b, u)
        return Stmt([Line(f"{a}, {b} = {{0}}, {{1}}", [x, y])])

    def do_walrus(self) -> Stmt:
        name, t = self.new_name(), self.r.choice(self.strong)
        e = self.nonconstant(t, 1)
        parts: list[Line | Body] = [Line(f"if ({name} := {{0}}) {self.r.choice(('<', '>=', '!='))} {{1}}:", [e, self.literal(t)])]
        self.bind(name, t)
        return Stmt([*parts, self.body(1)])

    def do_store(self) -> Stmt:
        element = self.r.choice(list(self.outputs))
        return Stmt([Line(f"{element} = {{0}}", [self.storable(self.outputs[element])])])

    def storable(self, t: str, d: int = 0) -> Expr:
        """Something that an element of type ``t`` can take."""
        kinds = [*self.strong, "bool", "int", "float"] if t in FLOATS else [*INTS, "bool", "int"]
        return self.nonconstant(t if self.chance(0.4) else self.r.choice(kinds), d)

    def do_aug_store(self) -> Stmt:
        element = self.r.choice(list(self.outputs))
        op, e = self.update(self.outputs[element])
        return Stmt([Line(f"{element} {op}= {{0}}", [e])])

    def do_local_store(self) -> Stmt:
        name = self.r.choice(list(self.locals))
        t = self.locals[name]
        if self.chance(0.5):
            op, e = self.update(t)
            return Stmt([Line(f"{name}[{{0}}] {op}= {{1}}", [self.position(5), e])])
        return Stmt([Line(f"{name}[{{0}}] = {{1}}", [self.position(5), self.storable(t)])])

    def do_atomic(self) -> Stmt:
        element = self.r.choice(list(self.tables))
        t = element.split("_")[1].split("[")[0]
        row = element.split("[")[1].rstrip("]")
        op = self.r.choice(self.tables[element])
        name = element.split("[")[0]
        position = self.position(TABLE)
        return Stmt([Line(f"tack.atomic_{op}({name}, ({row}, {{0}}), {{1}})", [position, self.storable(t, 1)])])

    def do_reduce(self) -> Stmt:
        name = self.r.choice(list(self.reductions))
        t, op = self.reductions[name]
        right = [b for a, b in self.pairs[t] if a == t and b != "index" and name not in self.weak]
        e = self.nonconstant(self.r.choice(right or [t]), 1)
        if op in ("min", "max"):
            return Stmt([Line(f"{name} = {op}({name}, {{0}})", [e])])
        sign = "-" if op == "+" and self.chance(0.3) else op
        return Stmt([Line(f"{name} {sign}= {{0}}", [e])])

    def do_jump(self) -> Stmt:
        parts: list[Line | Body] = [Line("if {0}:", [self.condition()]), self.short_body(1), Line(self.r.choice(_JUMPS), indent=1)]
        return Stmt(parts)

    def do_end_iteration(self) -> Stmt:
        return Stmt([Line("if {0}:", [self.condition()]), self.short_body(1), Line("continue", indent=1)])

    def short_body(self, indent: int) -> Body:
        """A body that does not jump itself."""
        loop, function, loops = self.breakable, self.in_function, self.loops
        self.breakable, self.loops = False, 2
        budget, self.budget = self.budget, -1
        with self.nested():
            statements = self.block(self.r.randint(0, 1)) if function is None else []
        self.breakable, self.in_function, self.loops, self.budget = loop, function, loops, budget
        return Body(statements, indent)

    def do_early_return(self) -> Stmt:
        assert self.in_function is not None
        kids = [self.nonconstant(self.narrower(t), 1) for t in self.in_function]
        return Stmt([Line("if {0}:", [self.condition()]), Line(f"return {', '.join(f'{{{k}}}' for k in range(len(kids)))}", kids, 1)])

    def narrower(self, t: str) -> str:
        """A type that joins with ``t`` to ``t``."""
        options = [b for a, b in self.joins[t] if a == t]
        return t if self.chance(0.5) else self.r.choice(options)

    def do_when(self) -> Stmt:
        parts: list[Line | Body] = [Line("if {0}:", [self.condition()]), self.body(1, least=1)]
        if self.chance(0.3):
            parts += [Line("elif {0}:", [self.condition()]), self.body(1)]
        if self.chance(0.5):
            parts += [Line("else:"), self.body(1)]
        return Stmt(parts)

    def do_if_join(self) -> Stmt:
        t = self.any_type()
        a, b = self.r.choice(self.joins[t])
        several = self.several(t) if self.chance(0.5) else []
        if several:
            a, b = several.pop(), several.pop()
        name = self.new_name()
        parts: list[Line | Body] = [
            Line("if {0}:", [self.condition()]),
            self.body(1),
            Line(f"{name} = {{0}}", [self.fitted(self.expr(a), t)], 1),
        ]
        for c in several:
            parts += [Line("elif {0}:", [self.condition()]), Line(f"{name} = {{0}}", [self.nonconstant(c)], 1)]
        parts += [Line("else:"), self.body(1), Line(f"{name} = {{0}}", [self.nonconstant(b)], 1)]
        self.bind(name, t)
        return Stmt([*parts, self.joined(name, t)])

    def several(self, t: str) -> list[str]:
        """Three or four types that have ``t`` in common, among them such as have nothing in common by twos; none if chance finds none."""
        for _ in range(20):
            types = [self.any_type() for _ in range(self.r.choice((3, 4)))]
            try:
                if promote_all(types) == t:
                    return types
            except Refused:
                continue
        return []

    def do_default_join(self) -> Stmt:
        t = self.any_type()
        a, b = self.r.choice(self.joins[t])
        name = self.new_name()
        first = self.fitted(self.expr(a), t)
        parts: list[Line | Body] = [Line(f"{name} = {{0}}", [first]), Line("if {0}:", [self.condition()])]
        parts += [self.short_body(1), Line(f"{name} = {{0}}", [self.nonconstant(b)], 1)]
        self.bind(name, t)
        return Stmt([*parts, self.joined(name, t)])

    def joined(self, name: str, t: str) -> Line:
        return Line(f"{name} = J_{t}({name})", only="host")

    # -- loops

    def bounds(self) -> tuple[str, list[Expr], bool]:
        """The text of a range, its expressions, and whether it surely runs."""
        r = self.r
        kind = r.randrange(7)
        if kind < 2:
            return str(r.randint(1, 4)), [], True
        if kind == 2:
            start = r.randint(-3, 3)
            stop = start + r.randint(1, 4)
            return r.choice((f"{start}, {stop}", f"{stop}, {start}, -1", f"{start}, {2 * stop - start}, 2")), [], True
        ints = [*INTS, "int"]
        size = r.choice((3, 4, 5))
        if kind < 5:
            return f"{{0}} % {size}", [self.nonconstant(r.choice(ints), 2)], False
        if kind == 5:
            return f"{{0}} % {size}, {{1}} % {size + 1}", [self.nonconstant(r.choice(ints), 2), self.nonconstant(r.choice(ints), 2)], False
        step = self.nonconstant(r.choice(ints), 2)
        return f"0, {r.choice((4, -4, 3))}, {{0}} % 5 - 2" if step.t[0] != "u" else "4, 0, -({0} % 3)", [step], False

    def do_for(self) -> Stmt:
        text, kids, sure = self.bounds()
        if "-({0}" in text:
            kids = [Expr("i32", "tack.i32({0})", kids)]
        self.fresh += 1
        name = f"j{self.fresh}"
        self.loops += 1
        parts: list[Line | Body] = [Line(f"for {name} in range({text}):", kids), self.body(1, {name: "index"}, loop=True, least=1)]
        self.loops -= 1
        if self.chance(0.3):
            parts += [Line("else:"), self.body(1)]
        if sure and self.chance(0.5):
            self.bind(name, "index")
            self.frozen.add(name)
        elif not sure and self.chance(0.3):
            parts.insert(0, Line(f"{name} = {{0}}", [self.small()]))
            parts.append(self.joined(name, "i64"))
            self.bind(name, "i64")
        return Stmt(parts)

    def do_unrolled(self) -> Stmt:
        self.fresh += 1
        name = f"c{self.fresh}"
        self.loops += 1
        self.constants.add(name)
        items = self.r.choice(("(1, 5, 3)", "T_INT", "(2, 2)", "T_FLOAT"))
        t = "float" if items == "T_FLOAT" else "int"
        parts: list[Line | Body] = [Line(f"for {name} in {items}:"), self.body(1, {name: t}, loop=True, least=1)]
        self.constants.discard(name)
        self.loops -= 1
        if self.chance(0.2):
            parts += [Line("else:"), self.body(1)]
        return Stmt(parts)

    def do_while(self) -> Stmt:
        self.fresh += 1
        name = f"w{self.fresh}"
        self.loops += 1
        parts: list[Line | Body] = [Line(f"{name} = 0"), self.joined(name, "int")]
        self.scope[name] = "int"
        self.frozen.add(name)
        parts.append(Line(f"while {name} < {self.r.randint(1, 4)} and {{0}}:", [self.condition()]))
        parts += [Line(f"{name} += 1", indent=1), self.body(1, loop=True, least=1)]
        self.loops -= 1
        if self.chance(0.3):
            parts += [Line("else:"), self.body(1)]
        return Stmt(parts)

    def do_accumulate(self) -> Stmt:
        """A name whose type grows at a loop's head: ``t = 0`` and then ``t += x``."""
        t = self.r.choice([*self.strong, "int", "float"])
        a, b = self.r.choice([p for p in self.pairs[t] if not {"index", "bool", "uint"} & set(p)])
        start = self.fitted(self.expr(a), t)
        text, kids, _ = self.bounds()
        if "-({0}" in text:
            kids = [Expr("i32", "tack.i32({0})", kids)]
        self.fresh += 1
        index, name = f"j{self.fresh}", f"s{self.fresh}"
        parts: list[Line | Body] = [Line(f"{name} = {{0}}", [start]), self.joined(name, t), Line(f"for {index} in range({text}):", kids)]
        self.loops += 1
        parts.append(self.body(1, {index: "index", name: t}, loop=True))  # what reads it may not fit the type that it starts with
        self.loops -= 1
        self.depth += 1
        with self.nested({index: "index"}):
            e = self.nonconstant(b, 1)
        if b in self.strong:  # said outright, as it could come of the name itself, round about: then no type comes into the circle
            e = Expr(b, f"tack.{b}({{0}})", [e])
        self.depth -= 1
        parts.append(Line(f"{name} = {name} {self.r.choice('+-*')} {{0}}", [e], 1))
        self.bind(name, t)
        return Stmt(parts)

    # -- device functions

    def function(self, number: int) -> None:
        r = self.r
        kept = self.scope, self.arrays, self.outputs, self.tables, self.reductions, self.locals, self.own, self.frozen, self.budget
        self.outputs, self.tables, self.reductions, self.locals, self.own, self.frozen = {}, {}, {}, {}, set(), set()
        types = [r.choice(INTS), *(self.any_type() for _ in range(r.randint(1, 2)))]
        names = [f"x{k}" for k in range(len(types))]
        self.scope = dict(zip(names, types, strict=True))
        self.arrays = {}
        if self.chance(0.3):
            t = r.choice(self.strong)
            self.arrays = {"array": t}
            names.append("array")
            types.append(f"array:{t}")
        results = [self.any_type()] if self.chance(0.75) else [self.any_type(), self.any_type()]
        self.in_function = results
        self.budget = r.choice((2, 5, 8))
        loops, self.loops = self.loops, 1
        statements = self.block(r.randint(0, 4))
        kids = [self.nonconstant(t, 1) for t in results]
        statements.append(Stmt([Line(f"return {', '.join(f'{{{k}}}' for k in range(len(kids)))}", kids)], fixed=True))
        self.loops = loops
        self.in_function = None
        self.scope, self.arrays, self.outputs, self.tables, self.reductions, self.locals, self.own, self.frozen, self.budget = kept
        self.functions.append((Function(f"f{self.row}_{number}", names, statements), types, results))

    def call_several(self) -> Stmt | None:
        made = [(f, ps, rs) for f, ps, rs in self.functions if len(rs) == 2]
        if not made:
            return None
        f, params, results = self.r.choice(made)
        kids = self.arguments(params, 2)
        if not kids:
            return None
        names = [f"y{self.fresh}", f"z{self.fresh}"]
        self.fresh += 1
        for name, t in zip(names, results, strict=True):
            self.bind(name, t)
        joins: list[Line | Body] = [self.joined(n, t) for n, t in zip(names, results, strict=True)]
        return Stmt([Line(f"{', '.join(names)} = {self.call_text(f, params)}", kids), *joins])

    # -- programs

    def program(self) -> Program:
        r = self.r
        for k in range(r.choice((0, 0, 1, 2))):
            self.function(k)
        self.arrays = {f"a_{t}": t for t in self.strong}
        self.scope = dict(SCALARS)
        self.frozen = set(SCALARS)
        body: list[Stmt] = []
        for k in range(r.choice((0, 0, 1))):  # scalars bound outside the loop
            t = self.any_type()
            name = f"g{self.row}_{k}"
            body.append(Stmt([Line(f"{name} = {{0}}", [self.nonconstant(t, 2)])]))
            self.scope[name] = t
            self.frozen.add(name)
        after: list[Stmt] = []
        for k in range(r.choice((0, 0, 0, 1, 1, 2))):
            self.reduction(k, body, after)
        parts: list[Line | Body] = []
        lead = self.steps(body, parts) if self.chance(0.15) else 0
        row = str(self.row)
        kind = r.randrange(7)
        heads = [
            "for i in range(lo, hi):",
            "for i in range(hi - 1, lo - 1, -1):",
            "for i in tack.ndrange((lo, hi)):",
            "for i in range(lo, hi, 1):",
        ]
        if kind == 6:  # three or four dimensions, of which one beside i has two
            sizes = r.sample(("2", "1", "(3, 4)"), r.choice((2, 3)))
            if "2" not in sizes:
                sizes[0] = r.choice(("(1, 3)", "(-1, 1)"))
            place = r.randrange(len(sizes) + 1)
            sizes.insert(place, "(lo, hi)")
            names = [f"e{k}" if k != place else "i" for k in range(len(sizes))]
            head = f"for {', '.join(names)} in tack.ndrange({', '.join(sizes)}):"
            wide = next(k for k, size in enumerate(sizes) if size in ("2", "(1, 3)", "(-1, 1)"))
            offset = {"2": "", "(1, 3)": " - 1", "(-1, 1)": " + 1"}[sizes[wide]]
            row = f"{self.row} + e{wide}{offset}"
            for name in names:
                if name != "i":
                    self.scope[name] = "index"
                    self.frozen.add(name)
        elif kind == 5:
            head, row = r.choice(("for e, i in tack.ndrange(2, (lo, hi)):", "for i, e in tack.ndrange((lo, hi), 2):")), f"{self.row} + e"
            self.scope["e"] = "index"
            self.frozen.add("e")
        else:
            head = heads[kind] if kind < 4 else heads[0]
        self.scope["i"] = "index"
        self.frozen.add("i")
        parts.append(Line(head, indent=lead))
        self.outputs = {f"o_{t}[{row}, i]": t for t in r.sample(self.strong, 3)}
        if self.chance(0.25):
            t = r.choice(self.atomics)
            self.tables = {f"t_{t}[{self.row}]": r.choice(_ATOMICS)}
        first: list[Stmt] = []
        if self.chance(0.25):
            t = r.choice(self.strong)
            self.locals = {"loc": t}
            first.append(Stmt([Line(f"loc = tack.local_array(tack.{t}, 5)")]))
        several = self.call_several()
        if several is not None:
            first.append(several)
        statements = [*first, *self.block(r.randint(1, 6))]
        for element, t in self.outputs.items():
            statements.append(Stmt([Line(f"{element} = {{0}}", [self.storable(t)])]))
        parts.append(Body(statements, lead + 1))
        result = r.choice(list(self.reductions)) if self.reductions else ""
        return Program(self.seed, self.row, [f for f, _, _ in self.functions], [*body, Stmt(parts, fixed=True), *after], result)

    def steps(self, before: list[Stmt], parts: list[Line | Body]) -> int:
        """The head of a tack.sequential loop around the parallel one, or of two, and a scalar that goes from step to step."""
        r = self.r
        heads = r.sample(("3", "1, 4", "5, 0, -2", "2, 2", "p // 20 + 1"), r.choice((1, 1, 2)))
        for lead, (name, bounds) in enumerate(zip(("t", "t2"), heads, strict=False)):
            parts.append(Line(f"for {name} in tack.sequential({bounds}):", indent=lead))
            self.scope[name] = "index"
            self.frozen.add(name)
        if self.chance(0.6):
            t = r.choice(self.strong)
            name = f"k{self.row}"
            before.append(Stmt([Line(f"{name} = tack.{t}({{0}})", [self.literal(t)])], fixed=True))
            self.scope[name] = t
            self.frozen.add(name)
            op, e = self.update(t)
            parts.append(Line(f"{name} {op}= {{0}}", [e], indent=len(heads)))
        return len(heads)

    def reduction(self, number: int, before: list[Stmt], after: list[Stmt]) -> None:
        """A number that all iterations contribute to, stored after the loop; a float where the order has an oracle."""
        r = self.r
        t = r.choice(self.strong if self.fused else INTS)
        name = f"r{self.row}_{number}"
        op = r.choice(("+", "+", "*", "min", "max") if t not in INTS else ("+", "+", "*", "&", "|", "^", "min", "max"))
        start = self.literal(t)
        if self.chance(0.3):  # a weak number, which takes the type of what it meets
            self.weak.add(name)
            before.append(Stmt([Line(f"{name} = {{0}}", [self.small() if t == "u64" else start])], fixed=True))
        else:
            before.append(Stmt([Line(f"{name} = tack.{t}({{0}})", [start])], fixed=True))
        self.reductions[name] = (t, op)
        after.append(Stmt([self.joined(name, t), Line(f"z_{t}[{self.row + number}] = {name}")], fixed=True))


def generate(seed: int, row: int = 0, *, wide: bool | None = None, atomics: Sequence[str] = INTS) -> Program:
    """The program of a seed. ``wide``: whether it has f64; by default its seed decides. ``atomics``: the integer types of its atomics.

    Deterministic in every process.
    """
    wide = is_wide(seed) if wide is None else wide
    return Writer(seed, row, wide, atomics).program()


__all__ = ["ROWS", "Rules", "Writer", "generate", "is_fused", "is_wide", "promote"]
