"""Groups from text to answers: programs run by the interpreter against NumPy, and every refusal, on a device that has them."""

from __future__ import annotations

import dataclasses
import random
import textwrap

import numpy as np
import pytest
from frontend_env import CPU, FLOAT, I32, INT, X32
from group_programs import EARLY, GPU, HISTOGRAM, I64, REVERSE, SCAN, TRANSPOSE, UNIFORM, X2, grouped, loop
from ir_builder import Builder, array, over

from tack import types
from tack.errors import CompileError, CompileNotImplementedError, CompileTypeError, CompileValueError
from tack.frontend.capabilities import CapabilityError
from tack.frontend.meaning import ArrayArg, ScalarArg
from tack.ir.groups import reduce
from tack.ir.interpret import InterpreterError, run
from tack.ir.nodes import Instr, Kernel, Loc, Parallel, Var
from tack.ir.text import to_text
from tack.ir.uniformity import analyse, uses_groups
from tack.ir.verify import verify


@pytest.mark.parametrize("block", [1, 2, 7, 64, 128, 256])
@pytest.mark.parametrize("shuffle", [None, random.Random(3)])
def test_reversal_through_shared_memory(block: int, shuffle: random.Random | None) -> None:
    x = np.arange(300, dtype=np.float32)
    out = np.zeros_like(x)
    run(grouped(REVERSE, X32, X32, block=block), [out, x], shuffle=shuffle)
    np.testing.assert_array_equal(out, np.concatenate([x[b : b + block][::-1] for b in range(0, 300, block)]))


@pytest.mark.parametrize("block", [1, 5, 64])
def test_prefix_sum_within_a_group(block: int) -> None:
    x = np.random.default_rng(1).integers(-100, 100, 130)
    out = np.zeros_like(x)
    run(grouped(SCAN, I64, I64, block=block), [out, x])
    np.testing.assert_array_equal(out, np.concatenate([np.cumsum(x[b : b + block]) for b in range(0, 130, block)]))


@pytest.mark.parametrize("shuffle", [None, random.Random(4)])
def test_histogram_in_shared_memory(shuffle: random.Random | None) -> None:
    x = np.random.default_rng(2).integers(0, 1000, 700).astype(np.int32)
    bins = np.zeros(16, np.int32)
    made = grouped(HISTOGRAM, I32, I32, block=32)
    run(made, [bins, x[:672]], shuffle=shuffle)
    np.testing.assert_array_equal(bins, np.bincount(x[:672] % 16, minlength=16))
    assert {"atomic:add:i32", "workgroups"} <= made.uses


def test_tiled_transpose() -> None:
    for shape in ((8, 8), (20, 13), (1, 30)):
        x = np.random.default_rng(3).random(shape, np.float32)
        out = np.zeros(shape[::-1], np.float32)
        run(grouped(TRANSPOSE, X2, X2, block=64), [out, x])
        np.testing.assert_array_equal(out, x.T)


@pytest.mark.parametrize("block", [1, 3, 64, 1024])
@pytest.mark.parametrize("name", ["sum", "min", "max"])
def test_block_reductions(name: str, block: int) -> None:
    x = np.random.default_rng(4).integers(-1000, 1000, 1500)
    out = np.zeros_like(x)
    run(grouped(loop(f"out[i] = tack.block_{name}(x[i])"), I64, I64, block=block), [out, x])
    for b in range(0, 1500, block):
        assert (out[b : b + block] == getattr(x[b : b + block], name)()).all()


def test_the_order_of_a_block_sum_is_fixed() -> None:
    values = [1e8, 1.0, -1e8, 1.0, 3.0]
    f32 = types.f32
    assert reduce("add", values[:4], f32, 4) == np.float32(np.float32(1e8 - 1e8) + np.float32(2.0))  # (0 + 2) + (1 + 3)
    folded = [np.float32(values[k]) + np.float32(values[k + 4] if k + 4 < 5 else -0.0) for k in range(4)]
    expected = (folded[0] + folded[2]) + (folded[1] + folded[3])
    assert reduce("add", values, f32, 5) == expected == reduce("add", values, f32, 8)
    assert str(reduce("add", [-0.0], f32, 256)) == "-0.0"
    nan = float("nan")
    assert reduce("max", [nan, 2.0, nan], f32, 4) == 2.0 and np.isnan(reduce("min", [nan], f32, 64))
    assert reduce("add", [200, 100], types.u8, 2) == 44 and reduce("min", [5], types.u8, 8) == 5


