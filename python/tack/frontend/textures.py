"""Textures in kernels: ``tex.sample(u, v, w)`` is a device function over the texels, written in the kernel language.

Along an axis of n texels a coordinate t is at the position x = t * (n - 1): 0 and 1 are the centres of the first and last texel.
``linear`` mixes the texels at floor(x) and floor(x) + 1, along u first, then v, then w; ``nearest`` takes the one at floor(x + 0.5).
``wrap`` says which texel stands where there is none.

The nearest texel, and a period that is taken off, come of one fma each, in exact=True kernels too: a rounded product would make another
texel of coordinates beyond 2^24, and of those between two.

Where texture units do it (``_HARDWARE``), coordinates are brought to the range of the texels here. What is left to the hardware is to mix
texels, or to fetch one, and to go on at the seam of a repeated volume. NaN is kept from it: not every language says what it does with that.
"""

from __future__ import annotations

from typing import Final

from ..ir.nodes import Loc
from ..ir.source import WRAPS
from ..ir.walk import Walk
from ..types import f32
from .calls import Calls
from .meaning import DTypeMeaning, FuncMeaning, FunctionSource, Intrinsic, Meaning, ModuleMeaning
from .values import ArrayRef, Num, Sampler, Shape, Texture, Thing, describe

__all__ = ["Textures"]

_SAMPLE: Final = {
    "linear": """
def sample(texels, u, v, w):
    depth, height, width = texels.shape
    x0, x1, x = between(u, width)
    y0, y1, y = between(v, height)
    z0, z1, z = between(w, depth)
    front = mix(mix(texels[z0, y0, x0], texels[z0, y0, x1], x), mix(texels[z0, y1, x0], texels[z0, y1, x1], x), y)
    back = mix(mix(texels[z1, y0, x0], texels[z1, y0, x1], x), mix(texels[z1, y1, x0], texels[z1, y1, x1], x), y)
    return mix(front, back, z)
""",
    "nearest": """
def sample(texels, u, v, w):
    depth, height, width = texels.shape
    return texels[nearest(w, depth), nearest(v, height), nearest(u, width)]
""",
}
_MIX: Final = """
def mix(a, b, t):
    return a + t * (b - a)
"""
_MIRRORED: Final = """
def mirrored(k, n):
    k = k % (2 * n)
    return k if k < n else 2 * n - 1 - k
"""
_BETWEEN: Final = {
    "clamp": """
def between(t, n):
    x = min(max(f32(t) * (n - 1), 0.0), n - 1)
    low = floor(x)
    return int(low), min(int(low) + 1, n - 1), x - low
""",
    "repeat": """
def between(t, n):
    x = f32(t) * (n - 1)
    x = fma(-floor(x / n), f32(n), x)
    low = floor(x)
    return int(low) % n, (int(low) + 1) % n, x - low
""",
    "mirror": """
def between(t, n):
    x = f32(t) * (n - 1)
    x = fma(-floor(x / (2 * n)), f32(2 * n), x)
    low = floor(x)
    return mirrored(int(low), n), mirrored(int(low) + 1, n), x - low
""",
}
_NEAREST: Final = {
    "clamp": """
def nearest(t, n):
    return int(min(max(floor(fma(f32(t), f32(n - 1), 0.5)), 0.0), n - 1))
""",
    "repeat": """
def nearest(t, n):
    x = floor(fma(f32(t), f32(n - 1), 0.5))
    return int(fma(-floor(x / n), f32(n), x)) % n
""",
    "mirror": """
def nearest(t, n):
    x = floor(fma(f32(t), f32(n - 1), 0.5))
    return mirrored(int(fma(-floor(x / (2 * n)), f32(2 * n), x)), n)
""",
}
_MIXED: Final = """
def sample(texels, fetch, u, v, w):
    depth, height, width = texels.shape
    x, y, z = place(u, width), place(v, height), place(w, depth)
    return fetch(max(x, 0.0), max(y, 0.0), max(z, 0.0)) + 0.0 * (x + y + z)
"""
_HARDWARE: Final = {
    ("linear", "clamp"): """
def sample(texels, fetch, u, v, w):
    depth, height, width = texels.shape
    return fetch(place(u, width), place(v, height), place(w, depth))
""",
    ("linear", "repeat"): _MIXED,
    ("linear", "mirror"): _MIXED,
    **dict.fromkeys(
        [("nearest", wrap) for wrap in WRAPS],
        """
def sample(texels, fetch, u, v, w):
    depth, height, width = texels.shape
    return fetch(f32(nearest(u, width)) + 0.5, f32(nearest(v, height)) + 0.5, f32(nearest(w, depth)) + 0.5)
""",
    ),
}
_PLACE: Final = {
    "clamp": """
def place(t, n):
    return min(max(f32(t) * (n - 1), 0.0), n - 1) + 0.5
""",
    "repeat": """
def place(t, n):
    x = f32(t) * (n - 1)
    return (fma(-floor(x / n), f32(n), x) + 0.5) / n
""",
    "mirror": """
def place(t, n):
    x = f32(t) * (n - 1)
    x = fma(-floor(x / (2 * n)), f32(2 * n), x)
    return (x if x < f32(n) - 0.5 else f32(2 * n - 1) - x) + 0.5
""",
}
_FILE: Final = "<tack.texture3d>"


