"""What was set where a run was made holds for it wherever it is reported, unless the reader says otherwise.

Only what belongs to the place and the machine: PUE, electricity, prices, what devices are made of. How much to show,
whom to ask and what a gain is worth are the reader's own. Settings that answer one question together are taken
together: a reader who names another country does not want the run's intensity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bitwatt.config import Settings, checked, key_of

_TOGETHER = (
    ("pue",),
    ("intensity_g_per_kwh", "country", "region", "grid_provider"),
    ("price_per_kwh", "price_per_device_hour", "currency"),
    ("embodied_kg", "embodied_lifetime_h", "embodied_share"),
    ("transfer_j_per_byte",),
    ("float32",),
)
_READERS = {"grid_provider"}  # asked with the reader's own token, so never taken over; its answer is kept in the run


def inherited(mine: Settings, kept: Mapping[str, str]) -> Settings:
    """`mine`, and of what a run keeps (as `Settings.told` wrote it) the questions that `mine` leaves open."""
    found: dict[str, Any] = {}
    sources = dict(mine.sources)
    for names in _TOGETHER:
        if any(name in mine.sources for name in names):
            continue
        for name in names:
            value, _, place = kept.get(key_of(name), "").removesuffix(")").rpartition(" (")
            if not value or name in _READERS:
                continue
            try:
                found[name], sources[name] = checked(name, value), f"{place}, where it ran"
            except ValueError:  # an earlier version took it, this one does not: it stays a text of the run
                continue
    return replace(mine, **found, sources=sources) if found else mine
