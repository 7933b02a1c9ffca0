"""The tables of a comparison, cells already in the units people read. Text, markdown and html only draw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from bitwatt.comparing.changes import AXES, Change, shortened
from bitwatt.comparing.noisy import Noisy
from bitwatt.comparing.pareto import Front
from bitwatt.comparing.worth import Extra, shown
from bitwatt.errors import UnknownNameError
from bitwatt.readings import MODELLED
from bitwatt.reports.tables import UNKNOWN, heading
from bitwatt.units import format_count, format_duration

if TYPE_CHECKING:
    from bitwatt.comparing.comparison import Comparison

#: Lines of a table of layers or ops in a whole comparison. Beside each other so many sides fit; more stand in rows, and
#: of very many only the totals are drawn.
LINES, BESIDE, MANY = 10, 3, 12
_LONG = 20
MORE, LESS, NEW, GONE = "more", "less", "new", "gone"


@dataclass(frozen=True, slots=True)
class Column:
    """The higher the `spare`, the sooner a narrow page goes without it. What is not `firm` may be cut: texts."""

    title: str
    left: bool = False
    spare: int = 0
    firm: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Cells by row; `tones` say for each row whether it is more, less, new, gone, or none of these."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    tones: tuple[str, ...] = ()
    note: str = ""


def tables(comparison: Comparison, by: str | None = None) -> list[Table]:
    """The table called `by` at length, equal lines too; by default all, short. And a front that was asked for."""
    if by is not None:
        if by not in AXES:
            raise UnknownNameError(f"a comparison has no table by {by!r}; choose from {', '.join(AXES)}")
        front = [] if comparison.front is None else [front_table(comparison.front)]
        return [_axis(comparison, by, whole=True), *front]
    made = [_totals(comparison) if len(comparison.sides) <= BESIDE else _overview(comparison)]
    if len(comparison.sides) <= MANY:
        made += [_axis(comparison, axis) for axis in AXES]
        made += [_phases(comparison, name) for name in ("seconds", "energy")]
        made.append(_differences(comparison))
        made.append(_worth(comparison))
    if comparison.front is not None:
        made.append(front_table(comparison.front))
    return [table for table in made if table.rows]


def _totals(comparison: Comparison) -> Table:
    sides = comparison.sides
    rows, tones = [], []
    for name, change in comparison.totals.items():
        if name in ("parameters", "weight_bytes", "missing") and not any(change.amounts):
            continue
        rows.append((change.name, *(_amount(n, change.unit) for n in change.amounts), *_against(change, len(sides))))
        tones.append(_tone(change))
    for one in comparison.measures.values():
        rows.append((one.name, *_medians(one), *_ratios(one, len(sides))))
        tones.append("")
    if (quality := comparison.quality) is not None:
        values = [UNKNOWN if known is None else f"{known:g}" for known in quality.values]
        changes = [_metric_change(quality.values, i) for i in range(1, len(sides))]
        rows.append((quality.name, *values, *(changes if len(sides) > 2 else [*changes, ""])))
        tones.append("")
    return Table("Totals", _columns("Totals", comparison), tuple(rows), tuple(tones))


def _columns(title: str, comparison: Comparison) -> tuple[Column, ...]:
    """Two sides have a column for the exact difference, or what is known of the spread."""
    labels = [side.label for side in comparison.sides]
    beside = [Column(label, spare=max(i - 1, 0)) for i, label in enumerate(labels)]
    against = [Column(f"{label} / {labels[0]}", spare=i) for i, label in enumerate(labels[1:])]
    more = [Column("", left=True, firm=True)] if len(labels) == 2 else []
    return (Column(title, left=True), *beside, *against, *more)


def _against(change: Change, sides: int) -> list[str]:
    cells = [change_of(change, i) for i in range(1, sides)]
    return [*cells, _difference(change)] if sides == 2 else cells


def change_of(change: Change, side: int) -> str:
    """Against the first side: equal, +9.2 %, 2.5×, new, gone."""
    here, there = change.amounts[0], change.amounts[side]
    if here == there:
        return "equal" if here is not None else UNKNOWN
    if here is None:
        return NEW
    if there is None:
        return GONE
    if not here:
        return "from 0"
    # of the difference, since one operation among very many leaves a ratio at 1
    return percent(there / here) if there / here != 1 else f"{100 * ((there - here) / here):+.3g} %"


def percent(ratio: float) -> str:
    """A ratio as what it adds: +9.2 %; from twice on, as a factor."""
    return f"{ratio:.3g}×" if ratio >= 2 or ratio < 0.1 else f"{100 * (ratio - 1):+.3g} %"


def _difference(change: Change) -> str:
    found = change.difference(1)
    return (
        ""
        if not found
        else f"{found:+,}"
        if abs(found) < 10**12
        else f"{'+' if found > 0 else ''}{format_count(found)}"
    )


def _tone(change: Change) -> str:
    if change.is_equal:
        return ""
    if change.amounts[0] is None:
        return NEW
    if len(change.amounts) == 2 and change.amounts[1] is None:
        return GONE
    return MORE if (change.difference(len(change.amounts) - 1) or 0) > 0 else LESS


def _amount(amount: int | None, unit: str) -> str:
    return UNKNOWN if amount is None else format_count(amount, "B") if unit == "B" else format_count(amount)


def _medians(one: Noisy) -> list[str]:
    return [
        UNKNOWN if middle is None else f"{'modelled ' if how == MODELLED else ''}{measured(middle, one.unit)}"
        for middle, how in zip(one.medians, one.hows, strict=True)
    ]


def measured(amount: float, unit: str) -> str:
    short = float(f"{amount:.3g}")
    if unit == "s":
        return format_duration(short)
    return format_count(short, unit) if unit in ("J", "B", "g") else f"{short:g} {unit}".rstrip()


def _ratios(one: Noisy, sides: int) -> list[str]:
    if sides == 2:
        ratio = one.ratios[1]
        return [UNKNOWN if ratio is None else f"{ratio.value:.3g}×", one.spread(1)]
    cells = []
    for ratio in one.ratios[1:]:
        spread = "" if ratio is None or not ratio.is_known else f" [{ratio.low:.3g}, {ratio.high:.3g}]"
        cells.append(UNKNOWN if ratio is None else f"{ratio.value:.3g}×{spread}")
    return cells


def _metric_change(values: Sequence[float | None], side: int) -> str:
    here, there = values[0], values[side]
    return UNKNOWN if here is None or there is None else f"{there - here:+.3g}"


def _overview(comparison: Comparison) -> Table:
    """Many sides: one in a row, against the first."""
    counts = {name: change for name, change in comparison.totals.items() if name in ("flops", "bops", "bytes")}
    measures = {name: one for name, one in comparison.measures.items() if name in ("seconds", "energy")}
    columns = [Column("Totals", left=True)]
    for change in counts.values():
        columns += [Column(change.name), Column("", spare=2)]
    for one in measures.values():
        columns += [Column(one.name, spare=1), Column("", spare=3)]
    quality = comparison.quality
    columns += [Column(quality.name)] if quality is not None else []
    rows = []
    for i, side in enumerate(comparison.sides):
        cells = [f"{side.label} {side.name}"]
        for change in counts.values():
            cells += [_amount(change.amounts[i], change.unit), change_of(change, i) if i else ""]
        for one in measures.values():
            cells += [_medians(one)[i], _ratios(one, 3)[i - 1] if i else ""]
        if quality is not None:
            known = quality.values[i]
            cells.append(UNKNOWN if known is None else f"{known:g}")
        rows.append(tuple(cells))
    return Table("Totals", tuple(columns), tuple(rows), ("",) * len(rows))


def _axis(comparison: Comparison, axis: str, *, whole: bool = False) -> Table:
    title, changes = AXES[axis], comparison.changes(axis)
    equal = sum(change.is_equal for change in changes)
    if axis == "scope" and not any(name for change in changes for name in change.names):
        return Table(title, (), ())
    if axis == "precision" and equal == len(changes) and not whole:
        return Table(title, (), ())
    kept = list(changes) if axis == "phase" else shortened(changes, len(changes) if whole else LINES)
    if whole and axis != "phase":
        kept += [change for change in changes if change.is_equal]
    rows = tuple(
        (_named(c), *(_amount(n, c.unit) for n in c.amounts), *_against(c, len(comparison.sides))) for c in kept
    )
    note = "" if whole or not equal or axis == "phase" else f"{equal} of {len(changes)} equal to the last operation"
    columns = _columns(f"{title}, {heading(comparison.model)}", comparison)
    return Table(title, columns, rows, tuple(map(_tone, kept)), note)


def _named(change: Change) -> str:
    name = change.name or "(no layer)"
    return f"{name} ({change.places} places)" if change.places > 1 else name


def _phases(comparison: Comparison, name: str) -> Table:
    title = {"seconds": "Time by phase", "energy": "Energy by phase"}[name]
    found = comparison.by_phase(name)
    rows = tuple((one.name, *_medians(one), *_ratios(one, len(comparison.sides))) for one in found)
    return Table(title, _columns(title, comparison), rows if len(comparison.sides) <= BESIDE else (), ("",) * len(rows))


def _differences(comparison: Comparison) -> Table:
    labels = [side.label for side in comparison.sides]
    columns = (
        Column("What else differs", left=True),
        *(Column(label, left=True, spare=max(i - 1, 0)) for i, label in enumerate(labels)),
    )
    rows = tuple((f"{one.kind}: {one.name}", *_apart(one.values)) for one in comparison.differences)
    return Table("What else differs", columns, rows, ("",) * len(rows))


def _apart(values: Sequence[str]) -> list[str]:
    """Long texts from where they begin to differ: commands differ at their ends."""
    words = [value.split() for value in values]
    shared = [same[0] for same in takewhile(lambda same: len(set(same)) == 1, zip(*words, strict=False))]
    if len(" ".join(shared)) < _LONG:
        return list(values)
    return [" ".join(["…", *text[len(shared) :]]) for text in words]


def _worth(comparison: Comparison) -> Table:
    """Gain for each joule, bit-operation and coin more; or loss for each one less."""
    first = comparison.sides[0].label
    columns = (
        Column("Worth it?", left=True), Column("gain"), Column("more cost"), Column("gain for each"),
        Column("", left=True, spare=1),
    )  # fmt: skip
    rows = []
    for one in comparison.worth:
        relative = "" if one.relative is None else f" ({100 * one.relative:+.3g} %)"
        for i, extra in enumerate(one.extras):
            name = f"{one.label} / {first} {one.metric}" if i == 0 else ""
            gain = f"{one.gain:+.3g}{relative}" if i == 0 else ""
            rows.append((name, gain, _more(extra), _per(extra), extra.doubt))
    return Table("Worth it?", columns, tuple(rows), ("",) * len(rows))


def _more(extra: Extra) -> str:
    if extra.more is None:
        return f"{shown(extra.name)} not known"
    relative = "" if extra.relative is None else f" ({percent(1 + extra.relative)})"
    amount = (
        measured(abs(extra.more), extra.unit)
        if extra.unit in ("s", "J", "B", "g")
        else format_count(float(f"{abs(extra.more):.3g}"), extra.unit)
    )
    return f"{shown(extra.name)} {'+' if extra.more > 0 else '-' if extra.more < 0 else ''}{amount}{relative}"


def _per(extra: Extra) -> str:
    return "" if extra.per is None else f"{extra.per:.3g} / {extra.unit or 'unit'}"


def front_table(front: Front) -> Table:
    columns = (
        Column("Pareto front", left=True),
        *(Column(f"{axis.name} {'↓' if axis.lower else '↑'}") for axis in front.axes),
        Column("", left=True),
    )
    rows = [
        (point.name, *(_valued(point.values[axis.name], axis.unit) for axis in front.axes), _beaten(point.beaten_by))
        for point in front.points
    ]
    rows += [(name, *[UNKNOWN] * len(front.axes), why) for name, why in front.left_out.items()]
    return Table("Pareto front", columns, tuple(rows), ("",) * len(rows), "; ".join(front.notes))


def _valued(amount: float, unit: str) -> str:
    if unit in ("s", "J", "B", "g"):
        return measured(amount, unit)
    return format_count(int(amount), unit) if amount == int(amount) else f"{amount:.4g}"


def _beaten(names: Sequence[str]) -> str:
    return (
        "on the front"
        if not names
        else f"beaten by {names[0].split()[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
    )
