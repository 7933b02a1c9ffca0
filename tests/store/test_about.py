"""What a run is about: told by the user, kept small, and never in the way of his program."""

import math
import subprocess
import sys
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest
import torch

import bitwatt
from bitwatt import revision, store, telling
from bitwatt.about import NAMES, described, words
from bitwatt.cli import main
from bitwatt.closing import new_id
from bitwatt.errors import BitwattError
from bitwatt.store.places import HEAD
from factories import make_run


def measured(**options):
    return bitwatt.measure("mine", meter=False, **options)


def test_what_is_told_comes_back_from_the_file():
    with measured(
        tags={"team": "vision"}, version="2.1", parameters={"lr": 0.1, "seed": torch.tensor(3)}, dataset="mnist",
        batch_size=32, parent="sweep-7", parent_kind="sweep",
    ) as session:  # fmt: skip
        bitwatt.tag("good", owner="me")
        bitwatt.parameter(epochs=3, norm=None, shape=(1, 2))
        bitwatt.describe(version="2.2", batch_size=64)
        for step, value in enumerate((0.5, float("nan"), 0.25)):
            bitwatt.metric("loss", value, step=step)
        bitwatt.metric("accuracy", torch.tensor(0.75, requires_grad=True))
    about = bitwatt.load(session.path).about
    assert about.tags == {"team": "vision", "good": "", "owner": "me"}
    assert about.parameters == {"lr": 0.1, "seed": 3, "epochs": 3, "norm": None, "shape": "(1, 2)"}
    assert (about.version, about.dataset, about.batch_size) == ("2.2", "mnist", 64)
    assert (about.parent, about.parent_kind) == ("sweep-7", "sweep")
    assert about.metrics["loss"] == {"last": 0.25, "min": 0.25, "max": 0.5, "count": 3}
    assert about.metrics["accuracy"]["last"] == 0.75
    assert [(step, value) for step, _, value in about.series["loss"]][::2] == [(0, 0.5), (2, 0.25)]
    assert math.isnan(about.series["loss"][1][2])
    assert [at for _, at, _ in about.series["loss"]] == sorted(at for _, at, _ in about.series["loss"])
    header = store.runs()[0].about
    assert (header.metrics, header.series) == (about.metrics, {})


def test_outside_of_a_session_nothing_happens():
    bitwatt.metric("loss", "no number, and nobody cares")
    bitwatt.tag("x"), bitwatt.parameter(a=1), bitwatt.describe(dataset="x")
    with measured(keep=False) as session:
        pass
    assert session.run.about.metrics == session.run.about.tags == {}


def test_mistakes_are_told():
    with measured(keep=False):
        for mistake in (
            lambda: bitwatt.metric("loss", "low"), lambda: bitwatt.metric("loss", 1, step=0.5),
            lambda: bitwatt.metric("loss", torch.ones(2)), lambda: bitwatt.tag("a<b"),
            lambda: bitwatt.describe(batch_size=1.5), lambda: bitwatt.tag(""),
        ):  # fmt: skip
            with pytest.raises(BitwattError):
                mistake()


def test_a_long_series_is_thinned_and_its_summary_is_exact(monkeypatch):
    monkeypatch.setattr(telling, "POINTS", 100)
    with measured(keep=False) as session:
        for step in range(1234):
            bitwatt.metric("loss", -step, step)
    about = session.run.about
    assert about.metrics["loss"] == {"last": -1233, "min": -1233, "max": 0, "count": 1234}
    steps = [step for step, _, _ in about.series["loss"]]
    assert 50 <= len(steps) <= 101
    assert (steps[0], steps[-1]) == (0, 1233)
    assert {b - a for a, b in pairwise(steps[:-1])} == {16}  # evenly


def test_many_names_are_given_up_and_that_is_told():
    with measured() as session:
        for i in range(NAMES + 50):
            bitwatt.metric(f"metric {i}", i)
            bitwatt.parameter(**{f"p{i}": "ü" * 10_000})
            bitwatt.tag(f"t{i}")
    about = store.runs()[0].about
    assert (len(about.metrics), len(about.parameters), len(about.tags)) == (NAMES, NAMES, NAMES)
    assert any("metrics were named" in note for note in session.run.notes)
    assert len(Path(session.path).read_bytes().partition(b"\n")[0]) < HEAD


def test_a_first_line_that_would_be_too_long_is_cut_and_stays_readable():
    run = make_run(id="huge", status="failed: " + "x" * 5_000_000, notes=("y" * 3_000_000,) * 3)
    store.save(run)
    [header] = store.runs()
    assert header.status.startswith("failed: xxx")
    assert store.load("huge").name == "toy"


