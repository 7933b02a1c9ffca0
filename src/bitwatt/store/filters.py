"""Filters and sort orders as people write them (name~resnet, flops>1e12, tag:team=vision) -> SQL with bound values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from bitwatt.errors import UnknownNameError
from bitwatt.ranks.join import UNDER_WAY
from bitwatt.ranks.silence import CUT_OFF, SILENT_S
from bitwatt.units import parse as parse_quantity

TEXT, NUMBER, TIME, STATUS, ANY = "text", "number", "time", "status", "any"


class Field(NamedTuple):
    """Something to filter and sort by: an expression over the index's tables, and what is bound in it."""

    sql: str
    kind: str
    bound: tuple[Any, ...] = ()


class Clause(NamedTuple):
    sql: str
    bound: tuple[Any, ...] = ()


_TEXTS = ("id", "name", "command", "version", "dataset", "parent", "parent_kind", "job", "commit", "branch", "dirty")
_NUMBERS = (
    "seconds", "flops", "bops", "macs", "bytes", "energy_j", "grams", "cost", "missing", "memory_bytes",
    "device_memory_bytes", "parameters", "batch_size", "rank",
)  # fmt: skip
#: What numbers are in, where they have a unit; and what only a quantity has, not a plain number.
_UNITS = {
    "seconds": "s", "flops": "FLOP", "bops": "BOP", "macs": "MAC", "bytes": "B", "energy_j": "J", "memory_bytes": "B",
    "device_memory_bytes": "B",
}  # fmt: skip
_WORDY = re.compile(r"[^\d.eE+\-]")
FIELDS: dict[str, Field] = {
    **{name: Field(f'runs."{name}"', TEXT) for name in _TEXTS},
    **{name: Field(f'runs."{name}"', NUMBER) for name in _NUMBERS},
    "status": Field("runs.status", STATUS),
    "started": Field("runs.started", TIME),
}
_ALIASES = {"energy": "energy_j", "time": "seconds", "duration": "seconds", "co2": "grams", "memory": "memory_bytes"}
#: Fields that there are many of.
FAMILIES = ("tag:team=vision", "metric.accuracy>=0.9", "param.lr<0.1", "machine.gpu~H200")
_SHORT = ("gpu", "cpu", "os", "driver", "cuda", "torch")  # facts of the machine that need no prefix
_FORMS = ("last", "min", "max", "count")

#: Filters at once, letters of one (a name may have 10,000), and bytes of a pattern that SQLite takes.
_MOST, _LONGEST, _PATTERN = 100, 20_000, 50_000

_CONDITION = re.compile(r"(?P<field>[^=<>~!]+)(?P<sign>!=|!~|>=|<=|==|=|~|>|<)(?P<value>.*)", re.S)
_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*(min|h|d|w)")


def is_condition(text: str) -> bool:
    """Whether a word is a condition, and no plain name."""
    return _CONDITION.fullmatch(text) is not None or text.startswith("tag:")


def conditions(where: Iterable[str]) -> Clause:
    """All of them at once; nothing is true of every run. What SQLite would give up on is refused here."""
    texts = list(where)
    if len(texts) > _MOST:
        raise UnknownNameError(f"there are {len(texts):,} filters; {_MOST} are the most")
    for text in texts:
        if len(text) > _LONGEST:
            raise UnknownNameError(f"the filter {text[:40]!r}... has {len(text):,} letters; {_LONGEST:,} are the most")
    clauses = [condition(text) for text in texts]
    bound = tuple(value for clause in clauses for value in clause.bound)
    return Clause(" AND ".join(f"({clause.sql})" for clause in clauses) or "1", bound)


