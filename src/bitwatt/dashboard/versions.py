"""Runs as versions of models: their quality and what they cost, by the medians of the runs of each, and which of them
none beats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bitwatt.comparing.pareto import Axis, front
from bitwatt.harmless import on_terminal
from bitwatt.store import Header
from bitwatt.store.columns import values

#: Quantities that quality can be held against, with their units.
COSTS = {
    "bops": ("BOPs", "BOP"), "energy_j": ("energy", "J"), "flops": ("FLOPs", "FLOP"), "bytes": ("bytes moved", "B"),
    "seconds": ("time", "s"), "parameters": ("parameters", ""), "grams": ("CO2e", "g"), "cost": ("cost", ""),
    "device_memory_bytes": ("GPU memory", "B"), "memory_bytes": ("memory", "B"),
}  # fmt: skip
#: Names of metrics of which less is better.
_LESS = ("loss", "error", "perplexity", "ppl", "wer", "cer", "mae", "mse", "rmse", "fid", "latency", "nll", "bpb")


@dataclass(frozen=True)
class Version:
    """A version of a model, or a single run: `quality` and `costs` are medians over its runs."""

    name: str
    version: str
    began: str
    ids: tuple[str, ...]
    quality: float
    costs: Mapping[str, float]
    #: Name and version as they were written, to be found by.
    exact: tuple[str, str]

    @property
    def key(self) -> str:
        return self.ids[0]

    @property
    def label(self) -> str:
        return f"{self.name} {self.version}".strip()


def less_is_better(metric: str) -> bool:
    """As its name suggests."""
    words = metric.lower().replace("-", "_").replace("/", "_").replace(" ", "_").split("_")
    return any(word in _LESS for word in words)


def versions(headers: Iterable[Header], metric: str, costs: Sequence[str], *, each_run: bool) -> list[Version]:
    """In the order in which they began. Runs that failed say nothing about their model."""
    groups: dict[tuple[str, ...], list[tuple[Header, float]]] = {}
    for header in headers:
        quality = header.about.metrics.get(metric, {}).get("last")
        if header.status != "ok" or not _is_finite(quality):
            continue
        key = (header.id, str(header.path)) if each_run else (header.name, header.about.version)
        groups.setdefault(key, []).append((header, float(quality or 0)))
    found = [_version(group, costs, each_run) for group in groups.values()]
    return sorted(found, key=lambda one: one.began)


def _version(group: list[tuple[Header, float]], costs: Sequence[str], each_run: bool) -> Version:
    headers = [header for header, _ in group]
    known = [values(header) for header in headers]
    amounts = {cost: [float(one[cost]) for one in known if _is_finite(one[cost])] for cost in costs}
    first = headers[0]
    version = on_terminal(first.about.version or ("" if not each_run else first.id))[:60]
    return Version(
        on_terminal(first.name or first.id)[:80],
        version,
        min(header.started for header in headers),
        tuple(header.id for header in headers),
        median(quality for _, quality in group),
        {cost: median(found) for cost, found in amounts.items() if found},
        (first.name, first.about.version),
    )


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 and value == value


def best(found: Sequence[Version], cost: str, *, lower: bool) -> set[str]:
    """Keys of those that none beats in quality and this cost."""
    axes = (Axis("cost"), Axis("quality", lower=lower))
    amounts = {one.key: {"cost": one.costs.get(cost), "quality": one.quality} for one in found}
    return {point.name for point in front(axes, amounts).best}


def thinned(found: Sequence[Version], keep: set[str], most: int) -> list[Version]:
    """About so many: all that are to be kept, and of the rest every so many."""
    rest = [one for one in found if one.key not in keep]
    if len(found) <= most:
        return list(found)
    every = math.ceil(len(rest) / max(most - len(keep), 1))
    return [one for one in found if one.key in keep] + rest[::every]
