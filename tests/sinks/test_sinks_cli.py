"""--to of `bitwatt run` and `bitwatt report`, settings, and plug-ins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import bitwatt
from bitwatt.cli import main
from bitwatt.records import Rank
from factories import metered, transformer_run


def bitwatt_run(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bitwatt", "run", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, **variables})


def names(file: Path) -> list[str]:
    return [line.split(",")[1] for line in file.read_text().splitlines()[1:]]


def test_a_program_is_sent_to_several_sinks_and_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import os\nos.mkdir('inside'); os.chdir('inside')\nraise SystemExit(3)\n")
    done = bitwatt_run(tmp_path, "--to", "csv", "--to=csv=b.csv", "program.py", "--to", "theirs")
    assert done.returncode == 3
    assert f"sent to csv: {tmp_path / 'emissions.csv'}\nsent to csv: {tmp_path / 'b.csv'}\n" in done.stderr
    assert names(tmp_path / "emissions.csv") == names(tmp_path / "b.csv") == ["program"]


def test_quietly_only_failures_are_told(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("pass\n")
    (tmp_path / "mine.csv").write_text("a,b\n")
    done = bitwatt_run(tmp_path, "--quiet", "--to", "csv", "--to", "csv=mine.csv", "program.py")
    assert done.stderr.splitlines() == [
        f"not sent to csv: {tmp_path / 'mine.csv'} has other columns than CodeCarbon's: name another file"
    ]
    assert done.returncode == 0


def test_a_command_is_sent_too(tmp_path: Path) -> None:
    done = bitwatt_run(tmp_path, "--to", "csv", "--name", "nothing", "--", "true")
    assert "sent to csv" in done.stderr
    assert names(tmp_path / "emissions.csv") == ["nothing"]


def test_an_unknown_sink_ends_it_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print('ran')\n")
    done = bitwatt_run(tmp_path, "--to", "nosuch", "program.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("bitwatt: no sink is called 'nosuch'; there are csv, ")


def test_a_run_is_sent_when_it_is_killed_by_the_scheduler(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n")
    done = bitwatt_run(tmp_path, "--to", "csv", "program.py")
    assert done.returncode == -15
    assert names(tmp_path / "emissions.csv") == ["program"]


def test_settings_of_the_project_hold_and_flags_come_first(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("pass\n")
    (tmp_path / "bitwatt.toml").write_text('to = ["csv=all.csv"]\n')
    bitwatt_run(tmp_path, "program.py")
    bitwatt_run(tmp_path, "--to", "csv=mine.csv", "program.py")
    assert (names(tmp_path / "all.csv"), names(tmp_path / "mine.csv")) == (["program"], ["program"])


def test_a_kept_run_is_sent_now(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bitwatt.save(transformer_run(meter=metered()))
    assert main(["report", "--to", "csv", "--intensity-g-per-kwh", "100"]) == 0
    assert capsys.readouterr().out == f"sent to csv: {tmp_path / 'emissions.csv'}\n"
    assert ",0.0001," in (tmp_path / "emissions.csv").read_text()  # kg
    (tmp_path / "mine.csv").write_text("a,b\n")
    assert main(["report", "--to", "csv=mine.csv"]) == 1
    assert capsys.readouterr().out.startswith("not sent to csv: ")
    assert main(["report", "--to", "nosuch"]) == 2


def test_all_ranks_of_a_job_are_sent_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in range(3):
        run = transformer_run(id=f"r{rank}", name="train", rank=Rank(rank, 3, "job"))
        bitwatt.save(run)
    textfile = "prometheus=port=0,textfile=all.prom"
    assert main(["report", "--ranks", "train", "--to", "csv", "--to", textfile]) == 0
    assert capsys.readouterr().out.count("sent to") == 2
    assert names(tmp_path / "emissions.csv") == ["train"]
    told = dict(line.rsplit(" ", 1) for line in (tmp_path / "all.prom").read_text().splitlines())
    assert float(told['bitwatt_flops_total{run="train"}']) == 3 * bitwatt.totals(run).total
    assert main(["report", "r1", "--to", "csv=one.csv"]) == 0  # one rank, by name
    assert names(tmp_path / "one.csv") == ["train"]


def test_a_plug_in_is_found_by_its_entry_point(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Mine:\n    name = 'mine'\n    def __init__(self, path='mine.txt'): self.path = path\n"
        "    def why_absent(self): return None\n    def open(self, run): pass\n"
        "    def close(self, run):\n        open(self.path, 'w').write(run.name)\n        return self.path\n"
    )
    about = tmp_path / "mine-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[bitwatt.sinks]\nmine = mine:Mine\nbroken = nosuch:Thing\n")
    (tmp_path / "program.py").write_text("pass\n")
    paths = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    done = bitwatt_run(tmp_path, "--to", "mine=out.txt", "program.py", PYTHONPATH=paths)
    assert "sent to mine: out.txt" in done.stderr
    assert (tmp_path / "out.txt").read_text() == "program"
    assert "the sink nosuch:Thing could not be loaded" in done.stderr
