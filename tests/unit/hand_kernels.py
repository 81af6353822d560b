"""Kernels whose LLVM IR is written by hand, so that the runtime and the dispatcher are tested without the compiler."""

from __future__ import annotations

from tack import _runtime
from tack.ir.nodes import Extent
from tack.ir.source import ArgumentSpec, EntryPoint, KernelSource, ParamSlot, Step
from tack.types import BOOL, DType, Layout, f32, f64, i64

_LLVM = {"f32": "float", "f64": "double", "i64": "i64", "i32": "i32", "u8": "i8"}


def loop(symbol: str, head: str, body: str) -> str:
    """An entry point: ``head`` runs once with the words in %w, ``body`` for every index %i."""
    return f"""
define void @{symbol}(ptr noalias %w, i64 %begin, i64 %end) {{
entry:
{head}
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
{body}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def word(index: int, name: str, type_: str = "i64") -> str:
    """Loads word ``index`` of the parameter block."""
    lines = [f"  %p.{name} = getelementptr i64, ptr %w, i64 {index}"]
    if type_ == "ptr":
        lines += [f"  %a.{name} = load i64, ptr %p.{name}", f"  %{name} = inttoptr i64 %a.{name} to ptr"]
    else:
        lines += [f"  %{name} = load {type_}, ptr %p.{name}"]
    return "\n".join(lines)


def array(name: str, dtype: DType = f32, *, written: bool = False, read_only: bool = False, rank: int = 1, layout: int = 0) -> ArgumentSpec:
    return ArgumentSpec(name, "array", dtype, rank=rank, layout=Layout(layout), read_only=read_only, written=written)


def scalar(name: str, kind: str, dtype: DType = i64) -> ArgumentSpec:
    return ArgumentSpec(name, kind, dtype)


def source(
    device: _runtime.Device,
    name: str,
    text: str,
    arguments: list[ArgumentSpec],
    params: list[ParamSlot],
    stop: Extent | None = None,
    cost_hint: float = 1.0,
    **fields: object,
) -> KernelSource:
    """One entry over [0, stop), by default over the length of argument 0."""
    text += "".join(f"; {a.name}: {a.kind} {a.dtype} {a.read_only}\n" for a in arguments)  # kernels that differ in these alone are two
    stop = stop or Extent((("shape", 0, 0, 0),))
    return KernelSource(
        name=name,
        target=device.type,
        arch=device.arch,
        text=text,
        options="",
        arguments=arguments,
        entries=[EntryPoint(name, params, rank=1, cost_hint=cost_hint)],
        steps=[Step("launch", 0, [Extent.constant(0)], [stop], [Extent.constant(1)])],
        **fields,  # type: ignore[arg-type]
    )


def saxpy(
    device: _runtime.Device, kind: str = "floating", dtype: DType = f32, strong: DType = f32, *, read_only: bool = False
) -> _runtime.Kernel:
    """out[i] = a * x[i] + y[i]; ``a`` travels as ``kind`` and is converted to ``dtype`` by the runtime."""
    t = _LLVM[dtype.name]
    mul, add = ("fmul", "fadd") if dtype.is_float else ("mul", "add")
    head = "\n".join([word(0, "x", "ptr"), word(1, "y", "ptr"), word(2, "out", "ptr"), word(3, "a", t)])
    body = f"""
  %px = getelementptr {t}, ptr %x, i64 %i
  %vx = load {t}, ptr %px
  %py = getelementptr {t}, ptr %y, i64 %i
  %vy = load {t}, ptr %py
  %ax = {mul} {t} %a, %vx
  %r = {add} {t} %ax, %vy
  %po = getelementptr {t}, ptr %out, i64 %i
  store {t} %r, ptr %po"""
    a = scalar("a", kind, strong if kind == "strong" else f64 if kind == "floating" else BOOL if kind == "boolean" else i64)
    arguments = [array("x", dtype, read_only=read_only), array("y", dtype), array("out", dtype, written=True), a]
    params = [ParamSlot("pointer", 0), ParamSlot("pointer", 1), ParamSlot("pointer", 2), ParamSlot("scalar", 3, dtype=dtype.name)]
    return device.build(source(device, "saxpy", loop("saxpy", head, body), arguments, params), b"")


def fill(device: _runtime.Device, value: float, name: str = "fill") -> _runtime.Kernel:
    """out[i] = value, f32: a kernel with a constant compiled in, as captured values are."""
    body = f"  %po = getelementptr float, ptr %out, i64 %i\n  store float {value:e}, ptr %po"
    text = loop(name, word(0, "out", "ptr"), body)
    return device.build(source(device, name, text, [array("out", written=True)], [ParamSlot("pointer", 0)]), b"")


def slow(device: _runtime.Device, turns: int) -> _runtime.Kernel:
    """out[i] = out[i] after ``turns`` dependent steps that no compiler can leave out; about a nanosecond each."""
    text = f"""
define void @slow(ptr noalias %w, i64 %begin, i64 %end) {{
entry:
{word(0, "out", "ptr")}
  br label %turn
turn:
  %k = phi i64 [ 0, %entry ], [ %k1, %turn ]
  %po = getelementptr float, ptr %out, i64 %begin
  %v = load volatile float, ptr %po
  store volatile float %v, ptr %po
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, {turns}
  br i1 %more, label %turn, label %done
done:
  ret void
}}
"""
    return device.build(source(device, "slow", text, [array("out", written=True)], [ParamSlot("pointer", 0)], cost_hint=float(turns)), b"")


def answer(device: _runtime.Device, dtype: DType, bits: int) -> _runtime.Kernel:
    """Returns the value of ``dtype`` whose bits are ``bits``; takes one array."""
    size = dtype.itemsize * 8
    text = loop("answer", word(0, "cell", "ptr"), f"  store i{size} {bits}, ptr %cell")
    made = source(
        device,
        "answer",
        text,
        [array("out", written=True)],
        [ParamSlot("scratch")],
        Extent.constant(1),
        scratch_bytes=8,
        result_type=dtype,
        result_offset=0,
    )
    return device.build(made, b"")
