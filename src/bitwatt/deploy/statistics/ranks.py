"""The signed-rank test of Wilcoxon (Biometrics Bulletin 1, 1945), and Holm's correction (Scand. J. Stat. 6, 1979)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np


def signed_rank(differences: Any) -> float:
    """Two-sided p that they are symmetric about 0, by the normal approximation with ties and continuity corrected; 1
    where there are fewer than six, which could show nothing."""
    values = np.asarray(differences, float)
    values = values[np.isfinite(values) & (values != 0)]
    count = len(values)
    if count < 6:
        return 1.0
    _, place, ties = np.unique(np.abs(values), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(ties) - (ties - 1) / 2)[place]
    positive = float(ranks[values > 0].sum())
    mean = count * (count + 1) / 4
    variance = count * (count + 1) * (2 * count + 1) / 24 - float((ties**3 - ties).sum()) / 48
    z = max(abs(positive - mean) - 0.5, 0.0) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


def holm(values: Sequence[float]) -> list[float]:
    """Each p, corrected for how many were looked at."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    found, highest = [0.0] * len(values), 0.0
    for place, index in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - place) * values[index]))
        found[index] = highest
    return found
