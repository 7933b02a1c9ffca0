"""Executed-operation models against what instruments counted, by family: the tables that docs/accuracy.md shows."""

from __future__ import annotations

import json
import math
import statistics
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FIXED = 150  # operations a call executes whatever its size; below, a percentage says nothing


@dataclass(frozen=True)
class Line:
    """One measured phase of one program."""

    program: str
    phase: str
    family: str
    network: bool
    executed: int
    model: int
    reason: str = ""

    @property
    def error(self) -> float:
        return abs(self.model / self.executed - 1)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _family(sums: dict[tuple[str, ...], int], phase: str) -> str:
    """That of the op with the most operations in the phase, by name where two have as many."""
    found = [(-n, family) for (place, family), n in sums.items() if place == phase and n]
    return min(found)[1] if found else "none"


def _lines(row: dict[str, Any], ledger: Any, model: str) -> list[Line]:
    from bitwatt.pricing import totals

    priced = totals(ledger, model)
    by_phase, by_family = priced.by("phase"), priced.by("phase", "family")
    ran, reasons = row.get("ops") or row["phases"], row.get("off", {})
    network = "loss" in ran
    lines = []
    for phase, executed in row["executed"].items():
        said = by_phase.get(phase, 0) if phase in ran else priced.total  # a whole step has no phase of its own
        family = _family(by_family, phase)
        lines.append(Line(row["name"], phase, family, network, round(executed), said, reasons.get(phase, "")))
    return lines


def avx2(path: Path) -> list[Line]:
    """Each stored program is run once on this machine to write down its ops, which flops:executed@avx2 then prices."""
    import torch
    from programs import Program, ledger_of

    torch.set_num_threads(1)
    lines = []
    for row in _rows(path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ledger = ledger_of(Program(row["name"], row["setup"], row["phases"]))
        lines += _lines(row, ledger, "flops:executed@avx2")
    return lines


def sm90(path: Path) -> list[Line]:
    """The ops are stored with the counts, since a GPU's differ from those of a CPU."""
    from bitwatt.ledger import Ledger
    from bitwatt.records import Op

    lines = []
    for row in _rows(path):
        ledger = Ledger()
        for phase, ops in row["ops"].items():
            for name, arguments, out, calls in ops:
                op = Op(name, tuple((key, _value(value)) for key, value in arguments), _value(out))
                ledger.add(phase, "", op, calls)
        lines += _lines(row, ledger, "flops:executed@sm90")
    return lines


def _value(stored: Any) -> Any:
    """Lists back to tuples and "@float32[2,3]" back to a tensor's spec."""
    from bitwatt.records import TensorSpec

    if isinstance(stored, list):
        return tuple(map(_value, stored))
    if isinstance(stored, str) and stored.startswith("@"):
        dtype, _, shape = stored[1:-1].partition("[")
        return TensorSpec(tuple(int(size) for size in shape.split(",") if size), dtype)
    return stored


def _table(title: str, groups: dict[str, list[Line]]) -> list[str]:
    text = [f"| {title} | phases | median error | 9 in 10 within | worst | within 5 % | within 10 % |"]
    text.append("|---|--:|--:|--:|--:|--:|--:|")
    for name, lines in groups.items():
        errors = sorted(line.error for line in lines)
        ninth = errors[math.ceil(0.9 * len(errors)) - 1]
        within = [f"{sum(error <= bar for error in errors)} of {len(errors)}" for bar in (0.05, 0.10)]
        middle = statistics.median(errors)
        text.append(
            f"| {name} | {len(errors)} | {middle:.2%} | {ninth:.2%} | {errors[-1]:.1%} | {within[0]} | {within[1]} |"
        )
    return text


def _grouped(lines: list[Line], key: str) -> dict[str, list[Line]]:
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(getattr(line, key), []).append(line)
    return dict(sorted(groups.items())) | {"**all**": lines}


def tables(lines: list[Line]) -> list[str]:
    """Ops by family, whole networks by phase, and what is known to be off and why."""
    known = [line for line in lines if line.reason]
    small = [line for line in lines if line.executed <= FIXED and not line.reason]
    scored = [line for line in lines if line.executed > FIXED and not line.reason]
    agreeing = sum(abs(line.model - line.executed) <= FIXED for line in small)
    right = sum(abs(line.model - line.executed) <= max(0.1 * line.executed, FIXED) for line in lines)
    text = [
        f"{len(lines)} measured phases of {len({line.program for line in lines})} programs. "
        f"{len(small)} of them execute at most {FIXED} operations, where a percentage says nothing: the model agrees "
        f"within {FIXED} operations on {agreeing}. {len(known)} are known to be off; they are left out of the tables "
        f"and listed below them with their reasons. Of all phases, these included, {right} ({right / len(lines):.1%}) "
        f"are within 10 % or {FIXED} operations.",
        "",
    ]
    for title, key, network in (("family of ops", "family", False), ("phase of whole networks", "phase", True)):
        if chosen := [line for line in scored if line.network == network]:
            text += [*_table(title, _grouped(chosen, key)), ""]
    if known:
        text += ["| known to be off because | phases |", "|---|--:|"]
        reasons = Counter(line.reason for line in known)
        text += [f"| {reason} | {n} |" for reason, n in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))]
        text.append("")
    return text