def test_types_of_group_values() -> None:
    made = grouped(
        loop(
            """
            n = tack.block_sum(x[i] > 0)
            out[i, 0] = n.dtype == tack.i64 and tack.thread_id().dtype == tack.i64 and tack.block_sum(x[i]).dtype == tack.f32
            out[i, 1] = (x[i] * tack.block_dim()).dtype == tack.f32 and (tack.u64(3) + tack.thread_id()).dtype == tack.u64
            out[i, 2] = 10 * n + tack.block_max(2) + tack.block_min(value=k)
            out[i, 3] = tack.block_sum(b).dtype == tack.u8 and tack.block_sum(b) == 400 % 256
            """,
            "out, x, k, b",
        ),
        *(ArrayArg(types.i64, 2), X32, INT, ScalarArg("strong", types.u8)),
        block=4,
    )
    out = np.zeros((4, 4), np.int64)
    run(made, [out, np.float32([1, -1, 2, 0]), 5, np.uint8(100)])
    assert out.tolist() == [[1, 1, 27, 1]] * 4
    with pytest.raises(CompileTypeError, match="array 'out' cannot take"):
        grouped(loop("out[i] = tack.block_min(a)", "out, x, a"), I64, X32, FLOAT)


def test_absent_threads_reach_barriers_and_add_the_identity() -> None:
    x = np.float32([5, 4, 3, 2, 1])
    out, least = np.zeros_like(x), np.zeros_like(x)
    text = loop(
        """
        for r in range(3):
            v = tack.block_sum(x[i] if r < 2 else 1.0)
            if v > 9:
                tack.barrier()
            out[i] += v
        least[i] = tack.block_min(x[i])
        """,
        "out, least, x",
    )
    run(grouped(text, X32, X32, X32, block=4), [out, least, x])
    np.testing.assert_array_equal(out, np.float32([32, 32, 32, 32, 3]))
    np.testing.assert_array_equal(least, np.float32([2, 2, 2, 2, 1]))


