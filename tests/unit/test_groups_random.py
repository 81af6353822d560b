"""Random kernels with collectives: what the front end takes, all threads of a group reach, and the lowered form answers as the
interpreter does, absent threads and all."""

from __future__ import annotations

import random

import numpy as np
import pytest
from frontend_env import INT
from group_programs import I64, grouped
from test_codegen_groups import compared

from tack.errors import CompileNotImplementedError

KERNELS = 60


class Generator:
    """Writes the body of a parallel loop. ``uniform``: whether the place being written is likely to be taken; one in eight is not."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.names = ["n"]
        self.counters: set[str] = set()  # of loops, which end
        self.count = 0

    def line(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def new(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def uniform_value(self) -> str:
        return self.rng.choice(["n", "tack.block_id()", str(self.rng.randrange(5)), "len(x)", *[v for v in self.names if v[0] == "u"]])

    def value(self) -> str:
        return self.rng.choice([self.uniform_value(), "x[i]", "i", "tack.thread_id()", *self.names])

    def expression(self, uniform: bool) -> str:
        pick = self.uniform_value if uniform else self.value
        a, b = pick(), pick()
        return self.rng.choice([a, f"{a} + {b}", f"{a} * 3 - {b}", f"min({a}, {b})", f"{a} % 7", f"({a} if {b} > 2 else {b})"])

    def condition(self, uniform: bool) -> str:
        return f"{self.expression(uniform)} {self.rng.choice(['<', '>', '==', '!='])} {self.rng.randrange(6)}"

    def block(self, indent: int, depth: int, uniform: bool, loops: list[bool]) -> None:
        """``loops``: of the loops around, whether all threads run them alike."""
        known = len(self.names)
        for _ in range(self.rng.randrange(1, 5)):
            self.statement(indent, depth, uniform, loops)
        del self.names[known:]
        self.line(indent, "pass")

    def collective(self, indent: int) -> None:
        kind = self.rng.randrange(4)
        if kind == 0:
            self.line(indent, "tack.barrier()")
        elif kind == 1:
            self.line(indent, f"s[t] = {self.expression(False)}")
            self.line(indent, "tack.barrier()")
            self.assign(indent, "s[0]", uniform=False)
            self.line(indent, "tack.barrier()")
        elif kind == 2:
            self.assign(indent, f"helper({self.expression(False)}, {self.uniform_value()})", uniform=False)
        else:
            self.assign(indent, f"tack.block_{self.rng.choice(['sum', 'min', 'max'])}({self.expression(False)})", uniform=True)

    def assign(self, indent: int, text: str, uniform: bool) -> None:
        name = ("u" if uniform else "w") + self.new()
        self.line(indent, f"{name} = {text}")
        self.names.append(name)

    def update(self, indent: int, uniform: bool) -> None:
        held = [v for v in self.names if v[0] == ("u" if uniform else "w") and v not in self.counters]
        if held:
            self.line(indent, f"{self.rng.choice(held)} = {self.expression(uniform)}")

    def statement(self, indent: int, depth: int, uniform: bool, loops: list[bool]) -> None:
        rng = self.rng
        kind = rng.randrange(12)
        alike = uniform and rng.random() < 0.6
        if kind < 3 and (uniform or rng.random() < 0.03):
            self.collective(indent)
        elif kind == 3:
            self.assign(indent, self.expression(alike), alike)
        elif kind == 4:
            self.update(indent, alike)
        elif kind == 5:
            self.line(indent, f"out[i] += {self.expression(False)}")
        elif kind == 6:
            self.line(indent, f"tack.atomic_add(total, {self.uniform_value()} % 4, {self.expression(False)})")
        elif kind == 7 and loops and (loops[-1] <= uniform or rng.random() < 0.1):
            jump = rng.choice(["break", "continue"])
            self.line(indent, f"if {self.condition(loops[-1] and rng.random() < 0.75)}:")
            self.line(indent + 1, jump)
        elif kind == 8 and not loops and depth == 3 and rng.random() < 0.5:
            self.line(indent, f"if {self.condition(rng.random() < 0.8)}:")
            self.line(indent + 1, "continue")
        elif depth and kind in (9, 10):
            self.line(indent, f"if {self.condition(alike)}:")
            self.block(indent + 1, depth - 1, alike, loops)
            if rng.random() < 0.5:
                self.line(indent, "else:")
                self.block(indent + 1, depth - 1, alike, loops)
        elif depth:
            name = "u" + self.new() if alike else "w" + self.new()
            if rng.random() < 0.6:
                self.line(indent, f"for {name} in range(abs({self.expression(alike)}) % 4):")
            else:
                self.line(indent, f"{name} = abs({self.expression(alike)}) % 5")
                self.line(indent, f"while {name} > 0:")
                self.line(indent + 1, f"{name} -= 1")
            self.names.append(name)
            self.counters.add(name)
            self.block(indent + 1, depth - 1, alike, [*loops, alike])
            self.names.remove(name)
            if rng.random() < 0.3:
                self.line(indent, "else:")
                self.block(indent + 1, depth - 1, alike, loops)

    def kernel(self) -> str:
        self.line(0, "def k(out, total, x, n):")
        self.line(1, "for i in range(len(x)):")
        self.line(2, "s = tack.shared(tack.i64, tack.block_dim())")
        self.line(2, "t = tack.thread_id()")
        for _ in range(4):
            self.block(2, 3, True, [])
        self.line(2, "out[i] += 1")
        return "\n".join(self.lines) + "\n"

    def helper(self) -> str:
        """A function that returns early where all threads do, or only behind its collectives."""
        rng = self.rng
        lines = ["def helper(v, n):"]
        if rng.random() < 0.5:
            lines += [f"    if n {rng.choice(['<', '>'])} {rng.randrange(5)}:", "        return v"]
        lines += [f"    for k in range(abs(n) % {rng.randrange(2, 5)}):", "        v += tack.block_max(v - k)"]
        if rng.random() < 0.5:
            lines += ["        if v > 9:", f"            {rng.choice(['continue', 'v -= 3'])}", "        v += 1"]
        lines += ["    if v > n:", "        return v - n"] if rng.random() < 0.5 else []
        return "\n".join([*lines, "    return v * 2"]) + "\n"


def test_random_kernels() -> None:
    taken = refused = 0
    for seed in range(KERNELS):
        rng = random.Random(seed)
        generator = Generator(rng)
        helper, text = generator.helper(), generator.kernel()
        block = rng.choice([1, 2, 4, 5])
        try:
            made = grouped(text, I64, I64, I64, INT, block=block, helper=helper)
        except CompileNotImplementedError as error:
            assert "in flow that is not uniform" in str(error), text
            refused += 1
            continue
        taken += 1
        for n in (0, 3):
            count = rng.choice([3, 8, 11])
            x = np.array([rng.randrange(-4, 7) for _ in range(count)])
            try:
                compared(made, np.zeros(count, np.int64), np.zeros(4, np.int64), x, n, shuffle=random.Random(seed))
            except Exception as error:
                pytest.fail(f"seed {seed}, n = {n}, {count} iterations in groups of {block}: {error!r}\n{helper}\n{text}")
    assert taken > KERNELS // 3 and refused > KERNELS // 10, (taken, refused)
