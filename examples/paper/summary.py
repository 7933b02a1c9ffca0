"""The table at the top of the page: each part in one row."""

from __future__ import annotations

from typing import Any

from examples.paper import classical, energy, factor, phases, table2, thesis
from examples.paper.counting import passes
from examples.paper.coverage.gathering import scores
from examples.paper.tables import science


def rows(data: dict[str, Any], gpu_data: dict[str, Any] | None) -> str:
    found = [
        ("settings it leaves open", "-", _nearest(data["settings"])),
        ("BOPs, FP32 to INT4", "-85.5, -86.8, -86.8 %", _falls(data["figure2"])),
        ("transformer, FP32", "358.4 G·bits (360 in the text)", _transformer(data["figure2"])),
        ("optimizer's share of BOPs", "grows under mixed precision", _shares(data["phases"])),
        ("training over forward", "2.8 to 3.4", _factors(data["factor"])),
        ("RandomForest, FLOPs", "6.31e11", _forest(data["classical"])),
        ("coverage: six facets, 0 to 5", "judged", _coverage(data["coverage"])),
        ("CPU against GPU", "within 1.4 %", _devices(gpu_data)),
        ("BOPs tell effort better than FLOPs", "yes", _thesis(gpu_data)),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in found)


def _nearest(settings: dict[str, Any]) -> str:
    offs = [f"{100 * found['nearest'][0]['off']:+.1f} %" for found in settings["networks"].values()]
    return "the nearest natural ones are off by " + ", ".join(offs)


def _falls(figure2: dict[str, Any]) -> str:
    pairs = [[passes(of[title], "bops:paper") for title in ("FP32", "INT4")] for of in figure2["networks"].values()]
    return ", ".join(f"-{table2.fall(*pair):.1f} %" for pair in pairs) + " under its convention; none under `bops`"


def _transformer(figure2: dict[str, Any]) -> str:
    return f"{passes(figure2['networks']['transformer']['FP32'], 'bops:paper') / 1e9:.1f} in the nearest setting"


def _shares(ways: dict[str, Any]) -> str:
    plain, mixed, half = (phases.share(found, "bops:paper") for found in ways.values())
    return f"{plain:.1f} % in FP32, {mixed:.1f} % mixed, {half:.1f} % in FP16"


def _factors(steps: list[dict[str, Any]]) -> str:
    whole = [factor.factors(row["flops"])[0] for row in steps]
    return f"{min(whole):.1f} to {max(whole):.1f}, by batch"


def _forest(data: dict[str, Any]) -> str:
    formula, executed = data["estimated"]["forest"]["flops:paper"], classical.whole_forest(data, "flops")
    return f"{science(formula)} by its own formula, {science(executed)} executed"


def _coverage(profilers: dict[str, Any]) -> str:
    sums = {module: sum(scores(found).values()) for module, found in profilers.items()}
    ours = sums.pop("bitwatt")
    return f"by running each: bitwatt {ours} of 30, the next {max(sums.values())}"


def _devices(gpu_data: dict[str, Any] | None) -> str:
    if not gpu_data:
        return "not yet measured"
    furthest = max(abs(one) for one in energy.apart(gpu_data))
    return f"within {100 * furthest:.3f} %" if furthest else "equal"


def _thesis(gpu_data: dict[str, Any] | None) -> str:
    points = energy.later(gpu_data) if gpu_data else energy.earlier()
    by_bytes = [f"{thesis.rank(points, 'bytes', target):.2f}" for target in ("joules", "seconds")] if gpu_data else []
    beside = f"; by bytes {' and '.join(by_bytes)}" if by_bytes else ""
    return f"{thesis.verdict(points)}{beside} (rank correlation, {len(points)} points)"
