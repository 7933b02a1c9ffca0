"""Prometheus: a scrape endpoint while a run goes on, and a file for node_exporter's textfile collector.

Every value of `values` is a metric of its own: `energy_j` is `bitwatt_energy_joules_total`. Names and phases are
labels, which the client library escapes.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bitwatt.errors import BitwattError
from bitwatt.records import Run
from bitwatt.sinks import PATIENCE, Opening, absent, needed
from bitwatt.sinks.values import ABOUT, Value, values

#: Our ending -> that of Prometheus, which wants base units in full.
_UNITS = (("_bytes", "_bytes"), ("_j", "_joules"), ("_w", "_watts"), ("_s", "_seconds"), ("_g", "_grams"))
#: One among the ports that exporters have agreed on would be taken.
PORT = 9464
#: Seconds that an answer is given to arrive.
_ANSWER_S = 0.2


class Prometheus:
    """`port` to listen on (9464), `host` (127.0.0.1), `textfile` to write as well; `port=0` for the file alone;
    `linger`: seconds that the end of the program waits for a last scrape (0)."""

    name, every_rank = "prometheus", True

    def __init__(self, port: str = str(PORT), host: str = "127.0.0.1", textfile: str = "", linger: str = "0") -> None:
        if not (port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65536):
            raise ValueError(f"{port!r} is no port; options are port, host and textfile")
        self._port, self._host = int(port), host
        if not self._port and not textfile:
            raise ValueError("port=0 is for a textfile alone: name one")
        self._textfile = Path(textfile).absolute() if textfile else None
        self._linger = float(linger)
        self.patience = max(PATIENCE, self._linger + 5)
        self._latest: list[Any] = []
        self._last: list[Any] | None = None  # what a last scrape is waited for with
        self._scraped = threading.Event()
        self._server: Any = None
        self._registry: Any = None
        self._opening: Opening | None = None

    def why_absent(self) -> str | None:
        return absent("prometheus_client", "prometheus")

    def open(self, run: Opening) -> None:
        self._opening = run
        client = needed("prometheus_client", "prometheus")
        self._registry = client.CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        if self._port and self._server is None:
            port = self._port + int(os.environ.get("LOCAL_RANK") or 0)  # ranks of one host have one each
            try:
                self._server, _ = client.start_http_server(port, self._host, self._registry)
            except OSError as error:
                raise BitwattError(f"port {port} of {self._host} cannot be listened on: {error.strerror}") from error

    def live(self, run: Run) -> None:
        self._tell(run, live=True)

    def close(self, run: Run) -> str:
        try:
            self._tell(run, live=False)
            if self._server is not None and self._linger and self._scraped.wait(self._linger):
                time.sleep(_ANSWER_S)
        finally:
            server, self._server = self._server, None
            if server is not None:
                server.shutdown()
                server.server_close()
        return str(self._textfile) if self._textfile else f"scraped at {self._host}:{self._port}, until now"

    def collect(self) -> Iterable[Any]:
        """Called by the client library at each scrape."""
        latest = self._latest
        if latest is self._last:
            self._scraped.set()
        return list(latest)

    def _tell(self, run: Run, *, live: bool) -> None:
        core = needed("prometheus_client.core", "prometheus")
        settings = self._opening.settings if self._opening else None
        found = families(core, run, values(run, settings, live=live))
        if not live:
            self._last = found
        self._latest = found
        if self._textfile is not None:
            path = self._textfile
            if run.rank is not None and run.rank.rank:  # the first has the name that was given
                path = path.with_stem(f"{path.stem}-rank{run.rank.rank}")
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, found)


def _write(path: Path, found: list[Any]) -> None:
    """By a registry of its own: reading that of the server is a scrape."""
    client = needed("prometheus_client", "prometheus")
    registry = client.CollectorRegistry(auto_describe=False)
    registry.register(_Still(found))
    client.write_to_textfile(str(path), registry)


class _Still:
    """A collector, as the client library calls it, of what is known already."""

    def __init__(self, found: list[Any]) -> None:
        self._found = found

    def collect(self) -> Iterable[Any]:
        return self._found


def metric_name(value: Value) -> str:
    """Without the `_total` that counters get."""
    for ours, theirs in _UNITS:
        if value.name.endswith(ours):
            return f"bitwatt_{value.name.removesuffix(ours)}{theirs}"
    return f"bitwatt_{value.name}"


def families(core: Any, run: Run, found: list[Value]) -> list[Any]:
    """One family for each name; every sample has the same labels, those it does not know empty."""
    own = {"run": run.name} | ({} if run.rank is None else {"rank": str(run.rank.rank)})
    groups: dict[str, list[Value]] = {}
    for value in found:
        groups.setdefault(metric_name(value), []).append(value)
    made = []
    for name, group in groups.items():
        kind = core.CounterMetricFamily if group[0].total else core.GaugeMetricFamily
        labels = [*own, *dict.fromkeys(key for value in group for key in value.about)]
        family = kind(name, ABOUT[group[0].name], labels=labels)
        for value in group:
            family.add_metric([{**own, **value.about}.get(label, "") for label in labels], value.amount)
        made.append(family)
    if run.about.metrics:
        family = core.GaugeMetricFamily("bitwatt_metric", "the program's own, as last told", labels=[*own, "metric"])
        for metric, told in run.about.metrics.items():
            if told.get("last") is not None:
                family.add_metric([*own.values(), metric], told["last"])
        made.append(family)
    info = core.InfoMetricFamily("bitwatt_run", "what is measured", labels=list(own))
    info.add_metric(list(own.values()), {"id": run.id, "status": run.status, "started": run.started})
    return [*made, info]


SINK = Prometheus
