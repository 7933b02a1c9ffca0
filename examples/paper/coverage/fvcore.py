"""fvcore: `FlopCountAnalysis(model, x).total()`, whose flop is a multiply-accumulate."""

from __future__ import annotations

from typing import Any

from examples.paper.coverage.answers import Layer, Phases
from examples.paper.coverage.probes import Training
from torch import Tensor, nn

DISTRIBUTION = "fvcore"
HOW = "`FlopCountAnalysis(model, x).total()`; its flop is a multiply-accumulate"


def _macs(model: Any, x: Any) -> float:
    from fvcore.nn import FlopCountAnalysis

    return float(FlopCountAnalysis(model, x).unsupported_ops_warnings(False).total())


def training(work: Training) -> Phases:
    return Phases(macs={"forward": _macs(work.model, work.x)})


def quantised(layer: nn.Module, x: Tensor) -> Layer:
    return Layer(flops=2 * _macs(layer, x))


def classical(estimator: Any, X: Any, y: Any) -> float | None:
    return 2 * _macs(estimator, X)