def test_a_session_inside_another_knows_whose_part_it_is():
    with measured() as outer:
        with measured() as inner:
            bitwatt.metric("inner", 1)
        with measured(parent="fold-2", parent_kind="fold") as fold:
            pass
    assert (inner.run.about.parent, inner.run.about.parent_kind) == (outer.id, "session")
    assert (fold.run.about.parent, fold.run.about.parent_kind) == ("fold-2", "fold")
    assert (outer.run.about.parent, outer.run.about.metrics) == ("", {})


def git(*arguments: str, folder: Path | None = None) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout.strip()


@pytest.fixture
def repository(tmp_path, monkeypatch):
    revision._is_dirty.cache_clear()
    git("init", "-q", "-b", "trunk", ".")
    Path("code.py").write_text("print(1)")
    git("add", "code.py")
    git("commit", "-q", "-m", "first")
    yield tmp_path
    revision._is_dirty.cache_clear()


def test_the_commit_the_branch_and_changes_are_kept(repository, monkeypatch):
    commit = git("rev-parse", "HEAD")
    (repository / "inner").mkdir()
    monkeypatch.chdir(repository / "inner")
    assert revision.with_changes(revision.head()) == {"commit": commit, "branch": "trunk", "dirty": "no"}
    revision._is_dirty.cache_clear()
    (repository / "code.py").write_text("print(2)")
    with measured() as session:
        pass
    assert bitwatt.load(session.path).about.git == {"commit": commit, "branch": "trunk", "dirty": "yes"}


def test_it_is_read_from_packed_refs_worktrees_and_detached_heads(repository, monkeypatch):
    commit = git("rev-parse", "HEAD")
    git("pack-refs", "--all")
    assert not (repository / ".git/refs/heads/trunk").exists()
    assert revision.head() == {"commit": commit, "branch": "trunk"}
    git("worktree", "add", "-q", "-b", "side/b", "../side")
    monkeypatch.chdir(repository.parent / "side")
    assert revision.head() == {"commit": commit, "branch": "side/b"}
    git("checkout", "-q", "--detach")
    assert revision.head() == {"commit": commit}


def test_without_git_or_with_a_broken_one_runs_are_kept_all_the_same(repository, monkeypatch):
    monkeypatch.setenv("PATH", "")
    told = revision.with_changes(revision.head())
    assert set(told) == {"commit", "branch"}
    (repository / ".git/HEAD").unlink()
    assert revision.head() == {}
    with measured() as session:
        pass
    assert bitwatt.load(session.path).about.git == {}


def test_words_of_a_command_line_become_values():
    assert words(["lr=1e-3", "n=5", "ema=True", "name=a=b", "empty="]) == {
        "lr": 0.001, "n": 5, "ema": True, "name": "a=b", "empty": "",
    }  # fmt: skip
    with pytest.raises(BitwattError, match="no parameter"):
        words(["lr"])
    assert described(tags="one=1").tags == {"one": "1"}


def test_bitwatt_run_takes_it_as_options(capsys):
    Path("script.py").write_text("import bitwatt, sys; bitwatt.metric('acc', 0.5); print(sys.argv[1:])")
    command = [
        "run", "--no-meter", "--quiet", "--tag", "good", "--tag", "team=vision", "--param", "lr=0.1",
        "--batch-size", "8", "--model-version", "3", "--dataset", "d", "--parent", "s1",
        "script.py", "--tag", "its-own",
    ]  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "bitwatt", *command], capture_output=True, text=True, check=True)
    assert done.stdout == "['--tag', 'its-own']\n"
    about = bitwatt.load().about
    assert about.tags == {"good": "", "team": "vision"}
    assert (about.parameters, about.batch_size, about.version) == ({"lr": 0.1}, 8, "3")
    assert (about.dataset, about.parent, about.parent_kind) == ("d", "s1", "sweep")
    assert about.metrics["acc"]["last"] == 0.5
    assert main(["run", "--param", "lr", "script.py"]) == 2
    assert capsys.readouterr().err == "bitwatt: 'lr' is no parameter: write name=value\n"


def test_ids_of_one_second_are_apart():
    moment = datetime(2026, 1, 2, 3, 4, 5)
    ids = {new_id(moment) for _ in range(20_000)}
    assert len(ids) == 20_000
    assert all(one.startswith("20260102-030405-") and len(one) == 24 for one in ids)


def test_bitwatts_own_repository_is_not_the_programs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(revision, "script", [])
    monkeypatch.setattr(sys, "argv", [str(Path(revision.__file__).parent / "__main__.py")])
    assert revision.repository() is None
    (tmp_path / "project" / ".git").mkdir(parents=True)
    monkeypatch.setattr(revision, "script", [tmp_path / "project" / "train.py"])
    assert revision.repository() == tmp_path / "project"
