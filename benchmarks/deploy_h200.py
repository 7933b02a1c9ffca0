"""Ways to deploy three networks on a GPU, by bitwatt's deployment lab, with the energy that its counter reads.

    python benchmarks/deploy_h200.py --json FILE [--models resnet50,bert-base,vit-base] [--batches 1,32,256]
                                     [--budget-seconds 540]
    python benchmarks/deploy_h200.py --render docs/tables/deployment-h200.json --page docs/deployment-h200.md

Networks have random weights, as nothing is downloaded: times and energy do not depend on them. Labels are those of the
float32 module, so that accuracy is how often a scenario agrees with it. FILE is written again after every process that
timed and every scenario whose energy was read, so that a machine that is taken back leaves all rows it had measured;
within the budget it ends by itself. Files are rendered together: of a model that is in several, the row counts that
knows more, then the later one. `--tiny --device cpu` tries the script without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from bitwatt.deploy import plans, runtimes, statistics, study
from bitwatt.deploy.given import loading
from bitwatt.deploy.intervals import between
from bitwatt.deploy.records import Call, Scenario, Study, cell

ROWS, TINY_ROWS = 128, 24
NATIVE = "torch-eager"
COLUMNS = (
    "scenario", "precision", "batch", "median ms", "samples/s", "times as fast as eager", "mJ/sample", "GFLOP/J",
    "agreement",
)  # fmt: skip


def resnet50(tiny: bool) -> tuple[Any, Any]:
    from transformers import ResNetConfig, ResNetForImageClassification

    small = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]} if tiny else {}
    side = 32 if tiny else 224
    return ResNetForImageClassification(ResNetConfig(num_labels=10, **small)), torch.randn(rows(tiny), 3, side, side)


def bert_base(tiny: bool) -> tuple[Any, Any]:
    from transformers import BertConfig, BertForSequenceClassification

    model = BertForSequenceClassification(BertConfig(num_labels=10, **(SMALL if tiny else {})))
    return model, torch.randint(0, 1000, (rows(tiny), 8 if tiny else 128))


def vit_base(tiny: bool) -> tuple[Any, Any]:
    from transformers import ViTConfig, ViTForImageClassification

    side = 32 if tiny else 224
    model = ViTForImageClassification(ViTConfig(num_labels=10, image_size=side, **(SMALL if tiny else {})))
    return model, torch.randn(rows(tiny), 3, side, side)


SMALL = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
MODELS: dict[str, Callable[[bool], tuple[Any, Any]]] = {
    "resnet50": resnet50, "bert-base": bert_base, "vit-base": vit_base
}  # fmt: skip


def rows(tiny: bool) -> int:
    return TINY_ROWS if tiny else ROWS


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--batches", default="1,32,256")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--scenarios", default="", help="by default all of torch's, and ONNX where it has CUDA")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--budget-seconds", type=float, default=0.0, help="end in time, with what was measured")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--render", type=Path, nargs="+")
    parser.add_argument("--page", type=Path)
    asked = parser.parse_args(arguments)
    if asked.render:
        text = page(merged([one for file in asked.render for one in json.loads(file.read_text(encoding="utf-8"))]))
        if asked.page:
            asked.page.write_text(text, encoding="utf-8")
        else:
            print(text)
        return
    batches = tuple(int(batch) for batch in asked.batches.split(","))
    scenarios = tuple(asked.scenarios.split(",")) if asked.scenarios else chosen(asked.device)
    plan = plans.plan(
        quick=True, batches=batches, processes=asked.processes, blocks=asked.blocks, fresh=0, loaded=False,
        scenarios=scenarios,
    )  # fmt: skip
    found: dict[str, dict[str, Any]] = {}

    def keep(name: str, known: dict[str, Any]) -> None:
        found[name] = known
        if asked.json:
            written(asked.json, list(found.values()))

    try:
        with budget(asked.budget_seconds):
            for name in asked.models.split(","):
                keep(name, measured(name, asked.device, plan, asked.tiny, keep))
                print(f"{name}: {found[name]['seconds']:.0f} s", file=sys.stderr, flush=True)
    except OutOfTimeError as end:
        print(f"{end}; of {name} there is {'a part' if name in found else 'nothing'}", file=sys.stderr, flush=True)
    print(page(list(found.values())))


class OutOfTimeError(KeyboardInterrupt):
    """Ends a study as Ctrl-C does: with all its processes."""


@contextmanager
def budget(seconds: float) -> Iterator[None]:
    """Ends what is inside after so long, or when it is told to (SIGTERM)."""

    def stop(number: int, frame: object) -> None:
        raise OutOfTimeError("the budget is spent" if number == signal.SIGALRM else "it was told to end")

    before = {number: signal.signal(number, stop) for number in (signal.SIGALRM, signal.SIGTERM)}
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def written(file: Path, found: Sequence[dict[str, Any]]) -> None:
    """In one step: whoever ends this process in the middle of it leaves the file as it was."""
    new = file.with_name(file.name + ".new")
    new.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    os.replace(new, file)


def chosen(device: str) -> tuple[str, ...]:
    """torch's own, and ONNX Runtime's where it can use the device."""
    providers: list[str] = []
    if find_spec("onnxruntime"):
        import onnxruntime

        providers = onnxruntime.get_available_providers()
    onnx = device == "cpu" or "CUDAExecutionProvider" in providers
    return tuple(name for name in runtimes.RUNTIMES if name.startswith("torch") or (onnx and name.startswith("onnx")))


def measured(
    name: str, device: str, plan: Any, tiny: bool, keep: Callable[[str, dict[str, Any]], None]
) -> dict[str, Any]:
    """`keep` gets what is known of it, again and again."""
    torch.manual_seed(0)
    model, inputs = MODELS[name](tiny)
    model = model.eval()
    with torch.inference_mode():
        placed = model.to(device)
        labels = torch.cat([placed(part.to(device)).logits.argmax(1).cpu() for part in inputs.split(32)])
        model = placed.cpu()
    case = loading.case(model, inputs, labels, name=name, device=device)

    def so_far(found: Study, calls: Sequence[Call]) -> None:
        keep(name, _told(name, device, found, calls, whole=False))

    with tempfile.TemporaryDirectory() as scratch:
        try:
            found, calls = study.measure(case, plan=plan, folder=scratch, progress=_progress, so_far=so_far)
        except study.InterruptedStudy as stop:
            keep(name, _told(name, device, stop.study, stop.calls, whole=False))
            raise stop.stop from stop
    return _told(name, device, found, calls, whole=True)


def _told(name: str, device: str, found: Study, calls: Sequence[Call], *, whole: bool) -> dict[str, Any]:
    return {
        "model": name,
        "whole": whole,
        "date": found.started[:10],
        "seconds": found.seconds,
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else found.machine.get("cpu", device),
        "versions": dict(found.versions),
        "notes": list(found.notes),
        "load": dict(found.surroundings),
        "processes": len({call.process for call in calls}),
        "control": statistics.control(calls).told,
        "rows": [line for one in found.scenarios for line in _lines(one, found, calls)],
    }


def _progress(done: float, of: float, what: str) -> None:
    """One line for each part: on a machine that is lent by the minute one wants to know what takes so long."""
    if what != _progress.last:
        print(f"{time.strftime('%H:%M:%S')} {100 * done / of if of else 0:3.0f} % {what}", file=sys.stderr, flush=True)
    _progress.last = what


_progress.last = ""


def _lines(one: Scenario, found: Study, calls: Sequence[Call]) -> list[dict[str, Any]]:
    if one.failure or one.artefact is None:
        return [{"scenario": one.name, "failure": one.failure}]
    table = statistics.Table(calls)
    times = statistics.cells(table)
    lines = []
    for batch in found.plan.batches:
        timed = times.get(statistics.Key(one.name, batch, 1))
        ratio = statistics.compare(table, one.name, NATIVE, batch, 1) if one.name != NATIVE else None
        joules, counts, parts = one.joules.get(cell(batch, 1)), one.counts.get(batch), one.breakdown.get(batch)
        lines.append({
            "scenario": one.name, "batch": batch, "precision": one.artefact.precision.mode,
            "p50_ms": timed.p50_ms if timed else None, "p99_ms": timed.p99_ms if timed else None,
            "ratio": [ratio.ratio, ratio.low, ratio.high, ratio.verdict] if ratio else None,
            "uj": joules.measured_uj if joules else None, "energy_source": joules.source if joules else "",
            "agreement": one.quality.value if one.quality else None,
            "flops": counts.flops if counts else None, "counted": counts.source if counts else "",
            "linear_ms": parts.ms("linear") if parts else None, "plain_ms": parts.plain_ms if parts else None,
            "bytes": one.artefact.bytes,
        })  # fmt: skip
    return lines


def merged(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One of each model, with the rows of all."""
    models: dict[str, dict[str, Any]] = {}
    for one in found:
        before = models.get(one["model"])
        if before is None:
            models[one["model"]] = one
            continue
        rows = {_key(row): row for row in before["rows"]}
        for row in one["rows"]:
            there = rows.get(_key(row))
            if there is None or _known(row) >= _known(there):
                rows[_key(row)] = row
        failed = {row["scenario"] for row in rows.values() if "failure" not in row}
        kept = [row for row in rows.values() if "failure" not in row or row["scenario"] not in failed]
        models[one["model"]] = {**one, "rows": kept, "whole": before.get("whole", True) and one.get("whole", True)}
    return list(models.values())


