"""A slow, obvious interpreter of the IR on Python numbers: the oracle that generated code is compared with.

Arrays are any buffers with a shape and strides (NumPy arrays, memoryviews, CPU arrays of tack), read and written in place through
``memoryview``. Every index is checked. Parallel loops run their iterations one after another, in order or shuffled; reductions
combine in the order that the language fixes, so that their floats can be compared bit for bit. Loops that use groups run them as
``ir.groups`` does.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ..types import BOOL, DType, i64
from . import arith
from .arith import Number
from .nodes import (
    Array,
    ArrayParam,
    Block,
    Break,
    Continue,
    Extent,
    For,
    Function,
    If,
    Instr,
    Item,
    Kernel,
    Leave,
    Loc,
    Node,
    Parallel,
    Param,
    Reduction,
    ScalarParam,
    Scope,
    ScratchArray,
    Segment,
    Table,
    Var,
    While,
)
from .nodes import Sequence as SequenceItem
from .records import filled
from .reduction import BLOCK_SIZE, BLOCKS, WIDTH
from .uniformity import COLLECTIVES, uses_groups

__all__ = [
    "InterpreterError",
    "Machine",
    "MathLibrary",
    "evaluate",
    "evaluate_extent",
    "run",
    "updated",
]

MathLibrary: TypeAlias = "Callable[[str, DType], Function | None]"
"""The typed function that computes a math function of a float type, or None if there is none."""


def _print(text: str) -> None:
    print(text, end="")


class InterpreterError(Exception):
    """The IR does what no verified kernel may do, e.g. reads a variable that was never set."""


def run(
    kernel: Kernel,
    args: Sequence[Any],
    *,
    math_library: MathLibrary | None = None,
    shuffle: random.Random | None = None,
    output: Callable[[str], object] = _print,
) -> Number | None:
    """Runs ``kernel`` on ``args`` (buffers and Python numbers, in parameter order); the arrays are written in place.

    ``math_library`` gives tack's own functions, for answers that match generated code bit for bit; without it, Python's ``math`` in
    f64, rounded once. ``shuffle`` runs each parallel loop's iterations (or the blocks of its reductions) in its own order.
    ``output`` takes what the kernel prints, line ends included.
    Answers the kernel's result. Raises IndexError naming kernel, array, index and shape; AssertionError where the kernel asserts.
    """
    machine = Machine(kernel.name, math_library, output)
    return machine.kernel(kernel, args, shuffle)


def evaluate(function: Function, args: Sequence[Number], *, math_library: MathLibrary | None = None) -> tuple[Number, ...]:
    """The results of a device function for scalar arguments of its parameters' types."""
    return Machine(function.name, math_library, _print).call(function, args)


def evaluate_extent(extent: Extent, args: Sequence[Any], sequences: Sequence[int] = ()) -> int:
    """What an extent is for these arguments: 64-bit integers that wrap; ``x // 0`` and ``x % 0`` are 0. ``sequences``: outermost first."""
    stack: list[int] = []
    for op, arg, dim, value in extent.terms:
        if op == "constant":
            stack.append(value)
        elif op == "shape":
            stack.append(_shape(memoryview(args[arg]))[dim])
        elif op == "scalar":
            stack.append(int(arith.cast(_plain(args[arg]), i64)))
        elif op == "sequence":
            stack.append(sequences[arg])
        elif op == "neg":
            stack.append(arith.wrap(-stack.pop(), i64))
        elif op in ("popcount", "clz"):
            stack.append(arith.BITS[op](stack.pop(), i64))
        elif op == "select":
            other, chosen, cond = stack.pop(), stack.pop(), stack.pop()
            stack.append(chosen if cond else other)
        elif op in arith.COMPARE:
            right, left = stack.pop(), stack.pop()
            stack.append(int(arith.COMPARE[op](left, right)))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(int(arith.BINARY[op](left, right, i64)))
    (result,) = stack
    return result


@dataclass(eq=False, slots=True)
class _Frame:
    """A block being executed, and what to do at its end."""

    block: Block
    node: Node | None = None  # the For, While or Scope whose body (or test) this is
    role: str = "plain"  # plain, body, test
    position: int = 0
    values: Iterator[int] = field(default_factory=lambda: iter(()))  # a For's remaining values of its variable


class EndIteration(Exception):  # noqa: N818 - not an error
    """Continue outside any sequential loop."""


