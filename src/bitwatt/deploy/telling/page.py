"""Findings as one self-contained page: what to take and why, trade-offs drawn, every number in tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from bitwatt.comparing.drawing import plain
from bitwatt.comparing.tables import Table
from bitwatt.deploy import intervals
from bitwatt.deploy.amounts import percent
from bitwatt.deploy.telling import drawn
from bitwatt.deploy.telling.endpoints import offered
from bitwatt.deploy.telling.ranking import number, setting_of
from bitwatt.deploy.telling.selection import usual
from bitwatt.deploy.telling.summary import settings
from bitwatt.deploy.telling.tables import (
    WORDS,
    about,
    checked,
    elsewhere,
    failures,
    headline,
    quantisation,
    remarks,
    scenarios,
    selected,
    tables,
    warnings,
    where,
)
from bitwatt.deploy.telling.tradeoffs import COLUMNS, Row
from bitwatt.deploy.telling.words import milliseconds, rate
from bitwatt.reports.html.layout import Parts, facts, how_to_get_charts, note, page, plain_table, switch
from bitwatt.reports.html.style import STYLE

if TYPE_CHECKING:
    from bitwatt.deploy.telling.findings import Findings

Section = tuple[str, str, str]
#: Letters of a text that stands among numbers.
_SHORT = 30
#: What a row of a table is called: names of columns are long, and break after an underscore.
_NAME = re.compile(r'(?<=<th scope="row" role="rowheader">)[^<]+')
#: A column that holds one end of a ratio's interval.
_END = re.compile(r"(ratio_to_\w+)_(?:low|high)")


def page_of(findings: Findings) -> str:
    return page(*parts_of(findings))


def parts_of(findings: Findings) -> Parts:
    told = "".join(f"<li>{escape(plain(line))}</li>" for line in remarks(findings))
    facts_of = {**findings.study.machine, **findings.study.versions}
    foot = f"<ul>{told}</ul>{facts((plain(name), plain(text)) for name, text in facts_of.items())}"
    return Parts(_title(findings), _head(findings), list(_sections(findings)), foot)


def fragment(findings: Findings) -> str:
    """For a notebook: the words and the tables, no script."""
    inside = "".join(_table(one) for one in tables(findings))
    body = f"<header>{_head(findings)}</header><section><h2>Scenarios</h2>{inside}</section>"
    return f'<style>{STYLE}</style>\n<div class="bitwatt">{body}</div>'


def _title(findings: Findings) -> str:
    return f"Deployment of {plain(str(findings.study.case.get('name') or 'a model'))}"


def _head(findings: Findings) -> str:
    said = "".join(
        f'<p class="energy">{escape(plain(line))}</p>' for line in (headline(findings), *elsewhere(findings))
    )
    beware = "".join(f"<li>{escape(plain(line))}</li>" for line in warnings(findings))
    alert = f'<div class="alert"><ul>{beware}</ul></div>' if beware else ""
    title = f"<h1>{escape(_title(findings))}</h1>"
    return f'{title}<p class="meta"><span>{escape(plain(about(findings)))}</span></p>{said}{alert}{how_to_get_charts()}'


def _sections(findings: Findings) -> Iterator[Section]:
    here = [one for one in settings(findings.study) if any(setting_of(row) == one for row in findings.ranker.rows)]
    if here:
        choices = [(where(findings, one), "".join(html for _, html in drawn.trade_offs(findings, one))) for one in here]
        if any(html for _, html in choices):
            yield "trade-offs", "Trade-offs", switch("trade-offs-at", "Setting", choices)
        inside = "".join(
            f"<h3>{escape(where(findings, one))}</h3>{_table(scenarios(findings, one), 'Scenario')}" for one in here
        )
        yield "scenarios", "Scenarios", drawn.latencies(findings, here) + inside
    yield "selection", "Which to take", _selection(findings)
    if lines := quantisation(findings):
        yield "quantisation", "Quantisation", f"<ul>{''.join(f'<li>{escape(plain(one))}</li>' for one in lines)}</ul>"
    if failed := failures(findings):
        rows = [(plain(name), plain(why)) for name, why in failed]
        yield "not-ranked", "Not ranked", plain_table("What is in no ranking", ("Scenario", "Why"), rows)
    if parts := _breakdown(findings):
        yield "breakdown", "Parts of a call", parts
    if load := _load(findings):
        yield "load", "Under load", load
    yield "checklist", "Production checklist", _checklist(findings)
    if findings.rows:
        yield "all", "All numbers", _all(findings)


def _table(table: Table, first: str = "") -> str:
    """`first` stands above the names of rows, where the table's title is told elsewhere."""
    rows = [[plain(cell) for cell in row] for row in table.rows]
    # a column of single words is set as numbers are, which are not broken: fp64 is not fp6 and 4
    words = [all(" " not in row[i] for row in rows) for i in range(len(table.columns))]
    numbers = [i for i, column in enumerate(table.columns) if not column.left or (i and words[i])]
    heads = [plain(column.title) for column in table.columns]
    return plain_table(table.title, [first or heads[0], *heads[1:]], rows, numbers)


