"""Reads the photograph of the demo and writes its result. The picture comes with matplotlib, a dependency of the extra "demo"."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["find_picture", "read_picture", "write_comparison"]

_INSTALL = "pip install '.[demo]'   (or: uv sync --extra demo)"


def find_picture() -> Path:
    """The photograph of Grace Hopper (public domain, US Navy) among matplotlib's sample data; matplotlib itself is not imported."""
    spec = importlib.util.find_spec("matplotlib")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / "mpl-data" / "sample_data" / "grace_hopper.jpg"
        if path.is_file():
            return path
    raise SystemExit(
        f"The demo's picture comes with matplotlib, which is missing here. Install it with\n  {_INSTALL}\nor give another: --image FILE"
    )


def read_picture(path: Path, size: int) -> NDArray[np.uint8]:
    """The picture as (height, width, 3) u8, scaled so that its longer side has ``size`` pixels."""
    image = _pillow()
    try:
        picture = image.open(path).convert("RGB")
    except OSError as error:
        raise SystemExit(f"Cannot read the picture {path}: {error}") from None
    scale = size / max(picture.size)
    shape = max(8, round(picture.size[0] * scale)), max(8, round(picture.size[1] * scale))
    return np.array(picture.resize(shape, image.Resampling.LANCZOS))


def write_comparison(path: Path, before: NDArray[np.uint8], after: NDArray[np.uint8]) -> None:
    """Writes both pictures side by side as a PNG."""
    gap = np.full((before.shape[0], max(4, before.shape[1] // 100), 3), 255, np.uint8)
    _pillow().fromarray(np.concatenate([before, gap, after], axis=1)).save(path)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise SystemExit(
            f"The demo reads and writes pictures with Pillow, which is not installed here. Install it with\n  {_INSTALL}"
        ) from None
    return Image
