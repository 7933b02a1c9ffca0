"""Outcomes of a check: text for a terminal, markdown for a step summary, JUnit, JSON, and github-action-benchmark's."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bitwatt.budgets.checking import EXCEEDED, KEPT, UNDECIDED, UNGATED, Outcome
from bitwatt.budgets.limits import exactly, is_hard, shown
from bitwatt.comparing.drawing import draw, markdown_table, plain, wrapped
from bitwatt.comparing.tables import MORE, Column, Table
from bitwatt.records import Run

if TYPE_CHECKING:
    from bitwatt.comparing import Comparison

_SIGNS = {KEPT: "✓", EXCEEDED: "✗", UNDECIDED: "?", UNGATED: "–"}


def headline(outcomes: Sequence[Outcome]) -> str:
    counts = {status: sum(one.status == status for one in outcomes) for status in _SIGNS}
    told = ", ".join(f"{n} {status}" for status, n in counts.items() if n)
    return f"{'over budget' if counts[EXCEEDED] else 'within budget'}: {told}"


def table(outcomes: Sequence[Outcome], *, reasons: bool = True) -> Table:
    relative = any(one.before is not None for one in outcomes)
    columns = [Column("Limits", left=True), Column("is"), Column("at most")]
    columns += [Column("baseline", spare=1)] if relative else []
    columns += [Column("", left=True, firm=True)]
    rows = []
    for one in outcomes:
        unit = one.limit.unit
        cells = [one.limit.name, _amount(one), _at_most(one)]
        cells += [shown(one.before, unit)] if relative else []
        rows.append((*cells, _status(one) if reasons else _mark(one)))
    return Table("Limits", tuple(columns), tuple(rows), tuple(MORE if one.fails else "" for one in outcomes))


def _mark(one: Outcome) -> str:
    return f"{_SIGNS[one.status]} {one.status}"


def _status(one: Outcome) -> str:
    return ": ".join(filter(None, (_mark(one), why(one))))


def _amount(one: Outcome) -> str:
    return shown(one.amount, one.limit.unit)


def _at_most(one: Outcome) -> str:
    """What the user wrote, where it is no amount by itself."""
    if one.at_most is None:
        return one.limit.text
    amount = shown(one.at_most, one.limit.unit)
    return f"{amount} ({one.limit.text})" if one.limit.is_relative else amount


def why(one: Outcome) -> str:
    """What a status rests on."""
    told = []
    if one.fails and one.amount is not None and one.at_most is not None:
        over = exactly(one.amount) - one.at_most
        digits = f" ({int(over):,})" if is_hard(one.limit.quantity) and over.denominator == 1 and over >= 1000 else ""
        told.append(f"by {shown(over, one.limit.unit)}{digits}")
    if one.spread is not None:
        low, high = (shown(end, one.limit.unit) for end in one.spread)
        told.append(f"95 % interval {low} to {high}, n {one.n}")
    return "; ".join(filter(None, [*told, one.why.removeprefix("not gated: ")]))


def text(outcomes: Sequence[Outcome], runs: Sequence[Run], width: int, color: bool = False) -> str:
    run = runs[0]
    many = f" and {len(runs) - 1} more like it" if len(runs) > 1 else ""
    lines = [plain(f"{run.name or run.id} · {run.id}{many}"), headline(outcomes), ""]
    lines += draw(table(outcomes, reasons=False), width, color)
    told = [f"{one.limit.name} {one.status}: {why(one)}" for one in outcomes if why(one)]
    return "\n".join([*lines, "", *(line for one in told for line in wrapped(one, width, "  "))]).rstrip() + "\n"


def markdown(outcomes: Sequence[Outcome], comparison: Comparison | None = None) -> str:
    """For a step summary or a comment: the limits, then what changed against the baseline."""
    blocks = [f"## bitwatt: {headline(outcomes)}", markdown_table(table(outcomes))]
    if comparison is not None:
        blocks.append(f"#{comparison.render('markdown')}")  # its title is one of ours, a step below
    return "\n\n".join(blocks).rstrip() + "\n"


def document(outcomes: Sequence[Outcome], runs: Sequence[Run]) -> dict[str, Any]:
    return {
        "format": "bitwatt.check",
        "version": 1,
        "runs": [run.id for run in runs],
        "ok": not any(one.fails for one in outcomes),
        "limits": [
            {
                "quantity": one.limit.quantity,
                "phase": one.limit.where.phase or None,
                "layer": one.limit.where.layer or None,
                "limit": one.limit.text,
                "at_most": None if one.at_most is None else _number(one.at_most),
                "amount": one.amount,
                "baseline": one.before,
                "unit": one.limit.unit,
                "status": one.status,
                "why": one.why,
                "n": one.n,
                "interval": None if one.spread is None else list(one.spread),
            }
            for one in outcomes
        ],
    }


def _number(amount: Any) -> int | float:
    return int(amount) if amount.denominator == 1 else float(amount)


def junit(outcomes: Sequence[Outcome], runs: Sequence[Run]) -> str:
    """One test case for each limit. What is not gated is skipped, not passed."""
    failed = sum(one.fails for one in outcomes)
    skipped = sum(one.status in (UNGATED, UNDECIDED) for one in outcomes)
    suite = ElementTree.Element(
        "testsuite", name="bitwatt", tests=str(len(outcomes)), failures=str(failed), errors="0", skipped=str(skipped)
    )
    for one in outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", classname=plain(runs[0].name or "run"), name=plain(one.limit.name)
        )
        told = plain(f"{_amount(one)}, at most {_at_most(one)}: {one.status} {why(one)}")
        if one.fails:
            ElementTree.SubElement(case, "failure", message=told).text = told
        elif one.status in (UNGATED, UNDECIDED):
            ElementTree.SubElement(case, "skipped", message=told)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def benchmark(outcomes: Sequence[Outcome], runs: Sequence[Run]) -> list[dict[str, Any]]:
    """As github-action-benchmark's customSmallerIsBetter reads it."""
    name = plain(runs[0].name or runs[0].id)
    found = []
    for one in outcomes:
        if one.amount is None:
            continue
        entry = {"name": f"{name}: {plain(one.limit.name)}", "unit": one.limit.unit or "count", "value": one.amount}
        if one.spread is not None:
            entry["range"] = f"{one.spread[0]:.6g} to {one.spread[1]:.6g}"
        entry["extra"] = plain(f"limit {one.limit.text}\n{one.status}; n {one.n}; run {runs[0].id}")
        found.append(entry)
    return found
