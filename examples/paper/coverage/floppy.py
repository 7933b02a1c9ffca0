"""floppy-tracker: `FLOPpyTracker.run(...)` around one step, or around a fit, which it reports as a backward."""

from __future__ import annotations

from typing import Any

from examples.paper.coverage.answers import Layer, Phases
from examples.paper.coverage.probes import Training
from torch import Tensor, nn

DISTRIBUTION = "floppy-tracker"
HOW = "`FLOPpyTracker().run(model, optimizer, criterion)` around one step, or around `fit`"


def training(work: Training) -> Phases:
    from floppy import FLOPpyTracker

    work.step()
    tracker = FLOPpyTracker(run_name="coverage")
    tracker.run(model=work.model, optimizer=work.optimizer, criterion=work.loss)
    work.step()
    tracker.batch()
    report = tracker.stop().report()
    flops = {"forward": report.model_forward_flop, "loss": report.loss_forward_flop}
    flops["backward"] = report.model_backward_flop + report.loss_backward_flop
    return Phases(flops=flops | {"optimizer": report.optimizer_flop})


def quantised(layer: nn.Module, x: Tensor) -> Layer:
    from floppy import FLOPpyTracker

    tracker = FLOPpyTracker(run_name="coverage")
    tracker.run(model=layer)
    layer(x)
    report = tracker.stop().report()
    return Layer(flops=report.model_forward_flop, bops=report.model_forward_bop)


def classical(estimator: Any, X: Any, y: Any) -> float | None:
    from floppy import FLOPpyTracker

    tracker = FLOPpyTracker(run_name="coverage")
    tracker.run(model=estimator)
    estimator.fit(X, y)
    flops = float(tracker.report().model_backward_flop)
    tracker.stop()
    return flops
