"""How the time of a compile grows with the size of a kernel: ``python tests/bench/compile_scaling.py [--kinds a,b] [lines ...]``.

For kernels of nine kinds (straight code, loads from all over, branches, loops, calls, ...), at 100, 1,000 and 3,000 lines: milliseconds of
processor time a line for the front end (text to typed IR), for the code generator (to LLVM IR), for LLVM, and for all of it; and how that
compares with the first size. Linear growth is a last column of about 1 or less.
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
FUNC = "@tack.func\ndef step(a, b):\n    if a > b:\n        return b, a\n    return a + b, tack.sqrt(abs(b))\n"
REPEATS = 200  # lines up to which the least of three runs counts


def straight(lines: int) -> str:
    names = ["a", "b", *(f"t{n}" for n in range(14))]
    start = "".join(f"        {name} = a * {n}\n" for n, name in enumerate(names[2:], 1))
    body = (f"        {names[n % 16]} = {names[n * 7 % 16]} * {n}.5 + {names[n * 11 % 16]} - x[i]\n" for n in range(lines - 14))
    return start + "".join(body)


def gathers(lines: int) -> str:
    return "".join(f"        a = a * 1.5 + x[(i + {n}) % n] - b\n" for n in range(lines))


def branches(lines: int) -> str:
    return "".join(
        f"        if n > {n}:\n            b = b + a * {n}\n        else:\n            a = a - x[i]\n" for n in range(lines // 4)
    )


def divergent(lines: int) -> str:
    return "".join(
        f"        if a > {n}:\n            b = b + a * {n}\n        else:\n            a = a - x[i]\n" for n in range(lines // 4)
    )


def chain(lines: int) -> str:
    arms = (f"if a < {n}:\n            b = b + a * {n} + x[i]\n        el" for n in range(lines // 2))
    return "        " + "".join(arms) + "se:\n            a = a - x[i]\n"


def loops(lines: int) -> str:
    return "".join(f"        for j in range(n):\n            a += x[j] * {n}\n            b = max(a, b)\n" for n in range(lines // 3))


def nested(lines: int) -> str:
    return "".join(
        f"        for j in range(n):\n            for l in range(j):\n                a += x[l] * {n}\n            b = max(a, b)\n"
        for n in range(lines // 4)
    )


def whiles(lines: int) -> str:
    return "".join(
        f"        while a < b:\n            a = a * 2 + {n}\n            if a > 100.0:\n                break\n" for n in range(lines // 4)
    )


def functions(lines: int) -> str:
    return "".join(f"        a, b = step(a, b + {n})\n" for n in range(lines))


KINDS: dict[str, Callable[[int], str]] = {
    f.__name__: f for f in (straight, gathers, branches, divergent, chain, loops, nested, whiles, functions)
}


def kernel(name: str, lines: int) -> Any:
    text = FUNC + HEAD + KINDS[name](lines) + TAIL
    file = f"<{name}-{lines}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace: dict[str, Any] = {"tack": tack}
    exec(compile(text, file, "exec"), namespace)
    return namespace["k"]


def measured(name: str, lines: int) -> tuple[float, float, float]:
    """Milliseconds a line of front end, code generator and LLVM."""
    function = kernel_function(kernel(name, lines))
    x = np.zeros(8, np.float32)
    special = function.specialize((x, x, 3), None)
    with compiler.uncollected():
        start = time.process_time()
        typed = compiler._infer(function, special)
        inferred = time.process_time()
        source = build_source(typed, compiler.target_of(special.device), math)
        printed = time.process_time()
    compile_ir(source.name, source.text, source.arch, compiler.OPTIMIZE, "object")
    done = time.process_time()
    scale = 1e3 / lines
    return (inferred - start) * scale, (printed - inferred) * scale, (done - printed) * scale


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", type=int, nargs="*", default=[100, 1000, 3000])
    parser.add_argument("--kinds", default=",".join(KINDS))
    chosen = parser.parse_args()
    measured("functions", 4)  # the compiler and its library of functions are loaded
    print(f"{'kernel':<12}{'lines':>7}{'front end':>12}{'generator':>12}{'LLVM':>12}{'ms a line':>12}{'ratio':>8}")
    for name in chosen.kinds.split(","):
        first = 0.0
        for lines in chosen.lines:
            parts = min((measured(name, lines) for _ in range(3 if lines <= REPEATS else 1)), key=sum)
            first = first or sum(parts)
            print(
                f"{name:<12}{lines:>7}" + "".join(f"{ms:>12.3f}" for ms in (*parts, sum(parts))) + f"{sum(parts) / first:>8.2f}", flush=True
            )


if __name__ == "__main__":
    main()
