"""Turn a ledger into numbers: find each op's rule, apply a cost model, and keep what no rule covers in sight."""

from __future__ import annotations

import importlib
import pkgutil
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

from bitwatt.errors import MissingRuleError, UnknownNameError
from bitwatt.ledger import Ledger, Row
from bitwatt.precision.operands import effective, effective_bytes
from bitwatt.records import Layer, Op, Run, Work
from bitwatt.registry import RULES, Rule, work_of


class Charge(NamedTuple):
    """What a cost model asks for one kind of work of one call. `part` as in Work: "", masked, quantisation."""

    kind: str
    precision: str
    amount: int
    part: str = ""


COUNTED, FREE, MISSING = "counted", "free", "missing"


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the ledger with its rule and the work of one call."""

    row: Row
    rule: Rule | None
    work: Work | None
    layer: Layer | None = None
    reason: str = ""
    #: Bytes if operands moved as they are kept, not as they are expanded; None where that is what moved.
    bytes_effective: int | None = None

    @property
    def status(self) -> str:
        if self.rule is None or self.work is None:
            return MISSING
        return FREE if self.rule.function is None else COUNTED

    @property
    def op(self) -> Op:
        return self.row.op

    @property
    def calls(self) -> int:
        """How many calls were made. Of folded ones `work` is the sum, and the row stands for it once."""
        folded = self.op.folded
        return self.row.calls if folded is None else self.row.calls * folded.calls

    @property
    def estimated(self) -> int:
        """How many of them are estimated."""
        if self.op.folded is not None:
            return self.row.calls * self.op.folded.estimated
        return self.row.calls if self.work is not None and self.work.estimated else 0


@dataclass(frozen=True)
class CostModel:
    """What work is worth under one convention. `charges` prices one call of a counted entry."""

    name: str
    unit: str
    about: str
    source: str
    charges: Callable[[Entry], Iterable[tuple[Any, ...]]]
    #: Kinds that this convention cannot speak of. A row made of nothing else is left out rather than priced at 0.
    outside: frozenset[str] = frozenset({"text"})
    #: Whether this convention has no formula for a counted entry: it is then missing, for this model alone.
    lacks: Callable[[Entry], bool] = lambda entry: False
    #: Whether it reads the work alone and asks for a sum of works what it asks for each. Then folded calls can be
    #: priced by their sum; under other models they keep the price they had when they were folded.
    adds_up: bool = False

    def __str__(self) -> str:
        return self.name

    def covers(self, work: Work) -> bool:
        return bool(work.products) or not work.ops or any(kind not in self.outside for kind, *_ in work.ops)

    def status(self, entry: Entry) -> str:
        if entry.op.folded is not None and not self.adds_up:
            return entry.status if entry.op.folded.price(self.name) is not None else MISSING
        return MISSING if entry.status == COUNTED and self.lacks(entry) else entry.status

    def price(self, entry: Entry) -> tuple[Charge, ...]:
        """What is asked for one call; for folded ones, for all of them."""
        if entry.op.folded is not None and not self.adds_up:
            told = entry.op.folded.price(self.name) or ()
            return tuple(Charge(kind, precision, amount, part) for kind, precision, part, amount in told)
        return tuple([one if type(one) is Charge else Charge(*one) for one in self.charges(entry)])


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many calls were counted, free on purpose, or covered by no rule; and how many layers look quantised though
    nothing but their dtype could be found out."""

    counted: int
    free: int
    missing: int
    estimated: int = 0
    dtype_only: int = 0

    def __str__(self) -> str:
        text = f"{self.counted:,} ops counted, {self.free:,} free, {self.missing:,} missing"
        if self.estimated:
            text += f", {self.estimated:,} estimated"
        if self.dtype_only:
            text += f"; {self.dtype_only:,} {'layer' if self.dtype_only == 1 else 'layers'} by dtype only"
        return text


