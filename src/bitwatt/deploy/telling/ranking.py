"""Who is best in one quantity, and whom the measurements cannot tell from the best. A value that is not known is in no
ranking, nor is a scenario that is not what its name says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bitwatt.deploy.records import Footprint, Quality, Scenario, Study
from bitwatt.deploy.telling.duels import FASTER, SLOWER, Duel
from bitwatt.deploy.telling.rules import Rules
from bitwatt.deploy.telling.tradeoffs import Row, baseline

#: Below it, McNemar's test tells two models apart.
_ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Dimension:
    """`how` says what tells two values apart: times in pairs, right and wrong labels, the range over processes, a
    margin, or nothing but equality."""

    name: str
    column: str
    lower: bool
    how: str  # paired, labels, range, margin, exact
    spread: str = ""  # of a footprint, for range


DIMENSIONS = (
    Dimension("best_accuracy", "accuracy", False, "labels"),
    Dimension("best_latency", "latency_ms_per_sample", True, "paired"),
    Dimension("best_energy_proxy", "energy_mj_proxy", True, "margin"),
    Dimension("best_throughput", "throughput_samples_per_sec", False, "paired"),
    Dimension("best_tail_latency", "p99_ms", True, "margin"),
    Dimension("best_memory", "memory_mb", True, "range", "peak_uss_mb"),
    Dimension("best_size", "artefact_bytes", True, "exact"),
    Dimension("best_cold_start", "cold_start_ms", True, "range", "cold_ms"),
    Dimension("best_cpu", "cpu_seconds", True, "margin"),
    Dimension("best_energy_measured", "energy_uj_measured", True, "margin"),
    Dimension("best_flips", "flips", True, "exact"),
)


@dataclass(frozen=True, slots=True)
class Best:
    """`tied` are those that are not shown to be worse, in the same setting."""

    scenario: str
    batch: int
    threads: int
    value: float
    tied: tuple[str, ...] = ()


class Ranker:
    """Answers for one study; `duels` are all comparisons of times that were made."""

    def __init__(self, study: Study, rows: Sequence[Row], duels: Iterable[Duel], rules: Rules) -> None:
        self.rules, self.rows = rules, [row for row in rows if not row["failure"] and not row["ranked_as"]]
        self.scenarios: dict[str, Scenario] = {one.name: one for one in study.scenarios}
        self.native = baseline(study, "native")
        self.duels = {(one.scenario, one.against, one.batch, one.threads): one for one in duels}

    def best(self, dimension: Dimension, setting: tuple[int, int] | None = None) -> Best | None:
        """Over all settings, or in one (batch, threads). None where nobody has a value."""
        known = [
            (value, row)
            for row in self.rows
            if (setting is None or setting_of(row) == setting) and (value := number(row, dimension.column)) is not None
        ]
        if not known:
            return None
        value, row = min(known, key=lambda one: one[0] if dimension.lower else -one[0])  # the first of equals
        rivals = [other for _, other in known if setting_of(other) == setting_of(row) and other is not row]
        tied = tuple(str(other["scenario"]) for other in rivals if not self.tells_apart(dimension, row, other))
        return Best(str(row["scenario"]), *setting_of(row), value, tied)

    def tells_apart(self, dimension: Dimension, row: Row, other: Row) -> bool:
        """Whether the measurements show that the two, of one setting, differ."""
        a, b = number(row, dimension.column), number(other, dimension.column)
        if a is None or b is None or a == b:
            return False
        one, two = (self.scenarios[str(each["scenario"])] for each in (row, other))
        batch, threads = setting_of(row)
        if dimension.how == "paired":
            return self.duel(one.name, two.name, batch, threads) in (FASTER, SLOWER)
        if dimension.how == "labels":
            return self.differ(one, two)
        if dimension.how == "range" and (ranges := _ranges(one, two, batch, dimension.spread)):
            return not _overlap(*ranges)
        if dimension.how in ("margin", "range"):
            return abs(a - b) > self.rules.margin * min(abs(a), abs(b))
        return True

    def duel(self, one: str, other: str, batch: int, threads: int) -> str:
        """The verdict on the first; "" where the two were not compared, which shows nothing."""
        if found := self.duels.get((one, other, batch, threads)):
            return found.verdict
        if turned := self.duels.get((other, one, batch, threads)):
            return {FASTER: SLOWER, SLOWER: FASTER}.get(turned.verdict, turned.verdict)
        return ""

    def differ(self, one: Scenario, other: Scenario) -> bool:
        """By McNemar's test where one is the baseline of the other. Two that both are not told from the baseline are
        not told apart; else it takes intervals that do not meet."""
        a, b = one.quality, other.quality
        if a is None or b is None or a.value == b.value:
            return False
        for here, name in ((a, other.name), (b, one.name)):
            if here.against == name and here.mcnemar_p is not None:
                return here.mcnemar_p < _ALPHA
        if not _moved(a) and not _moved(b):
            return False
        return a.interval is None or b.interval is None or not _overlap(a.interval, b.interval)


def _moved(quality: Quality) -> bool:
    if quality.mcnemar_p is None:
        return bool(quality.flips) or quality.flips is None
    return quality.mcnemar_p < _ALPHA


def _ranges(
    one: Scenario, other: Scenario, batch: int, key: str
) -> tuple[tuple[float, float], tuple[float, float]] | None:
    a, b = (_spread(each.footprint.get(batch), key) for each in (one, other))
    return (a, b) if a is not None and b is not None else None


def _spread(found: Footprint | None, key: str) -> tuple[float, float] | None:
    return found.spread.get(key) if found is not None and found.processes > 1 else None


def _overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def setting_of(row: Row) -> tuple[int, int]:
    return int(row["batch_size"] or 0), int(row["threads"] or 0)


def number(row: Row, column: str) -> float | None:
    value = row[column]
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
