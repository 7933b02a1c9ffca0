"""Prometheus: scraped and parsed by its own parser while the program runs, and as a textfile."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import bitwatt
from bitwatt.about import About
from bitwatt.metering import Meter
from bitwatt.sinks import Opening, delivery, send
from bitwatt.sinks.prometheus import Prometheus
from bitwatt.testing.sensors import FakeClock, FakeSensor
from factories import make_run, metered, transformer_run
from receivers import held_port

parser = pytest.importorskip("prometheus_client.parser", reason="pip install 'bitwatt[prometheus]'")


def scraped(text: str) -> dict[str, list[Any]]:
    """Sample name -> samples."""
    found: dict[str, list[Any]] = {}
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    return found


def page(port: int) -> dict[str, list[Any]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        return scraped(answer.read().decode())


class Steps(FakeClock):
    """Each reading of the meter's is 50 ms after the one before; a sensor that it asks reads the same moment."""

    def step(self) -> float:
        self.advance(0.05)
        return self.monotonic()


@pytest.fixture
def port() -> Iterator[int]:
    with held_port() as port:
        yield port


def test_it_is_scraped_while_the_program_runs_and_gone_afterwards(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setattr(delivery, "INTERVAL", 0.1)
    monkeypatch.setattr(delivery, "SINK_SHARE", 1.0)
    torch, clock = pytest.importorskip("torch"), Steps()
    meter = Meter([FakeSensor(clock, {"cpu:0": 50.0})], interval=0.05, clock=clock.step, shared=False)
    seen: list[float] = []
    with bitwatt.measure("training", keep=False, meter=meter, to=f"prometheus={port}") as session:
        torch.ones(4, 4) @ torch.ones(4, 4)
        bitwatt.metric("accuracy", 0.5)
        deadline = time.monotonic() + 60
        while len(seen) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
            try:
                now = page(port)
            except OSError:  # it is about to listen
                continue
            if (energy := now.get("bitwatt_energy_joules_total")) and energy[0].value not in seen:
                seen.append(energy[0].value)
    assert len(seen) == 2
    assert seen[0] < seen[1] <= session.run.meter.measured_j  # a counter: it only grows
    (energy,) = now["bitwatt_device_energy_joules_total"]
    assert energy.labels == {"run": "training", "device": "cpu:0", "kind": "cpu", "how": "measured"}
    assert now["bitwatt_device_power_watts"][0].value == pytest.approx(50, rel=0.2)
    assert now["bitwatt_flops_total"][0].value == 2 * 4**3
    assert [(one.labels["metric"], one.value) for one in now["bitwatt_metric"]] == [("accuracy", 0.5)]
    assert now["bitwatt_run_info"][0].labels["id"] == session.run.id
    with pytest.raises(OSError, match=r"refused|reset"):
        page(port)


def test_the_end_waits_for_a_last_scrape_where_that_is_asked_for(port: int) -> None:
    run, found = transformer_run(), dict[str, list[Any]]()
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send, run, f"prometheus={port},linger=300")
        deadline = time.monotonic() + 60
        while "bitwatt_flops_total" not in found and time.monotonic() < deadline:
            time.sleep(0.01)
            with suppress(OSError):  # it is about to listen
                found = page(port)
        (receipt,) = sending.result(timeout=120)
    assert (found["bitwatt_flops_total"][0].value, receipt.problem) == (bitwatt.totals(run).total, "")
    began = time.monotonic()
    assert not send(run, f"prometheus={port}")[0].problem  # else nobody is waited for
    assert time.monotonic() - began < 120


def test_a_last_scrape_is_one_of_what_was_told_last(tmp_path: Path) -> None:
    """Not the one before it, nor our own writing of a file; and at no moment is one missed."""
    sink = Prometheus(port="0", textfile="a.prom")
    sink.open(Opening("id", "toy", ""))
    sink.live(make_run(status="under way"))
    sink.collect()
    assert not sink._scraped.is_set()
    sink._tell(make_run(), live=False)
    assert not sink._scraped.is_set()
    assert [one.name for one in sink.collect()] == ["bitwatt_duration_seconds", "bitwatt_run"]
    assert sink._scraped.is_set()


def test_a_scrape_between_telling_and_waiting_is_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Prometheus(port="0", textfile="a.prom", linger="300")
    sink.open(Opening("id", "toy", ""))
    tell = sink._tell
    monkeypatch.setattr(sink, "_tell", lambda run, live: (tell(run, live=live), sink.collect()))
    monkeypatch.setattr(sink, "_server", SimpleNamespace(shutdown=lambda: None, server_close=lambda: None))
    began = time.monotonic()
    sink.close(make_run())
    assert time.monotonic() - began < 120


def test_a_textfile_is_written_whole(tmp_path: Path) -> None:
    (receipt,) = send(transformer_run(meter=metered()), "prometheus=port=0,textfile=out/bitwatt.prom")
    assert receipt.where == str(tmp_path / "out" / "bitwatt.prom")
    found = scraped(Path(receipt.where).read_text())
    phases = {one.labels["phase"]: one.value for one in found["bitwatt_phase_flops_total"]}
    assert sum(phases.values()) == found["bitwatt_flops_total"][0].value
    assert [one.labels["how"] for one in found["bitwatt_phase_energy_joules_total"]] == ["apportioned", "measured"]
    assert "bitwatt_co2e_grams_total" not in found  # no place is set
    assert [path.name for path in Path("out").iterdir()] == ["bitwatt.prom"]


def test_ranks_write_a_file_each(tmp_path: Path) -> None:
    from bitwatt.records import Rank

    for i in range(2):
        send(make_run(rank=Rank(i, 2, "job")), "prometheus=port=0,textfile=job.prom")
    assert sorted(path.name for path in tmp_path.glob("*.prom")) == ["job-rank1.prom", "job.prom"]
    assert scraped(Path("job-rank1.prom").read_text())["bitwatt_run_info"][0].labels["rank"] == "1"


def test_names_are_escaped(tmp_path: Path) -> None:
    name = 'evil"} 1\n# TYPE x counter\nx{a="\\'
    run = make_run(name=name, about=About(metrics={name: {"last": 1.0, "min": 1.0, "max": 1.0, "count": 1}}))
    send(run, "prometheus=port=0,textfile=a.prom")
    found = scraped(Path("a.prom").read_text())
    assert found["bitwatt_metric"][0].labels == {"run": name, "metric": name}
    assert "x" not in found


def test_a_port_that_is_taken_is_told() -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        (receipt,) = send(make_run(), f"prometheus={taken.getsockname()[1]}")
    assert "cannot be listened on: Address already in use" in receipt.problem
    assert receipt.tries == 1
