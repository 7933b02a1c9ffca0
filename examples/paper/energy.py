"""Section 5 and the thesis: joules by abstract work on an H200, from what was measured there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from examples.paper import gpu
from examples.paper.drawing import figure
from examples.paper.models import NAMES
from examples.paper.tables import table
from examples.paper.thesis import in_order, judgement, lead, rank, typical_factor

#: Nine points of benchmarks/energy.py, measured for the page about energy.
EARLIER = Path(__file__).resolve().parents[2] / "docs" / "tables" / "energy-h200.json"
_TITLES = {"resnet": "ResNet-18", "transformer": "Transformer", "gpt2": "GPT-2 small"}
_MARKERS = "oxv^DP*"
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
    kinds, precisions = (list(dict.fromkeys(point[key] for point in points)) for key in ("kind", "precision"))
    shown = {"flops": "FLOPs", "bops": "BOPs", "bytes": "Bytes"}
    shown = {predictor: label for predictor, label in shown.items() if predictor in points[0]["counts"]}
    with figure("thesis", "Joules of a step", columns=len(shown), size=(9.5, 4.6)) as axes:
        for place, (predictor, label) in zip(axes, shown.items(), strict=True):
            for point in points:
                color, marker = f"C{kinds.index(point['kind'])}", _MARKERS[precisions.index(point["precision"])]
                place.plot(point["counts"][predictor], point["joules"], marker, color=color, alpha=0.8)
            place.set(xscale="log", yscale="log", xlabel=f"{label} of a step", ylabel="J of a step")
            place.xaxis.set_minor_formatter("")  # less than a decade would be labelled at every tick
        handles = [
            axes[0].plot([], [], "s", color=f"C{place}", label=_label(kind))[0] for place, kind in enumerate(kinds)
        ]
        marks = zip(_MARKERS, precisions, strict=False)
        handles += [axes[0].plot([], [], marker, color="gray", label=precision)[0] for marker, precision in marks]
        axes[0].figure.legend(handles=handles, loc="outside lower center", ncols=7, fontsize=8, frameon=False)


def _label(kind: str) -> str:
    network, *mode = kind.split()
    return " ".join([(_TITLES | NAMES)[network], *mode])


def _ratios(points: list[dict[str, Any]], titles: dict[str, str]) -> str:
    rows = []
    for point in points:
        counts = point["counts"]
        rows.append([
            titles[point["network"]], point.get("mode", "training"), point["precision"],
            f"{1e3 * point['seconds']:.2f} ms", f"{point['joules']:.3g} J",
            f"{point['joules'] / point['seconds']:.0f} W",
            f"{1e12 * point['joules'] / counts['flops']:.2f}", f"{1e12 * point['joules'] / counts['bops']:.3f}",
        ])  # fmt: skip
    return table(["network", "", "precision", "step", "energy", "power", "J/TFLOP", "J/TBOP"], rows, "lllrrrrr")


def text(gpu_data: dict[str, Any] | None) -> str:
    first = earlier()
    parts = [SECTION_5, _ratios(first, _TITLES), SPREAD.format(**_spread(first))]
    if gpu_data:
        points = later(gpu_data)
        skipped = [row for row in gpu_data["points"] if "skipped" in row]
        about = f"{gpu_data['gpu']}, torch {gpu_data['torch']}, {gpu_data['date']}; idle {gpu_data['idle_w']:.0f} W"
        networks = {NAMES[row["network"]]: row["setting"] for row in gpu_data["points"]}
        larger = "; ".join(f"{name} {setting}" for name, setting in networks.items())
        parts += [LATER.format(about=about, larger=larger), _ratios(points, NAMES), SPREAD.format(**_spread(points))]
        parts += [f"- {row['network']} in {row['precision']}: {row['skipped']}" for row in skipped]
        plain = [point for point in points if point["precision"] in gpu.TRAINING]
        parts += [THESIS, judgement(points, _PREDICTORS), HOW, PLAIN, judgement(plain, _PREDICTORS)]
        parts += [answer(points, plain)]
        parts += [EARLIER_TOO, judgement(first, _PREDICTORS)]
    else:
        parts += [NOT_YET, THESIS, judgement(first, _PREDICTORS), HOW, FIRST_ANSWER]
    return "\n\n".join(parts)


def answer(points: list[dict[str, Any]], plain: list[dict[str, Any]]) -> str:
    """In words, which a test holds against the numbers: other measurements may want others."""
    names = ("flops", "bops", "bops:product", "tf32", "bytes")
    ranks = {f"{name}_{part}": rank(some, name) for name in names for part, some in (("all", points), ("plain", plain))}
    time = {f"{name}_time": rank(points, name, "seconds") for name in names}
    told = {key.replace("bops:", ""): f"{value:.2f}" for key, value in (ranks | time).items()}
    for one, other in (("bops", "flops"), ("bops", "bops:product"), ("bytes", "bops")):
        for target in ("joules", "seconds"):
            low, high = lead(points, one, other, target)
            told[f"{one}_{other}_{target}".replace("bops:", "")] = f"{low:+.2f} to {high:+.2f}"
    for name in ("flops", "bops", "bytes"):
        for target in ("joules", "seconds"):
            told[f"{name}_order_{target}"] = f"{100 * in_order(points, name, target)[0]:.0f} %"
        told[f"{name}_order_plain"] = f"{100 * in_order(plain, name, 'seconds')[0]:.0f} %"
    error = typical_factor([p["counts"]["bytes"] for p in points], [p["joules"] for p in points])
    return ANSWER.format(points=len(points), plain=len(plain), narrow=_narrow(points), error=f"x{error:.2f}", **told)


def _narrow(points: list[dict[str, Any]]) -> str:
    """The MLP in INT8 and FP8 beside bfloat16, where all of them ran."""
    found = {point["precision"]: point for point in points if point["kind"] == "mlp inference"}
    base, said = found.get("bfloat16"), []
    for name in ("int8", "fp8"):
        if base and name in found:
            bits = found[name]["counts"]["bops"] / base["counts"]["bops"]
            said.append(f"{bits:.2f} and {found[name]['joules'] / base['joules']:.2f} times in {name.upper()}")
    return "; ".join(said)


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


def devices(gpu_data: dict[str, Any] | None, here: dict[str, Any] | None = None) -> str:
    """Section 4: the same step on a CPU and on a GPU, and on the CPU that measured the rest of the page."""
    if not gpu_data:
        return f"{DEVICES}\n\n{NO_DEVICES}"
    rows, off = [], iter(apart(gpu_data))
    for name, found in gpu_data["devices"].items():
        digests = found["cpu"]["digest"], found["cuda"]["digest"]
        same = "equal" if digests[0] == digests[1] else f"{digests[0]} and {digests[1]}"
        rows.append([NAMES[name], f"{100 * next(off):+.3f} %", f"{100 * next(off):+.3f} %", same])
    parts = [DEVICES, table(["network", "FLOPs, GPU against CPU", "BOPs", "fingerprint"], rows, "lrrl")]
    if here and all(
        found["cuda"][unit] == here[name]["FP32"][unit]
        for name, found in gpu_data["devices"].items()
        for unit in ("flops", "bops")
    ):
        parts.append(HERE.format(torch=gpu_data["torch"].split("+")[0]))
    return "\n\n".join(parts)


DEVICES = """\
## Section 4: CPU against GPU

