"""tack.inspect: what a kernel becomes, as text, without launching anything."""

from __future__ import annotations

from .kernels import kernel_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._runtime import Kernel
    from .kernels import KernelFunction, Specialization

__all__ = ["inspect"]

_MODES = ("ir", "source", "optimized", "asm", "schedule")


def inspect(kernel: Any, *args: Any, mode: str = "source", **kwargs: Any) -> str:
    """What ``kernel`` becomes for these arguments, on the device where the call would run. Launches nothing.

    ``args`` are a call's arguments; an array type such as ``tack.f32[:, :]`` may stand for an array. ``mode``:

    - ``"ir"``: tack's typed intermediate representation.
    - ``"source"``: the text that the device's compiler gets (LLVM IR on the CPU, CUDA C++ on CUDA).
    - ``"optimized"``: that text after the compiler's optimizer (PTX on CUDA).
    - ``"asm"``: the machine code as assembly (PTX on CUDA).
    - ``"schedule"``: the launches of a call, with the measured costs behind the choice between one thread and all.

    The same checks as a call's are made and the same errors raised, but for workgroup functions on the CPU: NotImplementedError.
    """
    if mode not in _MODES:
        raise ValueError(f"tack.inspect() has no mode {mode!r}; there are {', '.join(map(repr, _MODES))}")
    function = kernel_function(kernel)
    special = function.specialize(function.bind(args, kwargs), None, lacking=NotImplementedError)
    if mode == "schedule":
        return _schedule(function.kernel_of(special), special)
    return _text(function, special, mode)


def _text(function: KernelFunction, special: Specialization, mode: str) -> str:
    from . import compiler

    if mode == "ir":
        return compiler.ir_text(function, special)
    source = compiler.compile_source(function, special)
    return source.text if mode == "source" else compiler.assemble(source, mode)


def _schedule(kernel: Kernel, special: Specialization) -> str:
    """The steps of a call and what is known of each entry's speed."""
    from .ir.nodes import Extent
    from .ir.text import extent_text

    def shown(terms: list[tuple[str, int, int, int]]) -> str:
        return extent_text(Extent(tuple(terms)))

    plan = kernel.schedule()
    origin = "loaded from the cache" if kernel.from_cache else "compiled"
    threads = plan["threads"]
    together = f"{kernel.simd} iteration{'s' if kernel.simd != 1 else ''} at a time"
    lines = [f"kernel {kernel.name} on {special.device} ({origin}), {together}, up to {threads} thread{'s' if threads != 1 else ''}"]
    symbols = {position: entry["symbol"] for position, entry in enumerate(plan["entries"])}
    depth = 1
    for step in plan["steps"]:
        if step["kind"] == "sequence_end":
            depth -= 1
        if step["kind"] in ("sequence_end", "check"):
            continue
        bounds = " x ".join(
            f"range({shown(start)}, {shown(stop)}, {shown(by)})"
            for start, stop, by in zip(step["start"], step["stop"], step["step"], strict=True)
        )
        if step["kind"] == "sequence_begin":
            lines.append(f"{'  ' * depth}sequential {bounds}")
            depth += 1
        else:
            lines.append(f"{'  ' * depth}launch {symbols.get(step['entry'], step['entry'])} over {bounds}")
    for entry in plan["entries"]:
        lines.append(
            f"  {entry['symbol']}: {_ns(entry['ns_per_iteration'])} per iteration, fan-out {_ns(entry['fan_out_ns'])}; "
            f"{entry['serial']} serial and {entry['parallel']} parallel launches so far"
        )
    return "\n".join(lines) + "\n"


def _ns(value: float) -> str:
    return "not measured" if value < 0 else f"{value:.3g} ns"
