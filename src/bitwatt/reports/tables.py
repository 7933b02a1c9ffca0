"""The tables of a report, cells already in the units people read: text, markdown and html only draw them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from bitwatt.errors import UnknownNameError
from bitwatt.impact.energy import Ratio
from bitwatt.readings import APPORTIONED, MEASURED
from bitwatt.records import Run
from bitwatt.reports.energy import joules
from bitwatt.reports.model import BOTH, STANDARD, Line, View, merged, top
from bitwatt.reports.weights import WeightGroup
from bitwatt.units import format_bytes, format_count, format_duration, format_percent

UNKNOWN = "—"
FORWARD, BACKWARD = ("forward", "inference"), ("backward",)

_HEADINGS = {"flops": "FLOPs", "bops": "BOPs", "macs": "MACs"}


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and how to write a line's cell. The higher the `spare`, the sooner a narrow page goes without it."""

    title: str
    cell: Callable[[Line], str]
    spare: int = 0
    left: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Cells by row, the share that each row is of the whole, and whether the last row is the total."""

    title: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    shares: tuple[float | None, ...]
    total: Line | None = None

    def rows(self) -> list[list[str]]:
        return [[column.cell(line) for column in self.columns] for line in self.lines]

    def total_row(self) -> list[str] | None:
        return None if self.total is None else [column.cell(self.total) for column in self.columns]


def tables(view: View, by: str | None = None) -> list[Table]:
    """The table called `by`, at length; by default all of them, short."""
    if by is not None and by not in TABLES:
        raise UnknownNameError(f"a report has no table by {by!r}; choose from {', '.join(TABLES)}")
    chosen = TABLES if by is None else {by: TABLES[by]}
    if by is None and not view.is_quantised:
        chosen = {name: make for name, make in TABLES.items() if name not in _OF_QUANTISED}
    made = [make(view, 12 if by is None else 40) for make in chosen.values()]
    if by == "weights" or (by is None and view.is_quantised):
        made.append(_both(view))
    return [table for table in made if table.lines]


def headline(view: View) -> list[tuple[str, str, bool]]:
    """(number, what it is, whether the unit leaves that open). With ops missing sums are lower bounds, and say so."""
    total, least = view.total, "≥ " if view.missing else ""
    names = dict.fromkeys((view.model.name, *STANDARD))
    told = [
        (f"{least}{format_count(n, view.priced[name].model.unit)}", heading(name), name not in STANDARD)
        for name in names
        if (n := total.amounts.get(name)) is not None
    ]
    if total.text_steps:
        told.append((format_count(total.text_steps), "text steps", True))
    if total.bytes_moved is not None:
        told.append((f"{least}{format_bytes(total.bytes_moved)}", "moved", True))
    if total.intensity is not None:
        told.append((f"{_intensity(total)} FLOP/B", "intensity", False))
    return told if view.is_estimate else [*told, (format_duration(view.run.seconds), "time", False)]


def when(run: Run) -> str:
    """The start of a run to the second, as it was in UTC."""
    try:
        return f"{datetime.fromisoformat(run.started).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return run.started


def heading(model: str) -> str:
    return _HEADINGS.get(model, model)


def _phases(view: View, _: int) -> Table:
    lines = view.phases
    columns = [_name("Phases"), *_amounts(view), _moved(), Column("FLOP/B", _intensity, 2)]
    if any(line.text_steps for line in lines):
        columns.append(Column("Text steps", lambda line: _count(line.text_steps or None), 1))
    columns.append(_share(view))
    if any(line.seconds is not None for line in lines):
        columns.append(Column("Time", lambda line: _duration(line.seconds)))
    if any(line.device_seconds is not None for line in lines):
        columns.append(Column("GPU time", lambda line: _duration(line.device_seconds)))
    found = view.bounds
    if found is not None and found.is_known:
        columns.append(Column("Bound by", lambda line: found.word(line.name), 1, left=True))
    columns += _energy(view)
    return _table(view, "Phases", columns, lines, total=len(lines) > 1)


def _duration(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else format_duration(seconds)


def _energy(view: View) -> list[Column]:
    """Joules of each phase and for each TFLOP and TBOP; ~ where they were shared out by time."""
    energy = view.energy
    if energy is None or energy.used.energy_j is None or not energy.metered.phases:
        return []

    def cell(write: Callable[[Ratio], str]) -> Callable[[Line], str]:
        def written(line: Line) -> str:
            found = energy.phase(line.name)
            return UNKNOWN if found is None else write(found)

        return written

    def amount(found: Ratio, value: float | None, write: Callable[[float], str]) -> str:
        about = "~" if found.how == APPORTIONED else "" if found.how == MEASURED else "modelled "
        return UNKNOWN if value is None else f"{about}{write(value)}"

    def ratio(found: Ratio, value: float | None) -> str:
        return amount(found, value, lambda value: f"{found.sign}{format_count(float(f'{value:.3g}'))}")

    return [
        Column("Energy", cell(lambda found: amount(found, found.energy_j, joules))),
        Column("J/TFLOP", cell(lambda found: ratio(found, found.j_per_tflop)), 1),
        Column("J/TBOP", cell(lambda found: ratio(found, found.j_per_tbop)), 2),
    ]


def _layers(view: View, limit: int) -> Table:
    if not any(line.name for line in view.scopes):
        return _table(view, "Layers", [], [])
    unit = heading(view.model.name)
    columns = [_name("Layers"), Column("Class", lambda line: line.about, 1, left=True)]
    if any(line.during(*FORWARD, *BACKWARD) for line in view.scopes):  # estimators know neither
        columns += [
            Column("Forward", lambda line: _during(line, FORWARD), 2),
            Column("Backward", lambda line: _during(line, BACKWARD), 3),
        ]
    columns += [Column(unit, lambda line: _count(view.amount(line))), _moved(4), _share(view)]
    return _table(view, "Layers", columns, view.layers(limit))


def _ops(view: View, limit: int) -> Table:
    columns = [
        _name("Ops"),
        Column("Family", lambda line: line.about, 2, left=True),
        Column("Calls", lambda line: f"{line.calls:,}"),
        Column(heading(view.model.name), lambda line: _count(view.amount(line))),
        _moved(),
        Column("FLOP/B", _intensity, 3),
        _share(view),
    ]
    worked = [line for line in view.ops if view.amount(line) or line.bytes_moved or line.text_steps]
    return _table(view, "Ops", columns, top(worked, limit))


def _precisions(view: View, limit: int) -> Table:
    lines = [Line(name, amounts={view.model.name: n}) for name, n in view.precisions]
    amount = Column(heading(view.model.name), lambda line: _count(view.amount(line)))
    return _table(view, "Precisions", [_name("Precisions"), amount, _share(view)], top(lines, limit))


def _weights(view: View, limit: int) -> Table:
    scopes = {line.name: line for line in view.scopes}
    groups: dict[str, WeightGroup] = {}
    for group in view.weights:
        name = group.format if group.format not in groups else f"{group.format} ({len(group.scopes)} more)"
        groups[name if name not in groups else f"{name} #{len(groups)}"] = group
    lines = [
        merged(name, (scopes[scope] for scope in group.scopes if scope in scopes)) for name, group in groups.items()
    ]

    def cell(write: Callable[[WeightGroup], str]) -> Callable[[Line], str]:
        return lambda line: write(groups[line.name]) if line.name in groups else ""

    columns = [
        _name("Weights"),
        Column("Layers", cell(lambda group: f"{len(group.scopes):,}")),
        Column("Values", cell(lambda group: format_count(group.values)), 3),
        Column("Bits", cell(lambda group: _bits(group.bits))),
        Column("With scales", cell(lambda group: _bits(group.effective_bits)), 1),
        Column("Inputs", cell(lambda group: ", ".join(group.inputs) or UNKNOWN), 2, left=True),
        Column("Ran in", cell(lambda group: ", ".join(group.executed) or UNKNOWN), left=True),
        Column("Kept in", cell(lambda group: format_bytes(group.nbytes))),
    ]
    if any(group.density < 1 for group in groups.values()):
        columns.append(Column("Not zero", cell(lambda group: format_percent(group.density)), 2))
    return _table(view, "Weights", [*columns, _share(view)], lines[:limit])


def _bits(bits: float | None) -> str:
    return UNKNOWN if bits is None else f"{bits:.4g}"


def _both(view: View) -> Table:
    """Bit-operations and bytes by what values carry and by what the machine did, side by side."""
    priced = {name: {line.name: line for line in view.phases_by(name)} for name in BOTH}
    columns = [_name("Effective and executed")]
    for title, name in (("BOPs", "bops"), ("executed", "bops:executed"), ("paper", "bops:paper"),
                        ("product", "bops:product")):  # fmt: skip
        columns.append(Column(title, _priced(priced[name], name, format_count), 1 if name == "bops:product" else 0))
    columns += [
        Column("Moved", _priced(priced["bytes"], "bytes", format_bytes)),
        Column("if kept packed", _priced(priced["bytes:effective"], "bytes:effective", format_bytes)),
    ]
    lines = [line for line in view.phases if line.amounts.get("bops") or line.bytes_moved]
    total = merged("total", lines)
    table = _table(view, "Effective and executed", columns, lines)
    return replace(table, shares=tuple(None for _ in lines), total=total if len(lines) > 1 else None)


def _priced(lines: dict[str, Line], model: str, write: Callable[[int], str]) -> Callable[[Line], str]:
    whole = merged("total", lines.values())

    def cell(line: Line) -> str:
        found = whole if line.name == "total" else lines.get(line.name)
        amount = found.amounts.get(model) if found else None
        return UNKNOWN if amount is None else write(amount)

    return cell


#: Tables that the whole report leaves out where dtypes say it all.
_OF_QUANTISED = {"weights"}
TABLES: dict[str, Callable[[View, int], Table]] = {
    "phase": _phases,
    "scope": _layers,
    "op": _ops,
    "precision": _precisions,
    "weights": _weights,
}


def _table(view: View, title: str, columns: list[Column], lines: list[Line], total: bool = False) -> Table:
    shares = tuple(view.share(line) for line in lines)
    return Table(title, tuple(columns), tuple(lines), shares, view.total if total else None)


def _name(title: str) -> Column:
    return Column(title, lambda line: line.name, left=True)


def _amounts(view: View) -> list[Column]:
    """The report's own model first; of the usual three, MACs are the first to go."""
    return [
        Column(
            heading(name),
            lambda line, name=name: _count(line.amounts.get(name)),  # type: ignore[misc]
            spare=0 if name == view.model.name else 1 + STANDARD.index(name),
        )
        for name in dict.fromkeys((view.model.name, *STANDARD))
    ]


def _moved(spare: int = 1) -> Column:
    return Column("Moved", lambda line: UNKNOWN if line.bytes_moved is None else format_bytes(line.bytes_moved), spare)


def _share(view: View) -> Column:
    def cell(line: Line) -> str:
        share = view.share(line)
        return UNKNOWN if share is None else format_percent(share)

    return Column("Share", cell)


def _during(line: Line, phases: tuple[str, ...]) -> str:
    return _count(line.during(*phases) if line.by_phase else None)


def _intensity(line: Line) -> str:
    if line.intensity is None:
        return UNKNOWN
    return format_count(line.intensity) if line.intensity >= 1 else f"{line.intensity:.3g}"


def _count(value: int | float | None) -> str:
    return UNKNOWN if value is None else format_count(value)