Printed: counts on both are within 1.4 %. A run's fingerprint is a digest of its matrix products, phase by phase."""

HERE = """\
The CPU is that of the GPU's machine (torch {torch}). FLOPs and BOPs of each phase are also those of the rest of this
page, counted on another processor with another torch."""

NO_DEVICES = """\
Not yet measured for this page (`python -m examples.paper.gpu` on a machine with a GPU). A test that needs a GPU,
`tests/gpu/test_cuda.py`, demands of three networks like these that FLOPs of each phase agree within 0.1 % and that
fingerprints are equal."""

SECTION_5 = """\
## Section 5: energy by abstract work

The paper proposes the ratio of energy to abstract work. Training steps of three networks on one NVIDIA H200,
measured for [Energy on an H200](energy.md) (`benchmarks/energy.py`, six seconds each; data in
`docs/tables/energy-h200.json`; batches so small that the GPU waits for the host):"""

SPREAD = "J/TFLOP differ by a factor of {flops} between the largest and the smallest, J/TBOP by {bops}."

NOT_YET = """\
INT8, FP8, FP16, larger batches and the other cost models are not yet measured: `python -m examples.paper.gpu` does
so in about five minutes and this page is made from what it writes."""

LATER = """\
Larger batches ({larger}), measured by
`python -m examples.paper.gpu` ({about}). INT8 and FP8
multiply in those formats, `int4 weights` are packed and expanded to bfloat16 by the kernel. Power tells how busy the
GPU was: up to 700 W in the MLP, about half of that and less in the transformer's narrower formats, which do
not fill it:"""

