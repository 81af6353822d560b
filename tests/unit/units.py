"""Several texts to a translation unit, for the tests of the real compilers, whose start costs more than a kernel does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

__all__ = ["refused"]


def units(texts: Sequence[str], size: int) -> list[list[str]]:
    """The texts, each once, in groups of about ``size`` characters; the long ones first, as one of 2,000 statements takes NVRTC as long
    as 500 usual kernels, and at the end all would wait for it."""
    found: list[list[str]] = []
    total = size
    for text in sorted(dict.fromkeys(texts), key=len, reverse=True):
        if total + len(text) > size:
            found.append([])
            total = 0
        found[-1].append(text)
        total += len(text)
    return found


def refused(texts: Sequence[str], compile: Callable[[Sequence[str]], str], size: int = 48_000) -> list[str]:
    """What a compiler says about those texts that it refuses, each with its text; two units at a time.

    ``compile`` takes several texts as one unit and answers what was said, nothing where all is right. A unit that is refused is compiled
    again text by text, so that the right one is named.
    """

    def one(unit: Sequence[str]) -> list[str]:
        together = compile(unit)
        if not together:
            return []
        alone = [(text, compile([text])) for text in unit] if len(unit) > 1 else [(unit[0], together)]
        return [f"{said[:4000]}\n{text}" for text, said in alone if said] or [f"only together: {together[:4000]}"]

    with ThreadPoolExecutor(2) as pool:
        return [said for found in pool.map(one, units(texts, size)) for said in found]
