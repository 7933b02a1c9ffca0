"""bitwatt deploy: one command from a model to what to take; wrong arguments are told of before anything is measured."""

from __future__ import annotations

import contextlib
import csv
import json
import re
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("scipy")
pytest.importorskip("sklearn")
pytest.importorskip("onnxruntime")
pytest.importorskip("skl2onnx")

import joblib
import numpy as np
import studies
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from bitwatt import deploy, store
from bitwatt.cli import main
from bitwatt.deploy import plans
from bitwatt.deploy.given.loading import case
from bitwatt.deploy.lab import studied
from bitwatt.deploy.records import Plan
from bitwatt.deploy.telling.findings import found
from bitwatt.deploy.telling.kept import findings_of
from bitwatt.deploy.telling.rules import Rules
from bitwatt.deploy.telling.tradeoffs import csv_of
from bitwatt.errors import BitwattError

FILES = {"hardware_tradeoffs.csv", "hardware_tradeoffs_summary.json", "stat_benchmark_runs.csv", "study.json",
         "hardware_tradeoffs.html"}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    there = tmp_path_factory.mktemp("deploy")
    X, y = make_classification(400, 8, random_state=0)
    X = X.astype(np.float32)
    joblib.dump(LogisticRegression().fit(X[:200], y[:200]), there / "model.joblib")
    np.savez(there / "test.npz", X=X[200:], y=y[200:])
    np.savez(there / "train.npz", X=X[:200], y=y[:200])
    return there


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Made by hand."""
    there = tmp_path_factory.mktemp("results")
    studies.usual_findings().save(there)
    return there


@pytest.mark.parametrize(("arguments", "said"), [
    ([], "which model"),
    (["model.joblib"], "which rows"),
    (["model.joblib", "--data", "test.npz", "--batch", "one"], "--batch one"),
    (["model.joblib", "--data", "test.npz", "--batch", "0"], "whole numbers from 1 on"),
    (["model.joblib", "--data", "test.npz", "--scenarios", "onnx-int9"], "no scenario 'onnx-int9'; there are"),
    (["model.joblib", "--data", "test.npz", "--slo", "fast"], "no SLO"),
    (["model.joblib", "--data", "test.npz", "--max-loss", "200%"], "max_loss: a share"),
    (["model.joblib", "--data", "test.npz", "--min-gain", "3 s"], "--min-gain 3 s"),
    (["model.joblib", "--data", "test.npz", "--rates=-1"], "a rate (requests per second): -1.0 is"),
    (["model.joblib", "--data", "test.npz", "--callers", "0"], "callers: 0 is not a number above 0"),
    (["model.joblib", "--data", "test.npz", "--trust", "--batch", "100000000000"], "are free here"),
    (["model.joblib", "--data", "test.npz", "--trust", "--threads", "9999"], "--threads 9999: there are"),
    (["model.joblib", "--data", "test.npz", "--format", "pdf"], "--format is one of"),
    (["model.joblib", "--data", "test.npz"], "--trust"),
    (["nowhere.joblib", "--data", "test.npz", "--trust"], "nowhere.joblib"),
    (["--from", "nowhere"], "study.json cannot be read"),
    (["--check", "nowhere"], "study.json cannot be read"),
    (["--from", "a", "--check", "b"], "choose one"),
    (["--url", "ftp://here"], "ftp"),
    (["--url", "http://127.0.0.1:9", "--header", "nothing"], "Name: value"),
])  # fmt: skip
def test_what_is_wrong_is_told_in_a_line(folder, arguments, said, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert main(["deploy", *arguments]) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.err.startswith("bitwatt: ")
    assert "Traceback" not in told.err
    assert told.out == ""


def test_results_are_told_again_without_measuring(results, tmp_path, capsys):
    assert main(["deploy", "--from", str(results), "--out", str(tmp_path)]) == 0
    assert "Take onnx-int8" in capsys.readouterr().out
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (results / name).read_bytes(), name


def test_a_table_of_times_that_is_cut_off_is_told(tmp_path, capsys):
    calls = studies.calls(studies.MICROSECONDS)
    found(studies.study(calls=len(calls)), calls).save(tmp_path)
    assert main(["deploy", "--from", str(tmp_path)]) == 0
    assert "not whole" not in capsys.readouterr().out
    table = tmp_path / "stat_benchmark_runs.csv"
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join(lines[: len(lines) // 2]))
    assert main(["deploy", "--from", str(tmp_path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"is not whole: it holds {len(lines) // 2 - 1:,} calls, and {len(calls):,} were timed" in told
    assert "ratios of block medians over 3 processes" in told
    table.write_text("".join(lines[:10])[:-25])
    assert main(["deploy", "--from", str(tmp_path)]) == 2
    assert "stat_benchmark_runs.csv, line 10" in capsys.readouterr().err


def test_other_limits_other_choice(results, capsys):
    assert main(["deploy", "--from", str(results), "--format", "json", "--min-gain", "60%"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["recommendation"]["scenario"] == "onnx-fp32"
    assert told["rules"]["min_gain"] == 0.6


def test_markdown(results, capsys):
    assert main(["deploy", "--from", str(results), "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("## mlp")


@pytest.mark.parametrize("missing", ["numpy", "scipy"])
def test_what_is_not_installed_is_told(results, missing):
    code = f"import sys; sys.modules[{missing!r}] = None; from bitwatt.cli import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, "deploy", "--from", str(results)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'bitwatt[deploy]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_stale_results_exit_1(results, capsys):
    assert main(["deploy", "--check", str(results)]) == 1  # of another machine, with another onnxruntime
    assert capsys.readouterr().out.startswith("stale: measure again")


@pytest.fixture(scope="module")
def measured(folder):
    """As little as can be measured: the whole way all the same."""
    plan = Plan(batches=(1, 8), processes=2, blocks=8, block_ms=0.5, cell_s=0.3, fresh=2, loaded=False,
                scenarios=("sklearn-fp64", "onnx-fp32"))  # fmt: skip
    there = folder / "artifacts"
    model = case(folder / "model.joblib", folder / "test.npz", trust=True)
    findings = studied(model, plan, Rules(), there)
    findings.save(there)
    return findings, there


@pytest.mark.slow
def test_a_real_study_fills_the_table(measured):
    _, there = measured
    assert {path.name for path in there.iterdir()} == FILES | {"built"}
    with (there / "hardware_tradeoffs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["scenario"], row["batch_size"]) for row in rows] == [
        (name, batch) for name in ("sklearn-fp64", "onnx-fp32") for batch in ("1", "8")
    ]
    for row in rows:
        assert row["failure"] == ""
        assert 0.5 < float(row["accuracy"]) <= 1
        assert float(row["latency_ms_per_sample"]) > 0
        assert float(row["throughput_samples_per_sec"]) > 0
        assert int(row["artefact_bytes"]) > 0
        assert int(row["flips"] or 0) == 0
    assert float(rows[2]["memory_mb"]) < float(rows[0]["memory_mb"])  # scikit-learn is the larger library
    assert rows[2]["precision_mode"] == "fp32"


@pytest.mark.slow
def test_a_real_study_still_holds_and_is_told_again(measured, capsys):
    findings, there = measured
    assert main(["deploy", "--check", str(there)]) == 0, capsys.readouterr().out
    assert csv_of(deploy.read(there).rows) == csv_of(findings.rows)
    assert deploy.read(there).summary() == findings.summary()


@pytest.mark.slow
def test_a_model_that_was_changed_makes_it_stale(measured, folder, tmp_path, capsys):
    other = tmp_path / "model.joblib"
    other.write_bytes((folder / "model.joblib").read_bytes() + b"!")
    assert main(["deploy", str(other), "--check", str(measured[1]), "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in told["checked"] if one["passed"] is False] == ["model"]


@pytest.mark.slow
def test_the_command_from_end_to_end(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["deploy", str(folder / "model.joblib"), "--data", str(folder / "test.npz"), "--train",
                 str(folder / "train.npz"), "--trust", "--quick", "--batch", "1,32", "--slo", "p99<50ms"]  # fmt: skip
    assert main(arguments) == 0
    told = capsys.readouterr()
    assert "\nTake " in told.out
    assert {path.name for path in (tmp_path / "artifacts").iterdir()} == FILES | {"built"}
    [header] = store.runs()
    again = findings_of(store.load(header.id))
    assert again.recommended.scenario == header.about.parameters["recommended"]
    by_name = {one.name: one for one in again.checklist}
    assert by_name["10+ iterations"].passed
    assert by_name["p95 under load"].passed is not None
    int8 = [one for one in again.worths if one.scenario == "onnx-int8"]
    assert [one.worthwhile for one in int8] == [False] * len(int8)  # so small a model gains nothing
    assert "INT8" in told.out


@pytest.mark.slow
def test_the_function_takes_models_as_they_are(folder):
    X, y = make_classification(200, 8, random_state=0)
    findings = deploy.compare(LogisticRegression().fit(X, y), X, y, quick=True, batches=(1,), loaded=False,
                              scenarios=("sklearn-fp64", "onnx-fp32"))  # fmt: skip
    assert findings.summary()["best_latency"]["scenario"] == "onnx-fp32"
    assert "<table" in findings._repr_html_()
    assert repr(findings).startswith("LogisticRegression")


def test_quick_and_thorough_exclude_each_other():
    with pytest.raises(BitwattError, match="choose one"):
        deploy.compare(None, None, quick=True, thorough=True)


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = json.dumps({"outputs": [0] * len(sent["inputs"])}).encode()
        self.send_response(200 if self.headers.get("x-key") == "secret" else 403)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.mark.slow
def test_an_endpoint_is_put_under_load(folder, capsys):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/predict"
        arguments = ["deploy", "--url", url, "--data", str(folder / "test.npz"), "--header", "X-Key: secret",
                     "--rates", "20", "--callers", "1", "--quick", "--format", "json"]  # fmt: skip
        assert main(arguments) == 0
    finally:
        server.shutdown()
        server.server_close()
    told = json.loads(capsys.readouterr().out)
    point = next(point for point in told["points"] if point["kind"] == "closed")
    assert point["failed"] == 0
    assert point["requests"] >= 1  # how many depends on the neighbours
    assert point["p50_ms"] > 0


def test_an_endpoint_is_told_in_words():
    from bitwatt.deploy.records import Load
    from bitwatt.deploy.telling.endpoints import told

    text = told("http://here\x1b[31m", studies.usual()[2].load, "text")
    assert "p99<20ms holds up to 500/s" in text
    assert re.search(r"open +500/s +498/s", text)
    assert "\x1b" not in text
    assert "| closed | 1 caller |" in told("http://here", studies.usual()[2].load, "markdown")
    with pytest.raises(BitwattError, match="text, markdown and json"):
        told("http://here", Load(), "html")


@pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc")
@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_what_was_measured_before_an_interruption_is_kept(folder, tmp_path, sent, code, capsys):
    """And no process of the study is left behind."""
    words = ["deploy", "model.joblib", "--data", "test.npz", "--trust", "--batch", "1", "--scenarios",
             "sklearn-fp64,numpy", "--out", str(tmp_path), "--no-keep"]  # fmt: skip
    study = subprocess.Popen(
        [sys.executable, "-m", "bitwatt", *words], cwd=folder, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    )  # fmt: skip
    job = tmp_path / "work" / "job.txt"
    until = time.monotonic() + 240
    while time.monotonic() < until and study.poll() is None:
        if job.exists() and '"seed": "0:2:1"' in job.read_text():  # two processes have ended, the third goes on
            break
        time.sleep(0.02)
    study.send_signal(sent)
    said = study.communicate(timeout=240)[1]
    assert study.returncode == code
    assert f"interrupted during timing; what was measured until then is in {tmp_path}" in said
    assert "Traceback" not in said
    assert not (tmp_path / "work").exists()
    assert not [line for line in _commands() if str(tmp_path) in line]
    with (tmp_path / "stat_benchmark_runs.csv").open() as file:
        timed = {row["process"] for row in csv.DictReader(file)}
    assert timed >= {"0", "1"}  # and more, where the signal came late
    assert len(timed) < plans.plan().processes
    assert main(["deploy", "--from", str(tmp_path)]) == 0
    assert "interrupted during timing" in capsys.readouterr().out


def _commands():
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_bytes().replace(b"\0", b" ").decode(errors="replace")


def test_an_interruption_before_anything_was_measured_says_so(folder, tmp_path, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.chdir(folder)
    monkeypatch.setattr("bitwatt.deploy.study.measure", interrupted)
    assert main(["deploy", "model.joblib", "--data", "test.npz", "--trust", "--out", str(tmp_path / "out")]) == 130
    assert "nothing was measured yet" in capsys.readouterr().err
