"""Bodies with collectives as all threads of a group run them, absent ones too: the lowered form against the interpreter's."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from codegen_harness import no_math
from frontend_env import I32, INT, X32
from group_programs import EARLY, HISTOGRAM, I64, REVERSE, SCAN, TRANSPOSE, UNIFORM, X2, grouped, loop

from tack import types
from tack.codegen.params import EntryPlan, plan
from tack.frontend.meaning import ArrayArg
from tack.ir import arith, groups
from tack.ir import nodes as ir
from tack.ir.arith import Number
from tack.ir.interpret import Machine, evaluate_extent, run
from tack.ir.uniformity import COLLECTIVES
from tack.ir.walk import instructions, nodes


class Lowered(groups._Thread):
    """A thread that runs lowered operations. One that has no iteration may touch no memory."""

    def __init__(self, machine: Machine, memory: Any, number: int, group: int, indices: tuple[int, ...] | None) -> None:
        super().__init__(machine, memory, {}, number, group)
        self.indices = indices or (1 << 40,) * 4
        self.present = indices is not None
        self.reports: list[tuple[int, list[Number]]] = []

    def value(self, node: ir.Instr, args: list[Number]) -> Number | None:
        t = node.type
        if node.op == "present":
            return self.present
        if node.op == "index":
            return self.indices[int(str(node.attr))]
        if node.op in ("quot", "rem"):
            assert t is not None
            quotient = abs(int(args[0])) // abs(int(args[1])) * (1 if (args[0] < 0) == (args[1] < 0) else -1)
            return quotient if node.op == "quot" else int(args[0]) - quotient * int(args[1])
        if node.op in ("lshift", "rshift"):
            assert t is not None and 0 <= args[1] < t.bits
            return arith.BINARY["shl" if node.op == "lshift" else "shr"](args[0], args[1], t)
        if node.op == "report":
            assert self.present
            self.reports.append((int(str(node.attr)), args))
            return None
        return args[0] if node.op == "freeze" else super().value(node, args)

    def check(self, array: ir.Array, place: tuple[int, ...], node: ir.Instr) -> None:
        assert self.present or array.name.startswith("_reduced"), f"an absent thread touches {array.name}"
        super().check(array, place, node)


def run_entry(
    entry: EntryPlan, made: ir.Kernel, args: list[Any], extents: list[range], shuffle: random.Random | None
) -> list[tuple[int, list[Number]]]:
    """Runs a launch of one entry, each group with all its threads. Answers the checks that failed, with their values."""
    reports: list[tuple[int, list[Number]]] = []
    machine = Machine("k", None, print)
    for param, value in zip(made.params, args, strict=True):
        machine.bind(param, value)
    counts = [len(e) for e in extents]
    all_come = any(i.op == "present" for i in instructions(entry.body))
    block, total = int(str(made.options["block"])), int(np.prod(counts))
    for group in range(-(-total // block)):
        memory = groups._Memory("k")
        threads = []
        for number in range(block):
            linear = group * block + number
            place = tuple(int(i) for i in np.unravel_index(linear, counts)) if linear < total else None
            if place is None and not all_come:
                continue
            indices = None if place is None else tuple(e[i] for e, i in zip(extents, place, strict=True))
            threads.append(Lowered(machine, memory, number, group, indices))
        for thread in threads:
            thread.block(entry.prologue)
        groups._run(threads, entry.body, block, shuffle)
        for thread in threads:
            reports += thread.reports
    return reports


def run_lowered(made: ir.Kernel, args: list[Any], shuffle: random.Random | None = None) -> list[EntryPlan]:
    planned = plan(made, "k", no_math, False, False)
    for step in planned.steps:
        assert step.kind == "launch"
        bounds = zip(step.start, step.stop, step.step, strict=True)
        run_entry(planned.entries[step.entry], made, args, [range(*(evaluate_extent(e, args) for e in b)) for b in bounds], shuffle)
    return planned.entries


def compared(made: ir.Kernel, *args: Any, shuffle: random.Random | None = None) -> list[EntryPlan]:
    """Runs both forms on copies; the arrays must be the same bit for bit."""
    mine, its = ([a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in range(2))
    run(made, mine)
    entries = run_lowered(made, its, shuffle)
    for a, b in zip(mine, its, strict=True):
        if isinstance(a, np.ndarray):
            assert a.tobytes() == b.tobytes()
    return entries


def floats(count: int) -> np.ndarray[Any, Any]:
    return (np.random.default_rng(count).random(count) * 200 - 100).astype(np.float32)


@pytest.mark.parametrize("block", [1, 4, 7, 32])
@pytest.mark.parametrize("count", [1, 28, 45])
def test_programs_with_partial_groups(block: int, count: int) -> None:
    order = random.Random(count)
    compared(grouped(REVERSE, X32, X32, block=block), np.zeros(count, np.float32), floats(count), shuffle=order)
    x = np.random.default_rng(6).integers(-9, 9, count)
    compared(grouped(SCAN, I64, I64, block=block), np.zeros_like(x), x, shuffle=order)
    if count >= 16:
        full = count // 16 * 16
        made = grouped(HISTOGRAM, I32, I32, block=16)
        compared(made, np.zeros(16, np.int32), abs(x[:full]).astype(np.int32), shuffle=order)


def test_tiled_transpose() -> None:
    x = floats(20 * 13).reshape(20, 13)
    compared(grouped(TRANSPOSE, X2, X2, block=64), np.zeros((13, 20), np.float32), x)


@pytest.mark.parametrize("name", ["sum", "min", "max"])
@pytest.mark.parametrize("block", [1, 2, 5, 16, 33])
def test_block_reductions_fold_in_the_oracles_order(name: str, block: int) -> None:
    made = grouped(loop(f"out[i] = tack.block_{name}(x[i] * 3)"), X32, X32, block=block)
    x = floats(50)
    x[[3, 17]] = np.nan, -0.0
    compared(made, np.zeros(50, np.float32), x, shuffle=random.Random(block))
    made = grouped(loop(f"out[i] = tack.block_{name}(x[i])"), ArrayArg(types.u8, 1), ArrayArg(types.u8, 1), block=block)
    bytes_ = np.arange(100, 150, dtype=np.uint8)
    compared(made, np.zeros_like(bytes_), bytes_)


@pytest.mark.parametrize("body", UNIFORM)
def test_uniform_flow_around_collectives(body: str) -> None:
    made = grouped(loop(body, "x, n"), X32, INT, block=4, early=EARLY)
    for n in (0, 1, 6):
        compared(made, np.float32([3, 0, -2, 9, 1, 7]), n, shuffle=random.Random(n))


TURNS = """
s = tack.shared(tack.f32, (4, 2))
t = tack.thread_id()
s[t, 0] = x[i]
for k in range(n):
    s[t, 1] = s[t, 0] * k
    tack.barrier()
    if t == k % 4:
        x[i] += s[0, 1]
    tack.barrier()