class Totals:
    """A run priced by one model: `total`, `by(...)`, `missing` and `coverage`."""

    def __init__(self, entries: list[Entry], model: CostModel) -> None:
        self.entries, self.model = entries, model

    @cached_property
    def charged(self) -> list[tuple[Entry, tuple[Charge, ...]]]:
        found, prices = list[tuple[Entry, tuple[Charge, ...]]](), dict[tuple[int, int | None], tuple[Charge, ...]]()
        for entry in self.entries:
            if entry.work is None or not self.model.covers(entry.work) or self.model.status(entry) == MISSING:
                continue
            key = (id(entry.work), entry.bytes_effective)  # an op has the same work wherever it is called
            price = prices.get(key) if self.model.adds_up else None
            if price is None:
                price = prices[key] = self.model.price(entry)
            found.append((entry, price))
        return found

    @cached_property
    def total(self) -> int:
        return sum(charge.amount * entry.row.calls for entry, charges in self.charged for charge in charges)

    def by(self, *keys: str) -> dict[str, int] | dict[tuple[str, ...], int]:
        """Sums over one or more of phase, scope, op, family, kind, precision, part. One key gives a dict of plain
        strings."""
        if unknown := set(keys) - set(KEYS):
            raise UnknownNameError(f"cannot sum by {', '.join(sorted(unknown))}; choose from {', '.join(KEYS)}")
        sums: dict[tuple[str, ...], int] = {}
        split, reads = bool({"kind", "precision", "part"} & set(keys)), [KEYS[key] for key in keys]
        for entry, charges in self.charged:
            if not split:  # all of a row is in one group, also where it costs nothing
                charges = (Charge("", "", sum([charge.amount for charge in charges])),)
            for charge in charges:
                group = tuple([read(entry, charge) for read in reads])
                sums[group] = sums.get(group, 0) + charge.amount * entry.row.calls
        if len(keys) == 1:
            return {group[0]: amount for group, amount in sums.items()}
        return sums

    @cached_property
    def missing(self) -> dict[str, int]:
        """Op name -> calls, for ops that no rule covers, or that the model has no formula for."""
        calls: dict[str, int] = {}
        for entry in self.entries:
            if self.model.status(entry) == MISSING:
                calls[entry.op.name] = calls.get(entry.op.name, 0) + entry.calls
        return calls

    @cached_property
    def coverage(self) -> Coverage:
        calls = {COUNTED: 0, FREE: 0, MISSING: 0}
        estimated = 0
        for entry in self.entries:
            calls[self.model.status(entry)] += entry.calls
            estimated += entry.estimated
        unknown = {entry.row.scope for entry in self.entries if entry.layer is not None and entry.layer.unknown}
        return Coverage(calls[COUNTED], calls[FREE], calls[MISSING], estimated, len(unknown))

    def __repr__(self) -> str:
        return f"<{self.total:,} {self.model.unit} ({self.model}); {self.coverage}>"


KEYS: Mapping[str, Callable[[Entry, Charge], str]] = {
    "phase": lambda entry, _: entry.row.phase,
    "scope": lambda entry, _: entry.row.scope,
    "op": lambda entry, _: entry.op.name,
    "family": lambda entry, _: entry.rule.family if entry.rule else "",
    "kind": lambda _, charge: charge.kind,
    "precision": lambda _, charge: charge.precision,
    "part": lambda _, charge: charge.part,
}

_models: dict[str, CostModel] = {}
_entries: weakref.WeakKeyDictionary[Ledger, tuple[Any, list[Entry]]] = weakref.WeakKeyDictionary()


def cost_model(
    name: str,
    *,
    unit: str,
    source: str,
    outside: Iterable[str] = ("text",),
    lacks: Callable[[Entry], bool] = lambda entry: False,
    adds_up: bool = False,
) -> Callable[[Callable[[Entry], Iterable[tuple[Any, ...]]]], CostModel]:
    """Make a cost model of a function from an entry to charges; its docstring is the formula people read.

    `adds_up` promises that it reads nothing but the entry's work and bytes, and is linear in them.
    """

    def register(charges: Callable[[Entry], Iterable[tuple[Any, ...]]]) -> CostModel:
        about = " ".join((charges.__doc__ or "").split())
        _models[name] = CostModel(name, unit, about, source, charges, frozenset(outside), lacks, adds_up)
        return _models[name]

    return register


def cost_models() -> dict[str, CostModel]:
    """Every cost model by name, third-party ones included."""
    package = importlib.import_module("bitwatt.costs")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"bitwatt.costs.{module.name}")
    for point in entry_points(group="bitwatt.costs"):
        point.load()
    return dict(_models)