class Machine:
    """Runs one iteration at a time."""

    def __init__(self, name: str, math_library: MathLibrary | None, output: Callable[[str], object]) -> None:
        self.name = name
        self.math_library = math_library
        self.output = output
        self.arrays: dict[int, memoryview] = {}
        self.scalars: dict[int, Number] = {}
        self.vars: dict[Var, Number] = {}
        self.locals: dict[ScratchArray, list[Number]] = {}
        self.values: dict[Instr, Number] = {}
        self.group = 0  # threads of a group

    # -- kernels

    def kernel(self, kernel: Kernel, args: Sequence[Any], shuffle: random.Random | None) -> Number | None:
        if len(args) != len(kernel.params):
            raise TypeError(f"kernel {self.name!r} takes {len(kernel.params)} arguments, got {len(args)}")
        for param, value in zip(kernel.params, args, strict=True):
            self.bind(param, value)
        self.group = int(str(kernel.options.get("block", 0)))
        self.items(kernel.items, args, [], shuffle)
        return None if kernel.result is None else self.read(kernel.result)

    def bind(self, param: Param, value: Any) -> None:
        if isinstance(param, ArrayParam):
            view = memoryview(value)
            if view.ndim != param.rank or view.itemsize != param.dtype.itemsize:
                raise TypeError(f"kernel {self.name!r}: {param.name!r} must be {param.dtype.name} of rank {param.rank}")
            self.arrays[param.index] = view
        elif isinstance(param, ScalarParam):
            number = _plain(value)
            if param.kind != "strong" and param.low is not None and param.high is not None and not param.low <= number <= param.high:
                raise OverflowError(f"kernel {self.name!r}: {param.name!r} is {number}, must be in [{param.low}, {param.high}]")
            self.scalars[param.index] = arith.cast(number, param.dtype)
        elif value is not None:
            raise TypeError(f"kernel {self.name!r}: {param.name!r} must be None")

    def items(self, items: list[Item], args: Sequence[Any], sequences: list[int], shuffle: random.Random | None) -> None:
        for item in items:  # recursion on tack.sequential only, which is a few levels deep
            if isinstance(item, Segment):
                if uses_groups(item.body):
                    from . import groups  # which is made of this module

                    groups.run_alone(self, item.body, self.group)
                else:
                    self.block(item.body)
            elif isinstance(item, Parallel):
                self.parallel(item, args, sequences, shuffle)
            elif isinstance(item, SequenceItem):
                for value in _steps(*(evaluate_extent(e, args, sequences) for e in (item.start, item.stop, item.step))):
                    self.vars[item.var] = value
                    self.items(item.items, args, [*sequences, value], shuffle)

    def parallel(self, loop: Parallel, args: Sequence[Any], sequences: list[int], shuffle: random.Random | None) -> None:
        ranges = [
            _steps(*(evaluate_extent(e, args, sequences) for e in bounds)) for bounds in zip(loop.start, loop.stop, loop.step, strict=True)
        ]
        before = dict(self.vars)
        if not loop.reductions:
            iterations: Iterable[tuple[int, ...]] = itertools.product(*ranges)
            if shuffle is not None:
                order = list(iterations)
                shuffle.shuffle(order)
                iterations = order
            if uses_groups(loop.body):
                from . import groups

                groups.run_loop(self, loop, list(itertools.product(*ranges)), self.group, shuffle)
                iterations = ()
            for indices in iterations:
                self.iteration(loop, indices, before)
            self.vars = before
            return
        reductions = loop.reductions
        totals = [self.read(r.var) for r in reductions]
        blocks = list(_blocks([len(r) for r in ranges]))
        partials: dict[int, list[Number]] = {}
        for number in shuffle.sample(range(len(blocks)), len(blocks)) if shuffle else range(len(blocks)):
            running = [[arith.identity(r.op, r.var.type) for r in reductions] for _ in range(WIDTH)]
            for position, slot in blocks[number]:
                indices = tuple(r[k] for r, k in zip(ranges, position, strict=True))
                self.iteration(loop, indices, before | {r.var: v for r, v in zip(reductions, running[slot], strict=True)})
                running[slot] = [self.read(r.var) for r in reductions]
            while len(running) > 1:
                half = len(running) // 2
                running = [_combine(reductions, running[k], running[k + half]) for k in range(half)]
            partials[number] = running[0]
        for number in range(len(blocks)):
            totals = _combine(reductions, totals, partials[number])
        self.vars = before | {r.var: v for r, v in zip(reductions, totals, strict=True)}

    def iteration(self, loop: Parallel, indices: tuple[int, ...], before: dict[Var, Number]) -> None:
        self.vars = dict(before)
        self.locals = {}
        self.vars.update(zip(loop.indices, indices, strict=True))
        with contextlib.suppress(EndIteration):
            self.block(loop.body)
        self.locals = {}

    def call(self, function: Function, args: Sequence[Number]) -> tuple[Number, ...]:
        for var, value in zip(function.params, args, strict=True):
            self.vars[var] = value
        self.block(function.body)
        return tuple(self.read(v) for v in function.results)

    # -- statements

    def block(self, root: Block) -> None:
        for _ in self.steps(root):
            raise InterpreterError(f"{self.name}: a collective outside of a group")

    def steps(self, root: Block) -> Iterator[Instr]:
        """Runs a block with explicit frames, so that deep nesting needs no deep stack. Stops at each collective, for the group to meet."""
        frames = [_Frame(root)]
        while frames:
            frame = frames[-1]
            if frame.position == len(frame.block.body):
                frames.pop()
                self.ended(frame, frames)
                continue
            node = frame.block.body[frame.position]
            frame.position += 1
            if isinstance(node, Instr):
                if node.op in COLLECTIVES:
                    yield node
                else:
                    self.instr(node)
            elif isinstance(node, If):
                frames.append(_Frame(node.then if self.values[node.cond] else node.orelse))
            elif isinstance(node, For):
                bounds = (self.values[v] for v in (node.start, node.stop, node.step))
                self.next_round(_Frame(node.body, node, "body", 0, iter(_steps(*map(int, bounds)))), frames)
            elif isinstance(node, While):
                frames.append(_Frame(node.test, node, "test"))
            elif isinstance(node, Scope):
                frames.append(_Frame(node.body, node, "body"))
            elif isinstance(node, Leave):
                while frames.pop().node is not node.scope:
                    pass
            else:
                self.jump(node, frames)

    def ended(self, frame: _Frame, frames: list[_Frame]) -> None:
        """What follows the end of a block: a loop goes on, or runs its else."""
        node = frame.node
        if isinstance(node, For) and frame.role == "body":
            self.next_round(frame, frames)
        elif isinstance(node, While) and frame.role == "test":
            frames.append(_Frame(node.body, node, "body") if self.values[node.cond] else _Frame(node.orelse))
        elif isinstance(node, While) and frame.role == "body":
            frames.append(_Frame(node.test, node, "test"))

    def next_round(self, frame: _Frame, frames: list[_Frame]) -> None:
        loop = frame.node
        assert isinstance(loop, For)
        value = next(frame.values, None)
        if value is not None:
            self.vars[loop.var] = value
            frame.position = 0
            frames.append(frame)
        else:
            frames.append(_Frame(loop.orelse))

    def jump(self, node: Node, frames: list[_Frame]) -> None:
        while frames:
            frame = frames.pop()
            if isinstance(frame.node, (For, While)) and frame.role == "body":
                if isinstance(node, Continue):
                    self.ended(frame, frames)
                return
        if isinstance(node, Break):
            raise InterpreterError(f"{self.name}: break outside any loop")
        raise EndIteration

    # -- values

    def read(self, var: Var) -> Number:
        if var not in self.vars:
            raise InterpreterError(f"{self.name}: {var.name!r} is read before it is set")
        return self.vars[var]

    def instr(self, node: Instr) -> None:
        result = self.value(node, [self.values[a] for a in node.args])
        if node.type is not None:
            assert result is not None
            self.values[node] = result

    def value(self, node: Instr, args: list[Number]) -> Number | None:
        op, attr, t = node.op, node.attr, node.type
        if op == "const":
            assert isinstance(attr, (bool, int, float))
            return attr
        if op == "arg":
            assert isinstance(attr, ScalarParam)
            return self.scalars[attr.index]
        if op == "shape":
            assert isinstance(attr, tuple)
            assert isinstance(attr[0], ArrayParam)
            assert isinstance(attr[1], int)
            return self.shape(attr[0])[attr[1]]
        if op in ("get", "set"):
            assert isinstance(attr, Var)
            if op == "get":
                return self.read(attr)
            self.vars[attr] = args[0]
            return None
        if op in ("load", "store", "load_flat", "store_flat", "atomic"):
            return self.memory(node, args)
        if op in arith.COMPARE:
            return arith.COMPARE[op](args[0], args[1])
        if op in ("print", "assert_"):
            self.debugging(node, args)
            return None
        if op == "inside":
            assert isinstance(attr, int)
            if not 0 <= args[0] < attr:
                raise IndexError(f"Kernel '{self.name}': index {args[0]} is outside of the tuple of {attr} items")
            return None
        assert t is not None
        if op == "pow" and t.is_float:
            return self.math("pow", args, t, BOOL)
        if op in arith.BINARY:
            return arith.BINARY[op](args[0], args[1], t)
        if op in arith.UNARY:
            return arith.UNARY[op](args[0], t)
        if op == "select":
            return args[1] if args[0] else args[2]
        if op == "cast":
            return arith.cast(args[0], t)
        if op == "bitcast":
            source = node.args[0].type
            assert source is not None
            return arith.bitcast(args[0], source, t)
        if op == "fma":
            return arith.fma(float(args[0]), float(args[1]), float(args[2]), t)
        if op == "math":
            source = node.args[0].type
            assert source is not None
            return self.math(str(attr), args, source, t)
        if op == "sample":
            assert isinstance(attr, tuple)
            mode, texels = attr
            assert isinstance(texels, ArrayParam)
            return arith.sample(str(mode), [float(a) for a in args], self.shape(texels), lambda place: float(self.load(texels, place)))
        if op == "table":
            assert isinstance(attr, Table)
            return attr.values[int(args[0])]
        if op == "bits":
            return arith.BITS[str(attr)](*args, t)
        raise InterpreterError(f"{self.name}: no operation {op!r}")

    def math(self, name: str, args: list[Number], source: DType, result: DType) -> Number:
        if name in arith.FLOAT_CLASS:
            return arith.FLOAT_CLASS[name](float(args[0]))
        if name in arith.EXACT_MATH:
            return arith.round_to(arith.EXACT_MATH[name](*map(float, args)), source)
        if self.math_library is not None:
            function = self.math_library(name, source)
            if function is None:
                raise InterpreterError(f"{self.name}: no math function {name!r} of {source.name}")
            return Machine(f"{self.name}.{name}", self.math_library, self.output).call(function, args)[0]
        return arith.round_to(_python_math(name, list(map(float, args))), source)

    def debugging(self, node: Instr, args: list[Number]) -> None:
        skip = 0 if node.op == "print" else 1
        if skip and args[0]:
            return
        types = [a.type for a in node.args[skip:] if a.type is not None]
        text = filled(str(node.attr), args[skip:], types)
        if skip:
            raise AssertionError(f"kernel {self.name!r}{_at(node.loc)}: {text}")
        self.output(text)

    # -- memory

    def memory(self, node: Instr, args: list[Number]) -> Number | None:
        op, attr = node.op, node.attr
        if op == "atomic":
            assert isinstance(attr, tuple)
            assert isinstance(attr[1], (ArrayParam, ScratchArray))
            return self.atomic(str(attr[0]), attr[1], args, node)
        assert isinstance(attr, (ArrayParam, ScratchArray))
        values, index = (args[:1], args[1:]) if op.startswith("store") else ([], args)
        place = self.unflatten(attr, int(index[0]), node) if op.endswith("_flat") else tuple(map(int, index))
        self.check(attr, place, node)
        if op.startswith("load"):
            return self.load(attr, place)
        self.store(attr, place, values[0])
        return None

    def atomic(self, kind: str, array: Array, args: list[Number], node: Instr) -> Number:
        values = 2 if kind == "cas" else 1
        place = tuple(map(int, args[values:]))
        self.check(array, place, node)
        return self.update(kind, array, place, args)

    def update(self, kind: str, array: Array, place: tuple[int, ...], args: list[Number]) -> Number:
        old = self.load(array, place)
        self.store(array, place, updated(kind, old, args, array.dtype))
        return old

    def shape(self, array: Array) -> tuple[int, ...]:
        return array.shape if isinstance(array, ScratchArray) else _shape(self.arrays[array.index])

    def check(self, array: Array, place: tuple[int, ...], node: Instr) -> None:
        shape = self.shape(array)
        if not all(0 <= i < n for i, n in zip(place, shape, strict=True)):
            raise IndexError(f"kernel {self.name!r}{_at(node.loc)}: index {place} is outside {array.name!r} of shape {shape}")

    def unflatten(self, array: Array, flat: int, node: Instr) -> tuple[int, ...]:
        shape = self.shape(array)
        if not 0 <= flat < math.prod(shape):
            raise IndexError(f"kernel {self.name!r}{_at(node.loc)}: flat index {flat} is outside {array.name!r} of shape {shape}")
        place: list[int] = []
        for n in reversed(shape):
            flat, i = divmod(flat, n)
            place.insert(0, i)
        return tuple(place)

    def cells(self, array: ScratchArray) -> list[Number]:
        return self.locals.setdefault(array, [0.0 if array.dtype.is_float else 0] * math.prod(array.shape))

    def load(self, array: Array, place: tuple[int, ...]) -> Number:
        if isinstance(array, ScratchArray):
            return self.cells(array)[_flat(place, array.shape)]
        value: int | float = self.arrays[array.index][place]
        return float(value) if array.dtype.is_float else int(value)

    def store(self, array: Array, place: tuple[int, ...], value: Number) -> None:
        if isinstance(array, ScratchArray):
            self.cells(array)[_flat(place, array.shape)] = value
        else:
            self.arrays[array.index][place] = value  # type: ignore[assignment]


