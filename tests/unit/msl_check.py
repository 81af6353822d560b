"""MSL read by clang as C++ for OpenCL, which has the same address spaces, for tests: where a clang is, and what it says about a text."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from unit import units

WORDS = Path(__file__).with_name("msl_words.h")
FLAGS = ("-x", "clcpp", "-cl-std=clc++2021", "-target", "spir64", "-fsyntax-only", "-cl-no-stdinc", "-w")


@functools.cache
def compiler() -> str | None:
    """A clang++ that knows C++ for OpenCL 2021 (14 or newer), the newest one; None if there is none."""
    for version in range(25, 13, -1):
        found = shutil.which(f"clang++-{version}")
        if found:
            return found
    return shutil.which("clang++")


def without_attributes(text: str) -> str:
    """The text as C++ for OpenCL takes it."""
    text = re.sub(r" ?\[\[[^\]]*\]\] ?", "", text.replace("#include <metal_stdlib>\n", ""))
    return re.sub(r"\bfloat3\(", "(float3)(", text)


def joined(texts: Sequence[str]) -> str:
    """Several kernels as one text. All that a text defines has a name of the printer's; types are defined alike everywhere."""
    return "\n".join(re.sub(r"\btack_", f"tack_{k}_", without_attributes(text)) for k, text in enumerate(texts))


def check(text: str) -> str:
    """What clang says about a text; nothing if it is right."""
    command = [compiler() or "", *FLAGS, "-include", str(WORDS), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False).stderr


def refused(texts: Sequence[str]) -> list[str]:
    """What clang says about those texts that are not right."""
    return units.refused(texts, lambda unit: check(joined(unit)), size=200_000)
