"""thop: `profile(model, inputs)`, which returns multiply-accumulates of the forward."""

from __future__ import annotations

from typing import Any

from examples.paper.coverage.answers import Layer, Phases
from examples.paper.coverage.probes import Training
from torch import Tensor, nn

DISTRIBUTION = "thop"
HOW = "`profile(model, inputs)`"


def _macs(model: Any, *inputs: Any) -> float:
    from thop import profile

    macs, _ = profile(model, inputs=inputs, verbose=False)
    return float(macs)


def training(work: Training) -> Phases:
    return Phases(macs={"forward": _macs(work.model, work.x)})


def quantised(layer: nn.Module, x: Tensor) -> Layer:
    return Layer(flops=2 * _macs(layer, x))


def classical(estimator: Any, X: Any, y: Any) -> float | None:
    return 2 * _macs(estimator, X)
