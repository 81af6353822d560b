"""Kernels that sample by texture units, through the front end and the IR's interpreter, against the same kernels in software."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from frontend_env import CPU, DictEnvironment, source

from tack import types
from tack.codegen.dialects import dialect_of
from tack.frontend.infer import infer
from tack.frontend.meaning import ArrayArg, TextureArg
from tack.frontend.parse import parse
from tack.ir.interpret import run
from tack.ir.nodes import Kernel
from tack.ir.text import to_text
from tack.ir.verify import SAMPLING, verify

IMAGES = replace(CPU, supports_images=True)
LOOK = """
def look(out, tex, at):
    for i in range(out.shape[0]):
        out[i] = tex.sample(at[i, 0], at[i, 1], at[i, 2])
"""
VOLUME = np.random.default_rng(3).random((4, 1, 7), np.float32)
FAR = np.float32(list(itertools.product((-3.3, -0.5, 0.0, 0.25, 1.0, 1.2, 7.75), repeat=3)))
ODD = np.float32([[np.nan, 0.5, 0.5], [0.5, np.inf, 0.5], [0.5, 0.5, -np.inf], [1e30, -1e30, 0.5]])


def made(interp: str, wrap: str, hardware: bool, target: Any = IMAGES, dtype: Any = types.f32, **options: object) -> Kernel:
    args = [ArrayArg(dtype, 1), TextureArg(interp, wrap, hardware), ArrayArg(types.f32, 2)]
    kernel = infer(parse(source(LOOK, "look")), args, DictEnvironment(), target, options)
    verify(kernel)
    return kernel


def sampled(kernel: Kernel, at: Any, dtype: Any = np.float32) -> Any:
    out = np.zeros(len(at), dtype)
    run(kernel, [out, VOLUME, at])
    return out


@pytest.mark.parametrize("wrap", ["clamp", "repeat", "mirror"])
@pytest.mark.parametrize("interp", ["linear", "nearest"])
def test_hardware_and_software_sample_the_same(interp: str, wrap: str) -> None:
    hardware, software = made(interp, wrap, True), made(interp, wrap, False)
    mode = "nearest" if interp == "nearest" else "repeat" if wrap == "repeat" else "linear"
    assert f"sample_{mode}(tex, " in to_text(hardware) and "sample_" not in to_text(software)
    found, expected = sampled(hardware, FAR), sampled(software, FAR)
    np.testing.assert_allclose(found, expected, rtol=0, atol=0 if interp == "nearest" else 2e-5)
    np.testing.assert_array_equal(np.isnan(sampled(hardware, ODD)), np.isnan(sampled(software, ODD)))
    if interp == "nearest" or wrap == "clamp":
        np.testing.assert_allclose(sampled(hardware, ODD), sampled(software, ODD), rtol=0, atol=2e-5)
    wide = made(interp, wrap, True, dtype=types.f64)  # coordinates stay f32
    np.testing.assert_array_equal(sampled(wide, FAR, np.float64), found.astype(np.float64))


def test_software_where_hardware_may_not_or_cannot() -> None:
    for kernel in (made("linear", "clamp", True, exact=True), made("linear", "clamp", True, CPU), made("linear", "clamp", False)):
        assert "sample_" not in to_text(kernel)
        np.testing.assert_array_equal(sampled(kernel, FAR), sampled(made("linear", "clamp", False), FAR))


@pytest.mark.parametrize("backend", ["cuda", "level_zero", "metal"])
def test_a_language_has_words_for_all_ways_of_sampling(backend: str) -> None:
    dialect = dialect_of(backend)
    assert dialect is not None and dialect.texture
    assert set(dialect.sample) == set(SAMPLING)
    assert all(template.format("tex", "x", "y", "z").count("tex") for template in dialect.sample.values())
