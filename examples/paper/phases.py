"""Section 4.1: the phases of the transformer's step in FP16, and the optimizer's share of bit-operations."""

from __future__ import annotations

from typing import Any

import torch
from examples.paper import printed
from examples.paper.counting import counts, measured, seeded
from examples.paper.settings import CHOSEN, program
from examples.paper.tables import giga, table

ORDER = ("forward", "backward", "loss", "optimizer")
MODELS = ("flops", "flops:paper", "bops:paper")
WAYS: dict[str, dict[str, Any]] = {
    "FP32": {},
    "mixed: FP32 weights, FP16 autocast": {"autocast": torch.float16},
    "FP16 throughout": {"dtype": torch.float16},
}


def measure() -> dict[str, Any]:
    found = {}
    for way, options in WAYS.items():
        seeded()
        found[way] = counts(measured(program(CHOSEN["transformer"], **options).step), MODELS)
    return found


def share(found: dict[str, dict[str, int]], model: str) -> float:
    """The optimizer's part of the whole step, in percent."""
    return 100 * found[model]["optimizer"] / sum(found[model].values())


def draw(data: dict[str, Any]) -> None:
    from examples.paper.drawing import figure

    half = data["FP16 throughout"]["flops"]
    with figure("phases", "Phases of the transformer's step, FP16", size=(5.5, 3)) as axes:
        places = range(len(ORDER))
        axes.bar(
            [p - 0.2 for p in places], [half[phase] / 1e9 for phase in ORDER], 0.4, label="counted", color="#4053d3"
        )
        said = [printed.PHASES[phase] for phase in ORDER]
        axes.bar([p + 0.2 for p in places], said, 0.4, label="printed", color="#bbbbbb")
        axes.set_xticks(list(places), ORDER)
        axes.set_yscale("log")
        axes.set_ylabel("GFLOP")
        axes.legend()


def text(data: dict[str, Any], settings: dict[str, Any]) -> str:
    half = data["FP16 throughout"]
    rows = []
    for phase in ORDER:
        ours = [giga(half[model][phase]) for model in ("flops", "flops:paper")]
        ratio = half["flops"][phase] / 1e9 / printed.PHASES[phase]
        rows.append([phase, f"{printed.PHASES[phase]:.2f}", *ours, f"{ratio:.2f}"])
    ours = table(["phase", "printed", "`flops`", "`flops:paper`", "counted over printed"], rows, "lrrrr")
    shares = [
        [way, *(f"{share(found, model):.2f} %" for model in ("flops", "bops:paper"))] for way, found in data.items()
    ]
    table_of_shares = table(["way", "optimizer's share of `flops`", "of `bops:paper`"], shares, "lrr")
    nearest = [
        [one["setting"], giga(one["matrix"]["forward"]), giga(one["matrix"]["backward"]), f"{100 * one['off']:.1f} %"]
        for one in settings["phases"]
    ]
    other = table(["nearest settings", "forward", "backward", "larger error"], nearest, "lrrr")
    loss = LOSS.format(
        per_logit=settings["loss_per_logit"],
        thrice=3 * half["flops"]["loss"] / 1e9,
        parameters=1e3 * printed.PHASES["optimizer"] / 14,
    )
    return "\n\n".join([INTRODUCTION, ours, other, loss, SHARES, table_of_shares, GROWS])


INTRODUCTION = """\
## Section 4.1: phases

![Phases of the transformer's step](images/paper/phases.svg)

The transformer in FP16, GFLOPs:"""

LOSS = """\
- **The forward fits, and the backward nearly**: it is printed as 1.97 times the forward. Every product of this
  network has two gradients, so the exact factor is 2.
- **The loss is three times too large.** The printed 0.08 GFLOPs are at least {per_logit:.1f} for each logit, were
  the forward nothing but the last layer. The paper's own rules give a cross-entropy about 4: 3 for each element of
  the softmax and 1 for the rest. Three times that, as if its backward were counted with it, would be {thrice:.3f}.
- **AdamW** is counted as 14 operations for each of 27.4 M parameters (decay 1, two moments 7, root, bias and ε 3,
  update 3). The paper's rule of one operation for each element and call gives 8, and with it nearly what is
  printed; at 14, {parameters:.0f} M parameters would give it, as many as this model has if input and output share
  their embedding."""

SHARES = "Does the optimizer's share of bit-operations grow under mixed precision?"

GROWS = """\
It does where weights stay FP32 and products run in FP16: the optimizer keeps its width while the rest halves. Where
all of the model is FP16 everything halves, and the share stays. The share of FLOPs never changes: it is the
bit-operations that show it. (The columns differ in FP32, too, since AdamW is 14 operations by `flops` and 8 by the
paper's rule.)"""
