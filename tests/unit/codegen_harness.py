"""Builds IR by hand and runs what the code generator makes of it: a small runtime over llvmlite and ctypes, for tests."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from tack import types as T
from tack.codegen import build_source
from tack.ir import nodes as ir
from tack.ir.records import filled
from tack.ir.source import KernelSource
from tack.ir.target import Target
from tack.runtime.llvm_compiler import compile_ir as compile_llvm
from tack.types import DType, Layout

ALL = frozenset(T.ARRAY_DTYPES)
NUMPY = {t.name: np.dtype(f"{ {'i': 'int', 'u': 'uint', 'f': 'float'}[t.code] }{t.bits}") for t in T.ARRAY_DTYPES}
NUMPY["bool"] = np.dtype(bool)


def host_arch() -> tuple[str, int]:
    """The CPU level to compile for, and its vector width."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f") and features.get("avx512bw") and features.get("avx512vl") and features.get("avx512dq"):
        return "x86-64-v4", 512
    if features.get("avx2"):
        return "x86-64-v3", 256
    return ("x86-64" if llvm.get_default_triple().startswith("x86_64") else llvm.get_host_cpu_name()), 128


def target(simd: int = 0, **changes: Any) -> Target:
    arch, bits = host_arch()
    fields: dict[str, Any] = {
        "backend": "cpu",
        "title": "CPU",
        "arch": arch,
        "array_dtypes": ALL,
        "atomic_dtypes": ALL,
        "supports_f64": True,
    }
    fields |= {"supports_workgroups": False, "supports_images": False, "vector_bits": bits, "simd": simd}
    return Target(**(fields | changes))


def no_math(name: str, dtype: DType) -> ir.Function:
    raise KeyError(name)


class Build:
    """Appends nodes to the innermost open block."""

    def __init__(self, name: str = "kernel", **options: Any) -> None:
        self.kernel = ir.Kernel(name, [], [], options=options)
        self.stack: list[ir.Block] = []

    # ---- parameters

    def array(self, name: str, dtype: DType, rank: int = 1, layout: Layout = Layout.CONTIGUOUS) -> ir.ArrayParam:
        param = ir.ArrayParam(len(self.kernel.params), name, dtype, rank, layout)
        self.kernel.params.append(param)
        return param

    def scalar(self, name: str, dtype: DType, kind: str = "strong") -> ir.ScalarParam:
        param = ir.ScalarParam(len(self.kernel.params), name, kind, dtype)
        self.kernel.params.append(param)
        return param

    # ---- structure

    @contextmanager
    def _open(self, block: ir.Block) -> Iterator[None]:
        self.stack.append(block)
        yield
        self.stack.pop()

    def _node(self, node: Any) -> Any:
        self.stack[-1].body.append(node)
        return node

    @contextmanager
    def parallel(
        self, *extents: Any, start: Any = None, step: Any = None, names: str = "ijkl", items: Any = None
    ) -> Iterator[list[ir.Instr]]:
        """Extents: ints, (array, dim), or ir.Extent. Gives the indices."""
        stop = [self.extent(e) for e in extents]
        first = [self.extent(e) for e in (start or [0] * len(stop))]
        by = [self.extent(e) for e in (step or [1] * len(stop))]
        indices = [ir.Var(names[d], T.i64) for d in range(len(stop))]
        item = ir.Parallel(indices, first, stop, by, ir.Block())
        self.last = item
        (self.kernel.items if items is None else items).append(item)
        with self._open(item.body):
            yield [self.get(v) for v in indices]

    @contextmanager
    def segment(self, items: Any = None) -> Iterator[None]:
        item = ir.Segment(ir.Block())
        (self.kernel.items if items is None else items).append(item)
        with self._open(item.body):
            yield

    @staticmethod
    def extent(value: Any) -> ir.Extent:
        if isinstance(value, ir.Extent):
            return value
        if isinstance(value, tuple):
            return ir.Extent((("shape", value[0].index, value[1], 0),))
        if isinstance(value, ir.ScalarParam):
            return ir.Extent((("scalar", value.index, 0, 0),))
        return ir.Extent.constant(value)

    @contextmanager
    def when(self, cond: ir.Instr) -> Iterator[ir.If]:
        node = self._node(ir.If(cond, ir.Block(), ir.Block()))
        with self._open(node.then):
            yield node

    @contextmanager
    def into(self, block: ir.Block) -> Iterator[None]:
        with self._open(block):
            yield

    @contextmanager
    def loop(
        self, stop: ir.Instr, start: ir.Instr | None = None, step: ir.Instr | None = None, name: str = "k"
    ) -> Iterator[tuple[ir.For, ir.Instr]]:
        start = start if start is not None else self.const(T.i64, 0)
        step = step if step is not None else self.const(T.i64, 1)
        node = self._node(ir.For(ir.Var(name, T.i64), start, stop, step, ir.Block(), ir.Block()))
        with self._open(node.body):
            yield node, self.get(node.var)

    @contextmanager
    def scope(self) -> Iterator[ir.Scope]:
        node = self._node(ir.Scope(ir.Block(), "f"))
        with self._open(node.body):
            yield node

    def while_(self) -> ir.While:
        """Fill ``test`` and set ``cond``, then ``body``."""
        node = ir.While(ir.Block(), ir.Instr("const", T.BOOL, (), True), ir.Block(), ir.Block())
        return self._node(node)  # type: ignore[no-any-return]

    def leave(self, scope: ir.Scope) -> None:
        self._node(ir.Leave(scope))

    def break_(self) -> None:
        self._node(ir.Break())

    def continue_(self) -> None:
        self._node(ir.Continue())

    # ---- instructions

    def op(self, op: str, dtype: DType | None, *args: ir.Instr, attr: Any = None) -> ir.Instr:
        return self._node(ir.Instr(op, dtype, args, attr))  # type: ignore[no-any-return]

    def const(self, dtype: DType, value: Any) -> ir.Instr:
        return self.op("const", dtype, attr=value)

    def i(self, value: int) -> ir.Instr:
        return self.const(T.i64, value)

    def arg(self, param: ir.ScalarParam) -> ir.Instr:
        return self.op("arg", param.dtype, attr=param)

    def shape(self, array: ir.ArrayParam, dim: int = 0) -> ir.Instr:
        return self.op("shape", T.i64, attr=(array, dim))

    def get(self, var: ir.Var) -> ir.Instr:
        return self.op("get", var.type, attr=var)

    def set(self, var: ir.Var, value: ir.Instr) -> None:
        self.op("set", None, value, attr=var)

    def var(self, name: str, value: ir.Instr) -> ir.Var:
        assert value.type is not None
        var = ir.Var(name, value.type)
        self.set(var, value)
        return var

    def load(self, array: Any, *indices: ir.Instr) -> ir.Instr:
        return self.op("load", array.dtype, *indices, attr=array)

    def store(self, array: Any, value: ir.Instr, *indices: ir.Instr) -> None:
        self.op("store", None, value, *indices, attr=array)

    def same(self, op: str, a: ir.Instr, *more: ir.Instr, attr: Any = None) -> ir.Instr:
        return self.op(op, a.type, a, *more, attr=attr)

    def compare(self, op: str, a: ir.Instr, b: ir.Instr) -> ir.Instr:
        return self.op(op, T.BOOL, a, b)

    def cast(self, a: ir.Instr, dtype: DType) -> ir.Instr:
        return self.op("cast", dtype, a)


