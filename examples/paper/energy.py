"""Section 5 and the thesis: joules by abstract work on an H200, from what was measured there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from examples.paper import gpu
from examples.paper.drawing import figure
from examples.paper.models import NAMES
from examples.paper.tables import table
from examples.paper.thesis import judgement, verdict

#: Nine points of benchmarks/energy.py, measured for the page about energy.
EARLIER = Path(__file__).resolve().parents[2] / "docs" / "tables" / "energy-h200.json"
_TITLES = {"resnet": "ResNet-18", "transformer": "Transformer", "gpt2": "GPT-2 small"}
_PREDICTORS = {name: f"`{name}`" for name in gpu.MODELS} | {"tf32": "`bops:executed`, TF32 as 19 bits"}


def earlier() -> list[dict[str, Any]]:
    """By step, as thesis.py wants them."""
    found = []
    for row in json.loads(EARLIER.read_text()):
        # Whole numbers, as they were counted: fractions would break ties between precisions.
        counts = {"flops": round(1e12 * row["tflop"] / row["steps"]), "bops": round(1e12 * row["tbop"] / row["steps"])}
        each = {"joules": row["joules"] / row["steps"], "seconds": row["seconds"] / row["steps"]}
        about = {"network": row["network"], "precision": row["precision"], "kind": row["network"]}
        found.append(about | {"counts": counts, **each})
    return found


def later(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The points of gpu.py that ran and have an energy, by step."""
    found = []
    for row in data["points"]:
        if row.get("joules"):
            each = {"joules": row["joules"] / row["steps"], "seconds": row["seconds"] / row["steps"]}
            about = {key: row[key] for key in ("network", "precision", "mode", "counts")}
            found.append(about | {"kind": f"{row['network']} {row['mode']}", **each})
    return found


def draw(gpu_data: dict[str, Any] | None) -> None:
    points = later(gpu_data) if gpu_data else earlier()
    with figure("thesis", "Joules of a step by FLOPs and by bit-operations", columns=2, size=(7.5, 3.4)) as axes:
        kinds = sorted({point["kind"] for point in points})
        for place, predictor, label in zip(axes, ("flops", "bops"), ("FLOPs", "BOPs"), strict=True):
            for kind in kinds:
                mine = [point for point in points if point["kind"] == kind]
                x, y = [point["counts"][predictor] for point in mine], [point["joules"] for point in mine]
                place.plot(x, y, "o", label=kind, alpha=0.8)
                for point in mine:
                    place.annotate(point["precision"], (point["counts"][predictor], point["joules"]), fontsize=5)
            place.set(xscale="log", yscale="log", xlabel=f"{label} of a step", ylabel="J of a step")
            place.xaxis.set_minor_formatter("")  # less than a decade would be labelled at every tick
        axes[0].legend(fontsize=7)


def _ratios(points: list[dict[str, Any]], titles: dict[str, str]) -> str:
    rows = []
    for point in points:
        counts = point["counts"]
        rows.append([
            titles[point["network"]], point.get("mode", "training"), point["precision"],
            f"{1e3 * point['seconds']:.2f} ms", f"{point['joules']:.3g} J",
            f"{1e12 * point['joules'] / counts['flops']:.2f}", f"{1e12 * point['joules'] / counts['bops']:.3f}",
        ])  # fmt: skip
    return table(["network", "", "precision", "step", "energy", "J/TFLOP", "J/TBOP"], rows, "lllrrrr")


def text(gpu_data: dict[str, Any] | None) -> str:
    first = earlier()
    parts = [SECTION_5, _ratios(first, _TITLES), SPREAD.format(**_spread(first))]
    if gpu_data:
        points = later(gpu_data)
        skipped = [row for row in gpu_data["points"] if "skipped" in row]
        about = f"{gpu_data['gpu']}, torch {gpu_data['torch']}, {gpu_data['date']}; idle {gpu_data['idle_w']:.0f} W"
        parts += [LATER.format(about=about), _ratios(points, NAMES), SPREAD.format(**_spread(points))]
        parts += [f"- {row['network']} in {row['precision']}: {row['skipped']}" for row in skipped]
        parts += [THESIS, judgement(points, _PREDICTORS), HOW, VERDICT.format(verdict(points))]
        parts += [EARLIER_TOO, judgement(first, _PREDICTORS)]
    else:
        parts += [NOT_YET, THESIS, judgement(first, _PREDICTORS), HOW, FIRST_ANSWER]
    return "\n\n".join(parts)


