"""The kernel language: what makes another kernel and what does not, and that what can be refused is refused before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from language import define, kernel

import tack


def made(device: tack.Device) -> int:
    return int(device.compiled + device.loaded)


def counted(device: tack.Device, k: Any, *calls: tuple[Any, ...]) -> list[int]:
    """How many kernels each call made."""
    found = []
    for arguments in calls:
        before = made(device)
        k(*arguments)
        found.append(made(device) - before)
    return found


FILL = "@tack.kernel\ndef k(a, n=1, p=None):\n    for i in range(len(a)):\n        a[i] = n\n"


def test_lengths_and_values_make_no_other_kernel(device: tack.Device) -> None:
    k = kernel(FILL)
    calls = [(tack.zeros(size), value) for size in (3, 0, 1, 10_000) for value in (1, -5, 2**30, 2**31, -(2**62))]
    assert counted(device, k, *calls) == [1] + [0] * (len(calls) - 1)


@pytest.mark.needs("f64")
def test_types_ranks_layouts_kinds_and_read_only_do(device: tack.Device) -> None:
    k = kernel("@tack.kernel\ndef k(a, n=1):\n    m = n\n")
    base = tack.zeros((4, 4))
    frozen = tack.array_from_ptr(base.pointer, 3, tack.f32, owner=base, read_only=True)
    calls = [
        (tack.zeros(3),),
        (tack.zeros(3, tack.f64),),
        (tack.zeros((3, 3)),),
        (base[:, :2],),
        (base[:, ::2],),
        (base.T[1:],),
        (frozen,),
        (tack.zeros(3), 1.0),
        (tack.zeros(3), True),
        (tack.zeros(3), np.int8(1)),
        (tack.zeros(3), np.float32(1)),
        (tack.zeros(3), 2**63),
        (tack.zeros(3), None),
    ]
    assert counted(device, k, *calls) == [1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1]
    assert counted(device, k, *calls) == [0] * len(calls)


def test_the_text_decides_and_not_the_place(device: tack.Device) -> None:
    text = "def f(x):\n    return x + 17\n"
    one = define("@tack.func\n" + text + FILL)
    assert counted(device, one["k"], (tack.zeros(3, tack.i16),)) == [1]
    before = device.compiled
    two = define("# another place\n\n\n@tack.func\n" + text + FILL)
    two["k"](tack.zeros(3, tack.i16))
    assert device.compiled == before, "found by its key"


def test_options_make_another_kernel(device: tack.Device) -> None:
    text = "@tack.kernel({})\ndef k(a, b):\n    for i in range(len(a)):\n        a[i] = a[i] * b[i] + 0.123456\n"
    kernels = [kernel(text.format(o)) for o in ("", "exact=True", "fast_math=True", "simd=1", "block=128")]
    assert sum(sum(counted(device, k, (tack.zeros(3), tack.zeros(3)))) for k in kernels) == 5


def test_what_is_refused_leaves_arrays_unchanged_and_everything_usable(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(a, b, n):
        for i in range(len(a)):
            a[i] = 1
        for i in range(len(b)):
            b[i] = n
    """)
    a, b = tack.zeros(3, tack.i32), tack.zeros(3, tack.i32)
    frozen = np.zeros(3, np.int32)
    frozen.flags.writeable = False
    for bad, kind in (
        ((a, b, 2**40), OverflowError),
        ((a, b, 0.5), TypeError),
        ((a, frozen, 1), ValueError),
        ((a, 3, 1), TypeError),
        ((a, b), TypeError),
    ):
        with pytest.raises(kind):
            k(*bad)
        assert a.tolist() == [0, 0, 0]
    k(a, b, 7)
    assert a.tolist() == [1, 1, 1] and b.tolist() == [7, 7, 7]


def test_bounds_that_overflow_are_refused_before_the_first_loop(device: tack.Device) -> None:
    k = kernel(
        "@tack.kernel\ndef k(a, n):\n    for i in range(len(a)):\n        a[i] = 1\n    for i, j in tack.ndrange(n, n):\n        a[0] = 2\n"
    )
    a = tack.zeros(3)
    with pytest.raises(ValueError, match=r"Kernel 'k': .* iterations; the limit on .* is .*\. Split the work across several calls\."):
        k(a, 2**40)
    assert a.tolist() == [0, 0, 0]


def test_empty_launches_do_nothing(device: tack.Device) -> None:
    k = kernel(
        """
        @tack.kernel
        def k(a, n):
            for i in range(n):
                a[i] = 1
            for i, j in tack.ndrange(n, 5):
                a[j] = 2
            return n
        """
    )
    a = tack.zeros(0)
    assert [k(a, n) for n in (0, -1, -(2**63))] == [0, -1, -(2**63)]


def test_the_device_of_a_call(device: tack.Device) -> None:
    k = kernel("@tack.kernel\ndef k(a):\n    for i in range(len(a)):\n        a[i] += 1\n")
    a = tack.ones(4, device=device)
    k(a)
    assert a.device == device and a.tolist() == [2, 2, 2, 2]
