"""python -m tack demo: what it prints."""

from __future__ import annotations

import io

import pytest

pytest.importorskip("rich")

from rich.console import Console

from tack.demo import kernels, run


def test_the_table_fits_its_columns_with_long_figures() -> None:
    rows = []
    for kernel in (kernels.blur_columns, kernels.brightness):
        row = run.Row(kernel, 25_165_824, 1.2345e10, "Gop/s")
        row.first, row.best, row.numpy = 1.234, 0.0123, 1.2345
        row.origin, row.check = "compiled", "within 1e-06"
        rows.append(row)
    text = io.StringIO()
    Console(file=text, width=run.WIDTH).print(run._table(rows))
    lines = text.getvalue().splitlines()
    assert run.WIDTH == 100 and max(map(len, lines)) <= 100
    assert "…" not in text.getvalue()
    assert sum("compiled 1234 ms" in line and "within 1e-06" in line for line in lines) == 2
