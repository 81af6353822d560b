"""The capability table of the backends documentation: in our words here, against the code, the documentation, and what is refused."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from language import define

import tack
from tack import _runtime
from tack.devices import title_of
from tack.types import ARRAY_DTYPES

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT.parent / "shared" / "spec" / "backends-page.txt"
CONTRACT = ROOT / "docs" / "capability-contract.md"

ALL = frozenset(t.name for t in ARRAY_DTYPES)
SMALL = frozenset({"i32", "u32", "f32"})
WIDE = frozenset({"i32", "u32", "i64", "u64", "f32", "f64"})


@dataclass(frozen=True)
class Row:
    """A backend. ``f64``, ``images``: True, False, or None where the device decides."""

    f64: bool | None
    groups: bool
    atomics: frozenset[str]
    reductions: str
    images: bool | None
    limit: str
    targets: tuple[str, ...]  # architectures that code is compiled for without a device
    f64_without: str = ""  # those without f64
    images_without: str = ""  # ... without images


TABLE = {
    "cpu": Row(True, False, ALL, "no (NumPy)", False, "none", ()),
    "metal": Row(False, True, SMALL, "f32", True, "2^32", ("apple7", "apple9"), "apple7 apple9"),
    "cuda": Row(True, True, WIDE, "f32", True, "groups x 256", ("sm_75", "sm_90", "sm_120")),
    "hip": Row(True, True, WIDE, "f32", None, "groups x 256, at most 2^32 - 256", ("gfx90a", "gfx1030", "gfx942"), "", "gfx90a gfx942"),
    "level_zero": Row(None, True, SMALL, "f32", None, "groups x group", ("skl", "dg1", "pvc"), "dg1", "pvc"),
}
TARGETS = [(kind, arch) for kind, row in TABLE.items() for arch in row.targets]


def described(kind: str, arch: str) -> Any:
    try:
        return _runtime.describe(kind, arch)
    except ValueError as error:
        if "known only where there is one" in str(error):
            pytest.skip(f"this build has no {kind} backend")
        raise


def check(kind: str, arch: str, can: Any) -> None:
    """The code's table against ours."""
    row = TABLE[kind]
    f64 = row.f64 if row.f64 is not None else arch not in row.f64_without.split()
    assert can.supports_f64 == f64
    assert set(can.array_dtypes) == (ALL if f64 else ALL - {"f64"})
    assert can.supports_workgroups == row.groups == (can.max_group > 0)
    assert set(can.atomic_dtypes) == row.atomics
    images = row.images if row.images is not None else arch not in row.images_without.split()
    assert can.supports_images == images and (images or not any(can.max_image))
    assert can.queued == (kind != "cpu")
    assert can.block == 256
    if kind == "cpu":
        assert can.max_iterations == 0
    elif kind == "metal":
        assert can.max_iterations == 1 << 32
    else:
        assert can.max_iterations % can.block == 0 and can.max_iterations > 0
        if kind == "cuda":
            assert can.max_iterations == (2**31 - 1) * 256
        if kind == "hip":
            assert can.max_iterations <= 2**32 - 256


@pytest.mark.parametrize(("kind", "arch"), TARGETS, ids=lambda v: str(v))
def test_the_table_is_what_code_is_compiled_for(kind: str, arch: str) -> None:
    check(kind, arch, described(kind, arch))


def test_the_table_is_what_the_device_says(device: tack.Device) -> None:
    row = TABLE[device.type]
    if row.f64 is None or row.images is None:
        assert device.supports_f64 == ("f64" in device.array_dtypes)
        assert set(device.atomic_dtypes) == row.atomics and device.supports_workgroups
        assert device.supports_images == (min(device.max_image) > 0)
    else:
        check(device.type, device.arch, device)
    backend = device._backend
    assert backend.supports_f64 == device.supports_f64 and backend.supports_workgroups == row.groups
    assert {t.name for t in backend.supported_atomic_dtypes} == row.atomics
    assert {t.name for t in backend.supported_dtypes} == set(device.array_dtypes)


# ---- the documentation

