"""OpenTelemetry: metrics by OTLP over HTTP. Energy and power of devices under the names of the hardware conventions
(`hw.energy`, `hw.power`, of a whole machine `hw.host.energy`), everything else under `bitwatt.`.

The user's own meter provider is not touched: each export is made of the run so far and sent by the OTLP exporter, which
reads the usual OTEL_EXPORTER_OTLP_* variables where no endpoint is given.
"""

from __future__ import annotations

import time
from typing import Any

from bitwatt.records import Run
from bitwatt.sinks import Opening, absent, needed
from bitwatt.sinks.values import ABOUT, Value, moment, values, writer

#: What the conventions call our devices.
_TYPES = {"cpu": "cpu", "gpu": "gpu", "accelerator": "gpu", "dram": "memory"}
_HARDWARE = {"device_energy_j": ("hw.energy", "hw.host.energy"), "device_power_w": ("hw.power", "hw.host.power")}
_ATTRIBUTES = {"how": "bitwatt.how", "phase": "bitwatt.phase", "what": "bitwatt.what", "currency": "bitwatt.currency"}
_UNITS = ("_bytes", "_j", "_w", "_s", "_g")
_BIGGEST = 2**63 - 1


class OpenTelemetry:
    """`endpoint` of a collector, http://localhost:4318 or what the environment says; `timeout` of one export, in s."""

    name, every_rank = "otel", True

    def __init__(self, endpoint: str = "", timeout: str = "5") -> None:
        self._endpoint, self._timeout = endpoint, float(timeout)
        self._exporter: Any = None
        self._where = ""
        self._opening: Opening | None = None

    def why_absent(self) -> str | None:
        return absent("opentelemetry.exporter.otlp.proto.http", "otel") or absent("opentelemetry.sdk", "otel")

    def warm(self) -> None:
        needed("opentelemetry.exporter.otlp.proto.http.metric_exporter", "otel")

    def open(self, run: Opening) -> None:
        self._opening = run

    def live(self, run: Run) -> None:
        self._export(run, live=True)

    def close(self, run: Run) -> str:
        self._export(run, live=False)
        return self._where

    def _export(self, run: Run, *, live: bool) -> None:
        export = needed("opentelemetry.sdk.metrics.export", "otel")
        if self._exporter is None:
            made = needed("opentelemetry.exporter.otlp.proto.http.metric_exporter", "otel").OTLPMetricExporter
            where = {"endpoint": _metrics_url(self._endpoint)} if self._endpoint else {}
            self._exporter = made(timeout=self._timeout, **where)
            self._where = str(getattr(self._exporter, "_endpoint", self._endpoint))
        found = values(run, self._opening.settings if self._opening else None, live=live)
        result = self._exporter.export(metrics_data(run, found), timeout_millis=1000 * self._timeout)
        if result is not export.MetricExportResult.SUCCESS:
            raise ConnectionError(f"{self._where} did not take the metrics")


def _metrics_url(endpoint: str) -> str:
    return endpoint if endpoint.rstrip("/").endswith("/v1/metrics") else f"{endpoint.rstrip('/')}/v1/metrics"


def otel_name(value: Value) -> str:
    """bitwatt.phase_energy: the unit stands beside a metric, not in its name."""
    for ending in _UNITS:
        if value.name.endswith(ending):
            return f"bitwatt.{value.name.removesuffix(ending)}"
    return f"bitwatt.{value.name}"


def metrics_data(run: Run, found: list[Value]) -> Any:
    """The values as the SDK's exporters take them: totals since the run began, levels as of now."""
    export = needed("opentelemetry.sdk.metrics.export", "otel")
    resources = needed("opentelemetry.sdk.resources", "otel")
    instrumentation = needed("opentelemetry.sdk.util.instrumentation", "otel")
    scope = instrumentation.InstrumentationScope(*writer().split())
    began = int(1e9 * moment(run.started))
    now = int(1e9 * moment(run.started, run.seconds)) if run.status != "under way" else time.time_ns()

    def metric(name: str, about: str, unit: str, total: bool, points: list[tuple[float, dict[str, str]]]) -> Any:
        told = [
            export.NumberDataPoint(attributes, began if total else None, now, _number(amount))
            for amount, attributes in points
        ]
        if total:
            data = export.Sum(told, export.AggregationTemporality.CUMULATIVE, is_monotonic=True)
        else:
            data = export.Gauge(told)
        return export.Metric(name=name, description=about, unit=unit, data=data)

    groups: dict[str, list[Value]] = {}
    for value in found:
        groups.setdefault(_named(value), []).append(value)
    metrics = []
    for name, group in groups.items():
        points = [(one.amount, _attributes(one)) for one in group]
        metrics.append(metric(name, ABOUT[group[0].name], group[0].unit, group[0].total, points))
    told = {name: one["last"] for name, one in run.about.metrics.items() if one.get("last") is not None}
    if told:
        points = [(float(last or 0.0), {"bitwatt.metric": name}) for name, last in told.items()]
        metrics.append(metric("bitwatt.metric", "the program's own", "1", False, points))
    about = {"service.name": "bitwatt", "service.instance.id": run.id}
    about |= {"bitwatt.run.id": run.id, "bitwatt.run.name": run.name}
    about |= {} if run.rank is None else {"bitwatt.rank": str(run.rank.rank), "bitwatt.job": run.rank.job}
    # OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME; Resource.create needs threads, which cannot be had at the end
    resource = resources.Resource(about).merge(resources.OTELResourceDetector().detect())
    whole = export.ScopeMetrics(scope=scope, metrics=metrics, schema_url="")
    return export.MetricsData([export.ResourceMetrics(resource=resource, scope_metrics=[whole], schema_url="")])


def _named(value: Value) -> str:
    device, host = _HARDWARE.get(value.name, ("", ""))
    return (host if value.about.get("kind") == "host" else device) or otel_name(value)


def _attributes(value: Value) -> dict[str, str]:
    found = {_ATTRIBUTES[key]: text for key, text in value.about.items() if key in _ATTRIBUTES}
    if "device" in value.about:
        kind = value.about.get("kind", "")
        found |= {"hw.id": value.about["device"], "hw.type": _TYPES.get(kind, kind)}
        if "model" in value.about:
            found["hw.model"] = value.about["model"]
    return found


def _number(amount: float) -> float:
    """Whole numbers as such, as far as the protocol's 64 bits go."""
    return amount if not isinstance(amount, int) or abs(amount) <= _BIGGEST else float(amount)


SINK = OpenTelemetry
