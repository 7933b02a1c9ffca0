"""One number of a run by its name: a count under any cost model, parameters, joules, seconds, memory, money, a metric.
Whatever compares, gates or ranks runs asks here, so that a word means the same everywhere."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import cast

from bitwatt.config import Settings
from bitwatt.errors import UnknownNameError
from bitwatt.impact.energy import used, weakest
from bitwatt.impact.money import cost
from bitwatt.inherited import inherited
from bitwatt.pricing import MISSING, cost_models, entries_of, find_model, totals
from bitwatt.readings import MEASURED
from bitwatt.records import Run

COUNTED = "counted"
#: Counts that are no cost models, and what varies from run to run; with their units.
COUNTS = {"parameters": "", "weight_bytes": "B", "calls": "", "missing": ""}
NOISY = {"seconds": "s", "energy": "J", "peak_memory": "B", "cost": "", "grams": "g"}
#: What is known of a phase, and what of a layer.
OF_PHASES = frozenset(["calls", "missing", "seconds", "energy", "peak_memory"])
OF_LAYERS = frozenset(["calls", "missing", "parameters", "weight_bytes"])
#: States of an optimizer stand among the layers under this class, yet are no weights.
OPTIMIZER = "optimizer"
_ALIASES = {"time": "seconds", "joules": "energy", "memory": "peak_memory", "money": "cost", "euro": "cost"}


@dataclass(frozen=True, slots=True)
class Where:
    """A part of a run: phases and layers whose names match; "" is all of them. A phase is named by its path, or by any
    step of it; a layer stands for what is in it too."""

    phase: str = ""
    layer: str = ""

    def has_phase(self, path: str) -> bool:
        path = path or "other"
        return not self.phase or any(fnmatchcase(name, self.phase) for name in (path, *path.split("/")))

    def has_layer(self, scope: str) -> bool:
        return not self.layer or fnmatchcase(scope, self.layer) or fnmatchcase(scope, f"{self.layer}.*")

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.phase and f"phase {self.phase}", self.layer and f"layer {self.layer}")))


WHOLE = Where()


@dataclass(frozen=True, slots=True)
class Value:
    """`amount` is None where it is not known; `because` says why. `how` is counted, or how a reading came."""

    amount: int | float | None
    unit: str = ""
    how: str = COUNTED
    because: str = ""
    about: str = ""  # what it covers: devices, the host
    is_least: bool = False  # it was looked at now and then: there may have been more in between


def name_of(word: str) -> str:
    """The quantity a word means, or an error with the near ones."""
    word = _ALIASES.get(word, word)
    known = [*cost_models(), *COUNTS, *NOISY]
    if word not in known:
        close = difflib.get_close_matches(word, [*known, *_ALIASES], 1)
        meant = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}"
        raise UnknownNameError(f"no quantity is called {word!r}{meant}")
    return word


def is_count(name: str) -> bool:
    """Whether equal programs give equal amounts of it."""
    return name not in NOISY


def unit_of(name: str) -> str:
    return NOISY[name] if name in NOISY else COUNTS[name] if name in COUNTS else find_model(name).unit


def value(run: Run, name: str, where: Where = WHOLE, settings: Settings | None = None) -> Value:
    """A quantity of a run, or of a part of it."""
    if name in _READERS:
        return _READERS[name](run, where, settings or Settings())
    coverage = totals(run, name).coverage
    if not coverage.counted and (coverage.missing or not len(run.ledger)):
        return Value(None, find_model(name).unit, because=f"nothing was counted in {run.name or run.id}")
    return Value(_priced(run, name, where), find_model(name).unit)


def metric(run: Run, name: str) -> Value:
    """The last value that the program gave a metric; `accuracy:max` is its greatest, `loss:min` its least."""
    word, _, which = name.partition(":")
    if which not in ("", "last", "min", "max"):
        raise UnknownNameError(f"{name!r}: of a metric there are last, min and max, not {which!r}")
    known = run.about.metrics
    if word not in known:
        told = f"it has {', '.join(known)}" if known else "it has none: bitwatt.metric(name, value) notes one"
        return Value(None, because=f"{run.name or run.id} has no metric {word!r}; {told}")
    found = known[word].get(which or "last")
    if found is None or not math.isfinite(found):
        return Value(None, because=f"{word} of {run.name or run.id} is no number: {found}")
    return Value(found, how="noted by the program")


def _priced(run: Run, model: str, where: Where) -> int:
    priced = totals(run, model)
    if where == WHOLE:
        return priced.total
    sums = cast("dict[tuple[str, str], int]", priced.by("phase", "scope"))
    return sum(n for (phase, scope), n in sums.items() if _inside(where, phase, scope))


def _inside(where: Where, phase: str, scope: str) -> bool:
    return where.has_phase(phase) and where.has_layer(scope)


def _calls(run: Run, where: Where, _: Settings) -> Value:
    entries = entries_of(run.ledger, run.layers)
    return Value(sum(e.calls for e in entries if _inside(where, e.row.phase, e.row.scope)))


def _missing(run: Run, where: Where, _: Settings) -> Value:
    entries = [entry for entry in entries_of(run.ledger, run.layers) if entry.status == MISSING]
    return Value(sum(e.calls for e in entries if _inside(where, e.row.phase, e.row.scope)))


def _of_layers(field: str) -> Callable[[Run, Where, Settings], Value]:
    def read(run: Run, where: Where, _: Settings) -> Value:
        unit = COUNTS["parameters" if field == "parameters" else field]
        if not run.layers:
            return Value(None, unit, because="no layer of a model was seen")
        kept = {scope: layer for scope, layer in run.layers.items() if layer.kind != OPTIMIZER}
        if field == "weight_bytes" and any(layer.parameters and not layer.weight_bytes for layer in kept.values()):
            return Value(None, unit, because="it was kept by a bitwatt that did not look at the weights' formats")
        return Value(sum(getattr(layer, field) for scope, layer in kept.items() if where.has_layer(scope)), unit)

    return read


def _seconds(run: Run, where: Where, _: Settings) -> Value:
    if not where.phase:
        known = run.seconds > 0
        return Value(run.seconds if known else None, "s", MEASURED, "" if known else "nobody has run it")
    spans = [seconds for phase, seconds in run.phase_seconds.items() if where.has_phase(phase)]
    if not spans:
        return Value(None, "s", MEASURED, f"no time of phase {where.phase!r} was taken")
    return Value(sum(spans), "s", MEASURED)


def _energy(run: Run, where: Where, settings: Settings) -> Value:
    """Measured energy; where none was, what a model says, marked as that."""
    if run.meter is None:
        return Value(None, "J", MEASURED, "it was not metered")
    known = used(run.meter, modelled=settings.show_modelled)
    if known.energy_j is None:
        known = used(run.meter, modelled=True)
    kinds = {part.device.id: part.device.kind for part in run.meter.energy}
    about = ", ".join(sorted({kinds[device] for device in known.devices}))
    if known.energy_j is None:
        why = ", ".join(f"{device}: {reason}" for device, reason in (known.without or {}).items())
        return Value(None, "J", MEASURED, why or "no sensor tells it")
    if known.known_s is not None:
        return Value(None, "J", known.how, f"it is known for {known.known_s:.1f} of {run.meter.seconds:.1f} s only")
    if not where.phase:
        return Value(known.energy_j, "J", known.how, about=about)
    parts = [part for phase, part in run.meter.phases.items() if where.has_phase(phase)]
    joules = [j for part in parts for device, j in part.energy_j.items() if device in known.devices]
    if not joules:
        return Value(None, "J", MEASURED, f"no energy of phase {where.phase!r} is known")
    return Value(sum(joules), "J", weakest([known.how, *(part.how for part in parts)]), about=about)


def _memory(run: Run, where: Where, _: Settings) -> Value:
    """Of the accelerator where one was used, else of the host. A run's peak is what one run took at most."""
    observed = run.observed
    if where.phase:
        found = [n for phase, n in (observed.device_memory if observed else {}).items() if where.has_phase(phase)]
        why = "" if found else f"memory of phase {where.phase!r} was not looked at"
        return Value(max(found, default=None), "B", MEASURED, why, "device")
    if observed is not None and observed.device_peak is not None:
        return Value(observed.device_peak, "B", MEASURED, about="device")
    use = run.meter.usage if run.meter is not None else {}
    is_least = run.meter is not None and run.meter.has_children
    for name in ("memory_bytes_peak", "peak_memory_bytes", "memory_bytes"):
        if name in use:
            return Value(int(use[name]), "B", MEASURED, about="host", is_least=is_least)
    return Value(None, "B", MEASURED, "it was not metered")


