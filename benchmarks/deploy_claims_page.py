"""docs/deployment-claims.md from what benchmarks/deploy_claims.py measured: a pure function of the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from bitwatt.deploy.intervals import between

Results = Mapping[str, Any]
NATIVE, FP32, INT8 = "sklearn-fp64", "onnx-fp32", "onnx-int8"


def page(found: Results) -> str:
    parts = (_head, _summary, _speeds, _memory, _shares, _energy, _lost)
    return "\n".join(line for part in parts for line in part(found))


def _head(found: Results) -> list[str]:
    machine, versions = found["machine"], found["versions"]
    facts = [f"{name} {value}" for name, value in machine.items() if "copy_" not in name and name != "flags"]
    facts += [machine["flags"]] if machine.get("flags") else []
    return [
        "# Claims about deployment, measured",
        "",
        "What is usually said about ONNX and INT8, beside what [the deployment lab](guides/deployment.md) measured on",
        "one machine. Written by `benchmarks/deploy_claims.py`: run it on yours, as that is what counts.",
        "",
        f"Measured {found['date']}: {'; '.join(facts)}.",
        f"{', '.join(f'{name} {value}' for name, value in versions.items())}.",
        "",
        *_around(found),
        "",
        "| model | what it is | control (A/A) |",
        "|---|---|---|",
        *(f"| {one['name']} | {one['about']} | {one['control']} |" for one in found["families"]),
        "",
    ]


def _around(found: Results) -> list[str]:
    loads = [one["load"].get("load_1min_before", 0.0) for one in found["families"]]
    stalls = [100 * one["load"].get("cpu_stall_share", 0.0) for one in found["families"]]
    told = [
        f"Ratios come from interleaved blocks of {found['plan']['processes']} fresh processes (`--quick`),",
        "one thread each, with 95 % intervals: of wall time, and beside it of the median CPU time of the same calls.",
    ]
    if max(loads) < 0.5:
        return told
    cells = [(one, cell) for one in found["families"] for cell in one["speed"] if cell["ratio"] is not None]
    apart = [cell["ratio"] / (_cpu_ratio(one, cell) or 1.0) for one, cell in cells if _apart(one, cell)]
    factors = [max(factor, 1 / factor) for factor in apart]
    far, most = sum(factor > 1.5 for factor in factors), max(factors, default=1.0)
    return [
        f"**The machine was not quiet**: load {min(loads):.1f} to {max(loads):.1f} when a model's turn began, and",
        f"something waited for a processor {min(stalls):.0f} to {max(stalls):.0f} % of the time.",
        *told,
        "",
        f"**In {len(apart)} of {len(cells)} settings, marked !, the ratio of CPU times is outside the interval of",
        f"wall times**; in {far} of them the two differ by more than 1.5 times, at most by {most:.1f}. Likely cause:",
        "a call of several milliseconds is interrupted by other programs, a call of microseconds seldom. That happens",
        "in every process, so the interval does not know of it; and the control compares calls of one length, so it",
        "cannot see it. Where the two differ, the CPU ratio is nearer to what the runtime gains; measure on a quiet",
        "machine before you quote either. Shares suffer too: where *rest* is far from 0, plain and watched calls were",
        "not interrupted alike.",
    ]


def _cpu_ratio(one: Results, cell: Results) -> float | None:
    """Of the medians, so without an interval."""
    at = f"{cell['batch']}x1"
    ours, theirs = (one["scenarios"][name]["cpu_seconds"].get(at) for name in (cell["scenario"], cell["against"]))
    return theirs / ours if ours and theirs else None


def _apart(one: Results, cell: Results) -> bool:
    ratio = _cpu_ratio(one, cell)
    return ratio is not None and not cell["low"] <= ratio <= cell["high"]


def _summary(found: Results) -> list[str]:
    lines = ["## In short", "", "| claim | holds | measured |", "|---|---|---|"]
    for claim, pair, low, high in (
        ("ONNX is 2-3 times as fast as native", (FP32, NATIVE), 2, 3),
        ("INT8 is 3-5 times as fast as native", (INT8, NATIVE), 3, 5),
        ("INT8 is 3-5 times as fast as ONNX FP32", (INT8, FP32), 3, 5),
    ):
        lines.append(_claimed(f"{claim}: wall time", _ratios(found, *pair), low, high, "×"))
        lines.append(_claimed("... CPU time", _cpu_ratios(found, *pair), low, high, "×"))
    files, memory = _saved(found, _file, FP32), _saved(found, _peak, NATIVE)
    lines.append(_claimed("INT8 takes 75 % less: file, against ONNX FP32", files, 70, 80, " %"))
    lines.append(_claimed("INT8 takes 75 % less: peak memory of the process, against native", memory, 70, 80, " %"))
    lines.append(_claimed("... against ONNX FP32", _saved(found, _peak, FP32), 70, 80, " %"))
    for group, low, high in (("preprocess", 18, 22), ("linear", 55, 63)):
        name = {"preprocess": "preprocessing", "linear": "the linear operator"}[group]
        for scenario in (NATIVE, FP32):
            cells = [(s := 100 * one[group], s, s) for one in _each_share(found, scenario)]
            lines.append(_claimed(f"{name} is {low}-{high} % of the time ({scenario})", cells, low, high, " %"))
    saved = _saved_energy(found)
    if saved:
        lines.append(_claimed("energy is 40-50 % less with INT8, against native", saved, 40, 50, " %"))
    else:
        lines.append("| energy is 40-50 % less with INT8 | not known | this machine has no energy counter |")
    cpu = _saved_cpu(found)
    lines.append(_claimed("CPU seconds instead of energy, INT8 against native", cpu, 40, 50, " %"))
    return [
        *lines,
        "",
        "*Holds*: settings (model x batch size) whose value, or its interval, meets the range that is claimed (75 %:",
        "70 to 80); the others are below or above it. INT8 counts only where the graph that runs has integer products.",
        "",
    ]


Cell = tuple[float, float, float]  # value, low, high


def _claimed(claim: str, cells: Sequence[Cell], low: float, high: float, unit: str) -> str:
    if not cells:
        return f"| {claim} | never | no model here has integer products that could be compared |"
    above = sum(one[1] > high for one in cells)
    below = sum(one[2] < low for one in cells)
    values = [one[0] for one in cells]
    return (
        f"| {claim} | {len(cells) - above - below} of {len(cells)}; {below} below, {above} above "
        f"| {_short(min(values))} to {_short(max(values))}{unit}, median {_short(median(values))}{unit} |"
    )


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 99.5 else f"{value:.2g}" if abs(value) < 9.95 else f"{value:.3g}"


def _is_int8(one: Results) -> bool:
    return bool((one["scenarios"].get(INT8) or {}).get("integer_share"))


def _cells(found: Results, scenario: str, against: str) -> list[tuple[Results, Results]]:
    return [
        (one, cell)
        for one in found["families"]
        for cell in one["speed"]
        if (cell["scenario"], cell["against"]) == (scenario, against) and cell["ratio"] is not None
        if scenario != INT8 or _is_int8(one)
    ]


def _ratios(found: Results, scenario: str, against: str) -> list[Cell]:
    return [(cell["ratio"], cell["low"], cell["high"]) for _, cell in _cells(found, scenario, against)]


def _cpu_ratios(found: Results, scenario: str, against: str) -> list[Cell]:
    known = [_cpu_ratio(one, cell) for one, cell in _cells(found, scenario, against)]
    return [(ratio, ratio, ratio) for ratio in known if ratio is not None]


def _file(scenario: Results) -> dict[str, float]:
    return {"": scenario["bytes"]} if scenario.get("bytes") else {}


def _peak(scenario: Results) -> dict[str, float]:
    return {batch: value for batch, value in scenario.get("peak_uss_mb", {}).items() if value}


def _saved(found: Results, value: Callable[[Results], dict[str, float]], against: str) -> list[Cell]:
    """Percent less, of INT8."""
    cells = []
    for one in found["families"]:
        if _is_int8(one) and not one["scenarios"].get(against, {}).get("failure", ""):
            ours, theirs = value(one["scenarios"][INT8]), value(one["scenarios"][against])
            cells += [100 * (1 - ours[key] / theirs[key]) for key in ours if theirs.get(key)]
    return [(cell, cell, cell) for cell in cells]


def _saved_cpu(found: Results) -> list[Cell]:
    return _saved(found, lambda one: {at: value for at, value in one["cpu_seconds"].items() if value}, NATIVE)


def _saved_energy(found: Results) -> list[Cell]:
    return _saved(found, lambda one: {at: value for at, value in one["energy_uj"].items() if value}, NATIVE)


def _each_share(found: Results, scenario: str) -> list[Results]:
    return [share for one in found["families"] for share in one["shares"] if share["scenario"] == scenario]


def _speeds(found: Results) -> list[str]:
    batches = found["plan"]["batches"]
    lines = [
        "## How many times as fast",
        "",
        "Wall time with its interval; CPU time of the same calls; ! where they differ.",
        "",
    ]
    for scenario, against, claim in ((FP32, NATIVE, "2-3×"), (INT8, NATIVE, "3-5×"), (INT8, FP32, "3-5×")):
        columns = ["model", *(f"batch {batch}" for batch in batches), *(["integers"] if scenario == INT8 else [])]
        lines += [f"### {scenario} against {against} (claimed: {claim})", ""]
        lines += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        for one in found["families"]:
            cells = {c["batch"]: c for c in one["speed"] if (c["scenario"], c["against"]) == (scenario, against)}
            told = " | ".join(_ratio(one, cells.get(batch)) for batch in batches)
            lines.append(f"| {one['name']} | {told} |{f' {_integers(one)} |' if scenario == INT8 else ''}")
        lines.append("")
    return lines


def _ratio(one: Results, cell: Results | None) -> str:
    if cell is None or cell["ratio"] is None:
        return "-"
    cpu = _cpu_ratio(one, cell)
    told = f"{_short(cell['ratio'])} {between(cell['low'], cell['high'], _short)}"
    return told + (f"; CPU {_short(cpu)}" if cpu is not None else "") + (" !" if _apart(one, cell) else "")


def _integers(one: Results) -> str:
    scenario = one["scenarios"].get(INT8)
    if scenario is None:
        return "not built"
    if scenario.get("failure"):
        return str(scenario["failure"])
    share = scenario["integer_share"]
    return f"{100 * share:.0f} % of the products" if share else scenario["note"] or "none"


def _memory(found: Results) -> list[str]:
    batch = str(found["plan"]["batches"][-1])
    lines = [
        "## Memory (claimed: 75 % less with INT8)",
        "",
        f"Files, and peak unshared memory of fresh processes that answer batches of {batch}; libraries are most of it.",
        "",
        f"| model | {' | '.join(f'{name}: file, process' for name in (NATIVE, FP32, INT8))} |",
        "|---|---|---|---|",
    ]
    for one in found["families"]:
        told = [_weighed(one["scenarios"].get(name), batch) for name in (NATIVE, FP32, INT8)]
        lines.append(f"| {one['name']} | {' | '.join(told)} |")
    return [*lines, ""]


def _weighed(one: Results | None, batch: str) -> str:
    if one is None or one.get("failure"):
        return "-"
    peak = {str(key): value for key, value in one["peak_uss_mb"].items()}.get(batch)
    return f"{one['bytes'] / 1e3:,.1f} kB, {'?' if peak is None else f'{peak:.1f} MB'}"


def _shares(found: Results) -> list[str]:
    lines = [
        "## Where the time goes (claimed: preprocessing 18-22 %, linear operator 55-63 %)",
        "",
        "Percent of a call before the model's operators, in them, after them, and what no part accounts for. For",
        "scikit-learn by steps, with the checks of the input as part of before; for ONNX Runtime by its node profile.",
        "*Looking* is what the profiler added; with ≤ some nodes are so short that its own time is most of theirs.",
        "",
        "| model | scenario | batch | before | operators | after | rest | looking |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in found["families"]:
        for share in one["shares"]:
            parts = " | ".join(f"{100 * share[name]:.0f}" for name in ("preprocess", "linear", "postprocess", "rest"))
            overhead = "-" if share["overhead"] is None else f"{100 * share['overhead']:+.0f} %"
            lines.append(
                f"| {one['name']} | {share['scenario']} | {share['batch']} | {parts} | "
                f"{overhead}{' ≤' if share['bounds'] else ''} |"
            )
    return [*lines, ""]


def _energy(found: Results) -> list[str]:
    sources = {one["scenarios"].get(NATIVE, {}).get("energy_source", "") for one in found["families"]}
    lines = [
        "## Energy (claimed: 40-50 % less)",
        "",
        f"Where it was read: {'; '.join(sorted(source for source in sources if source)) or 'nowhere'}.",
        "CPU seconds of a batch are no energy; they are what is left to compare where no counter is. µs, median:",
        "",
        f"| model | batch | {NATIVE} | {FP32} | {INT8} |",
        "|---|---|---|---|---|",
    ]
    for one in found["families"]:
        for batch in found["plan"]["batches"]:
            told = [_cpu(one["scenarios"].get(name), f"{batch}x1") for name in (NATIVE, FP32, INT8)]
            lines.append(f"| {one['name']} | {batch} | {' | '.join(told)} |")
    return [*lines, ""]


def _cpu(one: Results | None, at: str) -> str:
    value = None if one is None or one.get("failure") else one["cpu_seconds"].get(at)
    return "-" if value is None else _micro(value)


def _micro(seconds: float) -> str:
    return f"{float(f'{seconds * 1e6:.3g}'):,g}"


def _lost(found: Results) -> list[str]:
    lines = [
        "## What was lost",
        "",
        "| model | accuracy native | FP32 | INT8 | labels that flip FP32 | INT8 |",
        "|---|---|---|---|---|---|",
    ]
    for one in found["families"]:
        told = [one["scenarios"].get(name) or {} for name in (NATIVE, FP32, INT8)]
        accuracy = ["-" if each.get("accuracy") is None else f"{each['accuracy']:.4f}" for each in told]
        flips = ["-" if each.get("flips") is None else str(each["flips"]) for each in told[1:]]
        lines.append(f"| {one['name']} | {' | '.join(accuracy)} | {' | '.join(flips)} |")
    return [*lines, ""]