THESIS = """\
## The thesis: do bit-operations tell hardware effort better?

![Joules of a step by FLOPs, by bit-operations and by bytes](images/paper/thesis.svg)"""

HOW = """\
`rank` is Spearman's correlation over all points. `error` is the median factor between measured value and
prediction, after one scale for all points. `precisions in order`: of two precisions of one network whose costs
differ by 5 % or more, how often the predictor puts them in the right order; equal predictions are half right, so
FLOPs are near 50 %: they know precisions only by the operations that quantising adds."""

PLAIN = """\
The same without INT8, FP8 and INT4, whose kernels here quantise, multiply and scale one after the other, so that the
narrow formats were no faster than bfloat16:"""

ANSWER = """\
**The answer: against FLOPs the paper is right about joules, on this GPU and for these {points} points; about time it
is not shown.** In brackets is the lead in rank correlation, a 95 % interval from drawing the points anew. Points of one
network are alike, so these intervals are rather too narrow.

- **Joules**: `bops` rank them better than FLOPs, {bops_all} against {flops_all} ({bops_flops_joules}), and put the
  precisions of a network in order more often, {bops_order_joules} against {flops_order_joules}.
- **Seconds**: {bops_time} against {flops_time} ({bops_flops_seconds}), which may be chance, and {bops_order_seconds} in
  order against {flops_order_seconds}: FLOPs, which say little there, do no worse. Without the narrow kernels it is
  {bops_order_plain} against {flops_order_plain}.
- **Product or linear?** Section 2.3 proposes the product of the widths, section 4 computes with one. `bops:product`
  ranks joules with {product_all}, `bops` with {bops_all} ({bops_product_joules}): nothing speaks for the product, and
  too little against it.
- **Bytes moved**, which know nothing of multipliers, do as well or better: joules {bytes_all} ({bytes_bops_joules} over
  `bops`), with the smallest error ({error}), seconds {bytes_time} ({bytes_bops_seconds}). Between precisions
  `bops` order joules better, {bops_order_joules} against {bytes_order_joules}.
- **TF32** is float32 to every cost model. Given its 19 bits, joules would be ranked with {tf32_all}, and in the {plain}
  points without the narrow kernels with {tf32_plain}, where `bops` have {bops_plain} and bytes {bytes_plain}.
- **What no count sees** is a fused kernel that is not there. The MLP's bit-operations and joules beside those in
  bfloat16: {narrow}.

So: bit-operations and bytes tell what a format *could* save, the meter what it *did*. bitwatt shows all three."""

FIRST_ANSWER = """\
A first answer, from nine points of training in three precisions with the GPU waiting for the host: **bit-operations
predict joules better than FLOPs do, over all points and between precisions, and neither predicts time well.** Two
reservations. J/TBOP differ more between runs than J/TFLOP: halving the bits does not halve the joules, since much
of a step's energy is paid for idling and moving. And `bops` calls FP32 and TF32 equal, whose joules differ by
factors of 1.25 to 1.66: no cost model of bitwatt sees that float32 products ran on TF32 tensor cores; that is known
of the run, but not of the call. Nine points of three networks are few."""

EARLIER_TOO = "The nine earlier points, with the GPU waiting for the host:"
