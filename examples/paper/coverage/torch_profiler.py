"""torch.profiler: `profile(with_flops=True, record_shapes=True)`, one for each phase; its trace names dtypes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from examples.paper.coverage.answers import Layer, Phases
from examples.paper.coverage.probes import Training
from torch import Tensor, nn

DISTRIBUTION = "torch"
HOW = "`profile(with_flops=True, record_shapes=True)`, one for each phase; dtypes from the exported trace"


def _profiled(call: Callable[[], Any]) -> Any:
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, with_flops=True, record_shapes=True) as profile:
        call()
    return profile


def _flops(profile: Any) -> float:
    return float(sum(event.flops or 0 for event in profile.key_averages()))


def training(work: Training) -> Phases:
    work.step()
    work.optimizer.zero_grad()
    return Phases(flops={phase: _flops(_profiled(run)) for phase, run in work.parts()})


def quantised(layer: nn.Module, x: Tensor) -> Layer:
    profile = _profiled(lambda: layer(x))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
    dtypes = {one for event in events for one in event.get("args", {}).get("Input type", [])}
    return Layer(flops=_flops(profile), dtypes=sorted(dtypes - {"", "Scalar", "ScalarList"}))


def classical(estimator: Any, X: Any, y: Any) -> float | None:
    return _flops(_profiled(lambda: estimator.fit(X, y)))
