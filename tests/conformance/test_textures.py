"""3-D textures: sampling against a formula written down here, on every device; what is refused; when a texture sees its array's changes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import tack

VOLUME = np.random.default_rng(11).random((4, 5, 7), np.float32)  # [z, y, x]
POINTS = (np.random.default_rng(12).random((300, 3)) * 4 - 1.5).astype(np.float32)
EDGES = np.float32(list(itertools.product((-7.25, -0.1, 0.0, 0.5, 1.0, 1.1, 6.0), repeat=3)))


@tack.kernel(exact=True)
def sample_all(out, tex, at):
    for i in range(len(out)):
        out[i] = tex.sample(at[i, 0], at[i, 1], at[i, 2])


@tack.kernel
def sample_fast(out, tex, at):
    for i in range(len(out)):
        out[i] = tex.sample(at[i, 0], at[i, 1], at[i, 2])


@tack.kernel
def mean_of_samples(tex, at):
    first = tex.sample(0, 0, 0)
    total = 0.0
    for i in range(at.shape[0]):
        total += tex.sample(at[i, 0], at[i, 1], at[i, 2]) - first
    return total / at.shape[0] + first


@tack.func
def through(tex, u, v, w):
    return tex.sample(u, w=w, v=v) + tex.shape[2]


@tack.kernel
def sample_in_a_function(out, tex, at):
    for i in range(len(out)):
        out[i] = through(tex, at[i, 0], 0, at[i, 2])


def texel(volume: Any, z: int, y: int, x: int, wrap: str) -> np.float32:
    places = []
    for k, n in zip((z, y, x), volume.shape, strict=True):
        if wrap == "clamp":
            k = min(max(k, 0), n - 1)
        elif wrap == "repeat":
            k %= n
        else:
            k = [*range(n), *reversed(range(n))][k % (2 * n)]
        places.append(k)
    return volume[tuple(places)]


def oracle(volume: Any, point: Any, interp: str, wrap: str) -> float:
    """In f64, by the definition: the texels around, wrapped one by one."""
    x, y, z = (float(t) * (n - 1) for t, n in zip(point, volume.shape[::-1], strict=True))
    if interp == "nearest":
        return texel(volume, *(int(np.floor(t + 0.5)) for t in (z, y, x)), wrap)
    total = 0.0
    for dz, dy, dx in itertools.product((0, 1), repeat=3):
        weight = 1.0
        for t, d in ((z, dz), (y, dy), (x, dx)):
            part = t - np.floor(t)
            weight *= part if d else 1 - part
        total += weight * float(texel(volume, *(int(np.floor(t)) + d for t, d in ((z, dz), (y, dy), (x, dx))), wrap))
    return total


def sampled(tex: Any, at: Any, kernel: Any = sample_all, dtype: Any = tack.f32) -> Any:
    out = tack.zeros(len(at), dtype, device=tex.device)
    kernel(out, tex, tack.array(at, device=tex.device))
    return out.numpy()


def tolerance(tex: Any, volume: Any) -> float:
    """Texture units weigh the two texels of each axis in 1/256ths or finer."""
    return 2e-5 + (3 / 256 * float(volume.max() - volume.min()) if tex.hardware else 0)


@pytest.mark.parametrize("wrap", ["clamp", "repeat", "mirror"])
@pytest.mark.parametrize("interp", ["linear", "nearest"])
def test_sampling_is_the_documented_formula(device: tack.Device, interp: str, wrap: str) -> None:
    tex = tack.texture3d(VOLUME, interp=interp, wrap=wrap)
    assert tex.device == device and tex.shape == (4, 5, 7)
    for at in (POINTS, EDGES):
        expected = [oracle(VOLUME, p, interp, wrap) for p in at]
        got = sampled(tex, at)
        np.testing.assert_allclose(got, expected, atol=0 if interp == "nearest" else 2e-5)
        np.testing.assert_array_equal(got, [tex.sample(*p) for p in at])  # on the host: the same bits


@pytest.mark.parametrize("wrap", ["clamp", "repeat", "mirror"])
def test_texture_units_are_as_exact_as_is_documented(device: tack.Device, wrap: str) -> None:
    tex = tack.texture3d(VOLUME, wrap=wrap)
    assert tex.hardware == (device.supports_images and all(n <= most for n, most in zip(tex.shape, device.max_image, strict=True)))
    exact = sampled(tex, POINTS)
    found = sampled(tex, POINTS, sample_fast)
    np.testing.assert_allclose(found, exact, rtol=0, atol=tolerance(tex, VOLUME))
    assert (found != exact).any() or not tex.hardware  # it is the texture units that mix, in an order of their own
    np.testing.assert_allclose(sampled(tex, EDGES, sample_fast), sampled(tex, EDGES), rtol=0, atol=tolerance(tex, VOLUME))
    fetch = f"sample_{'repeat' if wrap == 'repeat' else 'linear'}(tex, "
    arguments = tack.zeros(1), tex, tack.zeros((1, 3))
    assert (fetch in tack.inspect(sample_fast, *arguments, mode="ir")) == tex.hardware
    assert fetch not in tack.inspect(sample_all, *arguments, mode="ir")
    nearest = tack.texture3d(VOLUME, "nearest", wrap)
    for at in (POINTS, EDGES):
        np.testing.assert_array_equal(sampled(nearest, at, sample_fast), sampled(nearest, at))
    np.testing.assert_allclose(mean_of_samples(tex, tack.array(POINTS)), exact.mean(), atol=tolerance(tex, VOLUME))


@pytest.mark.parametrize("wrap", ["repeat", "mirror"])
@pytest.mark.parametrize("n", [1, 2, 5, 7, 100])
def test_far_coordinates_go_round_exactly(device: tack.Device, wrap: str, n: int) -> None:
    """Beyond 2^24 every f32 is a whole number: a period has to be taken off without rounding, by exact=True kernels and on the host too."""
    volume = np.arange(n, dtype=np.float32).reshape(1, 1, n)
    tex = tack.texture3d(volume, interp="nearest", wrap=wrap)
    far = np.float32([6291456, -6291456, 3e9, -3e9, 2**31, 2**24 + 2, -(2**24) - 2, 1e12 / max(n - 1, 1), 2**40 / max(n - 1, 1)])
    at = np.zeros((len(far), 3), np.float32)
    at[:, 0] = far
    expected = []
    for t in far:
        x = np.float32(float(t) * (n - 1) + 0.5)  # exact in f64, so rounded once
        k = math.floor(x) % (n if wrap == "repeat" else 2 * n)
        expected.append(float(min(k, 2 * n - 1 - k) if wrap == "mirror" else k))
    for kernel in (sample_all, sample_fast):
        assert sampled(tex, at, kernel).tolist() == expected
    assert [tex.sample(*p) for p in at] == expected


@pytest.mark.needs("f64")
def test_coordinates_are_f32_among_f64_too(device: tack.Device) -> None:
    for interp, wrap in itertools.product(("linear", "nearest"), ("clamp", "repeat", "mirror")):
        tex = tack.texture3d(VOLUME, interp, wrap)
        for kernel in (sample_all, sample_fast):
            np.testing.assert_array_equal(sampled(tex, POINTS, kernel, tack.f64), sampled(tex, POINTS, kernel).astype(np.float64))


def test_what_is_too_large_for_texture_units_is_sampled_in_software(device: tack.Device) -> None:
    widest = device.max_image[2]
    if not 0 < widest < 1 << 20:
        pytest.skip(f"no texture is too wide for {device}")
    row = np.arange(widest + 1, dtype=np.float32).reshape(1, 1, -1)
    tex, within = tack.texture3d(row), tack.texture3d(row[:, :, 1:])
    assert within.hardware and not tex.hardware
    at = np.float32([[0, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(sampled(tex, at, sample_fast), [0, widest])
    np.testing.assert_array_equal(sampled(within, at, sample_fast), [1, widest])


def test_corners_are_the_centres_of_the_outer_texels(device: tack.Device) -> None:
    tex = tack.texture3d(VOLUME)
    corners = np.float32(list(itertools.product((0, 1), repeat=3)))
    for kernel in (sample_all, sample_fast):
        np.testing.assert_array_equal(sampled(tex, corners, kernel), [VOLUME[-int(w), -int(v), -int(u)] for u, v, w in corners])
    inner = np.float32([[2 / 6, 3 / 4, 1 / 3]])
    np.testing.assert_allclose(sampled(tex, inner), [VOLUME[1, 3, 2]], rtol=1e-6)


def test_u_runs_along_the_last_axis(device: tack.Device) -> None:
    volume = np.zeros((2, 3, 4), np.float32)
    volume[:, :, 3] = 1
    np.testing.assert_array_equal(sampled(tack.texture3d(volume), np.float32([[1, 0.5, 0.5], [0, 1, 1], [5 / 6, 0, 0]])), [1, 0, 0.5])


def test_a_flat_array_with_a_shape(device: tack.Device) -> None:
    flat = tack.array(VOLUME.ravel())
    tex = tack.texture3d(flat, shape=(7, 5, 4), interp="nearest")
    assert tex.shape == (4, 5, 7)
    np.testing.assert_array_equal(sampled(tex, POINTS), sampled(tack.texture3d(VOLUME, interp="nearest"), POINTS))
    single = tack.texture3d(np.float32([[[3.5]]]), wrap="mirror")
    np.testing.assert_array_equal(sampled(single, POINTS), np.full(len(POINTS), 3.5, np.float32))


def test_update_takes_what_the_array_holds_now(device: tack.Device) -> None:
    for volume in (VOLUME.copy(), tack.array(VOLUME)[:, ::-1]):
        tex = tack.texture3d(volume)
        before = sampled(tex, POINTS), sampled(tex, POINTS, sample_fast)
        volume[0, 0, 0] = 99.0
        np.testing.assert_array_equal([sampled(tex, POINTS), sampled(tex, POINTS, sample_fast)], before)
        tex.update()
        for kernel in (sample_all, sample_fast):
            assert sampled(tex, np.zeros((1, 3), np.float32), kernel)[0] == 99.0


def test_updates_and_launches_take_effect_in_their_order(device: tack.Device) -> None:
    volume = tack.zeros((2, 2, 2))
    at, outs = tack.zeros((4, 3)), [tack.zeros(4) for _ in range(6)]
    tex = tack.texture3d(volume)
    for step, out in enumerate(outs):  # nothing here waits
        volume.fill(float(step))
        tex.update()
        sample_fast(out, tex, at)
    del tex
    assert [out.tolist() for out in outs] == [[float(step)] * 4 for step in range(6)]


def test_how_a_texture_is_read_belongs_to_the_specialization(device: tack.Device) -> None:
    at = POINTS[:50]
    results = [
        sampled(tack.texture3d(VOLUME, interp, wrap), at)
        for _ in range(2)
        for interp in ("linear", "nearest")
        for wrap in ("clamp", "repeat", "mirror")
    ]
    for first, again in zip(results[:6], results[6:], strict=True):
        np.testing.assert_array_equal(first, again)
    assert len({r.tobytes() for r in results}) == 6
    made = device.compiled + device.loaded
    sampled(tack.texture3d(VOLUME[:2], "nearest", "mirror"), at)  # another size is no other kernel
    assert device.compiled + device.loaded == made


def test_textures_in_functions_and_other_types_of_coordinates(device: tack.Device) -> None:
    tex = tack.texture3d(VOLUME, interp="nearest")
    out = tack.zeros(20)
    sample_in_a_function(out, tex, tack.array(POINTS))
    expected = [oracle(VOLUME, (p[0], 0, p[2]), "nearest", "clamp") for p in POINTS[:20]]
    np.testing.assert_allclose(out.numpy(), np.float32(expected) + 7)
    through_host = [through(tex, *p) for p in POINTS[:3]]
    np.testing.assert_allclose(through_host, [oracle(VOLUME, p, "nearest", "clamp") + 7 for p in POINTS[:3]])


def test_not_a_number_counts_as_0_where_clamped(device: tack.Device) -> None:
    at = np.float32([[np.nan, 1, 1], [np.inf, 0, 0], [-np.inf, 0, 0]])
    for kernel in (sample_all, sample_fast):
        np.testing.assert_array_equal(sampled(tack.texture3d(VOLUME), at, kernel), [VOLUME[-1, -1, 0], VOLUME[0, 0, -1], VOLUME[0, 0, 0]])
        for wrap in ("repeat", "mirror"):
            assert np.isnan(sampled(tack.texture3d(VOLUME, wrap=wrap), at, kernel)).all()
            nearest = sampled(tack.texture3d(VOLUME, "nearest", wrap), at, kernel)  # some texel, never beyond the array
            assert all(v in VOLUME for v in nearest)


def test_numpy_arrays_that_kernels_could_not_use_in_place_are_copied(device: tack.Device) -> None:
    swapped = VOLUME.astype(VOLUME.dtype.newbyteorder())
    tex = tack.texture3d(swapped)
    np.testing.assert_array_equal(sampled(tex, POINTS), sampled(tack.texture3d(VOLUME), POINTS))
    swapped[0, 0, 0] = 7.0
    tex.update()
    assert tex.sample(0, 0, 0) == 7.0


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: tack.texture3d(VOLUME, interp="cubic"), ValueError, "no interp 'cubic'; there are 'linear', 'nearest'"),
        (lambda: tack.texture3d(VOLUME, wrap="border"), ValueError, "no wrap 'border'; there are 'clamp', 'repeat', 'mirror'"),
        (lambda: tack.texture3d([[[1.0]]]), TypeError, "takes a tack or NumPy array, not list"),
        (lambda: tack.texture3d(VOLUME.astype(np.float64)), TypeError, "takes an array of tack.f32, not of float64"),
        (
            lambda: tack.texture3d(VOLUME[0]),
            ValueError,
            "takes an array of 3 dimensions, or a flat one and shape=.W, H, D.; this one has 2",
        ),
        (lambda: tack.texture3d(VOLUME.ravel(), shape=(7, 5, 5)), ValueError, "is for a flat array of W . H . D elements"),
        (lambda: tack.texture3d(VOLUME[:0]), ValueError, r"the array of shape \(0, 5, 7\) has no texel"),
    ],
)
def test_what_is_no_texture(make: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        make()


def test_what_kernels_may_do_with_a_texture(device: tack.Device) -> None:
    tex = tack.texture3d(VOLUME)

    @tack.kernel
    def indexes(out, tex):
        for i in range(len(out)):
            out[i] = tex[0, 0, 0]

    @tack.kernel
    def counts(out, tex):
        for i in range(len(out)):
            out[i] = tex.sample(0.5, 0.5)

    @tack.kernel
    def others(out, tex):
        for i in range(len(out)):
            out[i] = tex.size

    out = tack.zeros(2)
    for kernel, text in (
        (indexes, "the texture 'tex' cannot be indexed"),
        (counts, r"'tex.sample' takes the coordinates u, v and w.(.|\n)*Write tex.sample\(u, v, w\); u runs along the last axis."),
        (others, "the texture 'tex' has no attribute 'size' in a kernel"),
    ):
        with pytest.raises(tack.CompileError, match=text):
            kernel(out, tex)
    with pytest.raises(TypeError, match="'tex.sample' takes numbers, not the array 'at'"):
        tack.inspect(sample_array, out, tex)
    assert "floor" in tack.inspect(sample_all, out, tex, tack.zeros((2, 3)), mode="ir")


@tack.kernel
def sample_array(at, tex):
    for i in range(len(at)):
        at[i] = tex.sample(at, 0, 0)
