"""What to say of what the kernel language does not have: of each Python construct, and of functions that people look for."""

from __future__ import annotations

import ast
from typing import Final

__all__ = ["INSTEAD", "REFUSED"]

_COMPREHENSION: Final = "Write a for loop that stores into an array, or into tack.local_array(dtype, shape)."

_TYPES: Final = "Types are known when a kernel is compiled: compare x.dtype == tack.f32, or x is None."
_GAMMA: Final = "Kernels have erf, erfc and exp, log, pow: write the gamma function with these, as a @tack.func."
_COMPLEX: Final = "There are no complex numbers: keep real and imaginary part in two names, or in the last axis of an array."
_HALF: Final = "There are no floats of 16 bits: compute in tack.f32, and convert arrays with .astype outside of the kernel."
_RANDOM: Final = "Compute random numbers from the index: docs/guide.md has a function for it."
_INDEX: Final = "The variable of the parallel loop is the number of the iteration: for i in range(n)."

REFUSED: Final[dict[type[ast.AST], tuple[str, str]]] = {
    ast.ListComp: ("a list comprehension", _COMPREHENSION),
    ast.SetComp: ("a set comprehension", _COMPREHENSION),
    ast.DictComp: ("a dict comprehension", _COMPREHENSION),
    ast.GeneratorExp: ("a generator expression", "Write a for loop with a variable that it updates (s += x[i])."),
    ast.List: (
        "a list",
        "Write a tuple (a, b, c) for a few values known by position, or tack.local_array(dtype, shape) for scratch memory.",
    ),
    ast.Dict: ("a dict", "Pass an array and index it by number, or write if/elif."),
    ast.Set: ("a set", "Write the comparisons: x == a or x == b."),
    ast.Try: ("try", "Kernels raise no exceptions: test the values with if before they are used."),
    ast.TryStar: ("try", "Kernels raise no exceptions: test the values with if before they are used."),
    ast.Raise: ("raise", "Kernels raise no exceptions: store an error code into an array, or write assert (checked in debug mode)."),
    ast.With: ("with", "Enter the context around the call of the kernel."),
    ast.AsyncWith: ("async with", "Enter the context around the call of the kernel."),
    ast.AsyncFor: ("async for", "Write for i in range(n)."),
    ast.AsyncFunctionDef: ("async def", "Write def: the call of a kernel can be waited for with tack.sync_async()."),
    ast.Await: ("await", "Await around the call of the kernel."),
    ast.Delete: ("del", "Leave the name: it costs nothing."),
    ast.Match: ("match", "Write if/elif/else."),
    ast.FunctionDef: ("a nested function", "Define it outside the kernel and put @tack.func above it."),
    ast.Lambda: ("a lambda", "Write f = tack.func(lambda x: ...) outside the kernel and call f."),
    ast.ClassDef: ("a class", "Define it outside the kernel."),
    ast.Import: ("import", "Import the module at the top of the file: kernels see it."),
    ast.ImportFrom: ("import", "Import the module at the top of the file: kernels see it."),
    ast.Global: ("global", "A kernel reads globals without it and cannot change them: return the value, or store it into an array."),
    ast.Nonlocal: (
        "nonlocal",
        "A kernel reads outer names without it and cannot change them: return the value, or store it into an array.",
    ),
    ast.Yield: ("yield", "Store the values into an array."),
    ast.YieldFrom: ("yield from", "Store the values into an array."),
    ast.Slice: ("a slice", "Index one element per dimension in a loop, or pass the slice (x[1:]) as an argument: it is a view."),
    ast.JoinedStr: ("an f-string", "Strings stand in print and in the message of an assert only."),
    ast.Starred: ("a starred expression", "Write the values one by one."),
}
for _name, _entry in {
    "TypeAlias": ("a type alias", "Define it outside the kernel."),
    "TemplateStr": ("a t-string", "Pass the values to print one by one: print('x', x)."),
}.items():
    if hasattr(ast, _name):  # Python 3.12, 3.14
        REFUSED[getattr(ast, _name)] = _entry

# By name, whatever the module: tack.where, np.where, torch.where, x.clamp.
INSTEAD: Final[dict[str, str]] = {
    "sum": "Loop over the items: s += a[i].",
    "enumerate": "Write for i in range(len(a)), and index with i.",
    "zip": "Write for i in range(len(a)), and index both with i.",
    "any": "Loop, and combine the conditions with or.",
    "all": "Loop, and combine the conditions with and.",
    "zeros": "Use tack.local_array(dtype, shape) for scratch memory of one iteration.",
    "empty": "Use tack.local_array(dtype, shape) for scratch memory of one iteration.",
    "ones": "Use tack.local_array(dtype, shape) for scratch memory of one iteration, and a loop that stores 1.",
    "array": "Write a tuple (a, b, c) for a few values known by position, or tack.local_array(dtype, shape) for scratch memory.",
    "arange": "Loop over range(start, stop, step).",
    "dot": "Loop over the items: s += a[i] * b[i].",
    "factorial": "Loop: f = 1, then f *= i.",
    "where": "Write: a if condition else b.",
    "clip": "Write min(max(x, low), high).",
    "select": "Write: a if condition else b.",
    "clamp": "Write min(max(x, low), high).",
    "sign": "Write (x > 0) - (x < 0), or tack.copysign(1.0, x).",
    "square": "Write x * x.",
    "mod": "Write x % y.",
    "remainder": "Write x % y.",
    "floor_divide": "Write x // y.",
    "true_divide": "Write x / y.",
    "reciprocal": "Write 1.0 / x.",
    "radians": "Write x * (math.pi / 180).",
    "deg2rad": "Write x * (math.pi / 180).",
    "degrees": "Write x * (180 / math.pi).",
    "rad2deg": "Write x * (180 / math.pi).",
    "isqrt": "Write int(tack.sqrt(x)).",
    "lerp": "Write a + t * (b - a).",
    "logical_and": "Write a and b.",
    "logical_or": "Write a or b.",
    "logical_not": "Write not a.",
    "reversed": "Write for i in range(n - 1, -1, -1).",
    "pi": "Write math.pi.",
    "e": "Write math.e.",
    "inf": "Write math.inf.",
    "nan": "Write math.nan.",
    "random": _RANDOM,
    "rand": _RANDOM,
    "randint": _RANDOM,
    "randn": _RANDOM,
    "uniform": _RANDOM,
    "tid": _INDEX,
    "program_id": _INDEX,
    "grid": _INDEX,
    "astype": "A dtype is a cast: tack.f32(x).",
    "prange": "Write for i in range(n): the outer loop of a kernel is parallel.",
    "isinstance": _TYPES,
    "type": _TYPES,
    "getattr": "Attributes are written out: a.shape, x.dtype.",
    "gamma": _GAMMA,
    "lgamma": _GAMMA,
    "gammaln": _GAMMA,
    "complex": _COMPLEX,
    "complex64": _COMPLEX,
    "complex128": _COMPLEX,
    "f16": _HALF,
    "bf16": _HALF,
    "half": _HALF,
    "float16": _HALF,
    "bfloat16": _HALF,
    "item": "It is a number already.",
    **{
        name: f"Write tack.{dtype}."
        for dtype, names in (
            *(("i8", ("int8", "byte")), ("u8", ("uint8",)), ("i16", ("int16", "short")), ("u16", ("uint16",)), ("i32", ("int32",))),
            *(("u32", ("uint32",)), ("i64", ("int64", "long")), ("u64", ("uint64",)), ("f32", ("float32", "float"))),
            ("f64", ("float64", "double")),
        )
        for name in names
    },
}
