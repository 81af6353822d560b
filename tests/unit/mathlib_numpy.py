"""Runs the source text of mathlib functions over NumPy arrays, all elements at once: the way a vector unit does, with masks.

It reads the same text that the compiler compiles, so the accuracy of the library is measured without the compiler. ``fma`` is the
processor's, through llvmlite.
"""

from __future__ import annotations

import ast
import ctypes
import functools
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from tack.codegen import mathlib

Env = dict[str, Any]
_FMA = """
define void @fma_{t}(ptr %a, ptr %b, ptr %c, ptr %out, i64 %n) {{
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %pa = getelementptr {t}, ptr %a, i64 %i
  %pb = getelementptr {t}, ptr %b, i64 %i
  %pc = getelementptr {t}, ptr %c, i64 %i
  %po = getelementptr {t}, ptr %out, i64 %i
  %x = load {t}, ptr %pa
  %y = load {t}, ptr %pb
  %z = load {t}, ptr %pc
  %r = call {t} @llvm.fma.{s}({t} %x, {t} %y, {t} %z)
  store {t} %r, ptr %po
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
declare {t} @llvm.fma.{s}({t}, {t}, {t})
"""


@functools.cache
def _engine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_FMA.format(t="float", s="f32") + _FMA.format(t="double", s="f64")), machine)
    engine.finalize_object()
    return engine


def fma(a: Any, b: Any, c: Any) -> Any:
    """a * b + c with one rounding, element by element; Python numbers are weak."""
    kind = np.result_type(*(x for x in (a, b, c) if isinstance(x, (np.ndarray, np.generic))))
    arrays = [np.ascontiguousarray(x) for x in np.broadcast_arrays(*(np.asarray(x, kind) for x in (a, b, c)))]
    out = np.empty_like(arrays[0])
    address = _engine().get_function_address("fma_float" if kind == np.float32 else "fma_double")
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64)(address)
    call(*(x.ctypes.data for x in arrays), out.ctypes.data, out.size)
    return out


def _cast(dtype: Any) -> Callable[[Any], Any]:
    def cast(x: Any) -> Any:
        x = np.asarray(x)
        if x.dtype.kind == "f" and np.dtype(dtype).kind in "iu":
            info = np.iinfo(dtype)
            low, high = x.dtype.type(info.min), x.dtype.type(info.max)  # high may round up
            inside = np.where((x > low) & (x < high), x, x.dtype.type(0)).astype(dtype)
            return np.where(x >= high, dtype(info.max), np.where((x <= low), dtype(info.min), inside))
        return x.astype(dtype)

    return cast


TYPES = {"i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "f32": np.float32, "f64": np.float64}
INTRINSICS: Env = {
    **{name: _cast(t) for name, t in TYPES.items()},
    "fma": fma,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "sqrt": np.sqrt,
    "fabs": np.abs,
    "abs": np.abs,
    "copysign": np.copysign,
    "inf": np.inf,
    "nan": np.nan,
}


class _Transform(ast.NodeTransformer):
    """Python's conditionals and logic as functions of whole arrays; both sides are computed."""

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return self.call("where_", node.test, node.body, node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        return self.call("all_" if isinstance(node.op, ast.And) else "any_", *node.values)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return self.call("not_", node.operand) if isinstance(node.op, ast.Not) else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "bitcast":
            value, dtype = node.args
            return self.call("bitcast_", value, ast.Constant(dtype.id))  # type: ignore[attr-defined]
        return self.generic_visit(node)

    def call(self, name: str, *args: ast.expr) -> ast.expr:
        return ast.Call(ast.Name(name, ast.Load()), [self.visit(a) for a in args], [])


class Library:
    """All functions of mathlib for one float type."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.float = TYPES[dtype]
        self.int = np.int32 if dtype == "f32" else np.int64
        self.trees: dict[str, ast.FunctionDef] = {}
        self.codes: dict[int, Any] = {}
        self.globals: Env = {
            **INTRINSICS,
            "where_": self.where,
            "bitcast_": lambda x, t: np.ascontiguousarray(x).view(TYPES[t]),
            "all_": lambda *a: functools.reduce(np.logical_and, a),
            "any_": lambda *a: functools.reduce(np.logical_or, a),
            "not_": np.logical_not,
        }
        for name in mathlib.source_names():
            self.globals[name] = functools.partial(self.run, name)

    def where(self, cond: Any, a: Any, b: Any) -> Any:
        if not isinstance(a, (np.ndarray, np.generic)) and not isinstance(b, (np.ndarray, np.generic)):  # weak: the function's own types
            kind = self.float if isinstance(a, float) or isinstance(b, float) else self.int
            a, b = kind(a), kind(b)
        return np.where(cond, a, b)

    def math(self, name: str) -> Callable[..., Any]:
        """The function called ``name`` ("exp") for this library's type, over arrays."""
        return functools.partial(self.run, mathlib.FUNCTIONS[name, self.dtype])

    def run(self, source_name: str, *args: Any) -> Any:
        tree = self.trees.get(source_name)
        if tree is None:
            module = ast.parse(mathlib.source(source_name).text)
            tree = self.trees[source_name] = module.body[0]  # type: ignore[assignment]
        assert isinstance(tree, ast.FunctionDef)
        env: Env = dict(zip((a.arg for a in tree.args.args), args, strict=True))
        with np.errstate(all="ignore"):
            self.body(tree.body, env, None)
        return env["return"]

    def value(self, node: ast.expr, env: Env) -> Any:
        code = self.codes.get(id(node))
        if code is None:
            expression = ast.fix_missing_locations(ast.Expression(_Transform().visit(ast.parse(ast.unparse(node), mode="eval").body)))
            code = self.codes[id(node)] = compile(expression, "<mathlib>", "eval")
        return eval(code, self.globals, env)

    def assign(self, target: ast.expr, value: Any, env: Env, mask: Any) -> None:
        if isinstance(target, ast.Tuple):
            for part, item in zip(target.elts, value, strict=True):
                self.assign(part, item, env, mask)
            return
        assert isinstance(target, ast.Name)
        if mask is not None and target.id in env:
            value = self.where(mask, value, env[target.id])
        env[target.id] = value

    def body(self, statements: list[ast.stmt], env: Env, mask: Any) -> None:
        for s in statements:
            if isinstance(s, ast.Assign):
                self.assign(s.targets[0], self.value(s.value, env), env, mask)
            elif isinstance(s, ast.Return):
                assert mask is None, "return only at the end"
                assert s.value is not None
                env["return"] = self.value(s.value, env)
            elif isinstance(s, ast.If):
                cond = np.asarray(self.value(s.test, env))
                self.body(s.body, env, cond if mask is None else mask & cond)
                self.body(s.orelse, env, ~cond if mask is None else mask & ~cond)
            elif isinstance(s, ast.While):
                active = self.value(s.test, env) if mask is None else mask & self.value(s.test, env)
                while np.any(active):
                    self.body(s.body, env, active)
                    active = active & self.value(s.test, env)
            else:
                assert isinstance(s, ast.Expr), ast.dump(s)
                assert isinstance(s.value, ast.Constant), ast.dump(s)
