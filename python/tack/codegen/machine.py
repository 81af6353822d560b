"""What operations take on a machine's vectors, where that is more than an instruction: data for the models of cost and latency.

Counted from the code that LLVM 22 makes of each operation for the level, and measured on Zen 5 (``tests/bench/lanes.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.nodes import Instr
from ..ir.target import Target
from .uniform import Flow

__all__ = [
    "NO_FMA",
    "SSE4",
    "Machine",
    "branch_work",
    "by_few_bits",
    "masks_neighbours",
    "operand_bits",
    "register_work",
    "round_work",
    "scalar_work",
    "select_work",
    "steps_between",
    "widens_mask",
]


NO_FMA = ("x86-64", "x86-64-v2")  # where a fused multiply-add would be a library call


@dataclass(frozen=True, slots=True)
class Machine:
    """``bits``: of a register. ``level``: the column of the tables."""

    bits: int
    level: int

    @classmethod
    def of(cls, target: Target) -> Machine:
        if not target.arch.startswith("x86-64"):
            return cls(target.vector_bits, NEON)
        return cls(target.vector_bits, SSE4 if target.arch in NO_FMA else AVX512 if target.vector_bits >= 512 else AVX2)


SSE4, AVX2, AVX512, NEON = range(4)

# Instructions for one register of results, on SSE4.2, AVX2, AVX-512 and NEON. The number is an element's bits.
_WORK: dict[str, tuple[float, float, float, float]] = {
    "mul 8": (6, 6, 6, 1),
    "mul 64": (12, 12, 1.5, 6),  # three products of 32 bits, three shifts, two sums, and what moves them
    "mul 64 by constant": (9, 9, 1.5, 5),
    "mul 64 by few bits": (3, 3, 1.5, 3),  # by shifts
    "shift 8": (2, 2, 2, 1),
    "signed right shift 8": (4, 4, 4, 1),
    "signed right shift 64": (4, 3, 1, 1),
    "left shift by lanes 8": (14, 10, 5, 1),
    "left shift by lanes 16": (10, 6, 1, 1),
    "left shift by lanes 32": (5, 1, 1, 1),  # a product with a power of two that is made as a float
    "left shift by lanes 64": (4, 1, 1, 1),
    "right shift by lanes 8": (14, 10, 5, 2),
    "right shift by lanes 16": (14, 8, 1, 2),
    "right shift by lanes 32": (10, 1, 1, 2),
    "right shift by lanes 64": (4, 1, 1, 2),
    "signed right shift by lanes 64": (7, 4, 1, 2),
    "unsigned order": (2.5, 2, 1, 1),
    "min 64": (3, 3, 1, 2),
    "unsigned min 64": (5, 4, 1, 2),
    "abs 64": (3, 3, 1, 1),
    "select": (1.5, 1.5, 1, 1),
    "widened mask": (2, 2, 0, 1),  # of a comparison of other bits than what it selects
    "float of 64": (8, 14, 1, 1),  # lane by lane
    "float of unsigned 32": (6, 5, 1, 1),
    "float of unsigned 64": (6, 6, 1, 1),
    "32 of float": (7, 6, 5, 1),  # with what saturates
    "unsigned 32 of float": (10, 9, 5, 1),
    "64 of float": (12, 20, 6, 1),
    "popcount": (12, 12, 12, 4),
    "clz": (20, 20, 1, 2),
    "ctz": (15, 15, 15, 3),
    "rot": (3, 3, 1, 2),
    "rot by lanes": (14, 4, 1, 4),
    "mulhi": (6, 6, 6, 4),
    "mulhi 64": (14, 28, 56, 14),  # lane by lane
    "sat": (6, 6, 5, 1),
    "fma 32": (30, 1, 1, 1),  # through f64
    "fma 64": (22, 1, 1, 1),  # a call for each lane, around which nothing stays in registers
}
_ROUND = (6.0, 5.0, 3.0, 5.0)  # masks of a loop that lanes leave one by one, for each round
_BRANCH = (8.0, 11.0, 10.0, 11.0)  # of an arm that some take
_MASKED_SET = (2.0, 2.0, 1.0, 1.5)  # of a variable, by a mask of other bits
# Of one value, where there is no instruction either.
_SCALAR: dict[str, tuple[float, float, float, float]] = {
    "fma 32": (16, 1, 1, 1),
    "fma 64": (8, 1, 1, 1),
    "clz": (4, 1, 1, 1),
    "32 of float": (5, 5, 5, 1),
    "64 of float": (5, 5, 5, 1),
    "mulhi 64": (2, 2, 2, 1),
    "mul 64": (2, 2, 2, 2),  # one a cycle, where there are four of other operations
}
_INTEGER = 1.2  # a cycle has more integer operations on single values than on registers
_COMPARE = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_SHIFTS = frozenset({"lshift", "rshift"})


def _kind(instr: Instr, flow: Flow) -> str | None:
    """The row of an operation; None where it is one instruction."""
    op, to = instr.op, instr.type
    of = instr.args[0].type if instr.args else to
    if of is None or to is None:
        return None
    bits = of.bits
    sign = "signed " if of.is_signed else ""
    unsigned = "unsigned " if of.is_int and not of.is_signed else ""
    if op in _SHIFTS:
        side = "left shift" if op == "lshift" else "right shift"
        lanes = "" if instr.args[1].op == "const" or flow.uniform(instr.args[1]) else " by lanes"
        exact = f"{sign if op == 'rshift' else ''}{side}{lanes} {bits}"
        return exact if exact in _WORK else f"{side}{lanes} {bits}" if lanes else f"shift {bits}"
    if op in _COMPARE:
        return "unsigned order" if unsigned and op not in ("eq", "ne") else None
    if op == "select":
        return "select"
    if op == "cast" and of.is_float and to.is_int:
        return f"{'' if to.is_signed else 'unsigned '}{max(32, to.bits)} of float" if to.bits < 64 else "64 of float"
    if op == "cast":
        return f"float of {unsigned}{bits}" if to.is_float and of.is_int else None
    if op == "bits":
        name = str(instr.attr)
        if name in ("rotl", "rotr"):
            return "rot" if flow.uniform(instr.args[1]) else "rot by lanes"
        return f"mulhi{' 64' if bits == 64 else ''}" if name == "mulhi" else "sat" if name.endswith("_sat") else name
    if op == "fma":
        return f"fma {bits}"
    if of.is_int and op in ("min", "max"):
        return f"{unsigned}min {bits}"
    if by_few_bits(instr) and bits == 64 and of.is_int:
        return "mul 64 by few bits"
    if op == "mul" and bits == 64 and any(a.op == "const" for a in instr.args):
        return "mul 64 by constant" if of.is_int else None
    return f"{op} {bits}" if of.is_int and op in ("mul", "abs") else None


def masks_neighbours(vector_bits: int, element_bits: int) -> bool:
    """Whether there are masked loads and stores of neighbouring elements."""
    return vector_bits >= (512 if element_bits < 32 else 256)


def by_few_bits(instr: Instr) -> bool:
    """A product that shifts and a sum make."""
    factors = [a.attr for a in instr.args if a.op == "const"] if instr.op == "mul" else []
    return any(isinstance(f, int) and abs(f).bit_count() <= 2 for f in factors)


def operand_bits(instr: Instr) -> int:
    """Of the widest operand; 1 where there is none."""
    return max((a.type.bits for a in instr.args if a.type is not None), default=1)


def steps_between(a: Instr, b: Instr) -> int:
    """How often values have to be halved or doubled to get from the size of the one to the size of the other."""
    sizes = sorted(v.type.bits for v in (a, b) if v.type is not None)
    return (sizes[-1] // max(8, sizes[0])).bit_length() - 1 if sizes else 0


def widens_mask(instr: Instr) -> bool:
    """Whether it selects by a comparison of values of other bits."""
    if instr.op != "select" or not instr.args[0].args or instr.type is None:
        return False
    of = instr.args[0].args[0].type
    return of is not None and of.bits not in (1, instr.type.bits)


def register_work(instr: Instr, flow: Flow, machine: Machine) -> float:
    """Instructions for one register of its results, or of its operands where these are wider."""
    kind = _kind(instr, flow)
    work = _WORK[kind][machine.level] if kind in _WORK else 1.0
    if instr.op == "cast" and operand_bits(instr) > 1 and instr.type is not None and instr.type.bits != operand_bits(instr):
        work *= max(1, steps_between(instr.args[0], instr))
    if instr.type is not None and instr.type.is_int:
        work *= _INTEGER
    if widens_mask(instr):
        work += _WORK["widened mask"][machine.level] * steps_between(instr.args[0].args[0], instr)
    return work


def scalar_work(instr: Instr, machine: Machine, usual: float) -> float:
    """Instructions for one value."""
    kind = _kind(instr, Flow(1))
    return _SCALAR[kind][machine.level] if kind in _SCALAR else usual


def round_work(machine: Machine) -> float:
    """The masks of a loop that lanes leave one by one, for each of its rounds."""
    return _ROUND[machine.level]


def branch_work(machine: Machine) -> float:
    """The masks of a branch that some lanes take."""
    return _BRANCH[machine.level]


def select_work(machine: Machine) -> float:
    """One register of a variable that lanes which are off keep."""
    return _MASKED_SET[machine.level]
