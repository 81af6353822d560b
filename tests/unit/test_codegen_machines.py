"""The same lanes on other machines: x86-64 levels below the host's, and AArch64 under qemu-user."""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from codegen_harness import Build, Program, host_arch, target
from test_codegen_narrow import escape

from tack import mathlink
from tack import types as T
from tack.codegen import build_source
from tack.ir import nodes as ir
from tack.runtime.llvm_compiler import compile_ir

LEVELS = [("x86-64-v3", 256), ("x86-64-v4", 512)]  # those below call libm for fma, which this harness cannot link: test_cpu_levels has them
NAMES = [name for name, _ in LEVELS]


def divisions() -> ir.Kernel:
    """Quotients and rests of several widths by lanes, by one divisor, and of the index."""
    build = Build("divisions")
    out, x, y = build.array("out", T.i64, 2), build.array("x", T.i32), build.array("y", T.i64)
    by = build.scalar("by", T.i64, "int")
    build.kernel.written = frozenset({out.index})
    with build.parallel((x, 0)) as (i,):
        narrow, wide = build.load(x, i), build.load(y, i)
        values = [
            build.cast(build.same("floordiv", narrow, build.cast(wide, T.i32)), T.i64),
            build.cast(build.same("mod", build.cast(narrow, T.u8), build.cast(wide, T.u8)), T.i64),
            build.same("floordiv", wide, build.cast(narrow, T.i64)),
            build.same("mod", wide, build.arg(by)),
            build.same("floordiv", i, build.arg(by)),
            build.same("mod", i, build.arg(by)),
        ]
        for k, value in enumerate(values):
            build.store(out, value, build.i(k), i)
    return build.kernel


def floats() -> ir.Kernel:
    """Extremes with NaN and zeros, conversions, mathematics, gathers, and a branch in a loop that lanes leave one by one."""
    build = Build("floats")
    out, x, at = build.array("out", T.f32, 2), build.array("x", T.f32), build.array("at", T.i32)
    build.kernel.written = frozenset({out.index})
    with build.parallel((x, 0)) as (i,):
        a, b = build.load(x, i), build.load(x, build.cast(build.load(at, i), T.i64))
        least = build.var("least", build.const(T.f32, 3.0))
        k = build.var("k", build.i(0))
        loop = build.while_()
        with build.into(loop.test):
            loop.cond = build.compare("lt", build.get(k), build.cast(build.load(at, i), T.i64))
        with build.into(loop.body):
            v = build.load(x, build.get(k))
            with build.when(build.compare("gt", v, a)):
                build.set(least, build.same("min", build.get(least), v))
            build.set(k, build.same("add", build.get(k), build.i(3)))
        whole = build.cast(build.cast(build.same("mul", a, b), T.i32), T.f32)
        rows = [build.same("min", a, b), build.same("max", a, b), build.get(least), whole]
        rows += [build.op("math", T.f32, a, attr=name) for name in ("exp", "sin", "erf", "rint")]
        for row, value in enumerate(rows):
            build.store(out, value, build.i(row), i)
    return build.kernel


def bytes_() -> ir.Kernel:
    """Neighbours in bytes, as in the Game of Life."""
    build = Build("bytes")
    out, a = build.array("out", T.u8, 2), build.array("a", T.u8, 2)
    build.kernel.written = frozenset({out.index})
    with build.parallel((a, 0), (a, 1)) as (i, j):
        rows, columns = build.shape(a, 0), build.shape(a, 1)
        total: ir.Instr | None = None
        for di, dj in ((-1, 0), (1, 0), (0, -1), (0, 1), (1, 1)):
            at = [build.same("mod", build.same("add", v, build.i(d)), n) for v, d, n in ((i, di, rows), (j, dj, columns))]
            value = build.load(a, *at)
            total = value if total is None else build.same("add", total, value)
        assert total is not None
        alive = build.compare("eq", total, build.const(T.u8, 3))
        chosen = build.op("select", T.i64, alive, build.i(1), build.i(0))
        build.store(out, build.cast(chosen, T.u8), i, j)
    return build.kernel


def rows() -> ir.Kernel:
    """Points in an array of rows: three columns in, two of four out."""
    build = Build("rows")
    out, x = build.array("out", T.f32, 2), build.array("x", T.f32, 2)
    build.kernel.written = frozenset({out.index})
    with build.parallel((x, 0)) as (i,):
        a, b, c = (build.load(x, i, build.i(k)) for k in range(3))
        build.store(out, build.same("add", build.same("mul", a, b), c), i, build.i(1))
        build.store(out, build.same("sub", c, a), i, build.i(3))
    return build.kernel


def masked() -> ir.Kernel:
    """Every third lane loads and stores, neighbours and others, of several types; the indices of the rest are wild."""
    build = Build("masked")
    out, b, x = build.array("out", T.u8, 2), build.array("b", T.u8), build.array("x", T.f32)
    build.kernel.written = frozenset({out.index})
    with build.parallel((b, 0)) as (i,):
        far = build.same("sub", i, build.i(1 << 50))
        odd = build.compare("eq", build.same("mod", i, build.i(3)), build.i(1))
        at = build.op("select", T.i64, odd, i, far)
        twice = build.same("mul", at, build.i(2))
        with build.when(odd):
            build.store(out, build.same("add", build.load(b, at), build.load(b, i)), build.i(0), i)
            build.store(out, build.cast(build.same("add", build.load(x, at), build.load(x, i)), T.u8), build.i(1), at)
            build.store(out, build.cast(build.load(x, twice), T.u8), build.i(2), i)
            build.store(out, build.cast(build.load(x, build.same("mul", i, build.i(2))), T.u8), build.i(3), i)
    return build.kernel


