"""A pytest plugin: every kernel that tests compile is printed as CUDA C too, into the folder that TACK_TEST_COLLECT names.

``pytest -p collect_cuda tests/conformance --devices cpu``; each text becomes a file that is named by its digest.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    folder = Path(os.environ["TACK_TEST_COLLECT"])
    import tack  # noqa: F401 - the package before its modules
    from tack import _runtime, compiler

    described = _runtime.describe("cuda", "sm_90")
    original = compiler.compile_source

    def compile_source(function: Any, special: Any) -> Any:
        source = original(function, special)
        if special.device.type == "cpu":
            there = type(special)(special.arguments, described, special.captures, special.debug, special.key)
            try:
                printed = original(function, there)
            except tack.UnsupportedError:  # atomics of small integers
                return source
            text = printed.text.replace(" for sm_90,", ",")
            name = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
            (folder / f"{name}.cu").write_text(text, encoding="utf-8")
        return source

    compiler.compile_source = compile_source
