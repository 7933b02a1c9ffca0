"""ptflops: `get_model_complexity_info(model, ...)`, which returns multiply-accumulates of the forward."""

from __future__ import annotations

import inspect
from typing import Any

from examples.paper.coverage.answers import Layer, Phases
from examples.paper.coverage.probes import Training
from torch import Tensor, nn

DISTRIBUTION = "ptflops"
HOW = "`get_model_complexity_info(model, shape, backend='pytorch')`"


def _macs(model: Any, x: Any) -> float:
    from ptflops import get_model_complexity_info

    # By keyword: with a positional tensor the backend divides some of its counts by the batch and some not.
    name = next(iter(inspect.signature(model.forward).parameters))
    macs, _ = get_model_complexity_info(
        model, tuple(x.shape[1:]), as_strings=False, print_per_layer_stat=False, backend="pytorch",
        input_constructor=lambda _: {name: x},
    )  # fmt: skip
    if macs is None:
        raise RuntimeError("returned None")
    return float(macs)


def training(work: Training) -> Phases:
    return Phases(macs={"forward": _macs(work.model, work.x)})


def quantised(layer: nn.Module, x: Tensor) -> Layer:
    return Layer(flops=2 * _macs(layer, x))


def classical(estimator: Any, X: Any, y: Any) -> float | None:
    return 2 * _macs(estimator, X)