def inputs(name: str) -> tuple[Any, ...]:
    rng = np.random.default_rng(5)
    n = 77
    if name == "divisions":
        x = rng.integers(-(1 << 31), 1 << 31, n).astype(np.int32)
        y = rng.integers(-(1 << 63), 1 << 63, n) >> rng.integers(0, 63, n)
        x[:6], y[:6] = [-(1 << 31), 5, 0, -7, 1, -1], [-1, 0, 3, 2, -(1 << 63), -(1 << 63)]
        return np.zeros((6, n), np.int64), x, y, 13
    if name == "floats":
        x = rng.normal(0, 30, n).astype(np.float32)
        x[:8] = [np.nan, 0.0, -0.0, np.inf, -np.inf, 3e9, -3e9, 1e-40]
        return np.zeros((8, n), np.float32), x, rng.integers(0, 9, n).astype(np.int32)
    if name == "bytes":
        return np.zeros((9, 41), np.uint8), rng.integers(0, 2, (9, 41)).astype(np.uint8)
    if name == "masked":
        return np.full((4, n), 9, np.uint8), rng.integers(0, 100, n).astype(np.uint8), rng.integers(0, 100, 2 * n).astype(np.float32)
    if name == "rows":
        return np.full((n, 4), 7, np.float32), rng.normal(size=(n, 3)).astype(np.float32)
    return np.zeros(n, np.float32), np.linspace(-20, 12, n, dtype=np.float32), 50


KERNELS: dict[str, Callable[[], ir.Kernel]] = {
    "divisions": divisions,
    "floats": floats,
    "bytes": bytes_,
    "escape": escape,
    "rows": rows,
    "masked": masked,
}


def results(program: Program, name: str) -> bytes:
    args = inputs(name)
    program(*args, cuts=(0.4,))
    return bytes(args[0].tobytes())


@pytest.fixture(scope="module")
def plain() -> dict[str, bytes]:
    """What the host stores one iteration at a time. Whether a processor has fma decides bits, so it is of a level that has."""
    return {name: results(Program(make(), 1, math=mathlink.math), name) for name, make in KERNELS.items()}


@pytest.mark.parametrize("simd", [0, 1, 4, 16])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("arch", "bits"), LEVELS)
def test_lower_levels_store_the_same(plain: dict[str, bytes], arch: str, bits: int, name: str, simd: int) -> None:
    if host_arch()[0] not in NAMES[NAMES.index(arch) :]:
        pytest.skip(f"this machine does not run {arch}")
    assert results(Program(KERNELS[name](), simd, math=mathlink.math, arch=arch, vector_bits=bits), name) == plain[name]


class Emulated(Program):
    """A kernel for AArch64, run under qemu-user."""

    def __init__(self, kernel: ir.Kernel, simd: int, folder: Path) -> None:
        self.source = build_source(kernel, target(simd, arch="aarch64", vector_bits=128), mathlink.math)
        self.folder = folder
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        code = compile_ir(kernel.name, self.source.text, "aarch64", 2, "object", triple="aarch64-unknown-linux-gnu")
        (folder / "kernel.o").write_bytes(code)
        self.functions = [self._link(entry.symbol) for entry in self.source.entries]

    def _link(self, symbol: str) -> Callable[[int, int, int], None]:
        program = self.folder / symbol
        driver = Path(__file__).with_name("aarch64_driver.c")
        command = ["aarch64-linux-gnu-gcc", "-static", "-O1", f"-DENTRY={symbol}", str(driver), str(self.folder / "kernel.o")]
        subprocess.run([*command, "-lm", "-o", str(program)], check=True)

        def run(words: int, begin: int, end: int) -> None:
            entry = next(e for e in self.source.entries if e.symbol == symbol)
            values = (ctypes.c_uint64 * max(1, len(entry.params))).from_address(words)
            places = {a.ctypes.data: k for k, a in enumerate(self.memory)}
            data = struct.pack("<4q", begin, end, len(self.memory), len(entry.params))
            data += b"".join(struct.pack("<q", a.nbytes) + a.tobytes() for a in self.memory)
            for slot, value in zip(entry.params, values, strict=False):
                pointer = slot.kind in ("pointer", "scratch", "records")
                data += struct.pack("<q", places[value]) + bytes(8) if pointer else struct.pack("<qQ", -1, value)
            file = self.folder / "data"
            file.write_bytes(data)
            subprocess.run(["qemu-aarch64", str(program), str(file)], check=True)
            back, at = file.read_bytes(), 32
            for a in self.memory:
                a.view(np.uint8).reshape(-1)[:] = np.frombuffer(back, np.uint8, a.nbytes, at + 8)
                at += 8 + a.nbytes

        return run

    def __call__(self, *args: Any, cuts: tuple[float, ...] = ()) -> Any:
        self.memory = [a for a in args if isinstance(a, np.ndarray)]
        return super().__call__(*args, cuts=cuts)


@pytest.mark.parametrize("simd", [0, 1, 4, 16])
@pytest.mark.parametrize("name", KERNELS)
def test_aarch64_stores_the_same(plain: dict[str, bytes], tmp_path: Path, name: str, simd: int) -> None:
    for tool in ("aarch64-linux-gnu-gcc", "qemu-aarch64"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed (Debian: gcc-aarch64-linux-gnu, qemu-user)")
    program = Emulated(KERNELS[name](), simd, tmp_path)
    if simd == 16:
        assert "<16 x" in program.source.text
    assert results(program, name) == plain[name]
