"""ls, tag and rm: what is shown fits, hostile names steer nothing, and nothing is removed by mistake."""

import csv
import io
import json
import os
import pty
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

import bitwatt
from bitwatt import store
from bitwatt.about import described
from bitwatt.cli import main
from bitwatt.fingerprint import summary
from bitwatt.harmless import printable
from bitwatt.ranks.identity import here, process
from bitwatt.ranks.join import UNDER_WAY
from bitwatt.ranks.shares import shares
from bitwatt.ranks.silence import state_of
from bitwatt.records import Machine, Rank
from bitwatt.reports.text import length
from factories import metered, transformer_run

HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202eevil\n'; DROP TABLE runs; --<script>alert(1)</script>" + "字" * 80


@pytest.fixture(autouse=True)
def runs():
    base = transformer_run(1, 16, batch=4, meter=metered())
    for day, (id, name, told) in enumerate(
        (
            ("aa1", "first", {"tags": "good", "parameters": {"lr": 0.1}}),
            ("aa2", "second", {"tags": {"team": "vision"}, "version": "2"}),
            ("bb1", HOSTILE, {"tags": {"\x1b[31mred": "=1+1\x07"}}),
        ),
        1,
    ):
        metrics = {"accuracy": {"last": day / 10, "min": 0.0, "max": 1.0, "count": 9}}
        run = replace(base, id=id, name=name, started=f"2026-01-0{day}T00:00:00.000+00:00",
                      about=replace(described(**told), metrics=metrics))  # fmt: skip
        store.save(run, summary=summary(run))


def told(capsys, *arguments: str, status: int = 0) -> str:
    assert main(list(arguments)) == status
    captured = capsys.readouterr()
    return captured.err if status == 2 else captured.out


def keep_job(world: int = 3) -> None:
    base = transformer_run(1, 16, batch=4)
    for number in range(world):
        run = replace(base, id=f"r{number}", name="job", rank=Rank(number, world, "job-1"))
        store.save(run, summary=summary(run) | {"ranks": shares(run)})


def test_ls_shows_costs_metrics_and_tags(capsys):
    lines = told(capsys, "ls").splitlines()
    assert lines[0].split() == ["id", "name", "time", "flops", "bops", "energy", "accuracy", "tags"]
    assert [line.split()[0] for line in lines[1:]] == ["bb1", "aa2", "aa1"]
    assert "3.6 kJ" in lines[3]
    assert lines[3].endswith("0.1  good")


def test_ls_filters_sorts_limits_and_chooses_columns(capsys):
    assert [line.split()[0] for line in told(capsys, "ls", "--sort", "started", "--limit", "2").splitlines()] == [
        "id", "aa1", "aa2", "...",
    ]  # fmt: skip
    assert told(capsys, "ls", "--limit", "1").splitlines()[-1] == "... and 2 more: --limit 0 shows all"
    chosen = told(capsys, "ls", "--tag", "good", "--columns", "id,param.lr,metric.accuracy.max,machine.torch,version")
    assert chosen.split() == ["id", "lr", "accuracy.max", "torch", "version", "aa1", "0.1", "1", "2.13.0"]
    assert told(capsys, "ls", "metric.accuracy>0.9") == "none of the 3 runs in .bitwatt fulfils metric.accuracy>0.9\n"
    assert "no run is kept in empty" in told(capsys, "ls", "--store", "empty")
    for mistake in (["--columns", "colour"], ["colour=3"], ["--sort", "colour"], ["--format", "pdf"]):
        assert told(capsys, "ls", *mistake, status=2).count("\n") == 1


def test_ls_gives_programs_exact_numbers(capsys):
    found = json.loads(told(capsys, "ls", "--format", "json", "--sort", "started"))
    assert found[2]["name"] == HOSTILE
    assert found[0]["totals"] == dict(store.runs()[2].summary["totals"])
    assert found[0]["about"]["metrics"]["accuracy"]["last"] == 0.1
    chosen = json.loads(told(capsys, "ls", "aa1", "--format", "json", "--columns", "flops,param.lr,tags"))
    assert chosen == [{"id": "aa1", "flops": found[0]["totals"]["flops"], "param.lr": 0.1, "tags": {"good": ""}}]
    rows = list(csv.DictReader(io.StringIO(told(capsys, "ls", "--format", "csv"))))
    assert rows[0]["name"] == "\n".join(map(printable, HOSTILE.split("\n")))  # it may go to a terminal
    assert rows[0]["tag_31mred"] == "'=1+1?"
    assert told(capsys, "ls", "aa1", "--format", "csv", "--columns", "id,tags") == "id,tags\naa1,good\n"


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_ls_fits_the_terminal_and_no_name_steers_it(width, tmp_path):
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(width), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "bitwatt", "ls"]
    with subprocess.Popen(command, stdout=follower, stderr=subprocess.STDOUT, env=environment) as child:
        os.close(follower)
        text = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:
                break
            text += piece
            if not piece:
                break
    assert child.returncode == 0
    lines = text.decode().splitlines()
    assert len(lines) == 4
    assert max(map(length, lines)) <= width
    assert not {"\x1b", "\x07", "\u202e"} & set(text.decode())
    assert all("aa1" in line or "aa2" in line or "bb1" in line for line in lines[1:])