def condition(text: str) -> Clause:
    """One filter. A plain word is looked for in names, tags, jobs, and where ids begin."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        if text.startswith("tag:"):
            return _has_tag(text.removeprefix("tag:").strip())
        word = text.strip()
        if "\0" in word:
            raise UnknownNameError(f"{word!r} cannot be looked for: there is a NUL in it")
        tagged = _has_tag(word)
        begun = "substr(runs.id, 1, length(?)) = ?"
        return Clause(
            f"{_contains('runs.name')} OR {begun} OR runs.job = ? OR {tagged.sql}",
            (_pattern(word), word, word, word, *tagged.bound),
        )
    name, sign, value = match["field"].strip(), match["sign"].replace("==", "="), match["value"].strip()
    if name in ("since", "until", "before", "after"):
        return _bounded(name, sign, value)
    if name == "tag":
        return _has_tag(value, sign.startswith("!"))
    if name == "machine":
        return _any_fact(sign, value)
    field = field_of(name)
    if name == "id" and sign == "=":
        return Clause("substr(runs.id, 1, length(?)) = ?", (value, value))
    if field.kind == STATUS and sign in ("=", "!="):  # failed, whatever with
        inside = Clause("runs.status = ? OR substr(runs.status, 1, length(?) + 1) = ? || ':'", (value, value, value))
        if value in (UNDER_WAY, CUT_OFF):  # as silence.state_of
            written = "coalesce(julianday(runs.started) + runs.seconds / 86400, 0)"
            sounds = "<=" if value == CUT_OFF else ">"
            inside = Clause(
                f"runs.status = ? AND {written} {sounds} julianday('now') - ?", (UNDER_WAY, SILENT_S / 86_400)
            )
        return inside if sign == "=" else Clause(f"NOT ({inside.sql})", inside.bound)
    if sign in ("~", "!~"):
        found = _contains(f"coalesce({field.sql}, '')")
        return Clause(found if sign == "~" else f"NOT ({found})", (*field.bound, _pattern(value)))
    if field.kind in (TEXT, STATUS) and sign not in ("=", "!="):
        raise UnknownNameError(f"{text!r}: {name} is text, so the signs are =, !=, ~ (has it inside) and !~")
    if field.kind == TEXT and not value:  # none at all, or an empty one
        return Clause(f"coalesce({field.sql}, '') {sign} ''", field.bound)
    bound = _value(field, name, value)
    if sign == "!=":
        return Clause(f"{field.sql} IS NOT ?", (*field.bound, bound))
    if field.kind == TIME and sign in ("=",):
        return _contains_time(field, value)
    if field.kind == ANY and sign != "=":  # to SQLite every text is more than any number
        if isinstance(bound, str):
            raise UnknownNameError(f"{text!r}: {value!r} is no number, so the signs are =, !=, ~ and !~")
        numeric = f"typeof({field.sql}) IN ('integer', 'real') AND"
        return Clause(f"{numeric} {field.sql} {sign} ?", (*field.bound, *field.bound, bound))
    return Clause(f"{field.sql} {sign} ?", (*field.bound, bound))


def order(sort: str) -> Clause:
    """`name`, or `-flops` for the largest first. Runs that lack it come last; equal ones newest first."""
    name = sort.removeprefix("-").removeprefix("+").strip()
    field = field_of(name)
    way = "DESC" if sort.startswith("-") else "ASC"
    return Clause(f"{field.sql} IS NULL, {field.sql} {way}, runs.started DESC, runs.id DESC", field.bound * 2)


def field_of(name: str) -> Field:
    """A field by name; of tags, metrics and parameters any name there may be."""
    name = _ALIASES.get(name, name)
    if name in FIELDS:
        return FIELDS[name]
    family, _, inner = name.partition(":" if name.startswith("tag:") else ".")
    if inner and family == "tag":
        return Field("(SELECT value FROM tags WHERE tags.file = runs.file AND tags.name = ?)", TEXT, (inner,))
    if inner and family in ("metric", "metrics"):
        metric, _, form = inner.rpartition(".")
        if not metric or form not in _FORMS:
            metric, form = inner, "last"
        return Field(
            f'(SELECT metrics."{form}" FROM metrics WHERE metrics.file = runs.file AND metrics.name = ?)',
            NUMBER,
            (metric,),
        )
    if inner and family in ("param", "parameter", "parameters"):
        return Field(
            "(SELECT value FROM parameters WHERE parameters.file = runs.file AND parameters.name = ?)", ANY, (inner,)
        )
    if name in _SHORT:
        family, inner = "machine", name
    if inner and family == "machine":
        return Field("(SELECT value FROM facts WHERE facts.machine = runs.machine AND facts.name = ?)", TEXT, (inner,))
    if inner and family == "git":
        return field_of(inner)
    known = sorted((*FIELDS, *_ALIASES, "machine", *_SHORT, "since", "until"))
    close = difflib.get_close_matches(name, known, 1, 0.6)
    meant = f" (did you mean {close[0]}?)" if close else ""
    raise UnknownNameError(
        f"there is no field {name!r}{meant}; known are {', '.join(known)}, and such as {', '.join(FAMILIES)}"
    )


def _has_tag(text: str, negated: bool = False) -> Clause:
    name, sign, value = text.partition("=")
    inner, bound = "tags.name = ?", [name]
    if sign:
        inner, bound = f"{inner} AND tags.value = ?", [name, value]
    return Clause(
        f"{'NOT ' if negated else ''}EXISTS (SELECT 1 FROM tags WHERE tags.file = runs.file AND {inner})", tuple(bound)
    )


def _any_fact(sign: str, value: str) -> Clause:
    if sign not in ("=", "!=", "~", "!~"):
        raise UnknownNameError(f"machine{sign}{value}: machine is text, so the signs are =, !=, ~ and !~")
    inner, bound = (_contains("facts.value"), _pattern(value)) if "~" in sign else ("facts.value = ?", value)
    word = "NOT EXISTS" if sign.startswith("!") else "EXISTS"
    return Clause(f"{word} (SELECT 1 FROM facts WHERE facts.machine = runs.machine AND {inner})", (bound,))


def _contains(expression: str) -> str:
    return f"{expression} LIKE ? ESCAPE '\\'"


def _pattern(text: str) -> str:
    pattern = "%" + re.sub(r"([\\%_])", r"\\\1", text) + "%"
    if len(pattern.encode("utf-8", "replace")) > _PATTERN:
        raise UnknownNameError(f"{text[:40]!r}... is too long to be looked for inside of texts")
    return pattern


def _value(field: Field, name: str, text: str) -> Any:
    if field.kind == TIME:
        return _moment(text)[0]
    if field.kind in (TEXT, STATUS):
        return text
    if field.kind == ANY and text.lower() in ("true", "false"):
        return int(text.lower() == "true")
    try:
        amount, unit = parse_quantity(text) if _WORDY.search(text) else (float(text), "")
        amount = float(amount)
    except (ValueError, OverflowError):
        if field.kind == ANY:
            return text
        raise UnknownNameError(f"{name} is a number, {text!r} is none; write 1e12 or 1.5 TFLOP") from None
    wanted = _UNITS.get(_ALIASES.get(name, name), "")
    if field.kind == ANY or unit in ("", wanted):
        return amount
    if (wanted, unit) == ("J", "Wh"):
        return 3600.0 * amount
    raise UnknownNameError(f"{name} is in {wanted or 'no unit'}, {text!r} is in {unit}")


def _bounded(name: str, sign: str, value: str) -> Clause:
    if sign != "=":
        raise UnknownNameError(f"write {name}={value}")
    first, last = _moment(value)
    if name in ("since", "after"):
        return Clause("runs.started >= ?", (first,))
    return Clause("runs.started < ?", (last if name == "until" else first,))


def _contains_time(field: Field, value: str) -> Clause:
    """started=2026-01-31 is the whole day."""
    first, last = _moment(value)
    return Clause(f"{field.sql} >= ? AND {field.sql} < ?", (first, last))


def _moment(text: str) -> tuple[str, str]:
    """A date or time (UTC unless it says otherwise), or how long ago (7d, 24h): its begin and end, as runs write it."""
    try:
        first, last = _span(text.strip())
    except (ValueError, OverflowError):
        hint = "write 2026-01-31, 2026-01-31T12:00, or how long ago: 7d, 24h"
        raise UnknownNameError(f"{text!r} is no time, or out of reach; {hint}") from None
    return _written(first), _written(last)


def _span(text: str) -> tuple[datetime, datetime]:
    if ago := _AGO.fullmatch(text):
        span = {"min": "minutes", "h": "hours", "d": "days", "w": "weeks"}[ago[2]]
        moment = datetime.now(UTC) - timedelta(**{span: float(ago[1])})
        return moment, moment
    told = datetime.fromisoformat(text)
    first = told.replace(tzinfo=UTC) if told.tzinfo is None else told.astimezone(UTC)
    length = timedelta(days=1) if len(text) <= 10 else timedelta(seconds=1)
    latest = datetime.max.replace(tzinfo=UTC)
    return first, first + min(length, latest - first)


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")


def words(where: Sequence[str] | str) -> list[str]:
    return [where] if isinstance(where, str) else list(where)
