"""What a kernel's numbers are on the host: small classes with the kernel language's meaning, so that a kernel's text runs as plain Python.

Written from the language's rules alone and sharing no code with the compiler: an oracle. Strong numbers are ``I8`` ... ``F64``; weak ones
that are known at run time only are ``Int``, ``Float`` and ``Bool``; constants are Python's own numbers. Floats are NumPy scalars, whose
``floor_divide`` and ``remainder`` the language adopts. What Python cannot know, the type that paths have in common, is written into the
text by the generator: ``J_f32(x)`` converts to a join's type, ``C_f32(x)`` checks that a value has the type that the generator believes.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np

INTS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
FLOATS = ("f32", "f64")
STRONG = (*INTS, *FLOATS)
WEAK = ("bool", "int", "uint", "float")
BITS = {t: int(t[1:]) for t in STRONG}
LOW = {t: -(1 << (BITS[t] - 1)) if t[0] == "i" else 0 for t in INTS}
HIGH = {t: LOW[t] + (1 << BITS[t]) - 1 for t in INTS}
NUMPY: dict[str, Any] = {"f32": np.float32, "f64": np.float64}


class Refused(Exception):
    """The language refuses this, or the generator's idea of a type is not the one that came out."""


class Rules:
    """The one thing that types depend on beside operands: what a weak float is in this kernel."""

    weak_float = "f32"


def promote(a: str, b: str) -> str:
    """The common type of two; "index" is an i64 that becomes u64 where it meets u64."""
    if a == b and a != "index":
        return a
    if "index" in (a, b):
        other = b if a == "index" else a
        return "u64" if other == "u64" else "i64" if other == "index" else promote("i64", other)
    if a in WEAK and b in WEAK:
        return max(a, b, key=WEAK.index)
    if a in WEAK or b in WEAK:
        weak, strong = (a, b) if a in WEAK else (b, a)
        return Rules.weak_float if weak == "float" and strong in INTS else strong
    if a in FLOATS or b in FLOATS:
        return "f64" if "f64" in (a, b) else "f32"
    fits = [t for t in INTS if LOW[t] <= min(LOW[a], LOW[b]) and HIGH[t] >= max(HIGH[a], HIGH[b])]
    if not fits:
        raise Refused(f"{a} with {b}")
    return min(fits, key=BITS.__getitem__)


def promote_all(types: Iterable[str]) -> str:
    """The common type of the paths that meet in one place: that of the set of their types."""
    names = set(types)
    strong = names.difference(WEAK)
    if not strong:
        return max(names, key=WEAK.index)
    floats = strong.intersection(FLOATS)
    if floats:
        return max(floats)
    if "float" in names:
        return Rules.weak_float
    low, high = min(LOW[t] for t in strong), max(HIGH[t] for t in strong)
    fits = [t for t in INTS if LOW[t] <= low and HIGH[t] >= high]
    if not fits:
        raise Refused(" with ".join(sorted(names)))
    return min(fits, key=lambda t: (BITS[t], t))


def wrapped(value: int, t: str) -> int:
    return (value - LOW[t]) % (1 << BITS[t]) + LOW[t]


def rounded(value: int, t: str) -> Any:
    """An integer rounded once to a float type."""
    spare = abs(value).bit_length() - 53
    if t == "f32" and spare > 0:  # to 53 bits, the last of which tells whether anything was cut off
        lost = abs(value) & ((1 << spare) - 1)
        value = (1 if value >= 0 else -1) * ((abs(value) >> spare | bool(lost)) << spare)
    try:
        return NUMPY[t](float(value))
    except OverflowError:
        return NUMPY[t](math.copysign(math.inf, value))


def dtype_of(t: str) -> str:
    """The dtype that a type has where nothing else decides."""
    return {"index": "i64", "int": "i64", "uint": "u64", "float": Rules.weak_float}.get(t, t)


def type_of(x: Any) -> str:
    if isinstance(x, Number):
        return x.t
    for kind, name in ((bool, "bool"), (int, "int"), (float, "float")):
        if isinstance(x, kind):
            return name
    raise Refused(f"{type(x).__name__} is no number")


def raw(x: Any) -> Any:
    return x.v if isinstance(x, Number) else x