def test_no_report_on_a_terminal_is_steered_by_a_name(capsys):
    text = told(capsys, "report", "bb1")
    assert "evil" in text
    assert not {"\x1b", "\x07", "\u202e"} & set(text)


def test_ls_shows_a_job_in_one_line(capsys):
    keep_job()
    lines = told(capsys, "ls").splitlines()
    assert len(lines) == 5
    assert [line.split()[-3:] for line in lines if line.startswith("job-1")] == [["of", "3", "ranks"]]
    assert len(told(capsys, "ls", "rank=1").splitlines()) == 2


def test_tag_adds_and_removes_and_leaves_the_rest(capsys):
    before = store.load("aa1")
    assert told(capsys, "tag", "first", "best", "team=a=b") == "aa1  first  good best team=a=b\n"
    assert told(capsys, "tag", "aa1", "--remove", "good", "--remove", "best") == "aa1  first  team=a=b\n"
    after = store.load("aa1")
    assert after.about.tags == {"team": "a=b"}
    assert (after.ledger, after.about.parameters, after.meter) == (before.ledger, before.about.parameters, before.meter)
    assert store.runs()[2].summary["totals"]["flops"] > 0
    assert told(capsys, "tag", "aa1", "--remove", "team") == "aa1  first  (no tags)\n"
    assert "has no tag 'x'; it has none" in told(capsys, "tag", "aa1", "--remove", "x", status=2)
    assert "nothing to change" in told(capsys, "tag", "aa1", status=2)
    assert "is no name of a tag" in told(capsys, "tag", "aa1", "a<b", status=2)


def test_a_file_of_an_older_version_can_be_tagged(capsys):
    old = Path(__file__).parents[1] / "data" / "run-v1.run"
    Path(".bitwatt/20260102-030405-abc123.run").write_bytes(old.read_bytes())
    before = store.load(old)
    told(capsys, "tag", "20260102", "old")
    after = store.load("20260102")
    assert after.about.tags == {"old": ""}
    assert (after.ledger, after.layers) == (before.ledger, before.layers)


def test_a_run_under_way_is_not_tagged(capsys):
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    store.save(transformer_run(1, 16, batch=4, id="live", status=UNDER_WAY, started=now))
    assert "is under way" in told(capsys, "tag", "live", "x", status=2)


def test_a_killed_run_is_shown_as_cut_off_and_can_be_tagged(capsys):
    store.save(transformer_run(1, 16, batch=4, id="dead", status=UNDER_WAY, started="2026-01-01T00:00:00.000+00:00"))
    assert "cut off" in told(capsys, "ls", "dead")
    assert "cut off" in told(capsys, "report", "dead")
    assert json.loads(told(capsys, "ls", "dead", "--format", "json"))[0]["status"] == "cut off"
    assert told(capsys, "ls", "dead", "--format", "csv", "--columns", "status") == "status\ncut off\n"
    assert json.loads(told(capsys, "report", "dead", "--format", "json"))["run"]["status"] == "cut off"
    told(capsys, "export", "--to", "all.csv")
    assert "cut off" in Path("all.csv").read_text()
    told(capsys, "tag", "dead", "x")
    assert store.load("dead").about.tags == {"x": ""}


def test_two_files_of_one_run_are_listed_and_removed_by_themselves(capsys):
    Path(".bitwatt/copy.run").write_bytes(Path(".bitwatt/aa1.run").read_bytes())
    assert told(capsys, "ls", "aa1").count("aa1") == 2
    told(capsys, "rm", ".bitwatt/copy.run", str(Path(".bitwatt/copy.run").absolute()), "--yes")
    assert Path(".bitwatt/aa1.run").exists()
    assert not Path(".bitwatt/copy.run").exists()


def test_a_store_that_cannot_be_read_is_one_sentence(capsys):
    assert told(capsys, "ls", "--store", "x" * 300, status=2).endswith(": File name too long\n")


