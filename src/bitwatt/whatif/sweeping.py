"""sweep(): one run in several formats side by side, and one plot of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bitwatt.errors import BitwattError
from bitwatt.precision.operands import is_backward
from bitwatt.records import Run
from bitwatt.whatif.choice import Patterns
from bitwatt.whatif.comparison import WhatIf, what_if
from bitwatt.whatif.drawing import html, markdown, text
from bitwatt.whatif.plot import Series, plot
from bitwatt.whatif.schemes import scheme

SAME = "same"
#: What the plot shows of each format, as a share of the run as recorded.
PLOTTED = ("flops", "bops", "bops:executed", "bops:paper", "bops:product", "weights")


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """Results by format, in the order they were asked for."""

    original: Run
    results: Mapping[str, WhatIf]

    def __getitem__(self, name: str) -> WhatIf:
        return self.results[name]

    @property
    def title(self) -> str:
        return f"{self.original.name or self.original.id}: {', '.join(self.results)}"

    def table(self) -> list[list[str]]:
        results = list(self.results.values())
        rows = zip(*(result.figures for result in results), strict=True)
        shown = [
            [figures[0].name, figures[0].cells()[1], *(figure.cells()[2] for figure in figures)] for figures in rows
        ]
        return [["", "recorded", *self.results], *shown]

    def svg(self) -> str:
        """The plot: formats along the bottom, each number as a share of the recorded run on a logarithmic scale."""
        series = [
            Series(name, tuple(result[name].ratio or 0.0 for result in self.results.values())) for name in PLOTTED
        ]
        return plot(self.title, tuple(self.results), series)

    def save(self, path: Path | str) -> Path:
        """Write the plot."""
        try:
            Path(path).write_text(self.svg(), encoding="utf-8")
        except OSError as error:
            raise BitwattError(f"{path} could not be written: {error.strerror or error}") from error
        return Path(path)

    def markdown(self) -> str:
        return markdown(self.title, self.table(), self.remarks)

    def json(self) -> dict[str, Any]:
        return {name: result.json() for name, result in self.results.items()}

    @property
    def remarks(self) -> list[str]:
        """Said once, though it may hold for several formats."""
        return [*self._unlike(), *dict.fromkeys(remark for one in self.results.values() for remark in one.remarks)]

    def _unlike(self) -> list[str]:
        """Floats of 16 bits and more are what everything in a layer runs in; of the others only forward changes."""
        if not any(is_backward(row.phase) for row in self.original.ledger):
            return []
        whole = [name for name in self.results if scheme(name).is_cast]
        forward = [name for name in self.results if name not in whole]
        if not whole or not forward:
            return []
        verb = "changes" if len(whole) == 1 else "change"
        return [
            f"not the same work: {', '.join(whole)} {verb} forward and backward; {', '.join(forward)} forward alone"
        ]

    def __repr__(self) -> str:
        return text(self.title, self.table(), self.remarks)

    def _repr_html_(self) -> str:
        return html(self.title, self.table(), self.remarks, self.svg())


def sweep(
    run: Run,
    formats: Sequence[str] = ("fp32", "fp16", "int8", "int4"),
    *,
    activations: str | None = SAME,
    layers: Patterns = "*",
    except_layers: Patterns = (),
) -> Sweep:
    """The run with each of `formats` in its weights. `activations` is "same" (as the weights), None (weight-only) or
    one format for all. Nothing is run again."""
    if not formats:
        raise BitwattError("a sweep needs at least one format")
    results = {
        name: what_if(run, name, name if activations == SAME else activations, layers, except_layers)
        for name in formats
    }
    return Sweep(run, results)
