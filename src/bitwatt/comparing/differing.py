"""What else differs between runs: settings, code, versions, hardware, precision. A number that changed has a cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bitwatt.comparing.matching import matched
from bitwatt.comparing.sides import Side
from bitwatt.pricing import totals
from bitwatt.records import Layer, Run

#: Facts of a machine that are no versions.
HARDWARE = ("cpu", "cores", "memory", "gpu", "gpus", "os", "kernel", "driver")
_ABSENT = "—"


@dataclass(frozen=True, slots=True)
class Difference:
    """What each side says of one thing. `kind` is run, setting, version, hardware or precision."""

    kind: str
    name: str
    values: tuple[str, ...]


def differences(sides: Sequence[Side]) -> list[Difference]:
    runs = [side.run for side in sides]
    found = [_one("run", name, tell) for name, tell in _run_facts(runs).items()]
    found += _tables("setting", [_settings(run) for run in runs])
    for kind, wanted in (("hardware", True), ("version", False)):
        facts = [{k: v for k, v in run.machine.facts.items() if (k in HARDWARE) == wanted} for run in runs]
        found += _tables(kind, facts)
    return [one for one in found if len(set(one.values)) > 1] + _precisions(sides)


def _one(kind: str, name: str, values: Sequence[str]) -> Difference:
    return Difference(kind, name, tuple(values))


def _tables(kind: str, tables: Sequence[Mapping[str, str]]) -> list[Difference]:
    names = dict.fromkeys(name for table in tables for name in table)
    return [_one(kind, name, [table.get(name, _ABSENT) for table in tables]) for name in names]


def _run_facts(runs: Sequence[Run]) -> dict[str, list[str]]:
    return {
        "command": [run.command for run in runs],
        "status": [run.status for run in runs],
        "exactness": [run.replay.exactness if run.replay is not None else _ABSENT for run in runs],
        "ranks": [str(run.rank.world) if run.rank is not None else "1" for run in runs],
        "missing rules": [_missing(run) for run in runs],
        "model version": [run.about.version or _ABSENT for run in runs],
        "dataset": [run.about.dataset or _ABSENT for run in runs],
        "batch size": [str(run.about.batch_size or _ABSENT) for run in runs],
        "commit": [_commit(run) for run in runs],
    }


def _missing(run: Run) -> str:
    return ", ".join(f"{name} {calls:,}x" for name, calls in sorted(totals(run).missing.items())) or "none"


def _commit(run: Run) -> str:
    dirty = " with changes" if run.about.git.get("dirty") == "yes" else ""
    return f"{run.about.git.get('commit', _ABSENT)[:10]}{dirty}"


def _settings(run: Run) -> dict[str, str]:
    told = {f"parameter {name}": str(value) for name, value in run.about.parameters.items()}
    kept = run.meter.settings if run.meter is not None else {}
    return told | {name: text for name, text in kept.items() if not name.startswith("worth.")}


def _precisions(sides: Sequence[Side]) -> list[Difference]:
    """Layers whose weights or inputs are written otherwise, by what they became."""
    first, found = sides[0].run.layers, dict[tuple[str, ...], list[str]]()
    others = [side.run.layers for side in sides[1:]]
    pairs = [matched(first, layers, first, layers) for layers in others]
    for scope, layer in first.items():
        if not layer.shapes and layer.weights is None and not layer.parameters:
            continue
        there = [layers[pair[scope]] if scope in pair else None for layers, pair in zip(others, pairs, strict=True)]
        told = (_format(layer), *(_format(one) if one is not None else _ABSENT for one in there))
        if len(set(told) - {_ABSENT}) > 1:
            found.setdefault(told, []).append(scope)
    return [
        Difference("precision", f"{len(scopes)} layers ({scopes[0]}, …)" if len(scopes) > 1 else scopes[0], told)
        for told, scopes in found.items()
    ]


def _format(layer: Layer) -> str:
    weights = layer.weights.precision.name if layer.weights is not None else layer.weight_dtype or ""
    inputs = f", inputs {layer.activations.precision.name}" if layer.activations is not None else ""
    sparse = f", {100 * layer.density:.0f} % not zero" if layer.density < 1 else ""
    return f"{weights}{inputs}{sparse}" or _ABSENT