class Program:
    """A compiled kernel. ``pieces``: where launches are cut, as fractions, to run partial ranges."""

    def __init__(self, kernel: ir.Kernel, simd: int = 0, math: Any = no_math, optimize: int = 2, **changes: Any) -> None:
        self.source: KernelSource = build_source(kernel, target(simd, **changes), math)
        code = compile_llvm(kernel.name, self.source.text, self.source.arch, optimize, "object")
        self.jit = llvm.create_lljit_compiler()
        self.tracker = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for entry in self.source.entries:
            self.tracker.export_symbol(entry.symbol)
            if entry.alone:
                self.tracker.export_symbol(entry.alone)
        self.tracker = self.tracker.link(self.jit, f"k{next(_serial)}")
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        self.functions = [function(self.tracker[e.symbol]) for e in self.source.entries]
        self.alone = [function(self.tracker[e.alone or e.symbol]) for e in self.source.entries]  # for launches that are not cut

    def __call__(self, *args: Any, cuts: tuple[float, ...] = ()) -> Any:
        source = self.source
        scratch = np.zeros(source.scratch_bytes + 8, np.uint8)
        self.records = np.zeros(_HEADER + (_PRINTS + 1) * self.record_words, np.uint64)
        self.records[_FITTING] = _PRINTS
        sequence: list[int] = []
        at = 0
        loops: list[list[int]] = []
        while at < len(source.steps):
            step = source.steps[at]
            if step.kind == "sequence_begin":
                values = [evaluate(e, args, sequence) for e in (step.start[0], step.stop[0], step.step[0])]
                rounds = list(range(*values)) if values[2] else []
                if not rounds:
                    at = step.match + 1
                    continue
                loops.append(rounds)
                sequence.append(rounds[0])
            elif step.kind == "sequence_end":
                loops[-1].pop(0)
                if loops[-1]:
                    sequence[-1] = loops[-1][0]
                    at = step.match + 1
                    continue
                loops.pop()
                sequence.pop()
            elif step.kind == "launch":
                self._launch(step, args, sequence, scratch, cuts)
            at += 1
        if source.result_offset < 0:
            return None
        assert source.result_type is not None
        return (
            scratch[source.result_offset :].view()[: NUMPY[source.result_type.name].itemsize].copy().view(NUMPY[source.result_type.name])[0]
        )

    @property
    def record_words(self) -> int:
        return 1 + max((len(site.values) for site in self.source.sites), default=0)

    def failure(self) -> tuple[str, str] | None:
        """(kind, text) of the failure that the last call reported."""
        return self._said(_HEADER) if self.records[_FAILED] else None

    def printed(self) -> str:
        """What the last call printed, as far as it was kept."""
        count = min(int(self.records[_PRINTED]), _PRINTS)
        return "".join(self._said(_HEADER + (1 + k) * self.record_words)[1] for k in range(count))

    def _said(self, at: int) -> tuple[str, str]:
        site = self.source.sites[int(self.records[at])]
        words = self.records[at + 1 : at + 1 + len(site.values)]
        values = [w.tobytes()[: NUMPY[t.name].itemsize] for w, t in zip(words, site.values, strict=True)]
        numbers = [np.frombuffer(v, NUMPY[t.name])[0].item() for v, t in zip(values, site.values, strict=True)]
        return site.kind, filled(site.text, numbers, site.values)

    def _launch(self, step: Any, args: tuple[Any, ...], sequence: list[int], scratch: Any, cuts: tuple[float, ...]) -> None:
        entry = self.source.entries[step.entry]
        start, stop, by = ([evaluate(e, args, sequence) for e in part] for part in (step.start, step.stop, step.step))
        extents = [len(range(a, b, c)) if c else 0 for a, b, c in zip(start, stop, by, strict=True)]
        total = 1
        for n in extents:
            total *= n
        if not total:
            return
        words = np.zeros(max(1, len(entry.params)), np.uint64)
        for k, slot in enumerate(entry.params):
            value = args[slot.arg] if slot.kind in ("pointer", "shape", "stride", "scalar") else None
            if slot.kind == "pointer":
                words[k] = value.ctypes.data
            elif slot.kind == "scalar":
                raw = np.array(value, NUMPY[slot.dtype]).tobytes()
                words[k] = int.from_bytes(raw, "little")
            else:
                number = {
                    "shape": lambda: value.shape[slot.dim],
                    "stride": lambda: value.strides[slot.dim],
                    "extent": lambda: extents[slot.dim],
                    "start": lambda: start[slot.dim],
                    "step": lambda: by[slot.dim],
                    "sequence": lambda: sequence[slot.arg],
                    "scratch": lambda: scratch.ctypes.data,
                    "records": lambda: self.records.ctypes.data,
                }[slot.kind]()
                words[k] = np.int64(number).astype(np.uint64) if number >= 0 else np.uint64(number + (1 << 64))
        edges = sorted({0, total, *(min(total, int(c * total) if isinstance(c, float) else c) for c in cuts)})
        function = (self.functions if cuts else self.alone)[step.entry]
        for low, high in itertools.pairwise(edges):
            function(words.ctypes.data, low, high)


_serial = itertools.count()
_FAILED, _PRINTED, _FITTING, _HEADER = 0, 8, 9, 16  # words of the record buffer, see kernel.hpp
_PRINTS = 1000


def evaluate(extent: ir.Extent, args: tuple[Any, ...], sequence: list[int]) -> int:
    stack: list[int] = []
    for op, arg, dim, value in extent.terms:
        if op == "constant":
            stack.append(value)
        elif op == "shape":
            stack.append(args[arg].shape[dim])
        elif op == "scalar":
            stack.append(int(args[arg]))
        elif op == "sequence":
            stack.append(sequence[arg])
        elif op == "neg":
            stack.append(-stack.pop())
        elif op == "select":
            no, yes, cond = stack.pop(), stack.pop(), stack.pop()
            stack.append(yes if cond else no)
        else:
            b, a = stack.pop(), stack.pop()
            table = {
                "add": a + b,
                "sub": a - b,
                "mul": a * b,
                "min": min(a, b),
                "max": max(a, b),
                "lt": a < b,
                "le": a <= b,
                "eq": a == b,
                "ne": a != b,
            }
            stack.append(int(table[op]) if op in table else (0 if b == 0 else a // b if op == "floordiv" else a % b))
    return stack[0]
