"""What only the user can know (place, prices, PUE, peaks): read from bitwatt.toml, pyproject.toml or flags, each value
with where it came from. Nothing has a default that would change a number: what is not set is not applied."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from bitwatt.errors import SettingsError
from bitwatt.units import parse

FILE, PROJECT = "bitwatt.toml", "pyproject.toml"
NOT_SET, BUDGET = "not set", "budget"
PROVIDERS = ("electricitymaps", "watttime", "uk", "carbon_aware_sdk")
#: What a device can do by number format, as the catalogue writes it, and the bytes it moves.
PEAKS = (
    "fp64", "fp64_tensor", "fp32", "fp32_tensor", "tf32", "bf16", "fp16", "fp8", "fp4", "int8", "int4", "bandwidth",
)  # fmt: skip

Check = Callable[[Any], Any]


def _number(low: float = 0.0, high: float = math.inf, unit: str = "") -> Check:
    """A number in `unit`, or text that `units.parse` understands, such as "270 W"."""

    def check(value: Any) -> float:
        if isinstance(value, str):
            try:
                value, found = parse(value)
            except ValueError:
                such = f"with a unit or without, such as 2 or 2 {unit}" if unit else "such as 1.4"
                raise ValueError(f"it is not a number, {such}") from None
            if found not in ("", unit):
                raise ValueError(f"it is in {found}, wanted is {unit or 'a plain number'}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError("it is not a number")
        if not low <= value <= high:
            bounds = f"{low:g} or more" if high == math.inf else f"between {low:g} and {high:g}"
            raise ValueError(f"it must be {bounds}")
        return float(value)

    return check


def _above_zero(unit: str = "") -> Check:
    number = _number(unit=unit)

    def check(value: Any) -> float:
        if not (found := number(value)):
            raise ValueError("it must be more than 0")
        return float(found)

    return check


def _grams(value: Any) -> float:
    found = float(_number(0, 3000)(value))
    if 0 < found < 1:
        raise ValueError(f"it is in grams per kWh and looks like kilograms; write {1000 * found:g}")
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("it is not text")
    return value.strip()


def _words(value: Any) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list | tuple):
        raise ValueError('it is a list of names, such as ["mlflow", "csv=emissions.csv"]')
    return tuple(_text(word) for word in words)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("it is neither true nor false")
    return value


def _one_of(*choices: str) -> Check:
    def check(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"it is one of {', '.join(choices)}{_meant(str(value), choices)}")
        return str(value)

    return check


def _peaks(value: Any) -> Mapping[str, Mapping[str, float]]:
    """Device as its driver names it (or * for any) -> format -> operations, or bytes, a second."""
    if not isinstance(value, Mapping) or not all(isinstance(table, Mapping) for table in value.values()):
        raise ValueError('it holds one table for each device: [peaks."NVIDIA H200"]')
    found: dict[str, dict[str, float]] = {}
    for device, table in value.items():
        for name, peak in table.items():
            if name not in PEAKS:
                raise ValueError(f"{device}.{name} is no peak; there are {', '.join(PEAKS)}{_meant(name, PEAKS)}")
            found.setdefault(device, {})[name] = _inside(f"{device}.{name}", _rate(name), peak)
    return found


def _rate(name: str) -> Check:
    def check(value: Any) -> float:
        if isinstance(value, str):
            value, unit = parse(value)
            if unit not in (("B/s",) if name == "bandwidth" else ("FLOP/s", "OP/s")):
                raise ValueError(
                    f"it is in {unit or 'no unit'}, wanted is {'B/s' if name == 'bandwidth' else 'FLOP/s'}"
                )
        return float(_above_zero()(value))

    return check


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("it is not a whole number, 1 or more")
    return value


def _curve(value: Any) -> tuple[tuple[float, float], ...]:
    """Watts by utilisation: [[0, 20], [1, "0.2 kW"]]."""
    if not isinstance(value, list | tuple) or len(value) < 2:
        raise ValueError("it holds two points or more: [[0, 20], [1, 200]], from idle to full load")
    points = []
    for point in value:
        if not isinstance(point, list | tuple) or len(point) != 2:
            raise ValueError(f"{point!r} is no point: [share of all cores, watts]")
        points.append((_number(0, 1)(point[0]), _number(unit="W")(point[1])))
    if len({share for share, _ in points}) < len(points):
        raise ValueError("it holds two watts for one utilisation")
    return tuple(sorted(points))


def _url(value: Any) -> str:
    if not (text := _text(value)).startswith(("http://", "https://")):
        raise ValueError("it is no http address")
    return text


def _inside(name: str, check: Check, value: Any) -> Any:
    try:
        return check(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _setting(check: Check, about: str, *, default: Any = None, key: str = "") -> Any:
    return field(default=default, metadata={"check": check, "about": about, "key": key})


def _table(check: Check, about: str) -> Any:
    return field(default_factory=dict, metadata={"check": check, "about": about, "key": ""})


@dataclass(frozen=True)
class Settings:
    """None is "not set": the value is then not applied, or what needs it is unknown."""

    pue: float | None = _setting(
        _number(1, 10), "power usage effectiveness of the building; energy is multiplied by it"
    )
    intensity_g_per_kwh: float | None = _setting(_grams, "carbon intensity of the electricity, gCO2e/kWh")
    country: str | None = _setting(_text, "ISO code of the country (FRA), for CodeCarbon's table where it is installed")
    region: str | None = _setting(_text, "US state, Chinese province, Nordic zone, or cloud:region (gcp:us-west1)")
    price_per_kwh: float | None = _setting(_number(), "price of electricity")
    price_per_device_hour: float | None = _setting(
        _number(), "price of an accelerator (or of the host without one) an hour"
    )
    currency: str | None = _setting(_text, "what prices are in")
    tdp_w: float | None = _setting(
        _above_zero("W"), "watts of the CPU at full load, for the model where nothing measures it"
    )
    modelled_cores: int | None = _setting(
        _count, "cores that those watts are of, where the machine shows fewer", key="modelled.cores"
    )
    modelled_curve: tuple[tuple[float, float], ...] = _setting(
        _curve, "watts by utilisation, measured on this machine, instead of tdp_w", default=(), key="modelled.curve"
    )
    dcgm_url: str | None = _setting(_url, "address of a dcgm-exporter, asked instead of dcgmi", key="dcgm.url")
    show_modelled: bool = _setting(_flag, "show ratios and carbon of modelled energy too, marked", default=False)
    measured_peaks: bool = _setting(_flag, "divide by what `bitwatt doctor --probe` measured here", default=False)
    float32: str | None = _setting(_one_of("fp32", "tf32"), "what float32 matrix products ran in on tensor cores")
    requests_per_second: float | None = _setting(_number(), "rate that projections are made for")
    transfer_j_per_byte: float | None = _setting(
        _number(unit="J/B"), "energy of sending or receiving a byte (modelled)"
    )
    peaks: Mapping[str, Mapping[str, float]] = _table(
        _peaks, "peaks and bandwidth of a device, in place of the catalogue's"
    )
    grid_provider: str | None = _setting(
        _one_of(*PROVIDERS), "asks this service for the intensity", key="grid.provider"
    )
    grid_zone: str | None = _setting(_text, "where, in the provider's words", key="grid.zone")
    grid_token_env: str | None = _setting(
        _text, "environment variable with its token or password", key="grid.token_env"
    )
    grid_user_env: str | None = _setting(_text, "environment variable with its user name", key="grid.user_env")
    grid_signal: str | None = _setting(_one_of("co2_moer", "co2_aoer"), "WattTime's signal", key="grid.signal")
    grid_kind: str | None = _setting(_one_of("average", "marginal"), "what a Carbon Aware SDK gives", key="grid.kind")
    grid_url: str | None = _setting(_text, "another address of the provider", key="grid.url")
    grid_timeout_s: float = _setting(_number(0.1, 60), "how long it may take in all", default=5.0, key="grid.timeout_s")
    embodied_kg: float | None = _setting(_number(), "kgCO2e of making one device", key="embodied.kg")
    embodied_lifetime_h: float | None = _setting(_above_zero(), "hours it will be used", key="embodied.lifetime_h")
    embodied_share: float | None = _setting(_number(0, 1), "share of it that this work reserves", key="embodied.share")
    store: str | None = _setting(
        _text, "where runs are kept: a folder (beside this file), or a URL such as s3://bucket/runs"
    )
    worth_by: str = _setting(
        _one_of("energy", "bops", "flops", "macs", "bytes", "seconds", "cost"),
        "what a gain in quality is held against",
        default="energy",
        key="worth.by",
    )
    worth_cost: float = _setting(
        _number(), "from this much more cost (0.1: a tenth) a gain is asked for", default=0.1, key="worth.cost"
    )
    worth_gain: float = _setting(
        _number(), "the gain, of the quality before, that it must bring", default=0.01, key="worth.gain"
    )
    worth_metric: str | None = _setting(_text, "the metric that tells quality", key="worth.metric")
    worth_lower_is_better: bool = _setting(
        _flag, "whether less of it is better", default=False, key="worth.lower_is_better"
    )
    worth_keeps: float = _setting(
        _number(0, 10), "share of the quality that a distilled model must keep", default=0.95, key="worth.keeps"
    )
    worth_at_most: float = _setting(_number(), "share of the energy that it may take", default=0.5, key="worth.at_most")
    to: tuple[str, ...] = _setting(_words, "where runs are sent as well: mlflow, csv=emissions.csv, ...", default=())
    sources: Mapping[str, str] = field(default_factory=dict, metadata={"own": True})  # name -> bitwatt.toml, --pue, ...

    def source(self, name: str) -> str:
        """Where a value came from; "not set" where nobody gave it."""
        return self.sources.get(name, NOT_SET)

    def told(self) -> dict[str, str]:
        """What was set and where, as text: for a report, and to be kept with a run."""
        return {
            key_of(name): f"{_shown(getattr(self, name))} ({source})"
            for name in NAMES
            if (source := self.sources.get(name)) and name not in ("store", "to")  # which may hold passwords
        }


NAMES = tuple(one.name for one in fields(Settings) if not one.metadata.get("own"))
_METADATA = {one.name: one.metadata for one in fields(Settings)}


def key_of(name: str) -> str:
    """As it is written in the file: grid_provider -> grid.provider."""
    return str(_METADATA[name]["key"] or name)


def about(name: str) -> str:
    return str(_METADATA[name]["about"])


def checked(name: str, value: Any) -> Any:
    """As it is used; ValueError where it makes no sense."""
    return _METADATA[name]["check"](value)


_KEYS = {key_of(name): name for name in NAMES}
_TABLES = {key.partition(".")[0] for key in _KEYS if "." in key}


def settings(start: Path | str | None = None, *, flags: Mapping[str, Any] | None = None, **keywords: Any) -> Settings:
    """The settings that hold in a folder: of the nearest file upward, then keywords, then command-line flags. Values
    of None say nothing."""
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    given = [(where, key, value) for where, found in _nearest(Path(start or Path.cwd())) for key, value in found]
    given += [("keyword", name, value) for name, value in keywords.items() if value is not None]
    given += [("flag", name, value) for name, value in (flags or {}).items() if value is not None]
    for where, key, value in given:
        name = key if where in ("keyword", "flag") and key in NAMES else _KEYS.get(key)
        if name is None:
            known = NAMES if where in ("keyword", "flag") else tuple(_KEYS)
            raise SettingsError(f"{_place(where, key)}: there is no setting {key!r}{_meant(key, known)}")
        try:
            values[name] = checked(name, value)
        except (ValueError, OverflowError) as error:  # the latter of a whole number that no float holds
            raise SettingsError(f"{_place(where, key)} is {value!r}, but {error}") from None
        sources[name] = _place(where, key) if where in ("keyword", "flag") else Path(where).name
    return Settings(**values, sources=sources)


def settings_here() -> Settings | None:
    """Those of the current folder; None where a file is wrong, which others tell of."""
    try:
        return settings()
    except (SettingsError, OSError):
        return None


def nearest(name: str) -> tuple[Any, Path] | None:
    """One setting of the files of this folder and those above, checked, and the file; None where it is not set."""
    for where, found in _nearest(Path.cwd()):
        for key, value in found:
            if _KEYS.get(key) == name:
                try:
                    return checked(name, value), Path(where)
                except ValueError as error:
                    raise SettingsError(f"{_place(where, key)} is {value!r}, but {error}") from None
    return None


def _place(where: str, key: str) -> str:
    if where == "flag":
        return f"--{key.replace('_', '-')}"
    return f"{key}=" if where == "keyword" else f"{where}: {key}"


def _nearest(folder: Path) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    for place in (folder.absolute(), *folder.absolute().parents):
        for file in (place / FILE, place / PROJECT):
            table = _read(file)
            if table is not None:
                yield str(file), list(_flat(table))
                return


#: The same file is read by every session.
_parsed = lru_cache(maxsize=8)(tomllib.loads)


def _read(file: Path) -> Mapping[str, Any] | None:
    """None where the file is not there, or says nothing about bitwatt."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        if file.name == FILE and file.is_file():
            raise SettingsError(f"{file} cannot be read: {error}") from None
        return None
    if file.name == PROJECT and "bitwatt" not in text:
        return None
    try:
        table: Any = _parsed(text)
    except tomllib.TOMLDecodeError as error:
        if file.name == PROJECT and "tool.bitwatt" not in text:
            return None  # it is broken, but that is not ours to tell
        raise SettingsError(f"{file} is no valid TOML: {error}") from None
    if file.name == PROJECT:
        tools = table.get("tool")
        table = tools.get("bitwatt") if isinstance(tools, Mapping) else None
    if table is not None and not isinstance(table, Mapping):
        raise SettingsError(f"{file}: [tool.bitwatt] is no table")
    return table


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if key == BUDGET:
            continue  # limits that `bitwatt check` reads
        if key in _TABLES and isinstance(value, Mapping):
            yield from ((f"{key}.{name}", inner) for name, inner in value.items())
        else:
            yield key, value


def _meant(word: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(word.replace("-", "_"), known, 1, 0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_shown(inner)}" for key, inner in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(" ".join(map(_shown, inner)) for inner in value)
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def project(start: Path | str | None = None) -> str:
    """What the project of a folder is called: by its pyproject.toml, or after the folder that holds it."""
    here = Path(start or Path.cwd()).absolute()
    for place in (here, *here.parents):
        file = place / PROJECT
        if file.is_file():
            try:
                named = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {}).get("name")
            except (OSError, ValueError, AttributeError):
                named = None
            return named if isinstance(named, str) and named else place.name
        if (place / ".git").exists() or (place / FILE).is_file():
            return place.name
    return here.name or "project"