class _Library:
    """What the functions above name."""

    def __init__(self, interp: str, wrap: str, hardware: bool) -> None:
        texts = {"mix": _MIX, "mirrored": _MIRRORED, "between": _BETWEEN[wrap], "nearest": _NEAREST[wrap], "place": _PLACE[wrap]}
        texts["sample"] = _HARDWARE[interp, wrap] if hardware else _SAMPLE[interp]
        self.meanings: dict[str, Meaning] = {name: Intrinsic(name, "builtins") for name in ("int", "min", "max")}
        self.meanings |= {"f32": DTypeMeaning(f32), "floor": Intrinsic("floor", "tack"), "fma": Intrinsic("fma", "tack")}
        for name, text in texts.items():
            source = FunctionSource(name, name, _FILE, 1, text.lstrip())
            self.meanings[name] = FuncMeaning(source, self, ("texture3d", interp, wrap, hardware, name))

    def lookup(self, name: str) -> Meaning | None:
        return self.meanings.get(name)

    def attribute(self, module: ModuleMeaning, name: str) -> Meaning | None:
        return None


class Textures(Calls):
    def texture_attribute(self, texture: Texture, name: str, loc: Loc) -> Thing:  # noqa: RET503 - fail() does not return
        if name == "sample":
            return texture.sampler
        if name == "shape":
            return Shape(texture.texels)
        self.fail(
            f"the texture '{texture.texels.name}' has no attribute '{name}' in a kernel.",
            loc,
            "Textures in kernels have sample(u, v, w) and shape.",
        )

    def sample(self, sampler: Sampler, args: list[Thing], names: tuple[str, ...], loc: Loc) -> Walk[Thing]:
        texture = sampler.texture
        shown = f"{texture.texels.name}.sample"
        positional = len(args) - len(names)
        bound = dict(zip("uvw", args[:positional], strict=False))
        bound.update(zip(names, args[positional:], strict=True))
        if len(args) != 3 or bound.keys() != set("uvw"):
            self.fail(f"'{shown}' takes the coordinates u, v and w.", loc, f"Write {shown}(u, v, w); u runs along the last axis.")
        for thing in bound.values():
            if not isinstance(thing, Num):
                hint = "Pass its elements." if isinstance(thing, ArrayRef) else ""
                self.fail(f"'{shown}' takes numbers, not {describe(thing)}.", loc, hint)
        function = _Library(texture.interp, texture.wrap, texture.hardware).meanings["sample"]
        assert isinstance(function, FuncMeaning)
        way: list[Thing] = [Sampler(texture, direct=True)] if texture.hardware else []
        return self.call_function(function, [texture.texels, *way, bound["u"], bound["v"], bound["w"]], (), loc)

    def fetch(self, sampler: Sampler, args: list[Thing], loc: Loc) -> Num:
        """What the texture units give: called by the functions above alone."""
        texture = sampler.texture
        mode = "nearest" if texture.interp == "nearest" else "repeat" if texture.wrap == "repeat" else "linear"
        at = tuple(self.coerce(a, f32, loc) for a in args if isinstance(a, Num))
        return self.value("sample", f32, at, loc, (mode, texture.texels.array))
