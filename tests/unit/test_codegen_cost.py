"""How many lanes the model of cost chooses for kernels that tell something of it, on each level of x86."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tack
from tack.codegen import build_source
from tack.compiler import _infer, target_of
from tack.kernels import kernel_function
from tack.mathlink import math as math_library

LEVELS = {"x86-64-v2": 128, "x86-64-v3": 256, "x86-64-v4": 512}
I32, I64, U64, F32 = (np.zeros(100, t) for t in ("i4", "i8", "u8", "f4"))


def source(kernel: Any, arch: str, *args: Any) -> str:
    function = kernel_function(kernel)
    device = tack.device("cpu")
    target = replace(target_of(device, False), arch=arch, vector_bits=LEVELS[arch], simd=0)
    return build_source(_infer(function, function.specialize(args, device)), target, math_library).text


def lanes(kernel: Any, arch: str, *args: Any) -> int:
    found = re.search(r"^; (\d+) iteration", source(kernel, arch, *args), re.M)
    assert found is not None
    return int(found[1])


@tack.kernel
def collatz(o):
    for i in range(o.shape[0]):
        n = i + 1
        k = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            k += 1
        o[i] = k


@tack.kernel
def fixed_point(o, x):
    for i in range(o.shape[0]):
        s = 1 << 16
        for k in range(8):
            s = ((s * x[i]) >> 16) + (k << 12)
        o[i] = s


@tack.kernel
def splitmix(o, x):
    for i in range(o.shape[0]):
        z = (x[i] ^ (x[i] >> 30)) * 0xBF58476D1CE4E5B9
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB
        o[i] = z ^ (z >> 31)


@tack.kernel
def shifted(o, x, k):
    for i in range(o.shape[0]):
        o[i] = (x[i] >> k[i]) ^ (x[i] << (k[i] // 2))


@tack.kernel
def as_floats(o, x):
    for i in range(o.shape[0]):
        o[i] = x[i] * 0.5


@tack.kernel
def strings(o, a, b):
    for i in range(o.shape[0]):
        k = 0
        while a[i, k] == b[i, k] and a[i, k] != 0:
            k += 1
        o[i] = k


@tack.kernel
def chased(o, after):
    for i in range(o.shape[0]):
        p = i
        for _ in range(16):
            p = after[p]
        o[i] = p


@tack.kernel
def bisection(o, x):
    for i in range(o.shape[0]):
        low = 0.0
        high = x[i]
        while high - low > 1e-5:
            middle = 0.5 * (low + high)
            if middle * middle < x[i]:
                low = middle
            else:
                high = middle
        o[i] = low


@tack.kernel
def bits_counted(o, x):
    for i in range(o.shape[0]):
        v = x[i]
        k = 0
        while v != 0:
            v &= v - 1
            k += 1
        o[i] = k


@tack.kernel
def sines(o, x):
    for i in range(o.shape[0]):
        o[i] = tack.sin(x[i])


TEXTS = np.zeros((100, 9), "u1")


@pytest.mark.parametrize(
    ("kernel", "args", "plain"),
    [
        (fixed_point, (I64, I64), ["x86-64-v2", "x86-64-v3"]),  # products and signed shifts of 64 bits are many instructions
        (splitmix, (U64, U64), ["x86-64-v2"]),
        (collatz, (I32,), ["x86-64-v2", "x86-64-v3"]),  # as are masks for values of other sizes than what is compared
        (shifted, (I64, I64, I64), ["x86-64-v2"]),  # no shifts by different counts
        (shifted, (I32, I32, I32), []),
        (as_floats, (F32.astype("f8"), I64), ["x86-64-v2", "x86-64-v3"]),  # converted one by one
        (strings, (I32, TEXTS, TEXTS), [*LEVELS]),  # plain code predicts where each ends
        (chased, (I32, I32), [*LEVELS]),  # nothing but gathers
        (bits_counted, (I32, U64), [*LEVELS]),  # LLVM makes one instruction of the loop
        (bisection, (F32, F32), []),  # plain code waits for each step, lanes wait together
        (sines, (F32, F32), []),  # what reduces large arguments is hardly ever run
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_plain_code_where_lanes_would_lose(kernel: Any, args: tuple[Any, ...], plain: list[str]) -> None:
    assert [arch for arch in LEVELS if lanes(kernel, arch, *args) == 1] == plain


def test_what_lanes_would_have_done_is_not_done_to_plain_code() -> None:
    """Where the model chooses plain code, that is the code of simd=1."""

    @tack.kernel(simd=1)
    def asked(o, a, b):
        for i in range(o.shape[0]):
            k = 0
            while a[i, k] == b[i, k] and a[i, k] != 0:
                k += 1
            o[i] = k

    chosen, wanted = (source(k, "x86-64-v3", I32, TEXTS, TEXTS).partition("define ")[2] for k in (strings, asked))
    assert chosen.replace("strings", "asked") == wanted


def test_a_value_takes_more_registers_where_each_round_waits_for_the_last() -> None:
    assert lanes(bisection, "x86-64-v4", F32, F32) > 16
    assert lanes(shifted, "x86-64-v4", I32, I32, I32) == 16