def find_model(model: CostModel | str) -> CostModel:
    if isinstance(model, CostModel):
        return model
    known = _models if model in _models else cost_models()  # looking through what is installed takes 50 ms
    if model not in known:
        raise UnknownNameError(f"no cost model is called {model!r}; there are {', '.join(sorted(known))}")
    return known[model]


def entries_of(ledger: Ledger, layers: Mapping[str, Layer] | None = None) -> list[Entry]:
    """Each row with its rule and work, found once per ledger, layers and set of rules."""
    known = _entries.get(ledger)
    if known and known[0] == (RULES.version, id(layers)):
        return known[1]
    pricer = Pricer(layers or {})
    entries = [pricer.entry(row) for row in ledger]
    _entries[ledger] = ((RULES.version, id(layers)), entries)  # after the loop: finding rules loads files, adding rules
    return entries


class Pricer:
    """Finds rule and work of rows, each op's and each scope's once."""

    def __init__(self, layers: Mapping[str, Layer]) -> None:
        self._layers = layers
        self._works: dict[Op, tuple[Rule | None, Work | None, str]] = {}
        self._owners: dict[str, tuple[Layer | None, bool]] = {}

    def entry(self, row: Row) -> Entry:
        if row.op not in self._works:
            self._works[row.op] = _work(row.op)
        return _entry(row, *self._works[row.op], *self.owner(row.scope))

    def owner(self, scope: str) -> tuple[Layer | None, bool]:
        if scope not in self._owners:
            self._owners[scope] = _owner(scope, self._layers)
        return self._owners[scope]


def _owner(scope: str, layers: Mapping[str, Layer]) -> tuple[Layer | None, bool]:
    """The layer of a scope, and whether it is only a part of that layer, such as a fake quantiser."""
    own = layers.get(scope)
    if own is not None and own.shapes:
        return own, False
    outer = scope
    while "." in outer:
        outer = outer.rpartition(".")[0]
        layer = layers.get(outer)
        if layer is not None and layer.shapes:
            inner = f"{scope[len(outer) :]} {own.kind if own else ''}".lower()
            quantiser = any(word in inner for word in ("quant", "observ", "post_process"))
            return (layer, True) if layer.weights is not None and quantiser else (own, False)
    return own, False


def _entry(row: Row, rule: Rule | None, work: Work | None, reason: str, layer: Layer | None, inside: bool) -> Entry:
    if row.op.folded is not None:  # as the layer was when they were folded
        return Entry(row, rule, work, layer, reason, row.op.folded.bytes_effective)
    if work is None or layer is None or layer.is_plain or not layer.shapes:
        return Entry(row, rule, work, layer, reason)
    family = rule.family if rule is not None else ""
    carried = effective(work, row.op, layer, row.phase, family=family, inside=inside)
    return Entry(row, rule, carried, layer, reason, effective_bytes(carried, row.op, layer, row.phase))


def _work(op: Op) -> tuple[Rule | None, Work | None, str]:
    rule = RULES.find(op.name)
    if op.folded is not None:
        return rule, op.folded.work, op.folded.reason
    if rule is None:
        return None, None, "no rule"
    if op.overload == "unrecorded" and rule.function is not None:
        return rule, None, f"it could not be recorded: {dict(op.args).get('unrecorded')}"
    if op.overload == "unassumed":
        return rule, None, f"it could not be estimated: {dict(op.args).get('unassumed')}"
    try:
        work = work_of(rule, op)
        return rule, replace(work, estimated=True) if op.overload == "assumed" else work, ""
    except Exception as error:  # a faulty rule must not cost the user the run: the op is missing, and says why
        return rule, None, f"its rule failed: {type(error).__name__}: {error}"


def totals(run: Run | Ledger | str | Path, model: CostModel | str = "flops", *, strict: bool = False) -> Totals:
    """Price a run, or the kept one of a name, id or path. With `strict`, an op that no rule covers raises instead of
    being listed in `.missing`."""
    if isinstance(run, Ledger):
        result = Totals(entries_of(run), find_model(model))
    else:
        from bitwatt.store import kept_or_given  # it is not read for runs that are at hand

        run = kept_or_given(run)
        result = Totals(entries_of(run.ledger, run.layers), find_model(model))
    if strict and result.missing:
        names = ", ".join(f"{name} ({calls}x)" for name, calls in sorted(result.missing.items()))
        raise MissingRuleError(f"no rule covers {names}; add one with @bitwatt.rule, or drop strict to see the rest")
    return result
