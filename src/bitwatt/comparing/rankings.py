"""Runs in order by FLOPs, by BOPs and by energy, and whether that is the same order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cmp_to_key

from bitwatt.comparing.noisy import noisy
from bitwatt.comparing.quantities import WHOLE, value
from bitwatt.comparing.sides import Side
from bitwatt.comparing.spread import ratio
from bitwatt.config import Settings
from bitwatt.readings import MODELLED

#: Of a long order so many are named at either end.
_SHOWN = 3

Compare = Callable[[int, int], int]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Least first; those in one tuple are not told apart."""

    by: str
    order: tuple[tuple[str, ...], ...]
    doubt: str = ""

    def __str__(self) -> str:
        steps = [" = ".join(tied) if len(tied) <= _SHOWN else f"{len(tied)} runs" for tied in self.order]
        short = steps if len(steps) <= 2 * _SHOWN else [*steps[:_SHOWN], "…", *steps[-_SHOWN:]]
        return " < ".join(short) + (f" ({self.doubt})" if self.doubt else "")


def rankings(sides: Sequence[Side], settings: Settings) -> list[Ranking]:
    """By FLOPs, BOPs, and energy where it is known of all by the same means."""
    labels = [side.label for side in sides]
    found = []
    for name, title in (("flops", "FLOPs"), ("bops", "BOPs")):
        amounts = [float(value(side.run, name, WHOLE, settings).amount or 0) for side in sides]
        found.append(Ranking(title, _order(labels, _by(amounts))))
    joules = noisy(sides, "energy", WHOLE, settings)
    if all(joules.ratios[1:]):
        by_median = _by([known or 0.0 for known in joules.medians])

        def compared(i: int, j: int) -> int:
            between = ratio(joules.values[j], joules.values[i])
            if between is not None and between.is_known and not between.excludes_one:
                return 0
            return by_median(i, j)

        doubt = "modelled" if MODELLED in joules.hows else ""
        if not doubt and not all(one is not None and one.is_known for one in joules.ratios[1:]):
            doubt = "no spread known"
        found.append(Ranking("energy", _order(labels, compared), doubt))
    return found


def _by(amounts: Sequence[float]) -> Compare:
    return lambda i, j: (amounts[i] > amounts[j]) - (amounts[i] < amounts[j])


def _order(labels: Sequence[str], compare: Compare) -> tuple[tuple[str, ...], ...]:
    order: list[list[int]] = []
    for i in sorted(range(len(labels)), key=cmp_to_key(compare)):
        if order and compare(order[-1][0], i) == 0:
            order[-1].append(i)
        else:
            order.append([i])
    return tuple(tuple(labels[i] for i in tied) for tied in order)


def disagreement(found: Sequence[Ranking]) -> str:
    """ "" where all agree. A tie agrees with any order of those that are tied."""
    if all(_agree(one.order, other.order) for one in found for other in found):
        return ""
    return "rankings differ: " + "; ".join(f"by {one.by} {one}" for one in found)


def _agree(one: Sequence[Sequence[str]], other: Sequence[Sequence[str]]) -> bool:
    here, there = ({label: i for i, tied in enumerate(order) for label in tied} for order in (one, other))
    return not any(here[a] < here[b] and there[a] > there[b] for a in here for b in here)
