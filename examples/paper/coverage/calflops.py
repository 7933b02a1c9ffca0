"""calflops: `calculate_flops(model, args)`. Its backward is a factor that the caller gives, 2 unless told."""

from __future__ import annotations

from typing import Any

from examples.paper.coverage.answers import Layer, Phases
from examples.paper.coverage.probes import Training
from torch import Tensor, nn

DISTRIBUTION = "calflops"
HOW = "`calculate_flops(model, args=[x])`, and once more with `include_backPropagation=True` less the first"


def _asked(model: Any, x: Any, **options: Any) -> tuple[float, float]:
    from calflops import calculate_flops

    flops, macs, _ = calculate_flops(model, args=[x], print_results=False, output_as_string=False, **options)
    return float(flops), float(macs)


def training(work: Training) -> Phases:
    flops, macs = _asked(work.model, work.x)
    both = _asked(work.model, work.x, include_backPropagation=True)
    return Phases({"forward": flops, "backward": both[0] - flops}, {"forward": macs, "backward": both[1] - macs})


def quantised(layer: nn.Module, x: Tensor) -> Layer:
    return Layer(flops=_asked(layer, x)[0])


def classical(estimator: Any, X: Any, y: Any) -> float | None:
    return _asked(estimator, X)[0]