def cast(x: Any, t: str) -> Any:
    """The plain value of ``x`` as a cast to ``t`` gives it."""
    v = raw(x)
    d = dtype_of(t)
    if d == "bool":
        return bool(v != 0)
    if d in FLOATS:
        return NUMPY[d](v) if isinstance(v, (float, np.floating)) else rounded(int(v), d)
    if isinstance(v, (float, np.floating)):
        if v != v:
            return 0
        if math.isinf(v):
            return HIGH[d] if v > 0 else LOW[d]
        return min(max(int(v), LOW[d]), HIGH[d])
    return wrapped(int(v), d)


def meet(x: Any, t: str) -> Any:
    """The plain value of ``x`` where it meets type ``t``: as a cast, but a constant must fit."""
    d = dtype_of(t)
    if type(x) is int and d in INTS and not LOW[d] <= x <= HIGH[d]:
        raise Refused(f"{x} does not fit {d}")
    return cast(x, t)


def make(t: str, v: Any) -> Number:
    return CLASSES[t](v)


def stored(x: Any, t: str) -> Any:
    """What storing ``x`` to an element of type ``t`` leaves there."""
    if t in INTS and dtype_of(type_of(x)) in FLOATS:
        raise Refused("a float in an integer array")
    return meet(x, t)


# --- operators --------------------------------------------------------------------------------------------------------------------


def _int_op(op: str, a: int, b: int, t: str) -> int:
    if op in ("floordiv", "mod") and b == 0:
        return 0
    return wrapped(int(getattr(operator, op)(a, b)), t)


_FLOAT_OP: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
}


def arithmetic(op: str, a: Any, b: Any) -> Number:
    t = promote(type_of(a), type_of(b))
    if t == "bool":
        t = "int"
    d = dtype_of(t)
    x, y = meet(a, t), meet(b, t)
    return make(t, _FLOAT_OP[op](x, y) if d in FLOATS else _int_op(op, x, y, d))


def divide(a: Any, b: Any) -> Number:
    ta, tb = type_of(a), type_of(b)
    t = promote(ta, tb)
    if dtype_of(t) not in FLOATS:
        t = "float" if ta in WEAK and tb in WEAK else Rules.weak_float
    return make(t, meet(a, t) / meet(b, t))


def bitwise(op: str, a: Any, b: Any) -> Number:
    ta, tb = type_of(a), type_of(b)
    if ta == tb == "bool":
        return make("bool", bool(getattr(operator, op)(bool(raw(a)), bool(raw(b)))))
    t = promote(ta, tb)
    if dtype_of(t) in FLOATS:
        raise Refused(f"{op} of floats")
    return make(t, wrapped(getattr(operator, op)(meet(a, t), meet(b, t)), dtype_of(t)))


def left_type(a: Any, b: Any) -> str:
    ta, tb = type_of(a), type_of(b)
    if dtype_of(ta) in FLOATS or dtype_of(tb) in FLOATS:
        raise Refused("floats")
    ta = {"bool": "int", "index": "i64"}.get(ta, ta)
    return {"index": "i64"}.get(tb, tb) if ta in ("int", "uint") and tb not in WEAK else ta


def shift(op: str, a: Any, b: Any) -> Number:
    t = left_type(a, b)
    d = dtype_of(t)
    x, count = meet(a, t), int(raw(b))
    if not 0 <= count < BITS[d]:
        return make(t, -1 if op == "rshift" and x < 0 else 0)
    return make(t, wrapped(getattr(operator, op)(x, count), d))


def power(a: Any, b: Any) -> Number:
    if "f" in (dtype_of(type_of(a))[0], dtype_of(type_of(b))[0]):
        if type(b) is int and b == 2:
            return arithmetic("mul", a, a)
        raise Refused("only a float's square has fixed bits")
    t = left_type(a, b)
    x, e = meet(a, t), int(raw(b))
    if type(b) is int and e < 0:
        raise Refused("a negative literal exponent")
    return make(t, 0 if e < 0 else wrapped(pow(x, e, 1 << BITS[dtype_of(t)]), dtype_of(t)))


def compare(op: str, a: Any, b: Any) -> Number:
    ta, tb = type_of(a), type_of(b)
    if dtype_of(ta) in FLOATS or dtype_of(tb) in FLOATS:
        t = promote(ta, tb)
        a, b = meet(a, t), meet(b, t)
    return make("bool", bool(getattr(operator, op)(raw(a), raw(b))))


