"""CodeCarbon's tables, where that package is installed: by country, by state or province, by cloud region.

Its files are read, the package is not imported: that would take seconds and may look up the place over the network.
Each file has a unit of its own: the table of countries g/kWh, that of US states lbs/MWh, cloud regions g/kWh; China's
provinces and Nordic zones say theirs. Canada's provinces are given as a mix of sources, no intensity: not used.
"""

from __future__ import annotations

import csv
import json
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bitwatt.config import Settings
from bitwatt.grid.record import AVERAGE, DIRECT, LIFECYCLE, UNSTATED, Intensity, UnavailableError, grams

#: Grams for each kWh in a pound for each MWh: the international pound.
POUND_PER_MWH = 453.59237 / 1000


#: Countries of which it has regions of that kind -> how their codes begin.
_COUNTRIES = {"CHN": "CN", "DNK": "DK", "FIN": "FI", "NOR": "NO", "SWE": "SE"}


def fetch(settings: Settings, begin: datetime, end: datetime) -> list[Intensity]:
    if not (settings.country or settings.region):
        raise UnavailableError
    found = _region(settings.region, settings.country) if settings.region else _country(settings.country or "")
    value, scope, zone, note = found
    checked = grams(value)
    if checked is None:
        raise UnavailableError(f"its table holds {value!r} for {zone}")
    return [Intensity(checked, AVERAGE, scope, zone, f"codecarbon {_version()}", note=note)]


Found = tuple[Any, str, str, str]


def _country(code: str) -> Found:
    table = _json("private_infra", "global_energy_mix.json")
    row = table.get(code.upper())
    if row is None:
        raise UnavailableError(f"no country {code!r} in its table; it takes ISO codes of three letters, such as FRA")
    return row.get("carbon_intensity"), LIFECYCLE, code.upper(), f"mean of {row.get('year')}"


def _region(region: str, country: str | None) -> Found:
    if ":" in region:
        return _cloud(*region.lower().split(":", 1))
    where = (country or "").upper()
    if where == "USA":
        return _state(region)
    if where == "CAN":
        raise UnavailableError("of Canada's provinces it has the sources only; set intensity_g_per_kwh")
    for parts in (("private_infra", "nordic_emissions.json"), _newest("china_provincial_emissions.json")):
        for code, row in _json(*parts).get("data", {}).items():
            if region.lower() in (code.lower(), *row.get("names", ())):
                if where and _COUNTRIES.get(where) != code[:2].upper():
                    raise UnavailableError(f"region {region!r} is {code} there, which is not in {where}")
                unit = str(row.get("unit", "")).replace(" ", "")
                if unit not in ("gCO2/kWh", "gCO2eq/kWh"):
                    raise UnavailableError(f"its table has {code} in {unit!r}, which is not known")
                # a factor of CO2 alone is what the plants emit
                scope = DIRECT if unit == "gCO2/kWh" else UNSTATED
                return row.get("emission_factor"), scope, code, f"mean of {row.get('year')}"
    hint = "" if country else "; of a US state, set country = 'USA' as well"
    raise UnavailableError(f"no region {region!r} in its tables{hint}")


def _state(name: str) -> Found:
    table = _json(*(parts := _newest("usa_emissions.json")))
    unit = table.get("_unit", {}).get("emissions", "lbs/MWh")
    if unit != "lbs/MWh":
        raise UnavailableError(f"its table of US states is in {unit!r}, which is not known")
    for state, row in table.items():
        if not state.startswith("_") and name.lower() in (state, str(row.get("regionCode", "")).lower()):
            value = row.get("emissions")
            known = isinstance(value, int | float)
            year = parts[-2]
            return value * POUND_PER_MWH if known else None, DIRECT, f"USA, {state.title()}", f"mean of {year}"
    raise UnavailableError(f"no US state {name!r} in its table")


def _cloud(provider: str, region: str) -> Found:
    with _file("cloud", "impact.csv").open(encoding="utf-8-sig", newline="") as lines:
        for row in csv.DictReader(lines):
            if (row["provider"].lower(), row["region"].lower()) == (provider, region):
                value = float(row["impact"]) if row["impact"] else None
                return value, UNSTATED, f"{provider}:{region}", "a year's mean"
    raise UnavailableError(f"no cloud region {provider}:{region} in its table, which knows gcp's only")


def _file(*parts: str) -> Path:
    spec = find_spec("codecarbon")
    if spec is None or not spec.submodule_search_locations:
        raise UnavailableError("the package is not installed; pip install codecarbon, or set intensity_g_per_kwh")
    return Path(next(iter(spec.submodule_search_locations)), "data", *parts)


def _newest(name: str) -> tuple[str, str, str]:
    years = sorted(file.parent.name for file in _file("private_infra").glob(f"*/{name}"))
    if not years:
        raise UnavailableError(f"this version of it has no {name}")
    return "private_infra", years[-1], name


def _json(*parts: str) -> Any:
    file = _file(*parts)
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UnavailableError(f"its {file.name} cannot be read: {error}") from None


def _version() -> str:
    try:
        return version("codecarbon")
    except PackageNotFoundError:
        return "of unknown version"
