"""Every kernel of this suite, printed as MSL and read by clang as C++ for OpenCL: names, types and address spaces are right."""

from __future__ import annotations

import pytest
import recorder

from unit import msl_check

pytestmark = pytest.mark.skipif(msl_check.compiler() is None, reason="needs clang++ 14 or newer (Debian: clang-19)")


@pytest.mark.parametrize("debug", [False, True], ids=["plain", "checked"])
def test_the_programs_are_right(debug: bool) -> None:
    texts = recorder.of_programs("metal", debug=debug)
    assert len(texts) > 10
    assert msl_check.refused(texts) == []


def test_every_kernel_of_the_suite_is_right() -> None:
    assert msl_check.refused(recorder.texts("metal")) == []


KERNEL = "kernel void tack_k(device int* x [[buffer(0)]], uint tack_thread [[thread_position_in_threadgroup]]) {{ {} }}"


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ("threadgroup int y[4]; device int* z = y; x[0] = z[0];", "cannot initialize a variable of type '__global int"),
        ("thread int y = 1; device int* z = &y; x[0] = z[0];", "cannot initialize a variable of type '__global int"),
        ("x[0] = metal::as_type<int>(1l);", "sizes differ"),
        ("x[0] = popcount(y);", "undeclared"),
        ("metal::atomic_fetch_add_explicit(x, 1, metal::memory_order_relaxed);", "no matching function"),
    ],
)
def test_what_is_wrong_is_found(statements: str, message: str) -> None:
    right = KERNEL.format("x[0] = 1;")
    (said,) = msl_check.refused([right, KERNEL.format(statements)])
    assert message in said
    assert msl_check.refused([right, right]) == []