def _shape(view: memoryview) -> tuple[int, ...]:
    assert view.shape is not None
    return view.shape


def _blocks(counts: list[int]) -> Iterator[list[tuple[tuple[int, ...], int]]]:
    """The iterations of a reducing loop in blocks: each iteration's position, and which running result it contributes to."""
    total = math.prod(counts)
    size = max(-(-total // BLOCKS), BLOCK_SIZE)
    for begin in range(0, total, size):
        block = []
        for linear in range(begin, min(begin + size, total)):
            piece = max(begin, linear - linear % counts[-1])  # where the piece of the last dimension's row starts that lies in this block
            position: list[int] = []
            rest = linear
            for count in reversed(counts):
                rest, k = divmod(rest, count)
                position.insert(0, k)
            block.append((tuple(position), (linear - piece) % WIDTH))
        yield block


def _combine(reductions: list[Reduction], a: list[Number], b: list[Number]) -> list[Number]:
    return [arith.BINARY[r.op](x, y, r.var.type) for r, x, y in zip(reductions, a, b, strict=True)]


def _flat(place: tuple[int, ...], shape: tuple[int, ...]) -> int:
    position = 0
    for i, n in zip(place, shape, strict=True):
        position = position * n + i
    return position


def updated(kind: str, old: Number, args: list[Number], dtype: DType) -> Number:
    """What an atomic makes of an element that holds ``old``. ``args``: the value, of cas compare and value."""
    if kind == "cas":
        return args[1] if _bits(old, dtype) == _bits(args[0], dtype) else old
    return args[0] if kind == "exchange" else arith.BINARY[kind](old, args[0], dtype)


def _bits(value: Number, dtype: DType) -> Number:
    return arith.bitcast(value, dtype, _SAME_SIZE[dtype.bits]) if dtype.is_float else value


_SAME_SIZE: Final = {32: DType("u32", "u", 32), 64: DType("u64", "u", 64)}


def _steps(start: int, stop: int, step: int) -> range:
    return range(start, stop, step) if step else range(0)


def _plain(value: Any) -> Number:
    """A Python number of a Python or NumPy scalar."""
    if isinstance(value, (bool, int, float)) and type(value) in (bool, int, float):
        return value
    number = value.item() if hasattr(value, "item") else value
    if not isinstance(number, (bool, int, float)):
        raise TypeError(f"{value!r} is no number")
    return number


def _at(loc: Loc | None) -> str:
    return f" at line {loc.line}" if loc else ""


# --- Python's own math, where no library is given ---------------------------------------------------------------------------------


def _python_math(name: str, args: list[float]) -> float:
    """Python's math in f64, with IEEE's answers where Python raises."""
    try:
        return _PYTHON_MATH[name](*args)
    except OverflowError:
        return _overflow(name, args)
    except ValueError:
        return _domain(name, args)


def _overflow(name: str, args: list[float]) -> float:
    if name == "pow":
        negative = args[0] < 0.0 and math.fmod(args[1], 2.0) != 0.0
        return -math.inf if negative else math.inf
    return math.copysign(math.inf, args[0]) if name == "sinh" else math.inf


def _domain(name: str, args: list[float]) -> float:
    x = args[0]
    if name in ("log", "log2", "log10") and x == 0.0:
        return -math.inf
    if name == "log1p" and x == -1.0:
        return -math.inf
    if name == "atanh" and abs(x) == 1.0:
        return math.copysign(math.inf, x)
    if name == "pow" and x == 0.0:  # 0 ** negative
        odd = math.isfinite(args[1]) and math.fmod(args[1], 2.0) in (1.0, -1.0)
        return math.copysign(math.inf, x) if odd else math.inf
    return math.nan


def _cbrt(x: float) -> float:
    return math.cbrt(x)  # Python 3.11


def _rsqrt(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0.0 else 1.0 / math.sqrt(x)


_PYTHON_MATH: Final[dict[str, Callable[..., float]]] = {
    **{
        name: getattr(math, name)
        for name in (
            *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
            *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "hypot"),
        )
    },
    "cbrt": _cbrt,
    "rsqrt": _rsqrt,
}