def test_two_dimensions_are_numbered_in_row_major_order() -> None:
    text = """
    def k(out):
        for y, x in tack.ndrange((1, 4), 5):
            out[y - 1, x] = tack.block_id() * 100 + tack.thread_id()
    """
    out = np.zeros((3, 5), np.int64)
    run(grouped(text, ArrayArg(types.i64, 2), block=4), [out])
    np.testing.assert_array_equal(out.ravel(), [n // 4 * 100 + n % 4 for n in range(15)])


def test_a_kernel_without_a_loop_is_one_thread_of_a_group() -> None:
    text = """
    def k(x):
        s = tack.shared(tack.f32, 4)
        s[tack.thread_id()] = x[0]
        tack.barrier()
        return tack.block_sum(s[0]) * 10 + tack.block_id() + tack.block_dim()
    """
    assert run(grouped(text, X32, block=32), [np.float32([2.5])]) == 25.0 + 32


def test_loops_inside_tack_sequential_and_several_loops() -> None:
    text = """
    def k(out, steps):
        for t in tack.sequential(steps):
            for i in range(len(out)):
                out[i] += tack.block_sum(out[i]) + t
        for i in range(len(out)):
            out[i] = tack.block_max(out[i])
    """
    out = np.float32([1, 2, 3])
    run(grouped(text, X32, INT, block=2), [out, 2])
    expected = np.float32([1, 2, 3])
    for t in range(2):
        expected += np.float32([expected[:2].sum()] * 2 + [expected[2]]) + t
    np.testing.assert_array_equal(out, [max(expected[:2])] * 2 + [expected[2]])


def test_functions_may_hold_collectives() -> None:
    total = """
    def total(s, v):
        t = tack.thread_id()
        s[t] = v
        tack.barrier()
        result = 0.0
        for k in range(tack.block_dim()):
            result += s[k]
        tack.barrier()
        return result
    """
    text = loop("""
        s = tack.shared(tack.f32, tack.block_dim())
        a = total(s, x[i])
        out[i] = a + total(s, x[i] * 2)
    """)
    x = np.arange(8, dtype=np.float32)
    out = np.zeros_like(x)
    run(grouped(text, X32, X32, block=4, total=textwrap.dedent(total)), [out, x])
    np.testing.assert_array_equal(out, np.repeat([18, 66], 4))


def test_atomics_of_all_kinds_on_shared_memory() -> None:
    text = loop("""
        s = tack.shared(tack.i32, 9)
        t = tack.thread_id()
        if t < 9:
            s[t] = 12
        tack.barrier()
        tack.atomic_add(s, 0, t)
        tack.atomic_sub(s, 1, t)
        tack.atomic_min(s, 2, t + 5)
        tack.atomic_max(s, 3, t + 5)
        tack.atomic_and_(s, 4, 4 + t)
        tack.atomic_or_(s, 5, t)
        tack.atomic_xor(s, 6, t)
        if t == 3:
            tack.atomic_exchange(s, 7, 99)
        tack.atomic_cas(s, 8, 12, 70)
        tack.barrier()
        if t < 9:
            out[t] = s[t]
    """)
    out = np.zeros(16, np.int32)
    run(grouped(text, I32, I32, block=16), [out, out])
    every = np.arange(16)
    assert out[:9].tolist() == [
        *(12 + every.sum(), 12 - every.sum(), 5, 20),
        *(np.bitwise_and.reduce(4 + every) & 12, 12 | np.bitwise_or.reduce(every), 12 ^ np.bitwise_xor.reduce(every)),
        *(99, 70),
    ]


# --- uniformity -------------------------------------------------------------------------------------------------------------------


NOT_UNIFORM = [
    ("if x[i] > 0:\n    tack.barrier()", 13, "the condition at line 12 depends on an element of 'x'"),
    ("if i > 0:\n    tack.barrier()", 13, "the condition at line 12 depends on the loop's index 'i'"),
    ("if tack.thread_id() == 0:\n    x[i] = tack.block_sum(1.0)", 13, "the condition at line 12 depends on tack.thread_id()"),
    ("for j in range(i):\n    tack.barrier()", 13, "how often the loop at line 12 runs depends on the loop's index 'i'"),
    ("j = i\nwhile j > 0:\n    j -= 1\n    tack.barrier()", 15, "how often the loop at line 13 runs depends on the loop's index 'i'"),
    (
        "for j in range(9):\n    if x[i] > j:\n        break\n    tack.barrier()",
        15,
        "whether control leaves at line 14 depends on an element of 'x'",
    ),
    ("for j in range(9):\n    if x[i] > j:\n        continue\n    tack.barrier()", 15, "whether control leaves at line 14"),
    ("for j in range(9):\n    tack.barrier()\n    if x[i] > j:\n        break", 13, "whether control leaves at line 15"),
    ("for j in range(9):\n    if x[i] > j:\n        break\nelse:\n    tack.barrier()", 16, "whether control leaves at line 14"),
    ("if x[i] > 0:\n    continue\ntack.barrier()", 14, "whether control leaves at line 13"),
    ("a = 1\nif x[i] > 0:\n    a = 2\nif a == 2:\n    tack.barrier()", 16, "the condition at line 15 depends on an element of 'x'"),
    (
        "a = 0\nfor j in range(9):\n    if a > 3:\n        tack.barrier()\n    a += i",
        15,
        "the condition at line 14 depends on the loop's index 'i'",
    ),
    ("a = tack.atomic_add(x, 0, 1)\nif a > 0:\n    tack.barrier()", 14, "depends on what an atomic on 'x' answers"),
    ("s = tack.shared(tack.i32, 4)\nif s[0] > 0:\n    tack.barrier()", 14, "depends on an element of 's'"),
    ("x[i] = 1 if i == 0 else tack.block_sum(x[i])", 12, "the condition at line 12"),
    ("if i == 0 or tack.block_sum(x[i]) > 3:\n    x[i] = 1", 12, "the condition at line 12"),
    ("if early(x[i]) > 0:\n    tack.barrier()", 13, "the condition at line 12"),
]


@pytest.mark.parametrize("body", UNIFORM)
def test_collectives_in_uniform_flow_are_taken_and_run(body: str) -> None:
    made = grouped(loop(body, "x, n"), X32, INT, block=4, early=EARLY)
    item = made.items[-1]
    assert isinstance(item, Parallel) and uses_groups(item.body) and not analyse(item.indices, item.body).refused
    run(made, [np.float32([3, 0, -2, 9, 1, 7]), 6], shuffle=random.Random(5))


@pytest.mark.parametrize(("body", "line", "why"), NOT_UNIFORM)
def test_collectives_in_other_flow_are_refused_with_line_and_cure(body: str, line: int, why: str) -> None:
    with pytest.raises(CompileNotImplementedError) as caught:
        grouped(loop(body, "x, n"), X32, INT, early=EARLY)
    assert caught.value.line == line
    assert "in flow that is not uniform: " in str(caught.value) and why in str(caught.value)
    assert "Let all threads reach it: move it out" in str(caught.value)


def test_a_collective_in_a_function_is_refused_where_it_stands() -> None:
    with pytest.raises(CompileNotImplementedError) as caught:
        grouped(loop("f(x[i])"), X32, X32, f="def f(v):\n    if v > 0:\n        return 1\n    tack.barrier()\n    return 2\n")
    assert "tack.barrier in flow that is not uniform: the condition at line 11 depends on an element of 'x'" in str(caught.value)
    assert "In 'f', called at /x/kernels.py:12." in str(caught.value)


# --- refusals ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (loop("s = tack.shared(tack.f32, n)", "x, n"), CompileTypeError, "the shape of tack.shared must be known at compile time"),
        (loop("s = tack.shared(4, 4)", "x, n"), CompileTypeError, "tack.shared takes a dtype first, not a Python int"),
        (loop("s = tack.shared_like(n, 4)", "x, n"), CompileTypeError, "tack.shared_like takes an array first, not a Python int"),
        (loop("s = tack.shared_like(x)", "x, n"), CompileTypeError, "the shape of tack.shared_like must be known at compile time"),
        (loop("s = tack.shared(tack.f32)", "x, n"), CompileTypeError, "'tack.shared' takes 2 arguments, not 1"),
        (loop("tack.barrier(n)", "x, n"), CompileTypeError, "'tack.barrier' takes 0 arguments, not 1"),
        (loop("x[i] = tack.block_sum(x)", "x, n"), CompileTypeError, "'tack.block_sum' takes numbers, not the array 'x'"),
        (
            loop("s = tack.shared(tack.f32, 4)\ns[4] = 1", "x, n"),
            CompileTypeError,
            "index 4 is outside of dimension 0 of the shared array 's'",
        ),
        (
            loop("s = tack.shared(tack.f64, (100, 99))\ns[0, 0] = 1", "x, n"),
            CompileValueError,
            "shared memory of 79200 bytes for 's'; a group has 49152 on CUDA",
        ),
        (
            loop("s = tack.shared(tack.i8, 49000)\nt = tack.shared(tack.u8, 200)\ns[0] = t[0]", "x, n"),
            CompileValueError,
            "shared memory of 49000 bytes for 's', 49208 with what else the loop shares; a group has 49152 on CUDA",
        ),
        (
            loop(
                "s = tack.shared(tack.i8, 48000)\ns[0] = 1\nx[i] = tack.block_sum(x[i]) + tack.block_max(x[i]) + tack.block_sum(n)", "x, n"
            ),
            CompileValueError,
            "shared memory of 2048 bytes for tack.block_sum, 51072 with what else the loop shares; a group has 49152 on CUDA",
        ),
        (
            "def k(x, n):\n    tack.barrier()\n    for i in range(n):\n        x[i] = 1\n",
            CompileNotImplementedError,
            "tack.barrier outside the parallel loops is refused",
        ),
        (
            "def k(x, n):\n    t = tack.thread_id()\n    for i in range(n):\n        x[i] = t\n",
            CompileNotImplementedError,
            "tack.thread_id outside the parallel loops is refused",
        ),
        (
            "def k(x, n):\n    s = tack.shared(tack.f32, 4)\n    for i in range(n):\n        x[i] = s[0]\n",
            CompileTypeError,
            "'s' is a shared array that was made outside this loop.",
        ),
        (
            "def k(x, n):\n    t = 0.0\n    for i in range(n):\n        t += tack.block_sum(x[i])\n    return t\n",
            CompileNotImplementedError,
            "tack.block_sum in a loop that reduces into 't' is refused",
        ),
    ],
)
def test_refusals(text: str, kind: type[CompileError], message: str) -> None:
    with pytest.raises(kind) as caught:
        grouped(text, X32, INT)
    assert message in str(caught.value) and str(caught.value).startswith("Kernel 'k': ")
    assert caught.value.line is not None


