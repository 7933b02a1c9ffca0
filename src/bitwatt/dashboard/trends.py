"""The page of model versions: quality against what it costs, with the front of those that none beats, and how both went
from version to version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

from bitwatt import charts
from bitwatt.charts import Chart, Dot, Series
from bitwatt.dashboard.asking import joined, words
from bitwatt.dashboard.catalog import Catalog
from bitwatt.dashboard.frame import alert, framed, lines_of, link, url, url_of_run
from bitwatt.dashboard.prefix import address
from bitwatt.dashboard.versions import COSTS, Version, best, less_is_better, thinned, versions
from bitwatt.errors import BitwattError
from bitwatt.harmless import on_terminal
from bitwatt.reports.html.layout import Parts, figure, how_to_get_charts, note, switch
from bitwatt.units import format_count

#: Dots of a chart, names with a colour or a line of their own, versions along a line, lines of the table.
_DOTS, _NAMES, _ALONG, _LISTED = 400, 7, 40, 100
_AXES = ("bops", "energy_j")
Section = tuple[str, str, str]


class Drawn(NamedTuple):
    """As asked for; "" is for the page to choose."""

    q: str = ""
    metric: str = ""
    better: str = ""  # more, less
    each: str = ""  # version, run
    x: tuple[str, ...] = ()


def trends_page(catalog: Catalog, asked: Drawn) -> tuple[int, str]:
    index = catalog.look()
    metrics = [name.removeprefix("metric.") for name in index.columns() if name.startswith("metric.")]
    head = (
        "<h1>Trends</h1>" + note("Versions of models: what they are worth, and what they cost.") + how_to_get_charts()
    )
    if not metrics:
        empty = note('No run has a metric yet. Note one in the program: bitwatt.metric("accuracy", 0.93)')
        return 200, framed(Parts("Trends", head, [("none", "Nothing to draw", empty)]), at="Trends")
    asked, trouble = _settled(catalog, asked, metrics)
    found: list[Version] = []
    try:
        headers = index.select([*words(asked.q), *_having(asked.metric)])
        found = versions(headers, asked.metric, asked.x, each_run=asked.each == "run")
    except BitwattError as error:
        trouble = str(error)
    form = ("choose", "Choose", _form(asked, metrics) + (alert(trouble) if trouble else ""))
    key = ("trends", address("/"), asked, tuple((one.key, one.label, one.quality, str(one.costs)) for one in found))
    made = catalog.pages.get(key, lambda: framed(Parts("Trends", head, [form, *_sections(asked, found)]), at="Trends"))
    return 400 if trouble else 200, made


def _settled(catalog: Catalog, asked: Drawn, metrics: Sequence[str]) -> tuple[Drawn, str]:
    usual = catalog.settings.worth_metric
    wanted = [asked.metric, usual or "", "accuracy", *metrics]
    metric = next(name for name in wanted if name in metrics)
    told = f"no run has a metric {asked.metric!r}" if asked.metric and asked.metric not in metrics else ""
    less = catalog.settings.worth_lower_is_better if metric == usual else less_is_better(metric)
    axes = tuple(name for name in dict.fromkeys(asked.x) if name in COSTS)[:3] or _AXES
    better = asked.better if asked.better in ("more", "less") else "less" if less else "more"
    return Drawn(asked.q, metric, better, "run" if asked.each == "run" else "version", axes), told


def _having(metric: str) -> list[str]:
    """Lets the index find the runs that have it, where filters can name it."""
    return [f"metric.{metric}>-1e999"] if not any(sign in metric for sign in "=<>~!") else []


def _form(asked: Drawn, metrics: Sequence[str]) -> str:
    def select(name: str, label: str, options: Sequence[tuple[str, str]], now: str) -> str:
        inside = "".join(
            f'<option value="{escape(value)}"{" selected" if value == now else ""}>{escape(text)}</option>'
            for value, text in options
        )
        return f'<div><label for="{name}">{label}</label><select id="{name}" name="{name}">{inside}</select></div>'

    axes = "".join(
        f'<label><input type="checkbox" name="x" value="{name}"{" checked" if name in asked.x else ""}>{title}</label>'
        for name, (title, _) in COSTS.items()
    )
    return (
        f'<form class="chosen search" method="get" action="{address("/trends")}">'
        + select("metric", "Quality", [(name, on_terminal(name)[:80]) for name in metrics], asked.metric)
        + select("better", "of which", [("more", "more is better"), ("less", "less is better")], asked.better)
        + select("each", "A dot is", [("version", "a version of a model"), ("run", "a run")], asked.each)
        + '<div class="wide-one"><label for="q">Filters</label><input id="q" name="q" type="search" spellcheck="false" '
        f'autocapitalize="off" value="{escape(asked.q)}" placeholder="name~resnet since=30d"></div>'
        f'<fieldset><legend>against (up to three)</legend><div class="boxes">{axes}</div></fieldset>'
        '<button type="submit">Draw</button></form>'
    )


def _sections(asked: Drawn, found: list[Version]) -> list[Section]:
    if not found:
        return [("none", "Nothing to draw", note(f"No run that ended well has {asked.metric}, or none fulfils that."))]
    lower = asked.better == "less"
    fronts = {cost: best(found, cost, lower=lower) for cost in asked.x}
    made = [_against(asked, found, cost, fronts[cost]) for cost in asked.x]
    if asked.each == "version" and (lines := _along(asked, found)):
        made.append(("along", "From version to version", lines))
    made.append(("table", "Versions" if asked.each == "version" else "Runs", _table(asked, found, fronts)))
    return made


def _against(asked: Drawn, found: list[Version], cost: str, front: set[str]) -> Section:
    title, unit = COSTS[cost]
    known = [one for one in found if cost in one.costs]
    name = f"{on_terminal(asked.metric)[:60]} against {title}"
    if not known:
        return cost.replace("_", "-"), name, note(f"Of none of them is known: {title}.")
    often = Counter(one.name for one in known).most_common(_NAMES)
    own = {called for called, _ in often} if len(often) > 1 else set()

    def dot(one: Version) -> Dot:
        group = one.name if one.name in own else "others" if own else ""
        return Dot(one.label, one.costs[cost], one.quality, group)

    shown = thinned(known, front, _DOTS)
    edge = sorted((dot(one) for one in known if one.key in front), key=lambda one: one.x)
    amounts = [one.costs[cost] for one in known]
    wide = min(amounts) > 0 and max(amounts) > 30 * min(amounts)
    quality = on_terminal(asked.metric)[:60]
    caption = f"{name}; a dot is {'a version of a model' if asked.each == 'version' else 'a run'}"
    drawn = figure(lambda width: charts.scatter(caption, [dot(one) for one in shown], (title, unit), (quality, ""),
                                                log_x=wide, edge=edge, width=width))  # fmt: skip
    told = (
        f"On the dashed line are the {len(edge)} that none beats in both: the Pareto front."
        if len(edge) > 1
        else "One beats all others."
    )
    if len(shown) < len(known):
        told += f" {len(shown):,} of {len(known):,} are drawn, those on the line all."
    if missing := len(found) - len(known):
        told += f" Of {missing:,} it is not known."
    return cost.replace("_", "-"), name, drawn + note(told)


def _along(asked: Drawn, found: list[Version]) -> str:
    """Lines of the models that have several versions, the newest ones."""
    often = [name for name, n in Counter(one.name for one in found if one.version).most_common(_NAMES) if n > 1]
    chosen = [one for one in found if one.name in often and one.version]
    if not chosen:
        return ""
    along = list(dict.fromkeys(one.version for one in chosen))[-_ALONG:]
    choices = []
    quality = on_terminal(asked.metric)[:60]
    amounts: list[tuple[str, str, Callable[[Version], float | None]]] = [(quality, "", lambda one: one.quality)]
    amounts += [(*COSTS[cost], _of(cost)) for cost in asked.x]
    for title, unit, amount in amounts:
        series = [Series(name, _points(chosen, name, along, amount)) for name in often]
        if any(len(one.points) > 1 for one in series):
            choices.append((title, figure(_lines(title, unit, series, along))))
    return switch("along-what", "What is drawn", choices) if any(html for _, html in choices) else ""


def _of(cost: str) -> Callable[[Version], float | None]:
    return lambda one: one.costs.get(cost)


def _points(
    chosen: Sequence[Version], name: str, along: Sequence[str], amount: Callable[[Version], float | None]
) -> tuple[tuple[float | str, float], ...]:
    known = {one.version: value for one in chosen if one.name == name and (value := amount(one)) is not None}
    return tuple((version, known[version]) for version in along if version in known)


def _lines(title: str, unit: str, series: Sequence[Series], along: Sequence[str]) -> Callable[[int], Chart]:
    axis = f"{title} ({unit})" if unit else title
    name = f"{title} by version"
    return lambda width: charts.lines(name, series, "version", axis, unit=unit, order=along, width=width)


def _table(asked: Drawn, found: Sequence[Version], fronts: dict[str, set[str]]) -> str:
    """Those on a front first, then the newest."""
    on_front = {key for keys in fronts.values() for key in keys}
    newest = found[::-1]
    order = [one for one in newest if one.key in on_front] + [one for one in newest if one.key not in on_front]
    heads = [("Model", ""), ("Runs", "number"), (on_terminal(asked.metric)[:60], "number")]
    heads += [(COSTS[cost][0], "number") for cost in asked.x] + [("None is better in", "")]
    top = "".join(f'<th scope="col" role="columnheader" class="{kind}">{escape(text)}</th>' for text, kind in heads)
    rows = "".join(_row(asked, one, fronts, [text for text, _ in heads]) for one in order[:_LISTED])
    table = lines_of("Versions", top, rows)
    return table + (note(f"{_LISTED} of {len(found):,}.") if len(found) > _LISTED else "")


def _row(asked: Drawn, one: Version, fronts: dict[str, set[str]], heads: Sequence[str]) -> str:
    costs = [
        format_count(float(f"{one.costs[cost]:.3g}"), COSTS[cost][1]) if cost in one.costs else "" for cost in asked.x
    ]
    told = ", ".join(f"quality and {COSTS[cost][0]}" for cost in asked.x if one.key in fronts[cost])
    cells = [str(len(one.ids)), f"{one.quality:.5g}", *costs, told]
    kinds = ["number"] * (len(cells) - 1) + ["long"]
    body = "".join(
        f'<td role="cell" class="{kind}" data-head="{escape(head)}">{escape(text)}</td>'
        for kind, head, text in zip(kinds, heads[1:], cells, strict=True)
    )
    to = url_of_run(one.key)
    if len(one.ids) > 1:
        name, version = one.exact
        to = url("/", [("q", joined([f"name={name}", f"version={version}"]))])
    return f'<tr role="row"><th scope="row" role="rowheader">{link(to, one.label)}</th>{body}</tr>'
