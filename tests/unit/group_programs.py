"""Kernels that use groups, and a device that has them: what the unit tests of groups share."""

from __future__ import annotations

import dataclasses
import textwrap
from typing import Any

from frontend_env import CPU, DictEnvironment, source

from tack import types
from tack.frontend.infer import infer
from tack.frontend.meaning import ArgType, ArrayArg
from tack.frontend.parse import parse
from tack.ir.nodes import Kernel
from tack.ir.verify import verify

GPU = dataclasses.replace(CPU, backend="cuda", title="CUDA", supports_workgroups=True, max_group=1024, shared_bytes=48 << 10)
X2 = ArrayArg(types.f32, 2)
I64 = ArrayArg(types.i64, 1)


def grouped(text: str, *args: ArgType, block: int | None = None, target: Any = GPU, **names: Any) -> Kernel:
    """The kernel ``k`` in ``text``, for a device with groups."""
    made = infer(parse(source(text)), args, DictEnvironment(names), target, {} if block is None else {"block": block})
    verify(made)
    return made


def loop(body: str, head: str = "out, x") -> str:
    return f"def k({head}):\n    for i in range(len(x)):\n{textwrap.indent(textwrap.dedent(body).strip(), ' ' * 8)}\n"


REVERSE = loop("""
    s = tack.shared_like(x, tack.block_dim())
    t = tack.thread_id()
    s[t] = x[i]
    tack.barrier()
    last = min(tack.block_dim(), len(x) - tack.block_id() * tack.block_dim()) - 1
    out[i] = s[last - t]
""")
SCAN = loop("""
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
""")
HISTOGRAM = loop(
    """
    s = tack.shared(tack.i32, 16)
    t = tack.thread_id()
    if t < 16:
        s[t] = 0
    tack.barrier()
    tack.atomic_add(s, x[i] % 16, 1)
    tack.barrier()
    if t < 16:
        tack.atomic_add(bins, t, s[t])
    """,
    "bins, x",
)
TRANSPOSE = """
def k(out, x):
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
"""

# Bodies whose collectives all threads reach; ``early`` is EARLY.
UNIFORM = [
    "tack.barrier()",
    "if n > 3:\n    tack.barrier()",
    "if len(x) > 3 and tack.block_id() < 7:\n    tack.barrier()",
    "for j in range(n):\n    if j == 5:\n        break\n    tack.barrier()\nelse:\n    tack.barrier()",
    "j = n\nwhile j > 0:\n    j //= 2\n    tack.barrier()",
    "while tack.block_max(x[i]) > n:\n    x[i] -= 1\n    tack.barrier()",
    "if tack.block_sum(x[i]) > 0:\n    tack.barrier()",
    "for j in range(3):\n    tack.barrier()\n    if x[i] > j:\n        continue\n    x[i] += 1",
    "tack.barrier()\nif x[i] > 0:\n    continue\nx[i] = 1",
    "a = 1\nif n > 3:\n    a = 2\nelse:\n    a = tack.block_id()\nif a == 2:\n    tack.barrier()",
    "if x[i] > 0:\n    x[i] = 1\ntack.barrier()",
    "for j in range(int(x[i])):\n    if j > 3:\n        break\ntack.barrier()",
    "v = early(x[i])\ntack.barrier()\nx[i] = v",
    "v = early(n)\nif v > 1:\n    tack.barrier()",
    "w = x[i] if n else 1.0\ntack.barrier()\nx[i] = w",
]
EARLY = "def early(v):\n    for j in range(9):\n        if v > j:\n            return j\n    return 0.0\n"
