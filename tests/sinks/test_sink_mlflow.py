"""MLflow: a real server, written to by the client and read back by its API."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import bitwatt
from bitwatt.about import About
from bitwatt.config import settings
from bitwatt.metering import Meter
from bitwatt.sensors.counters import Clock
from bitwatt.sinks import delivery, send
from bitwatt.testing.sensors import FakeSensor
from factories import make_run, metered, transformer_run
from receivers import held_port, receiver

mlflow = pytest.importorskip("mlflow", reason="pip install 'bitwatt[mlflow]'")

#: The server has needs of its own: `make setup` puts it into a folder that only this test looks into.
SERVER = Path(sys.prefix) / "mlflow"
ABOUT = About(
    tags={"team": "vision", "mlflow.user": "somebody else"},
    parameters={"lr": 0.1},
    batch_size=32,
    metrics={"acc": {"last": 0.9, "min": 0.5, "max": 0.9, "count": 2}},
    series={"acc": ((10, 1.0, 0.5), (20, 2.0, 0.9))},
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not (SERVER / "mlflow").exists():
        pytest.skip("make setup installs MLflow's server")
    with held_port() as port:
        yield from _served(tmp_path_factory.mktemp("mlflow"), port)


def _served(folder: Path, port: int) -> Iterator[str]:
    command = [
        sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
        "--backend-store-uri", f"sqlite:///{folder}/runs.db", "--artifacts-destination", str(folder / "artifacts"),
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(SERVER), "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    environment |= {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
    with open(folder / "log", "w") as log:
        running = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 180
    while True:
        try:
            urllib.request.urlopen(f"{url}/health", timeout=2)
            break
        except OSError:
            assert running.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.2)
    yield url
    os.killpg(running.pid, signal.SIGTERM)
    try:
        running.wait(60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)


@pytest.fixture
def client(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    yield mlflow.MlflowClient(server)
    mlflow.end_run()


def tagged(client: Any, run_id: str) -> Any:
    """By MLflow's search, in whatever experiment."""
    everywhere = [one.experiment_id for one in client.search_experiments()]
    (found,) = client.search_runs(everywhere, f"tags.`bitwatt.run` = '{run_id}'")
    return found


def test_energy_flops_and_bops_are_read_back_from_the_tagged_run(client: Any) -> None:
    run = transformer_run(meter=metered(), about=ABOUT)
    (receipt,) = send(run, "mlflow=experiment=of bitwatt", settings("/", intensity_g_per_kwh=100.0))
    assert not receipt.problem, receipt
    found = tagged(client, run.id)
    assert found.data.metrics["energy_j"] == 3600.0
    assert found.data.metrics["flops"] == bitwatt.totals(run).total
    assert found.data.metrics["bops"] == bitwatt.totals(run, "bops").total
    assert found.data.metrics["co2e_g"] == pytest.approx(0.1)
    assert found.data.metrics["phase_energy_j/forward"] == 1000.0
    assert found.data.tags["bitwatt.energy_j.how"] == "measured"
    assert found.data.tags["bitwatt.flops"] == str(bitwatt.totals(run).total)
    assert (found.data.tags["team"], found.data.tags["tag.mlflow.user"]) == ("vision", "somebody else")
    assert found.data.params == {"lr": "0.1", "batch_size": "32"}
    assert (found.info.status, found.info.run_name) == ("FINISHED", "tiny-transformer")
    assert found.info.end_time - found.info.start_time == 4412
    points = client.get_metric_history(found.info.run_id, "acc")
    assert [(one.step, one.value, one.timestamp - found.info.start_time) for one in points] == [
        (10, 0.5, 1000), (20, 0.9, 2000),
    ]  # fmt: skip
    assert client.get_experiment(found.info.experiment_id).name == "of bitwatt"
    assert receipt.where.endswith(f"/runs/{found.info.run_id}")
    page = Path(client.download_artifacts(found.info.run_id, "bitwatt/report.html")).read_text()
    assert page.lstrip().lower().startswith("<!doctype html")
    assert "tiny-transformer" in page


