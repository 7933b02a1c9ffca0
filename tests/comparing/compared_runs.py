"""Runs to compare: a small model of three layers, as repetitions with times and joules of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bitwatt.about import About
from bitwatt.ledger import Row
from bitwatt.readings import Device, Energy, Metered, PhaseEnergy
from bitwatt.records import Layer, Run
from factories import add_op, make_run, mm_op


def network(width: int = 16, prefix: str = "", dtype: str = "float32", **fields: Any) -> Run:
    """Two matrix products of 8 x 16 by 16 x width and 8 x width by width x 4 in forward, and a sum in between."""
    first, second, between = (f"{prefix}{name}" for name in ("fc1", "fc2", "act"))
    rows = [
        Row("forward", first, mm_op(8, 16, width, dtype), 1),
        Row("forward", between, add_op(8, width, dtype=dtype), 1),
        Row("forward", second, mm_op(8, width, 4, dtype), 1),
        Row("backward", second, mm_op(width, 8, 4, dtype), 1),
    ]
    layers = {
        first: Layer("Linear", dtype, 16 * width, ((width, 16),), 64 * width),
        between: Layer("Add"),
        second: Layer("Linear", dtype, 4 * width, ((4, width),), 16 * width),
    }
    defaults: dict[str, Any] = {"name": "network", "layers": layers, "phase_seconds": {"forward": 1.0, "backward": 0.5}}
    return make_run(rows, **{**defaults, **fields})


def metered(joules: float | None, how: str = "measured", kind: str = "gpu", seconds: float = 1.5) -> Metered:
    device = Device(f"{kind}:0", kind, "a device")
    phases = {"forward": PhaseEnergy({device.id: (joules or 0.0) / 2}, "measured", 1.0)}
    note = "" if joules is not None else "vanished"
    return Metered(seconds, (Energy(device, joules, how, "a sensor", seconds, note=note),), phases)


def quality(**values: float) -> About:
    return About(metrics={name: {"last": v, "min": v, "max": v, "count": 1} for name, v in values.items()})


def repeated(run: Run, seconds: Sequence[float], joules: Sequence[float] = ()) -> list[Run]:
    """The same run several times, as it varies."""
    many = []
    for i, spent in enumerate(seconds):
        meter = metered(joules[i]) if joules else run.meter
        many.append(replace(run, id=f"{run.id}-{i}", seconds=spent, meter=meter))
    return many
