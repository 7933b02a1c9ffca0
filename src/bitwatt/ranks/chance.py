"""What chance alone would do where all ranks are alike, so that nobody is blamed for it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import log

#: Weights are told apart this finely, up to the largest but so many: one huge round says no more than another.
_GRAIN, _LARGE = 32, 5
#: Values below the largest ones that tell how far apart such values lie.
_BELOW = 16


def of_winning(rounds: Sequence[tuple[float, int, int]], who: Sequence[int]) -> dict[int, float]:
    """Rounds are (weight, winner, players), and any player of a round is as likely to win it. How likely is it, for
    each of `who`, to win as much as it did, or more? A sign test in which a close round counts less than a clear one;
    exact, since weights are small whole numbers."""
    weights = sorted((weight for weight, _, _ in rounds), reverse=True)
    if not weights or weights[0] <= 0.0:
        return dict.fromkeys(who, 1.0)
    large = weights[min(_LARGE, len(weights)) - 1] or weights[0]
    chances, won = [1.0], dict.fromkeys(who, 0)  # chances: of having won so much after the rounds so far
    for weight, winner, players in rounds:
        points = min(_GRAIN, round(_GRAIN * weight / large))
        if winner in won:
            won[winner] += points
        p, before, after = 1 / players, [*chances, *[0.0] * points], [*[0.0] * points, *chances]
        chances = [(1 - p) * lost + p * gained for lost, gained in zip(before, after, strict=True)]
    at_least = [*accumulate(reversed(chances))][::-1]
    return {rank: min(1.0, at_least[points]) for rank, points in won.items()}


def of_apart(values: Sequence[float], most: int = 3) -> tuple[int, float]:
    """How many of the largest values, at most `most`, lie apart from the rest, and how likely such a gap is by chance.

    Logarithms of the largest values of a long-tailed quantity lie as apart as waiting times: the k-th gap, k times, is
    exponential with one mean for all (Renyi). That mean is unknown, so a gap is compared with those below it. Shorter
    tails have smaller gaps, for which this is too careful."""
    ranked = sorted((max(value, 1e-6) for value in values), reverse=True)[: most + _BELOW + 1]
    gaps = [k * log(a / b) for k, (a, b) in enumerate(pairwise(ranked), 1)]
    best = (0, 1.0)
    for count in range(1, most + 1):
        below = gaps[count:]
        if len(below) < _BELOW // 2:
            break
        mean = max(sum(below) / len(below), 1e-9)
        chance = min(1.0, most * (1 + gaps[count - 1] / mean / len(below)) ** -len(below))
        best = min(best, (count, chance), key=lambda found: found[1])
    return best
