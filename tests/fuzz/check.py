"""Runs programs on the CPU device in every way, in the interpreter and as plain Python, and compares the bits of all that they store;
or on another device, against the interpreter and the CPU device."""

from __future__ import annotations

import ast
import itertools
import linecache
import random
import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import host  # noqa: E402
from generate import CAPTURED, LENGTH, SCALARS, TABLE, UINT  # noqa: E402
from host import FLOATS, INTS, STRONG, Rules, numpy_name  # noqa: E402
from statements import ROWS, is_fused, is_wide  # noqa: E402
from tree import Program  # noqa: E402

import tack  # noqa: E402
from tack import _runtime  # noqa: E402
from tack.codegen import build_source  # noqa: E402
from tack.compiler import _infer, target_of  # noqa: E402
from tack.errors import CompileError  # noqa: E402
from tack.ir import interpret  # noqa: E402
from tack.ir.fma import form_fma  # noqa: E402
from tack.kernels import compile_for_cpu, kernel_function  # noqa: E402
from tack.mathlink import math as math_library  # noqa: E402

FEW = 18  # iterations that the slow oracles run
MANY = 700  # iterations that the variants of the CPU device run
LEVELS = (0, 1, 2, 3)
WIDTHS = (0, 1, 2, 4, 8)  # 0: the compiler chooses
VALUES: dict[str, Any] = {UINT: 2**63 + 12345, "p": 37, "q": 0.3, "b": True, "s": np.int16(-3), "h": np.float32(1.7)}
GLOBALS: dict[str, Any] = {
    "G_INT": 7,
    "G_FLOAT": 0.25,
    "G_I16": np.int16(-300),
    "G_F32": np.float32(0.1),
    "T_INT": (4, 0, 9),
    "T_FLOAT": (0.5, 3.0, 0.1),
}
_counter = itertools.count()


# --- texts ------------------------------------------------------------------------------------------------------------------------


def parameters(wide: bool, only: str | None = None) -> list[str]:
    """The parameters of a kernel; with a text ``only`` those that it uses (and one of f64 in a ``wide`` one, which decides weak floats)."""
    strong = STRONG if wide else [t for t in STRONG if t != "f64"]
    names = ["lo", "hi", UINT, *SCALARS, *(f"{kind}_{t}" for kind in "aotz" for t in strong)]
    if only is None:
        return names
    used = {node.id for node in ast.walk(ast.parse(only)) if isinstance(node, ast.Name)}
    return [n for n in names if n in used or n in ("lo", "hi") or (wide and n == "a_f64")]


def text_of(programs: Sequence[Program], wide: bool, *, on_host: bool = False, names: list[str] | None = None) -> str:
    functions = "\n\n".join(f.text(on_host) for p in programs for f in p.functions)
    bodies = "\n".join(p.text(on_host) for p in programs)
    head = "" if on_host else "@tack.kernel\n" if is_fused(programs[0].seed) else "@tack.kernel(exact=True)\n"
    result = next((f"    return {p.result}\n" for p in reversed(programs) if p.result), "")
    return f"{functions}\n\n{head}def k({', '.join(names or parameters(wide))}):\n{bodies}\n{result}".lstrip("\n")


def load(text: str, space: dict[str, Any]) -> Any:
    """``k`` of a text, its source there to be found."""
    name = f"<fuzz {next(_counter)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        exec(compile(text, name, "exec"), space)
    return space["k"]


# --- data -------------------------------------------------------------------------------------------------------------------------


def inputs(t: str, n: int) -> Any:
    """Numbers of a type: edges, small ones, random bits; the same in every process."""
    r = random.Random(f"{t} {n}")
    if t in INTS:
        low, high = host.LOW[t], host.HIGH[t]
        edges = [low, low + 1, high, high - 1, 0, 1, 2, 3, 7, high // 2, host.wrapped(-1, t), host.wrapped(-2, t), host.wrapped(-7, t)]
        values = [r.choice(edges) if r.random() < 0.3 else r.randint(0, 9) if r.random() < 0.5 else r.randint(low, high) for _ in range(n)]
        return np.array(values, numpy_name(t))
    top = np.finfo(numpy_name(t))
    edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        np.inf,
        -np.inf,
        np.nan,
        float(top.max),
        float(top.smallest_subnormal),
        float(top.tiny),
        1.5,
        2.5,
        1e9,
        -3e9,
    ]
    edges += [2.0**31, 2.0**32, -(2.0**31), 2.0**63, -(2.0**63), 2.0**64, 255.0, -129.0, 32767.5]
    values = [r.choice(edges) if r.random() < 0.3 else r.randint(-9, 9) if r.random() < 0.3 else r.uniform(-50, 50) for _ in range(n)]
    return np.array(values, numpy_name(t))


