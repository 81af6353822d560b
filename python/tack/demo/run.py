"""Runs the demo: a photograph through the kernels, each result checked against NumPy, a PNG, and a table of what each kernel took."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import tack

from ..kernels import kernel_function
from . import kernels, reference
from .picture import find_picture, read_picture, write_comparison

__all__ = ["run"]

WIDTH = 100  # of the table, in columns
EXPOSURE, GAMMA, AMOUNT = 1.2, 1.1, 0.8
CENTRE_X, CENTRE_Y, SPAN, LIMIT, STRENGTH = -0.04, -0.01, 2.65, 200, 2.0  # the cardioid lies over the face


class Row:
    """One kernel's line of the table. ``work`` is in bytes ("GB/s") or operations ("Gop/s") per call."""

    def __init__(self, kernel: Any, elements: int, work: float, unit: str) -> None:
        self.kernel = kernel
        self.elements = elements
        self.work = work
        self.unit = unit
        self.first = self.best = self.numpy = 0.0
        self.origin = self.check = ""

    @property
    def name(self) -> str:
        return kernel_function(self.kernel).name

    def time(self, call: Callable[[], Any], repeats: int) -> None:
        """The first call, which compiles or loads, and the best of the later ones; in seconds."""
        self.first = _seconds(call)
        made = list(kernel_function(self.kernel).kernels.values())
        self.origin = "cached" if made and made[-1].from_cache else "compiled"
        self.best = min(_seconds(call) for _ in range(repeats))


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    tack.sync()
    return time.perf_counter() - start