def _spread(points: list[dict[str, Any]]) -> dict[str, str]:
    """How far the ratios are apart."""
    found = {}
    for model in ("flops", "bops"):
        ratios = [point["joules"] / point["counts"][model] for point in points]
        found[model] = f"{max(ratios) / min(ratios):.1f}"
    return found


def apart(gpu_data: dict[str, Any]) -> list[float]:
    """FLOPs, then BOPs, of each network: the GPU's over the CPU's, less one."""
    found = []
    for one in gpu_data["devices"].values():
        for unit in ("flops", "bops"):
            cpu, cuda = (sum(one[device][unit].values()) for device in ("cpu", "cuda"))
            found.append(cuda / cpu - 1)
    return found


def devices(gpu_data: dict[str, Any] | None) -> str:
    """Section 4: the same step on a CPU and on a GPU."""
    if not gpu_data:
        return f"{DEVICES}\n\n{NO_DEVICES}"
    rows, off = [], iter(apart(gpu_data))
    for name, found in gpu_data["devices"].items():
        digests = found["cpu"]["digest"], found["cuda"]["digest"]
        same = "equal" if digests[0] == digests[1] else f"{digests[0]} and {digests[1]}"
        rows.append([NAMES[name], f"{100 * next(off):+.3f} %", f"{100 * next(off):+.3f} %", same])
    return "\n\n".join([DEVICES, table(["network", "FLOPs, GPU against CPU", "BOPs", "fingerprint"], rows, "lrrl")])


DEVICES = """\
## Section 4: CPU against GPU

Printed: counts on both are within 1.4 %. A run's fingerprint is a digest of its matrix products, phase by phase."""

NO_DEVICES = """\
Not yet measured for this page (`python -m examples.paper.gpu` on a machine with a GPU). A test that needs a GPU,
`tests/gpu/test_cuda.py`, demands of three networks like these that FLOPs of each phase agree within 0.1 % and that
fingerprints are equal."""

SECTION_5 = """\
## Section 5: energy by abstract work

The paper proposes the ratio of energy to abstract work. Training steps of three networks on one NVIDIA H200,
measured for [Energy](energy.md#on-an-h200) (`benchmarks/energy.py`, six seconds each; data in
`docs/tables/energy-h200.json`; batches so small that the GPU waits for the host):"""

SPREAD = "J/TFLOP differ by a factor of {flops} between the largest and the smallest, J/TBOP by {bops}."

NOT_YET = """\
INT8, FP8, FP16, larger batches and the other cost models are not yet measured: `python -m examples.paper.gpu` does
so in about five minutes and this page is made from what it writes."""

LATER = """\
Batches that keep the GPU busy, measured by `python -m examples.paper.gpu` ({about}). INT8 and FP8 multiply in those
formats, `int4 weights` are packed and expanded to bfloat16 by the kernel:"""

THESIS = """\
## The thesis: do bit-operations tell hardware effort better?

![Joules of a step by FLOPs and by bit-operations](images/paper/thesis.svg)"""

HOW = """\
`rank` is Spearman's correlation over all points. `error` is the median factor between measured value and
prediction, after one scale for all points. `precisions in order`: of two precisions of one network whose costs
differ by 5 % or more, how often the predictor puts them in the right order; equal predictions are half right, so
FLOPs, which do not know precisions, are at 50 %."""

FIRST_ANSWER = """\
A first answer, from nine points of training in three precisions with the GPU waiting for the host: **bit-operations
predict joules better than FLOPs do, over all points and between precisions, and neither predicts time well.** Two
reservations. J/TBOP differ more between runs than J/TFLOP: halving the bits does not halve the joules, since much
of a step's energy is paid for idling and moving. And `bops` calls FP32 and TF32 equal, whose joules differ by
factors of 1.25 to 1.66: no cost model of bitwatt sees that float32 products ran on TF32 tensor cores; that is known
of the run, but not of the call. Nine points of three networks are few."""

EARLIER_TOO = "The nine earlier points, with the GPU waiting for the host:"
VERDICT = "The best model of bit-operations against FLOPs, by rank: {}."
