"""Groups of threads: shared memory, barriers, block reductions, atomics on shared arrays, on every device that has them; and the CPU's
refusal."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tack

RNG = np.random.default_rng(21)
with_groups = pytest.mark.needs("workgroups")
BINS = 64


# --- kernels ----------------------------------------------------------------------------------------------------------------------


def reversal(block: int) -> Any:
    @tack.kernel(block=block)
    def reverse(out, x):
        for i in range(len(x)):
            s = tack.shared_like(x, tack.block_dim())
            t = tack.thread_id()
            s[t] = x[i]
            tack.barrier()
            last = min(tack.block_dim(), len(x) - tack.block_id() * tack.block_dim()) - 1
            out[i] = s[last - t]

    return reverse


def scan(block: int) -> Any:
    @tack.kernel(block=block)
    def prefix_sum(out, totals, x):
        for i in range(len(x)):
            s = tack.shared(tack.i64, tack.block_dim())
            t = tack.thread_id()
            s[t] = x[i]
            tack.barrier()
            step = 1
            while step < tack.block_dim():
                before = s[t - step] if t >= step else 0
                tack.barrier()
                s[t] += before
                tack.barrier()
                step *= 2
            out[i] = s[t]
            total = tack.block_sum(x[i])
            if t == 0:
                totals[tack.block_id()] = total

    return prefix_sum


def reductions(block: int) -> Any:
    @tack.kernel(block=block, exact=True)
    def reduce(sums, least, most, x):
        for i in range(len(x)):
            a, b, c = tack.block_sum(x[i]), tack.block_min(x[i]), tack.block_max(x[i])
            sums[i] = a
            least[i] = b
            most[i] = c

    return reduce


@tack.kernel(block=64)
def transpose(out, x):
    for linear in range(((x.shape[0] + 7) // 8) * ((x.shape[1] + 7) // 8) * 64):
        tile = tack.shared(tack.f32, (8, 9))
        t, across = tack.thread_id(), (x.shape[1] + 7) // 8
        r, c = t // 8, t % 8
        top, left = tack.block_id() // across * 8, tack.block_id() % across * 8
        if top + r < x.shape[0] and left + c < x.shape[1]:
            tile[r, c] = x[top + r, left + c]
        tack.barrier()
        if left + r < x.shape[1] and top + c < x.shape[0]:
            out[left + r, top + c] = tile[c, r]


@tack.kernel
def histogram(bins, x):
    for i in range((len(x) + 255) // 256 * 256):
        s = tack.shared(tack.u32, BINS)
        t = tack.thread_id()
        if t < BINS:
            s[t] = 0
        tack.barrier()
        if i < len(x):
            tack.atomic_add(s, x[i] % BINS, 1)
        tack.barrier()
        if t < BINS and s[t] > 0:
            tack.atomic_add(bins, t, s[t])


@tack.func
def smoothed(s, t, n, rounds):
    """Rounds of a moving mean, with barriers in a uniform loop that may be left."""
    for k in range(rounds):
        if k == 5:
            break
        left, right = s[max(t - 1, 0)], s[min(t + 1, n - 1)]
        tack.barrier()
        s[t] = (left + s[t] + right) / 3
        tack.barrier()
    return s[t]


@tack.kernel(block=32, exact=True)
def smooth(out, x, rounds):
    for i in range(len(x)):
        s = tack.shared(tack.f32, 32)
        t = tack.thread_id()
        n = min(32, len(x) - tack.block_id() * 32)
        s[t] = x[i]
        tack.barrier()
        out[i] = smoothed(s, t, n, rounds)


@tack.kernel(block=16)
def uniform_branches(out, x, limit):
    for i in range(len(x)):
        out[i] = 0
        while tack.block_max(x[i]) > limit:
            x[i] //= 2
            out[i] += 1
        if tack.block_sum(x[i] == 0) > 3:
            tack.barrier()
            out[i] += 100
        if x[i] < 0:
            continue
        out[i] += 1000


def blocks(x: Any, size: int) -> list[Any]:
    return [x[b : b + size] for b in range(0, len(x), size)]


def folded(values: Any, size: int, op: Any, identity: Any) -> Any:
    """The documented tree: by halves of the least power of two that is not below the group's size."""
    width = 1 << (size - 1).bit_length()
    held = [*values, *[identity] * (width - len(values))]
    while width > 1:
        width //= 2
        held = [op(held[t], held[t + width]) for t in range(width)]
    return held[0]


