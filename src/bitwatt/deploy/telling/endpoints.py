"""Load on an endpoint, told: there is no model to look into, so latency under load is all there is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bitwatt.comparing.drawing import draw, markdown_table, plain, wrapped
from bitwatt.comparing.tables import Column, Table
from bitwatt.deploy.amounts import amount
from bitwatt.deploy.documents import as_json
from bitwatt.deploy.records import Load, LoadPoint
from bitwatt.deploy.telling.words import milliseconds, rate
from bitwatt.errors import BitwattError
from bitwatt.reports.text import WIDTH

_COLUMNS = (
    Column("load", left=True), Column("offered"), Column("achieved"), Column("p50"), Column("p95"), Column("p99"),
    Column("p95 of service", spare=2), Column("failed", spare=1), Column("", left=True, firm=True),
)  # fmt: skip


def rows_of(data: str | None, target: str | None, trust: bool) -> Any:
    """What is sent: the rows of a file, without what is right for them."""
    if data is None:
        return None
    from bitwatt.deploy.given import datafiles

    return datafiles.read(Path(data), target, trusted=trust)[0]


def table(load: Load) -> Table:
    rows = [
        (
            point.kind,
            offered(point),
            rate(point.achieved_rate),
            *(milliseconds(value) for value in (point.p50_ms, point.p95_ms, point.p99_ms, point.service_p95_ms)),
            f"{point.failed:,} of {point.requests:,}",
            "saturated" if point.saturated else "holds" if point.holds else "misses" if point.holds is False else "",
        )
        for point in load.points
    ]
    return Table("Load", _COLUMNS, tuple(rows))


def offered(point: LoadPoint) -> str:
    if point.offered_rate is not None:
        return rate(point.offered_rate)
    return amount(point.callers or 1, "caller")


def sentences(load: Load) -> list[str]:
    told = []
    if load.slo:
        most = f"up to {rate(load.highest_rate)}" if load.highest_rate is not None else "at no rate that was tried"
        told.append(f"{load.slo} holds {most}")
    if load.capacity is not None:
        told.append(f"answers {rate(load.capacity)} when callers wait for it")
    if load.recovered is not None:
        after = "" if load.recovery_s is None else f" after {load.recovery_s:.2g} s"
        told.append(f"past saturation it {'recovered' + after if load.recovered else 'did not recover'}")
    return [*told, *([load.note] if load.note else [])]


def told(url: str, load: Load, format: str) -> str:
    if format == "json":
        return json.dumps({"url": url, **as_json(load)}, indent=2, allow_nan=False) + "\n"
    said = [plain(one) for one in (url, *sentences(load))]
    if format == "markdown":
        return "\n\n".join([f"## {said[0]}", *said[1:], markdown_table(table(load))]) + "\n"
    if format == "text":
        lines = [line for one in said for line in wrapped(one, WIDTH, "  ")]
        return "\n".join([*lines, "", *draw(table(load), WIDTH)]) + "\n"
    raise BitwattError("of an endpoint there is text, markdown and json")