def test_mistakes_of_ls_are_one_sentence(capsys):
    assert "--limit -1" in told(capsys, "ls", "--limit", "-1", status=2)
    for filter in ("since=99999999999d", "since=0001-01-01T00:00:00+14:00"):
        assert "no time, or out of reach" in told(capsys, "ls", filter, status=2)
    assert told(capsys, "ls", "started=9999-12-31") == "none of the 3 runs in .bitwatt fulfils started=9999-12-31\n"
    Path("x.py").write_text("raise SystemExit('it ran')")
    assert "at least one sample" in told(capsys, "run", "--batch-size", "-3", "x.py", status=2)


def test_errors_and_markdown_steer_no_terminal(capsys):
    assert "\x1b" not in told(capsys, "report", "\x1b[2Jnobody", status=2)
    shown = told(capsys, "report", "bb1", "--format", "markdown")
    assert "owned" in shown
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)


def test_a_job_is_found_by_its_id(capsys):
    keep_job()
    assert store.load("job-1").id == "r0"
    assert "job-1" in told(capsys, "ls", "job-1")


def ids() -> list[str]:
    return sorted(header.id for header in store.runs())


def test_rm_shows_and_asks_before_it_removes(capsys, monkeypatch):
    text = told(capsys, "rm", "aa1", status=1)
    assert "first" in text
    assert "nobody to ask" in text
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert "nothing was removed" in told(capsys, "rm", "aa1", status=1)
    assert ids() == ["aa1", "aa2", "bb1"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert "1 run removed" in told(capsys, "rm", "aa1")
    assert ids() == ["aa2", "bb1"]


def test_rm_removes_by_filter_and_never_by_half_a_name(capsys):
    assert "no run in .bitwatt has the id or name 'fir'" in told(capsys, "rm", "fir", "--yes", status=2)
    assert "begins the ids of 2 runs" in told(capsys, "rm", "aa", "--yes", status=2)
    assert "not both" in told(capsys, "rm", "aa1", "status=ok", "--yes", status=2)
    assert "nothing is removed" in told(capsys, "rm", "status=failed", "--yes")
    text = told(capsys, "rm", "until=2026-01-02", "--yes")
    assert "2 runs removed" in text
    assert ids() == ["bb1"]
    assert "\x1b" not in told(capsys, "rm", "bb1", "--yes")
    assert ids() == []


def test_rm_takes_the_ranks_of_a_job_together_and_names_a_baseline(capsys):
    keep_job()
    told(capsys, "baseline", "set", "aa1", "--project", "mine")
    text = told(capsys, "rm", "r1", "aa1", "--yes")
    assert "aa1 is the baseline of mine" in text
    assert "4 runs removed" in text
    assert ids() == ["aa2", "bb1"]


def test_a_metric_may_be_called_like_a_form_of_another(capsys):
    metrics = {"val.max": {"last": 0.5, "min": 0.1, "max": 0.9, "count": 2}}
    run = transformer_run(1, 16, batch=4, id="cc1", started="2026-02-01T00:00:00.000+00:00")
    store.save(replace(run, about=replace(run.about, metrics=metrics)))
    lines = told(capsys, "ls", "cc1").splitlines()
    assert lines[0].split()[-1] == "val.max.last"
    assert lines[1].split()[-1] == "0.5"


def test_a_run_whose_process_is_gone_is_cut_off_at_once_and_tells_what_it_had(tmp_path, capsys):
    gone = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    told = here().replace(process(), process(gone.pid))
    run = replace(transformer_run(), id="r-1", status="under way", started=datetime.now(UTC).isoformat())
    kept = bitwatt.save(replace(run, machine=Machine({"cpu": "A", "process": told})), tmp_path)
    assert state_of(bitwatt.load(kept)) == "under way"
    gone.communicate(b"\n")
    assert main(["ls", "--store", str(tmp_path)]) == 0
    line = capsys.readouterr().out.splitlines()[1]
    assert "cut off" in line
    assert "≥ " in line  # FLOPs: its report shows some
    assert state_of(bitwatt.load(kept)) == "cut off"
    elsewhere = replace(run, machine=Machine({"process": told.replace(" ", " another")}))
    assert state_of(elsewhere) == "under way"  # nobody knows from here


def test_a_joined_run_stands_for_its_ranks(tmp_path, capsys):
    for number in (0, 1):
        run = replace(transformer_run(), id=f"z-{number}", name="spread", rank=Rank(number, 2, "a-job"))
        bitwatt.save(run, tmp_path, summary=summary(run) | {"ranks": shares(run)})
    assert main(["join", "--store", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["ls", "--store", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    for which in ("spread", "a-job", None):
        assert bitwatt.load(which, tmp_path).rank is None
    assert bitwatt.load("z-1", tmp_path).rank.rank == 1