def _compare(name: str, got: Any, want: Any, tolerance: float) -> str:
    """How the result is right, or SystemExit with the largest difference. ``tolerance`` 0 asks for the same bits."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        raise SystemExit(f"{name}: shape {got.shape}, NumPy's is {want.shape}")
    if tolerance == 0.0:
        wrong = int((got != want).sum())
        if wrong:
            raise SystemExit(f"{name}: {wrong} of {got.size} elements are not NumPy's")
        return "same bits"
    worst = float(np.max(np.abs(got.astype(np.float64) - want.astype(np.float64))))
    if not worst <= tolerance:
        raise SystemExit(f"{name}: differs from NumPy by {worst:g}, more than {tolerance:g}")
    return f"within {worst:.1g}" if worst else "same bits"


def run(output: Path, size: int, image: Path | None, repeats: int) -> int:
    """The whole demo. Writes ``output``; answers the exit status. SystemExit says what is missing or wrong."""
    if not output.parent.is_dir():
        raise SystemExit(f"--output {output}: there is no folder {output.parent}")
    console = Console()
    console.width = max(console.width, WIDTH)  # rows that a narrow terminal wraps are better than figures cut off
    source = image if image is not None else find_picture()
    before = read_picture(source, size)
    h, w = before.shape[:2]
    pixels, values = h * w, h * w * 3
    console.print(f"[bold]{source.name}[/bold], {w} x {h} pixels, on {tack.get_default_device()}")

    picture = tack.array(before)
    a = tack.array(before.astype(np.float32) / np.float32(255))
    gray, steps = tack.empty((h, w), tack.u8), tack.empty((h, w), tack.i32)
    counts = tack.zeros(256, tack.i32)
    rows_blurred, blurred, toned, sharp = (tack.empty_like(a) for _ in range(4))
    result = tack.empty((h, w, 3), tack.u8)

    def flat(picture: tack.Array) -> tack.Array:
        return picture.reshape(values)

    def lines(picture: tack.Array) -> tack.Array:
        return picture.reshape(h, 3 * w)

    def count() -> None:
        counts.fill(0)
        kernels.histogram(counts, gray)

    taps = len(kernels.WEIGHTS)
    host = a.numpy()
    rows: list[Row] = []

    def step(
        kernel: Any,
        elements: int,
        work: float,
        unit: str,
        call: Callable[[], Any],
        out: tack.Array,
        numpy: Callable[[], Any],
        tolerance: float,
    ) -> Any:
        row = Row(kernel, elements, work, unit)
        with console.status(f"{row.name} ..."):
            row.time(call, repeats)
            start = time.perf_counter()
            want = numpy()
            row.numpy = time.perf_counter() - start
        row.check = _compare(row.name, out.numpy(), want, tolerance)
        rows.append(row)
        return want

    k = kernels
    step(k.brightness, pixels, 4 * pixels, "GB/s", lambda: k.brightness(gray, picture), gray, lambda: reference.brightness(before), 0.0)
    gray_host = gray.numpy()
    step(k.histogram, pixels, pixels, "Gop/s", count, counts, lambda: reference.histogram(gray_host), 0.0)
    step(
        k.tone,
        values,
        8 * values,
        "GB/s",
        lambda: k.tone(flat(toned), flat(a), EXPOSURE, GAMMA),
        toned,
        lambda: reference.tone(host, EXPOSURE, GAMMA),
        1e-5,
    )
    toned_host = toned.numpy()
    half = step(
        k.blur_rows, values, 2 * taps * values, "Gop/s", lambda: k.blur_rows(lines(rows_blurred), lines(toned)), rows_blurred,
        lambda: reference.blur(toned_host, k.WEIGHTS, 1), 1e-5,
    )  # fmt: skip
    soft = step(
        k.blur_columns, values, 2 * taps * values, "Gop/s", lambda: k.blur_columns(lines(blurred), lines(rows_blurred)), blurred,
        lambda: reference.blur(half, k.WEIGHTS, 0), 1e-5,
    )  # fmt: skip
    step(
        k.sharpen, values, 16 * values, "GB/s", lambda: k.sharpen(flat(sharp), flat(toned), flat(blurred), AMOUNT), sharp,
        lambda: reference.sharpen(toned_host, soft, AMOUNT), 1e-4,
    )  # fmt: skip
    escaped = reference.escape_time((h, w), CENTRE_X, CENTRE_Y, SPAN, LIMIT)
    rounds = float(escaped.sum())
    step(
        k.escape_time, pixels, 10 * rounds, "Gop/s", lambda: k.escape_time(steps, CENTRE_X, CENTRE_Y, SPAN, LIMIT), steps,
        lambda: reference.escape_time((h, w), CENTRE_X, CENTRE_Y, SPAN, LIMIT), 0.0,
    )  # fmt: skip
    sharp_host = sharp.numpy()
    step(
        k.glow, pixels, (4 + 12 + 3) * pixels, "GB/s", lambda: k.glow(result, sharp, steps, LIMIT, STRENGTH), result,
        lambda: reference.glow(sharp_host, escaped, LIMIT, STRENGTH), 1.0,
    )  # fmt: skip

    try:
        write_comparison(output, before, result.numpy())
    except (OSError, ValueError) as error:  # the latter for an ending that is no picture's
        raise SystemExit(f"--output {output}: {error}") from None
    console.print(_table(rows))
    console.print(f"{len(rows)} kernels, all as NumPy has it; the picture before and after: [bold]{output}[/bold]")
    return 0


def _table(rows: list[Row]) -> Table:
    table = Table(
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        caption="ms: the best of some calls. op: an addition, multiplication or comparison.\nNumPy: the same on the whole array, once",
    )
    for heading in ("kernel", "elements", "ms", "rate", "first call", "NumPy ms", "faster", "check"):
        table.add_column(heading, justify="left" if heading in ("kernel", "first call", "check") else "right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.name,
            f"{row.elements:,}",
            f"{row.best * 1e3:.3f}",
            f"{row.work / row.best / 1e9:.1f} {row.unit}",
            f"{row.origin} {row.first * 1e3:.0f} ms",
            f"{row.numpy * 1e3:.1f}",
            f"{row.numpy / row.best:.1f} x",
            row.check,
        )
    return table
