"""What a fresh process pays: ``start.py WHAT PEER``. WHAT: "numpy" (import it), "first" (import the peer, define and call a cached or
new kernel), "ten" (compile ten distinct 40-line kernels). Prints the seconds that the ten kernels took; run.py times whole processes.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
import time


def body(k: int, constant: str, to_float: str, mutable: str) -> list[str]:
    """About 40 lines of straight arithmetic, an inner loop and two branches: kernel number ``k``, in a peer's spelling of constants."""
    r = random.Random(1000 + k)

    def c(low: float, high: float, digits: int = 3) -> str:
        return constant.format(round(r.uniform(low, high), digits))

    names = ["x0", "y0", "z0"]
    lines = ["x0 = x[i]", "y0 = y[i]", f"z0 = x[i] * {c(0.1, 2)} + y[i]"]
    for q in range(14):
        a, b, d = (r.choice(names) for _ in range(3))
        lines.append(f"t{q} = {a} {r.choice('+-*')} {b} * {c(0.1, 2)} + {d}")
        names.append(f"t{q}")
    lines += [f"acc = {mutable.format(constant.format(0.0))}", f"for j in range({4 + k}):"]
    for q in range(6):
        a, b = r.choice(names), r.choice(names)
        lines += [f"    u{q} = {a} * {c(0.1, 2)} + {to_float.format('j')} * {b}", f"    acc = acc + u{q} * {c(0.01, 0.1, 4)}"]
    lines += [f"    if acc > {constant.format(100.0)}:", f"        acc = acc * {constant.format(0.5)}"]
    a, b = r.choice(names), r.choice(names)
    lines += [f"if {a} > {b}:", f"    acc = acc + {a} * {a}", "else:", f"    acc = acc - {b} * {b}"]
    return [*lines, f"o[i] = acc * f + {r.choice(names)}"]


def ten(peer: str) -> str:
    """The source of a module that defines K, a list of ten kernels."""
    head, decorator, signature, spelling = {
        "tack_": ("import tack", "@tack.kernel", "o, x, y, f", ("{}", "tack.f32({})", "{}")),
        "numba_": (
            "import numpy as np\nfrom numba import njit\nf4 = np.float32",
            "@njit(error_model='numpy')",
            "o, x, y, f",
            ("f4({})", "f4({})", "{}"),
        ),
        "warp_": (
            "import warp as wp\nA = wp.array(dtype=wp.float32)",
            "@wp.kernel",
            "o: A, x: A, y: A, f: wp.float32",
            ("{}", "float({})", "float({})"),
        ),
        "quadrants_": (
            "import quadrants as qd\nF = qd.types.ndarray(dtype=qd.f32, ndim=1)",
            "@qd.kernel",
            "o: F, x: F, y: F, f: qd.f32",
            ("{}", "qd.cast({}, qd.f32)", "{}"),
        ),
    }[peer]
    lines = [head, "K = []"]
    for k in range(10):
        loop, indent = ("    i = wp.tid()", "    ") if peer == "warp_" else ("    for i in range(o.shape[0]):", "        ")
        lines += [decorator, f"def k{k}({signature}):", loop, *(indent + s for s in body(k, *spelling)), f"K.append(k{k})"]
    return "\n".join(lines) + "\n"


def main() -> None:
    what, peer = sys.argv[1:3]
    if what == "numpy":
        import numpy  # noqa: F401

        return
    import numpy as np

    o, x, y = np.zeros(1024, "f4"), np.ones(1024, "f4"), np.ones(1024, "f4")
    if peer == "quadrants_":
        import quadrants as qd

        qd.init(arch=qd.cpu, log_level="error", offline_cache=False)
    elif peer == "warp_":
        import warp as wp

        wp.config.log_level = 30
        wp.config.enable_backward = False
        wp.init()
    elif peer == "tack_":
        import tack

        o, x, y = tack.array(o), tack.array(x), tack.array(y)
    elif peer == "numba_":
        import numba  # noqa: F401
    folder = os.environ["BENCH_FOLDER"]
    path = os.path.join(folder, f"{what}_{peer}.py")
    spec = importlib.util.spec_from_file_location(f"{what}_{peer}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    start = time.perf_counter()
    spec.loader.exec_module(module)
    for kernel in module.K:
        if peer == "warp_":
            wp.launch(kernel, dim=1024, inputs=[o, x, y, 1.5], device="cpu")
        else:
            kernel(o, x, y, np.float32(1.5) if peer == "numba_" else 1.5)
    print(time.perf_counter() - start)


FIRST_TACK = (
    "import tack\n@tack.kernel\ndef axpy(o, x, y, f):\n    for i in range(o.shape[0]):\n        o[i] = x[i] * f + y[i]\nK = [axpy]\n"
)

if __name__ == "__main__":
    main()
