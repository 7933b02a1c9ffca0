"""Inference by the request: per 1,000 with idle in and out, by the month at a rate, and against what training took."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bitwatt.impact.energy import JOULES_PER_KWH
from bitwatt.readings import MODELLED
from bitwatt.units import format_count

THOUSAND = 1000
#: A twelfth of a mean year of the Gregorian calendar, 365.2425 days.
MONTH_S = 365.2425 * 86400 / 12


@dataclass(frozen=True, slots=True)
class Served:
    """What a span of serving took, as far as it is known. `energy_j` is gross, `idle_j` what the same devices would
    have drawn in that time doing nothing. `busy_s` is the time in which requests were worked on."""

    requests: int
    seconds: float
    energy_j: float | None = None
    idle_j: float | None = None
    flops: int | None = None
    bops: int | None = None
    grams: float | None = None
    cost: float | None = None
    busy_s: float | None = None
    how: str = ""  # of the energy

    @property
    def active_j(self) -> float | None:
        if self.energy_j is None or self.idle_j is None:
            return None
        return max(self.energy_j - self.idle_j, 0.0)


@dataclass(frozen=True, slots=True)
class PerThousand:
    """Each number for 1,000 requests; None where it is not known."""

    energy_j: float | None  # idle included
    active_j: float | None  # idle excluded
    flops: float | None
    bops: float | None
    grams: float | None
    cost: float | None
    how: str = ""

    @property
    def energy_wh(self) -> float | None:
        """In the unit of the AI Energy Score, which takes GPU energy alone."""
        return None if self.energy_j is None else self.energy_j / 3600


def per_thousand(served: Served) -> PerThousand | None:
    """None without a request: nothing can be said of one."""
    if served.requests <= 0:
        return None

    def each(value: float | None) -> float | None:
        return None if value is None else THOUSAND * value / served.requests

    return PerThousand(
        each(served.energy_j), each(served.active_j), each(served.flops), each(served.bops), each(served.grams),
        each(served.cost), served.how,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Month:
    """A month at a rate of requests. `rule` says how it was worked out, `machines` how many of this one it takes."""

    requests: float
    energy_kwh: float | None
    grams: float | None
    cost: float | None
    machines: int
    rule: str


def monthly(
    served: Served,
    requests_per_second: float,
    *,
    intensity_g_per_kwh: float | None = None,
    pue: float | None = None,
    price_per_kwh: float | None = None,
    price_per_device_hour: float | None = None,
    devices: int = 1,
    embodied_g_per_hour: float | None = None,
) -> Month | None:
    """Where idle is known: the machines' idle draw all month, and the active energy of each request on top. Else each
    request takes what it took when measured, idle included, which holds at the load that was measured only. The grams
    hold what making the devices of one machine emitted, if its part an hour is given."""
    if served.requests <= 0 or served.seconds <= 0:
        return None
    count, hours = requests_per_second * MONTH_S, MONTH_S / 3600
    per_request_s = (served.seconds if served.busy_s is None else served.busy_s) / served.requests
    machines = max(1, math.ceil(requests_per_second * per_request_s - 1e-9))
    energy_j: float | None
    if served.active_j is not None and served.idle_j is not None:
        idle_w = served.idle_j / served.seconds
        energy_j = machines * idle_w * MONTH_S + count * served.active_j / served.requests
        rule = f"{machines} x {format_count(idle_w, 'W')} idle all month + active energy of each request"
    elif served.energy_j is not None:
        energy_j = count * served.energy_j / served.requests
        as_measured = "" if served.how == MODELLED else " as measured"
        rule = f"gross energy of each request{as_measured}; no idle baseline is known, so another load may differ"
    else:
        energy_j, rule = None, "the energy of a request is not known"
    kwh = None if energy_j is None else energy_j / JOULES_PER_KWH * (pue or 1.0)
    rule += f"; PUE {pue:g}" if pue else "; PUE not applied"
    rule += f"; {served.how}" if served.how == MODELLED else ""
    made = machines * hours * (embodied_g_per_hour or 0.0)
    grams = None if kwh is None or intensity_g_per_kwh is None else kwh * intensity_g_per_kwh + made
    power = None if kwh is None or price_per_kwh is None else kwh * price_per_kwh
    rent = None if price_per_device_hour is None else machines * devices * hours * price_per_device_hour
    known = [part for part in (power, rent) if part is not None]
    return Month(count, kwh, grams, sum(known) if known else None, machines, rule)


def passes_after(training: float | None, per_request: float | None) -> int | None:
    """The first request with which inference has taken more than training did: energy, grams or FLOPs alike."""
    if training is None or per_request is None or per_request <= 0:
        return None
    return math.floor(training / per_request) + 1


def lifetime(training: float | None, per_request: float | None, served: int = 0) -> str:
    """The two joined, in a sentence."""
    number = passes_after(training, per_request)
    if number is None:
        return "unknown: training or a request has no known cost"
    if served >= number:
        return f"inference passed training after {format_count(number)} requests ({format_count(served)} served)"
    return f"inference passes training after {format_count(number)} requests"