def _both(f: Callable[..., Number], op: str) -> tuple[Any, Any]:
    return lambda a, b: f(op, a, b), lambda a, b: f(op, b, a)


class Number:
    __slots__ = ("v",)
    t = ""
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, v: Any) -> None:
        self.v = v

    def __repr__(self) -> str:
        return f"{self.t}({self.v!r})"

    def __bool__(self) -> bool:
        return bool(self.v != 0)

    def __index__(self) -> int:
        if self.t in ("bool", "float", *FLOATS):
            raise Refused(f"{self.t} as an index")
        return int(self.v)

    __add__, __radd__ = _both(arithmetic, "add")
    __sub__, __rsub__ = _both(arithmetic, "sub")
    __mul__, __rmul__ = _both(arithmetic, "mul")
    __floordiv__, __rfloordiv__ = _both(arithmetic, "floordiv")
    __mod__, __rmod__ = _both(arithmetic, "mod")
    __and__, __rand__ = _both(bitwise, "and_")
    __or__, __ror__ = _both(bitwise, "or_")
    __xor__, __rxor__ = _both(bitwise, "xor")
    __lshift__, __rlshift__ = _both(shift, "lshift")
    __rshift__, __rrshift__ = _both(shift, "rshift")
    __truediv__, __rtruediv__ = divide, lambda a, b: divide(b, a)
    __pow__, __rpow__ = power, lambda a, b: power(b, a)
    __eq__, __ne__ = _both(compare, "eq")[0], _both(compare, "ne")[0]
    __lt__, __le__ = _both(compare, "lt")[0], _both(compare, "le")[0]
    __gt__, __ge__ = _both(compare, "gt")[0], _both(compare, "ge")[0]

    def __neg__(self) -> Number:
        t = {"bool": "int", "index": "i64"}.get(self.t, self.t)
        return make(t, -self.v if dtype_of(t) in FLOATS else wrapped(-int(self.v), dtype_of(t)))

    def __invert__(self) -> Number:
        t = {"index": "i64"}.get(self.t, self.t)
        if dtype_of(t) not in INTS:
            raise Refused(f"~ of {t}")
        return make(t, wrapped(~self.v, dtype_of(t)))


CLASSES: dict[str, type[Number]] = {
    t: type(t.capitalize(), (Number,), {"t": t, "__slots__": (), "__hash__": None}) for t in (*STRONG, *WEAK, "index")
}


# --- functions --------------------------------------------------------------------------------------------------------------------


def common(*values: Any) -> str:
    t = type_of(values[0])
    for v in values[1:]:
        t = promote(t, type_of(v))
    return {"index": "i64"}.get(t, t)


def constant(*values: Any) -> bool:
    return not any(isinstance(v, Number) for v in values)


def _pick(op: Callable[[Any, Any], bool], *values: Any) -> Any:
    t = common(*values)
    t = "int" if t == "bool" else t
    best = meet(values[0], t)
    for v in values[1:]:
        x = meet(v, t)
        if best != best or op(x, best):
            best = x
    return make(t, best)


def host_min(*values: Any) -> Any:
    return min(values) if constant(*values) else _pick(operator.lt, *values)


def host_max(*values: Any) -> Any:
    return max(values) if constant(*values) else _pick(operator.gt, *values)


def host_abs(x: Any) -> Any:
    if constant(x):
        return abs(x)
    t = {"bool": "int", "index": "i64"}.get(x.t, x.t)
    return make(t, abs(x.v) if dtype_of(t) in FLOATS else wrapped(abs(int(x.v)), dtype_of(t)))


def host_range(*bounds: Any) -> Any:
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1) if len(bounds) == 2 else bounds
    values = range(cast(start, "i64"), cast(stop, "i64"), step) if (step := cast(step, "i64")) else ()
    return (make("index", v) for v in values)


def ndrange(*bounds: Any) -> Any:
    ranges = [host_range(*b) if isinstance(b, tuple) else host_range(b) for b in bounds]
    return ranges[0] if len(bounds) == 1 else itertools.product(*ranges)


def float_type(*values: Any) -> str:
    t = common(*values)
    if dtype_of(t) in FLOATS:
        return t
    return "float" if all(type_of(v) in WEAK for v in values) else Rules.weak_float


def _float_function(compute: Callable[..., Any]) -> Callable[..., Number]:
    def function(*values: Any) -> Number:
        t = float_type(*values)
        return make(t, NUMPY[dtype_of(t)](compute(*(meet(v, t) for v in values))))

    return function


