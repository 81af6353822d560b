"""What to say of each Python construct that the kernel language does not have: its name, and what to write instead."""

from __future__ import annotations

import ast
from typing import Final

__all__ = ["REFUSED"]

_COMPREHENSION: Final = "Write a for loop that stores into an array, or into tack.local_array(dtype, shape)."

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