_WORDS = {"yes": True, "no": False, "depends on the device": None}
_IMAGES = {"software": False, "hardware": True, "hardware where the device has image support": None}
_IMAGES["hardware where the device has samplers"] = None
_LIMITS = {"no limit": "none", "2^32": "2^32", "device limit (max grid × 256)": "groups x 256"}
_LIMITS["device limit, at most 2^32 − 256"] = "groups x 256, at most 2^32 - 256"
_LIMITS["device limit (max group count × group size)"] = "groups x group"
_ATOMICS = {"all ten": ALL, "i32, u32, f32": SMALL, "32- and 64-bit ints, f32, f64": WIDE}


def page() -> str:
    if not PAGE.exists():
        pytest.skip("the page is not beside this checkout")
    return PAGE.read_text()


def test_the_table_is_the_pages_cell_by_cell() -> None:
    lines = page().splitlines()
    head = next(i for i, line in enumerate(lines) if line.split("\t")[1:] == ["CPU", "Metal", "CUDA", "HIP", "Level Zero"])
    cells = {line.split("\t")[0]: line.split("\t")[1:] for line in lines[head + 1 : head + 7]}
    for column, (kind, row) in enumerate(TABLE.items()):
        assert title_of(kind) == lines[head].split("\t")[column + 1]
        found = {name: values[column] for name, values in cells.items()}
        assert _WORDS[found.pop("f64 arrays")] == row.f64
        assert _WORDS[found.pop("Shared memory, barriers, thread_id, block reductions")] == row.groups
        assert _ATOMICS[found.pop("Atomic array types")] == row.atomics
        assert found.pop("sum/min/max on the device") == row.reductions
        assert _IMAGES[found.pop("3D textures")] == row.images
        assert _LIMITS[found.pop("Iterations per launch")] == row.limit
        assert not found


def test_the_types_of_arrays_are_the_pages() -> None:
    rows = dict(re.findall(r"^(CPU|Metal|CUDA|HIP|Level Zero)\t(i8, .*)$", page(), re.MULTILINE))
    for kind, row in TABLE.items():
        text = rows.pop(title_of(kind))
        listed = frozenset(re.findall(r"\b[iuf]\d+\b", text.partition(" (")[0].partition(", plus")[0]))
        assert listed == (ALL if row.f64 else ALL - {"f64"})
        assert ("plus f64 on devices that report it" in text) == (row.f64 is None)
        assert ("(no f64)" in text) == (row.f64 is False)
    assert not rows


# ---- refusals, for targets that need not be there


@tack.kernel
def double_each(data):
    for i in range(data.shape[0]):
        data[i] = data[i] * 2


@tack.kernel
def computes_in_f64(data):
    for i in range(data.shape[0]):
        data[i] = tack.f32(tack.f64(data[i]) / 3)


@tack.kernel
def counts(data):
    for i in range(data.shape[0]):
        tack.atomic_add(data, 0, data[i])


@pytest.mark.parametrize(("kind", "arch"), TARGETS, ids=lambda v: str(v))
def test_what_a_target_lacks_is_refused_in_the_documented_words(kind: str, arch: str) -> None:
    can, target, title = described(kind, arch), f"{kind}:{arch}", title_of(kind)
    if not can.supports_f64:
        known = ", ".join(f"tack.{name}" for name in sorted(can.array_dtypes))
        with pytest.raises(TypeError) as caught:
            tack.compile(double_each, tack.f64[:], target=target)
        assert str(caught.value) == (
            f"Kernel 'double_each': parameter 'data' has dtype tack.f64, which is not supported on {title}. Supported dtypes: {known}"
        )
        with pytest.raises(tack.UnsupportedError, match=rf"(?s)computes_in_f64.*tack.f64 is not supported on {title}\."):
            tack.compile(computes_in_f64, tack.f32[:], target=target)
    for dtype in ARRAY_DTYPES:
        if dtype.name in can.array_dtypes and dtype.name not in can.atomic_dtypes:
            text = rf"(?s)counts.*tack.atomic_add of {dtype} arrays is not supported on {title}\."
            with pytest.raises(tack.UnsupportedError, match=text) as refused:
                tack.compile(counts, dtype[:], target=target)
            assert isinstance(refused.value, NotImplementedError)
            assert ", ".join(f"tack.{name}" for name in sorted(can.atomic_dtypes)) in str(refused.value)


