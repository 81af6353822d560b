"""The real JAX: its arrays in kernels and as arrays, which stay as they are, and arrays as JAX's."""

from __future__ import annotations

import heavy
import numpy as np
import pytest

import tack

heavy.require("jax")

import jax.numpy as jnp  # noqa: E402


@tack.kernel
def add(out, x, y):
    for i in range(x.shape[0]):
        out[i] = x[i] + y[i]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.float32], ids=lambda t: t.__name__)
def test_dlpack_both_ways(dtype: type) -> None:
    theirs = jnp.arange(6, dtype=dtype).reshape(2, 3)
    ours = tack.from_dlpack(theirs)
    assert ours.pointer == theirs.unsafe_buffer_pointer() and ours.numpy().dtype == dtype
    np.testing.assert_array_equal(ours.numpy(), np.asarray(theirs))
    np.testing.assert_array_equal(tack.array(theirs.T).numpy(), np.asarray(theirs).T)
    back = jnp.from_dlpack(tack.array(np.arange(6, dtype=dtype), device="cpu"))
    assert back.dtype == dtype and back.tolist() == list(range(6))
    assert (back + 1).tolist() == [1, 2, 3, 4, 5, 6]


def test_kernels_read_jax_arrays_and_do_not_write_them() -> None:
    x = jnp.arange(4, dtype=jnp.float32)
    out = np.zeros(4, np.float32)
    for _ in range(2):
        add(out, x, x)
        with pytest.raises(ValueError, match=r"Kernel 'add'.*read-only"):
            add(x, out, out)
    assert out.tolist() == [0.0, 2.0, 4.0, 6.0] and x.tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="read-only"):
        tack.asarray(x)[0] = 5
    copied = tack.array(x)
    copied[0] = 5
    assert x[0] == 0.0


def test_types_that_tack_has_not_are_refused() -> None:
    for dtype in (jnp.bfloat16, jnp.float16, jnp.complex64):
        with pytest.raises((TypeError, BufferError), match="(?s)Kernel 'add': parameter 'x'"):
            add(np.zeros(2, np.float32), jnp.zeros(2, dtype), np.zeros(2, np.float32))
