"""Trees of which only some features may meet on the way down: which of them each node may look at."""

from __future__ import annotations

from functools import cache
from typing import Any


def groups(together: Any, features: int) -> Any:
    """Of features that may meet: the word for all pairs or none, or sets that cover all features."""
    if together is None or isinstance(together, str):
        return together
    given = [frozenset(map(int, group)) for group in together]
    rest = frozenset(range(features)).difference(*given)
    return (*given, rest) if rest else tuple(given)


def allowed(nodes: Any, children: Any, every: Any, features: int, together: Any) -> Any:
    """A row for each node: which features it may look at, given those that were met above it. `every` are the nodes
    that were split, and their `children`."""
    import numpy as np

    @cache
    def may_follow(met: frozenset[int]) -> Any:
        row = np.zeros(features, dtype=bool)
        if not met or (together == "pairwise" and len(met) < 2):
            row[:] = True
        elif isinstance(together, str):
            row[[*met]] = True
        else:
            row[[*frozenset().union(*(group for group in together if met <= group))]] = True
        return row

    met = [frozenset[int]()] * len(nodes)
    for node, below in zip(every.tolist(), children.tolist(), strict=True):  # parents come before their children
        for child in below:
            met[child] = met[node] | {int(nodes["feature_idx"][node])}
    return np.stack([may_follow(one) for one in met])
