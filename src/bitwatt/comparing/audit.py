"""Distillation audit: does the smaller model keep the quality, at how much of the energy?"""

from __future__ import annotations

from dataclasses import dataclass

from bitwatt.comparing.noisy import noisy
from bitwatt.comparing.quantities import WHOLE, value
from bitwatt.comparing.sides import Side
from bitwatt.comparing.spread import Ratio
from bitwatt.comparing.worth import quality
from bitwatt.config import Settings
from bitwatt.errors import BitwattError
from bitwatt.readings import MODELLED
from bitwatt.units import format_percent

PASSED, FAILED, UNDECIDED = "passed", "failed", "undecided"


@dataclass(frozen=True, slots=True)
class Audit:
    """`kept` is the student's quality over the teacher's, `energy` its joules over the teacher's (by sample where both
    say how many they processed)."""

    teacher: str
    student: str
    metric: str
    kept: float
    keeps: float  # wanted, at least
    energy: Ratio | None
    at_most: float  # wanted
    verdict: str
    reasons: tuple[str, ...]
    bops: float | None = None


def audit(teacher: Side, student: Side, name: str, settings: Settings, *, lower: bool = False) -> Audit:
    """Runs in which both models did the same task, such as an evaluation on the same data."""
    found = quality((teacher, student), name, lower=lower)
    before, after = found.values
    if before is None or after is None:
        raise BitwattError(f"an audit needs {name} of both: {'; '.join(found.notes)}")
    if min(before, after) < 0 or not (after if lower else before):
        raise BitwattError(f"a share of {name} cannot be kept: it is {before:g} and {after:g}")
    kept = before / after if lower else after / before
    reasons = [
        f"{name} {before:g} → {after:g}: {format_percent(kept)} is kept, at least "
        f"{format_percent(settings.worth_keeps)} is wanted"
    ]
    holds: list[bool | None] = [kept >= settings.worth_keeps]
    both = noisy((teacher, student), "energy", WHOLE, settings)
    scale, unit = _samples(teacher, student)
    ratio = both.ratios[1]
    if ratio is None:
        holds.append(None)
        reasons.append("; ".join(both.notes) or "energy is known of neither")
    else:
        ratio = _scaled(ratio, scale)
        if MODELLED in both.hows and not settings.show_modelled:
            holds.append(None)
            reasons.append(f"energy{unit} {ratio.value:.3g}× by a model: not measured, so nothing follows")
        else:
            holds.append(_below(ratio, settings.worth_at_most))
            modelled = "modelled " if MODELLED in both.hows else ""
            reasons.append(
                f"{modelled}energy{unit} {ratio.value:.3g}× ({_told(ratio)}), at most "
                f"{settings.worth_at_most:.3g}× is wanted"
            )
    bops = [value(side.run, "bops", WHOLE, settings).amount for side in (teacher, student)]
    over = (bops[1] or 0) / bops[0] * scale if bops[0] else None
    if over is not None:
        reasons.append(f"BOPs{unit} {over:.3g}×")
    verdict = FAILED if False in holds else UNDECIDED if None in holds else PASSED
    return Audit(
        teacher.name, student.name, name, kept, settings.worth_keeps, ratio, settings.worth_at_most, verdict,
        tuple(reasons), over,
    )  # fmt: skip


def _samples(teacher: Side, student: Side) -> tuple[float, str]:
    """What a ratio of whole runs is multiplied by to be one of samples, and the words for it."""
    counts = [
        (side.run.observed.total("samples") if side.run.observed is not None else 0) for side in (teacher, student)
    ]
    return (counts[0] / counts[1], " for each sample") if all(counts) else (1.0, "")


def _scaled(ratio: Ratio, by: float) -> Ratio:
    low, high = (None if end is None else end * by for end in (ratio.low, ratio.high))
    return Ratio(ratio.value * by, low, high, ratio.n)


def _below(ratio: Ratio, limit: float) -> bool | None:
    """None where the interval holds the limit. One run each is judged as it is, and said so."""
    if ratio.low is None or ratio.high is None:
        return ratio.value <= limit
    return True if ratio.high <= limit else False if ratio.low > limit else None


def _told(ratio: Ratio) -> str:
    if ratio.low is None:
        return "one run each: no spread known" if ratio.n == (1, 1) else f"n {ratio.n[0]} and {ratio.n[1]}: no interval"
    return f"95 % interval {ratio.low:.3g} to {ratio.high:.3g}, n {ratio.n[0]} and {ratio.n[1]}"
