"""Which settings the paper may have used: every natural one is tried, and how near each comes is told.

The search is over matrix work in closed form, so it runs nothing; the winners are then counted op by op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from examples.paper import printed
from examples.paper.counting import counts, estimated
from examples.paper.models import MLP, NAMES, VOCABULARIES, ResNet, Setting, Transformer, program
from examples.paper.tables import table

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
#: How a printed number may have come about, from the FLOPs of the forward and of the exact backward.
CONVENTIONS: dict[str, Callable[[int, int], float]] = {
    "forward + exact backward": lambda forward, backward: forward + backward,
    "forward x 3": lambda forward, _: 3 * forward,
    "forward alone": lambda forward, _: forward,
    "forward + exact backward, in MACs": lambda forward, backward: (forward + backward) / 2,
    "forward x 3, in MACs": lambda forward, _: 1.5 * forward,
    "forward alone, in MACs": lambda forward, _: forward / 2,
}


@dataclass(frozen=True)
class Try:
    setting: Setting
    convention: str
    gflops: float
    off: float  # relative to what is printed


def grid(name: str) -> Iterator[Setting]:
    if name == "mlp":
        for batch, width in product(BATCHES, (64, 128, 256, 512, 1024)):
            for hidden in ((width,), (width, width), (width, width // 2), (width,) * 3):
                yield MLP(batch, hidden)
    elif name == "resnet":
        for batch, pixels, stem in product(BATCHES, (32, 64, 96, 128, 224), ("cifar", "imagenet")):
            yield ResNet(batch, pixels, stem)
    else:
        lengths, inner = (32, 35, 64, 128, 256, 512), (256, 512, 1024, 2048)
        for batch, length, words, width in product(BATCHES, lengths, VOCABULARIES, inner):
            yield Transformer(batch, length, words, width)


def search(name: str, wanted: float, conventions: tuple[str, ...] = tuple(CONVENTIONS)) -> list[Try]:
    """Every setting under every convention, the nearest first; of equal ones the one that was tried first."""
    found = []
    for setting in grid(name):
        forward, backward = setting.matrix_flops()
        for convention in conventions:
            gflops = CONVENTIONS[convention](forward, backward) / 1e9
            found.append(Try(setting, convention, gflops, gflops / wanted - 1))
    return sorted(found, key=lambda one: abs(one.off))


def _shown(one: Try) -> dict[str, Any]:
    return {"setting": str(one.setting), "convention": one.convention, "gflops": one.gflops, "off": one.off}


def distinct(tries: list[Try], most: int) -> list[Try]:
    """The first of each amount: twice the batch in MACs is the same number again."""
    seen: dict[float, Try] = {}
    for one in tries:
        seen.setdefault(round(one.gflops, 9), one)
    return list(seen.values())[:most]


def phase_search() -> list[tuple[Setting, float]]:
    """Transformers by the larger of the two errors on section 4.1's forward and backward."""
    found = []
    for setting in grid("transformer"):
        forward, backward = setting.matrix_flops()
        errors = (
            abs(forward / 1e9 / printed.PHASES["forward"] - 1),
            abs(backward / 1e9 / printed.PHASES["backward"] - 1),
        )
        found.append((setting, max(errors)))
    return sorted(found, key=lambda pair: pair[1])


#: What the other parts of the page run.
CHOSEN: dict[str, Setting] = {
    "mlp": MLP(64, (512, 512)),
    "resnet": ResNet(1, 32, "cifar"),
    "transformer": Transformer(2, 64, 50257, 256),
}


def measure() -> dict[str, Any]:
    result: dict[str, Any] = {"networks": {}}
    for name, row in printed.TABLE_2.items():
        low, high = printed.interval(row)
        tries = search(name, (low + high) / 2)
        result["networks"][name] = {
            "printed": row.flops,
            "interval": [low, high],
            "tried": len(tries),
            "settings": sum(1 for _ in grid(name)),
            "in_interval": sum(low <= one.gflops <= high for one in tries),
            "within_1_percent": sum(abs(one.off) < 0.01 for one in tries),
            "nearest": [_shown(one) for one in distinct(tries, 4)],
            "by_convention": [
                _shown(next(one for one in tries if one.convention == convention)) for convention in CONVENTIONS
            ],
            "hints": [_shown(one) for one in tries if one.setting == CHOSEN[name]],
        }
    nearest = phase_search()[:3]
    result["phases"] = []
    for setting, off in nearest:
        run = estimated(lambda setting=setting: program(setting).step())
        found = counts(run, ("flops", "flops:paper"))
        forward, backward = setting.matrix_flops()
        result["phases"].append(
            {"setting": str(setting), "off": off, "matrix": {"forward": forward, "backward": backward}, **found}
        )
    logits = printed.PHASES["forward"] / (2 * 256)  # G logits at most: were the forward nothing but the head
    result["loss_per_logit"] = printed.PHASES["loss"] / logits
    return result


def text(data: dict[str, Any]) -> str:
    parts = [INTRODUCTION]
    rows, others = [], []
    for name, found in data["networks"].items():
        for place, one in enumerate(found["nearest"]):
            rows.append([
                NAMES[name] if not place else "", f"{found['printed']:.2f}" if not place else "", one["setting"],
                one["convention"], f"{one['gflops']:.3f}", f"{100 * one['off']:+.2f} %",
            ])  # fmt: skip
        for one in found["hints"]:
            if "MACs" not in one["convention"]:
                others.append([
                    NAMES[name], one["setting"], one["convention"],
                    f"{one['gflops']:.3f}", f"{100 * one['off']:+.1f} %",
                ])  # fmt: skip
    parts.append(table(["network", "printed", "nearest settings", "counted as", "GFLOPs", "off"], rows, "lrllrr"))
    lines = []
    for name, found in data["networks"].items():
        low, high = found["interval"]
        lines.append(
            f"- {NAMES[name]}: {found['settings']:,} settings, {found['tried']:,} with the ways of counting. "
            f"Rounding to what is printed ({low:.4f} to {high:.4f} GFLOPs): {found['in_interval']}; "
            f"within 1 %: {found['within_1_percent']}."
        )
    parts += [
        "\n".join(lines),
        MANY,
        OURS,
        table(["network", "setting", "counted as", "GFLOPs", "off"], others, "lllrr"),
    ]
    return "\n\n".join(parts)


INTRODUCTION = """\
## Which settings

The paper does not say which batch, vocabulary, sequence length, hidden widths or image size it used, nor whether
the backward is measured or taken as twice the forward. So all of these were tried: batches 1 to 256; MLPs with one
to three hidden layers of 64 to 1,024; ResNet-18 with both stems and 32 to 224 pixels; 32 to 512 tokens with six
vocabularies and four feed-forward widths. Work is that of matrix products, in closed form. `off` is against the
middle of what rounds to the printed FLOPs and to the printed G·bits over 32."""

MANY = """\
Where many settings fit, the nearest one is no evidence that it was used: it says only that the printed number can
come about so."""

OURS = """\
The rest of this page runs these: the perceptron and the ResNet in plain settings that train on the data set's own
images (the nearest ResNet, ImageNet's at 224 pixels, would be a forward alone), and the transformer that is nearest
to Table 2 and to section 4.1."""
