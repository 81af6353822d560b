"""Records every kernel that tests compile, printed for each of the languages that look like C: files named by their digests.

``tests/run conformance`` has the suite's runs record what they compile into one folder, with TACK_TEST_COLLECT; the tests of the real
compilers then find it by TACK_TEST_KERNELS. Nothing is compiled twice for it, and kernels with workgroups come from the devices that
have them.
"""

from __future__ import annotations

import functools
import hashlib
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

# Language of a backend -> how its files are called.
SUFFIXES = {"cuda": "cu", "hip": "hip", "level_zero": "cl", "metal": "metal"}


@functools.cache
def targets() -> dict[str, Any]:
    """What the languages are printed for: the most that devices of their kind have."""
    from tack.ir.target import Target
    from tack.types import ARRAY_DTYPES, f32, f64, i32, i64, u32, u64

    words, every = frozenset({i32, u32, f32}), frozenset(ARRAY_DTYPES)
    common: dict[str, Any] = {"supports_f64": True, "supports_workgroups": True, "supports_images": True}
    common |= {"array_dtypes": every, "atomic_dtypes": words, "max_group": 1024, "shared_bytes": 48 << 10}
    wide = {**common, "atomic_dtypes": words | {i64, u64, f64}}
    return {
        "cuda": Target(backend="cuda", title="CUDA", arch="sm_90", **wide),
        "hip": Target(backend="hip", title="HIP", arch="gfx90a", **wide),
        "level_zero": Target(backend="level_zero", title="Level Zero", arch="skl", **common),
        "metal": Target(backend="metal", title="Metal", arch="apple7", **{**common, "array_dtypes": every - {f64}, "supports_f64": False}),
    }


def printed(name: str, plan: Any, options: dict[str, object], math: Any, debug: bool) -> Iterator[tuple[str, str]]:
    """The texts of a planned kernel, each with its backend, for the targets that can have it."""
    from tack.codegen.affine import indices_of
    from tack.codegen.c_printer import print_text
    from tack.codegen.dialects import dialect_of
    from tack.codegen.walk import instructions

    bodies = [block for entry in plan.entries for block in (entry.prologue, entry.body)]
    atomics = {indices_of(i)[0].dtype for block in bodies for i in instructions(block) if i.op == "atomic"}
    images = any(i.op == "sample" for block in bodies for i in instructions(block))
    doubles = False  # known once it is printed in a language that has them
    for backend, target in targets().items():
        if not atomics <= target.atomic_dtypes or (doubles and not target.supports_f64) or (images and not target.supports_images):
            continue
        dialect = dialect_of(backend)
        if dialect is None:
            continue
        text = print_text(name, plan, replace(target, debug=debug), options, math, dialect).text
        doubles = doubles or " f64;" in text
        yield backend, text.replace(f" for {target.arch},", ",", 1)


@contextmanager
def listening(keep: Callable[[str, str], None]) -> Iterator[None]:
    """Meanwhile, what this process prints for any device is printed in all languages, and ``keep`` gets each text with its suffix."""
    import tack  # noqa: F401 - the package before its modules
    from tack import codegen

    def both(original: Any) -> Any:
        def printer(name: str, plan: Any, target: Any, options: Any, math: Any, *rest: Any) -> Any:
            try:
                for backend, text in printed(name, plan, options, math, target.debug):
                    keep(SUFFIXES[backend], text)
            except Exception:  # not the running test's failure; the tests of the compilers report it
                keep("failure", f"kernel {name}\n{traceback.format_exc()}")
            return original(name, plan, target, options, math, *rest)

        return printer

    with pytest.MonkeyPatch.context() as patch:
        for function in ("print_module", "print_text"):
            patch.setattr(codegen, function, both(getattr(codegen, function)))
        yield


def writer(folder: Path) -> Callable[[str, str], None]:
    """Keeps texts as files, which several processes may write."""
    folder.mkdir(parents=True, exist_ok=True)

    def write(suffix: str, text: str) -> None:
        path = folder / f"{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}.{suffix}"
        if not path.exists():
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_text(text, encoding="utf-8")
            part.replace(path)

    return write


def of_programs(backend: str, *, debug: bool) -> list[str]:
    """The texts of the suite's programs, of every dtype that the backend has."""
    import numpy as np
    from programs import PROGRAMS

    import tack

    kept: dict[str, list[str]] = {}
    dtypes = {"u8": np.uint8, "i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64}
    with listening(lambda suffix, text: kept.setdefault(suffix, []).append(text)), tack.device("cpu"), tack.debug(debug):
        for program in PROGRAMS:
            for name in program.dtypes:
                tack.inspect(program.kernel, *program.make(20, dtypes[name], np.random.default_rng(1)))
    assert "failure" not in kept, kept["failure"][:3]
    return kept[SUFFIXES[backend]]


def texts(backend: str) -> list[str]:
    """What was recorded for a backend, in no particular order but always the same one."""
    named = os.environ.get("TACK_TEST_KERNELS")
    if not named:
        pytest.skip("the suite's kernels are recorded, and then compiled, by tests/run conformance")
    folder = Path(named)
    failures = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.failure"))]
    assert not failures, failures[:3]
    found = [path.read_text(encoding="utf-8") for path in sorted(folder.glob(f"*.{SUFFIXES[backend]}"))]
    assert len(found) > 500, f"only {len(found)} kernels are recorded"
    return found
