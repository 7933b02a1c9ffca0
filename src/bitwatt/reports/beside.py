"""A trace of another tool beside a run: what it says, what we say, and the ratio."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bitwatt.pricing import totals
from bitwatt.profiles.profile import Profile, most
from bitwatt.reports.blocks import Block
from bitwatt.units import format_bytes, format_count, format_duration, format_percent

if TYPE_CHECKING:
    from bitwatt.reports.model import View

_LISTED = 3
#: Compute capability -> the cost model of what its kernels execute.
_EXECUTED = {"9.0": "flops:executed@sm90"}


def block(view: View) -> Block | None:
    profile = view.beside
    if profile is None:
        return None
    pairs = _pairs(view, profile)
    facts = [(name, f"{shown(there)} there, {shown(here)} here ({ratio})") for name, there, here, ratio, shown in pairs]
    facts += _times(profile)
    document = {
        **asdict(profile),
        "compared": {name: {"theirs": theirs, "ours": ours} for name, theirs, ours, _, _ in pairs},
    }
    return Block("beside", f"Beside {profile.source}", _headline(view, profile), tuple(facts), document)


def _headline(view: View, profile: Profile) -> str:
    told = [f"{profile.kernels:,} GPU kernels"] if profile.kernels else ["no GPU kernel"]
    if profile.kernel_s is not None:
        told.append(f"{_time(profile.kernel_s)} of kernel time")
    if profile.busy_s is not None and profile.span_s:
        told.append(f"GPU busy {format_percent(min(profile.busy_s / profile.span_s, 1.0))} of {_time(profile.span_s)}")
    elif profile.span_s is not None:
        told.append(f"{_time(profile.span_s)} traced")
    told.append(f"this run {_time(view.run.seconds)}")
    return " · ".join(told)


def _pairs(view: View, profile: Profile) -> list[tuple[str, float, float, str, Any]]:
    """(what, there, here, their ratio, how to write it). The trace may cover another part of the program than the run:
    nothing is scaled."""
    found: list[tuple[str, float, float, str, Any]] = []
    if profile.flops is not None:
        model = _EXECUTED.get(profile.capability, "flops")
        here = totals(view.run, model).total
        found.append((f"FLOPs executed, {model}", profile.flops, here, _ratio(here, profile.flops), _flops))
    if profile.dram_bytes is not None:
        here = totals(view.run, "bytes").total
        found.append(("DRAM bytes, bytes of calls", profile.dram_bytes, here, _ratio(here, profile.dram_bytes), _bytes))
    return found


def _times(profile: Profile) -> list[tuple[str, str]]:
    told = []
    for name, seconds in (("phases", profile.by_phase), ("kernels", profile.by_kernel), ("ops", profile.by_op)):
        if seconds:
            shown = [f"{_short_name(one)} {_time(spent)}" for one, spent in most(seconds, _LISTED).items()]
            told.append((f"longest {name}", ", ".join(shown)))
    return told


def _ratio(ours: float, theirs: float) -> str:
    return f"{ours / theirs:.3g} of it" if theirs else "—"


def _short_name(name: str) -> str:
    return name if len(name) <= 50 else f"{name[:47]}..."


def _flops(amount: float) -> str:
    return format_count(float(f"{amount:.3g}"), "FLOP")


def _bytes(amount: float) -> str:
    return format_bytes(float(f"{amount:.3g}"))


def _time(seconds: float) -> str:
    return format_duration(float(f"{seconds:.3g}"))
