"""From HIR and argument types to typed IR: the two entry points of inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..errors import CompileTypeError
from ..ir.nodes import ArrayParam, Block, Kernel, NoneParam, ScalarParam, Var
from ..ir.nodes import Function as IrFunction
from ..ir.source import reading
from ..ir.target import Target
from ..ir.walk import run
from ..types import BOOL, DType, Layout, f32, f64, i64, u64
from .builder import Frame
from .capabilities import check_uses, scan
from .diagnostics import error
from .hir import Function, Parameter
from .meaning import ArgType, ArrayArg, Environment, NoneArg, ScalarArg, TextureArg
from .toplevel import TopLevel
from .values import NONE, W_FLOAT, W_INT, W_UINT, ArrayRef, Binding, NoneValue, Num, Texture, Thing, Tuple, Unusable, canonical, describe

__all__ = ["infer", "infer_function"]

_WEAK = {"int": (W_INT, i64), "uint": (W_UINT, u64)}


def infer(fn: Function, args: Sequence[ArgType], env: Environment, target: Target, options: Mapping[str, object]) -> Kernel:
    """The kernel ``fn`` for arguments of these types, in parameter order.

    ``options`` are the decorator's and the call's; they are kept in the kernel, with ``block`` where it uses groups.
    Raises CompileError and its subclasses about the user's text, and capabilities.CapabilityError where the target lacks what it uses.
    """
    if len(args) != len(fn.params):
        raise error(CompileTypeError, f"it takes {len(fn.params)} arguments, not {len(args)}.", kernel=fn.name)
    uses = set(scan(fn, env))
    if any(isinstance(a, (ArrayArg, ScalarArg)) and a.dtype is not None and a.dtype == f64 for a in args):
        uses.add("f64")
    check_uses(fn.name, uses, target)
    frame = Frame(fn, env, None, None, None)
    top = TopLevel(fn.name, target, frame, f64 if "f64" in uses else f32)
    options = {**dict(fn.source.options), **options}
    top.set_group(options.get("block"), fn.loc)
    top.params = [_param(index, p, arg, top.weak_float) for index, (p, arg) in enumerate(zip(fn.params, args, strict=True))]
    top.open_segment()
    images = target.supports_images and not options.get("exact")
    bindings = {
        p.name: Binding(_thing(top, param, arg, p, images), p.loc) for p, param, arg in zip(fn.params, top.params, args, strict=True)
    }
    frame.env = bindings
    items = run(top.kernel_body(fn.body))
    kernel = Kernel(
        name=fn.name,
        params=list(top.params),
        items=items,
        written=frozenset(top.written),
        result=top.result,
        options={**options, "block": top.group} if "workgroups" in uses else dict(options),
        uses=frozenset(uses.union(top.uses)),
    )
    _narrow(top, kernel)
    check_uses(fn.name, kernel.uses, target)
    return kernel


def infer_function(
    fn: Function, args: Sequence[DType], env: Environment, target: Target, options: Mapping[str, object] | None = None
) -> IrFunction:
    """The device function ``fn`` for scalar arguments of these dtypes: tack's own math is compiled by this.

    Its weak floats are f64 where an argument is f64, else f32. Several results come from a returned tuple. ``options`` change nothing here.
    """
    if len(args) != len(fn.params):
        raise error(CompileTypeError, f"it takes {len(fn.params)} arguments, not {len(args)}.", kernel=fn.name)
    dtypes = [canonical(a) for a in args]
    root = Frame(fn, env, None, fn.source, None)
    top = TopLevel(fn.name, target, root, f64 if f64 in dtypes else f32)
    top.in_parallel = True  # it is part of an iteration
    top.open_segment()
    frame = Frame(fn, env, root, fn.source, fn.loc)
    top.frame = frame
    params = [Var(p.name, dtype) for p, dtype in zip(fn.params, dtypes, strict=True)]
    bindings: dict[str, Binding] = {}
    for p, var in zip(fn.params, params, strict=True):
        thing: Thing = Num(var.type, top.at_head("get", var.type, var, ("param", p.name)))
        bindings[p.name] = Binding(top.convert(thing, p.annotation, p.loc), p.loc)
    frame.env = bindings
    thing = run(top.body_with_returns(fn, fn.loc) if fn.early_returns else top.plain_body(fn))
    if isinstance(thing, Unusable):
        top.fail(f"the result of '{fn.name}' {thing.text}", fn.loc, "Return the same kind of value on every path.")
    values = thing.items if isinstance(thing, Tuple) else () if isinstance(thing, NoneValue) else (thing,)
    results: list[Var] = []
    for position, value in enumerate(values):
        if not isinstance(value, Num):
            top.fail(f"the result of '{fn.name}' is {describe(value)}, not a number.", fn.loc)
        var = Var(f"_result{position}" if len(values) > 1 else "_result", top.dtype_of(value.type))
        top.emit("set", None, (top.own(value, fn.loc),), var, fn.loc)
        results.append(var)
    return IrFunction(fn.name, params, Block(top.head + top.block), results)


def _param(index: int, parameter: Parameter, arg: ArgType, weak_float: DType) -> ArrayParam | ScalarParam | NoneParam:
    name = parameter.name
    if isinstance(arg, ArrayArg):
        return ArrayParam(index, name, canonical(arg.dtype), arg.rank, arg.layout, arg.read_only)
    if isinstance(arg, TextureArg):
        return ArrayParam(index, name, f32, 3, Layout.CONTIGUOUS, texture=reading(arg.interp, arg.wrap, arg.hardware))
    if isinstance(arg, NoneArg):
        return NoneParam(index, name)
    if arg.kind == "strong":
        assert arg.dtype is not None
        return ScalarParam(index, name, "strong", canonical(arg.dtype))
    dtype = BOOL if arg.kind == "bool" else weak_float if arg.kind == "float" else _WEAK[arg.kind][1]
    return ScalarParam(index, name, arg.kind, dtype)


def _thing(top: TopLevel, param: ArrayParam | ScalarParam | NoneParam, arg: ArgType, parameter: Parameter, images: bool) -> Thing:
    if isinstance(param, ArrayParam):
        array = ArrayRef(param, param.name)
        if isinstance(arg, TextureArg):
            return Texture(array, arg.interp, arg.wrap, arg.hardware and images)
        return array
    if isinstance(param, NoneParam):
        return NONE
    instr = top.argument(param)
    if param.kind in _WEAK:
        number = Num(_WEAK[param.kind][0], instr, param=param.index)
    elif param.kind == "float":
        number = Num(W_FLOAT, instr, param=param.index)
    else:
        number = Num(param.dtype, instr)
    return top.convert(number, parameter.annotation, parameter.loc)


def _narrow(top: TopLevel, kernel: Kernel) -> None:
    """Gives the parameters the ranges that were met, and puts the final parameters into the instructions that read them."""
    ranges: dict[int, tuple[int, int]] = {}
    for index, dtype in top.meets:
        low, high = ranges.get(index, (-(1 << 63), (1 << 64) - 1))
        ranges[index] = max(low, dtype.min), min(high, dtype.max)
    for index, (low, high) in ranges.items():
        param = kernel.params[index]
        if isinstance(param, ScalarParam) and (low > param.dtype.min or high < param.dtype.max):
            kernel.params[index] = replace(param, low=max(low, param.dtype.min), high=min(high, param.dtype.max))
    for instr in top.arg_instrs:
        if isinstance(instr.attr, ScalarParam):
            instr.attr = kernel.params[instr.attr.index]  # type: ignore[assignment]