def arguments(names: list[str], rows: int, lo: int, hi: int) -> dict[str, Any]:
    """The arguments of one run. Outputs start with a pattern, so that what nobody stores is seen to stay."""
    made: dict[str, Any] = {"lo": lo, "hi": hi, **VALUES}
    for name in names:
        kind, _, t = name.partition("_")
        if not t:
            continue
        if kind == "a":
            made[name] = inputs(t, LENGTH)
        else:
            shape = {"o": (rows, MANY), "t": (rows, TABLE), "z": (rows,)}[kind]
            start = np.arange(np.prod(shape)).reshape(shape) % 5 + 1
            made[name] = start.astype(numpy_name(t))
    return {n: made[n] for n in names}


def results(args: dict[str, Any], returned: Any = None) -> dict[str, Any]:
    """What a run stored, by the array's name, and what it returned, as "return"."""
    found = {n: a for n, a in args.items() if n[0] in "otz" and isinstance(a, np.ndarray)}
    value = host.raw(returned)
    found["return"] = np.array([float(value)]) if isinstance(value, (float, np.floating)) else np.array([value], object)
    return found


def pattern(a: Any) -> Any:
    """The bits, every NaN being the same."""
    if a.dtype.kind != "f":
        return a
    bits = a.view(f"u{a.itemsize}").copy()
    bits[np.isnan(a)] = 0x7FC00000 if a.itemsize == 4 else 0x7FF8000000000000
    return bits


def differing(a: dict[str, Any], b: dict[str, Any], *, skip: str = "") -> dict[str, list[tuple[int, ...]]]:
    """Where two runs' results differ: name -> indices."""
    found = {}
    for name in a:
        if name[0] not in skip:
            where = np.argwhere(pattern(a[name]) != pattern(b[name]))
            if len(where):
                found[name] = [tuple(int(k) for k in w) for w in where]
    return found


# --- ways to run ------------------------------------------------------------------------------------------------------------------


class Level:
    """LLVM's level for what is compiled in a ``with`` block; the runtime itself always asks for one. ``wide``: launches run the copy of
    the code that takes integers in 64 bits, whatever their numbers are."""

    value: int | None = None
    wide = False

    def __init__(self, value: int, wide: bool = False) -> None:
        self.wanted = value, wide

    def __enter__(self) -> None:
        Level.value, Level.wide = self.wanted

    def __exit__(self, *exc: object) -> None:
        Level.value, Level.wide = None, False

    @staticmethod
    def compile(name: str, text: str, arch: str, optimize: int, output: str) -> bytes:
        if Level.wide:
            text = re.sub(r"br i1 %[\w.]+, label %narrow, label %wide", "br label %wide", text)
        return compile_for_cpu(name, text, arch, optimize if Level.value is None else Level.value, output)


_runtime.set_cpu_compiler(Level.compile)


@dataclass
class Way:
    """A way to run a kernel on the CPU device."""

    level: int
    width: int
    threads: int
    debug: bool = False
    wide: bool = False

    def __str__(self) -> str:
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        more = f"{', checked' if self.debug else ''}{', wide' if self.wide else ''}"
        return f"-O{self.level}, simd={self.width or 'default'}, {threads}{more}"


# Every level and width; many lanes; of a few of them checked, which must change nothing for programs that do nothing wrong, and the code
# for large launches.
ALL_WAYS = [Way(level, width, 1 + k % 2 * 3) for k, (level, width) in enumerate(itertools.product(LEVELS, WIDTHS))]
ALL_WAYS += [Way(1, 16, 4), Way(2, 16, 1), Way(2, 32, 4), Way(3, 32, 1)]
ALL_WAYS += [Way(1, 1, 1, True), Way(2, 0, 4, True), Way(3, 4, 1, True)]
ALL_WAYS += [Way(1, 4, 1, wide=True), Way(2, 0, 4, wide=True), Way(3, 16, 1, wide=True)]


