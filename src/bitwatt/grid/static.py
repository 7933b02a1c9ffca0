"""The user's own number, for all times."""

from __future__ import annotations

from datetime import datetime

from bitwatt.config import Settings
from bitwatt.grid.record import UNSTATED, Intensity, UnavailableError


def fetch(settings: Settings, begin: datetime, end: datetime) -> list[Intensity]:
    if settings.intensity_g_per_kwh is None:
        raise UnavailableError
    source = settings.source("intensity_g_per_kwh")
    zone = settings.region or settings.country or UNSTATED
    return [Intensity(settings.intensity_g_per_kwh, UNSTATED, UNSTATED, zone, f"the user's number, {source}")]
