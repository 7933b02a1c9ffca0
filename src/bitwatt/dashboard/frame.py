"""The frame of every page: where one is, where one can go, and the files a page loads."""

from __future__ import annotations

import hashlib
from html import escape
from typing import NamedTuple
from urllib.parse import quote, urlencode

from bitwatt.dashboard.prefix import address
from bitwatt.dashboard.script import SCRIPT
from bitwatt.dashboard.style import ICON, STYLE
from bitwatt.reports.html import script as report_script
from bitwatt.reports.html import style as report_style
from bitwatt.reports.html.layout import Parts, scroll, section

PAGES = {"Runs": "/", "Trends": "/trends", "Ranks": "/ranks", "Deployments": "/deployments", "Live": "/live"}


class File(NamedTuple):
    """Its name says what is in it, so a browser may keep it for good."""

    name: str
    kind: str
    content: bytes


def _file(name: str, kind: str, text: str) -> File:
    content = text.encode()
    stem, _, suffix = name.rpartition(".")
    return File(f"{stem}-{hashlib.sha256(content).hexdigest()[:12]}.{suffix}", kind, content)


_LOOK = _file("style.css", "text/css", report_style.STYLE + report_style.CHARTS + report_style.PAGE + STYLE)
_CHARTS = _file("charts.js", "text/javascript", report_script.SCRIPT)
_OURS = _file("dashboard.js", "text/javascript", SCRIPT)
_ICON = _file("icon.svg", "image/svg+xml", ICON)
FILES = {file.name: file for file in (_LOOK, _CHARTS, _OURS, _ICON)}


def framed(parts: Parts, at: str | None, *, broad: bool = False, refresh: int | None = None) -> str:
    """`at` is one of PAGES, "" for none of them, None where nobody may go anywhere yet. `refresh` is for browsers
    without scripts."""
    again = f'<noscript><meta http-equiv="refresh" content="{refresh}"></noscript>' if refresh else ""
    links = "".join(_link(name, path, name == at) for name, path in PAGES.items()) if at is not None else ""
    pages = f'<nav aria-label="Pages"><ul>{links}</ul></nav>' if links else ""
    inside = "".join(f'<li><a href="#{escape(id)}">{escape(name)}</a></li>' for id, name, _ in parts.sections)
    sections = f'<nav class="inside" aria-label="Sections"><ul>{inside}</ul></nav>' if len(parts.sections) > 2 else ""
    static = address("/static/")
    made = "\n".join(section(id, name, html) for id, name, html in parts.sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<title>{escape(parts.title)} · bitwatt</title>\n'
        f'<link rel="stylesheet" href="{static}{_LOOK.name}"><link rel="icon" href="{static}{_ICON.name}">{again}\n'
        f'<script src="{static}{_CHARTS.name}" defer></script><script src="{static}{_OURS.name}" defer></script>\n'
        f'</head>\n<body class="bitwatt dashboard{" broad" if broad else ""}">\n'
        '<a class="skip" href="#content">Skip to the content</a>\n'
        f'<div class="top"><a class="brand" href="{address("/")}">bitwatt</a>{pages}</div>\n'
        f"<header>{parts.head}</header>\n{sections}\n"
        f'<main id="content" tabindex="-1">\n{made}\n</main>\n<footer>{parts.foot}</footer>\n</body>\n</html>\n'
    )


def _link(name: str, path: str, here: bool) -> str:
    return f'<li><a href="{address(path)}"{" aria-current=page" if here else ""}>{escape(name)}</a></li>'


def url_of_run(id: str) -> str:
    return f"{address('/runs/')}{quote(id, safe='')}"


def url_of_deployment(id: str) -> str:
    return f"{address('/deployments/')}{quote(id, safe='')}"


def url_of_job(job: str, name: str) -> str:
    return f"{address('/ranks/')}{quote(job, safe='')}?{urlencode({'name': name})}"


def url(path: str, asked: list[tuple[str, str]]) -> str:
    """With a query; what is empty is left out."""
    told = [(name, value) for name, value in asked if value]
    return f"{address(path)}?{urlencode(told)}" if told else address(path)


def link(to: str, text: str, kind: str = "") -> str:
    return f'<a{f" class={kind}" if kind else ""} href="{escape(to)}">{escape(text)}</a>'


def alert(text: str) -> str:
    return f'<p class="alert" role="alert">{escape(text)}</p>'


def lines_of(caption: str, heads: str, rows: str) -> str:
    """A table of which every row is a card on a phone. `heads` and `rows` are markup; roles keep it a table there."""
    group = 'role="rowgroup"'
    inside = f'<thead {group}><tr role="row">{heads}</tr></thead><tbody {group}>{rows}</tbody>'
    return scroll(caption, inside, 'class="lines runs" role="table"')
