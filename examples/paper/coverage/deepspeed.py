"""DeepSpeed: `get_model_profile(model, args)`, of the forward."""

from __future__ import annotations

from typing import Any

from examples.paper.coverage.answers import Layer, Phases
from examples.paper.coverage.probes import Training
from torch import Tensor, nn

DISTRIBUTION = "deepspeed"
HOW = "`get_model_profile(model, args=[x])`"


def _asked(model: Any, x: Any) -> tuple[float, float]:
    from deepspeed.profiling.flops_profiler import get_model_profile

    flops, macs, _ = get_model_profile(model, args=[x], print_profile=False, as_string=False)
    return float(flops), float(macs)


def training(work: Training) -> Phases:
    flops, macs = _asked(work.model, work.x)
    return Phases({"forward": flops}, {"forward": macs})


def quantised(layer: nn.Module, x: Tensor) -> Layer:
    return Layer(flops=_asked(layer, x)[0])


def classical(estimator: Any, X: Any, y: Any) -> float | None:
    return _asked(estimator, X)[0]
