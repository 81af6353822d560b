"""The state of one inference, and how it writes IR: instructions, constants, conversions, errors. The base of the classes that infer."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ..errors import CompileError, CompileTypeError
from ..ir.nodes import ArrayParam, Attr, Continue, Instr, Loc, Node, NoneParam, ScalarParam, Scope
from ..ir.target import Target
from ..ir.walk import Walk
from ..types import BOOL, DType, f64, i64, u64
from .diagnostics import error
from .hir import Function, Item
from .meaning import Environment
from .promote import holds
from .values import W_FLOAT, W_INT, Binding, Num, Thing, Type, Weak

if TYPE_CHECKING:
    from .forks import Fork

__all__ = ["Builder", "Exit", "Frame", "Loop"]


class Exit:
    """A place where control leaves a construct: the list that it ends, the bindings there, and the jump (None: it falls off the end).

    What must be set there is written when all exits are known; the jump comes after it. ``fork``: an if at the end of the list whose arms
    meet there only.
    """

    __slots__ = ("block", "env", "fork", "node")

    def __init__(self, block: list[Node], env: dict[str, Binding], node: Node | None, fork: Fork | None = None) -> None:
        self.block = block
        self.env = env
        self.node = node
        self.fork = fork


class Loop:
    """A loop around the statements being inferred. kind: "for", "while", "unrolled", "parallel", "sequential"."""

    __slots__ = ("breaks", "continues", "kind", "round_scope", "scope")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.breaks: list[Exit] = []
        self.continues: list[Exit] = []
        self.scope: Scope | None = None  # unrolled: what break leaves
        self.round_scope: Scope | None = None  # unrolled: what continue leaves


class Frame:
    """A function being inferred: the kernel, or a device function at one call."""

    __slots__ = ("caller", "env", "environment", "fn", "identity", "key", "loops", "regs", "returns", "rounds", "scope", "where")

    def __init__(self, fn: Function, environment: Environment, caller: Frame | None, identity: object, where: Loc | None) -> None:
        self.fn = fn
        self.environment = environment
        self.caller = caller
        self.identity = identity
        self.where = where  # the call
        self.key: tuple[object, ...] = () if caller is None else (*caller.key, *caller.rounds, where)
        self.env: dict[str, Binding] | None = {}  # None: not reachable
        self.regs: list[Thing | None] = [None] * fn.registers
        self.loops: list[Loop] = []
        self.rounds: list[int] = []  # of the unrolled loops around
        self.returns: list[Exit] = []
        self.scope: Scope | None = None


_FOLDED: Final = frozenset(
    (
        *("add", "sub", "mul", "div", "floordiv", "mod", "shl", "shr", "and", "or", "xor", "min", "max", "neg", "abs", "not", "lnot"),
        *("eq", "ne", "lt", "le", "gt", "ge"),
    )
)
_WEAK_DTYPE = {"int": i64, "uint": u64}
_PACK_F32 = struct.Struct("f")


def round_f32(value: float) -> float:
    """``value`` rounded to f32; beyond its range to infinity."""
    try:
        rounded: float = _PACK_F32.unpack(_PACK_F32.pack(value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return rounded


class Builder:
    """``block`` is the list that instructions are appended to; ``head`` the start of the current item, for arguments and shapes."""

    def __init__(self, kernel: str, target: Target, frame: Frame, weak_float: DType) -> None:
        self.kernel = kernel
        self.target = target
        self.frame = frame
        self.weak_float = weak_float
        self.block: list[Node] = []
        self.head: list[Node] = []
        self.head_cache: dict[tuple[object, ...], Instr] = {}
        self.in_parallel = False
        self.params: list[ArrayParam | ScalarParam | NoneParam] = []
        self.arg_instrs: list[Instr] = []
        # What is noted on the way; an abandoned pass over a loop's body takes its notes back.
        self.meets: list[tuple[int, DType]] = []
        self.written: list[int] = []
        self.uses: list[str] = []
        self.segment_atomics: list[Loc] = []
        self.refusals: list[CompileError] = []  # in passes that may not be the last: they count if the pass turns out to be
        self.passes = 0  # loops around that are inferred until their types settle
        self.loop_types: dict[tuple[object, ...], dict[str, list[Binding]]] = {}
        self.free: dict[tuple[int, tuple[str, ...]], Thing] = {}
        self.loop_depth = 0

    # -- errors

    def fail(
        self, message: str, loc: Loc | None, hint: str = "", kind: type[CompileError] = CompileTypeError, frame: Frame | None = None
    ) -> NoReturn:
        raise self.refusal(message, loc, hint, kind, frame)

    def refusal(
        self, message: str, loc: Loc | None, hint: str = "", kind: type[CompileError] = CompileTypeError, frame: Frame | None = None
    ) -> CompileError:
        """The error to raise, or to give to ``refuse_later`` where inference can go on."""
        frame = frame or self.frame
        trail = []
        step: Frame | None = frame
        while step is not None and step.where is not None:
            trail.append(f"In '{step.fn.name}', called at {step.where.file}:{step.where.line}.")
            step = step.caller
        return error(kind, message, kernel=self.kernel, source=frame.fn.source, loc=loc, hint=hint, trail=trail)

    # -- marks, for passes that are abandoned

    def mark(self) -> tuple[int, int, int, int, int]:
        return len(self.meets), len(self.written), len(self.uses), len(self.segment_atomics), len(self.refusals)

    def rewind(self, mark: tuple[int, int, int, int, int]) -> None:
        del self.meets[mark[0] :]
        del self.written[mark[1] :]
        del self.uses[mark[2] :]
        del self.segment_atomics[mark[3] :]
        del self.refusals[mark[4] :]

    def settle(self) -> None:
        """The types of a loop are final, unless a loop around it takes another pass: what was refused in the last pass is refused."""
        if self.passes == 0 and self.refusals:
            raise self.refusals[0]

    # -- instructions

    def emit(self, op: str, type: DType | None, args: tuple[Instr, ...] = (), attr: Attr = None, loc: Loc | None = None) -> Instr:
        instr = Instr(op, type, args, attr, loc)
        self.block.append(instr)
        return instr

    def value(self, op: str, type: Type, args: tuple[Instr, ...], loc: Loc, attr: Attr = None) -> Num:
        """The number that an instruction of this type computes; a constant where its operands are."""
        if args and args[0].op == "const" and op in _FOLDED and all(a.op == "const" for a in args):
            return Num(type, const=folded(op, [a.attr for a in args], self.dtype_of(type)))
        instr = Instr(op, self.dtype_of(type), args, attr, loc)
        self.block.append(instr)
        return Num(type, instr)

    def dtype_of(self, type: Type) -> DType:
        """The dtype that a type has where nothing else decides."""
        if isinstance(type, Weak):
            return self.weak_float if type.is_float else _WEAK_DTYPE[type.name]
        return type

    def at_head(self, op: str, type: DType, attr: Attr, key: tuple[object, ...], args: tuple[Instr, ...] = ()) -> Instr:
        """An instruction at the start of the current item, once."""
        instr = self.head_cache.get(key)
        if instr is None:
            instr = self.head_cache[key] = Instr(op, type, args, attr)
            self.head.append(instr)
        return instr

    def argument(self, param: ScalarParam) -> Instr:
        known = self.head_cache.get(("arg", param.index))
        if known is None:
            known = self.at_head("arg", param.dtype, param, ("arg", param.index))
            self.arg_instrs.append(known)
        return known

    def shape(self, array: ArrayParam, dim: int) -> Instr:
        return self.at_head("shape", i64, (array, dim), ("shape", array.index, dim))

    # -- constants and conversions

    def constant(self, num: Num, dtype: DType, loc: Loc | None) -> Instr:
        """A constant number in the given dtype. A weak integer must fit; a strong one wraps."""
        return self.emit("const", dtype, (), self.number_in(num, dtype, loc), loc)

    def number_in(self, num: Num, dtype: DType, loc: Loc | None) -> int | float | bool:
        value = num.const
        assert value is not None
        if dtype == BOOL:
            return bool(value)
        if dtype.is_float:
            return self.float_constant(value, dtype)
        if isinstance(value, float):
            from ..ir.arith import cast

            return cast(value, dtype)
        value = int(value)
        if not holds(dtype, value):
            if isinstance(num.type, Weak):
                self.refuse_later(self.unfit(value, dtype, loc))  # else inference goes on: the type of the result is known
            value = wrap(value, dtype)
        return value

    def float_constant(self, value: int | float | bool, dtype: DType) -> float:
        if isinstance(value, float):
            return value if dtype is f64 else round_f32(value)
        if -(1 << 53) <= value <= 1 << 53:
            return float(value) if dtype is f64 else round_f32(float(value))
        from ..ir.arith import cast  # rounds once, however large

        return float(cast(value, dtype))

    def refuse_later(self, failure: CompileError) -> None:
        """Raises, or notes the refusal in a pass that may not be the last."""
        if not self.passes:
            raise failure
        self.refusals.append(failure)

    def some(self, dtype: DType, loc: Loc | None) -> Num:
        """A number of the type that a refused operation has whatever it works on."""
        return Num(dtype, self.emit("const", dtype, (), False if dtype is BOOL else 0.0 if dtype.is_float else 0, loc))

    def unfit(self, value: int, dtype: DType, loc: Loc | None) -> CompileError:
        """A constant that a dtype does not hold."""
        shown = str(value) if abs(value) < 1 << 128 else "the constant"
        return self.refusal(
            f"{shown} does not fit {dtype}, whose range is {dtype.min} to {dtype.max}.",
            loc,
            f"Write a number in that range, {dtype}({shown}) to wrap it, or compute in a wider type." if shown != "the constant" else "",
        )

    def coerce(self, num: Num, dtype: DType, loc: Loc | None) -> Instr:
        """The instruction of a number in the dtype that it meets. Notes the range of a parameter that meets a narrower integer type."""
        if num.const is not None:
            return self.constant(num, dtype, loc)
        instr = num.instr
        assert instr is not None
        if instr.type is dtype:
            return instr
        if num.param >= 0:
            if dtype.is_int and isinstance(num.type, Weak):
                self.meets.append((num.param, dtype))
            return self.at_head("cast", dtype, None, ("cast", num.param, dtype.name), (instr,))
        return self.emit("cast", dtype, (instr,), None, loc)

    def own(self, num: Num, loc: Loc | None) -> Instr:
        """The instruction of a number in its own dtype."""
        return self.coerce(num, self.dtype_of(num.type), loc)

    def truth(self, thing: Thing, loc: Loc) -> Num:
        """The truth of a number, as Python's."""
        if not isinstance(thing, Num):
            self.no_truth(thing, loc)
        if thing.const is not None:
            return Num(BOOL, const=bool(thing.const))
        if thing.type is BOOL:
            return thing
        instr = self.own(thing, loc)
        assert instr.type is not None
        zero = self.emit("const", instr.type, (), 0.0 if instr.type.is_float else 0, loc)
        return self.value("ne", BOOL, (instr, zero), loc)

    # -- defined by the classes above

    def no_truth(self, thing: Thing, loc: Loc) -> NoReturn:
        raise NotImplementedError

    def run(self, items: Sequence[Item], join: bool = True) -> Walk[Fork | None]:
        raise NotImplementedError

    def dead_end(self, node: Node, exits: list[Exit]) -> None:
        """Leaves a construct by ``node``: nothing after it here is reachable."""
        assert self.frame.env is not None
        exits.append(Exit(self.block, self.frame.env, node))
        self.frame.env = None

    def end_iteration(self, loc: Loc) -> None:
        self.block.append(Continue(loc))
        self.frame.env = None


def folded(op: str, values: list[Any], dtype: DType) -> int | float | bool:
    """What an operation on constants computes: what it would on the device."""
    from ..ir import arith

    if op in arith.COMPARE:
        return arith.COMPARE[op](values[0], values[1])
    return arith.UNARY[op](values[0], dtype) if len(values) == 1 else arith.BINARY[op](values[0], values[1], dtype)


def wrap(value: int, dtype: DType) -> int:
    """``value`` modulo 2^N, in the range of the integer type."""
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.is_signed and value > dtype.max else value


def weak_constant(value: int | float | bool) -> Num:
    """A Python number."""
    if isinstance(value, bool):
        return Num(BOOL, const=value)
    return Num(W_FLOAT if isinstance(value, float) else W_INT, const=value)