def _selection(findings: Findings) -> str:
    rows = [tuple(map(plain, row)) for row in selected(findings)]
    table = plain_table("Which to take", ("Need", "Scenario", "Why", "Rule"), rows, [1])
    chosen = findings.recommended
    return table + note(plain(f"Recommended is {chosen.scenario or 'none'}: {chosen.rule}."))


def _breakdown(findings: Findings) -> str:
    rows, notes = [], list[str]()
    for one in findings.study.scenarios:
        for batch, parts in one.breakdown.items():
            cells = [milliseconds(parts.ms(group)) for group in ("preprocess", "linear", "postprocess")]
            over = "?" if parts.overhead is None else percent(parts.overhead)
            rest = "none" if (parts.unattributed_ms or 0) < 0 else milliseconds(parts.unattributed_ms)
            rows.append((plain(one.name), str(batch), *cells, rest, over, plain(parts.source)))
            notes += [f"{one.name}, batch {batch}: {parts.note}"] if parts.note else []
    if not rows:
        return ""
    heads = ("Scenario", "Batch", "Preprocessing", "Linear operator", "Postprocessing", "Outside of it",
             "Profiler's overhead", "From")  # fmt: skip
    told = "".join(note(plain(one)) for one in notes)
    return (
        drawn.parts_of_calls(findings, findings.study.plan.batches)
        + plain_table("Parts", heads, rows, range(1, 7))
        + told
    )


def _load(findings: Findings) -> str:
    rows = []
    for one in findings.study.scenarios:
        for point in one.load.points if one.load is not None else ():
            if point.kind == "probe":  # of a search: what it found is told
                continue
            cells = [milliseconds(value) for value in (point.p50_ms, point.p95_ms, point.p99_ms, point.service_p95_ms)]
            state = "saturated" if point.saturated else ""
            rows.append(
                (
                    plain(one.name),
                    point.kind,
                    offered(point),
                    rate(point.achieved_rate),
                    *cells,
                    f"{point.failed:,}",
                    state,
                )
            )
    if not rows:
        return ""
    heads = ("Scenario", "Load", "Offered", "Achieved", "p50", "p95", "p99", "p95 of service", "Failed", "")
    told = [
        f"{one.name}: {one.load.note}" for one in findings.study.scenarios if one.load is not None and one.load.note
    ]
    notes = "".join(note(plain(line)) for line in told)
    return drawn.loads(findings) + plain_table("Load", heads, rows, range(2, 9)) + notes


def _checklist(findings: Findings) -> str:
    rows = [(plain(one.name), WORDS[one.passed], plain(one.told)) for one in checked(findings)]
    return plain_table("Production checklist", ("Item", "Found", "Number"), rows, badges=1)


def _all(findings: Findings) -> str:
    """Every column of the CSV, a line each: what a spreadsheet would show, with how it was obtained."""
    setting = usual(findings.study)
    chosen = [row for row in findings.rows if row["failure"] is None and setting_of(row) == setting]
    heads = ("Column", *(plain(str(row["scenario"])) for row in chosen), "How it is obtained")
    rows = [
        (name, *(_shown(row, name) for row in chosen), told.replace("`", ""))
        for name, told in COLUMNS.items()
        if name != "scenario" and any(row[name] is not None for row in chosen) and not _wordy(chosen, name)
    ]
    told = f"At {where(findings, setting)}; hardware_tradeoffs.csv has all settings."
    table = plain_table("All numbers", heads, rows, range(1, len(chosen) + 1)) if rows else ""
    return note(told) + _NAME.sub(lambda name: name[0].replace("_", "_<wbr>"), table)


def _wordy(rows: list[Row], name: str) -> bool:
    return any(isinstance(row[name], str) and len(str(row[name])) > _SHORT for row in rows)


def _shown(row: Row, name: str) -> str:
    value = row[name]
    if (ratio := _END.fullmatch(name)) and value is not None:
        ends = [number(row, f"{ratio[1]}_{end}") for end in ("low", "high")]
        if not intervals.tells(*ends):
            return intervals.TOO_FEW
    return "" if value is None else f"{value:.5g}" if isinstance(value, float) else plain(str(value))
