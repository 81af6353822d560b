"""Inference of names, attributes, tuples, indexing, and stores."""

from __future__ import annotations

import math
from typing import Final, NoReturn

from ..errors import CompileNameError, CompileNotImplementedError, CompileTypeError, CompileValueError
from ..ir.nodes import ArrayParam, Instr, Loc, ScalarParam, ScratchArray, SharedArray, Table
from ..types import BOOL, DType, Layout, i64, u8
from .builder import weak_constant, wrap
from .diagnostics import did_you_mean
from .hir import Op, Path
from .meaning import Constant, DTypeMeaning, Meaning, ModuleMeaning, Opaque, TupleMeaning
from .names import FUNCTIONS, NUMPY_NAMES
from .operators import SYMBOL, Operators
from .promote import holds
from .refusals import INSTEAD
from .values import (
    NONE,
    REFUSED,
    W_INT,
    ArrayRef,
    Binding,
    Flat,
    NoneValue,
    Num,
    RangeValue,
    Reduced,
    Shape,
    Text,
    Texture,
    Thing,
    Tuple,
    Type,
    Unusable,
    Weak,
    canonical,
    describe,
)

__all__ = ["Expressions"]

_LIBRARIES: Final = ("tack", "math", "numpy")
_INDEX_NAMES: Final = "ijklmnop"
_MAX_DEPTH: Final = 100  # of tuples in tuples: what looks into them calls itself
_UNNAMED: Final = ("local", "shared")  # what scratch arrays are called before they are bound to a name
_MAX_SELECTS: Final = 16  # items of a tuple that is indexed at run time; longer ones are tables


def _cure(ref: ArrayRef, update: str) -> str:
    """What to write instead of a float for an element of an integer array."""
    if not update:
        return f"Write int(...) or {ref.dtype}(...) to convert."
    place = f"{ref.name}[...]"
    floor = f", or {place} //= ..." if update == "div" else ""
    return f"Write {place} = int({place} {SYMBOL[update]} ...) to convert{floor}."