class Compiled:
    """A kernel's text through the front end, ready to be run in all ways on the CPU device, or by calls on another one."""

    def __init__(self, text: str, names: list[str], rows: int, device: str | tack.Device = "cpu") -> None:
        self.names, self.rows = names, rows
        self.dispatcher = load(text, {"tack": tack, "math": __import__("math"), **GLOBALS})
        self.function = kernel_function(self.dispatcher)
        self.device = tack.device(device)
        sample = arguments(names, rows, 0, FEW)
        self.special = self.function.specialize(tuple(sample.values()), self.device)
        self.ir = _infer(self.function, self.special)

    def interpreted(self, hi: int = FEW) -> dict[str, Any]:
        args = arguments(self.names, self.rows, 0, hi)
        ir = self.ir
        if not ir.options.get("exact"):
            ir = _infer(self.function, self.special)  # another one: what is formed there is not formed again for the device
            form_fma(ir)
        return results(args, interpret.run(ir, list(args.values()), math_library=math_library))

    def kernel(self, way: Way) -> Any:
        self.ir.options.pop("simd", None)
        if way.width:
            self.ir.options["simd"] = way.width
        device = tack.device("cpu", num_threads=way.threads)
        with Level(way.level, way.wide):
            return device.build(build_source(self.ir, target_of(device, way.debug), math_library), b"")

    def run(self, kernel: Any, pieces: Iterable[tuple[int, int]]) -> dict[str, Any]:
        args = arguments(self.names, self.rows, 0, 0)
        for lo, hi in pieces:
            args["lo"], args["hi"] = lo, hi
            returned = kernel.launch(list(args.values()))
        return results(args, returned)

    def called(self, device: tack.Device, pieces: Iterable[tuple[int, int]]) -> dict[str, Any]:
        """The results of calls with arrays on a device; all are queued before one is read."""
        args = arguments(self.names, self.rows, 0, 0)
        there = {n: tack.array(a, device=device) if isinstance(a, np.ndarray) else a for n, a in args.items()}
        with device:
            for lo, hi in pieces:
                there["lo"], there["hi"] = lo, hi
                returned = self.dispatcher(*there.values())
        return results({n: there[n].numpy() if isinstance(a, np.ndarray) else a for n, a in args.items()}, returned)


def run_host(text: str, names: list[str], rows: int, wide: bool) -> dict[str, Any]:
    """The results of a host text."""
    Rules.weak_float = "f64" if wide else "f32"
    space = host.namespace()
    space.update(GLOBALS)
    for name, t in CAPTURED.items():
        if t in STRONG:
            space[name] = host.make(t, GLOBALS[name] if t in FLOATS else int(GLOBALS[name]))
    k = load(text, space)
    args = arguments(names, rows, 0, FEW)
    given = []
    for name, value in args.items():
        if isinstance(value, np.ndarray):
            given.append(host.Array(value, name[2:]))
        else:
            t = "uint" if name == UINT else SCALARS.get(name, "int")
            given.append(host.make(t, value if t in ("bool", *FLOATS) else host.cast(value, t)))
    with np.errstate(all="ignore"):
        returned = k(*given)
    return results(args, returned)


# --- comparing --------------------------------------------------------------------------------------------------------------------


@dataclass
class Difference:
    kind: str  # "compile", "host", "interpreter", "cpu", "pieces", "crash"
    message: str
    rows: frozenset[int] = frozenset()  # of the output arrays; empty where that is not known

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


def explain(name: str, where: list[tuple[int, ...]], a: dict[str, Any], b: dict[str, Any]) -> str:
    first = where[0]
    return f"{name}{list(first)} is {a[name][first]!r} and {b[name][first]!r} ({len(where)} such)"