def test_the_size_of_a_group() -> None:
    made = grouped(loop("out[i] = tack.block_dim()"), X32, X32)
    assert made.options == {"block": 256}
    assert grouped(loop("out[i] = 1"), X32, X32, block=64).options == {"block": 64}
    assert grouped(loop("out[i] = 1"), X32, X32).options == {}
    small = dataclasses.replace(GPU, title="Level Zero", max_group=512)
    with pytest.raises(CompileValueError, match=r"block=1024: a group has 1 to 512 threads on Level Zero.") as caught:
        grouped(loop("out[i] = 1"), X32, X32, block=1024, target=small)
    assert "@tack.kernel(block=N) with N of at most 512" in str(caught.value)
    grouped(loop("out[i] = 1"), X32, X32, block=1024, target=CPU)  # no effect there


def test_capabilities_of_atomics_on_shared_memory_and_f64() -> None:
    metal = dataclasses.replace(GPU, title="Metal", supports_f64=False, atomic_dtypes=frozenset((types.i32, types.u32, types.f32)))
    for text, use in (
        (loop("s = tack.shared(tack.i64, 4)\ntack.atomic_max(s, 0, 1)"), "atomic:max:i64"),
        (loop("s = tack.shared(tack.f64, 4)\ns[0] = 1"), "f64"),
        (loop("s = tack.shared_like(x, 4)\ntack.atomic_cas(s, 0, 1, 2)"), "atomic:cas:i16"),
    ):
        with pytest.raises(CapabilityError, match="Kernel 'k': .* is not supported on Metal") as caught:
            grouped(text, X32, ArrayArg(types.i16, 1), target=metal)
        assert caught.value.capability == use
    with pytest.raises(CompileTypeError, match=r"tack.atomic_and_ works on integers, and 's' is a tack.f32 array"):
        grouped(loop("s = tack.shared(tack.f32, 4)\ntack.atomic_and_(s, 0, 1)"), X32, X32)
    with pytest.raises(CompileTypeError, match="local array 's', which no other iteration sees"):
        grouped(loop("s = tack.local_array(tack.i32, 4)\ntack.atomic_add(s, 0, 1)"), X32, X32)


