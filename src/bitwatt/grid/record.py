"""One carbon intensity with all that makes it comparable with another, and what a provider's answer is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

AVERAGE, MARGINAL = "average", "marginal"
LIFECYCLE, DIRECT = "lifecycle", "direct"
UNSTATED = "unstated"
#: More than any power plant emits: such a number is in another unit.
_MOST = 3000.0


class UnavailableError(Exception):
    """A provider has no value; the text says why, and is empty where nobody asked it for one."""


@dataclass(frozen=True, slots=True)
class Intensity:
    """Grams of CO2e for a kWh. Valid at any time where no times are given."""

    value_g_per_kwh: float
    kind: str  # average, marginal, unstated
    scope: str  # lifecycle, direct, unstated
    zone: str
    provider: str
    issued_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    note: str = ""  # forecast, estimated by the provider, the year of a table

    def to_dict(self) -> dict[str, Any]:
        return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, known: Mapping[str, Any]) -> Intensity:
        times = {key: moment(known[key]) for key in ("issued_at", "valid_from", "valid_to") if known.get(key)}
        return cls(**{**known, **times})

    def __str__(self) -> str:
        return f"{self.value_g_per_kwh:.4g} g/kWh ({self.about})"

    @property
    def about(self) -> str:
        """What makes it comparable, in words."""
        kind = " ".join(word for word in (self.kind, self.scope) if word != UNSTATED)
        zone = self.zone if self.zone != UNSTATED else ""
        return ", ".join(filter(None, (kind, zone, self.provider, self.note)))


@dataclass(frozen=True, slots=True)
class Grid:
    """The intensities known, by time; `because` says why there are none, or why not those that were asked for."""

    intensities: tuple[Intensity, ...] = ()
    because: str = ""


def moment(text: Any) -> datetime:
    """ISO 8601 with a time zone; UTC where none is written."""
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise UnavailableError(f"its answer holds {text!r} where a time belongs") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def stamp(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def grams(value: Any) -> float | None:
    """A value as providers write it; None for null and for what is no intensity at all."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value) if 0 <= value <= _MOST else None


def pieces(begin: datetime, end: datetime, most: timedelta) -> Iterator[tuple[datetime, datetime]]:
    """A span in parts that a provider accepts."""
    while begin < end:
        yield begin, (cut := min(begin + most, end))
        begin = cut


def lasting(points: list[tuple[datetime, float]], step: timedelta | None) -> list[tuple[datetime, datetime, float]]:
    """Each value with its span: one step, or less where the next one begins sooner. Without a step, the usual distance
    between points."""
    ordered = sorted(dict(points).items())
    gaps = sorted(later - earlier for (earlier, _), (later, _) in pairwise(ordered))
    length = step or (gaps[len(gaps) // 2] if gaps else timedelta(hours=1))
    following = [begin for begin, _ in ordered[1:]]
    spans = [(begin, begin + length, value) for begin, value in ordered]
    return [(begin, min([end, *following[at : at + 1]]), value) for at, (begin, end, value) in enumerate(spans)]


def within(found: Iterable[Intensity], begin: datetime, end: datetime) -> list[Intensity]:
    """Those that say something about a span, one for each moment; the first where two begin together."""
    kept: dict[datetime, Intensity] = {}
    for one in found:
        if one.valid_from and one.valid_to and one.valid_to > begin and one.valid_from < end:
            kept.setdefault(one.valid_from, one)
    return list(kept.values())


def covers(found: Iterable[Intensity], begin: datetime, end: datetime) -> bool:
    """Whether every moment of a span has a value."""
    spans = sorted((one.valid_from, one.valid_to) for one in found if one.valid_from and one.valid_to)
    for start, stop in spans:
        if start <= begin:
            begin = max(begin, stop)
    return begin >= end and bool(spans)
