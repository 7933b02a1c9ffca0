"""A run's place on three axes (FLOPs, BOPs, joules), by a rule that is shown; and what a machine takes for a TFLOP."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

from bitwatt.impact.energy import TERA

#: Within a tenth, two runs are alike.
ALIKE = 0.1
#: Alone, a run is held against 16-bit arithmetic and three times the energy its device needs at full load and peak.
USUAL_BITS, USUAL_LOSS = 16.0, 3.0


@dataclass(frozen=True, slots=True)
class Point:
    """What a run took. `grams` and `energy_j` are None where they are not known."""

    flops: int
    bops: int
    energy_j: float | None
    grams: float | None = None
    name: str = ""
    machine: str = ""

    @property
    def bits(self) -> float | None:
        """Bits of a mean FLOP."""
        return self.bops / self.flops if self.flops else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """In words, and the ratios that say it. None of the words means "good": they place a run beside another."""

    words: str
    rule: str
    ratios: Mapping[str, float | None] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.words} ({self.rule})"


ALL_THREE = "efficient on all three"
HARDWARE = "low energy but high BOPs: efficient only by its hardware"
INFLATED = "high BOPs for its FLOPs: precision-inflated"
NARROW = "more FLOPs but fewer BOPs: its precision pays for the work"
WASTED = "little work but high energy: the machine idles, or does not suit it"
COSTLY = "high on all three"
SAME = "as the reference on all three"
MIXED = "lower on some axes, higher on others"


def place(run: Point, reference: Point) -> Verdict:
    """Against another run of the same task, or the median of several (`middle`)."""
    ratios = {
        "FLOPs": _over(run.flops, reference.flops),
        "BOPs": _over(run.bops, reference.bops),
        "energy": _over(run.energy_j, reference.energy_j),
        "BOPs per FLOP": _over(run.bits, reference.bits),
    }
    rule = ", ".join(f"{name} {_told(value)}" for name, value in ratios.items()) + " the reference; alike within 10 %"
    flops, bops, energy, bits = (_side(value) for value in ratios.values())
    known = [side for side in (flops, bops, energy) if side is not None]
    return Verdict(_words(flops, bops, energy, bits, known), rule, ratios)


def _words(flops: int | None, bops: int | None, energy: int | None, bits: int | None, known: list[int]) -> str:
    if len(known) == 3 and not any(known):
        return SAME
    if len(known) == 3 and max(known) <= 0:
        return ALL_THREE
    if energy == -1 and bops == 1:
        return HARDWARE
    if bops == 1 and bits == 1:
        return INFLATED
    if energy == 1 and (flops or 0) <= 0 and (bops or 0) <= 0:
        return WASTED
    if flops == 1 and bops == -1:
        return NARROW
    if len(known) == 3 and min(known) == 1:
        return COSTLY
    if energy is None:
        return "unknown: the energy of one of them was not measured"
    return MIXED if len(known) == 3 else "unknown: the work of one of them was not counted"


def alone(run: Point, ideal_j: float | None) -> Verdict:
    """Without another run: bits of a mean FLOP against 16, energy against what the device needs at peak (its TDP times
    the ideal time). It says nothing of the FLOPs: only another run of the task can."""
    bits, loss = _over(run.bits, USUAL_BITS), _over(run.energy_j, ideal_j)
    ratios = {"bits per FLOP": run.bits, "energy over ideal": loss}
    rule = (
        f"{'unknown' if run.bits is None else f'{run.bits:.3g}'} bits per FLOP against {USUAL_BITS:g}; energy "
        f"{_told(loss)} the device's TDP x ideal time, against {USUAL_LOSS:g}×"
    )
    # where both are above their bar, the one that is further above
    if bits is not None and bits > 1 + ALIKE and bits >= (loss or 0.0) / USUAL_LOSS:
        return Verdict(INFLATED, rule, ratios)
    if loss is None:
        return Verdict("unknown: the energy, or the device's peak or TDP, is not known", rule, ratios)
    if loss > USUAL_LOSS:
        return Verdict(WASTED, rule, ratios)
    return Verdict("narrow arithmetic, and energy near what the device needs for it", rule, ratios)


def middle(runs: Iterable[Point]) -> Point | None:
    """The median on each axis by itself, as a reference; None without runs."""
    points = list(runs)
    if not points:
        return None
    joules = [point.energy_j for point in points if point.energy_j is not None]
    flops, bops = (round(median(values)) for values in ([p.flops for p in points], [p.bops for p in points]))
    return Point(flops, bops, median(joules) if joules else None, name=f"median of {len(points)} runs")


@dataclass(frozen=True, slots=True)
class Spread:
    """Several runs' values of one ratio: the median, the least and the greatest."""

    runs: int
    median: float
    least: float
    greatest: float


RATIOS: Mapping[str, tuple[str, str]] = {
    "j_per_tflop": ("energy_j", "flops"),
    "j_per_tbop": ("energy_j", "bops"),
    "g_per_tflop": ("grams", "flops"),
    "g_per_tbop": ("grams", "bops"),
}


def by_machine(runs: Iterable[Point]) -> dict[str, dict[str, Spread]]:
    """The laboratory's hardware efficiency: machine -> ratio -> spread. Runs without a cost, or without work, say
    nothing of a machine."""
    found: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        for name, (cost, work) in RATIOS.items():
            value, amount = getattr(run, cost), getattr(run, work)
            if value is not None and amount:
                found.setdefault(run.machine, {}).setdefault(name, []).append(value / (amount / TERA))
    return {
        machine: {name: Spread(len(known), median(known), min(known), max(known)) for name, known in ratios.items()}
        for machine, ratios in found.items()
    }


def _over(value: float | None, reference: float | None) -> float | None:
    return None if value is None or not reference else value / reference


def _side(ratio: float | None) -> int | None:
    """-1 below, 0 alike, 1 above."""
    if ratio is None:
        return None
    return 1 if ratio > 1 + ALIKE else -1 if ratio < 1 / (1 + ALIKE) else 0


def _told(ratio: float | None) -> str:
    if ratio is None:
        return "unknown against"
    return f"{ratio:,.0f}×" if ratio >= 100 else f"{ratio:.3g}×"