def test_the_refusal_of_a_type_is_the_pages_word_for_word() -> None:
    (example,) = re.findall(r"^TypeError: (Kernel 'my_kernel': .*?)\n\n", page(), re.MULTILINE | re.DOTALL)
    my_kernel = define("@tack.kernel\ndef my_kernel(data):\n    for i in range(data.shape[0]):\n        data[i] = 0.0\n")["my_kernel"]
    with pytest.raises(TypeError) as caught:
        tack.compile(my_kernel, tack.f64[:], target="metal:apple7")
    assert str(caught.value) == " ".join(example.split())


GROUPS = {
    "tack.shared": "s = tack.shared(tack.f32, 4)",
    "tack.shared_like": "s = tack.shared_like(data, 4)",
    "tack.barrier": "tack.barrier()",
    "tack.thread_id": "t = tack.thread_id()",
    "tack.block_sum": "t = tack.block_sum(data[i])",
    "tack.block_min": "t = tack.block_min(data[i])",
    "tack.block_max": "t = tack.block_max(data[i])",
}


def test_the_page_names_these_primitives() -> None:
    (named,) = re.findall(r"Kernels that use (.*?) are rejected on CPU before anything is compiled or run", page())
    assert set(re.findall(r"tack\.\w+", named)) == set(GROUPS)


@pytest.mark.parametrize("name", GROUPS)
def test_workgroups_on_the_cpu_are_refused_in_a_branch_that_never_runs(name: str) -> None:
    text = f"""
        @tack.kernel
        def never(data):
            for i in range(data.shape[0]):
                if False:
                    {GROUPS[name]}
                data[i] = 0.0
    """
    never, cpu = define(textwrap.dedent(text))["never"], tack.device("cpu")
    data, compiled, refusal = tack.ones(4, device=cpu), cpu.compiled, rf"(?s)Kernel 'never' uses {name}, which is not supported on CPU"
    with pytest.raises(RuntimeError, match=refusal) as call:
        never(data)
    assert not isinstance(call.value, NotImplementedError)
    with pytest.raises(NotImplementedError, match=refusal):
        tack.inspect(never, data)
    assert cpu.compiled == compiled and data.tolist() == [1.0] * 4


def test_what_is_portable_runs(device: tack.Device) -> None:
    """Types, atomics and local memory that all five have."""

    @tack.kernel
    def portable(values, total, lowest):
        for i in range(values.shape[0]):
            window = tack.local_array(tack.i32, 3)
            for k in range(3):
                window[k] = values[(i + k) % values.shape[0]]
            tack.atomic_add(total, 0, window[0] + window[1] + window[2])
            tack.atomic_min(lowest, 0, tack.f32(window[1]))

    values = np.arange(1000, dtype=np.int32)
    total, lowest = tack.zeros(1, tack.i32), tack.ones(1)
    portable(tack.array(values), total, lowest)
    assert total.item() == 3 * int(values.sum()) and lowest.item() == 0.0


# ---- docs/capability-contract.md


def dtypes(names: frozenset[str]) -> str:
    return "all ten" if names == ALL else ", ".join(f"`{t.name}`" for t in ARRAY_DTYPES if t.name in names)


def matrix() -> str:
    """The documentation's matrix."""
    words = {True: "yes", False: "no", None: "the device decides"}
    images = {True: "hardware", False: "software", None: "hardware where the device has it"}
    rows = {
        "`f64` arrays and values": [words[r.f64] for r in TABLE.values()],
        "array types": ["all ten" if r.f64 else "nine, and `f64` where it is there" if r.f64 is None else "nine" for r in TABLE.values()],
        "shared memory, barriers, `thread_id`, block reductions": [words[r.groups] for r in TABLE.values()],
        "atomic array types": [dtypes(r.atomics) for r in TABLE.values()],
        "`sum` `min` `max` on the device": [r.reductions for r in TABLE.values()],
        "3-D textures": [images[r.images] for r in TABLE.values()],
        "iterations per launch": [r.limit for r in TABLE.values()],
        "calls return": ["when done" if kind == "cpu" else "when queued" for kind in TABLE],
    }
    lines = [["", *map(title_of, TABLE)], ["---"] * 6, *([name, *cells] for name, cells in rows.items())]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


def test_the_capability_contract_has_the_matrix() -> None:
    assert matrix() in CONTRACT.read_text(), f"docs/capability-contract.md should have\n{matrix()}"


if __name__ == "__main__":
    print(matrix())
