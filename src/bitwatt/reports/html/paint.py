"""Colours of a run's phases, and the small bars beside its tables."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from bitwatt.charts.chart import COLORS, MUTED, color
from bitwatt.reports.html.layout import dot
from bitwatt.reports.model import PHASES, Line, View
from bitwatt.units import format_count, format_percent

#: What a phase that bitwatt finds is drawn in, everywhere.
_KNOWN = {
    "preprocess": color(7), "forward": color(0), "loss": color(3), "backward": color(1), "recompute": color(4),
    "optimizer": color(2), "inference": color(5), "other": MUTED,
}  # fmt: skip
assert set(_KNOWN) == set(PHASES)


class Paint:
    """Phases and their bars."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.colors = phase_colors([line.name for line in view.phases])

    def of(self, phase: str) -> str:
        return self.colors.get(phase, MUTED)

    def dot(self, phase: str) -> str:
        return dot(self.of(phase))

    def stack(self) -> str:
        """The whole run as one bar, a piece for each phase."""
        whole = self.view.amount(self.view.total) or 0
        pieces = [(line.name, self.view.amount(line) or 0) for line in self.view.phases]
        said = ", ".join(f"{name} {format_percent(n / whole)}" for name, n in pieces if n) if whole else ""
        return self._svg("stack", pieces, whole, whole, said) if said else ""

    def bar(self, line: Line, largest: int) -> str:
        """One line's amount beside the largest, in the colours of the phases it fell into."""
        amount = self.view.amount(line) or 0
        pieces = [(phase or "other", n) for phase, n in line.by_phase.items()] or [("", amount)]
        order = list(self.colors)
        pieces.sort(key=lambda piece: order.index(piece[0]) if piece[0] in order else -1)
        return self._svg("", pieces, largest, self.view.amount(self.view.total) or 0, "") if amount and largest else ""

    def _svg(self, kind: str, pieces: Iterable[tuple[str, int]], scale: int, whole: int, said: str) -> str:
        drawn, x = [], 0.0
        for phase, n in pieces:
            if not n:
                continue
            width = 1000 * n / scale
            text = f"{format_count(n, self.view.model.unit)}, {format_percent(n / whole)} of the run"
            title = escape(f"{phase}: {text}" if phase else text)
            place = f'x="{x:.2f}" width="{width:.2f}" height="10"'
            drawn.append(f'<rect {place} fill="{self.colors.get(phase, color(0))}"><title>{title}</title></rect>')
            x += width
        spoken = f'role="img" aria-label="{escape(said)}"' if said else 'aria-hidden="true"'
        box = 'viewBox="0 0 1000 10" preserveAspectRatio="none"'
        return f'<svg class="bars {kind}" {box} {spoken}>{"".join(drawn)}</svg>'


def phase_colors(paths: Iterable[str]) -> dict[str, str]:
    """Path -> colour: that of its last step where bitwatt knows it and no other has it, else one that is still free."""
    paths, found = list(paths), dict[str, str]()
    for path in sorted(paths, key=lambda path: "/" in path):  # plain phases choose first
        wanted = _KNOWN.get(path.rpartition("/")[2])
        if wanted is not None and wanted not in found.values():
            found[path] = wanted
    free = [one for one in map(color, (6, 4, 3, 5, 2, 7, 1, 0)) if one not in found.values()]
    others = [path for path in paths if path not in found]
    for i, path in enumerate(others):
        found[path] = free[i] if i < len(free) else color(i % COLORS)
    return {path: found[path] for path in paths}
