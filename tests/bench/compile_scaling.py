"""How the time of a compile grows with the size of a kernel: ``python tests/bench/compile_scaling.py [lines ...]``.

For straight code, loads from all over, branches, loops and device functions, at 100, 1,000 and 3,000 lines: milliseconds for the
front end (text to typed IR), for the code generator (to LLVM IR), for LLVM, and for all of it per line. Linear growth is a constant
last column.
"""

from __future__ import annotations

import argparse
import linecache
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tack
from tack import compiler
from tack.codegen import build_source
from tack.kernels import kernel_function
from tack.mathlink import math
from tack.runtime.llvm_compiler import compile_ir

HEAD = "@tack.kernel\ndef k(out, x, n):\n    for i in range(len(x)):\n        a, b = x[i], 1.0\n"
TAIL = "        out[i] = a + b\n"


def straight(lines: int) -> str:
    names = ["a", "b", *(f"t{n}" for n in range(14))]
    start = "".join(f"        {name} = a * {n}\n" for n, name in enumerate(names[2:], 1))
    body = (f"        {names[n % 16]} = {names[n * 7 % 16]} * {n}.5 + {names[n * 11 % 16]} - x[i]\n" for n in range(lines - 14))
    return start + "".join(body)


def gathers(lines: int) -> str:
    return "".join(f"        a = a * 1.5 + x[(i + {n}) % n] - b\n" for n in range(lines))


def branches(lines: int) -> str:
    return "".join(
        f"        if a > {n}:\n            b = b + a * {n}\n        else:\n            a = a - x[i]\n" for n in range(lines // 4)
    )


def loops(lines: int) -> str:
    return "".join(f"        for j in range(n):\n            a += x[j] * {n}\n            b = max(a, b)\n" for n in range(lines // 3))


def functions(lines: int) -> str:
    return "".join(f"        a, b = step(a, b + {n})\n" for n in range(lines))


BODIES: dict[str, Callable[[int], str]] = {f.__name__: f for f in (straight, gathers, branches, loops, functions)}
FUNC = "@tack.func\ndef step(a, b):\n    if a > b:\n        return b, a\n    return a + b, tack.sqrt(abs(b))\n"


def kernel(name: str, lines: int) -> Any:
    text = FUNC + HEAD + BODIES[name](lines) + TAIL
    file = f"<{name}-{lines}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace: dict[str, Any] = {"tack": tack}
    exec(compile(text, file, "exec"), namespace)
    return namespace["k"]


def measured(name: str, lines: int) -> tuple[float, float, float]:
    """Milliseconds of front end, code generator and LLVM."""
    function = kernel_function(kernel(name, lines))
    x = np.zeros(8, np.float32)
    start = time.perf_counter()
    special = function.specialize((x, x, 3), None)
    typed = compiler._infer(function, special)
    inferred = time.perf_counter()
    source = build_source(typed, compiler.target_of(special.device), math)
    printed = time.perf_counter()
    compile_ir(source.name, source.text, source.arch, compiler.OPTIMIZE, "object")
    done = time.perf_counter()
    return (inferred - start) * 1e3, (printed - inferred) * 1e3, (done - printed) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", type=int, nargs="*", default=[100, 1000, 3000])
    chosen = parser.parse_args().lines
    measured("functions", 4)  # the compiler and its library of functions are loaded
    print(f"{'kernel':<12}{'lines':>7}{'front end':>12}{'generator':>12}{'LLVM':>12}{'ms a line':>12}")
    for name in BODIES:
        for lines in chosen:
            parts = measured(name, lines)
            print(f"{name:<12}{lines:>7}" + "".join(f"{ms:>12.1f}" for ms in parts) + f"{sum(parts) / lines:>12.3f}", flush=True)


if __name__ == "__main__":
    main()
