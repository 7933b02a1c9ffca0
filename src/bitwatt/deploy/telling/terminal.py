"""Findings for a terminal, in its width, and as markdown. Names are anybody's: none steers a terminal or is markup."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from bitwatt.comparing import drawing
from bitwatt.comparing.drawing import draw, markdown_table, marked, plain
from bitwatt.comparing.tables import Column, Table
from bitwatt.deploy.telling.tables import (
    MARKS,
    about,
    checked,
    elsewhere,
    failures,
    headline,
    quantisation,
    remarks,
    selected,
    tables,
    warnings,
)
from bitwatt.reports.text import WIDTH, length, padded

if TYPE_CHECKING:
    from bitwatt.deploy.telling.findings import Findings

_BOLD, _DIM, _RED, _GREEN, _YELLOW = "1", "2", "31", "32", "33"
_TONES = {True: _GREEN, False: _RED, None: _YELLOW}


def text(findings: Findings, width: int | None = None, color: bool = False) -> str:
    room = max(width or WIDTH, 40)
    lines: list[str] = []

    def say(told: str, style: str = "", indent: str = "  ") -> None:
        for line in wrapped(told, room, indent):
            lines.append(f"\x1b[{style}m{line}\x1b[0m" if color and style else line)

    def listing(title: str, pairs: list[tuple[str, str, str]]) -> None:
        """A name, and beside it what is said of it, over as many lines as it takes."""
        if not pairs:
            return
        lines.append("")
        say(title, _BOLD)
        names = [plain(name) for name, _, _ in pairs]
        across = min(max(map(length, names)), room // 3)
        for name, (_, told, style) in zip(names, pairs, strict=True):
            for i, line in enumerate(wrapped(told, room - across - 2) or [""]):
                drawn = f"{padded('' if i else name, across, left=True)}  {line}"
                lines.append(f"\x1b[{style}m{drawn}\x1b[0m" if color and style else drawn)

    say(about(findings), _DIM)
    say(headline(findings), _BOLD)
    for told in elsewhere(findings):
        say(told, _BOLD)
    for told in warnings(findings):
        say(f"beware: {told}", _RED)
    drawn = [draw(table, room, color) for table in tables(findings)]
    for one in drawn:
        lines += ["", *(one if one is drawn[-1] else _without_notes(one))]
    listing("Not ranked", [(name, why, "") for name, why in failures(findings)])
    chosen = [(need, f"{name}: {why}", "") for need, name, why, _ in selected(findings)]
    listing("Selection", chosen)
    if quantised := quantisation(findings):
        lines.append("")
        say("Quantisation", _BOLD)
        for told in quantised:
            say(told)
    items = [(f"{MARKS[one.passed]} {one.name}", one.told, _TONES[one.passed]) for one in checked(findings)]
    listing("Production checklist", items)
    lines.append("")
    for told in remarks(findings):
        say(f"note: {told}", _DIM)
    return "\n".join(lines) + "\n"


def wrapped(told: str, width: int, indent: str = "") -> list[str]:
    """Lines of a sentence in which names stay whole: onnx-fp32 is not onnx- and fp32."""
    firm = "\N{NON-BREAKING HYPHEN}"
    return [line.replace(firm, "-") for line in drawing.wrapped(told.replace("-", firm), width, indent)]


def _without_notes(lines: list[str]) -> list[str]:
    """What there was no room for is told once."""
    return list(takewhile(lambda line: not line.startswith("no room for"), lines))


def markdown(findings: Findings) -> str:
    blocks = [f"## {marked(str(findings.study.case.get('name') or 'Deployment'))}", marked(about(findings))]
    blocks.append("\n".join(f"**{marked(told)}**  " for told in (headline(findings), *elsewhere(findings))))
    if beware := list(warnings(findings)):
        blocks.append("\n".join(f"> {marked(told)}  " for told in beware))
    blocks += [markdown_table(table) for table in tables(findings)]
    if failed := failures(findings):
        blocks.append("\n".join(f"- {marked(name)}: {marked(why)}" for name, why in failed))
    left = (
        Column("Need", left=True),
        Column("Scenario", left=True),
        Column("Why", left=True),
        Column("Rule", left=True),
    )
    blocks.append(markdown_table(Table("Selection", left, tuple(selected(findings)))))
    if quantised := quantisation(findings):
        blocks.append("\n".join(f"- {marked(told)}" for told in quantised))
    rows = tuple((MARKS[one.passed], one.name, one.told) for one in checked(findings))
    heads = (Column("", left=True), Column("Production checklist", left=True), Column("", left=True))
    blocks.append(markdown_table(Table("Checklist", heads, rows)))
    blocks.append("\n".join(f"- {marked(told)}" for told in remarks(findings)))
    return "\n\n".join(blocks) + "\n"
