"""What a list shows of a run: fields by the names that filters know them by, as values, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bitwatt.about import about_json
from bitwatt.harmless import on_terminal
from bitwatt.ranks.silence import UNDER_WAY, state_of
from bitwatt.readings import IN_PART, MEASURED
from bitwatt.store.columns import FIELDS
from bitwatt.store.filters import field_of
from bitwatt.store.runfile import Header
from bitwatt.units import format_count, format_duration

_UNITS = {
    "flops": "FLOP", "bops": "BOP", "macs": "MAC", "bytes": "B", "energy_j": "J", "grams": "g", "memory_bytes": "B",
    "device_memory_bytes": "B", "parameters": "",
}  # fmt: skip
_SUMS = ("flops", "bops", "macs", "bytes")
#: Metrics and tags that are shown without being asked for.
_METRICS = 3
_FORMS = (".last", ".min", ".max", ".count")


def default_columns(shown: Sequence[Header], *, jobs: bool = False) -> list[str]:
    """Those that say something of at least one run; of jobs their status does."""
    found = ["id", "name", "seconds", "flops", "bops", "energy_j"]
    names = dict.fromkeys(name for header in shown for name in header.about.metrics)
    # a metric may be called val.max, which means another thing
    found += [f"metric.{name}" + (".last" if name.endswith(_FORMS) else "") for name in list(names)[:_METRICS]]
    found += ["missing", "tags", "status"]
    always = ("id", "name", "seconds", *(["status"] if jobs else []))
    return [name for name in found if name in always or any(cell(header, name) for header in shown)]


def value(header: Header, name: str) -> Any:
    """A field of a run, by the name that filters know it by."""
    about = header.about
    if name == "tags":
        return dict(about.tags)
    if name == "status":
        return state_of(header)
    field_of(name)  # an unknown one is told of
    family, _, inner = name.partition(":" if name.startswith("tag:") else ".")
    if family == "tag":
        return about.tags.get(inner)
    if family in ("param", "parameter", "parameters") and inner:
        return about.parameters.get(inner)
    if family in ("metric", "metrics"):
        metric, _, form = inner.rpartition(".")
        if not metric or form not in ("last", "min", "max", "count"):
            metric, form = inner, "last"
        return about.metrics.get(metric, {}).get(form)
    if family == "machine" and inner:
        return header.machine.get(inner)
    return FIELDS[name](header) if name in FIELDS else header.machine.get(name)


def cell(header: Header, name: str) -> str:
    found = value(header, name)
    if found is None or found == {}:
        return ""
    if name == "tags":
        return on_terminal(" ".join(f"{key}={text}" if text else key for key, text in found.items()))
    if name == "status":
        return on_terminal(found)[:80] if found != "ok" else ""
    if name == "missing":
        return f"{found:,}" if found else ""
    if name == "seconds":
        return format_duration(float(f"{found:.3g}") if found < 60 else found)
    if name == "energy_j" and isinstance(found, int | float):
        return joules(found, header.summary.get("energy_how"))
    if name in _UNITS and isinstance(found, int | float):
        least = "≥ " if header.status == UNDER_WAY and name in _SUMS else ""  # as of when it was last written
        return least + format_count(found, _UNITS[name])
    if name == "started":
        return on_terminal(found)[:19].replace("T", " ")
    return on_terminal(f"{found:.4g}" if isinstance(found, float) else str(found))


def joules(amount: float, how: str | None) -> str:
    """With a mark where they were not measured (~) or only in part (≥)."""
    mark = "≥ " if (how or "").endswith(IN_PART) else "" if how in (None, MEASURED) else "~"
    return mark + format_count(float(f"{amount:.3g}"), "J")


def title(name: str) -> str:
    for prefix in ("metric.", "param.", "tag:", "machine."):
        name = name.removeprefix(prefix)
    return on_terminal({"seconds": "time", "energy_j": "energy", "memory_bytes": "memory"}.get(name, name))


def document(header: Header) -> dict[str, Any]:
    """A run for programs, as far as its first line tells it."""
    rank = header.rank
    return {
        "id": header.id,
        "name": header.name,
        "started": header.started,
        "seconds": header.seconds,
        "status": state_of(header),
        "command": header.command,
        "rank": None if rank is None else {"rank": rank.rank, "world": rank.world, "job": rank.job},
        **{key: text for key, text in header.summary.items() if key not in ("ranks", "meter")},
        "about": about_json(header.about),
        "machine": dict(header.machine),
    }
