"""tack.compile: kernels for types and targets, without arguments and without the device."""

from __future__ import annotations

from pathlib import Path

import cpp_host
import numpy as np
import nvrtc
import pytest

import tack
from tack import _runtime

needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="needs nvidia-cuda-nvrtc")


@tack.kernel
def scale(out, x, factor, shift=1):
    for i, j in tack.ndrange(x.shape[0], x.shape[1]):
        out[i, j] = x[i, j] * factor + shift


def halve(x):
    for i in range(len(x)):
        x[i] /= 3


SPECS = (tack.f32[:, :], tack.f32[:, :], float)


def test_a_kernel_for_the_cpu() -> None:
    made = tack.compile(scale, *SPECS, target="cpu")
    assert made.name == "scale" and made.target == f"cpu:{tack.device('cpu').arch}"
    assert made.binary.startswith(b"\x7fELF") and "define void @tack_scale_0" in made.source
    assert [(a.name, a.kind, a.rank, a.written) for a in made.arguments] == [
        *(("out", "array", 2, True), ("x", "array", 2, False), ("factor", "floating", 0, False), ("shift", "integer", 0, False)),
    ]
    assert [e.symbol for e in made.entries] == ["tack_scale_0"] and [s.kind for s in made.steps] == ["launch"]
    assert repr(made) == f"<tack.compile() of 'scale' for {made.target}, {len(made.binary)} bytes>"
    assert tack.compile(scale, *SPECS, target=tack.device("cpu")).binary == made.binary


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_a_kernel_for_a_gpu_that_is_not_there(arch: str) -> None:
    made = tack.compile(scale, *SPECS, target=f"cuda:{arch}")
    assert made.target == f"cuda:{arch}" and made.binary.startswith(b"\x7fELF")
    assert f"for {arch}, CUDA C++" in made.source and "tack_scale_0(" in made.source
    assert made.entries[0].params[0].kind == "pointer"
    fast = tack.compile(tack.kernel(fast_math=True)(halve), tack.f32[:], target=f"cuda:{arch}")
    assert fast.options != made.options  # a host that compiles the text needs them


def test_what_may_stand_for_an_argument() -> None:
    def kinds(*specs: object, **named: object) -> list[tuple[str, str]]:
        made = tack.compile(scale, tack.f64[:, :], tack.f64[:, :], *specs, target="cpu", **named)
        return [(a.kind, a.dtype.name) for a in made.arguments[2:]]

    assert kinds(float, int) == kinds(2.0, 3) == [("floating", "f64"), ("integer", "i64")]
    assert kinds(bool, np.int8) == [("boolean", "bool"), ("strong", "i8")]
    assert kinds(tack.f32, shift=tack.u16) == [("strong", "f32"), ("strong", "u16")]
    assert kinds(np.float32(2), np.dtype("int16").type) == [("strong", "f32"), ("strong", "i16")]
    x = tack.zeros((2, 3), tack.f64)
    assert (
        tack.compile(scale, x, x, 1.0, target="cpu").source
        == tack.compile(scale, tack.f64[:, :], tack.f64[:, :], float, target="cpu").source
    )


def test_refusals() -> None:
    with pytest.raises(ValueError, match="'sm_9' is no architecture"):
        tack.compile(scale, *SPECS, target="cuda:sm_9")
    with pytest.raises(ValueError, match=r"'cpu:x86-64-v3' is no target.*TACK_CPU_TARGET=x86-64-v3 .*runs native"):
        tack.compile(scale, *SPECS, target="cpu:x86-64-v3")
    with pytest.raises(ValueError, match="Unknown device 'vax'"):
        tack.compile(scale, *SPECS, target="vax:780")
    with pytest.raises(TypeError, match=r"scale\(\) missing 1 required positional argument: 'factor'"):
        tack.compile(scale, *SPECS[:2], target="cpu")
    with pytest.raises(TypeError, match="expected a function decorated with @tack.kernel"):
        tack.compile(print, target="cpu")
    with pytest.raises(TypeError, match="parameter 'factor' is a str"):
        tack.compile(scale, *SPECS[:2], "2", target="cpu")
    with pytest.raises(tack.CompileError, match="Kernel 'scale'"):
        tack.compile(scale, tack.f32[:], tack.f32[:], float, target="cuda:sm_90")


def test_it_does_not_fill_the_cache_and_starts_no_device() -> None:
    before = _runtime.device("cpu", None).compiled
    tack.compile(scale, *SPECS, target="cpu")
    assert _runtime.device("cpu", None).compiled == before


@tack.kernel
def inner(out, x, factor, shift=1):
    total = 0.0
    for i, j in tack.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 2)):
        out[i, j] = x[i, j] * factor + shift
        total += out[i, j]
    print("inner", shift)
    return total


HOST = """
  const std::vector<std::int64_t> shape{4, 6}, strides{24, 4};
  const Array x = Array::empty(device, f32, shape), out = Array::empty(device, f32, shape);
  std::vector<float> values(24);
  for (int i = 0; i < 24; ++i) values[i] = static_cast<float>(i);
  x.write(values.data(), strides);
  const float zero = 0;
  out.fill(&zero);
  const Result result = kernel->launch(std::vector{Argument(out), Argument(x), Argument(0.5), Argument(2)});
  out.read(values.data(), strides);
  for (const float value : values) std::cout << value << ' ';
  std::cout << result.f << std::endl;
  kernel->launch(std::vector{Argument(out), Argument(x), Argument(1), Argument(2)});
"""


def test_a_program_in_cpp_launches_what_it_answers(tmp_path: Path) -> None:
    made = tack.compile(inner, tack.f32[:, :], tack.f32[:, :], float, int, target="cpu")
    assert ("shape", 1, 1, 0) in [term for step in made.steps for stop in step.stop for term in stop]  # op, dim, arg, value
    assert made.result_type is tack.f32 and made.result_offset >= 0 and made.scratch_bytes > made.result_offset
    assert [site.kind for site in made.sites] == ["print"]
    printed = cpp_host.run(made, HOST, tmp_path).splitlines()
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    expected = np.zeros_like(x)
    expected[1:3, 1:4] = x[1:3, 1:4] * np.float32(0.5) + np.float32(2)
    assert printed[0] == "inner 2"
    assert [float(v) for v in printed[1].split()] == [*expected.ravel(), expected.sum()]
    assert printed[2] == "Kernel 'inner': parameter 'factor' is a float, an int was given."