def _money(run: Run, _: Where, settings: Settings) -> Value:
    if run.meter is None:
        return Value(None, settings.currency or "", MEASURED, "it was not metered")
    found = cost(run.meter, inherited(settings, run.meter.settings))
    return Value(found.total, found.currency, found.how or MEASURED, "" if found.total is not None else found.because)


def _grams(run: Run, _: Where, settings: Settings) -> Value:
    from bitwatt.reports.model import View

    energy = View(run, settings=settings).energy
    if energy is None:
        return Value(None, "g", MEASURED, "it was not metered")
    whole = energy.carbon.total_g if energy.used.known_s is None else None  # in part: compared with none
    return Value(whole, "g", energy.carbon.how or MEASURED, energy.carbon.because)


_READERS: dict[str, Callable[[Run, Where, Settings], Value]] = {
    "calls": _calls,
    "missing": _missing,
    "parameters": _of_layers("parameters"),
    "weight_bytes": _of_layers("weight_bytes"),
    "seconds": _seconds,
    "energy": _energy,
    "peak_memory": _memory,
    "cost": _money,
    "grams": _grams,
}


def places(runs: Iterable[Run]) -> tuple[list[str], list[str]]:
    """Phases and layers that some run has."""
    phases: dict[str, None] = {}
    layers: dict[str, None] = {}
    for run in runs:
        phases |= dict.fromkeys([row.phase or "other" for row in run.ledger] + list(run.phase_seconds))
        layers |= dict.fromkeys([row.scope for row in run.ledger if row.scope] + list(run.layers))
    return list(phases), list(layers)
