"""A run as JSON for programs: exact integers, nothing left out, null where a number is not known."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from bitwatt.ranks.silence import state_of
from bitwatt.reports.blocks import blocks
from bitwatt.reports.model import BOTH, Line, View

FORMAT, VERSION = "bitwatt.report", 1


def render(view: View, *, by: str | None = None, width: int | None = None, color: bool = False) -> str:
    """`by` leaves only that table in."""
    parts = {
        "phase": ("phases", [_line(view, line, "phase") for line in view.phases]),
        "scope": ("scopes", [_line(view, line, "scope") | _layer(view, line.name) for line in view.scopes]),
        "op": ("ops", [_line(view, line, "op") | {"family": line.about or None} for line in view.ops]),
        "precision": ("precisions", [{"precision": name, view.model.name: n} for name, n in view.precisions]),
        "weights": ("weights", [asdict(group) for group in view.weights]),
    }
    run = view.run
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "run": {
            "id": run.id,
            "name": run.name,
            "started": run.started,
            "seconds": run.seconds,
            "command": run.command,
            "status": state_of(run),
            "notes": list(run.notes),
        },
        "cost_model": view.model.name,
        "cost_models": {
            name: {"unit": priced.model.unit, "formula": priced.model.about, "source": priced.model.source}
            for name, priced in view.priced.items()
        },
        "coverage": asdict(view.coverage),
        "replay": {**asdict(run.replay), "exact": run.replay.exact} if run.replay is not None else None,
        "missing": [asdict(gap) for gap in view.missing],
        "totals": {key: value for key, value in _line(view, view.total, "name").items() if key != "name"},
        **({"effective_and_executed": _both(view)} if view.is_quantised else {}),
        **{name: lines for key, (name, lines) in parts.items() if by in (None, key)},
        "energy": view.energy.document() if view.energy is not None else None,
        **{block.key: block.document for block in blocks(view)},
        "fingerprint": asdict(view.fingerprint),
        "machine": dict(run.machine.facts),
    }
    return json.dumps(document, indent=2) + "\n"


def _line(view: View, line: Line, kind: str) -> dict[str, Any]:
    return {
        kind: line.name,
        "calls": line.calls,
        **line.amounts,
        "bytes_read": line.bytes_read,
        "bytes_written": line.bytes_written,
        "intensity_flop_per_byte": line.intensity,
        "share": view.share(line),
        "text_steps": line.text_steps,
        **({"by_phase": dict(line.by_phase)} if kind in ("scope", "op") else _times(line)),
    }


def _times(line: Line) -> dict[str, float | None]:
    """The host's, and that of a GPU where one was used."""
    return {"seconds": line.seconds} | (
        {"device_seconds": line.device_seconds} if line.device_seconds is not None else {}
    )


def _both(view: View) -> dict[str, Any]:
    """Model -> phase -> amount."""
    return {model: {line.name: line.amounts[model] for line in view.phases_by(model)} for model in BOTH}


def _layer(view: View, scope: str) -> dict[str, Any]:
    layer = view.run.layers.get(scope)
    return {
        "class": layer.kind if layer else None,
        "weight_dtype": layer.weight_dtype if layer else None,
        "parameters": layer.parameters if layer else None,
        "weight_bytes": layer.weight_bytes if layer else None,
        "weights": asdict(layer.weights) if layer and layer.weights else None,
        "activations": asdict(layer.activations) if layer and layer.activations else None,
        "density": layer.density if layer else None,
        "unknown_precision": layer.unknown or None if layer else None,
    }
