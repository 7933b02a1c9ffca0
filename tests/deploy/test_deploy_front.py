"""The Pareto set of models without labels."""

from __future__ import annotations

from dataclasses import replace

import studies

from bitwatt.deploy.telling.findings import found


def test_without_labels_those_that_flip_fewer_of_them_make_the_front() -> None:
    """The INT8 model is quickest and flips 40; the one in floats flips none; the native one is beaten by that."""
    flips = {"sklearn-fp64": None, "onnx-fp32": 0, "onnx-int8": 40}
    rows = [replace(one, quality=studies.quality(None, flips[one.name], None)) for one in studies.usual()]
    told = found(studies.study(*rows), studies.calls(studies.MICROSECONDS)).summary()["pareto"]
    assert list(told["axes"]) == ["flips", "latency_ms_per_sample", "memory_mb"]
    assert "onnx-int8" in told["front"]
    assert "onnx-fp32" in told["front"]


def test_an_axis_that_nobody_measured_leaves_nobody_out() -> None:
    rows = [replace(one, quality=None) for one in studies.usual()]
    told = found(studies.study(*rows), studies.calls(studies.MICROSECONDS)).summary()["pareto"]
    assert "accuracy" not in told["axes"]
    assert told["front"]
    assert not told["left_out"]