def _to_int(compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def function(x: Any) -> Number:
        v = raw(x)
        return make("i64", cast(compute(v) if isinstance(v, np.floating) else v, "i64"))

    return function


def fma(a: Any, b: Any, c: Any) -> Number:
    t = float_type(a, b, c)
    d = dtype_of(t)
    x, y, z = (meet(v, t) for v in (a, b, c))
    if not (np.isfinite(x) and np.isfinite(y) and np.isfinite(z)):
        product = x * y
        return make(t, z if np.isfinite(x) and np.isfinite(y) else product + z)
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    if exact == 0:
        return make(t, x * y + z if x == 0 or y == 0 else NUMPY[d](0.0))
    return make(t, round_fraction(exact, d))


def round_fraction(exact: Fraction, d: str) -> Any:
    """An exact number that is not 0, rounded once to a float type."""
    digits, least, top = (24, -149, 128) if d == "f32" else (53, -1074, 1024)
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    unit = max(exponent - digits + 1, least)
    count = round(size / Fraction(2) ** unit)
    if Fraction(count) * Fraction(2) ** unit >= Fraction(2) ** top:
        return NUMPY[d](-math.inf if exact < 0 else math.inf)
    return NUMPY[d](math.ldexp(-count if exact < 0 else count, unit))


def _pattern(x: int, t: str) -> int:
    return x % (1 << BITS[t])


def _bits(compute: Callable[..., int]) -> Callable[..., Number]:
    def function(*values: Any) -> Number:
        t = common(*values)
        t = "int" if t == "bool" else t
        return make(t, wrapped(compute(dtype_of(t), *(meet(v, t) for v in values)), dtype_of(t)))

    return function


def _rotate(sign: int) -> Callable[[Any, Any], Number]:
    def function(a: Any, b: Any) -> Number:
        t = left_type(a, b)
        d = dtype_of(t)
        text = format(_pattern(meet(a, t), d), f"0{BITS[d]}b")
        n = sign * int(raw(b)) % BITS[d]
        return make(t, wrapped(int(text[n:] + text[:n], 2), d))

    return function


def _ctz(t: str, x: int) -> int:
    text = format(_pattern(x, t), f"0{BITS[t]}b")
    return len(text) - len(text.rstrip("0"))


def bitcast(x: Any, t: str) -> Number:
    own = dtype_of(type_of(x))
    source = np.array([raw(x)], f"{own[0]}{BITS[own] // 8}" if own[0] != "f" else NUMPY[own])
    value = source.view(f"{t[0]}{BITS[t] // 8}")[0]
    return make(t, value if t[0] == "f" else int(value))


class DType:
    """A dtype in a host text: a cast, and a name for local arrays and bitcasts."""

    def __init__(self, t: str) -> None:
        self.t = t

    def __call__(self, x: Any) -> Number:
        return make(self.t, cast(x, self.t))


class Array:
    """An array in a host text, over a NumPy array of the same dtype."""

    def __init__(self, data: Any, t: str) -> None:
        self.data = data
        self.t = t

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(make("index", n) for n in self.data.shape)

    def position(self, index: Any) -> tuple[int, ...]:
        found = tuple(operator.index(k) for k in (index if isinstance(index, tuple) else (index,)))
        constants = [type(k) is int for k in (index if isinstance(index, tuple) else (index,))]
        for k, n, known in zip(found, self.data.shape, constants, strict=True):
            if not (-n if known else 0) <= k < n:
                raise Refused(f"index {found} of {self.data.shape}")
        return found

    def __getitem__(self, index: Any) -> Number:
        v = self.data[self.position(index)]
        return make(self.t, v if self.t in FLOATS else int(v))

    def __setitem__(self, index: Any, value: Any) -> None:
        self.data[self.position(index)] = stored(value, self.t)


def numpy_name(t: str) -> str:
    return {"i": "int", "u": "uint", "f": "float"}[t[0]] + t[1:]


def local_array(dtype: DType, shape: Any) -> Array:
    return Array(np.zeros(shape, numpy_name(dtype.t)), dtype.t)


_ATOMIC: dict[str, Callable[[str, int, int], int]] = {
    "add": lambda t, a, b: wrapped(a + b, t),
    "sub": lambda t, a, b: wrapped(a - b, t),
    "min": lambda t, a, b: min(a, b),
    "max": lambda t, a, b: max(a, b),
    "and_": lambda t, a, b: a & b,
    "or_": lambda t, a, b: a | b,
    "xor": lambda t, a, b: a ^ b,
}


def _atomic(compute: Callable[[str, int, int], int]) -> Callable[[Array, Any, Any], Number]:
    def function(array: Array, index: Any, value: Any) -> Number:
        old = array[index]
        array[index] = make(array.t, compute(array.t, old.v, stored(value, array.t)))
        return old

    return function


def _rounding(f: Callable[[Any], Any]) -> Callable[..., Number]:
    return _float_function(f)


class Tack:
    """The module ``tack`` of a host text."""

    ndrange = staticmethod(ndrange)
    sequential = staticmethod(host_range)
    local_array = staticmethod(local_array)
    fma = staticmethod(fma)
    sqrt = staticmethod(_float_function(np.sqrt))
    floor = staticmethod(_rounding(np.floor))
    ceil = staticmethod(_rounding(np.ceil))
    trunc = staticmethod(_rounding(np.trunc))
    round = staticmethod(_rounding(np.rint))
    fabs = staticmethod(_float_function(np.fabs))
    fmod = staticmethod(_float_function(np.fmod))
    copysign = staticmethod(_float_function(np.copysign))
    popcount = staticmethod(_bits(lambda t, x: _pattern(x, t).bit_count()))
    clz = staticmethod(_bits(lambda t, x: BITS[t] - _pattern(x, t).bit_length()))
    ctz = staticmethod(_bits(_ctz))
    mulhi = staticmethod(_bits(lambda t, a, b: a * b >> BITS[t]))
    add_sat = staticmethod(_bits(lambda t, a, b: min(max(a + b, LOW[t]), HIGH[t])))
    sub_sat = staticmethod(_bits(lambda t, a, b: min(max(a - b, LOW[t]), HIGH[t])))
    rotl = staticmethod(_rotate(1))
    rotr = staticmethod(_rotate(-1))
    min = staticmethod(host_min)
    max = staticmethod(host_max)

    @staticmethod
    def bitcast(x: Any, dtype: DType) -> Number:
        return bitcast(x, dtype.t)

    @staticmethod
    def func(f: Any) -> Any:
        return f

    @staticmethod
    def isnan(x: Any) -> Number:
        return make("bool", bool(np.isnan(meet(x, float_type(x)))))

    @staticmethod
    def isfinite(x: Any) -> Number:
        return make("bool", bool(np.isfinite(meet(x, float_type(x)))))


for _t in STRONG:
    setattr(Tack, _t, DType(_t))
for _name, _compute in _ATOMIC.items():
    setattr(Tack, f"atomic_{_name}", staticmethod(_atomic(_compute)))


class Math:
    """The module ``math`` of a host text."""

    floor = staticmethod(_to_int(np.floor))
    ceil = staticmethod(_to_int(np.ceil))
    trunc = staticmethod(_to_int(np.trunc))
    sqrt = staticmethod(_float_function(np.sqrt))


def _join(t: str) -> Callable[[Any], Any]:
    return lambda x: make(t, meet(x, t))


def _check(t: str) -> Callable[[Any], Any]:
    def check(x: Any) -> Any:
        if type_of(x) != t:
            raise Refused(f"a value of type {type_of(x)} where the generator believes in {t}")
        return x

    return check


def _divmod(a: Any, b: Any) -> Any:
    return divmod(a, b) if constant(a, b) else (a // b, a % b)


def namespace() -> dict[str, Any]:
    """The globals of a host text: what the names that kernels may use are on the host."""
    space: dict[str, Any] = {
        "tack": Tack,
        "math": Math,
        "range": host_range,
        "min": host_min,
        "max": host_max,
        "abs": host_abs,
        "divmod": _divmod,
        "round": _to_int(np.rint),
        "int": lambda x: make("i64", cast(x, "i64")),
        "float": lambda x: make(Rules.weak_float, cast(x, Rules.weak_float)),
        "bool": lambda x: make("bool", bool(raw(x) != 0)),
        "len": lambda a: a.shape[0],
        "not_": lambda x: make("bool", not x),
    }
    for t in (*STRONG, *WEAK, "index"):
        space[f"J_{t}"] = _join(t)
        space[f"C_{t}"] = _check(t)
    return space
