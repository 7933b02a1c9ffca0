"""Great Britain's Carbon Intensity API (NESO): half-hourly, open to all, direct emissions of what is generated.

Without a zone, all of Great Britain, measured where it is and forecast where not yet; with one (a region from 1 to 17,
or the outward part of a postcode), forecasts only: the service measures no regions.
https://carbon-intensity.github.io/api-definitions
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from bitwatt.config import Settings
from bitwatt.grid.http import get
from bitwatt.grid.record import AVERAGE, DIRECT, Intensity, UnavailableError, grams, moment, pieces, within

BASE = "https://api.carbonintensity.org.uk"
_HALF = timedelta(minutes=30)


def fetch(settings: Settings, begin: datetime, end: datetime) -> list[Intensity]:
    found: list[Intensity] = []
    for start, stop in pieces(begin - _HALF, end + _HALF, timedelta(days=13)):
        span = "/".join(time.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ") for time in (start, stop))
        found += _read(get(settings, BASE, _path(settings.grid_zone, span)), settings.grid_zone)
    return within(found, begin, end)


def _path(zone: str | None, span: str) -> str:
    if not zone:
        return f"intensity/{span}"
    return f"regional/intensity/{span}/{'regionid' if zone.isdecimal() else 'postcode'}/{quote(zone, safe='')}"


def _read(answer: Any, zone: str | None) -> list[Intensity]:
    data, name = answer.get("data") if isinstance(answer, Mapping) else None, "Great Britain"
    if zone:  # a region's rows lie one level deeper, in an object or a list of one
        region = data[0] if isinstance(data, list) and data else data
        if isinstance(region, Mapping):
            data, name = region.get("data"), str(region.get("shortname") or zone)
    if not isinstance(data, list):
        raise UnavailableError("its answer holds no data")
    found = []
    for row in data:
        told = row.get("intensity") or {}
        actual, forecast = grams(told.get("actual")), grams(told.get("forecast"))
        value = forecast if actual is None else actual
        if value is not None:
            note = "forecast" if actual is None else ""
            start, stop = moment(row.get("from")), moment(row.get("to"))
            found.append(Intensity(value, AVERAGE, DIRECT, name, "carbonintensity.org.uk", None, start, stop, note))
    return found
