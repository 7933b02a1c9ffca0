"""A Carbon Aware SDK's Web API (Green Software Foundation) that the user runs: g/kWh by location and time.

It passes on WattTime's or Electricity Maps' data without saying which, so whether that is marginal or average is the
user's to say (`grid.kind`). https://carbon-aware-sdk.greensoftware.foundation/docs/tutorial-basics/carbon-aware-webapi
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from bitwatt.config import Settings
from bitwatt.grid.http import get, zone
from bitwatt.grid.record import UNSTATED, Intensity, UnavailableError, grams, lasting, moment, stamp

_SPAN = re.compile(r"(?:(\d+)\.)?(\d+):(\d+):(\d+)(?:\.\d+)?")


def fetch(settings: Settings, begin: datetime, end: datetime) -> list[Intensity]:
    if not settings.grid_url:
        raise UnavailableError("grid.url is not set: the address of the Carbon Aware SDK's Web API")
    place = zone(settings, "eastus")
    times = {"time": stamp(begin - timedelta(hours=1)), "toTime": stamp(end)}
    answer = get(settings, settings.grid_url, "emissions/bylocation", {"location": place, **times})
    if answer is None:  # 204: it knows the place, and has nothing for that time
        return []
    if not isinstance(answer, list):
        raise UnavailableError("its answer is no list of emissions")
    points, names, length = [], set(), None
    for row in answer:
        value = grams(row.get("rating")) if isinstance(row, Mapping) else None
        if value is not None:
            points.append((moment(row.get("time")), value))
            names.add(str(row.get("location") or place))
            length = _length(row.get("duration")) or length
    return [
        Intensity(value, settings.grid_kind or UNSTATED, UNSTATED, ", ".join(sorted(names)), "carbon-aware-sdk",
                  valid_from=start, valid_to=stop)
        for start, stop, value in lasting(points, length)
        if stop > begin and start < end
    ]  # fmt: skip


def _length(text: Any) -> timedelta | None:
    """[days.]hours:minutes:seconds, as .NET writes a span."""
    match = _SPAN.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds) or None
