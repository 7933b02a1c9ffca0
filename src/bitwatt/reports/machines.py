"""Over many runs: what a TFLOP and a TBOP take on each machine, in joules and grams, with their spread."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace

from bitwatt.config import Settings
from bitwatt.errors import UnknownNameError
from bitwatt.fingerprint import summary
from bitwatt.impact.verdict import Spread, by_machine
from bitwatt.jobs import joined
from bitwatt.ranks import energy
from bitwatt.ranks.join import UNDER_WAY, jobs
from bitwatt.reports import markdown, text
from bitwatt.reports.model import Line
from bitwatt.reports.points import Placed, placed
from bitwatt.reports.tables import Column, Table
from bitwatt.store import Header, load
from bitwatt.units import format_count

FORMATS = ("text", "markdown", "json")
_TABLES = {"Energy": ("j_per_tflop", "j_per_tbop"), "Carbon": ("g_per_tflop", "g_per_tbop")}
_UNITS = {"j": "", "g": "g"}
_TITLES = {"j_per_tflop": "J/TFLOP", "j_per_tbop": "J/TBOP", "g_per_tflop": "CO2e/TFLOP", "g_per_tbop": "CO2e/TBOP"}

Key = tuple[str, str, str]  # machine, its id, whose energy


@dataclass
class Survey:
    """Spreads by machine, and how many runs say nothing of one, by the reason."""

    spreads: dict[Key, dict[str, Spread]] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    without_carbon: dict[str, int] = field(default_factory=dict)  # why the grams of some are unknown
    bounded: int = 0  # runs with calls that no rule covers: their ratios are upper bounds

    def leave_out(self, why: str) -> None:
        self.left_out[why] = self.left_out.get(why, 0) + 1


def survey(kept: Iterable[Header], settings: Settings) -> Survey:
    """Runs of one process, and jobs of several as one: each device of a node counts once."""
    found, points = Survey(), list[tuple[Key, Placed]]()
    headers = list(kept)
    ids = {header.id for header in headers}
    alone = [header for header in headers if header.rank is None]
    together = [job for (number, _), job in jobs(headers).items() if number not in ids]  # else kept joined too
    for one in alone:
        _add(found, points, one.machine.get("machine id", ""), one.status, _single(one, settings))
    for ranks in together:
        first = ranks[0]
        assert isinstance(first, Header)
        _add(found, points, first.machine.get("machine id", ""), first.status, _job(ranks, first, settings))
    groups = {key: replace(one.point, machine="\n".join(key)) for key, one in points}
    runs = [replace(one.point, machine="\n".join(key)) for key, one in points]
    spreads = by_machine(runs)
    found.spreads = {key: spreads[point.machine] for key, point in groups.items() if point.machine in spreads}
    return found


def _add(found: Survey, points: list[tuple[Key, Placed]], machine: str, status: str, one: Placed | None) -> None:
    if status == UNDER_WAY:
        found.leave_out("not ended")
    elif one is None or one.point.energy_j is None:
        found.leave_out("without measured energy")
    elif not one.point.flops and not one.point.bops:
        found.leave_out("without counted work")
    else:
        found.bounded += bool(one.missing)
        if one.because:
            found.without_carbon[one.because] = found.without_carbon.get(one.because, 0) + 1
        name = f"{one.point.machine}, modelled" if one.is_modelled else one.point.machine
        points.append(((name, machine, " + ".join(sorted(one.kinds))), one))


def _single(header: Header, settings: Settings) -> Placed | None:
    run = load(header.path) if header.status != UNDER_WAY else None
    if run is None or run.meter is None:
        return None
    known = header.summary or summary(run)
    missing = known["coverage"]["missing"]
    flops, bops = (known["totals"].get(model, 0) for model in ("flops", "bops"))  # where nothing was watched: none
    return placed(
        run.meter, settings, run.started, flops=flops, bops=bops, name=run.name, missing=missing,
        facts=run.machine.facts, with_carbon=bool(flops or bops),
    )  # fmt: skip


def _job(ranks: Iterable[object], first: Header, settings: Settings) -> Placed | None:
    job = joined([one for one in ranks if isinstance(one, Header)])
    readers = energy.readers(job)
    if not readers:
        return None
    flops, bops = job.total.total
    missing = sum(part.kept.summary.get("coverage", {}).get("missing", 0) for part in job.parts)
    return placed(
        energy.joined(readers), settings, first.started, flops=flops, bops=bops, name=job.name, missing=missing,
        facts=first.machine, nodes=len(job.nodes), with_carbon=bool(flops or bops),
    )  # fmt: skip


def render(found: Survey, format: str = "text", *, width: int | None = None, color: bool = False) -> str:
    if format not in FORMATS:
        raise UnknownNameError(f"machines are shown as {', '.join(FORMATS)}, not {format!r}")
    if format == "json":
        return json.dumps(_document(found), indent=2) + "\n"
    tables = [_table(found, title, ratios) for title, ratios in _TABLES.items()]
    shown, notes = [table for table in tables if table.lines], _notes(found)
    if format == "markdown":
        return "\n\n".join([*map(markdown.table, shown), *notes]) + "\n"
    return text.page(shown, notes, width=width, color=color)


def _table(found: Survey, title: str, ratios: tuple[str, ...]) -> Table:
    """Machines that take least first."""
    named = {
        name: (key, {ratio: spreads[ratio] for ratio in ratios if ratio in spreads})
        for name, (key, spreads) in _named(found.spreads).items()
    }
    named = {name: one for name, one in named.items() if one[1]}
    ordered = sorted(named, key=lambda name: min(spread.median for spread in named[name][1].values()))

    def cell(ratio: str) -> Column:
        return Column(_TITLES[ratio], lambda line: _spread(named[line.name][1].get(ratio), _UNITS[ratio[0]]))

    columns = [
        Column(title, lambda line: line.name, left=True),
        Column("Energy of", lambda line: named[line.name][0][2], 1, left=True),
        Column("Runs", lambda line: f"{max(spread.runs for spread in named[line.name][1].values())}"),
        *(cell(ratio) for ratio in ratios),
    ]
    return Table(title, tuple(columns), tuple(Line(name) for name in ordered), tuple(None for _ in ordered))


def _named(spreads: Mapping[Key, dict[str, Spread]]) -> dict[str, tuple[Key, dict[str, Spread]]]:
    """Names that tell machines of one kind apart; their ids only where that is needed."""
    found: dict[str, tuple[Key, dict[str, Spread]]] = {}
    for key, ratios in spreads.items():
        machine, number, whose = key
        several = len({other[1] for other in spreads if other[0] == machine}) > 1
        name = f"{machine} ({number or 'id unknown'})" if several else machine
        found[name if name not in found else f"{name}, {whose}"] = (key, ratios)
    return found


def _spread(spread: Spread | None, unit: str) -> str:
    if spread is None:
        return "—"
    middle, least, greatest = (
        format_count(float(f"{amount:.3g}"), unit) for amount in (spread.median, spread.least, spread.greatest)
    )
    return middle if spread.runs == 1 else f"{middle} ({least} to {greatest})"


def _notes(found: Survey) -> list[str]:
    told = []
    if found.spreads:
        told.append("The median over the runs, and the least and the greatest. Runs of one task compare machines best.")
    if found.bounded:
        told.append(f"{_runs(found.bounded)} with calls that no rule covers: upper bounds")
    for why, n in found.without_carbon.items():
        told.append(f"CO2e of {_runs(n)} unknown: {why}")
    if found.left_out:
        told.append("left out: " + ", ".join(f"{_runs(n)} {why}" for why, n in found.left_out.items()))
    return told or ["no run is kept there"]


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count:,} runs"


def _document(found: Survey) -> dict[str, object]:
    return {
        "format": "bitwatt.machines",
        "version": 1,
        "machines": [
            {
                "machine": machine,
                "id": number or None,
                "energy_of": whose,
                "ratios": {ratio: asdict(spread) for ratio, spread in ratios.items()},
            }
            for (machine, number, whose), ratios in found.spreads.items()
        ],
        "upper_bounds": found.bounded,
        "without_carbon": found.without_carbon,
        "left_out": found.left_out,
    }
