"""Section 2.2: how much a counter of the forward alone leaves out of training."""

from __future__ import annotations

from typing import Any

from examples.paper import printed
from examples.paper.counting import counts, estimated
from examples.paper.models import MLP, NAMES, ResNet, Setting, Transformer, program
from examples.paper.tables import table

#: Small and large batches, since the optimizer's work does not grow with the batch.
SETTINGS: list[tuple[str, Setting]] = [
    ("mlp", MLP(1)), ("mlp", MLP(64)), ("mlp", MLP(256)),
    ("resnet", ResNet(1)), ("resnet", ResNet(32)), ("resnet", ResNet(1, 224, "imagenet")),
    ("transformer", Transformer(1, 16)), ("transformer", Transformer(2, 64, 50257, 256)),
    ("transformer", Transformer(8, 128)),
]  # fmt: skip


def measure() -> list[dict[str, Any]]:
    rows = []
    for name, setting in SETTINGS:
        run = estimated(lambda setting=setting: program(setting).step())
        rows.append({"network": name, "setting": str(setting), "flops": counts(run, ("flops",))["flops"]})
    return rows


def factors(flops: dict[str, int]) -> tuple[float, float]:
    """The step over the forward; backward and optimizer over the forward."""
    forward = flops["forward"]
    return sum(flops.values()) / forward, (flops["backward"] + flops["optimizer"]) / forward


def text(data: list[dict[str, Any]]) -> str:
    rows, within, between = [], 0, 0
    (low, high), (lower, upper) = printed.UNDER_REPORTED, printed.BEYOND_FORWARD
    for row in data:
        whole, beyond = factors(row["flops"])
        within += low <= whole <= high
        between += lower <= beyond <= upper
        total = sum(row["flops"].values())
        shares = [f"{100 * row['flops'][phase] / total:.1f} %" for phase in ("forward", "backward", "optimizer")]
        rows.append([NAMES[row["network"]], row["setting"], *shares, f"{whole:.2f}", f"{beyond:.2f}"])
    head = [
        "network",
        "setting",
        "forward",
        "backward",
        "optimizer",
        "step / forward",
        "(backward + optimizer) / forward",
    ]
    found = (
        f"Between the printed {low} and {high} lie {within} of {len(data)} steps; between {lower:.0f} and {upper:.0f}, "
        f"for backward\nand optimizer, {between}."
    )
    return "\n\n".join([INTRODUCTION, table(head, rows, "llrrrrr"), f"{found} {REASONS}"])


INTRODUCTION = """\
## Section 2.2: what a counter of the forward leaves out

Printed: it under-reports training by 2.8 to 3.4 times; backward and optimizer together are 2 to 3 times the
forward. `flops` of one step, on tensors without values ([`estimate`](guides/python.md#estimate-without-computing)):"""

REASONS = """\
A factor of 3 is the rule where every product has two gradients. It is below 3 where nothing asks for the gradient
of the input, most for a perceptron whose first layer is its largest; and it has no upper end where batches are
small, since optimizers cost the same for one sample as for a thousand."""