def rows_of(found: dict[str, list[tuple[int, ...]]]) -> frozenset[int]:
    return frozenset(w[0] // ROWS * ROWS for where in found.values() for w in where)


def compared(kind: str, what: str, a: dict[str, Any], b: dict[str, Any], *, skip: str = "") -> Difference | None:
    found = differing(a, b, skip=skip)
    if not found:
        return None
    name, where = next(iter(found.items()))
    return Difference(kind, f"{what}: {explain(name, where, a, b)}", rows_of(found))


def check_texts(
    text: str, host_text: str | None, names: list[str], rows: int, wide: bool, ways: Sequence[Way], expected: dict[str, Any] | None = None
) -> Difference | None:
    """The first difference between all the ways to run a kernel, or None."""
    try:
        compiled = Compiled(text, names, rows)
    except CompileError as error:
        return Difference("compile", str(error))
    first, *others = ways
    kernel = compiled.kernel(first)
    few = compiled.run(kernel, [(0, FEW)])
    if host_text is not None:
        try:
            by_host = run_host(host_text, names, rows, wide)
        except host.Refused as refusal:
            return Difference("refused", f"by the host classes: {refusal}")
        found = compared("host", f"CPU ({first}) and plain Python", few, by_host)
        if found:
            return found
    found = compared("interpreter", f"CPU ({first}) and the interpreter", few, compiled.interpreted())
    if found:
        return found
    many = compiled.run(kernel, [(0, MANY)])
    cuts = [0, 1, 5, 16, 49, 200, MANY]
    found = compared("pieces", "one launch and pieces", many, compiled.run(kernel, itertools.pairwise(cuts)), skip="tzr")
    if found:
        return found
    for way in others:
        found = compared("cpu", f"{first} and {way}", many, compiled.run(compiled.kernel(way), [(0, MANY)]))
        if found:
            return found
    return None


def check(programs: Sequence[Program], ways: Sequence[Way]) -> Difference | None:
    """The first difference of programs of one width that are compiled together."""
    wide = is_wide(programs[0].seed)
    names = parameters(wide)
    rows = max(p.row for p in programs) + ROWS
    host_text = None if is_fused(programs[0].seed) else text_of(programs, wide, on_host=True)
    return check_texts(text_of(programs, wide), host_text, names, rows, wide, ways)


def check_device(programs: Sequence[Program], device: tack.Device) -> Difference | None:
    """The first difference of programs of one width, compiled together for a device: to the interpreter, the CPU device, and in pieces."""
    wide = is_wide(programs[0].seed)
    names, rows = parameters(wide), max(p.row for p in programs) + ROWS
    try:
        compiled = Compiled(text_of(programs, wide), names, rows, device)
        few = compiled.called(device, [(0, FEW)])
    except CompileError as error:
        return Difference("compile", str(error))
    found = compared("interpreter", f"{device} and the interpreter", few, compiled.interpreted())
    if found:
        return found
    many = compiled.called(device, [(0, MANY)])
    cuts = [0, 1, 5, 16, 49, 200, MANY]
    found = compared("pieces", "one launch and pieces", many, compiled.called(device, itertools.pairwise(cuts)), skip="tzr")
    return found or compared("cpu", f"{device} and the CPU", many, compiled.called(tack.device("cpu"), [(0, MANY)]))


def verify(text: str, ways: Sequence[Way] = ALL_WAYS, **expected: Any) -> None:
    """Asserts that a kernel's first ``FEW`` iterations store the given values and nothing else: run in all ways, and interpreted.

    ``o_*``: rows of ``FEW`` columns; ``t_*``: one row; ``z_*``: one element. Runs of ``MANY`` iterations must agree with each other.
    """
    (kernel,) = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == "k")
    names = [a.arg for a in kernel.args.args]
    compiled = Compiled(text, names, ROWS)
    wanted = results(arguments(names, ROWS, 0, 0), expected.pop("returned", None))
    for name, values in expected.items():
        if name[0] == "o":
            wanted[name][:, :FEW] = np.array(values, wanted[name].dtype)
        else:
            wanted[name][0] = np.array(values, wanted[name].dtype)
    found = compared("interpreter", "expected and the interpreter", wanted, compiled.interpreted())
    assert found is None, str(found)
    first: dict[str, Any] | None = None
    for way in ways:
        built = compiled.kernel(way)
        found = compared("cpu", f"expected and {way}", wanted, compiled.run(built, [(0, FEW)]))
        assert found is None, str(found)
        many = compiled.run(built, [(0, MANY)])
        first = many if first is None else first
        found = compared("cpu", f"{ways[0]} and {way}", first, many)
        assert found is None, str(found)