def _key(row: dict[str, Any]) -> tuple[str, int]:
    return row["scenario"], row.get("batch", 0)


def _known(row: dict[str, Any]) -> int:
    return sum(row.get(name) is not None for name in ("p50_ms", "uj", "agreement", "flops"))


def page(found: Sequence[dict[str, Any]]) -> str:
    if not found:
        return ""
    first = found[0]
    packages = ", ".join(f"{name} {first['versions'][name]}" for name in sorted(first["versions"]))
    lines = [
        f"# Ways to deploy on {first['device']}",
        "",
        "Written by `benchmarks/deploy_h200.py`, which runs [the deployment lab](guides/deployment.md) on a GPU.",
        f"Measured {first['date']}. {packages}.",
        "Times are of a call from rows on the host to results on the host. Energy is the GPU's own counter, without",
        "what it draws when idle; why there is none stands below the table. Weights are random: agreement is the share",
        "of rows with the same label as the float32 module. torch runs float32 convolutions in TF32 unless it is told",
        "not to, and float32 products of matrices in float32. FLOPs are the lab's, or of the same network watched on a",
        "processor where time ran out before they were counted. Scenarios that a table lacks were not asked for.",
        "",
    ]
    for one in found:
        lines += [
            f"## {one['model']}",
            "",
            f"| {' | '.join(COLUMNS)} |",
            "|---|---|" + "--:|" * 7,
            *(_line(row) for row in one["rows"]),
            "",
            *_cheapest(one),
            f"Control: {one['control']}.",
            *(f"Energy: {source}." for source in _sources(one)),
            *([] if one.get("whole", True) else ["Not whole: time ran out, and - is what was not reached."]),
            "",
        ]
    return "\n".join(lines)


