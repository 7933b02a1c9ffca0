"""Small programs for each facet, with true values that were counted by hand or read from an instrument."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from examples.paper.models import Transformer
from torch import Tensor, nn

ROOT = Path(__file__).resolve().parents[3]
FACETS = ("forward", "backward", "loss", "optimizer", "quantisation", "classical")
PHASES = FACETS[:4]
#: Fits of tests/data/sklearn_executed.jsonl, whose operations were read from executed instructions.
FITS = ("LogReg.lbfgs.C2", "RandomForestClassifier", "KMeans.lloyd")
ROWS, INNER, OUTER = 64, 256, 512


@dataclass
class Training:
    """One step, and the true FLOPs of its phases: of forward and backward those of matrix products."""

    model: nn.Module
    x: Tensor
    y: Tensor
    loss: nn.Module
    optimizer: torch.optim.Optimizer
    true: dict[str, int]

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.loss(self.model(self.x), self.y).backward()
        self.optimizer.step()

    def parts(self) -> list[tuple[str, Callable[[], Any]]]:
        """The phases, to be run in this order."""
        made: dict[str, Tensor] = {}

        def forward() -> None:
            made["out"] = self.model(self.x)

        def loss() -> None:
            made["loss"] = self.loss(made["out"], self.y)

        return [
            ("forward", forward),
            ("loss", loss),
            ("backward", lambda: made["loss"].backward()),
            ("optimizer", self.optimizer.step),
        ]


class Decorrelation(nn.Module):
    """Samples should not resemble each other: a loss with a matrix product."""

    def forward(self, out: Tensor, y: Tensor) -> Tensor:
        return (out @ out.T).square().sum()


def convolutions(batch: int = 16) -> Training:
    """Two convolutions and a linear layer; a loss with a product; SGD with momentum.

    Forward: 2·outputs·inputs·9 for each pixel. Backward: the same twice without the gradient of the images, and the two
    gradients of the loss's product. Loss: 2·B²·64, then a square and an addition for each of B². SGD: v = 0.9·v + g
    and p = p - 0.01·v, 4 operations for each parameter.
    """
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, 1, 1, bias=False), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1, bias=False), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 64, bias=False),
    )  # fmt: skip
    first, second, last = (
        2 * batch * 3 * 32 * 9 * 32**2,
        2 * batch * 32 * 64 * 9 * 16**2,
        2 * batch * 64 * 64,
    )
    product = 2 * batch * batch * 64
    true = {
        "forward": first + second + last,
        "backward": first + 2 * (second + last) + 2 * product,
        "loss": product + 2 * batch * batch,
        "optimizer": 4 * sum(p.numel() for p in model.parameters()),
    }
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return Training(model, torch.randn(batch, 3, 32, 32), torch.zeros(batch), Decorrelation(), optimizer, true)


def attention() -> Training:
    """Two layers of a language model with fused attention; cross-entropy; AdamW.

    Forward: 2 FLOPs for each multiply-accumulate of every product, scores on the mask included; backward twice that.
    Loss, for each of C logits: less the largest, exp, add, less the logarithm of the sum, so 4·C for a row. AdamW, for
    each parameter: decay 1, first moment 3, second moment 4, root, bias and ε 3, update 3, so 14.
    """
    setting = Transformer(2, 32, 1000, 256, 128, 2)
    model = setting.model()
    x, y = setting.batch_on("cpu", torch.float32)
    forward, backward = setting.matrix_flops()
    parameters = sum(p.numel() for p in model.parameters())
    true = {"forward": forward, "backward": backward, "loss": 4 * 64 * 1000, "optimizer": 14 * parameters}
    return Training(model, x, y, nn.CrossEntropyLoss(), torch.optim.AdamW(model.parameters()), true)


TRAINING: dict[str, Callable[[], Training]] = {"convolutions": convolutions, "attention": attention}


def packed() -> tuple[nn.Module, Tensor, int]:
    """A model of one 4-bit layer of bitsandbytes and its input, which needs a gradient as in fine-tuning: then the
    library expands the weight and calls a product that profilers can see. True bit-operations: 2·rows·inner·outer FLOPs
    times 4 bits."""
    from bitsandbytes.nn import Linear4bit

    layer = Linear4bit(INNER, OUTER, bias=False, quant_type="nf4")
    layer.load_state_dict(nn.Linear(INNER, OUTER, bias=False).state_dict())
    x = torch.randn(ROWS, INNER, requires_grad=True)
    return nn.Sequential(layer.to("cpu")), x, 2 * ROWS * INNER * OUTER * 4


def fits() -> dict[str, tuple[Any, Any, Any, int]]:
    """Name -> estimator, its data, and the floating-point operations that were executed."""
    sys.path.insert(0, str(ROOT / "benchmarks" / "accuracy"))
    from estimators import make

    found = {}
    for line in (ROOT / "tests" / "data" / "sklearn_executed.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["name"] in FITS and row["name"] not in found:
            found[row["name"]] = (*make(row), row["fit"]["f64"] + row["fit"]["f32"])
    return found