"""
CARRIED = [
    # values of one part that the next one uses, reductions in conditions, effects and loads in uniform loops
    "v = x[i]\nw = v * 2\nfor k in range(n):\n    s = tack.block_sum(v + w)\n    v += s\n    x[i] = v - w",
    "v = x[i]\nif n > 2:\n    tack.barrier()\n    v = x[i] + 1\nx[i] = v",
    "last = x[i]\nwhile tack.block_max(last) > n:\n    last -= 40\n    x[i] += 1\nx[i] += last",
    "size = 1\nwhile size < n:\n    size *= 2\nfor k in range(size):\n    x[i] += tack.block_sum(x[i])",
    "size = 1\nfor k in range(n):\n    size += k\n    x[i] += size\nif size > 5:\n    x[i] = tack.block_sum(x[i])",
    "big = x[i] > 2\nm = tack.block_sum(big)\nx[i] = m if big else tack.thread_id()",
    "for k in range(9):\n    if tack.block_sum(x[i]) > 100:\n        break\n    x[i] += k\nelse:\n    tack.barrier()\n    x[i] = -1",
    "if n == 0:\n    continue\ntack.barrier()\nx[i] = tack.block_sum(1)\nif n == 1:\n    continue\nx[i] += tack.block_sum(2)",
    "for k in range(4):\n    if k == n: continue\n    for j in range(3):\n        if j == n: break\n        x[i] += tack.block_min(x[i])",
    TURNS,
    "v = fold(x[i], n)\nx[i] = v + tack.block_sum(v)",
    "y = x[i]\nz = 0.0\nfor k in range(3):\n    if k < n:\n        z = y * k\n    tack.barrier()\n    x[i] += z",
]
FOLD = (
    "def fold(v, n):\n    for k in range(5):\n        if k > n:\n            return v\n        v += tack.block_max(v)\n"
    "    if tack.block_sum(v) > 50:\n        return 0.5\n    return -v\n"
)


@pytest.mark.parametrize("body", CARRIED)
def test_values_pass_from_part_to_part(body: str) -> None:
    made = grouped(loop(body, "x, n"), X32, INT, block=4, fold=FOLD)
    for n in range(7):
        for count in (3, 4, 7):
            compared(made, floats(count), n, shuffle=random.Random(n))


def test_two_dimensions_and_scalars_from_before_the_loop() -> None:
    text = """
    def k(out, x):
        n = len(x)
        limit = n // 2 if n > 3 else n
        for r, c in tack.ndrange((1, 4), n):
            if limit > 1:
                tack.barrier()
            out[r - 1, c] = tack.block_sum(x[c] * r) + limit
    """
    compared(grouped(text, X2, X32, block=8), np.zeros((3, 5), np.float32), floats(5))


def test_one_iteration_needs_no_group() -> None:
    text = """
    def k(x):
        s = tack.shared(tack.f32, 4)
        s[tack.thread_id()] = x[0]
        tack.barrier()
        while tack.block_sum(s[0]) > tack.block_dim() + tack.block_id():
            s[0] -= 10
        x[0] = s[0]
    """
    (entry,) = plan(grouped(text, X32, block=32), "k", no_math, False, False).entries
    assert entry.single
    assert not any(i.op in (*COLLECTIVES, "thread_id", "block_id", "present") for i in instructions(entry.body))
    loops = [n for n in nodes(entry.body) if isinstance(n, ir.While)]
    assert len(loops) == 1 and loops[0].cond in list(instructions(loops[0].test))


def test_what_needs_no_barrier_stays_as_it_is() -> None:
    (entry,) = compared(grouped(loop("out[i] = tack.block_id() * 10 + tack.thread_id()"), X32, X32, block=4), floats(7), floats(7))
    assert not any(i.op == "present" for i in instructions(entry.body)) and not any(isinstance(n, ir.If) for n in nodes(entry.body))


def test_a_straight_body_has_one_condition_between_barriers() -> None:
    made = grouped(REVERSE, X32, X32, block=64)
    (entry,) = plan(made, "k", no_math, False, False).entries
    conditions = [n for n in entry.body.body if isinstance(n, ir.If)]
    assert len(conditions) == 2 and all(c.cond.op == "present" and not c.orelse.body for c in conditions)


def test_checks_end_no_thread_of_a_group() -> None:
    text = loop("""
        s = tack.shared(tack.f32, tack.block_dim())
        s[tack.thread_id() * 2] = x[i]
        tack.barrier()
        assert x[i] < 10, "large"
        out[i] = tack.block_sum(x[i + 2] + x[i + 2])
        out.flat[i - 1] += tack.atomic_add(out, i + 5, 1.0)
    """)
    made = grouped(text, X32, X32, block=4)
    planned = plan(made, "k", no_math, False, True)
    (entry,) = planned.entries
    assert not any(i.op in ("check", "check_index") for i in instructions(entry.body)) and planned.stops
    x, out = np.float32([1, 20, 3, 4, 5, 6]), np.zeros(6, np.float32)
    failed = run_entry(entry, made, [out, x], [range(6)], random.Random(1))
    texts = [(planned.sites[site].text.partition("\n")[0], values[0]) for site, values in failed]
    shared = "index {} is outside of 's' of shape ({},)"
    assert [v for t, v in texts if t == shared] == [4, 6]  # of the second group: only thread 0 and 1 are present
    assert [v for t, v in texts if "of 'x'" in t] == [6, 6, 7, 7]
    assert sum(t == "large" for t, _ in texts) == 1
    assert [v for t, v in texts if "flat index" in t] == [-1, -1]  # the load and the store
    assert sorted(v for t, v in texts if "of 'out' of shape" in t and "flat" not in t) == [6, 7, 8, 9, 10]
    np.testing.assert_array_equal(out, np.float32([36, 36, 36, 36, 0, 0]))