def _cheapest(one: dict[str, Any]) -> list[str]:
    """What takes the least energy in the largest batches, in a sentence."""
    batch = max((row["batch"] for row in one["rows"] if "batch" in row), default=0)
    spent = {row["scenario"]: row["uj"] for row in one["rows"] if row.get("batch") == batch and row.get("uj")}
    if NATIVE not in spent or len(spent) < 2:
        return []
    least = min(spent, key=lambda name: spent[name])
    if least == NATIVE:
        return [f"At batch {batch} nothing takes less energy than {NATIVE}.", ""]
    times = _short(spent[NATIVE] / spent[least])
    return [f"At batch {batch} {least} takes the least energy: {NATIVE} takes {times} times as much.", ""]


def _sources(one: dict[str, Any]) -> list[str]:
    """Why there is no energy, where there is none."""
    rows = [row for row in one["rows"] if not row.get("failure")]
    return sorted({row["energy_source"] for row in rows if row["uj"] is None and row["energy_source"]})


def _line(row: dict[str, Any]) -> str:
    if "failure" in row:
        return f"| {row['scenario']} | - | - | {row['failure']} | | | | | |"
    ms, batch, uj = row["p50_ms"], row["batch"], row["uj"]
    cells = [
        row["scenario"], row["precision"], str(batch), _short(ms), _short(1000 * batch / ms if ms else None),
        "1" if row["scenario"] == NATIVE else _ratio(row["ratio"]), _short(uj / 1000 / batch if uj else None),
        _short(row["flops"] / 1e9 / (uj / 1e6) if uj and row["flops"] else None),
        "-" if row["agreement"] is None else f"{100 * row['agreement']:.1f} %",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _ratio(found: Sequence[Any] | None) -> str:
    return "-" if found is None else f"**{found[0]:.3g}** {between(found[1], found[2])}"


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


if __name__ == "__main__":
    main()