ATOMIC_KINDS = ("add", "sub", "min", "max", "and_", "or_", "xor", "exchange", "cas")


@pytest.mark.parametrize("name", ATOMIC_KINDS)
def test_every_pair_outside_of_the_table_is_refused_before_anything_runs(name: str) -> None:
    cuda = dataclasses.replace(
        GPU, atomic_dtypes=frozenset(t for t in types.ARRAY_DTYPES if t.bits >= 32)
    )  # the page: 32- and 64-bit ints, f32, f64
    for dtype in types.ARRAY_DTYPES:
        text = loop(f"tack.atomic_{name}(out, i, {'1, ' if name == 'cas' else ''}1)")
        if name in ("and_", "or_", "xor") and dtype.is_float:
            continue
        if dtype in cuda.atomic_dtypes:
            grouped(text, ArrayArg(dtype, 1), X32, target=cuda)
            continue
        with pytest.raises(CapabilityError) as caught:
            grouped(text, ArrayArg(dtype, 1), X32, target=cuda)
        kind = name.rstrip("_")
        assert f"Kernel 'k': tack.atomic_{kind} of tack.{dtype.name} arrays is not supported on CUDA." in str(caught.value)
        assert "Atomic array types there: tack.f32, tack.f64, tack.i32, tack.i64, tack.u32, tack.u64." in str(caught.value)
        assert caught.value.capability == f"atomic:{kind}:{dtype.name}"


