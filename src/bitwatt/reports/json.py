"""A run as JSON for programs: exact integers, nothing left out, null where a number is not known."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from bitwatt.reports.model import Line, View

FORMAT, VERSION = "bitwatt.report", 1


def render(view: View, *, by: str | None = None, width: int | None = None, color: bool = False) -> str:
    """`by` leaves only that table in."""
    parts = {
        "phase": ("phases", [_line(view, line, "phase") for line in view.phases]),
        "scope": ("scopes", [_line(view, line, "scope") | _layer(view, line.name) for line in view.scopes]),
        "op": ("ops", [_line(view, line, "op") | {"family": line.about or None} for line in view.ops]),
        "precision": ("precisions", [{"precision": name, view.model.name: n} for name, n in view.precisions]),
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
            "status": run.status,
            "notes": list(run.notes),
        },
        "cost_model": view.model.name,
        "cost_models": {
            name: {"unit": priced.model.unit, "formula": priced.model.about, "source": priced.model.source}
            for name, priced in view.priced.items()
        },
        "coverage": asdict(view.coverage),
        "missing": [asdict(gap) for gap in view.missing],
        "totals": {key: value for key, value in _line(view, view.total, "name").items() if key != "name"},
        **{name: lines for key, (name, lines) in parts.items() if by in (None, key)},
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
        **({"by_phase": dict(line.by_phase)} if kind in ("scope", "op") else {"seconds": line.seconds}),
    }


def _layer(view: View, scope: str) -> dict[str, Any]:
    layer = view.run.layers.get(scope)
    return {
        "class": layer.kind if layer else None,
        "weight_dtype": layer.weight_dtype if layer else None,
        "parameters": layer.parameters if layer else None,
    }
