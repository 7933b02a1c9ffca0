"""bitwatt: `measure()` around one step, one layer or one fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from examples.paper.coverage.answers import Layer, Phases
from examples.paper.coverage.probes import Training
from torch import Tensor, nn

import bitwatt

DISTRIBUTION = "bitwatt"
HOW = "`measure()`; cost models `macs`, `flops` and, of the quantised layer, `bops:paper`"


def _run(call: Callable[[], Any]) -> bitwatt.Run:
    with bitwatt.measure("coverage", keep=False, meter=False) as session:
        call()
    assert session.run is not None
    return session.run


def _phases(run: bitwatt.Run, model: str) -> dict[str, float]:
    return {phase: float(amount) for phase, amount in bitwatt.totals(run, model).by("phase").items()}


def training(work: Training) -> Phases:
    work.step()
    run = _run(work.step)
    return Phases(_phases(run, "flops"), _phases(run, "macs"))


def quantised(layer: nn.Module, x: Tensor) -> Layer:
    run = _run(lambda: layer(x))
    dtypes = sorted({kept.weights.precision.name for kept in run.layers.values() if kept.weights is not None})
    return Layer(bitwatt.totals(run).total, bitwatt.totals(run, "bops:paper").total, dtypes)


def classical(estimator: Any, X: Any, y: Any) -> float | None:
    return bitwatt.totals(_run(lambda: estimator.fit(X, y))).total
