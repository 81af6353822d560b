"""Random structured kernels: what the generated code computes, for one lane and for many, is what the interpreter computes, bit for bit."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from codegen_harness import NUMPY, Build, Program

from tack import types as T
from tack.ir import interpret
from tack.ir import nodes as ir
from tack.ir.verify import verify

INTS = (T.i64, T.i32, T.u8, T.u32)
TYPES = (*INTS, T.f32, T.f64)


class Generator:
    """One kernel: each iteration reads shared inputs, computes with nested control flow, and stores to elements of its own."""

    def __init__(self, seed: int, rank: int) -> None:
        self.r = random.Random(seed)
        self.b = Build(f"random{seed}", exact=True)
        self.inputs = {t: self.b.array(f"in_{t.name}", t) for t in (T.i32, T.f32, T.u8, T.f64)}
        self.out = {t: self.b.array(f"out_{t.name}", t, rank) for t in (T.i64, T.f32)}
        self.n = self.b.scalar("n", T.i64, "int")
        self.b.kernel.written = frozenset(a.index for a in self.out.values())
        self.depth = 0
        self.loops = 0
        self.scopes: list[ir.Scope] = []
        self.vars: list[ir.Var] = []
        self.local = ir.LocalArray("scratch", T.i32, (5,)) if self.r.random() < 0.4 else None
        with self.b.parallel(*((self.out[T.i64], d) for d in range(rank))) as index:
            self.index = index
            flat = index[0]
            for d in range(1, rank):
                flat = self.b.same("add", self.b.same("mul", flat, self.b.shape(self.out[T.i64], d)), index[d])
            self.flat = flat
            for k in range(5):
                self.vars.append(self.b.var(f"v{k}", self.value(self.r.choice(TYPES))))
            self.block(4)
            for t, out in self.out.items():
                total = self.b.const(t, 0 if t.is_int else 0.0)
                for var in self.vars[:5]:
                    total = self.b.same("add", total, self.to(self.b.get(var), t))
                self.b.store(out, total, *index)

    def to(self, value: ir.Instr, dtype: T.DType) -> ir.Instr:
        return value if value.type == dtype else self.b.cast(value, dtype)

    def value(self, t: T.DType, depth: int = 0) -> ir.Instr:
        """An expression of type ``t``."""
        b, r = self.b, self.r
        kind = r.randrange(9 if depth < 3 else 4)
        if kind == 0:
            return b.const(t, r.choice((0, 1, 2, 3, 7, 100)) if t.is_int else r.choice((0.0, 1.0, -0.5, 2.5, 1e10, 0.125)))
        if kind == 1:
            return self.to(r.choice((self.flat, *self.index, b.arg(self.n))), t)
        if kind == 2 and self.vars:
            return self.to(b.get(r.choice(self.vars)), t)
        if kind == 3:
            array = r.choice(list(self.inputs.values()))
            at = self.flat if r.random() < 0.5 else self.value(T.i64, 2)
            if r.random() < 0.3:
                at = b.i(r.randrange(8))
            at = b.same("mod", at, b.shape(array))
            return self.to(b.load(array, at), t)
        if kind == 4 and self.local is not None:
            at = b.same("mod", self.value(T.i64, 2), b.i(5)) if r.random() < 0.5 else b.i(r.randrange(5))
            return self.to(b.load(self.local, at), t)
        if kind == 5:
            return b.op("select", t, self.condition(depth + 1), self.value(t, depth + 1), self.value(t, depth + 1))
        if kind == 6:
            return self.to(self.value(r.choice(TYPES), depth + 1), t)
        ops = (
            ("add", "sub", "mul", "floordiv", "mod", "min", "max", "and", "or", "xor", "shl", "shr")
            if t.is_int
            else ("add", "sub", "mul", "div", "min", "max")
        )
        return b.same(r.choice(ops), self.value(t, depth + 1), self.value(t, depth + 1))

    def condition(self, depth: int = 0) -> ir.Instr:
        t = self.r.choice(TYPES)
        cond = self.b.compare(self.r.choice(("lt", "le", "eq", "ne", "gt", "ge")), self.value(t, depth), self.value(t, depth))
        return self.b.op("lnot", T.BOOL, cond) if self.r.random() < 0.1 else cond

    def block(self, statements: int) -> None:
        known = len(self.vars)
        for _ in range(statements):
            self.statement()
        del self.vars[known:]

    def statement(self) -> None:
        b, r = self.b, self.r
        kind = r.randrange(12)
        if self.depth > 3 and kind > 4:
            kind = r.randrange(4)
        if kind < 3:
            var = r.choice(self.vars)
            b.set(var, self.value(var.type))
        elif kind == 3:
            self.vars.append(b.var("t", self.value(r.choice(TYPES))))
        elif kind == 4 and self.local is not None:
            at = b.same("mod", self.value(T.i64, 2), b.i(5)) if r.random() < 0.5 else b.i(r.randrange(5))
            b.store(self.local, self.value(T.i32), at)
        elif kind in (5, 6, 7):
            self.depth += 1
            with b.when(self.condition()) as node:
                self.block(r.randrange(1, 4))
                self.jump()
            if r.random() < 0.5:
                with b.into(node.orelse):
                    self.block(r.randrange(1, 3))
                    if r.random() < 0.5:
                        self.jump()
            self.depth -= 1
        elif kind in (8, 9):
            self.for_loop()
        elif kind == 10:
            self.while_loop()
        elif kind == 11:
            self.depth += 1
            with b.scope() as scope:
                self.scopes.append(scope)
                self.block(r.randrange(1, 4))
                self.scopes.pop()
            self.depth -= 1

    def jump(self) -> None:
        kind = self.r.randrange(8)
        if kind == 0 and self.loops:
            self.b.break_()
        elif kind == 1:
            self.b.continue_()
        elif kind == 2 and self.scopes:
            self.b.leave(self.r.choice(self.scopes))

    def small(self) -> ir.Instr:
        """An i64 in [-4, 4), from lane to lane the same or not."""
        b, r = self.b, self.r
        if r.random() < 0.5:
            return b.i(r.randrange(-3, 5))
        at = self.value(T.i64, 2) if r.random() < 0.7 else b.arg(self.n)
        return b.same("sub", b.same("mod", at, b.i(8)), b.i(4))

    def for_loop(self) -> None:
        b, r = self.b, self.r
        self.depth += 1
        self.loops += 1
        step = b.i(r.choice((1, 1, 1, -1, 2, -3, 0))) if r.random() < 0.7 else self.small()
        scopes, self.scopes = self.scopes, []  # a Leave out of a loop is tested through the inner scopes that follow
        if r.random() < 0.5:
            self.scopes = scopes
        with b.loop(self.small(), self.small(), step, "j") as (node, j):
            self.vars.append(b.var("jj", j))
            self.block(r.randrange(1, 4))
            if r.random() < 0.3:
                b.set(node.var, self.value(T.i64))
            self.vars.pop()
        self.scopes = scopes
        if r.random() < 0.4:
            self.loops -= 1
            with b.into(node.orelse):
                self.block(r.randrange(1, 3))
            self.loops += 1
        self.depth -= 1
        self.loops -= 1

    def while_loop(self) -> None:
        b, r = self.b, self.r
        left = b.var("left", b.same("add", self.small(), b.i(3)))
        self.depth += 1
        self.loops += 1
        node = b.while_()
        with b.into(node.test):
            node.cond = b.compare("gt", b.get(left), b.i(0))
            if r.random() < 0.5:
                node.cond = b.op("and", T.BOOL, node.cond, self.condition(2))
        with b.into(node.body):
            b.set(left, b.same("sub", b.get(left), b.i(1)))
            self.block(r.randrange(1, 4))
        if r.random() < 0.4:
            self.loops -= 1
            with b.into(node.orelse):
                self.block(r.randrange(1, 3))
            self.loops += 1
        self.depth -= 1
        self.loops -= 1


def inputs(seed: int, shape: tuple[int, ...]) -> list[Any]:
    r = np.random.default_rng(seed)
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e30, -1.5], np.float64)
    f64 = np.where(r.random(11) < 0.3, r.choice(special, 11), r.normal(0, 10, 11))
    f32 = np.where(r.random(13) < 0.2, r.choice(special, 13), r.normal(0, 10, 13)).astype(np.float32)
    return [
        r.integers(-50, 50, 17).astype(np.int32),
        f32,
        r.integers(0, 255, 19).astype(np.uint8),
        f64,
        np.zeros(shape, np.int64),
        np.zeros(shape, np.float32),
        seed % 23,
    ]


@pytest.mark.parametrize("seed", range(60))
def test_random_kernel(seed: int) -> None:
    agree(seed)


def agree(seed: int) -> None:
    """Generated code for several widths stores what the interpreter stores."""
    rank = 1 + seed % 3
    shape = {1: (37,), 2: (3, 21), 3: (2, 3, 7)}[rank]
    kernel = Generator(seed, rank).b.kernel
    verify(kernel)
    expected = inputs(seed, shape)
    interpret.run(kernel, expected)
    for simd in (1, 4, 16):
        got = inputs(seed, shape)
        with np.errstate(all="ignore"):
            Program(kernel, simd, optimize=seed % 3)(*got, cuts=(0.4,))
        for k in (4, 5):
            nan = np.isnan(expected[k]) & np.isnan(got[k])
            bits = NUMPY[("i64", "i32")[k - 4]]
            assert np.array_equal(expected[k].view(bits)[~nan], got[k].view(bits)[~nan]), f"lanes {simd}"
            assert np.array_equal(np.isnan(expected[k]), np.isnan(got[k]))
