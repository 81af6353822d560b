"""Prints a kernel's entry points as one LLVM module, each for as many lanes and in as few bits as suit it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..ir.source import EntryPoint
from ..ir.target import Target
from .carried import split_carried
from .cost import choose_lanes, flow_of, locked_cost, share_rounds
from .interior import Inside, find_interior
from .joins import choose_stored, join_in_place
from .llvm_division import Division, lane_function
from .llvm_ops import Arithmetic
from .llvm_printer import EntryPrinter
from .llvm_records import functions as record_functions
from .llvm_text import identifier
from .lower import LibraryCall, MathLibrary, copy_block
from .machine import Machine
from .narrow import Narrowed, narrow
from .params import EntryPlan, Plan
from .repeated import load_once
from .shared_math import print_function
from .unroll import unroll_columns
from .walk import instructions, run

__all__ = ["Module", "print_module"]

_NO_CALLS = '"no-builtin-strlen" "no-builtin-wcslen"'  # that LLVM makes of loops; the runtime offers memset and the like


@dataclass(slots=True)
class Module:
    """The text and what the runtime needs to know of its entries."""

    text: str
    entries: list[EntryPoint] = field(default_factory=list)
    lanes: int = 1


def print_module(name: str, plan: Plan, target: Target, options: dict[str, object], math: MathLibrary) -> Module:
    """Prints all entries of a kernel."""
    wanted = options.get("simd") or target.simd
    assert isinstance(wanted, int)
    declarations: dict[str, str] = {}
    fast = bool(options.get("fast_math"))

    def declare(name: str, text: str) -> None:
        declarations.setdefault(name, text)

    module = Module("")
    functions: list[str] = []
    calls: set[str] = set()  # functions that write records
    math_calls: dict[tuple[LibraryCall, int], None] = {}
    divisions: dict[Division, None] = {}
    vectors = Machine.of(target)
    for entry in plan.entries:
        entry.fast = fast
        untouched = entry.body  # for plain code, which is better off without what follows
        if wanted != 1 and target.vector_bits >= 128 and not entry.single:
            entry.body = run(copy_block(entry.body, {i: i for i in instructions(entry.prologue)}, {}))
            load_once(entry.body)
            join_in_place(entry.body)
            choose_stored(entry.body)
            unroll_columns(entry.prologue, entry.body)
            share_rounds(entry, vectors, wanted)
            split_carried(entry.body, {r.var for r in entry.reductions}, lambda entry=entry: flow_of(entry, 2))  # type: ignore[misc]
        by_lanes = wanted != 1 and target.vector_bits >= 128
        narrowed = _narrowed(entry) if by_lanes else None
        lanes = choose_lanes(entry if narrowed is None else replace(entry, body=narrowed.body), vectors, wanted)
        inside = _inside(entry, vectors, wanted) if by_lanes and not plan.stops else None
        if lanes == 1 and inside is None:
            entry.body, entry.plain = untouched, None
        printer = EntryPrinter(entry, narrowed if lanes > 1 else None, lanes, target, declare, plan.stops, inside)
        functions.append(printer.function())
        for body in printer.bodies:
            calls |= body.calls
            math_calls |= body.math_calls
            divisions |= body.divisions
        rank = 1 if entry.reductions else entry.rank
        locked = locked_cost(entry) if printer.alone else 1.0
        module.entries.append(EntryPoint(entry.symbol, list(entry.slots.order), rank, printer.cost, printer.alone, locked))
        module.lanes = max(module.lanes, lanes)
    for call, lanes in math_calls:
        text, found = print_function(call, lanes, math, lambda w: Arithmetic(w, declare, fast, target))
        functions.append(text)
        divisions |= found
    functions += [lane_function(*division) for division in divisions]
    head = [f"; tack kernel {identifier(name)} for {target.arch}", ""]
    width = f' "prefer-vector-width"="{target.vector_bits}" "min-legal-vector-width"="{target.vector_bits}"' if target.vector_bits else ""
    if calls:
        functions += record_functions(calls, 1 + max(len(site.values) for site in plan.sites))
    cpu = target.arch.partition("+")[0]
    machine = f'"target-cpu"="{"generic" if cpu == "aarch64" else cpu}"{width}'
    tail = [
        *declarations.values(),
        "",
        f"attributes #0 = {{ nounwind {_NO_CALLS} {machine} }}",
        *(["attributes #1 = { nounwind noinline }", "attributes #2 = { cold }"] if calls else []),
        *([f"attributes #4 = {{ noinline nounwind {_NO_CALLS} {machine} }}"] if any(e.alone for e in module.entries) else []),
        *([f"attributes #3 = {{ noinline nosync nounwind willreturn memory(none) {machine} }}"] if math_calls else []),
        "!0 = !{i32 1}",
        "",
    ]
    if not functions:  # a kernel that does nothing: the runtime loads no object without code
        functions.append(f"define void @tack_{identifier(name)}() #0 {{\n  ret void\n}}\n")
    module.text = "\n".join([*head, *functions, *tail])
    return module


def _narrowed(entry: EntryPlan) -> Narrowed | None:
    return narrow(entry, lambda entry: flow_of(entry, 2))


def _inside(entry: EntryPlan, vectors: Machine, wanted: int) -> Inside | None:
    interior = find_interior(entry)
    if interior is None:
        return None
    narrowed = _narrowed(replace(entry, body=interior.body))
    inner = replace(entry, body=interior.body if narrowed is None else narrowed.body)
    lanes = choose_lanes(inner, vectors, wanted)
    return Inside(interior, inner, lanes, [] if narrowed is None else narrowed.assumptions) if lanes > 1 else None
