"""What a server served: how fast, what 1,000 requests took, what a month of them would take, and against training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bitwatt.errors import BitwattError
from bitwatt.impact.carbon import embodied_g
from bitwatt.impact.energy import JOULES_PER_KWH
from bitwatt.impact.money import ACCELERATORS
from bitwatt.impact.requests import Month, PerThousand, Served, lifetime, monthly, passes_after, per_thousand
from bitwatt.readings import MODELLED
from bitwatt.reports.blocks import Block
from bitwatt.reports.energy import joules
from bitwatt.reports.footprint import grams, money
from bitwatt.units import format_count, format_duration, format_percent

if TYPE_CHECKING:
    from bitwatt.records import Run
    from bitwatt.reports.model import View
    from bitwatt.served import Requests

SHARES = (0.5, 0.9, 0.99)


def block(view: View) -> Block | None:
    requests = view.run.requests
    if requests is None:
        if view.training is not None:
            raise BitwattError(
                f"run {view.run.id} served no requests, so there is no lifetime to tell; "
                "measure a server with bitwatt.meter_requests"
            )
        return None
    seen = served(view, requests)
    each = per_thousand(seen)
    month = _month(view, seen)
    facts = [("per 1,000", _each(view, each))] if each is not None else []
    if month is not None:
        rate = view.settings.requests_per_second or 0.0
        facts.append((f"a month at {_number(rate)}/s", _projected(view, month)))
    document = _document(view, requests, each, month)
    if view.training is not None:
        told, known = _lifetime(view, view.training, seen)
        facts += told
        document["lifetime"] = known
    return Block("requests", "Requests", _headline(view, requests), tuple(facts), document)


def served(view: View, requests: Requests) -> Served:
    """The run as a span of serving. Work is unknown where nothing was watched."""
    energy, run = view.energy, view.run
    used = energy.used if energy is not None else None
    return Served(
        requests=requests.count,
        seconds=run.seconds,
        energy_j=used.energy_j if used is not None else None,
        idle_j=used.baseline_j if used is not None else None,
        flops=view.priced["flops"].total if view.entries else None,
        bops=view.priced["bops"].total if view.entries else None,
        grams=energy.carbon.total_g if energy is not None else None,
        cost=energy.cost.total if energy is not None else None,
        busy_s=requests.busy_s,
        how=used.how if used is not None else "",
    )


def _headline(view: View, requests: Requests) -> str:
    if not requests.count:
        return "none was served"
    others = {"failed": requests.failed, "cancelled": requests.cancelled, "under way": requests.under_way}
    told = [", ".join([f"{requests.count:,} served", *[f"{n:,} {name}" for name, n in others.items() if n]])]
    if view.run.seconds > 0:
        told.append(f"{_number(requests.count / view.run.seconds)}/s")
    known = [(share, requests.percentile(share)) for share in SHARES]
    told.append(", ".join(f"p{100 * share:.0f} {format_duration(_short(s))}" for share, s in known if s is not None))
    if view.run.seconds > 0:
        told.append(f"busy {format_percent(min(requests.busy_s / view.run.seconds, 1.0))}")
    return " · ".join(told)


def _each(view: View, each: PerThousand) -> str:
    told = []
    if each.energy_j is None:
        told.append("energy unknown")
    else:
        without = "idle draw unknown" if each.active_j is None else f"{joules(each.active_j)} without"
        if each.active_j == 0:  # its baseline is no lower: what requests add is too little to be seen
            without = "no more than the idle draw"
        told.append(f"{joules(each.energy_j)} with idle, {without} ({each.how})")
    least = _least(view)
    for amount, unit in ((each.flops, "FLOP"), (each.bops, "BOP")):
        if amount is not None:
            told.append(f"{least}{format_count(_short(amount), unit)}")
    if each.grams is not None:
        told.append(f"{grams(each.grams)} CO2e")
    if each.cost is not None:
        told.append(money(each.cost, view.settings.currency))
    return " · ".join(told)


def _month(view: View, seen: Served) -> Month | None:
    settings, energy = view.settings, view.energy
    if settings.requests_per_second is None:
        return None
    devices = sum(part.device.kind in ACCELERATORS for part in energy.metered.energy) if energy is not None else 0
    return monthly(
        seen, settings.requests_per_second,
        intensity_g_per_kwh=energy.carbon.intensity_g_per_kwh if energy is not None else None,
        pue=settings.pue, price_per_kwh=settings.price_per_kwh,
        price_per_device_hour=settings.price_per_device_hour, devices=max(devices, 1),
        embodied_g_per_hour=embodied_g(settings, 3600.0, max(devices, 1)),
    )  # fmt: skip


def _projected(view: View, month: Month) -> str:
    told = [f"{format_count(_short(month.requests))} requests"]
    if month.energy_kwh is not None:
        told.append(f"{format_count(_short(1000 * month.energy_kwh), 'Wh')}")
    if month.grams is not None:
        told.append(f"{grams(month.grams)} CO2e")
    if month.cost is not None:
        told.append(money(month.cost, view.settings.currency))
    return " · ".join(told) + f" ({month.rule})"


def _lifetime(view: View, training: Run, seen: Served) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """Energy and FLOPs of training, and the request with which serving has taken as much. What is modelled, or a lower
    bound because calls have no rule, is marked in each part."""
    from bitwatt.reports.model import View as Other

    trained = Other(training, view.model, view.settings)
    spent = trained.energy.used if trained.energy is not None else None
    sides = {
        "energy": (
            (spent.energy_j if spent is not None else None, _mark(spent.how if spent is not None else "")),
            (seen.energy_j, _mark(seen.how)),
        ),
        "flops": (
            (trained.priced["flops"].total if trained.entries else None, _least(trained)),
            (seen.flops, _least(view)),
        ),
    }
    told, document = [], dict[str, Any](training=training.id)
    for name, ((whole, mark), (total, own)) in sides.items():
        each = total / seen.requests if total is not None and seen.requests else None
        shown = joules if name == "energy" else lambda amount: format_count(_short(amount), "FLOP")
        words = lifetime(whole, each, seen.requests)
        if whole is None or not each:
            lost = " and ".join(what for what, n in (("training", whole), ("a request", each)) if not n)
            words, detail = f"unknown: the {name} of {lost} is not known".replace("flops", "FLOPs"), ""
        else:
            detail = f" (training {mark}{shown(whole)}, a request {own}{shown(each)})"
        told.append((f"lifetime by {'FLOPs' if name == 'flops' else name}", words + detail))
        document[name] = {
            "training": whole, "per_request": each, "passes_after": passes_after(whole, each),
            "marks": {"training": mark.strip() or None, "per_request": own.strip() or None},
        }  # fmt: skip
    if spent is not None and spent.without:
        told.append(("not in training's energy", _without(spent.without)))
    if view.energy is not None and view.energy.used.without:
        told.append(("not in a request's energy", _without(view.energy.used.without)))
    return told, document


def _mark(how: str) -> str:
    return "modelled " if how == MODELLED else ""


def _least(view: View) -> str:
    return "≥ " if view.coverage.missing else ""


def _without(devices: Mapping[str, str]) -> str:
    return ", ".join(f"{device}: {why}" for device, why in devices.items())


def _document(view: View, requests: Requests, each: PerThousand | None, month: Month | None) -> dict[str, Any]:
    seconds = view.run.seconds
    return {
        "count": requests.count,
        "failed": requests.failed,
        "cancelled": requests.cancelled,
        "under_way": requests.under_way,
        "per_second": requests.count / seconds if seconds > 0 else None,
        "latency_s": {f"p{100 * share:g}": requests.percentile(share) for share in SHARES},
        "slowest_s": requests.slowest_s if requests.count else None,
        "busy_s": requests.busy_s,
        "busy_share": min(requests.busy_s / seconds, 1.0) if seconds > 0 else None,
        "per_1000": None if each is None else {**asdict(each), "energy_wh": each.energy_wh},
        "month": None if month is None else {**asdict(month), "energy_j": _joules(month)},
    }


def _joules(month: Month) -> float | None:
    return None if month.energy_kwh is None else month.energy_kwh * JOULES_PER_KWH


def _number(amount: float) -> str:
    return format_count(_short(amount))


def _short(amount: float) -> float:
    return float(f"{amount:.3g}")
