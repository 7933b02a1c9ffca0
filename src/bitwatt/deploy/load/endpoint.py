"""Load on an HTTP endpoint: `bitwatt deploy --url`."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bitwatt.deploy.given import rows as forms
from bitwatt.deploy.load import programme
from bitwatt.deploy.load.bench import Bench
from bitwatt.deploy.load.connection import Address, Endpoint, address
from bitwatt.deploy.load.memory import uss_mb
from bitwatt.deploy.load.settings import MOST_CALLERS, checked
from bitwatt.deploy.measuring import batching
from bitwatt.deploy.records import Load, LoadPoint
from bitwatt.errors import BitwattError

PLACE = '"$rows"'
BODY = f'{{"inputs": {PLACE}}}'
_DIFFERENT = 64
_METHOD = re.compile(r"[A-Z]{1,20}")
_NAME, _VALUE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"), re.compile(r"[\t -~\xa0-\xff]*")


def http(
    url: str,
    *,
    rows: Any = None,
    body: str | bytes | None = None,
    method: str | None = None,
    headers: Mapping[str, str] | None = None,
    batch: int = 1,
    rates: Sequence[float] = (),
    callers: Sequence[int] = (),
    slo: str = "",
    seconds: float = 3.0,
    timeout_s: float = 10.0,
    seed: int = 0,
    connections: int = 32,
    overload: bool | None = None,
    pid: int | None = None,
    progress: Callable[[float, float, str], None] | None = None,
) -> Load:
    """Closed and open loop against a URL, and the highest rate that holds `slo`.

    `rows` are sent `batch` at a time as JSON: `body` is a text in which "$rows" (with its quotes) stands for them, by
    default {"inputs": "$rows"}; bytes, or a text without it, are sent as they are. With neither, it is a GET. Anything
    but a status of 200 to 299 that came whole within `timeout_s` has failed, and counts as slower than all others.

    The open loop has so many `connections`; where all are busy requests wait, and that is part of their latency.
    Only an address on this machine is pushed past saturation unless `overload` says so. `pid` is the server's process,
    where it is here and its memory should be watched."""
    where = address(url)
    settings = checked(
        seconds=seconds,
        rates=rates,
        callers=callers or sorted({1, min(8, connections), connections}),
        slo=slo,
        rows=batch,
        seed=seed,
        limit_s=timeout_s,
        workers=_connections(connections),
        overload=is_loopback(where) if overload is None else overload,
        why_not="not pushed past saturation, since it is not on this machine" if overload is None else "",
    )
    sent = bodies(rows, body, settings.rows)
    verb = (method or ("GET" if sent[0] is None else "POST")).upper()
    if not _METHOD.fullmatch(verb):
        raise BitwattError(f"{method!r} is no method of HTTP")
    said = _headers(headers or {}, sent[0])
    target = Endpoint(where, verb, sent, said, settings.limit_s)
    expected = len(settings.callers) + (len(settings.rates) or 2) + (10 if settings.slo else 0) + settings.overload
    done = 0

    def found(point: LoadPoint) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(min(done, expected), expected, f"{point.kind} at {where.host}")

    memory = (lambda: None) if pid is None else (lambda: uss_mb(pid))
    return programme.run(Bench(target, settings, found, memory=memory), settings)


def bodies(rows: Any, body: str | bytes | None, batch: int) -> list[bytes | None]:
    """What is sent, one after another."""
    if isinstance(body, bytes):
        return [body]
    if rows is None:
        if body is not None and PLACE in body:
            raise BitwattError(f"the body has a place for rows ({PLACE}), but there are none")
        return [None if body is None else body.encode()]
    template = BODY if body is None else body
    if PLACE not in template:
        return [template.encode()]
    inputs = forms.one_kind(rows)
    if not forms.count(inputs):
        raise BitwattError("there are no rows to send")
    return [template.replace(PLACE, _json(part)).encode() for part in batching.batches(inputs, batch, _DIFFERENT)]


def _json(rows: Any) -> str:
    if forms.is_frame(rows):
        rows = rows.to_numpy()
    rows = rows.toarray() if forms.is_sparse(rows) else forms.on_host(rows)
    try:
        return json.dumps(rows.tolist() if hasattr(rows, "tolist") else rows, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BitwattError(f"the rows cannot be written as JSON, which has no NaN or infinity: {error}") from error


def is_loopback(where: Address) -> bool:
    try:
        return ipaddress.ip_address(where.host).is_loopback
    except ValueError:
        return where.host.rstrip(".") == "localhost"


def _connections(connections: int) -> int:
    if not 1 <= connections <= MOST_CALLERS:
        raise BitwattError(f"connections: {connections!r} is not a whole number from 1 to {MOST_CALLERS}")
    return int(connections)


def _headers(given: Mapping[str, str], body: bytes | None) -> dict[str, str]:
    for name, value in given.items():
        if not _NAME.fullmatch(str(name)) or not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise BitwattError(f"{name!r} cannot be sent as a header")
    known = {name.lower() for name in given}
    kind = {} if body is None or "content-type" in known else {"Content-Type": "application/json"}
    return {"Accept": "*/*", **kind, **given}