# --- answers ----------------------------------------------------------------------------------------------------------------------


@with_groups
@pytest.mark.parametrize("block", [1, 64, 100, 128, 1024])
def test_reversal_through_shared_memory(device: tack.Device, block: int) -> None:
    for count in (1, 1000, 2048):
        x = RNG.random(count, np.float32)
        out = tack.zeros(count)
        reversal(block)(out, tack.array(x))
        np.testing.assert_array_equal(out.numpy(), np.concatenate([b[::-1] for b in blocks(x, block)]))


@with_groups
@pytest.mark.parametrize("block", [1, 33, 64, 256])
def test_prefix_sum_within_groups(device: tack.Device, block: int) -> None:
    x = RNG.integers(-1000, 1000, 1025)
    out, totals = tack.zeros(1025, tack.i64), tack.zeros(len(blocks(x, block)), tack.i64)
    scan(block)(out, totals, tack.array(x))
    np.testing.assert_array_equal(out.numpy(), np.concatenate([np.cumsum(b) for b in blocks(x, block)]))
    np.testing.assert_array_equal(totals.numpy(), [b.sum() for b in blocks(x, block)])


@with_groups
@pytest.mark.parametrize("block", [1, 7, 64, 256, 1024])
@pytest.mark.parametrize("dtype", [tack.f32, tack.i8, tack.u16, tack.i32, tack.u32, tack.i64, tack.u64], ids=str)
def test_block_reductions_have_a_fixed_order(device: tack.Device, block: int, dtype: Any) -> None:
    reduced(dtype, block)


@with_groups
@pytest.mark.needs("f64")
def test_block_reductions_of_f64(device: tack.Device) -> None:
    reduced(tack.f64, 96)


def reduced(dtype: Any, block: int) -> None:
    count = 1500 if block > 7 else 30
    if dtype.is_float:
        x = (RNG.standard_normal(count) * 10.0 ** RNG.integers(-6, 7, count)).astype(f"f{dtype.bits // 8}")
        x[[0, 5]] = np.nan, -0.0
    else:
        x = RNG.integers(dtype.min, dtype.max, count, dtype=f"{dtype.code}{dtype.bits // 8}", endpoint=True)
    out = [tack.zeros(count, dtype) for _ in range(3)]
    reductions(block)(*out, tack.array(x))
    zero = x.dtype.type(-0.0 if dtype.is_float else 0)
    nothing = [zero, x.dtype.type(np.nan if dtype.is_float else dtype.max), x.dtype.type(np.nan if dtype.is_float else dtype.min)]
    with np.errstate(all="ignore"):
        for array, op, identity in zip(out, (np.add, np.fmin, np.fmax), nothing, strict=True):
            expected = [np.full(len(b), folded(list(b), block, op, identity)) for b in blocks(x, block)]
            np.testing.assert_array_equal(array.numpy(), np.concatenate(expected).astype(x.dtype))


@with_groups
def test_tiled_transpose(device: tack.Device) -> None:
    for shape in ((8, 8), (50, 33), (1, 70)):
        x = RNG.random(shape, np.float32)
        out = tack.zeros(shape[::-1])
        transpose(out, tack.array(x))
        np.testing.assert_array_equal(out.numpy(), x.T)


@with_groups
def test_histogram_in_shared_memory(device: tack.Device) -> None:
    x = RNG.integers(0, 100_000, 5000).astype(np.int32)
    bins = tack.zeros(BINS, tack.u32)
    histogram(bins, tack.array(x))
    np.testing.assert_array_equal(bins.numpy(), np.bincount(x % BINS, minlength=BINS))


