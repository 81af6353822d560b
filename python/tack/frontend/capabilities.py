"""What a kernel asks of a device: found in the text of all its functions, dead branches included, and checked against the target."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import UnsupportedError
from ..ir.nodes import Kernel
from ..ir.target import Target
from ..types import f64
from .diagnostics import error
from .hir import Function
from .meaning import Constant, DTypeMeaning, Environment, FuncMeaning, Intrinsic, Meaning, ModuleMeaning, TupleMeaning
from .names import WORKGROUP
from .parse import parse

__all__ = ["CapabilityError", "check", "check_uses", "scan"]


class CapabilityError(UnsupportedError):
    """The device lacks what the kernel asks for. ``capability``: "workgroups", "f64", "atomic:add:f32", "print", ..."""

    capability: str = ""


def resolve(environment: Environment, path: tuple[str, ...]) -> Meaning | None:
    """What a dotted name means; None where it is bound nowhere or where an attribute is that of a run-time value."""
    meaning = environment.lookup(path[0])
    for name in path[1:]:
        if not isinstance(meaning, ModuleMeaning):
            return None if not isinstance(meaning, (DTypeMeaning, Constant)) else meaning
        meaning = environment.attribute(meaning, name)
    return meaning


def scan(fn: Function, environment: Environment) -> frozenset[str]:
    """What the text of ``fn`` and of every function that it names asks for, executed or not: "workgroups", "f64", "print"."""
    uses: set[str] = set()
    seen: set[object] = set()
    work: list[tuple[Function, Environment]] = [(fn, environment)]
    while work:
        function, env = work.pop()
        pending = [(resolve(env, path), path in function.used) for path in function.captured]
        while pending:
            meaning, used = pending.pop()
            if isinstance(meaning, Intrinsic):
                if meaning.name in WORKGROUP and meaning.origin == "tack":
                    uses.add("workgroups")
                elif meaning.name == "print":
                    uses.add("print")
            elif isinstance(meaning, (DTypeMeaning, Constant)):
                if used and meaning.dtype == f64:
                    uses.add("f64")
            elif isinstance(meaning, TupleMeaning):
                pending.extend((item, used) for item in meaning.items)
            elif isinstance(meaning, FuncMeaning) and meaning.identity not in seen:
                seen.add(meaning.identity)
                work.append((parse(meaning.source, kernel=fn.name), meaning.environment))
    return frozenset(uses)


def check(kernel: Kernel, target: Target) -> None:
    """Raises CapabilityError, which is an UnsupportedError, where the target lacks what the kernel uses."""
    check_uses(kernel.name, kernel.uses, target)


def check_uses(name: str, uses: Iterable[str], target: Target) -> None:
    """The same for the capabilities of a kernel that is not typed yet. The first missing one, in alphabetical order, is named."""
    for use in sorted(uses):
        if use == "workgroups" and not target.supports_workgroups:
            raise _lacking(
                name,
                use,
                f"shared memory, barriers, thread_id and block reductions are not supported on {target.title}.",
                "For per-iteration scratch storage, use tack.local_array or tack.local_array_like, which work on every backend.",
            )
        if use == "f64" and not target.supports_f64:
            raise _lacking(name, use, f"tack.f64 is not supported on {target.title}.", "Use tack.f32.")
        if use.startswith("atomic:"):
            _, kind, dtype = use.split(":")
            supported = sorted(t.name for t in target.atomic_dtypes)
            if dtype not in supported:
                names = ", ".join(f"tack.{t}" for t in supported) or "none"
                raise _lacking(
                    name,
                    use,
                    f"tack.atomic_{kind} of tack.{dtype} arrays is not supported on {target.title}.",
                    f"Atomic array types there: {names}.",
                )


def _lacking(name: str, capability: str, message: str, hint: str) -> CapabilityError:
    failure = error(CapabilityError, message, kernel=name, hint=hint)
    failure.capability = capability
    return failure
