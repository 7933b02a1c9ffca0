"""Runs as tables: one row for each run, phase, layer, op or value of a metric; for SQL, Parquet and CSV."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bitwatt.impact.energy import ratio_by_phase
from bitwatt.pricing import totals
from bitwatt.ranks.silence import state_of
from bitwatt.records import Run
from bitwatt.store.columns import values
from bitwatt.store.runfile import Header

#: BIG is for counts, which may be larger than 64 bits hold: 38 decimal digits.
TEXT, INT, BIG, REAL, BOOL = "text", "int", "big", "real", "bool"
MODELS = ("flops", "bops", "macs", "bytes")
_COUNTS = dict.fromkeys(MODELS, BIG)
#: Facts of the machine that have a column in `runs`.
FACTS = ("os", "cpu", "cores", "memory", "gpu", "driver", "cuda", "cudnn", "python", "bitwatt", "torch", "scikit-learn")

Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    name: str
    columns: dict[str, str]  # name -> type
    rows: Iterable[Row]


_RUNS = {
    "id": TEXT, "name": TEXT, "started": TEXT, "seconds": REAL, "status": TEXT, "command": TEXT, "version": TEXT,
    "dataset": TEXT, "batch_size": INT, "parent": TEXT, "parent_kind": TEXT, "job": TEXT, "rank": INT, "commit": TEXT,
    "branch": TEXT, "dirty": TEXT, **_COUNTS, "missing": INT, "parameters": BIG, "energy_j": REAL, "energy_how": TEXT,
    "grams": REAL, "cost": REAL, "currency": TEXT, "memory_bytes": BIG, "device_memory_bytes": BIG, "fingerprint": TEXT,
}  # fmt: skip


def runs_table(headers: Sequence[Header]) -> Table:
    """With columns for every tag (tag_...), parameter (param_...) and metric (metric_...) that one of the runs has."""
    columns = dict(_RUNS) | {_column("machine", name): TEXT for name in FACTS}
    more: dict[tuple[str, str], str] = {}
    for kind in ("tag", "param", "metric"):
        for name in sorted({name for header in headers for name in _told(header, kind)}):
            column = _column(kind, name)
            while column in columns:  # two names that differ in odd letters only
                column += "_"
            more[kind, name] = column
            columns[column] = _type(_told(header, kind).get(name) for header in headers)
    return Table("runs", columns, (_run_row(header, columns, more) for header in headers))


def _run_row(header: Header, columns: dict[str, str], more: dict[tuple[str, str], str]) -> Row:
    row: Row = dict.fromkeys(columns)
    row |= values(header) | {"status": state_of(header)}
    row |= {name: header.summary.get(name) for name in ("energy_how", "currency", "fingerprint")}
    row |= {_column("machine", name): header.machine.get(name) for name in FACTS}
    for (kind, name), column in more.items():
        value = _told(header, kind).get(name)
        row[column] = str(value) if columns[column] == TEXT and value is not None else value
    return row


def _told(header: Header, kind: str) -> dict[str, Any]:
    about = header.about
    if kind == "metric":
        return {name: told.get("last") for name, told in about.metrics.items()}
    return dict(about.parameters) if kind == "param" else {name: text or "yes" for name, text in about.tags.items()}


def _type(found: Iterable[Any]) -> str:
    kinds = {type(value) for value in found if value is not None}
    return BOOL if kinds == {bool} else REAL if kinds and kinds <= {int, float} else TEXT


def _column(kind: str, name: str) -> str:
    """A plain name, since those who query it would have to quote others."""
    return f"{kind}_{re.sub(r'[^0-9a-zA-Z]+', '_', name).strip('_').lower() or 'x'}"


def _phases(run: Run) -> Iterator[Row]:
    priced = {model: totals(run, model) for model in MODELS}
    energy = ratio_by_phase(run.meter, priced["flops"], priced["bops"]) if run.meter is not None else {}
    amounts = {model: one.by("phase") for model, one in priced.items()}
    names = dict.fromkeys((*amounts["flops"], *amounts["bytes"], *run.phase_seconds, *energy))
    for phase in names:
        drawn = energy.get(str(phase))
        yield {
            "run": run.id,
            "phase": phase,
            "seconds": run.phase_seconds.get(str(phase)),
            "device_seconds": run.device_seconds.get(str(phase)),
            **{model: amounts[model].get(phase, 0) for model in MODELS},
            "energy_j": drawn.energy_j if drawn is not None else None,
            "energy_how": (drawn.how or None) if drawn is not None else None,
        }


def _layers(run: Run) -> Iterator[Row]:
    amounts: dict[str, Any] = {model: totals(run, model).by("scope") for model in MODELS}
    for scope in dict.fromkeys((*amounts["flops"], *amounts["bytes"], *run.layers)):
        layer = run.layers.get(scope)
        yield {
            "run": run.id,
            "layer": scope,
            "class": layer.kind if layer else None,
            "parameters": layer.parameters if layer else None,
            "weight_dtype": layer.weight_dtype if layer else None,
            "weight_bits": layer.weights.effective_bits if layer and layer.weights else None,
            "weight_bytes": layer.weight_bytes if layer else None,
            **{model: amounts[model].get(scope, 0) for model in MODELS},
        }


def _ops(run: Run) -> Iterator[Row]:
    amounts: dict[str, Any] = {model: totals(run, model).by("phase", "scope", "op") for model in MODELS}
    calls: dict[tuple[str, str, str], int] = {}
    status: dict[tuple[str, str, str], str] = {}
    for entry in totals(run, "flops").entries:
        key = (entry.row.phase, entry.row.scope, entry.op.name)
        calls[key] = calls.get(key, 0) + entry.calls
        status[key] = entry.status
    for key, number in calls.items():
        known = status[key] != "missing"
        yield {
            "run": run.id,
            **dict(zip(("phase", "layer", "op"), key, strict=True)),
            "calls": number,
            "status": status[key],
            **{model: amounts[model].get(key, 0) if known else None for model in MODELS},
        }


def _metrics(run: Run) -> Iterator[Row]:
    for name, points in run.about.series.items():
        for step, seconds, value in points:
            yield {"run": run.id, "name": name, "step": step, "seconds": seconds, "value": value}


#: Tables that need whole files: columns, and the rows of one run.
INSIDE: dict[str, tuple[dict[str, str], Callable[[Run], Iterator[Row]]]] = {
    "phases": (
        {"run": TEXT, "phase": TEXT, "seconds": REAL, "device_seconds": REAL, **_COUNTS, "energy_j": REAL,
         "energy_how": TEXT},
        _phases,
    ),
    "layers": (
        {"run": TEXT, "layer": TEXT, "class": TEXT, "parameters": BIG, "weight_dtype": TEXT, "weight_bits": REAL,
         "weight_bytes": BIG, **_COUNTS},
        _layers,
    ),
    "ops": (
        {"run": TEXT, "phase": TEXT, "layer": TEXT, "op": TEXT, "calls": BIG, "status": TEXT, **_COUNTS},
        _ops,
    ),
    "metrics": ({"run": TEXT, "name": TEXT, "step": INT, "seconds": REAL, "value": REAL}, _metrics),
}  # fmt: skip
NAMES = ("runs", *INSIDE)


def inside_table(name: str, runs: Iterable[Run]) -> Table:
    """Priced by today's rules, as reports are."""
    columns, rows = INSIDE[name]
    return Table(name, columns, (row for run in runs for row in rows(run)))
