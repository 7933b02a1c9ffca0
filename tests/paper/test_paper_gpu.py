"""The GPU's part, on a CPU and without energy: its points, its layers, and the page that is made of it."""

from __future__ import annotations

import time

import pytest
import torch
from examples.paper import energy, gpu
from examples.paper.narrow import LAYERS, narrowed
from torch import nn


@pytest.mark.parametrize("precision", LAYERS)
def test_narrow_layers_compute_nearly_the_same(precision: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)).to(torch.bfloat16).requires_grad_(False)
    x = torch.randn(32, 256, dtype=torch.bfloat16)
    wanted = model(x)
    assert narrowed(model, precision) == 1  # ten outputs fit no kernel
    off = (model(x) - wanted).norm() / wanted.norm()
    assert 0 < off < (0.02 if precision == "int8" else 0.1)


def test_points_have_counts_by_every_model() -> None:
    found = list(gpu.points({"mlp": gpu.MLP(32, (128, 128))}, 0.0, gpu.counter("cpu"), "cpu"))
    assert [(one["mode"], one["precision"]) for one in found] == [
        *(("training", precision) for precision in gpu.TRAINING),
        *(("inference", precision) for precision in gpu.INFERENCE),
    ]
    counts = {(one["mode"], one["precision"]): one["counts"] for one in found}
    plain, narrow = counts["inference", "float32"], counts["inference", "tf32"]
    assert plain["bops:executed"] == plain["tf32"]
    # 19 instead of 32 bits for the products: 2·32·(784·128 + 128·128 + 128·10) FLOPs
    assert plain["tf32"] - narrow["tf32"] == 13 * 2 * 32 * (784 * 128 + 128 * 128 + 128 * 10)
    half = counts["training", "bfloat16"]
    assert half["flops"] == counts["training", "float32"]["flops"]
    assert half["bops"] < counts["training", "float32"]["bops"]


def test_what_does_not_run_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "TRAINING", ())
    monkeypatch.setattr(gpu, "INFERENCE", ("fp8",))
    (only,) = gpu.points({"mlp": gpu.MLP(32, (10,))}, 0.0, gpu.counter("cpu"), "cpu")
    assert only["skipped"] == "no layer fits the kernel"


def test_both_devices_are_compared_by_fingerprint() -> None:
    found = gpu.compared({"mlp": gpu.MLP(4, (8,))}, ("cpu",))
    assert len(found["mlp"]["cpu"]["digest"]) == 16
    assert set(found["mlp"]["cpu"]["flops"]) >= {"forward", "backward", "optimizer"}


def test_joules_are_the_difference_of_two_readings() -> None:
    readings = iter((10.0, 25.0))
    found = gpu.point(lambda: time.sleep(0.001), 0.01, lambda: next(readings), "cpu")
    assert found["joules"] == 15.0
    assert found["seconds"] >= 0.01


def test_the_page_is_made_of_the_file() -> None:
    points = list(gpu.points({"mlp": gpu.MLP(32, (16,))}, 0.0, gpu.counter("cpu"), "cpu"))
    for place, one in enumerate(points):
        if "skipped" not in one:
            one |= {"joules": 1.0 + place, "seconds": 1.0, "steps": 10}
    side = gpu.compared({"mlp": gpu.MLP(4, (8,))}, ("cpu",))["mlp"]["cpu"]
    more = {unit: {phase: 2 * n for phase, n in side[unit].items()} for unit in ("flops", "bops")}
    data = {
        "gpu": "a card", "torch": "2.11", "date": "2026-11-17", "idle_w": 100.0, "points": points,
        "devices": {"mlp": {"cpu": side, "cuda": side}, "resnet": {"cpu": side, "cuda": {**more, "digest": "other"}}},
    }  # fmt: skip
    text = energy.text(data)
    assert "a card, torch 2.11, 2026-11-17; idle 100 W" in text
    assert "not yet measured" not in text
    ran = sum("skipped" not in one for one in points)
    assert text.count("| MLP |") == ran
    assert energy.apart(data) == [0, 0, 1, 1]
    compared = energy.devices(data)
    assert "| MLP | +0.000 % | +0.000 % | equal |" in compared
    assert f"| ResNet-18 | +100.000 % | +100.000 % | {side['digest']} and other |" in compared
