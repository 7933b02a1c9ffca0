"""WattTime, API v3: marginal (`co2_moer`) or average (`co2_aoer`) operating emissions of a grid region, 5-minutely.

A login with user and password gives a token for half an hour. `historical` may lag by some minutes; the moments that
it does not reach yet come from `forecast`, whose first point is the present. https://docs.watttime.org
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from bitwatt.config import Settings
from bitwatt.grid.codecarbon import POUND_PER_MWH
from bitwatt.grid.http import get, secret, zone
from bitwatt.grid.record import (
    AVERAGE,
    DIRECT,
    MARGINAL,
    Intensity,
    UnavailableError,
    grams,
    lasting,
    moment,
    pieces,
    stamp,
    within,
)

BASE = "https://api.watttime.org"
USER, PASSWORD = "WATTTIME_USER", "WATTTIME_PASSWORD"


def fetch(settings: Settings, begin: datetime, end: datetime) -> list[Intensity]:
    signal = settings.grid_signal or "co2_moer"
    query = {"region": zone(settings, "CAISO_NORTH"), "signal_type": signal}
    headers = {"Authorization": f"Bearer {_login(settings)}"}
    found: list[Intensity] = []
    for start, stop in pieces(begin - timedelta(minutes=10), end, timedelta(days=31)):
        times = {"start": stamp(start), "end": stamp(stop)}
        found += _read(get(settings, BASE, "v3/historical", {**query, **times}, headers), signal, "")
    reached = max((one.valid_to for one in found if one.valid_to), default=begin)
    if reached < end and datetime.now(UTC) - end < timedelta(hours=1) and signal == "co2_moer":
        forecast = _read(get(settings, BASE, "v3/forecast", query, headers), signal, "forecast")
        found += [one for one in forecast if one.valid_from and one.valid_from >= reached]
    return within(found, begin, end)


def _login(settings: Settings) -> str:
    password, variable = secret(settings, PASSWORD), settings.grid_user_env or USER
    user = os.environ.get(variable, "")
    if not user:
        raise UnavailableError(f"the environment variable {variable} holds no user name")
    told = base64.b64encode(f"{user}:{password}".encode()).decode()
    answer = get(settings, BASE, "login", headers={"Authorization": f"Basic {told}"})
    token = answer.get("token") if isinstance(answer, Mapping) else None
    if not isinstance(token, str):
        raise UnavailableError("its login gave no token")
    return token


def _read(answer: Any, signal: str, note: str) -> list[Intensity]:
    if not isinstance(answer, Mapping) or not isinstance(answer.get("data"), list):
        raise UnavailableError("its answer holds no data")
    meta = answer.get("meta") or {}
    units = str(meta.get("units", "")).lower()
    if units != "lbs_co2_per_mwh":
        raise UnavailableError(f"its values are in {units or 'no unit'}, wanted are lbs_co2_per_mwh")
    points = [
        (moment(row.get("point_time")), value)
        for row in answer["data"]
        if isinstance(row, Mapping) and (value := grams(_times(row.get("value"), POUND_PER_MWH))) is not None
    ]
    seconds = meta.get("data_point_period_seconds")
    kind = MARGINAL if signal == "co2_moer" else AVERAGE
    issued = moment(meta["generated_at"]) if meta.get("generated_at") else None
    where = str(meta.get("region", ""))
    return [
        Intensity(value, kind, DIRECT, where, f"watttime {signal}", issued, start, stop, note)
        for start, stop, value in lasting(points, timedelta(seconds=seconds) if seconds else None)
    ]


def _times(value: Any, factor: float) -> Any:
    return value * factor if isinstance(value, int | float) and not isinstance(value, bool) else None
