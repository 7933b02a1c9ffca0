"""Figure 2: FLOPs and BOPs of an iteration, three networks in four formats."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from examples.paper import printed
from examples.paper.counting import Counts, counts, measured, passes, seeded
from examples.paper.drawing import Axes, figure
from examples.paper.models import NAMES, program
from examples.paper.settings import CHOSEN
from examples.paper.tables import change, giga, table
from torch import nn

import bitwatt

FORMATS = ("FP32", "FP16", "INT8", "INT4")
#: As bitsandbytes keeps them: a float32 scale for each row of 8-bit weights, for each 64 of the 4-bit ones.
WRITTEN = {"INT8": "int8", "INT4": "int4:g64:fp32"}
SHOWN = ("bops:paper", "bops", "bops:executed", "bops:product")


def packed(model: nn.Module, bits: int) -> int:
    """Replace each nn.Linear by bitsandbytes' own layer, in place. Returns how many."""
    from bitsandbytes.nn import Linear4bit, Linear8bitLt

    found = [(parent, name, child) for parent in model.modules() for name, child in parent.named_children()]
    linears = [one for one in found if type(one[2]) is nn.Linear]
    for parent, name, old in linears:
        sizes = old.in_features, old.out_features
        new = Linear4bit(*sizes, quant_type="nf4") if bits == 4 else Linear8bitLt(*sizes, has_fp16_weights=False)
        new.load_state_dict(old.state_dict())
        setattr(parent, name, new.to("cpu"))
    return len(linears)


def by_bitsandbytes(name: str, bits: int | None) -> Counts:
    """Forward and the gradients of hidden values: packed weights have none of their own."""
    setting = CHOSEN[name]
    model = setting.model()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    if bits is not None:
        packed(model, bits)
    x, _ = setting.batch_on("cpu", torch.float32)
    if x.is_floating_point():
        x.requires_grad_()
        return counts(measured(lambda: model(x).sum().backward(), warm=0))
    model.get_submodule("embedding").requires_grad_(True)
    return counts(measured(lambda: model(x).sum().backward(), warm=0))


def formats_of(name: str) -> dict[str, Counts]:
    seeded()
    run = measured(program(CHOSEN[name]).step)
    found = {"FP32": counts(run), "FP16": counts(measured(program(CHOSEN[name], dtype=torch.float16).step))}
    # Tables that are looked up are not multiplied.
    looked_up = ("embedding", "positions") if name == "transformer" else ()
    for title, written in WRITTEN.items():
        found[title] = counts(bitwatt.what_if(run, written, except_layers=looked_up).run)
    return found


def measure() -> dict[str, Any]:
    result: dict[str, Any] = {"networks": {name: formats_of(name) for name in CHOSEN}, "bitsandbytes": {}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in CHOSEN:
            seeded()
            rows = {title: by_bitsandbytes(name, bits) for title, bits in (("FP32", None), ("INT8", 8), ("INT4", 4))}
            result["bitsandbytes"][name] = rows
    return result


def draw(data: dict[str, Any]) -> None:
    for part, model, unit in (("a", "flops", "GFLOP"), ("b", "bops:paper", "G·bits")):
        with figure(f"figure2{part}", f"Figure 2{part}: {unit} of forward and backward", columns=3) as axes:
            for place, (name, formats) in zip(axes, data["networks"].items(), strict=True):
                _bars(place, name, {title: passes(found, model) / 1e9 for title, found in formats.items()}, part)
            axes[0].set_ylabel(unit)


def _bars(axes: Axes, name: str, values: dict[str, float], part: str) -> None:
    axes.bar(list(values), list(values.values()), color=["#4053d3", "#00b25d", "#ddb310", "#b51d14"], width=0.7)
    row = printed.TABLE_2[name]
    marks = (row.flops, row.flops_int4) if part == "a" else (row.bops, row.bops_int4)
    axes.plot([0, 3], marks, "kD", markersize=5, label="printed, Table 2")
    if part == "b" and name in printed.FIGURE_2:
        axes.plot([0, 3], printed.FIGURE_2[name], "kx", markersize=6, label="printed, text")
    axes.set_title(NAMES[name])
    axes.legend(loc="lower left" if part == "a" else "upper right", fontsize=7)


def text(data: dict[str, Any]) -> str:
    rows = []
    for name, formats in data["networks"].items():
        for title, found in formats.items():
            amounts = [giga(passes(found, "flops")), giga(passes(found, "bops:paper"))]
            changes = [change(passes(found, model), passes(formats["FP32"], model)) for model in ("flops", *SHOWN)]
            rows.append([NAMES[name] if title == "FP32" else "", title, *amounts, *changes])
    head = ["network", "format", "GFLOP", "G·bits", "FLOPs", *(f"`{model}`" for model in SHOWN)]
    ours = table(head, rows, "llrrrrrrr")
    rows = []
    for name, formats in data["bitsandbytes"].items():
        base = formats["FP32"]
        for title, found in formats.items():
            changes = [change(passes(found, model), passes(base, model)) for model in ("flops", *SHOWN)]
            rows.append([NAMES[name] if title == "FP32" else "", title, giga(passes(found, "flops")), *changes])
    real = table(["network", "format", "GFLOP", "FLOPs", *(f"`{model}`" for model in SHOWN)], rows, "llrrrrrr")
    return "\n\n".join([INTRODUCTION, ours, REASONS, REAL, real])


INTRODUCTION = """\
## Figure 2: four formats

![FLOPs of forward and backward, three networks in four formats](images/paper/figure2a.svg)

![Bit-operations of forward and backward, three networks in four formats](images/paper/figure2b.svg)

FP32 and FP16 are measured training steps: all of the model in that dtype. INT8 and INT4 are the FP32 step priced
again with packed weights ([`what_if`](guides/what-if.md)), scales as bitsandbytes keeps them: one for each row of 8-bit
weights, one for each 64 of the 4-bit ones. G·bits are `bops:paper`; what follows is against FP32. The text prints
117 and 14.7 G·bits for ResNet-18, 360 and 45 for the transformer."""

REASONS = """\
- The paper's fall of 86 % comes out under its own convention, which multiplies FLOPs by the width of the
  **weights**. Under `bops`, by the wider operand, nothing falls: activations stay float32. That holds for what the
  processor multiplies too (`bops:executed`). The paper defines BOPs by the product of both widths in section 2.3
  and computes them linearly in section 4; the product (`bops:product`) falls by 44 to 58 %, because gradients of
  weights take no weight.
- Dequantising costs one multiplication for each weight and product. That is far below the printed 5.8 % (15 % for
  the perceptron): see Table 2 below."""

REAL = """\
bitsandbytes' own layers, really run: forward, and backward to the inputs, since packed weights have no gradient. It
packs `nn.Linear`, so nothing of the ResNet but its last layer. These numbers do not compare with those above. Other
libraries and emulated training are on [another page](paper-table.md)."""