def test_the_programs_own_run_is_joined_and_left_as_it_is(client: Any) -> None:
    with mlflow.start_run(run_name="mine") as mine:
        mlflow.log_param("lr", "mine")
        mlflow.log_metric("acc", 0.25, step=1)
        with bitwatt.measure("toy", to="mlflow", parameters={"lr": "ours", "depth": 3}) as session:
            bitwatt.metric("acc", 0.75, step=1)
            bitwatt.metric("f1", 0.5, step=1)
        assert mlflow.active_run().info.run_id == mine.info.run_id
        assert client.get_run(mine.info.run_id).info.status == "RUNNING"
    found = client.get_run(mine.info.run_id)
    assert found.data.params == {"lr": "mine", "depth": "3"}
    assert (found.data.metrics["acc"], found.data.metrics["f1"]) == (0.25, 0.5)
    assert found.data.metrics["duration_s"] == pytest.approx(session.run.seconds)
    assert found.data.tags["bitwatt.run"] == session.run.id
    assert (found.info.run_name, found.info.status) == ("mine", "FINISHED")


def test_a_run_that_the_program_has_ended_is_joined_too_if_it_is_the_only_one(client: Any) -> None:
    began = mlflow.ActiveRun.__init__
    with bitwatt.measure("toy", to="mlflow") as session, mlflow.start_run() as mine, mlflow.start_run(nested=True):
        pass
    assert tagged(client, session.run.id).info.run_id == mine.info.run_id
    with bitwatt.measure("toy", to="mlflow") as session:
        several = []
        for _ in range(2):
            with mlflow.start_run() as one:
                several.append(one.info.run_id)
    assert tagged(client, session.run.id).info.run_id not in several
    with bitwatt.measure("toy", to="mlflow") as session:  # those before have ended before this began
        pass
    assert tagged(client, session.run.id).info.run_id not in [mine.info.run_id, *several]
    assert mlflow.ActiveRun.__init__ is began


