"""How far a replayed run can be trusted, in FLOPs: the largest deviation found, the interval of what was sampled."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import replace

from bitwatt.backends.harvest import Harvest
from bitwatt.ledger import Ledger
from bitwatt.pricing import totals
from bitwatt.records import Layer, Machine, Replay, Run

#: 95 % of a normal distribution lie so many standard errors around its mean.
_Z = statistics.NormalDist().inv_cdf(0.975)


def joined(harvests: Iterable[Harvest], layers: Mapping[str, Layer]) -> Replay | None:
    """What the backends say of their replaying, as one. Only torch replays."""
    for harvest in harvests:
        if harvest.replay is not None:
            priced = replace(harvest.replay, deviation=_deviation(harvest, layers))
            return replace(priced, interval=_interval(harvest, layers)) if harvest.samples else priced
    return None


def _flops(ledger: Ledger, layers: Mapping[str, Layer]) -> float:
    run = Run("", "", "", 0.0, ledger, Machine(), layers=layers)
    return float(totals(run).total)


def _deviation(harvest: Harvest, layers: Mapping[str, Layer]) -> float:
    largest = 0.0
    for expected, found in harvest.deviations:
        a, b = _flops(expected, layers), _flops(found, layers)
        largest = max(largest, abs(a - b) / max(a, b, 1.0))
    return largest


def _interval(harvest: Harvest, layers: Mapping[str, Layer]) -> float:
    """Each stretch that varies was credited with what the last look at it had found. Their errors are added up as they
    are, not their squares: a step that takes more forward takes more backward."""
    error = 0.0
    for uncertainty, samples in harvest.samples:
        flops = [_flops(sample, layers) for sample in samples]
        if len(flops) > 1:
            error += student(len(flops) - 1) * math.sqrt(uncertainty * statistics.variance(flops))
    return error


def student(freedom: int) -> float:
    """How many standard errors 95 % lie around a mean whose spread is known from a few samples: Student's t, by the
    expansion of Cornish and Fisher, which is 10 % short at two degrees of freedom and 2 % at four."""
    z, n = _Z, freedom
    return z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
