"""A run as GitHub-flavoured markdown, for pull requests, model cards and READMEs."""

from __future__ import annotations

from bitwatt.reports.model import View
from bitwatt.reports.replay import verdict
from bitwatt.reports.tables import Table, headline, tables, when


def render(view: View, *, by: str | None = None, width: int | None = None, color: bool = False) -> str:
    run = view.run
    blocks = [f"**{view.coverage}**", f"# {_plain(run.name or run.id)}"]
    if view.missing:
        gaps = [f"- `{gap.op}` {gap.calls:,}x: {_plain(gap.reason)}" for gap in view.missing]
        blocks.append("\n".join(["Missing, so every sum is a lower bound:", "", *gaps]))
    if view.unknown_layers:
        blocks.append("\n".join(["By dtype only:", "", *(f"- {_plain(why)}" for why in view.unknown_layers)]))
    if told := verdict(run):
        blocks.append(_plain(told))
    if run.status != "ok":
        blocks.append(f"> {_plain(run.status)}")
    blocks.append(" · ".join(f"**{number}** {what}" for number, what, _ in headline(view)))
    blocks += [_table(table) for table in tables(view, by)]
    blocks.append(f"`{view.model.name}`: {_plain(view.model.about)} ({_plain(view.model.source)})")
    if by is None:
        facts = {"command": run.command, "started": when(run), "run": run.id, "fingerprint": view.fingerprint.digest}
        facts |= run.machine.facts
        lines = [f"- {_plain(name)}: {_plain(value)}" for name, value in facts.items() if value]
        blocks.append("\n".join(["<details><summary>Machine</summary>", "", *lines, "", "</details>"]))
    blocks += [f"> {_plain(note)}" for note in run.notes]
    return "\n\n".join(blocks) + "\n"


def _table(table: Table) -> str:
    total = table.total_row()
    rows = [[column.title for column in table.columns], *table.rows()]
    if total:
        rows.append([f"**{cell}**" for cell in total])
    drawn = ["| " + " | ".join(_plain(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    ruler = "|" + "|".join(" :-- " if column.left else " --: " for column in table.columns) + "|"
    return "\n".join([f"## {table.title}", "", drawn[0], ruler, *drawn[1:]])


def _plain(text: str) -> str:
    """Text that markdown would read as markup, kept as text."""
    for mark in ("\\", "<", "`"):
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())
