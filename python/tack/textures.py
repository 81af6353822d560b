"""tack.texture3d: a volume that kernels sample between its texels."""

from __future__ import annotations

import sys

from . import _runtime
from .arrays import Array, as_shape, check_numpy, wrap_numpy
from .devices import as_device
from .types import f32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._runtime import Device

__all__ = ["Texture3D", "texture3d"]


class Texture3D(_runtime.Texture):
    """A copy of a volume of f32, with the way in which kernels read it: ``tex.sample(u, v, w)``. Made by ``tack.texture3d``.

    Attributes: ``shape`` (depth, height, width), ``device``, ``interp``, ``wrap``, ``hardware`` (whether the device's texture units
    sample it). It lies where its array lay. Immutable but for ``update``; any thread may use it. When it is dropped while the device
    works, one with ``hardware`` waits for that work.
    """

    __slots__ = ("_source",)

    def __init__(self, source: Any, device: Device, interp: str, wrap: str) -> None:
        super().__init__(device, _elements(source), interp, wrap)
        self._source = source

    def update(self) -> None:  # type: ignore[override]
        """Copies the elements that its array has now. Takes its place in the order of the device's work."""
        super().update(_elements(self._source))

    def sample(self, u: float, v: float, w: float) -> Any:
        """The value at a point, on the host: what a kernel's ``tex.sample`` gives, as np.float32. Waits for the device."""
        import numpy

        corners = [_places(t, n, self.interp, self.wrap) for t, n in zip((w, v, u), self.shape, strict=True)]
        volume = self.texels
        texels = Array(volume, "f32", volume.shape, volume.strides, 0, True)._host()
        found = texels[numpy.ix_(*[place for place, _ in corners])]
        for _, between in reversed(corners):  # along u first
            if between is not None:
                found = found[..., 0] + between * (found[..., 1] - found[..., 0])
            else:
                found = found[..., 0]
        return numpy.float32(found)

    def __repr__(self) -> str:
        return f"tack.texture3d(shape={self.shape}, interp={self.interp!r}, wrap={self.wrap!r}, device={str(self.device)!r})"


def texture3d(array: Any, interp: str = "linear", wrap: str = "clamp", shape: tuple[int, int, int] | None = None) -> Texture3D:
    """A texture of ``array``, a contiguous or strided volume of f32 indexed [z, y, x], on the array's device.

    ``tex.sample(u, v, w)`` in kernels: u runs along the last axis (x), v along y, w along z; 0 and 1 are the centres of the first and
    last texel of each. ``interp``: "linear" (trilinear) or "nearest". ``wrap``, outside of the volume: "clamp" (the nearest texel),
    "repeat" (the volume again), "mirror" (the volume reflected). ``shape=(W, H, D)``: the array is flat, with x fastest. A texture of a
    NumPy array lies on the default device.

    The elements are copied: after a change of the array call ``update()``. Raises TypeError for other dtypes, ValueError for another
    rank, an empty array, a shape that does not fit, an unknown interp or wrap.
    """
    numpy = sys.modules.get("numpy")
    if not isinstance(array, Array) and not (numpy is not None and isinstance(array, numpy.ndarray)):
        raise TypeError(f"tack.texture3d() takes a tack or NumPy array, not {type(array).__name__}")
    if (array.dtype if isinstance(array, Array) else array.dtype.name) not in (f32, "float32"):
        raise TypeError(f"tack.texture3d() takes an array of tack.f32, not of {array.dtype}: convert it, array.astype(np.float32)")
    source = array
    if shape is not None:
        whd = as_shape(shape, "tack.texture3d()")
        if len(whd) != 3 or array.ndim != 1 or whd[0] * whd[1] * whd[2] != array.size:
            raise ValueError(
                f"tack.texture3d(): shape={shape} is for a flat array of W * H * D elements; this one has shape {tuple(array.shape)}"
            )
        source = array.reshape(whd[2], whd[1], whd[0])
    if source.ndim != 3:
        raise ValueError(f"tack.texture3d() takes an array of 3 dimensions, or a flat one and shape=(W, H, D); this one has {source.ndim}")
    if source.size == 0:
        raise ValueError(f"tack.texture3d(): the array of shape {tuple(source.shape)} has no texel")
    return Texture3D(source, source.device if isinstance(source, Array) else as_device(None), interp, wrap)


def _elements(source: Any) -> Array:
    """The array; of a NumPy array its memory as one on the CPU, or a copy where kernels could not use it in place."""
    if isinstance(source, Array):
        return source
    try:
        check_numpy(source, "tack.texture3d()")
    except ValueError:
        import numpy

        source = numpy.array(source, numpy.float32)
    return wrap_numpy(source, as_device("cpu"))


def _places(t: float, n: int, interp: str, wrap: str) -> tuple[list[int], Any]:
    """The texels around a coordinate along an axis of ``n``, and how far it is between them; as frontend/textures.py has it."""
    import numpy

    from .ir.arith import fma

    one = numpy.float32
    with numpy.errstate(invalid="ignore", over="ignore"):
        x = numpy.floor(one(fma(float(one(t)), n - 1.0, 0.5, f32))) if interp == "nearest" else one(t) * one(n - 1)
        if wrap == "clamp":
            x = numpy.fmin(numpy.fmax(x, one(0)), one(n - 1))
        else:
            period = one(n if wrap == "repeat" else 2 * n)
            x = one(fma(-float(numpy.floor(x / period)), float(period), float(x), f32))
        low = numpy.floor(x)
    k = 0 if numpy.isnan(low) else int(low)
    near = [_wrapped(k, n, wrap), _wrapped(k + 1, n, wrap)]
    return (near, x - low) if interp == "linear" else (near[:1], None)


def _wrapped(k: int, n: int, wrap: str) -> int:
    if wrap == "clamp":
        return min(k, n - 1)
    if wrap == "repeat":
        return k % n
    k %= 2 * n
    return k if k < n else 2 * n - 1 - k