# --- what the interpreter reports -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("s[t] = x[i]\nout[i] = s[3 - t]", r"a race: thread 1 reads s\[2\], which nobody has written|thread 0 reads s\[3\], which nobody"),
        ("s[0] = t", r"a race: thread 1 writes s\[0\], which thread 0 used since the last barrier"),
        ("s[t] = t\ntack.barrier()\ns[0] = s[t]", r"a race: thread 1 writes s\[0\], which thread 0 used since"),
        ("s[t] = t\ntack.barrier()\nout[i] = s[(t + 1) % 4]\ns[t] = 1", r"a race: thread 1 writes s\[1\], which thread 0 used"),
        ("if t == 0:\n    s[0] = 0\ntack.atomic_add(s, 0, 1)", r"a race: thread 1 updates s\[0\], which thread 0 used"),
        ("tack.atomic_add(s, 0, 1)", r"thread 0 reads s\[0\], which nobody has written"),
    ],
)
def test_races_and_unwritten_shared_memory_are_reported(body: str, message: str) -> None:
    made = grouped(loop("s = tack.shared(tack.f32, 4)\nt = tack.thread_id()\n" + body), X32, X32, block=4)
    with pytest.raises(InterpreterError, match=message):
        run(made, [np.zeros(4, np.float32), np.zeros(4, np.float32)])


def test_collectives_that_not_all_threads_reach_are_reported() -> None:
    """What no front end makes: a barrier that only the first thread comes to."""
    b, i, x = Builder(), Var("i", types.i64), array(0, "x")
    first = b.branch(b.less(b.op("thread_id", types.i64), b.const(1)))
    with b.inside(first.then):
        b.add(Instr("barrier", None, loc=Loc("k.py", 3)))
    total = b.op("block_reduce", types.f32, b.load(x, b.get(i)), attr="add")
    b.store(x, total, b.get(i))
    made = Kernel("k", [x], [over(x, b.root, i)], frozenset({0}), options={"block": 4})
    verify(made)
    assert [collective for collective, _ in analyse([i], b.root).refused] == [first.then.body[0]]
    with pytest.raises(
        InterpreterError,
        match=r"kernel 'k': not all threads of group 0 meet: thread 0 is at barrier \(line 3\) and thread 1 is at block_reduce",
    ):
        run(made, [np.zeros(4, np.float32)])
    del b.root.body[b.root.body.index(total) :]
    with pytest.raises(InterpreterError, match=r"thread 0 is at barrier \(line 3\) and thread 1 has ended"):
        run(made, [np.zeros(4, np.float32)])


def test_text() -> None:
    text = to_text(grouped(HISTOGRAM, I32, I32, block=32))
    assert "shared s: i32[16]" in text and "barrier()" in text and "thread_id()" in text
    text = to_text(grouped(loop("out[i] = tack.block_max(x[i]) + tack.block_id()"), X32, X32))
    assert "%0 = block_max(x[i])" in text and "block_id()" in text
