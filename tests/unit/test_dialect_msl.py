"""Printed MSL: whole texts against golden files, buffers, address spaces, and what clang says of it where that is installed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msl_check
import pytest
from codegen_harness import Build
from dialect_kernels import METAL, everything, mean, peaks, printed, sampling
from test_c_printer import checked, saxpy, stencil

from tack import types as T
from tack.codegen.dialects.msl import MSL
from tack.types import Layout

GOLDEN = Path(__file__).parent.parent / "golden"
MAKERS = {"saxpy": saxpy, "stencil": stencil, "mean": mean, "checked": checked, "peaks": lambda: peaks(METAL)}
needs_clang = pytest.mark.skipif(msl_check.compiler() is None, reason="needs clang++ 14 or newer (Debian: clang-19)")


def text_of(name: str) -> str:
    return printed(MAKERS[name](), METAL, debug=name == "checked").text


@pytest.mark.parametrize("name", MAKERS)
def test_golden(name: str) -> None:
    """Change the files by hand, and look."""
    assert text_of(name) == (GOLDEN / f"metal_{name}.metal").read_text(encoding="utf-8"), text_of(name)


@needs_clang
def test_all_texts_are_right() -> None:
    operations = [printed(everything(t), METAL).text for t in T.ARRAY_DTYPES if t != T.f64]
    assert msl_check.refused([*map(text_of, MAKERS), *operations, printed(sampling(), METAL).text]) == []


def many(arrays: int, scalars: int) -> Build:
    build = Build("many")
    given = [build.array(f"a{k}", T.f32) for k in range(arrays)]
    numbers = [build.scalar(f"s{k}", T.f32) for k in range(scalars)]
    with build.parallel((given[0], 0)) as (i,):
        for k, array in enumerate(given):
            build.store(array, build.arg(numbers[k % scalars]) if scalars else build.const(T.f32, 1.0), i)
    for number in numbers[arrays:]:
        with build.parallel((given[0], 0)) as (i,):
            build.store(given[0], build.arg(number), i)
    return build


def heads(text: str) -> list[str]:
    return re.findall(r"kernel void \w+\((.*)\) {", text)


def test_numbers_share_one_buffer() -> None:
    source = printed(many(30, 40), METAL)
    first = heads(source.text)[0].split(", ")
    assert first[:2] == ["device f32* a0 [[buffer(0)]]", "device f32* a1 [[buffer(1)]]"]
    assert first[29:31] == ["device f32* a29 [[buffer(29)]]", "constant ulong* tack_words [[buffer(30)]]"]
    assert [p.split()[-1] for p in first[31:]] == [
        *("[[thread_position_in_threadgroup]]", "[[threadgroup_position_in_grid]]", "[[threads_per_threadgroup]]"),
    ]
    numbers = [p for p in source.entries[0].params if p.kind != "pointer"]
    assert [p.kind for p in numbers] == [*["scalar"] * 30, "extent"]
    assert "const f32 s29 = as_type<float>((uint)tack_words[29]);\n  const i64 extent0 = (i64)tack_words[30];" in source.text


def test_words_of_every_type() -> None:
    build = Build("words")
    out = build.array("out", T.i64, 2, Layout.GENERAL)
    params = [build.scalar(f"p_{t.name}", t) for t in (*T.ARRAY_DTYPES[:9], T.BOOL)]
    with build.parallel((out, 0)) as (i,):
        for k, param in enumerate(params):
            build.store(out, build.cast(build.arg(param), T.i64), build.i(k), i)
    lines = re.findall(r"const \w+ p_\w+ = (.*);", printed(build, METAL).text)
    expected = ["(i8){}", "(i16){}", "(i32){}", "(i64){}", "(u8){}", "(u16){}", "(u32){}", "{}", "as_type<float>((uint){})", "(u8){}"]
    found = {re.sub(r"tack_words\[\d+\]", "{}", line) for line in lines}
    assert len(lines) == 10 and found == set(expected)


def test_textures_are_no_buffers() -> None:
    (head,) = heads(printed(sampling(), METAL).text)
    assert head.startswith(
        "device f32* out [[buffer(0)]], constant ulong* tack_words [[buffer(1)]], texture3d<float, access::sample> texels [["
    )
    assert "texels [[texture(0)]], uint tack_thread" in head


def test_pointers_say_where_they_point() -> None:
    text = text_of("peaks")
    assert "tack_atomic_max_f32_shared(threadgroup f32* at, f32 a)" in text and "tack_atomic_max_f32(device f32* at, f32 a)" in text
    assert "constant f32 tack_table_0[]" in text
    for line in text.splitlines():
        for pointer in re.findall(r"([\w ]*)\b(?:[iuf]\d+)\*", line):
            assert re.search(r"\b(device|threadgroup)\b", pointer), line


def test_options() -> None:
    assert MSL.options(False) == "-fno-fast-math" and MSL.options(True) == "-ffast-math"
    assert printed(saxpy(), METAL).options == "-fno-fast-math"


WORDS = ("kernel", "device", "threadgroup", "constant", "half", "float4", "popcount", "metal", "tack_words", "sampler", "access")


def test_any_name_can_be_a_parameter() -> None:
    build = Build("kernel")
    arrays = [build.array(name, T.f32) for name in WORDS]
    with build.parallel((arrays[0], 0), names=["device"]) as (i,):
        for array in arrays:
            build.store(array, build.op("math", T.f32, build.load(array, i), attr="sqrt"), i)
    text: Any = printed(build, METAL).text
    names = re.findall(r"device f32\* (\w+) \[\[", text)
    assert len(set(names)) == len(names) == len(WORDS) and not set(names) & set(WORDS)
    if msl_check.compiler() is not None:
        assert msl_check.refused([text]) == []
