"""OpenTelemetry: what an OTLP receiver gets, decoded by the protocol's own classes."""

from __future__ import annotations

from typing import Any

import pytest
from passing import until

import bitwatt
from bitwatt.about import About
from bitwatt.config import settings
from bitwatt.metering import Meter
from bitwatt.readings import Device, Energy, Metered
from bitwatt.sensors.counters import Clock
from bitwatt.sinks import delivery, send
from bitwatt.testing.sensors import FakeSensor
from factories import make_run, metered, transformer_run
from receivers import Receiver, receiver

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="pip install 'bitwatt[otel]'")
service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")


def decoded(body: bytes) -> tuple[dict[str, str], dict[str, Any]]:
    """Attributes of the resource, and metrics by name."""
    request = service.ExportMetricsServiceRequest.FromString(body)
    (resource,) = request.resource_metrics
    (scope,) = resource.scope_metrics
    assert scope.scope.name == "bitwatt"
    return attributes(resource.resource), {metric.name: metric for metric in scope.metrics}


def attributes(thing: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in thing.attributes}


def received(run: Any, given: Any = None) -> tuple[dict[str, str], dict[str, Any], Receiver]:
    with receiver() as server:
        (receipt,) = send(run, f"otel={server.url},timeout=60", given)
        assert not receipt.problem, receipt
    (body,) = server.bodies
    return (*decoded(body), server)


def test_energy_and_power_follow_the_hardware_conventions() -> None:
    resource, found, _ = received(transformer_run(meter=metered()))
    energy = found["hw.energy"]
    assert (energy.unit, energy.sum.is_monotonic) == ("J", True)
    assert energy.sum.aggregation_temporality == 2  # cumulative
    points = {attributes(point)["hw.id"]: point for point in energy.sum.data_points}
    assert {name: point.as_double for name, point in points.items()} == {"gpu:GPU-1": 3000.0, "cpu:0": 600.0}
    assert attributes(points["gpu:GPU-1"]) == {
        "hw.id": "gpu:GPU-1", "hw.type": "gpu", "hw.model": "A GPU", "bitwatt.how": "measured",
    }  # fmt: skip
    seconds = (points["cpu:0"].time_unix_nano - points["cpu:0"].start_time_unix_nano) / 1e9
    assert seconds == pytest.approx(4.412, abs=0.001)
    power = found["hw.power"]
    assert (power.unit, power.gauge.data_points[0].as_double) == ("W", 580.0)
    assert resource["bitwatt.run.name"] == "tiny-transformer"
    assert resource["service.name"] == "bitwatt"


def test_a_meter_of_the_whole_machine_is_the_hosts_energy_and_models_are_marked() -> None:
    parts = (
        Energy(Device("host", "host"), 900.0, "measured", "a wall meter", 12.0),
        Energy(Device("dram:0", "dram"), 30.0, "modelled", "a model", 12.0),
    )
    _, found, _ = received(make_run(meter=Metered(12.0, parts)))
    assert found["hw.host.energy"].sum.data_points[0].as_double == 900.0
    (memory,) = found["hw.energy"].sum.data_points
    assert attributes(memory) == {"hw.id": "dram:0", "hw.type": "memory", "bitwatt.how": "modelled"}


def test_counts_are_whole_numbers_as_far_as_the_protocol_goes() -> None:
    run = transformer_run(
        meter=metered(), about=About(metrics={"acc": {"last": 0.0, "min": 0.0, "max": 0.0, "count": 1}})
    )
    _, found, _ = received(run, settings("/", intensity_g_per_kwh=100.0))
    assert found["bitwatt.flops"].sum.data_points[0].as_int == bitwatt.totals(run).total
    phases = {attributes(point)["bitwatt.phase"]: point.as_int for point in found["bitwatt.phase_bops"].sum.data_points}
    assert phases["loss"] == bitwatt.totals(run, "bops").by("phase")["loss"]
    assert found["bitwatt.co2e"].unit == "g"
    assert found["bitwatt.metric"].gauge.data_points[0].as_double == 0.0
    huge = transformer_run(layers=48, width=8192, steps=10**9)
    _, found, _ = received(huge)
    assert found["bitwatt.flops"].sum.data_points[0].as_double == float(bitwatt.totals(huge).total)


def test_it_is_told_while_the_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "INTERVAL", 0.1)
    monkeypatch.setattr(delivery, "SINK_SHARE", 1.0)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "trainer")
    meter = Meter([FakeSensor(Clock(), {"cpu:0": 50.0})], interval=0.05, shared=False)
    with receiver() as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.url)
        with bitwatt.measure("training", keep=False, meter=meter, to="otel=timeout=60"):
            until(lambda: sum("hw.energy" in decoded(body)[1] for body in list(server.bodies)) >= 3)
    told = [decoded(body) for body in server.bodies]
    joules = [found["hw.energy"].sum.data_points[0].as_double for _, found in told if "hw.energy" in found]
    assert joules == sorted(joules)
    starts = {found["bitwatt.duration"].sum.data_points[0].start_time_unix_nano for _, found in told}
    assert len(starts) == 1  # one counter that goes on
    assert {resource["service.name"] for resource, _ in told} == {"trainer"}