def test_a_run_of_the_program_on_another_server_is_not_joined(
    client: Any, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mlflow.start_run() as mine:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")  # as if the program were elsewhere
        with bitwatt.measure("toy", to=f"mlflow={server},report=no") as session:
            pass
        monkeypatch.setenv("MLFLOW_TRACKING_URI", server)
    assert tagged(client, session.run.id).info.run_id != mine.info.run_id


def test_a_run_of_ours_is_seen_while_the_program_runs(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "INTERVAL", 0.2)
    monkeypatch.setattr(delivery, "SINK_SHARE", 1.0)
    monkeypatch.setattr("bitwatt.sinks.mlflow.WAIT", 0.0)
    meter = Meter([FakeSensor(Clock(), {"cpu:0": 50.0})], interval=0.05, shared=False)
    with bitwatt.measure("toy", meter=meter, to="mlflow=report=no") as session:
        bitwatt.metric("loss", 2.0, step=7)
        deadline, early = time.monotonic() + 60, None
        while early is None and time.monotonic() < deadline:
            time.sleep(0.2)
            known = [one for one in client.search_runs(["0"]) if one.data.tags.get("bitwatt.run") == session.id]
            early = next((one for one in known if "energy_j" in one.data.metrics and "loss" in one.data.metrics), None)
    assert early is not None
    assert early.info.status == "RUNNING"
    found = tagged(client, session.run.id)
    assert found.info.run_id == early.info.run_id
    assert found.data.metrics["energy_j"] > early.data.metrics["energy_j"]
    assert [one.step for one in client.get_metric_history(found.info.run_id, "loss")] == [7]  # sent once


def test_a_failed_run_is_failed_there_and_hostile_names_are_harmless(client: Any) -> None:
    name = "../<script>\x1b[31m" + "x" * 999
    about = About(
        tags={name: name}, parameters={name: name}, series={name: ((1, 0.5, 1.0),)},
        metrics={name: {"last": 1.0, "min": 1.0, "max": 1.0, "count": 1}},
    )  # fmt: skip
    run = make_run(id="hostile", name=name, status="failed: ValueError", about=about)
    (receipt,) = send(run, "mlflow")
    assert not receipt.problem, receipt
    found = tagged(client, "hostile")
    assert found.info.status == "FAILED"
    assert any(key.startswith("_script") for key in found.data.metrics)


def test_a_program_started_by_the_command_line_is_sent_at_its_end(client: Any, server: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import mlflow, sys, time\nmlflow.set_experiment('theirs')\nrun = mlflow.start_run()\ntime.sleep(1)\n"
        "print(run.info.run_id)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "bitwatt", "run", "--to", f"mlflow={server},patience=300", "program.py"],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    (theirs,) = [line for line in done.stdout.splitlines() if len(line) == 32]
    (kept,) = bitwatt.runs(tmp_path / ".bitwatt")
    assert f"sent to mlflow: {server}/#/experiments/" in done.stderr
    assert client.get_run(theirs).data.tags["bitwatt.run"] == kept.id, done.stderr


def test_the_programs_output_stays_its_own(client: Any, server: str, capfd: pytest.CaptureFixture[str]) -> None:
    (receipt,) = send(make_run(id="quiet"), "mlflow")
    assert not receipt.problem, receipt
    assert capfd.readouterr().out == ""
    assert "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT" not in os.environ


def test_the_run_of_lightnings_logger_is_joined(client: Any, server: str) -> None:
    lightning = pytest.importorskip("lightning.pytorch")
    import torch
    from lightning.pytorch.loggers import MLFlowLogger

    from bitwatt.callbacks.lightning import Bitwatt

    class Net(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 2)

        def training_step(self, batch: Any, _: int) -> Any:
            return self.layer(batch).sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    logger, callback = MLFlowLogger("theirs", tracking_uri=server), Bitwatt(to="mlflow=report=no")
    lightning.Trainer(
        max_epochs=1, accelerator="cpu", logger=logger, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[callback],
    ).fit(Net(), torch.utils.data.DataLoader(torch.randn(6, 4), 3))  # fmt: skip
    assert not callback.session.receipts[0].problem
    found = client.get_run(logger.run_id)
    assert found.data.tags["bitwatt.run"] == callback.run.id
    assert found.data.metrics["flops"] == bitwatt.totals(callback.run).total > 0


def test_a_server_that_hangs_or_fails_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    for hang, status in ((True, 200), (False, 500)):
        with receiver() as broken:
            broken.hang, broken.status = hang, status
            began = time.monotonic()
            with bitwatt.measure("toy", to=f"mlflow={broken.url},patience=1") as session:
                pass
            assert time.monotonic() - began < 110  # of MLflow's own time limit, 120 s, and its seven tries
        assert "not sent to mlflow" in " ".join(bitwatt.load(session.run.id).notes)


def test_where_the_light_client_cannot_write_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    if importlib.util.find_spec("sqlalchemy") is not None:
        pytest.skip("this client can write to a database")
    (receipt,) = send(make_run(), "mlflow=sqlite:///runs.db")
    assert receipt.problem.endswith("name a server (mlflow=http://...), or pip install mlflow")
    assert receipt.tries == 1


def test_a_job_of_several_processes_is_one_run_with_the_work_of_all(client: Any, server: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "part.py").write_text(
        "import os, time, torch\nfrom bitwatt.sinks import job\n"
        "job.CLOSING = job.COMING = 300.0\n"  # however late the other is
        "size = 10 * (1 + int(os.environ['RANK']))\n"
        "torch.ones(size, size) @ torch.ones(size, size)\n"
        "time.sleep(1.0 * int(os.environ['RANK']))\n"  # the first has to wait
    )
    command = [sys.executable, "-m", "bitwatt", "run", "--quiet", "--to", f"mlflow={server},patience=300", "part.py"]
    known = {**os.environ, "WORLD_SIZE": "2", "MASTER_PORT": "29777", "MASTER_ADDR": "localhost"}
    started = [subprocess.Popen(command, cwd=tmp_path, env=known | {"RANK": str(rank)}) for rank in range(2)]
    assert [one.wait(300) for one in started] == [0, 0]
    job = bitwatt.join(store=tmp_path / ".bitwatt")
    found = tagged(client, job.job)
    assert found.data.metrics["flops"] == job.total.total[0] == 2 * 10**3 + 2 * 20**3
    assert found.data.metrics["bops"] == job.total.total[1]
    assert (found.info.status, found.info.run_name) == ("FINISHED", "part")
    assert found.data.tags["bitwatt.note.1"].startswith("2 of 2 ranks joined")
