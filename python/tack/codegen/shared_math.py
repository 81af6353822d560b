"""Prints functions of the math library that a kernel calls rather than inlines: one definition for each number of lanes."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.nodes import Block
from .legalize import simplify
from .llvm_body import Body
from .llvm_division import Division
from .llvm_memory import Words
from .llvm_ops import Arithmetic
from .llvm_text import Writer, llvm_type, shared_name
from .lower import LibraryCall, Lowering, MathLibrary
from .params import Slots
from .uniform import analyse

__all__ = ["print_function"]


def print_function(
    call: LibraryCall, lanes: int, math: MathLibrary, arithmetic: Callable[[Writer], Arithmetic]
) -> tuple[str, dict[Division, None]]:
    """The definition of a library function for ``lanes`` lanes, all of which are on, and the lane by lane divisions that it calls.
    It reads and writes no memory.
    """
    function = math(*call)
    lowering = Lowering(math, False, False)
    body = lowering.block(function.body)
    result = function.results[0]
    simplify(Block(), body, [result])
    w = Writer()
    varying = {*function.params, result} if lanes > 1 else set()
    flow = analyse(Block(), body, lanes, 0, None, varying)
    printer = Body(w, arithmetic(w), flow, Words(w, Slots()), [], {}, varying)
    arguments = []
    for var in function.params:
        name = f"%{w.label('argument')}"
        arguments.append(f"{llvm_type(var.type, lanes)} {name}")
        printer.put(var, name)
    printer.straight(body)
    w.do(f"ret {llvm_type(result.type, lanes)} {printer.get(result, 'result')}")
    head = f"define internal fastcc {llvm_type(result.type, lanes)} {shared_name(*call, lanes)}({', '.join(arguments)}) #3 {{"
    return "\n".join([head, "entry:", *w.entry, *w.lines, "}", ""]), printer.divisions
