"""HIP's own: the disk cache keeps hipRTC from being asked again, releases that miscompile are warned of, the thread's device."""

from __future__ import annotations

from pathlib import Path

import child
import pytest

import tack

PAGE = Path(__file__).resolve().parents[2] / "docs" / "backends" / "hip.md"
pytestmark = pytest.mark.needs("simulator")

PROGRAM = """
    import tack

    @tack.kernel
    def k(x):
        for i in range(x.shape[0]):
            x[i] = x[i] * 2.0 + 1.0

    for _ in range(2):
        x = tack.ones(100, device=tack.device("hip"))
        k(x)
    assert x.tolist() == [3.0] * 100
    y = tack.ones(100, device=tack.device("hip:1"))
    k(y)
    assert y.tolist() == [3.0] * 100
"""


@pytest.fixture(autouse=True)
def _only_hip(device: tack.Device) -> None:
    if device.type != "hip":
        pytest.skip("HIP's own")


def test_a_second_process_makes_no_call_of_hiprtc(device: tack.Device, tmp_path: Path) -> None:
    first = child.run(PROGRAM, tmp_path)
    assert first.calls("libhiprtc", "hiprtcCompileProgram") == 1
    second = child.run(PROGRAM, tmp_path)
    assert "libhiprtc" not in second.counted or not any(second.counted["libhiprtc"]["calls"].values())
    assert second.calls("libamdhip64", "hipModuleLoadData") == 2


@pytest.mark.parametrize("release", ["7.0", "7.1"])
def test_releases_that_miscompile_are_warned_of_once(device: tack.Device, tmp_path: Path, release: str) -> None:
    """And what they compiled is not taken for the code of the next release."""
    major, minor = map(int, release.split("."))
    ended = child.run(PROGRAM, tmp_path, driver=major * 10_000_000 + minor * 100_000 + 51831)
    (line,) = [line for line in ended.err.splitlines() if "miscompiles" in line]
    assert f"ROCm {release} miscompiles some integer code" in line
    for advice in ("Use a ROCm release newer than 7.1 if you can", "check integer-heavy kernels against the CPU backend"):  # the page's
        assert advice in line and advice in PAGE.read_text()
    repaired = child.run(PROGRAM, tmp_path, driver=70_200_000)
    assert repaired.calls("libhiprtc", "hiprtcCompileProgram") == 1
    assert "miscompiles" not in repaired.err


TEXTURES = """
    import numpy as np, tack

    @tack.kernel
    def look(out, tex):
        for i in range(out.shape[0]):
            out[i] = tex.sample(0.25 * i, 0.5, 1.0)

    gpu = tack.device("hip")
    volume = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    texture, out = tack.texture3d(tack.array(volume, device=gpu)), tack.zeros(5, device=gpu)
    look(out, texture)
    np.testing.assert_allclose(out.numpy(), 47.5 + np.arange(5), atol=4 * 3 / 256)
    print(gpu.arch, gpu.supports_images, texture.hardware, max(gpu.max_image))
"""


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_without_texture_units_textures_are_sampled_by_software(device: tack.Device, tmp_path: Path, arch: str) -> None:
    """And where there are some, by these: the device says it, and no call of the runtime makes an array that it would refuse."""
    without = child.run(TEXTURES, tmp_path / "without", arch=arch.replace("gfx", "0x"))
    assert without.out.split() == [arch, "False", "False", "0"] and without.calls("libamdhip64", "hipArray3DCreate") == 0
    units = child.run(TEXTURES, tmp_path / "with", arch="0x1100")
    assert units.out.split()[:3] == ["gfx1100", "True", "True"] and units.calls("libamdhip64", "hipTexObjectCreate") == 1


def test_calls_leave_the_threads_device_as_it_was(device: tack.Device, tmp_path: Path) -> None:
    child.run(
        """
        import ctypes, os, threading, tack

        runtime = ctypes.CDLL(os.environ["TACK_LIBHIP"])

        def current():
            number = ctypes.c_int()
            assert runtime.hipGetDevice(ctypes.byref(number)) == 0
            return number.value

        second = tack.device("hip:1")
        assert current() == 1 and tack.device("hip") is second
        runtime.hipSetDevice(0)
        assert tack.device("hip") is tack.device("hip:0")

        def work():
            assert current() == 0
            x = tack.ones(10, device="hip:0")
            y = tack.full(10, 2.0, device="hip:0").to_device(second)
            assert (x.tolist(), y.tolist()) == ([1.0] * 10, [2.0] * 10)
            assert current() == 0
            done.append(True)

        done = []
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert done
        """,
        tmp_path,
    )