@with_groups
def test_barriers_in_uniform_loops_and_functions(device: tack.Device) -> None:
    x = RNG.random(100, np.float32)
    for rounds in (0, 1, 3, 9):
        out = tack.zeros(100)
        smooth(out, tack.array(x), rounds)
        expected = []
        for group in blocks(x, 32):
            for _ in range(min(rounds, 5)):
                padded = np.concatenate([group[:1], group, group[-1:]])
                group = ((padded[:-2] + padded[1:-1]) + padded[2:]) / np.float32(3)
            expected.append(group)
        np.testing.assert_array_equal(out.numpy(), np.concatenate(expected))


@with_groups
def test_uniform_conditions_from_block_reductions(device: tack.Device) -> None:
    x = RNG.integers(-50, 50, 75).astype(np.int32)
    out, held = tack.zeros(75, tack.i32), tack.array(x)
    uniform_branches(out, held, 9)
    expected = []
    for group in blocks(x.copy(), 16):
        count = np.zeros(len(group), np.int32)
        while group.max() > 9:
            group //= 2
            count += 1
        count += 100 * ((group == 0).sum() > 3) + 1000 * (group >= 0)
        expected.append(count)
    np.testing.assert_array_equal(out.numpy(), np.concatenate(expected))


@with_groups
def test_threads_and_groups_are_numbered_in_row_major_order(device: tack.Device) -> None:
    @tack.kernel(block=32)
    def place(out):
        for y, x in tack.ndrange((1, out.shape[0] + 1), out.shape[1]):
            out[y - 1, x] = tack.block_id() * 1000 + tack.thread_id() + 100_000 * tack.block_dim()

    out = tack.zeros((7, 13), tack.i64)
    place(out)
    np.testing.assert_array_equal(out.numpy().ravel(), [3_200_000 + n // 32 * 1000 + n % 32 for n in range(91)])


@with_groups
def test_one_iteration_is_a_group_of_its_own(device: tack.Device) -> None:
    @tack.kernel
    def single(x):
        s = tack.shared(tack.f32, 4)
        s[tack.thread_id()] = x[0]
        tack.barrier()
        return tack.block_sum(s[0]) * 10 + tack.block_id() + tack.block_dim()

    assert single(tack.array(np.float32([2.5]))) == 25 + 256


@with_groups
def test_loops_with_groups_between_others(device: tack.Device) -> None:
    @tack.kernel(block=8)
    def relax(x, steps):
        total = 0.0
        for t in tack.sequential(steps):
            for i in range(len(x)):
                x[i] = x[i] * 0.5 + tack.block_sum(x[i]) * 0.0625 + t
        for i in range(len(x)):
            total += x[i]
        for i in range(len(x)):
            x[i] = tack.block_max(x[i]) - total
        return total

    x = RNG.integers(0, 9, 24).astype(np.float32)
    held = tack.array(x)
    total = relax(held, 3)
    for t in range(3):
        x = np.concatenate([b * np.float32(0.5) + np.float32(b.sum() * 0.0625) + t for b in blocks(x, 8)])
    np.testing.assert_allclose(total, x.sum(), rtol=1e-5)
    np.testing.assert_allclose(held.numpy(), np.repeat([b.max() for b in blocks(x, 8)], 8) - x.sum(), rtol=1e-4)


@with_groups
def test_atomics_on_shared_arrays(device: tack.Device) -> None:
    @tack.kernel(block=64)
    def all_kinds(out, tickets):
        for i in range(64):
            s = tack.shared_like(out, 10)
            t = tack.thread_id()
            if t < 10:
                s[t] = 12
            tack.barrier()
            tickets[i] = tack.atomic_add(s, 0, 2)
            tack.atomic_sub(s, 1, t)
            tack.atomic_min(s, 2, 70 - t)
            tack.atomic_max(s, 3, t)
            tack.atomic_and_(s, 4, 64 + t)
            tack.atomic_or_(s, 5, 16 * (t % 2))
            tack.atomic_xor(s, 6, t)
            if t == 9:
                tack.atomic_exchange(s, 7, 99)
            if tack.atomic_cas(s, 8, 12, t + 20) == 12:
                tack.atomic_add(s, 9, 1)
            tack.barrier()
            if t < 10:
                out[t] = s[t]

    for dtype in (tack.i32, tack.u32, tack.i64, tack.u64):
        if dtype.name not in device.atomic_dtypes:
            continue
        out, tickets = tack.zeros(10, dtype), tack.zeros(64, tack.i64)
        all_kinds(out, tickets)
        wrapped = (12 - 64 * 63 // 2) % 2**dtype.bits
        sub = wrapped if not dtype.is_signed else wrapped - 2**dtype.bits
        winner = int(out[8])
        expected = [12 + 128, sub, 7, 63, 0, 28, 12, 99, winner, 13]
        xor = 12
        for t in range(64):
            xor ^= t
        expected[6] = xor
        both = 12
        for t in range(64):
            both &= 64 + t
        expected[4] = both
        assert out.tolist() == expected and 20 <= winner < 84
        assert sorted(tickets.tolist()) == list(range(12, 12 + 128, 2))


@with_groups
def test_atomics_of_floats_on_shared_arrays(device: tack.Device) -> None:
    @tack.kernel(block=64)
    def floats(out, x):
        for i in range(64):
            s = tack.shared_like(out, 6)
            t = tack.thread_id()
            if t < 6:
                s[t] = 0.5
            tack.barrier()
            tack.atomic_add(s, 0, t * 0.25)
            tack.atomic_sub(s, 1, t * 0.25)
            tack.atomic_min(s, 2, x[i])
            tack.atomic_max(s, 3, x[i])
            if t == 5:
                tack.atomic_exchange(s, 4, -0.0)
            tack.atomic_cas(s, 5, 0.5, 7.0)
            tack.barrier()
            if t < 6:
                out[t] = s[t]

    for dtype in (tack.f32, tack.f64):
        if dtype.name not in device.atomic_dtypes:
            continue
        out, x = tack.zeros(6, dtype), RNG.standard_normal(64).astype(np.float32)
        x[[3, 9]] = np.nan
        floats(out, tack.array(x))
        assert out.tolist() == [504.5, -503.5, min(0.5, float(np.nanmin(x))), max(0.5, float(np.nanmax(x))), 0.0, 7.0]
        assert np.signbit(out.numpy()[4])


@with_groups
def test_scalars_from_before_the_loop_are_uniform(device: tack.Device) -> None:
    @tack.kernel(block=16)
    def scaled(out, x):
        first, total = x[0], 0.0
        for i in range(len(x)):
            total += x[i]
        rounds = int(first)
        for i in range(len(x)):
            out[i] = 0
            for k in range(rounds):
                if total > k:
                    out[i] += tack.block_sum(x[i] * k)

    for first in (0, 3):
        x = np.float32([first, *RNG.integers(0, 3, 36)])
        out = tack.zeros(37)
        scaled(out, tack.array(x))
        factor = sum(k for k in range(first) if x.sum() > k)
        np.testing.assert_array_equal(out.numpy(), np.concatenate([np.full(len(b), b.sum() * factor) for b in blocks(x, 16)]))


@with_groups
def test_local_arrays_textures_and_print_between_collectives(device: tack.Device, capsys: pytest.CaptureFixture[str]) -> None:
    @tack.kernel(block=4)
    def mixed(out, tex):
        for i in range(len(out)):
            mine = tack.local_array(tack.f32, 3)
            for k in range(3):
                mine[k] = tex.sample(i / 5, k / 2, 0)
                if tack.block_max(mine[k]) == 10.0:
                    print(tack.block_id(), tack.thread_id(), k)
            out[i] = tack.block_sum(mine[0] + mine[1] + mine[2])

    volume = np.arange(18, dtype=np.float32).reshape(1, 3, 6)
    out = tack.zeros(6)
    mixed(out, tack.texture3d(volume, interp="nearest"))
    sums = volume.sum(axis=(0, 1))
    np.testing.assert_array_equal(out.numpy(), [sums[:4].sum()] * 4 + [sums[4:].sum()] * 2)
    assert sorted(capsys.readouterr().out.splitlines()) == []


# --- refusals ---------------------------------------------------------------------------------------------------------------------


@with_groups
def test_collectives_that_not_all_threads_reach_are_refused(device: tack.Device) -> None:
    @tack.kernel
    def divergent(x):
        for i in range(len(x)):
            if x[i] > 0:
                tack.barrier()

    @tack.kernel
    def late(x):
        for i in range(len(x)):
            for k in range(9):
                if x[i] > k:
                    break
                x[i] = tack.block_sum(x[i])

    x = tack.ones(4)
    for kernel, why in ((divergent, "the condition at line"), (late, "whether control leaves at line")):
        with pytest.raises(
            tack.CompileNotImplementedError, match=f"in flow that is not uniform: {why} [0-9]+ depends on an element of 'x'"
        ):
            kernel(x)
    assert x.tolist() == [1, 1, 1, 1]


@with_groups
def test_groups_and_shared_memory_have_limits(device: tack.Device) -> None:
    @tack.kernel
    def greedy(x):
        for i in range(len(x)):
            s = tack.shared(tack.f32, 1 << 24)
            s[0] = x[i]

    with pytest.raises(tack.CompileValueError, match=r"shared memory of 67108864 bytes for 's'; a group has [0-9]+ on"):
        greedy(tack.ones(4))


# kind -> its call; the page: CUDA has atomics of 32- and 64-bit integers, f32 and f64
ATOMICS = {
    **{kind: f"tack.atomic_{kind}(x, 0, 1)" for kind in ("add", "sub", "min", "max", "exchange")},
    **{kind: f"tack.atomic_{kind}_(x, 0, 1)" for kind in ("and", "or")},
    "xor": "tack.atomic_xor(x, 0, 1)",
    "cas": "tack.atomic_cas(x, 0, 1, 2)",
}


@pytest.mark.parametrize("shared", [False, True], ids=["array", "shared"])
@pytest.mark.parametrize("kind", ATOMICS)
def test_atomics_outside_of_the_table_are_refused_before_anything_is_compiled(kind: str, shared: bool) -> None:
    call = ATOMICS[kind]
    lines = ["@tack.kernel", "def bump(x):", "    for i in range(len(x)):"]
    if shared:
        lines.append("        s = tack.shared_like(x, 4)")
        call = call.replace("(x,", "(s,")
    text = "\n".join([*lines, f"        {call}", ""])
    name = f"<atomic {kind} {shared}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = {"tack": tack, "__name__": "atomics"}
    exec(compile(text, name, "exec"), names)
    for dtype in (tack.i8, tack.u8, tack.i16, tack.u16):
        with pytest.raises(tack.UnsupportedError) as caught:
            tack.compile(names["bump"], dtype[:], target="cuda:sm_90")
        assert caught.value.kernel == "bump"
        assert str(caught.value) == (
            f"Kernel 'bump': tack.atomic_{kind} of {dtype} arrays is not supported on CUDA.\n"
            "  Atomic array types there: tack.f32, tack.f64, tack.i32, tack.i64, tack.u32, tack.u64."
        )
    if kind in ("and", "or", "xor"):
        for dtype in (tack.f32, tack.f64):
            with pytest.raises(tack.CompileTypeError, match="works on integers, and '[xs]' is a tack.f"):
                tack.compile(names["bump"], dtype[:], target="cuda:sm_90")


@with_groups
def test_a_failed_check_ends_no_thread_of_a_group(device: tack.Device) -> None:
    @tack.kernel(block=32)
    def beyond(out, x):
        for i in range(len(out)):
            s = tack.shared(tack.f32, 32)
            s[tack.thread_id() * 2] = x[i]
            tack.barrier()
            out[i] = tack.block_sum(1)

    @tack.kernel(block=32)
    def asserts(out, x):
        for i in range(len(x)):
            assert x[i] < 9, "too large"
            out[i] = tack.block_max(x[i])

    x = np.arange(70, dtype=np.float32) % 10
    with tack.debug():
        out = tack.zeros(70)
        with pytest.raises(IndexError, match=r"(?s)beyond.*index [0-9]+ is outside of 's' of shape \(32,\)"):
            beyond(out, tack.array(x))
            device.synchronize()
        with pytest.raises(AssertionError, match="(?s)asserts.*too large"):
            asserts(out, tack.array(x))
            device.synchronize()
        asserts(out, tack.array(x % 9))
        np.testing.assert_array_equal(out.numpy(), np.full(70, 8, np.float32)[:64].tolist() + [(x % 9)[64:].max()] * 6)


def test_the_size_of_a_group_is_checked_where_the_kernel_is_made() -> None:
    for block in (0, 1025, -1):
        with pytest.raises(ValueError, match=r"@tack.kernel\(block=-?[0-9]+\): a group has 1 to 1024 threads"):
            tack.kernel(block=block)
    with pytest.raises(TypeError, match="expected an int"):
        tack.kernel(block=64.0)


@tack.func
def hidden(x):
    if False:
        s = tack.shared_like(x, 4)
        s[0] = 1
    return x


alias = tack.block_id
NAMES = ("shared", "shared_like", "barrier", "thread_id", "block_id", "block_dim", "block_sum", "block_min", "block_max")


@pytest.mark.needs("no workgroups")
@pytest.mark.parametrize("name", NAMES)
def test_a_device_without_groups_refuses_each_of_the_names(device: tack.Device, name: str) -> None:
    function = getattr(tack, name)

    @tack.kernel
    def dead(x):
        for i in range(len(x)):
            x[i] = 5
            if False:
                function()

    x = tack.ones(4)
    made = device.compiled + device.loaded
    with pytest.raises(RuntimeError, match=f"Kernel 'dead' uses tack.{name}, which is not supported on") as caught:
        dead(x)
    assert not isinstance(caught.value, NotImplementedError)
    with pytest.raises(NotImplementedError, match=f"Kernel 'dead' uses tack.{name}"):
        tack.inspect(dead, x)
    assert x.tolist() == [1, 1, 1, 1] and device.compiled + device.loaded == made


@pytest.mark.needs("no workgroups")
def test_a_device_without_groups_refuses_functions_and_aliases(device: tack.Device) -> None:
    @tack.kernel
    def through_a_function(x):
        for i in range(len(x)):
            x[i] = 1 if True else hidden(x)[i]

    @tack.kernel
    def through_an_alias(x):
        for i in range(len(x)):
            x[i] = alias()

    for kernel, text in (
        (through_a_function, r"uses tack.shared_like \(in 'hidden'\), which is not supported on"),
        (through_an_alias, "uses tack.block_id, which is not supported on"),
    ):
        with pytest.raises(RuntimeError, match=text):
            kernel(tack.ones(4))


def test_outside_of_kernels_they_have_no_meaning() -> None:
    for name in NAMES:
        with pytest.raises(RuntimeError, match=name):
            getattr(tack, name)()


@with_groups
@pytest.mark.needs("CUDA")
def test_the_page_of_groups_runs(device: tack.Device) -> None:
    """Its examples use a CUDA device where there is one; elsewhere the documentation's own test runs the rest of them."""
    page = Path(__file__).resolve().parents[2] / "docs" / "workgroups.md"
    names: dict[str, Any] = {"__name__": page.stem}
    for number, text in enumerate(re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)):
        name = f"<{page.name}:{number}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile(text, name, "exec"), names)
    assert names["gpu"] is device
