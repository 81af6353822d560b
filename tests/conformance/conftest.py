"""Runs every conformance test that takes ``device`` on every device: those named by --devices, else all that are present.

Nothing here may import tack before the options have chosen the simulators, so the functions do.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

import excuses
import pytest

if TYPE_CHECKING:
    import tack

DEVICE_TYPES = ("cpu", "metal", "cuda", "hip", "level_zero")

# What a test may need of a device, for ``@pytest.mark.needs("...")``. Elsewhere it does not run: there is nothing to be refused.
CAPABILITIES: dict[str, Callable[[tack.Device], bool]] = {
    "f64": lambda d: d.supports_f64,
    "workgroups": lambda d: d.supports_workgroups,
    "no workgroups": lambda d: not d.supports_workgroups,
    "host memory": lambda d: d.host_addressable,
    "NumPy in place": lambda d: d.type == "cpu",
    "queue": lambda d: d.queued,
    "no queue": lambda d: not d.queued,
    "limit": lambda d: d.max_iterations > 0,
    "no limit": lambda d: d.max_iterations == 0,
    "lanes and threads": lambda d: d.vector_bits > 0,  # the options simd= and num_threads=
    "numbers": lambda d: d.type not in ("cpu", "metal"),  # "cuda:0"
    "streams": lambda d: d.type in ("cuda", "hip"),  # those of other libraries, with handles
    "CUDA": lambda d: d.type == "cuda",  # the driver itself: contexts, NVRTC
    "Metal": lambda d: d.type == "metal",  # what is its own: shared memory, the limit of buffers, archives
    "Level Zero": lambda d: d.type == "level_zero",
    "simulator": lambda d: "TACK_SIM_SUPPORT" in os.environ,  # its settings and counters
    "neighbour": lambda d: _count(d.type) > 1,  # another device of the type
}


def _count(kind: str) -> int:
    import tack

    return tack.device_count(kind)


def kind_of(name: str) -> str:
    """The device type of a name that may be a simulated one's."""
    return name.removesuffix("-sim")


@functools.cache
def is_present(kind: str) -> bool:
    import tack

    try:
        tack.device(kind)
    except RuntimeError:
        return False
    return True


def options(config: pytest.Config) -> tuple[list[str], list[str]]:
    """The devices to test, and those of them whose absence is a failure."""

    def names(option: str) -> list[str]:
        return [name.strip() for name in config.getoption(option).split(",") if name.strip()]

    chosen, required = names("--devices"), names("--require-devices")
    if not required:
        required = chosen or ["cpu"]
    if not chosen:
        chosen = [kind for kind in DEVICE_TYPES if is_present(kind)]
        chosen = [name for name in required if kind_of(name) in chosen] + [kind for kind in chosen if f"{kind}-sim" not in required]
        chosen.sort(key=lambda name: DEVICE_TYPES.index(kind_of(name)))
    return list(dict.fromkeys([*chosen, *required])), required


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device" in metafunc.fixturenames:
        chosen, required = options(metafunc.config)
        metafunc.parametrize("device", [name for name in chosen if name in required or is_present(kind_of(name))], indirect=True)


@pytest.fixture(scope="session", autouse=True)
def recorded() -> Iterator[None]:
    """Has all that the tests compile recorded, where that is asked for."""
    folder = os.environ.get("TACK_TEST_COLLECT")
    if not folder:
        yield
        return
    import recorder

    with recorder.listening(recorder.writer(Path(folder))):
        yield


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Iterator[tack.Device]:
    """One of the devices, the default device during the test. A required one that is absent fails here, with the reason."""
    import tack

    chosen = tack.device(kind_of(request.param))
    with chosen:
        yield chosen
    chosen.synchronize()  # an error that the test did not wait for is the test's
    if "TACK_SIM_SUPPORT" in os.environ:
        chosen.trim()  # a wait takes a stand-in the longer the more memory there is


def device_name(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("device") if callspec else None


def matching(item: pytest.Item, entries: tuple[excuses.Excuse, ...]) -> list[excuses.Excuse]:
    name = device_name(item)
    return [e for e in entries if name in (e.device, f"{e.device}-sim") and fnmatch(f"{item.path.name}::{item.name}", f"*{e.test}*")]


def has_what_it_needs(item: pytest.Item) -> bool:
    import tack

    needs = {name for mark in item.iter_markers("needs") for name in mark.args}
    unknown = needs.difference(CAPABILITIES)
    if unknown:
        raise pytest.UsageError(f"{item.nodeid} needs {unknown}; there are {', '.join(CAPABILITIES)}")
    name = device_name(item)
    if not needs or name is None or not is_present(kind_of(name)):
        return True
    return all(CAPABILITIES[need](tack.device(kind_of(name))) for need in needs)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    from tack.errors import CompileError

    refusals = (CompileError, TypeError, ValueError, NotImplementedError, RuntimeError)
    chosen, _ = options(config)
    mine = [item for item in items if item.path.parent.name == "conformance"]
    # A test without a device is the host's: it runs once, beside those of the CPU.
    unwanted = [item for item in mine if not has_what_it_needs(item) or (device_name(item) is None and "cpu" not in chosen)]
    if unwanted:
        config.hook.pytest_deselected(items=unwanted)
        gone = set(unwanted)
        items[:] = [item for item in items if item not in gone]
    used = set()
    for item in mine:
        unsupported = matching(item, excuses.UNSUPPORTED)
        failing = matching(item, excuses.EXPECTED_FAILURE)
        used.update(unsupported, failing)
        for excuse in unsupported:  # refused, not answered wrongly
            item.add_marker(pytest.mark.xfail(reason=f"unsupported: {excuse.reason}", raises=refusals, strict=True))
        for excuse in failing:
            item.add_marker(pytest.mark.xfail(reason=excuse.reason, strict=True))
    whole = not config.option.keyword and all("::" not in str(a) for a in config.args)
    kinds = {kind_of(name) for name in chosen}
    stale = [e for e in (*excuses.UNSUPPORTED, *excuses.EXPECTED_FAILURE) if e.device in kinds and is_present(e.device) and e not in used]
    if whole and mine and stale and {p.name for p in {i.path for i in mine}} >= set(_files(config)):
        raise pytest.UsageError(f"excuses that match no test: {stale}")


def _files(config: pytest.Config) -> list[str]:
    return [p.name for p in (config.rootpath / "tests" / "conformance").glob("test_*.py")]
