"""The page of all runs: filtered, sorted, in columns that one chooses, some of them marked to be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from bitwatt.dashboard.asking import LINES, SORT, Asked
from bitwatt.dashboard.catalog import Catalog
from bitwatt.dashboard.finding import is_number, search, titled
from bitwatt.dashboard.frame import alert, framed, lines_of, link, url_of_job, url_of_run
from bitwatt.dashboard.prefix import address
from bitwatt.errors import BitwattError
from bitwatt.harmless import on_terminal
from bitwatt.jobs import so_far, state_of_job, without_joined
from bitwatt.ranks.silence import state_of
from bitwatt.reports.html.layout import Parts, note
from bitwatt.store import Header
from bitwatt.store.cells import cell, default_columns
from bitwatt.store.filters import field_of
from bitwatt.store.index import Index

#: Letters of a cell, and from which it is wide; files that are named.
_CELL, _WORDY, _NAMED = 120, 30, 20
_SUMS = ("flops", "bops", "macs", "bytes")
#: Runs that are looked through to fill a page whose jobs have many ranks.
_MOST = 5_000

#: The ranks of a job that stand in one line, or one run.
Line = list[Header]


def runs_page(catalog: Catalog, asked: Asked) -> tuple[int, str]:
    """Status and page. A filter that is wrong is told of, and left in its box."""
    index = catalog.look()
    try:
        total, lines, end = _found(index, asked)
        columns, trouble = _columns(asked, lines), ""
    except BitwattError as error:
        total, lines, end, columns, trouble = 0, [], 0, ["name"], str(error)
    short = "/".join(catalog.where.split("/")[-2:])
    head = f'<h1>Runs</h1><p class="meta"><span title="{escape(catalog.where)}">{escape(short)}</span></p>'
    sections = [("search", "Find", search(index, asked, columns) + (alert(trouble) if trouble else ""))]
    if not trouble:
        found = _form(asked, columns, lines) + _pager(asked, total, end) if lines else _none(catalog, index, asked)
        sections.append(("runs", "Runs that fulfil it" if asked.text else "Kept runs", found + _damaged(index)))
    return 400 if trouble else 200, framed(Parts("Runs", head, sections), at="Runs", broad=True)


def _found(index: Index, asked: Asked) -> tuple[int, list[Line], int]:
    """How many there are; one page of lines, in which ranks of a job stand together; and where the next begins."""
    lines: dict[tuple[str, ...], Line] = {}
    total, at = index.count(asked.where), asked.start
    while len(lines) < LINES and at < min(total, asked.start + _MOST):
        chunk = index.select(asked.where, asked.sort, LINES, at)
        if not chunk:
            break
        for header in chunk:
            key = (header.id, str(header.path)) if header.rank is None else (header.rank.job, header.name, "job")
            if key not in lines and len(lines) == LINES:
                return total, list(without_joined(lines).values()), at
            lines.setdefault(key, []).append(header)
            at += 1
    return total, list(without_joined(lines).values()), at


def _columns(asked: Asked, lines: list[Line]) -> list[str]:
    if asked.columns:
        for name in asked.columns:
            if name != "tags":
                field_of(name)
        return [name for name in dict.fromkeys(asked.columns) if name != "name"]
    found = default_columns([line[0] for line in lines], jobs=True)
    return ["started", *(name for name in found if name not in ("id", "name"))]


def _form(asked: Asked, columns: Sequence[str], lines: list[Line]) -> str:
    heads = "".join(_head(asked, name) for name in ["name", *columns])
    body = "".join(_row(line, columns) for line in lines)
    table = lines_of("Runs", f'<td class="mark"></td>{heads}', body)
    bar = '<div class="bar-of-marks"><button type="submit" data-count="Compare">Compare the marked</button></div>'
    hidden = '<input type="hidden" name="order" value="time">'
    return f'<form method="get" action="{address("/compare")}">{hidden}{bar}{table}</form>'


def _head(asked: Asked, name: str) -> str:
    number = is_number(name) or name == "started"
    kind = ' class="number"' if is_number(name) else ""
    if name == "tags":
        return f'<th scope="col" role="columnheader"{kind}>tags</th>'
    now = asked.sort.removeprefix("-") == name
    down = asked.sort.startswith("-") if now else not number
    to = asked.url(sort=name if down else f"-{name}", start=0)
    told = f' aria-sort="{"descending" if down else "ascending"}"' if now else ""
    arrow = (" ↓" if down else " ↑") if now else ""
    return f'<th scope="col" role="columnheader"{kind}{told}>{link(to, titled(name) + arrow, "sort")}</th>'


def _row(line: Line, columns: Sequence[str]) -> str:
    header, job = _together(line), ""
    name, told = on_terminal(header.name or header.id)[:_CELL], on_terminal(header.id)[:_CELL]
    if header.rank is not None:
        whole = len(line) == header.rank.world
        told += f" · {'sums of all ranks' if whole else f'rank {header.rank.rank}'}"
        job = f" {link(url_of_job(header.rank.job, header.name), f'{header.rank.world} ranks', 'ranks')}"
    box = f'<input type="checkbox" name="run" value="{escape(header.id)}" aria-label="Mark {escape(name)} to compare">'
    cells = "".join(_cell(header, column) for column in columns)
    first = f"{link(url_of_run(header.id), name)}{job}<small>{escape(told)}</small>"
    row = f'<td role="cell" class="mark">{box}</td><th scope="row" role="rowheader">{first}</th>{cells}'
    return f'<tr role="row">{row}</tr>'


def _together(line: Line) -> Header:
    """A job whose ranks are all there as one: work is added up, and of energy nothing is said, since ranks of one
    machine read the same meter. Of a job that is not all there, one of them."""
    first = min(line, key=lambda one: one.rank.rank if one.rank is not None else 0)
    if first.rank is None or len(line) == 1:
        return so_far(first)
    if len(line) < first.rank.world:
        return replace(so_far(line[0]), status=state_of_job(line))
    line = [so_far(one) for one in line]
    known = [one.summary.get("totals", {}) for one in line]
    sums = {
        name: sum(one[name] for one in known) for name in _SUMS if all(isinstance(one.get(name), int) for one in known)
    }
    kept = {name: value for name, value in first.summary.items() if name not in ("energy_j", "grams", "cost", "totals")}
    status = "ok" if all(one.status == "ok" for one in line) else state_of_job(line)
    return replace(first, seconds=max(one.seconds for one in line), status=status, summary={**kept, "totals": sums})


def _cell(header: Header, name: str) -> str:
    shown = cell(header, name)
    if name == "status":
        return f'<td role="cell" class="long" data-head="status">{badge(state_of(header))}</td>'
    kind = "number" if is_number(name) else "long wordy" if len(shown) > _WORDY else "long"
    return f'<td role="cell" class="{kind}" data-head="{escape(titled(name))}">{escape(_short(shown))}</td>'


def badge(status: str) -> str:
    is_live = status.endswith("under way") and " lost" not in status
    kind = "good" if status == "ok" else "live" if is_live else "bad"
    return f'<span class="badge {kind}">{escape(_short(on_terminal(status), 60))}</span>'


def _short(text: str, most: int = _CELL) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _pager(asked: Asked, total: int, end: int) -> str:
    links = []
    if asked.start:
        links.append(link(asked.url(start=max(asked.start - LINES, 0)), "← Before", "button"))
    if end < total:
        links.append(link(asked.url(start=end), "Next →", "button"))
    told = f"<span>{asked.start + 1:,} to {end:,} of {total:,}</span>"
    return f'<nav class="pager" aria-label="More runs">{told}{"".join(links)}</nav>'


def _none(catalog: Catalog, index: Index, asked: Asked) -> str:
    known = index.count()
    if not known:
        return note(f"No run is kept in {catalog.where} yet. Make one with: bitwatt run script.py")
    first = replace(asked, start=0)
    if asked.start and index.count(asked.where):
        return f"{note('There are no more.')}<p>{link(first.url(), 'The first ones', 'button')}</p>"
    clear = link(Asked(sort=SORT).url(), "All runs", "button")
    return f"{note(f'None of the {known:,} runs fulfils that.')}<p>{clear}</p>"


def _damaged(index: Index) -> str:
    damaged = index.damaged
    if not damaged:
        return ""
    told = "".join(f"<li>{escape(on_terminal(str(error)))}</li>" for error in damaged[:_NAMED])
    more = f"<li>and {len(damaged) - _NAMED:,} more</li>" if len(damaged) > _NAMED else ""
    many = "1 file is" if len(damaged) == 1 else f"{len(damaged):,} files are"
    return (
        f'<details class="damaged"><summary>{many} no runs, or cannot be read</summary><ul>{told}{more}</ul></details>'
    )