class Expressions(Operators):
    # -- names

    def op_const(self, op: Op) -> None:
        value = op.attr
        if isinstance(value, (bool, int, float)):
            self.frame.regs[op.dst] = weak_constant(value)
        elif isinstance(value, str):
            self.frame.regs[op.dst] = Text((value,))
        else:
            self.frame.regs[op.dst] = NONE

    def op_path(self, op: Op) -> None:
        frame = self.frame
        path: Path = op.attr
        env = frame.env
        assert env is not None
        binding = env.get(path[0])
        if binding is None:
            frame.regs[op.dst] = self.unbound(path, op.loc) if path[0] in frame.fn.bits else self.free_name(path, op.loc)
            return
        thing = binding.thing
        if thing.__class__ is Reduced:
            thing = self.read_reduced(thing)
        elif thing.__class__ is Unusable:
            self.unusable(path[0], thing, op.loc)
        elif thing is REFUSED:
            frame.regs[op.dst] = REFUSED
            return
        for name in path[1:]:
            thing = self.attribute(thing, name, op.loc)
        frame.regs[op.dst] = thing

    def read_reduced(self, thing: Thing) -> Thing:
        assert isinstance(thing, Reduced)
        return Num(thing.type, self.emit("get", thing.var.type, (), thing.var))

    def unbound(self, path: Path, loc: Loc) -> NoReturn:
        self.fail(f"'{path[0]}' is read before it is assigned.", loc, "Assign it first.", CompileNameError)

    def unusable(self, name: str, thing: Unusable, loc: Loc) -> NoReturn:
        shown = "the value" if name.startswith(("%", "<")) else f"'{name}'"
        if thing.kind == "unbound":
            self.fail(f"{shown} may be unbound here: {thing.text}", loc, thing.hint, CompileNameError)
        self.fail(f"{shown} {thing.text}", loc, thing.hint, CompileTypeError)

    def free_name(self, path: Path, loc: Loc) -> Thing:
        """What a captured name means; asked of the environment once per function."""
        key = (id(self.frame.environment), path)
        known = self.free.get(key)
        if known is not None:
            return known
        meaning = self.frame.environment.lookup(path[0])
        if meaning is None:
            hint = f"Write tack.{path[0]}." if path[0] in FUNCTIONS else ""
            hint = hint or did_you_mean(path[0], self.frame.fn.names)
            self.fail(f"name '{path[0]}' is not defined.", loc, hint, CompileNameError)
        thing = self.from_meaning(meaning, path[0], loc)
        for name in path[1:]:
            thing = self.attribute(thing, name, loc)
        self.free[key] = thing
        return thing

    def from_meaning(self, meaning: Meaning, name: str, loc: Loc) -> Thing:
        if isinstance(meaning, Constant):
            if meaning.dtype is None:
                return weak_constant(meaning.value)
            dtype = canonical(meaning.dtype)
            return Num(dtype, const=self.strong_constant(meaning.value, dtype))
        if isinstance(meaning, TupleMeaning):
            return Tuple(tuple(self.from_meaning(item, name, loc) for item in meaning.items))
        if isinstance(meaning, DTypeMeaning):
            return DTypeMeaning(canonical(meaning.dtype))
        if isinstance(meaning, Opaque):
            if meaning.kind == "none":
                return NONE
            if meaning.kind == "array":
                self.fail(
                    f"the array '{name}' cannot be captured.", loc, f"Pass it as an argument: add the parameter '{name}' to the kernel."
                )
        return meaning

    def strong_constant(self, value: int | float | bool, dtype: DType) -> int | float | bool:
        if dtype is BOOL:
            return bool(value)
        if dtype.is_float:
            return self.float_constant(value, dtype)
        if isinstance(value, float):
            from ..ir.arith import cast

            return cast(value, dtype)
        return wrap(int(value), dtype)

    # -- attributes

    def op_attribute(self, op: Op) -> None:
        self.frame.regs[op.dst] = self.attribute(self.thing(op.args[0]), str(op.attr), op.loc)

    def thing(self, register: int) -> Thing:
        thing = self.frame.regs[register]
        assert thing is not None
        return thing

    def attribute(self, thing: Thing, name: str, loc: Loc) -> Thing:  # noqa: RET503 - fail() does not return
        if isinstance(thing, ArrayRef):
            return self.array_attribute(thing, name, loc)
        if isinstance(thing, Texture):
            return self.texture_attribute(thing, name, loc)
        if isinstance(thing, ModuleMeaning):
            meaning = self.frame.environment.attribute(thing, name)
            if meaning is None:
                self.fail(
                    f"'{thing.name}' has no attribute '{name}' that a kernel can use.",
                    loc,
                    self.near_attribute(thing, name),
                    CompileNameError,
                )
            return self.from_meaning(meaning, f"{thing.name}.{name}", loc)
        if isinstance(thing, DTypeMeaning):
            dtype = thing.dtype
            if name in ("min", "max") and dtype.is_int:
                return weak_constant(dtype.min if name == "min" else dtype.max)
            if name == "itemsize":
                return weak_constant(dtype.itemsize)
            if name == "bits":
                return weak_constant(dtype.bits)
        if isinstance(thing, Num) and name == "dtype":
            return DTypeMeaning(self.dtype_of(thing.type))
        if isinstance(thing, Opaque):
            self.unusable_capture(thing, loc)
        hint = INSTEAD.get(name, f"Write tack.{name}(...)." if name in FUNCTIONS else "")
        self.fail(f"{describe(thing)} has no attribute '{name}' in a kernel.", loc, hint, CompileNotImplementedError)

    def texture_attribute(self, texture: Texture, name: str, loc: Loc) -> Thing:
        raise NotImplementedError

    def near_attribute(self, module: ModuleMeaning, name: str) -> str:
        """What to write instead of a name that a module does not have for kernels."""
        if module.name not in _LIBRARIES:
            return ""
        return INSTEAD.get(name) or did_you_mean(name, {*FUNCTIONS, *(NUMPY_NAMES if module.name == "numpy" else ())})

    def array_attribute(self, ref: ArrayRef, name: str, loc: Loc) -> Thing:  # noqa: RET503 - fail() does not return
        if name == "shape":
            return Shape(ref)
        if name == "ndim":
            return weak_constant(ref.rank)
        if name == "dtype":
            return DTypeMeaning(ref.dtype)
        if name == "flat":
            return Flat(ref)
        if name == "size":
            return self.size_of(ref, loc)
        hint = "Arrays in kernels have shape, ndim, size, dtype and flat."
        if name == "T":
            hint = f"Swap the indices ({ref.name}[j, i]), or pass {ref.name}.T as an argument: it is a view."
        elif name in ("sum", "min", "max", "mean"):
            hint = "Call it outside the kernel, or loop over the elements: s += a[i]."
        self.fail(f"the array '{ref.name}' has no attribute '{name}' in a kernel.", loc, hint, CompileNotImplementedError)

    def length(self, ref: ArrayRef, dim: int) -> Num:
        array = ref.array
        if isinstance(array, ScratchArray):
            return Num(W_INT, const=array.shape[dim])
        return Num(i64, self.shape(array, dim), index=True)

    def size_of(self, ref: ArrayRef, loc: Loc) -> Num:
        if isinstance(ref.array, ScratchArray):
            return Num(W_INT, const=math.prod(ref.array.shape))
        if ref.rank == 0:
            return Num(W_INT, const=1)
        instr = self.shape(ref.array, 0)
        for dim in range(1, ref.rank):
            instr = self.emit("mul", i64, (instr, self.shape(ref.array, dim)), None, loc)
        return Num(i64, instr, index=True)

    # -- tuples

    def op_tuple(self, op: Op) -> None:
        made = Tuple(tuple(self.thing(r) for r in op.args))
        if made.depth > _MAX_DEPTH:
            self.fail(f"tuples lie more than {_MAX_DEPTH} deep inside one another.", op.loc, "Keep the values in several names.")
        self.frame.regs[op.dst] = made

    def items_of(self, thing: Thing) -> tuple[Thing, ...] | None:
        """The items of what acts as a tuple; None where it is none."""
        if isinstance(thing, Tuple):
            return thing.items
        if isinstance(thing, Shape):
            return tuple(self.length(thing.ref, d) for d in range(thing.ref.rank))
        return None

    def op_unpack(self, op: Op) -> None:
        thing = self.thing(op.args[0])
        items = self.items_of(thing)
        count = op.attr
        assert isinstance(count, int)
        if items is None:
            hint = "Write h, w = a.shape for its lengths, or a[0], a[1] for elements." if isinstance(thing, ArrayRef) else ""
            self.fail(f"{describe(thing)} cannot be unpacked.", op.loc, hint)
        if len(items) != count:
            what = f"'{thing.ref.name}.shape'" if isinstance(thing, Shape) else "the tuple"
            self.fail(f"{what} has {items_text(len(items))} and is unpacked to {count} names.", op.loc)
        self.frame.regs[op.dst : op.dst + count] = items

    # -- indexing

    def op_index(self, op: Op) -> None:
        regs = self.frame.regs
        base = regs[op.args[0]]
        if base.__class__ is ArrayRef:
            indices = self.indices(base, [self.thing(r) for r in op.args[1:]], op.loc)
            regs[op.dst] = self.value("load", base.dtype, indices, op.loc, base.array)
            return
        assert base is not None
        regs[op.dst] = self.index(base, [self.thing(r) for r in op.args[1:]], op.loc)

    def index(self, base: Thing, things: list[Thing], loc: Loc) -> Thing:  # noqa: RET503 - fail() does not return
        if isinstance(base, Flat):
            ref = base.ref
            if isinstance(ref.array, ScratchArray):
                return self.value("load", ref.dtype, self.local_flat(ref.array, ref, things, loc), loc, ref.array)
            return self.value("load_flat", ref.dtype, (self.flat_index(ref, things, loc),), loc, ref.array)
        if isinstance(base, Shape) and len(things) == 1:
            dim = things[0]
            if not (isinstance(dim, Num) and isinstance(dim.const, int)):
                self.fail(
                    f"the dimension in {base.ref.name}.shape[...] must be known at compile time.",
                    loc,
                    f"Unpack it: {self.unpacking(base.ref)}.",
                )
            d = int(dim.const)
            if not -base.ref.rank <= d < base.ref.rank:
                self.fail(f"'{base.ref.name}.shape' has {items_text(base.ref.rank)}; [{d}] is outside.", loc)
            return self.length(base.ref, d % base.ref.rank)
        if isinstance(base, Tuple) and len(things) == 1:
            return self.index_tuple(base, things[0], loc)
        if isinstance(base, Opaque):
            self.unusable_capture(base, loc)
        self.fail(*self.no_array(base, "indexed", loc))

    @staticmethod
    def no_array(base: Thing, done: str, loc: Loc) -> tuple[str, Loc, str]:
        """What to say where something that is no array stands before brackets."""
        if isinstance(base, NoneValue):
            return f"None cannot be {done}.", loc, "Pass an array, or ask 'x is None' first."
        if isinstance(base, Num) and base.instr is not None and isinstance(base.instr.attr, ScalarParam):
            name = base.instr.attr.name
            return f"the argument '{name}' is {describe(base)} and cannot be {done}.", loc, "Pass an array, tack.array(...)."
        is_element = isinstance(base, Num) and base.instr is not None and base.instr.op == "load"
        hint = "Write a[i, j] with all indices in one pair of brackets." if is_element else ""
        return f"{describe(base)} cannot be {done}.", loc, hint

    @staticmethod
    def unpacking(ref: ArrayRef) -> str:
        names = ", ".join(f"n{d}" for d in range(ref.rank)) + ("," if ref.rank == 1 else "")
        return f"{names} = {ref.name}.shape"

    def indices(self, ref: ArrayRef, things: list[Thing], loc: Loc) -> tuple[Instr, ...]:
        """One i64 per dimension."""
        if len(things) == 1 and (things[0].__class__ is Tuple or things[0].__class__ is Shape):
            things = list(self.items_of(things[0]) or ())
        if len(things) != ref.rank:
            self.wrong_count(ref, len(things), loc)
        if len(things) == 1:
            only = things[0]
            if only.__class__ is Num and only.type is i64 and only.instr is not None:
                return (only.instr,)
        return tuple([self.one_index(ref, thing, dim, loc) for dim, thing in enumerate(things)])

    def one_index(self, ref: ArrayRef, thing: Thing, dim: int, loc: Loc) -> Instr:
        if not isinstance(thing, Num) or thing.type.is_float or thing.type is BOOL:
            hint = "Convert it with int(...)." if isinstance(thing, Num) else ""
            self.fail(f"index {dim} of the array '{ref.name}' must be an integer, not {describe(thing)}.", loc, hint)
        value = thing.const
        if value is None:
            assert thing.instr is not None
            if thing.type is i64:
                return thing.instr
            return self.coerce(Num(thing.type, thing.instr), i64, loc)
        value = int(value)
        if isinstance(ref.array, ScratchArray):
            length = ref.array.shape[dim]
            if not -length <= value < length:
                kind = "shared" if isinstance(ref.array, SharedArray) else "local"
                self.fail(
                    f"index {value} is outside of dimension {dim} of the {kind} array '{ref.name}', which has {length} elements.", loc
                )
            return self.emit("const", i64, (), value % length, loc)
        if not holds(i64, value):
            raise self.unfit(value, i64, loc)
        constant = self.emit("const", i64, (), value, loc)
        if value >= 0:
            return constant
        return self.emit("add", i64, (self.shape(ref.array, dim), constant), None, loc)

    def wrong_count(self, ref: ArrayRef, count: int, loc: Loc) -> NoReturn:
        dims = f"{ref.rank} dimension" + ("" if ref.rank == 1 else "s")
        full = f"{ref.name}[{', '.join(_INDEX_NAMES[: ref.rank]) if ref.rank else '()'}]"
        hint = f"Write {full} with one index per dimension"
        if count < ref.rank:
            hint += f", or {ref.name}.flat[{_INDEX_NAMES[0]}] for the flat position in a contiguous array"
        self.fail(f"the array '{ref.name}' has {dims} and is indexed with {count}.", loc, hint + ".")

    def flat_index(self, ref: ArrayRef, things: list[Thing], loc: Loc) -> Instr:
        if len(things) != 1:
            self.fail(f"'{ref.name}.flat' takes one index, not {len(things)}.", loc)
        array = ref.array
        if isinstance(array, ArrayParam) and array.layout != Layout.CONTIGUOUS:
            self.fail(
                f"'{ref.name}.flat' needs a contiguous array, and this one is a view with gaps or another order.",
                loc,
                f"Index it with {ref.rank} indices, or pass a copy: np.ascontiguousarray, or a.copy().",
                CompileValueError,
            )
        thing = things[0]
        if not isinstance(thing, Num) or thing.type.is_float or thing.type is BOOL:
            self.fail(
                f"the index of '{ref.name}.flat' must be an integer, not {describe(thing)}.",
                loc,
                "Convert it with int(...)." if isinstance(thing, Num) else "",
            )
        if thing.const is not None and thing.const < 0:
            size = self.coerce(self.size_of(ref, loc), i64, loc)
            return self.emit("add", i64, (size, self.coerce(thing, i64, loc)), None, loc)
        return self.coerce(Num(thing.type, thing.instr, thing.const), i64, loc)

    def local_flat(self, array: ScratchArray, ref: ArrayRef, things: list[Thing], loc: Loc) -> tuple[Instr, ...]:
        """A flat position of a local array as its indices."""
        rest = self.flat_index(ref, things, loc)
        indices: list[Instr] = []
        for n in reversed(array.shape[1:]):
            length = self.emit("const", i64, (), n, loc)
            indices.insert(0, self.emit("mod", i64, (rest, length), None, loc))
            rest = self.emit("floordiv", i64, (rest, length), None, loc)
        return (rest, *indices)

    def index_tuple(self, base: Tuple, thing: Thing, loc: Loc) -> Thing:
        items = base.items
        if not isinstance(thing, Num) or thing.type.is_float:
            self.fail(f"the index of a tuple must be an integer, not {describe(thing)}.", loc)
        if thing.const is not None:
            k = int(thing.const)
            if not -len(items) <= k < len(items):
                self.fail(f"index {k} is outside of the tuple, which has {items_text(len(items))}.", loc)
            return items[k]
        at = self.coerce(Num(thing.type, thing.instr), i64, loc)
        self.emit("inside", None, (at,), len(items), loc)
        return self.chosen(items, thing, loc)

    def chosen(self, items: tuple[Thing, ...], thing: Num, loc: Loc) -> Thing:
        """The item at a position that is known at run time; where it is wrong, some item."""
        rows = [item for item in items if isinstance(item, Tuple)]
        if items and len(rows) == len(items) and len({len(row.items) for row in rows}) == 1:  # a table: column by column
            columns = zip(*(row.items for row in rows), strict=True)
            return Tuple(tuple(self.chosen(column, thing, loc) for column in columns))
        numbers = [item for item in items if isinstance(item, Num)]
        if len(numbers) != len(items) or not items:
            self.fail(
                "a tuple is indexed at run time only if its items are numbers, or tuples of one length.",
                loc,
                "Use an index known at compile time.",
            )
        t = self.common_of("a tuple", numbers, loc)
        dtype = self.dtype_of(t)
        if len(items) > _MAX_SELECTS and all(number.const is not None for number in numbers):
            return self.look_up(numbers, t, thing, loc)
        position = self.own(thing, loc)
        assert position.type is not None
        result = self.coerce(numbers[-1], dtype, loc)
        for k in range(len(items) - 2, -1, -1):
            here = self.emit("eq", BOOL, (position, self.emit("const", position.type, (), k, loc)), None, loc)
            result = self.emit("select", dtype, (here, self.coerce(numbers[k], dtype, loc), result), None, loc)
        return Num(t, result)

    def look_up(self, numbers: list[Num], t: Type, position: Num, loc: Loc) -> Num:
        """An item of a long tuple of constants, from a table. Where a position is wrong, an item all the same."""
        element = u8 if t is BOOL else self.dtype_of(t)
        values = tuple(self.number_in(number, element, loc) for number in numbers)
        index = self.coerce(Num(position.type, position.instr), i64, loc)
        for op, limit in (("max", 0), ("min", len(values) - 1)):
            index = self.emit(op, i64, (index, self.emit("const", i64, (), limit, loc)), None, loc)
        item = self.value("table", element, (index,), loc, Table(values))
        return self.truth(item, loc) if t is BOOL else Num(t, item.instr)

    # -- stores

    def op_store(self, op: Op) -> None:
        base = self.thing(op.args[0])
        value = self.thing(op.args[1])
        things = [self.thing(r) for r in op.args[2:]]
        if isinstance(base, ArrayRef):
            instr = self.element(base, value, *op.attr)
            self.writes(base, op.loc)
            self.emit("store", None, (instr, *self.indices(base, things, op.loc)), base.array, op.loc)
        elif isinstance(base, Flat):
            ref = base.ref
            instr = self.element(ref, value, *op.attr)
            self.writes(ref, op.loc)
            if isinstance(ref.array, ScratchArray):
                self.emit("store", None, (instr, *self.local_flat(ref.array, ref, things, op.loc)), ref.array, op.loc)
            else:
                self.emit("store_flat", None, (instr, self.flat_index(ref, things, op.loc)), ref.array, op.loc)
        elif isinstance(base, (Tuple, Shape)):
            self.fail("a tuple cannot be changed.", op.loc, "Use tack.local_array(dtype, shape) for scratch memory.")
        else:
            if isinstance(base, Opaque):
                self.unusable_capture(base, op.loc)
            self.fail(*self.no_array(base, "stored to", op.loc))

    def element(self, ref: ArrayRef, value: Thing, loc: Loc, update: str = "") -> Instr:
        """A value converted to an array's element type, as a store does. ``update``: the operation of an augmented assignment."""
        if not isinstance(value, Num):
            if isinstance(value, Opaque):
                self.unusable_capture(value, loc)
            hint = ""
            if isinstance(value, ArrayRef):
                hint = f"Index it: {value.name}[{', '.join('ijkl'[: value.rank]) or '()'}]."
            self.fail(f"{ref.dtype} array '{ref.name}' cannot take {describe(value)}.", loc, hint)
        dtype = ref.dtype
        if value.type.is_float and dtype.is_int:
            self.fail(f"{dtype} array '{ref.name}' cannot take {describe(value)}.", loc, _cure(ref, update))
        if value.instr is not None and value.instr.type is dtype:
            return value.instr
        return self.coerce(value, dtype, loc)

    def writes(self, ref: ArrayRef, loc: Loc) -> None:
        array = ref.array
        if isinstance(array, ArrayParam):
            if array.read_only:
                self.fail(
                    f"the array '{ref.name}' is read-only, and the kernel writes to it.",
                    loc,
                    "Pass a writable array, e.g. a copy.",
                    CompileValueError,
                )
            self.written.append(array.index)

    # -- conversions by annotation

    def op_convert(self, op: Op) -> None:
        path: Path = op.attr
        self.frame.regs[op.dst] = self.convert(self.thing(op.args[0]), path, op.loc)

    def convert(self, thing: Thing, path: Path | None, loc: Loc) -> Thing:
        """A number with an annotation that is a dtype is converted to it; any other annotation is ignored, but for a name that is lost."""
        if path is None or not isinstance(thing, Num) or path[0] in self.frame.fn.bits:
            return thing
        meaning: Meaning | None = self.frame.environment.lookup(path[0])
        if meaning is None and path[0][0] == ":":  # a factory's dtype, perhaps: ignoring it would change results in silence
            self.fail(
                f"nothing is known of the annotation '{'.'.join(path[0].split(':')[2:])}'.",
                loc,
                "A name of an enclosing function is kept only where the body uses it: convert with it there, v = dtype(v).",
            )
        for name in path[1:]:
            meaning = self.frame.environment.attribute(meaning, name) if isinstance(meaning, ModuleMeaning) else None
        if not isinstance(meaning, DTypeMeaning):
            return thing
        dtype = canonical(meaning.dtype)
        if thing.const is not None and not (thing.type.is_float and dtype.is_int):
            if dtype.is_int and isinstance(thing.type, Weak) and not holds(dtype, int(thing.const)):
                raise self.unfit(int(thing.const), dtype, loc)
            return Num(dtype, const=self.strong_constant(thing.const, dtype))
        return Num(dtype, self.coerce(thing, dtype, loc))

    def op_expression(self, op: Op) -> None:
        thing = self.thing(op.args[0])
        if isinstance(thing, Opaque):
            self.unusable_capture(thing, op.loc)

    def op_bind(self, op: Op) -> None:
        env = self.frame.env
        assert env is not None
        thing = self.bindable(self.thing(op.args[0]), op.loc)
        name = str(op.attr)
        if isinstance(thing, ArrayRef) and isinstance(thing.array, ScratchArray) and thing.name in _UNNAMED and name[0] not in "%<":
            thing.name = thing.array.name = name
        env[name] = Binding(thing, op.loc)

    def bindable(self, thing: Thing, loc: Loc) -> Thing:
        if isinstance(thing, ModuleMeaning):  # what is asked of it there is not seen among the captured names
            self.fail(
                f"the module '{thing.name}' cannot be kept in a name or passed to a function.",
                loc,
                f"Write {thing.name}.x where x is needed.",
            )
        if isinstance(thing, (RangeValue, Text)):
            self.fail(
                f"{describe(thing)} cannot be kept in a name.",
                loc,
                "Write it in the for statement." if isinstance(thing, RangeValue) else "",
            )
        return thing


def items_text(count: int) -> str:
    return f"{count} item{'' if count == 1 else 's'}"
