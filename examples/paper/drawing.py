"""Figures as SVG and PNG that are the same bytes for the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Axes = Any
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "images" / "paper"
_STYLE = {
    "svg.hashsalt": "bitwatt", "svg.fonttype": "none", "font.family": "DejaVu Sans", "font.size": 9,
    "axes.spines.top": False, "axes.spines.right": False, "figure.constrained_layout.use": True,
}  # fmt: skip


@contextmanager
def figure(name: str, title: str, *, columns: int = 1, size: tuple[float, float] | None = None) -> Iterator[Any]:
    """Yields the axes (a list of them where there are several); writes name.svg and name.png."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context(_STYLE):
        drawn, axes = pyplot.subplots(1, columns, figsize=size or (3 * columns, 3.2))
        drawn.suptitle(title)
        yield axes
        FOLDER.mkdir(parents=True, exist_ok=True)
        drawn.savefig(FOLDER / f"{name}.svg", metadata={"Date": None, "Creator": None})
        drawn.savefig(FOLDER / f"{name}.png", dpi=110, metadata={"Software": None})
        pyplot.close(drawn)
