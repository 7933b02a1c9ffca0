"""Electricity Maps, API v3: flow-traced average intensity of a zone, hour by hour.

`history` gives the last 24 hours and is open to every token; `past-range` gives ten days at a time and needs a plan;
`latest` is the hour under way. https://portal.electricitymaps.com/docs/api
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from bitwatt.config import Settings
from bitwatt.grid.http import get, secret, zone
from bitwatt.grid.record import (
    AVERAGE,
    DIRECT,
    LIFECYCLE,
    UNSTATED,
    Intensity,
    UnavailableError,
    grams,
    moment,
    pieces,
    stamp,
    within,
)

BASE = "https://api.electricitymaps.com/v3"
TOKEN = "ELECTRICITYMAPS_TOKEN"
_STEPS = {"5_minutes": 5, "15_minutes": 15, "hourly": 60, "daily": 1440}


def fetch(settings: Settings, begin: datetime, end: datetime) -> list[Intensity]:
    place, headers = zone(settings, "DE"), {"auth-token": secret(settings, TOKEN)}

    def ask(what: str, **query: str) -> Any:
        return get(settings, BASE, f"carbon-intensity/{what}", {"zone": place, **query}, headers)

    rows: list[Mapping[str, Any]] = []
    if datetime.now(UTC) - begin < timedelta(hours=23):
        rows += _rows(ask("history"), "history")
    else:
        hour = begin.replace(minute=0, second=0, microsecond=0)
        for start, stop in pieces(hour, end, timedelta(days=10)):
            rows += _rows(ask("past-range", start=stamp(start), end=stamp(stop)), "data")
    known = list(_read(rows, place))
    latest = max((one.valid_to for one in known if one.valid_to), default=begin)
    if latest < end and datetime.now(UTC) - end < timedelta(hours=1):
        known += _read([ask("latest")], place)
    return within(known, begin, end)


def _rows(answer: Any, name: str) -> list[Mapping[str, Any]]:
    rows = answer.get(name) if isinstance(answer, Mapping) else None
    if not isinstance(rows, list):
        raise UnavailableError(f"its answer holds no {name!r}")
    return [row for row in rows if isinstance(row, Mapping)]


def _read(rows: list[Mapping[str, Any]], place: str) -> Iterator[Intensity]:
    for row in rows:
        value = grams(row.get("carbonIntensity")) if isinstance(row, Mapping) else None
        if value is None:
            continue
        minutes = _STEPS.get(str(row.get("temporalGranularity", "hourly")))
        if minutes is None:
            raise UnavailableError(f"its values are {row['temporalGranularity']}, which is not known")
        start = moment(row.get("datetime"))
        scope = {"lifecycle": LIFECYCLE, "direct": DIRECT}.get(str(row.get("emissionFactorType")), UNSTATED)
        note = "estimated by the provider" if row.get("isEstimated") else ""
        issued = moment(row["updatedAt"]) if row.get("updatedAt") else None
        stop = start + timedelta(minutes=minutes)
        yield Intensity(
            value, AVERAGE, scope, str(row.get("zone", place)), "electricitymaps", issued, start, stop, note
        )
