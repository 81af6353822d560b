"""Inference of calls: casts, Python's own functions, math, bits, atomics, local arrays. Device functions are in functions.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NoReturn

from ..errors import CompileNotImplementedError, CompileTypeError
from ..ir.nodes import Block as IrBlock
from ..ir.nodes import For, Instr, Loc, LocalArray, Var
from ..ir.verify import BIT_FUNCTIONS, MATH_FUNCTIONS
from ..ir.walk import Walk
from ..types import BOOL, DType, f64, i64
from .builder import weak_constant
from .hir import Op
from .meaning import DTypeMeaning, FuncMeaning, Intrinsic, ModuleMeaning, Opaque
from .messages import Messages
from .names import ATOMICS, NUMPY_NAMES, PYTHON_MATH, WORKGROUP
from .operators import is_weak
from .refusals import INSTEAD
from .values import (
    W_FLOAT,
    W_INT,
    ArrayRef,
    Num,
    RangeValue,
    Sampler,
    Shape,
    Thing,
    Tuple,
    Type,
    canonical,
    describe,
)

__all__ = ["Calls"]

# Parameter names of functions that take keywords.
_PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "local_array": ("dtype", "shape"),
    "local_array_like": ("array", "shape"),
    "shared": ("dtype", "shape"),
    "shared_like": ("array", "shape"),
    **{f"block_{name}": ("value",) for name in ("sum", "min", "max")},
    "bitcast": ("x", "dtype"),
    "atomic_cas": ("array", "index", "compare", "value"),
    **{name: ("array", "index", "value") for name in ATOMICS if name != "atomic_cas"},
}
_MAX_LOCAL_BYTES: Final = 1 << 20  # of one local array
_UNROLLED_ZEROS: Final = 16  # elements that are zeroed one by one


class Calls(Messages):
    def op_call(self, op: Op) -> Walk[None] | None:  # noqa: RET503 - not_callable() does not return
        callee = self.thing(op.args[0])
        args = [self.thing(r) for r in op.args[1:]]
        names: tuple[str, ...] = op.attr
        loc = op.loc
        if isinstance(callee, FuncMeaning):
            return self.called(op.dst, self.call_function(callee, args, names, loc))
        if isinstance(callee, DTypeMeaning):
            self.frame.regs[op.dst] = self.cast_call(callee.dtype, args, names, loc)
            return None
        if isinstance(callee, Intrinsic):
            name = NUMPY_NAMES.get(callee.name, callee.name) if callee.origin == "numpy" else callee.name
            if name == "print" and callee.origin == "builtins":
                self.frame.regs[op.dst] = self.call_print(args, names, loc)
                return None
            if names:
                args = self.by_keyword(name, args, names, loc)
            self.frame.regs[op.dst] = self.intrinsic(name, callee.origin, args, loc)
            return None
        if isinstance(callee, Sampler) and callee.direct:
            self.frame.regs[op.dst] = self.fetch(callee, args, loc)
            return None
        if isinstance(callee, Sampler):
            return self.called(op.dst, self.sample(callee, args, names, loc))
        self.not_callable(callee, loc)

    def called(self, register: int, call: Walk[Thing]) -> Walk[None]:
        frame = self.frame
        frame.regs[register] = yield call

    def not_callable(self, callee: Thing, loc: Loc) -> NoReturn:
        if isinstance(callee, Opaque):
            if callee.kind == "function":
                self.fail(f"{callee.description} is a plain Python function.", loc, "Add @tack.func above its definition.")
            if callee.kind == "callable":
                self.fail(
                    f"{callee.description} has no meaning in a kernel.",
                    loc,
                    "Kernels call @tack.func functions, and some of tack, math and NumPy: call this one outside, and pass what it gives.",
                )
            if callee.kind == "kernel":
                self.fail(
                    f"{callee.description} is a kernel, and a kernel cannot call another.",
                    loc,
                    "Make the common part a @tack.func, and call that from both.",
                )
            self.unusable_capture(callee, loc)
        if isinstance(callee, ModuleMeaning):
            self.fail(f"the module '{callee.name}' cannot be called.", loc)
        self.fail(f"{describe(callee)} cannot be called.", loc)

    def by_keyword(self, name: str, args: list[Thing], names: tuple[str, ...], loc: Loc) -> list[Thing]:
        parameters = _PARAMETERS.get(name)
        if parameters is None:
            self.fail(f"'{name}' takes no keyword arguments in a kernel.", loc, "Write the arguments in order.")
        positional = len(args) - len(names)
        bound = dict(zip(parameters, args[:positional], strict=False))
        for key, value in zip(names, args[positional:], strict=True):
            if key not in parameters or key in bound:
                self.fail(f"'{name}' has no parameter '{key}', or it is given twice.", loc, f"Its parameters are {', '.join(parameters)}.")
            bound[key] = value
        return [bound[p] for p in parameters if p in bound]

    # -- one entry for all functions that the compiler knows

    def intrinsic(self, name: str, origin: str, args: list[Thing], loc: Loc) -> Thing:  # noqa: RET503 - fail() does not return
        if name in WORKGROUP:
            return self.workgroup(name, args, loc)
        atomic = ATOMICS.get(name)
        if atomic is not None:
            return self.atomic(name, atomic, args, loc)
        special = _SPECIAL.get(name)
        if special is not None:
            result: Thing = special(self, name, origin, args, loc)
            return result
        if name in MATH_FUNCTIONS:
            return self.math(name, self.numbers(name, args, loc), loc)
        if name in BIT_FUNCTIONS:
            return self.bits(name, self.numbers(name, args, loc), loc)
        prefix = {"builtins": "", "numpy": "np.", "math": "math."}.get(origin, "tack.")
        self.fail(f"{prefix}{name} has no meaning in a kernel.", loc, INSTEAD.get(name, ""), CompileNotImplementedError)

    def numbers(self, name: str, args: list[Thing], loc: Loc) -> list[Num]:
        numbers = [a for a in args if isinstance(a, Num)]
        if len(numbers) != len(args):
            bad = next(a for a in args if not isinstance(a, Num))
            if isinstance(bad, Opaque):
                self.unusable_capture(bad, loc)
            self.fail(
                f"'{name}' takes numbers, not {describe(bad)}.", loc, "Call it for each element, a[i]." if isinstance(bad, ArrayRef) else ""
            )
        return numbers

    def counted(self, name: str, args: list[Any], low: int, high: int, loc: Loc) -> None:
        if not low <= len(args) <= high:
            wanted = str(low) if low == high else f"{low} to {high}"
            parameters = _PARAMETERS.get(name.removeprefix("tack."))
            hint = f"Write tack.{name.removeprefix('tack.')}({', '.join(parameters)})." if parameters else ""
            self.fail(f"'{name}' takes {wanted} argument{'' if wanted == '1' else 's'}, not {len(args)}.", loc, hint)

    # -- casts

    def cast_call(self, dtype: DType, args: list[Thing], names: tuple[str, ...], loc: Loc) -> Num:
        if names:
            self.fail(f"{dtype} takes no keyword arguments.", loc)
        self.counted(str(dtype), args, 1, 1, loc)
        (x,) = self.numbers(str(dtype), args, loc)
        return self.cast(x, canonical(dtype), loc)

    def cast(self, x: Num, dtype: DType, loc: Loc) -> Num:
        """A strong number; ints wrap, floats truncate and saturate."""
        if x.const is not None:
            return Num(dtype, const=self.strong_constant(x.const, dtype))
        if dtype is BOOL:
            return self.truth(x, loc)
        instr = x.instr
        assert instr is not None
        if instr.type is not dtype:
            instr = self.emit("cast", dtype, (instr,), None, loc)
        return Num(dtype, instr)

    def call_int(self, name: str, origin: str, args: list[Thing], loc: Loc) -> Num:
        self.counted("int", args, 1, 1, loc)
        return self.cast(self.numbers("int", args, loc)[0], i64, loc)

    def call_float(self, name: str, origin: str, args: list[Thing], loc: Loc) -> Num:
        self.counted("float", args, 1, 1, loc)
        return self.cast(self.numbers("float", args, loc)[0], self.weak_float, loc)

    def call_bool(self, name: str, origin: str, args: list[Thing], loc: Loc) -> Num:
        self.counted("bool", args, 1, 1, loc)
        return self.truth(args[0], loc)

    def call_bitcast(self, name: str, origin: str, args: list[Thing], loc: Loc) -> Num:
        self.counted("bitcast", args, 2, 2, loc)
        x, to = args
        if isinstance(x, DTypeMeaning):
            x, to = to, x
        if not isinstance(x, Num) or not isinstance(to, DTypeMeaning):
            self.fail("tack.bitcast takes a number and a dtype.", loc, "Write tack.bitcast(x, tack.u32).")
        dtype = canonical(to.dtype)
        own = self.dtype_of(x.type)
        if own is BOOL or dtype is BOOL or own.bits != dtype.bits:
            message = f"tack.bitcast from {own} to {dtype}: the sizes differ."
            self.refuse_later(self.refusal(message, loc, "Cast to a type of the same size first."))
            return self.some(dtype, loc)
        if own is dtype:
            return Num(dtype, self.own(x, loc))
        return self.value("bitcast", dtype, (self.own(x, loc),), loc)

    # -- Python's functions

    def call_abs(self, name: str, origin: str, args: list[Thing], loc: Loc) -> Num:
        self.counted(name, args, 1, 1, loc)
        (x,) = self.numbers(name, args, loc)
        if name == "fabs" and not x.type.is_float:
            return self.math("fabs", [x], loc)
        if x.const is not None and is_weak(x.type):
            return weak_constant(abs(x.const))
        t: Type = W_INT if x.type is BOOL else x.type
        if self.dtype_of(t).code == "u":
            return Num(t, x.instr, x.const)
        instr = self.coerce(x, self.dtype_of(t), loc)
        return self.value("abs", t, (instr,), loc)

    def call_min_max(self, name: str, origin: str, args: list[Thing], loc: Loc) -> Num:
        if len(args) == 1 and (items := self.items_of(args[0])) is not None:
            args = list(items)
            if not args:
                self.fail(f"{name} of an empty tuple.", loc)
        elif len(args) < 2:
            hint = f"Call a.{name}() outside the kernel, or loop: m = {name}(m, a[i])." if args and isinstance(args[0], ArrayRef) else ""
            self.fail(f"'{name}' takes two or more numbers.", loc, hint)
        numbers = self.numbers(name, args, loc)
        if all(n.const is not None and is_weak(n.type) for n in numbers):
            pick = min if name == "min" else max
            return weak_constant(pick(n.const for n in numbers if n.const is not None))
        t = self.common_of(f"'{name}'", numbers, loc)
        if t is BOOL:
            t = W_INT
        dtype = self.dtype_of(t)
        result = Num(t, self.coerce(numbers[0], dtype, loc))
        for number in numbers[1:]:
            result = self.value(name, t, (self.own(result, loc), self.coerce(number, dtype, loc)), loc)
        return result

    def call_nan_min_max(self, name: str, origin: str, args: list[Thing], loc: Loc) -> Num:
        """np.minimum and np.maximum give a NaN where one of the two is."""
        self.counted(f"np.{name}", args, 2, 2, loc)
        result = self.call_min_max(name[:3], origin, args, loc)
        if not result.type.is_float or result.const is not None:
            return result
        dtype = self.dtype_of(result.type)
        picked = self.own(result, loc)
        for number in self.numbers(name, args, loc):
            x = self.coerce(number, dtype, loc)
            picked = self.emit("select", dtype, (self.emit("ne", BOOL, (x, x), None, loc), x, picked), None, loc)
        return Num(result.type, picked)

    def call_len(self, name: str, origin: str, args: list[Thing], loc: Loc) -> Num:
        self.counted("len", args, 1, 1, loc)
        x = args[0]
        if isinstance(x, ArrayRef):
            if x.rank == 0:
                self.fail(f"len of the array '{x.name}', which has no dimension.", loc)
            return self.length(x, 0)
        items = self.items_of(x)
        if items is None:
            self.fail(f"{describe(x)} has no length.", loc)
        return weak_constant(len(items))

    def call_divmod(self, name: str, origin: str, args: list[Thing], loc: Loc) -> Tuple:
        self.counted("divmod", args, 2, 2, loc)
        a, b = self.numbers("divmod", args, loc)
        return Tuple((self.binary("floordiv", a, b, loc), self.binary("mod", a, b, loc)))

    def call_range(self, name: str, origin: str, args: list[Thing], loc: Loc) -> RangeValue:
        shown = name if name == "range" else "tack.sequential"
        self.counted(shown, args, 1, 3, loc)
        numbers = [self.bound(shown, a, loc) for a in args]
        if len(numbers) == 1:
            numbers.insert(0, weak_constant(0))
        if len(numbers) == 2:
            numbers.append(weak_constant(1))
        if numbers[2].const == 0:
            self.fail(f"the step of {shown} is 0.", loc, "Write a step of at least 1, or at most -1.")
        return RangeValue(name, ((numbers[0], numbers[1], numbers[2]),))

    def bound(self, shown: str, thing: Thing, loc: Loc) -> Num:
        if not isinstance(thing, Num) or thing.type.is_float:
            if isinstance(thing, Opaque):
                self.unusable_capture(thing, loc)
            hint = (
                "Convert it with int(...), or write //."
                if isinstance(thing, Num)
                else "Write range(len(a)) for its first dimension."
                if isinstance(thing, ArrayRef)
                else ""
            )
            self.fail(f"{shown} takes integers, not {describe(thing)}.", loc, hint)
        return thing

    def call_ndrange(self, name: str, origin: str, args: list[Thing], loc: Loc) -> RangeValue:
        if len(args) == 1 and isinstance(args[0], Shape):
            args = list(self.items_of(args[0]) or ())
        if not 1 <= len(args) <= 4:
            self.fail(f"tack.ndrange takes 1 to 4 sizes or (start, stop) pairs, not {len(args)}.", loc)
        bounds = []
        for arg in args:
            items = self.items_of(arg)
            if items is None:
                bounds.append((weak_constant(0), self.bound("tack.ndrange", arg, loc), weak_constant(1)))
            elif len(items) == 2:
                start, stop = (self.bound("tack.ndrange", item, loc) for item in items)
                bounds.append((start, stop, weak_constant(1)))
            else:
                self.fail(f"tack.ndrange takes sizes or (start, stop) pairs, not {describe(arg)}.", loc)
        return RangeValue("ndrange", tuple(bounds))

    # -- math and bits

    def math(self, name: str, args: list[Num], loc: Loc) -> Num:
        if name == "log" and len(args) == 2:
            return self.binary("div", self.math("log", args[:1], loc), self.math("log", args[1:], loc), loc)
        rule = MATH_FUNCTIONS[name]
        self.counted(name, args, len(rule.args), len(rule.args), loc)
        weak = all(is_weak(a.type) for a in args)
        if weak and name in PYTHON_MATH and all(a.const is not None for a in args):
            try:
                return weak_constant(PYTHON_MATH[name](*(a.const for a in args)))
            except (ValueError, ArithmeticError):
                pass  # NaN or inf at run time
        t = self.common_of(f"'{name}'", args, loc)
        if not t.is_float:
            t = W_FLOAT if weak else self.weak_float
        dtype = self.dtype_of(t)
        operands = tuple(self.coerce(a, dtype, loc) for a in args)
        if rule.result == "bool":
            return self.value("math", BOOL, operands, loc, name)
        if name == "fabs":
            return self.value("abs", t, operands, loc)
        return self.value("math", t, operands, loc, name)

    def call_fma(self, name: str, origin: str, args: list[Thing], loc: Loc) -> Num:
        self.counted("fma", args, 3, 3, loc)
        numbers = self.numbers("fma", args, loc)
        t = self.common_of("'fma'", numbers, loc)
        if not t.is_float:
            t = W_FLOAT if all(is_weak(n.type) for n in numbers) else self.weak_float
        dtype = self.dtype_of(t)
        return self.value("fma", t, tuple(self.coerce(n, dtype, loc) for n in numbers), loc)

    def call_rounding(self, name: str, origin: str, args: list[Thing], loc: Loc) -> Num:
        """floor, ceil, trunc and round: i64 as math's and Python's, the float type as tack's and NumPy's."""
        if name == "round" and len(args) == 2:
            self.fail(
                "round with a number of digits is not part of the kernel language.",
                loc,
                "Write round(x * 100) / 100.",
                CompileNotImplementedError,
            )
        self.counted(name, args, 1, 1, loc)
        (x,) = self.numbers(name, args, loc)
        to_int = origin in ("math", "builtins")
        if x.const is not None and is_weak(x.type):
            try:
                value = round(x.const) if name == "round" else getattr(math, name)(x.const)
            except (ValueError, OverflowError):
                pass
            else:
                return weak_constant(value if to_int else float(value))
        if to_int and not x.type.is_float:
            return self.cast(x, i64, loc)
        result = self.math(name, [x], loc)
        return self.cast(result, i64, loc) if to_int else result

    def call_pow(self, name: str, origin: str, args: list[Thing], loc: Loc) -> Num:
        self.counted("pow", args, 2, 2, loc)
        a, b = self.numbers("pow", args, loc)
        if origin == "math" and not (a.type.is_float or b.type.is_float):
            return self.math("pow", [a, b], loc)
        return self.binary("pow", a, b, loc)

    def bits(self, name: str, args: list[Num], loc: Loc) -> Num:
        count = len(BIT_FUNCTIONS[name].args)
        self.counted(name, args, count, count, loc)
        for a in args:
            if a.type.is_float:
                self.fail(
                    f"tack.{name} works on integers, not on {describe(a)}.", loc, "tack.bitcast(x, tack.u32) gives the bits of a float."
                )
        if name in ("rotl", "rotr"):
            t = self.left_type(args[0], args[1])
            dtype = self.dtype_of(t)
            # The count is taken modulo N, so its low bits are all that matters.
            by = self.cast(args[1], dtype, loc)
            return self.value("bits", t, (self.coerce(args[0], dtype, loc), self.coerce(by, dtype, loc)), loc, name)
        t = self.common_of(f"'{name}'", args, loc)
        if t is BOOL:
            t = W_INT
        dtype = self.dtype_of(t)
        return self.value("bits", t, tuple(self.coerce(a, dtype, loc) for a in args), loc, name)

    # -- memory

    def atomic(self, name: str, kind: str, args: list[Thing], loc: Loc) -> Num:
        wanted = 4 if kind == "cas" else 3
        self.counted(f"tack.{name}", args, wanted, wanted, loc)
        ref, index, *values = args
        if not isinstance(ref, ArrayRef):
            self.fail(f"tack.{name} takes an array first, not {describe(ref)}.", loc, f"Write tack.{name}(a, i, ...).")
        if isinstance(ref.array, LocalArray):
            self.fail(
                f"tack.{name} of the local array '{ref.name}', which no other iteration sees.", loc, "Write a plain update: a[i] += v."
            )
        dtype = ref.dtype
        if kind in ("and", "or", "xor") and dtype.is_float:
            self.fail(f"tack.{name} works on integers, and '{ref.name}' is a {dtype} array.", loc)
        operands = tuple(self.element(ref, v, loc) for v in values)
        self.writes(ref, loc)
        self.uses.append(f"atomic:{kind}:{dtype.name}")
        if not self.in_parallel:
            self.segment_atomics.append(loc)
        return self.value("atomic", dtype, (*operands, *self.indices(ref, [index], loc)), loc, (kind, ref.array))

    def call_local_array(self, name: str, origin: str, args: list[Thing], loc: Loc) -> ArrayRef:
        dtype, shape = self.scratch(name, args, loc)
        size = dtype.itemsize * math.prod(shape)
        if size > _MAX_LOCAL_BYTES:
            self.fail(
                f"a local array of {size} bytes; the limit is {_MAX_LOCAL_BYTES}.",
                loc,
                "Pass an array with a row for each iteration.",
                CompileTypeError,
            )
        array = LocalArray("local", dtype, shape)
        if self.loop_depth:  # every round starts with zeros again
            self.zero(array, loc)
        return ArrayRef(array, array.name)

    def scratch(self, name: str, args: list[Thing], loc: Loc) -> tuple[DType, tuple[int, ...]]:
        """The dtype and shape that local_array, shared and their _like forms are called with."""
        like = name.endswith("_like")
        self.counted(f"tack.{name}", args, 1 if like else 2, 2, loc)
        first = args[0]
        if like:
            if not isinstance(first, ArrayRef):
                self.fail(f"tack.{name} takes an array first, not {describe(first)}.", loc)
            dtype = first.dtype
            shape: Thing = args[1] if len(args) == 2 else Shape(first)
        else:
            if not isinstance(first, DTypeMeaning):
                self.fail(f"tack.{name} takes a dtype first, not {describe(first)}.", loc, f"Write tack.{name}(tack.f32, 16).")
            dtype, shape = canonical(first.dtype), args[1]
        if dtype is BOOL:
            self.fail("no array has bool elements.", loc, "Use tack.u8.")
        items = self.items_of(shape)
        lengths: list[int] = []
        for item in (shape,) if items is None else items:
            if not (isinstance(item, Num) and isinstance(item.const, int)):
                self.fail(
                    f"the shape of tack.{name} must be known at compile time.",
                    loc,
                    "Write a number, or capture one from outside the kernel.",
                )
            if item.const < 0:
                self.fail(f"the shape of tack.{name} has the negative length {item.const}.", loc)
            lengths.append(int(item.const))
        if dtype is f64:
            self.uses.append("f64")
        return dtype, tuple(lengths)

    def zero(self, array: LocalArray, loc: Loc) -> None:
        zero = self.emit("const", array.dtype, (), 0.0 if array.dtype.is_float else 0, loc)
        total = 1
        for n in array.shape:
            total *= n
        if total <= _UNROLLED_ZEROS:
            for position in range(total):
                indices: list[Instr] = []
                for n in reversed(array.shape):
                    position, k = divmod(position, n)
                    indices.insert(0, self.emit("const", i64, (), k, loc))
                self.emit("store", None, (zero, *indices), array, loc)
            return
        outer = self.block
        counters: list[Var] = []
        for n in array.shape:
            start, stop, step = (self.emit("const", i64, (), v, loc) for v in (0, n, 1))
            counters.append(Var("_z", i64))
            loop = For(counters[-1], start, stop, step, IrBlock(), IrBlock(), loc)
            self.block.append(loop)
            self.block = loop.body.body
        self.emit("store", None, (zero, *[self.emit("get", i64, (), v, loc) for v in counters]), array, loc)
        self.block = outer

    def call_function(self, callee: FuncMeaning, args: list[Thing], names: tuple[str, ...], loc: Loc) -> Walk[Thing]:
        raise NotImplementedError

    def workgroup(self, name: str, args: list[Thing], loc: Loc) -> Thing:
        raise NotImplementedError

    def sample(self, sampler: Sampler, args: list[Thing], names: tuple[str, ...], loc: Loc) -> Walk[Thing]:
        raise NotImplementedError

    def fetch(self, sampler: Sampler, args: list[Thing], loc: Loc) -> Num:
        raise NotImplementedError


_SPECIAL: Final[dict[str, Callable[..., Any]]] = {
    "int": Calls.call_int,
    "float": Calls.call_float,
    "bool": Calls.call_bool,
    "bitcast": Calls.call_bitcast,
    "abs": Calls.call_abs,
    "fabs": Calls.call_abs,
    "min": Calls.call_min_max,
    "max": Calls.call_min_max,
    "minimum": Calls.call_nan_min_max,
    "maximum": Calls.call_nan_min_max,
    "len": Calls.call_len,
    "divmod": Calls.call_divmod,
    "range": Calls.call_range,
    "sequential": Calls.call_range,
    "ndrange": Calls.call_ndrange,
    "fma": Calls.call_fma,
    "floor": Calls.call_rounding,
    "ceil": Calls.call_rounding,
    "trunc": Calls.call_rounding,
    "round": Calls.call_rounding,
    "pow": Calls.call_pow,
    "local_array": Calls.call_local_array,
    "local_array_like": Calls.call_local_array,
}
