"""A run as GitHub-flavoured markdown, for pull requests, model cards and READMEs."""

from __future__ import annotations

from bitwatt.harmless import in_lines
from bitwatt.ranks.silence import state_of
from bitwatt.reports.blocks import blocks as parts
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
        blocks.append(f"> {_plain(state_of(run))}")
    blocks.append(" · ".join(f"**{number}** {what}" for number, what, _ in headline(view)))
    blocks += [table(one) for one in tables(view, by)]
    if view.energy is not None and by is None:
        facts = [*view.energy.devices(), *view.energy.facts()]
        lines = [f"- {_plain(name)}: {_plain(text)}" for name, text in facts]
        blocks.append("\n".join(["## Energy", "", f"**{_plain(view.energy.headline)}**", "", *lines]))
    for part in parts(view, by):
        lines = [f"- {_plain(name)}: {_plain(text)}" for name, text in part.facts]
        blocks.append("\n".join([f"## {part.title}", "", f"**{_plain(part.headline)}**", "", *lines]).rstrip())
    blocks.append(f"`{view.model.name}`: {_plain(view.model.about)} ({_plain(view.model.source)})")
    if by is None:
        about = {"command": run.command, "started": when(run), "run": run.id, "fingerprint": view.fingerprint.digest}
        about |= run.machine.facts
        lines = [f"- {_plain(name)}: {_plain(value)}" for name, value in about.items() if value]
        blocks.append("\n".join(["<details><summary>Machine</summary>", "", *lines, "", "</details>"]))
    blocks += [f"> {_plain(note)}" for note in (*run.notes, *(view.energy.notes if view.energy is not None else ()))]
    return in_lines("\n\n".join(blocks)) + "\n"


def table(table: Table) -> str:
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
