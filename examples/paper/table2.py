"""Table 2: FP32 and INT4 beside what is printed, and whether its columns agree with each other."""

from __future__ import annotations

from typing import Any

import torch
from examples.paper import printed
from examples.paper.counting import passes
from examples.paper.models import NAMES
from examples.paper.settings import CHOSEN
from examples.paper.tables import change, giga, table
from torch import nn


def fall(before: float, after: float) -> float:
    """In percent."""
    return 100 * (1 - after / before)


def weights(name: str) -> int:
    """How many weights go into products: all but biases, norms and what is looked up."""
    with torch.device("meta"):
        model = CHOSEN[name].model()
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear | nn.Conv2d)]
    return sum(layer.weight.numel() for layer in layers)


def text(figure2: dict[str, Any]) -> str:
    rows, more = [], []
    for name, formats in figure2["networks"].items():
        row = printed.TABLE_2[name]
        first, last = formats["FP32"], formats["INT4"]
        flops = [passes(found, "flops") for found in (first, last)]
        bops = [passes(found, "bops:paper") for found in (first, last)]
        ours = [giga(flops[0]), giga(flops[1]), giga(bops[0]), giga(bops[1]), f"{fall(*bops):.1f} %"]
        said = [f"{row.flops:.2f}", f"{row.flops_int4:.2f}", f"{row.bops}", f"{row.bops_int4}", f"{row.reduction} %"]
        rows += [[NAMES[name], "printed", *said], ["", "counted", *ours]]
        more.append([
            NAMES[name], f"{32 * row.flops:.1f}", str(row.bops), f"{4 * row.flops_int4:.2f}", str(row.bops_int4),
            f"{fall(row.bops, row.bops_int4):.1f} %", f"+{100 * (row.flops_int4 / row.flops - 1):.1f} %",
            f"{1e9 * (row.flops_int4 - row.flops) / weights(name):.0f}",
            change(flops[1], flops[0]), f"{(flops[1] - flops[0]) / weights(name):.1f}",
        ])  # fmt: skip
    head = ["network", "", "GFLOPs FP32", "INT4", "G·bits FP32", "INT4", "reduction"]
    agrees = [
        "network", "32 x FP32 GFLOPs", "G·bits", "4 x INT4 GFLOPs", "G·bits", "reduction", "FLOPs added, printed",
        "for each weight", "counted", "for each weight",
    ]  # fmt: skip
    return "\n\n".join([INTRODUCTION, table(head, rows, "llrrrrr"), AGREES, table(agrees, more, "lrrrrrrrrr"), REASONS])


INTRODUCTION = """\
## Table 2: FP32 and INT4

The settings are those [above](#which-settings); forward and backward, `flops` and `bops:paper`."""

AGREES = "Do the printed columns agree with each other, and with what dequantising takes?"

REASONS = """\
- **The perceptron's 0.26 is three times a forward** (0.257 for this one). Nothing asks for the gradient of the
  images, and the first layer is the largest, so a step really takes 0.205.
- **No training step of a ResNet-18 that was tried takes 3.64.** What comes nearest, by 0.4 %, is ImageNet's
  ResNet-18 at 224 pixels: its forward alone. For CIFAR's, 3.33 at batch 1 is the nearest with forward and backward.
- **The printed G·bits are the printed FLOPs times 32 and times 4**, to the digit. So everything was priced at the
  width of the weights, also activations, residual sums and gradients, which stay wider. Counted, those keep 32
  bits.
- **The text contradicts the table.** 14.7 and 45 G·bits in the text are 117 / 8 (14.6) and 360 / 8: INT4 without
  the added FLOPs. The table's 15.4 and 47.4 have them.
- **The added FLOPs are larger than dequantising.** A weight is expanded by one multiplication in the forward and
  one for the gradient of the input, while its products take 6 FLOPs for each row: a share of 1 / (3 · rows), which
  shrinks with the batch. The printed 19 to 60 for each weight are neither a fixed number for each weight nor one
  for each product; 5.8 % of both a convolutional network and a transformer looks like a factor, not like a count."""
