"""Which scenario to take: for low latency, where accuracy is critical, where memory is scarce, where deployment must be
simple; and one recommendation. Each with the rule it was chosen by and the numbers that speak for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bitwatt.deploy.amounts import amount, percent
from bitwatt.deploy.records import Study
from bitwatt.deploy.telling.duels import FASTER, SLOWER
from bitwatt.deploy.telling.quantised import Worth, lost, worths
from bitwatt.deploy.telling.ranking import DIMENSIONS, Ranker, number, setting_of
from bitwatt.deploy.telling.tradeoffs import Row, baseline
from bitwatt.deploy.telling.words import listed, megabytes, milliseconds, of_change, size, times

_MEMORY = next(one for one in DIMENSIONS if one.name == "best_memory")


@dataclass(frozen=True, slots=True)
class Choice:
    """`scenario` is None where the measurements support none; `tied` are as good by the rule's first criterion."""

    need: str
    scenario: str | None
    rule: str
    why: str
    tied: tuple[str, ...] = ()


class Chooser:
    """Chooses in one setting: the smallest batch and the first number of threads, unless another is asked for."""

    def __init__(self, study: Study, ranker: Ranker, setting: tuple[int, int] | None = None) -> None:
        self.study, self.ranker, self.rules = study, ranker, ranker.rules
        self.setting = setting or usual(study)
        self.rows = {
            str(row["scenario"]): row
            for row in ranker.rows
            if setting_of(row) == self.setting and number(row, "latency_ms_per_sample") is not None
        }
        self.worths = {one.scenario: one for one in worths(study, ranker) if (one.batch, one.threads) == self.setting}

    def matrix(self) -> list[Choice]:
        return [self.low_latency(), self.accuracy_critical(), self.resource_constrained(), self.simple()]

    def low_latency(self) -> Choice:
        rule = (
            f"shortest median latency at {self.where} among those that lose less than {percent(self.rules.max_loss)}; "
            "among those not told apart, the one with less memory, but the native one where it takes no more than "
            f"{percent(self.rules.margin)} more"
        )
        name, tied = self.quickest(self.good_enough())
        why = "" if name is None else f"{self.latency(name)}{self.against_native(name)}{_tied(tied)}"
        return Choice("low latency", name, rule, why or self.nothing(), tied)

    def accuracy_critical(self) -> Choice:
        rule = "highest metric; among those not told apart, fewest labels that flip, then latency"
        known = [name for name in self.rows if self.quality(name) is not None]
        if not known:
            flips = [name for name in self.rows if self.flips(name) is not None]
            known, rule = flips, "no labels to judge by: fewest predictions that flip, then latency"
            if not known:
                return Choice("accuracy-critical", self.native(), rule, "no quality was found out: the model as it is")
        top = max(known, key=lambda name: self.quality(name) or 0)
        scenarios = self.ranker.scenarios
        level = [n for n in known if n == top or not self.ranker.differ(scenarios[top], scenarios[n])]
        fewest = min(self.flips(name) or 0 for name in level)
        same = [name for name in level if (self.flips(name) or 0) == fewest]
        name, _ = self.quickest(same)
        assert name is not None
        told = scenarios[name].quality
        metric = told.metric if told is not None and told.value is not None else ""
        value = [f"{metric} {told.value:.4g}"] if told is not None and told.value is not None else []
        tied = tuple(other for other in (level if value else same) if other != name)
        why = ", ".join([*value, *self.changed(name), self.latency(name)]) + _tied(tied, metric or "predictions")
        return Choice("accuracy-critical", name, rule, why, tied)

    def resource_constrained(self) -> Choice:
        rule = (
            f"least peak memory (USS) at {self.where} among those that lose less than {percent(self.rules.max_loss)}; "
            "among those not told apart, the smallest artefact"
        )
        known = [name for name in self.good_enough() if number(self.rows[name], "memory_mb") is not None]
        if not known:
            return Choice("resource-constrained", None, rule, "memory could not be measured here")
        least = min(known, key=lambda name: number(self.rows[name], "memory_mb") or 0)
        rows = self.rows
        same = [n for n in known if n == least or not self.ranker.tells_apart(_MEMORY, rows[least], rows[n])]
        name = min(same, key=lambda name: (self._or_last(name, "artefact_bytes"), name != least))
        told = f"{megabytes(number(rows[name], 'memory_mb'))}, artefact {size(number(rows[name], 'artefact_bytes'))}"
        native = self.native()
        most = number(rows[native], "memory_mb") if native in rows and native != name else None
        if native and most:
            told += f"; {native} takes {megabytes(most)}"
        tied = tuple(other for other in same if other != name)
        return Choice("resource-constrained", name, rule, told + _tied(tied, "memory"), tied)

    def simple(self) -> Choice:
        rule = "the native model: nothing is converted, so nothing can differ from what was trained"
        name = self.native()
        if name is None:
            return Choice("simple deployment", None, rule, "the native model could not be run")
        quickest, _ = self.quickest(self.good_enough())
        duel = self.ranker.duels.get((name, quickest or "", *self.setting))
        price = ""
        if duel is not None and duel.verdict == SLOWER:
            price = f", {times(duel.ratio)} the latency of {quickest}: that is the price of not converting"
        elif quickest not in (None, name):
            price = f"; {quickest} is not shown to be quicker"
        return Choice("simple deployment", name, rule, f"{self.latency(name)}{price}")

    def recommended(self) -> Choice:
        """The quickest that is good enough and, if it is not the native one, worth the conversion."""
        rule = (
            f"the native model, unless another loses less than {percent(self.rules.max_loss)}, is no doubtful "
            f"conversion and is shown to gain more than {percent(self.rules.min_gain)} of its latency at {self.where}; "
            "then the quickest of these, and among those not told apart the one with less memory. A quantised one must "
            "gain as much over its like in floats"
        )
        if not self.rows:
            return Choice("recommendation", None, rule, self.nothing())
        native = self.native()
        gained = [name for name in self.good_enough() if self._gains(name, native) and self._worth(name)]
        unasked = [name for name in gained if self.ranker.scenarios[name].quality is None]
        name, tied = self.quickest([name for name in gained if name not in unasked])
        if name is None:
            if native is None:
                name, tied = self.quickest([name for name in self.good_enough() if self._worth(name)])
                why = "there is no native baseline to hold it against"
                if self.reference() not in (None, name):
                    why += f", but {self.reference()}"
                return Choice("recommendation", name, rule, why if name else self.nothing(), tied)
            doubted = [name for name in self.rows if self.doubtful(name) and self._gains(name, native)]
            why = f"{listed(doubted)}: quicker, but perhaps another model, see beware" if doubted else ""
            if unasked:  # it was interrupted before they were
                why = f"quicker, but not asked what they predict: {listed(unasked)}"
            why = why or "no other is worth its conversion"
            return Choice("recommendation", native, rule, f"{self.latency(native)}; {why}")
        why = f"{self.latency(name)}{self.against_native(name)}; {self.kept(name)}{_tied(tied)}"
        return Choice("recommendation", name, rule, why, tied)

    # what the rules are made of

    @property
    def where(self) -> str:
        batch, threads = self.setting
        return f"batch {batch}, {amount(threads, 'thread')}"

    def native(self) -> str | None:
        return self.ranker.native

    def reference(self) -> str | None:
        """What a loss is a loss against: the native model, or without one the ONNX model in floats."""
        return self.native() or baseline(self.study, "onnx")

    def good_enough(self) -> list[str]:
        """Whose loss is small enough, or not known of anybody. What is not known of one alone is no excuse for it. A
        conversion that is another model than the native one is not good enough, whatever it scores on these rows."""
        losses = {name: self.loss(name) for name in self.rows if not self.doubtful(name)}
        reference = self.reference()
        if all(loss is None for name, loss in losses.items() if name != reference):
            return list(losses)
        return [n for n, loss in losses.items() if n == reference or (loss is not None and loss < self.rules.max_loss)]

    def doubtful(self, name: str) -> bool:
        found = self.ranker.scenarios[name].quality if name in self.ranker.scenarios else None
        return found is not None and found.doubtful

    def loss(self, name: str) -> float | None:
        return self._lost(name)[0]

    def _lost(self, name: str) -> tuple[float | None, str]:
        reference = self.reference()
        if reference is None or reference not in self.ranker.scenarios:
            return None, ""
        return lost(self.ranker, self.ranker.scenarios[name], self.ranker.scenarios[reference])

    def quickest(self, names: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
        """And those that are not shown to be slower; among all of them the one with the least memory is taken. For a
        difference of memory that counts as none, the native one is not given up."""
        if not names:
            return None, ()
        first = min(names, key=lambda name: number(self.rows[name], "latency_ms_per_sample") or 0)
        level = [n for n in names if n == first or self.ranker.duel(first, n, *self.setting) != FASTER]
        chosen = min(level, key=lambda name: (self._or_last(name, "memory_mb"), self._or_last(name, "artefact_bytes")))
        native = self.native()
        if native in level and self._or_last(native, "memory_mb") <= (1 + self.rules.margin) * self._or_last(
            chosen, "memory_mb"
        ):
            chosen = native
        return chosen, tuple(name for name in level if name != chosen)

    def quality(self, name: str) -> float | None:
        return number(self.rows[name], "accuracy")

    def flips(self, name: str) -> int | None:
        found = self.ranker.scenarios[name].quality
        return 0 if name == self.native() else None if found is None else found.flips

    def latency(self, name: str) -> str:
        if name not in self.rows:
            return f"not timed at {self.where}"
        return f"{milliseconds(number(self.rows[name], 'p50_ms'))} a call at {self.where}"

    def against_native(self, name: str) -> str:
        duel = self.ranker.duels.get((name, self.native() or "", *self.setting))
        if duel is None or name == self.native():
            return ""
        return f", {duel.told}"

    def kept(self, name: str) -> str:
        loss, metric = self._lost(name)
        told = "what it loses is not known" if loss is None else f"{of_change(-loss)} {metric}"
        return ", ".join([told, *self.changed(name)])

    def changed(self, name: str) -> list[str]:
        """How its predictions differ from the baseline's: labels, or values where there are none."""
        quality, flips = self.ranker.scenarios[name].quality, self.flips(name)
        if quality is None or name == self.native():
            return []
        if flips is not None:
            return [f"{flips:,} of {quality.rows:,} labels flip"]
        if quality.max_difference is None:
            return []
        return [
            f"values differ by {quality.max_difference:.2g} at most"
            if quality.max_difference
            else "values are the same"
        ]

    def nothing(self) -> str:
        return "nothing that was timed is good enough" if self.rows else "nothing was timed in this setting"

    def _gains(self, name: str, native: str | None) -> bool:
        duel = self.ranker.duels.get((name, native or "", *self.setting))
        return name != native and duel is not None and duel.verdict == FASTER and 1 - duel.ratio > self.rules.min_gain

    def _worth(self, name: str) -> bool:
        found: Worth | None = self.worths.get(name)
        return found is None or found.worthwhile is True

    def _or_last(self, name: str, column: str) -> float:
        """What is not known comes last."""
        found = number(self.rows[name], column)
        return float("inf") if found is None else found


def usual(study: Study) -> tuple[int, int]:
    """The setting that a choice is made in: one request as small as they were tried."""
    return min(study.plan.batches), study.plan.threads[0]


def chosen_row(rows: Sequence[Row], choice: Choice, setting: tuple[int, int]) -> Row | None:
    return next((row for row in rows if row["scenario"] == choice.scenario and setting_of(row) == setting), None)


def _tied(names: Sequence[str], of: str = "latency") -> str:
    return f"; no difference of {of} shown to {listed(list(names))}" if names else ""
