"""bitwatt compare and bitwatt check on a store: words to runs, exit codes, files for GitHub."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from bitwatt import store
from bitwatt.about import About
from bitwatt.cli import main
from bitwatt.fingerprint import summary
from bitwatt.ledger import Ledger
from bitwatt.readings import Device, Energy, Metered
from factories import transformer_run


def kept(name: str, n: int = 1, width: int = 64, seconds: float = 1.0, **fields) -> None:
    """`n` repetitions of a run, each a little slower."""
    for i in range(n):
        joules = 100.0 * seconds + i
        meter = Metered(seconds, (Energy(Device("gpu:0", "gpu"), joules, "measured", "a sensor", seconds),))
        about = About(metrics={"accuracy": {"last": 0.9 + width / 1e4, "min": 0, "max": 1, "count": 2}})
        run = transformer_run(
            layers=2, width=width, batch=8, name=name, id=f"{name}-{i}", seconds=seconds * (1 + i / 100),
            started=f"2026-01-02T03:04:{10 + i:02}.000+00:00", meter=meter, **{"about": about, **fields},
        )  # fmt: skip
        store.save(run, summary=summary(run))


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    kept("main", 5)
    kept("wider", 5, width=96, seconds=1.5)
    return tmp_path


def told(capsys, *arguments: str, status: int = 0) -> str:
    assert main(list(arguments)) == status
    captured = capsys.readouterr()
    return captured.err if status == 2 else captured.out


def test_two_names(runs, capsys):
    text = told(capsys, "compare", "main", "wider")
    assert "B against A: FLOPs" in text
    assert "one run each: no spread known" in text
    assert max(map(len, text.splitlines())) <= 80


def test_repetitions_are_found(runs, capsys):
    text = told(capsys, "compare", "main", "wider", "--repeat")
    assert "A main · main-4 and 4 more like it" in text
    assert "(95 %, n 5 and 5)" in text
    document = json.loads(told(capsys, "compare", "main", "wider", "--repeat", "--format", "json"))
    assert document["measured"]["energy"]["ratios"]["B"]["n"] == [5, 5]


def test_what_ran_elsewhere_or_failed_repeats_nothing(runs, capsys):
    other = store.load("main-0")
    machine = replace(other.machine, facts={**other.machine.facts, "torch": "2.14"})
    for i, changed in enumerate(
        [
            replace(other, machine=machine),
            replace(other, status="failed: oops"),
            replace(other, about=replace(other.about, git={"commit": "another"})),
            replace(other, name="another"),
        ]
    ):
        changed = replace(changed, id=f"odd-{i}", started="2020-01-01T00:00:00.000+00:00")
        store.save(changed, summary=summary(changed))
    document = json.loads(told(capsys, "compare", "main", "wider", "--repeat", "--format", "json"))
    assert len(document["sides"][0]["runs"]) == 5


def test_sides_that_repeat_each_other_are_a_mistake(runs, capsys):
    assert "main-0 and main-1 repeat each other" in told(capsys, "compare", "main-0", "main-1", "--repeat", status=2)
    assert "equal to the last operation" in told(capsys, "compare", "main-0", "main-1")


def test_filters_find_many(runs, capsys):
    document = json.loads(told(capsys, "compare", "name~a,status=ok", "wider-0", "--format", "json"))
    assert [side["name"] for side in document["sides"]] == ["main"] * 5 + ["wider"]
    text = told(capsys, "compare", "status=ok", "--repeat", "--pareto", "energy,accuracy")
    assert "on the front" in text
    assert "A wider" in text
    assert "no kept run is such that" in told(capsys, "compare", "name~zzz", "main", status=2)
    assert "nonsense" in told(capsys, "compare", "nonsense=3", "main", status=2)


def test_a_name_that_looks_like_a_filter_is_a_name(runs, capsys):
    kept("lr=0.1")
    assert "lr=0.1 · lr=0.1-0" in told(capsys, "compare", "main", "lr=0.1")


def test_paths_are_runs(runs, capsys):
    assert "B wider" in told(capsys, "compare", ".bitwatt/main-0.run", str(runs / ".bitwatt" / "wider-1.run"))


def test_one_run_is_held_against_the_baseline(runs, capsys):
    assert "set a baseline: bitwatt baseline set RUN" in told(capsys, "compare", "wider", status=2)
    from bitwatt.store import baselines

    run = store.load("main-0")
    baselines.put(run, summary(run))
    assert "A main · main-0" in told(capsys, "compare", "wider")


def test_worth_audit_and_mistakes(runs, capsys):
    text = told(capsys, "compare", "main", "wider", "--metric", "accuracy")
    assert "costs 48.1 % more energy" in text
    assert "not worth it by the rule" in " ".join(text.split())
    text = told(capsys, "compare", "wider", "main", "--metric", "accuracy", "--audit-distillation", status=1)
    assert "distillation audit failed" in text
    (runs / "bitwatt.toml").write_text("[worth]\nat_most = 0.7\n")
    text = told(capsys, "compare", "wider", "main", "--metric", "accuracy", "--audit-distillation")
    assert "distillation audit passed" in text
    assert "an audit is of two" in told(
        capsys, "compare", "main", "wider", "main-1", "--metric", "accuracy", "--audit-distillation", status=2
    )
    assert "no metric 'f1'" in told(capsys, "compare", "main", "wider", "--metric", "f1", status=2)
    assert "--format is one of" in told(capsys, "compare", "main", "wider", "--format", "pdf", status=2)
    assert "two or three different axes" in told(capsys, "compare", "main", "wider", "--pareto", "flops", status=2)


def test_output_goes_to_a_file(runs, capsys):
    assert told(capsys, "compare", "main", "wider", "--format", "html", "-o", "page.html") == ""
    assert (runs / "page.html").read_text().startswith("<!doctype html>")
    assert told(capsys, "compare", "main", "wider", "--format", "markdown").startswith("## B wider against A main")
    assert "could not be written" in told(capsys, "compare", "main", "wider", "-o", "no/such/folder", status=2)


def test_check_exits_0_1_and_2(runs, capsys):
    budget = runs / "bitwatt.toml"
    budget.write_text('[budget]\nflops = "1 TFLOP"\n')
    assert "within budget: 1 kept" in told(capsys, "check", "wider")
    budget.write_text('[budget]\nbaseline = "main"\nflops = "+2 %"\nmissing = 0\nseconds = "+2 %"\n')
    text = told(capsys, "check", "wider", status=1)
    assert "over budget: 1 kept, 1 exceeded, 1 not gated" in text
    assert "seconds not gated: one run, 5 repetitions are needed" in " ".join(text.split())
    text = told(capsys, "check", "wider", "--repeat", status=1)
    assert "over budget: 1 kept, 2 exceeded" in text
    budget.write_text('[budget]\nflosp = "1 TFLOP"\n')
    assert "did you mean 'flops'?" in told(capsys, "check", "wider", status=2)
    budget.write_text('[budget]\nflops = "+2 %"\n')
    assert "a limit against a baseline needs one" in told(capsys, "check", "wider", status=2)
    assert "stands on both sides" in told(capsys, "check", "main", "--baseline", "main", status=2)
    assert "no run" in told(capsys, "check", "nobody", status=2)
    assert "cannot be read" in told(capsys, "check", "--budget", "none.toml", status=2)


def test_check_uses_the_baseline_that_was_set(runs, capsys):
    from bitwatt.store import baselines

    (runs / "bitwatt.toml").write_text('[budget]\nflops = "+200 %"\nenergy = "+10 %"\n')
    run = store.load("main-0")
    baselines.put(run, summary(run))
    assert "within budget" in told(capsys, "check", "wider")
    assert "energy exceeded" in told(capsys, "check", "wider", "--repeat", status=1)


def test_a_run_that_failed_or_counted_nothing_says_nothing_about_a_budget(runs, capsys):
    (runs / "bitwatt.toml").write_text('[budget]\nflops = "1 TFLOP"\n')
    kept("broken", status="failed: exit code 3")
    assert "did not end well (failed: exit code 3)" in told(capsys, "check", "broken", status=2)
    store.save(replace(store.load("main-0"), id="silent-0", name="silent", ledger=Ledger()))
    assert "nothing was counted in silent" in " ".join(told(capsys, "check", "silent", status=1).split())


def test_a_baseline_is_asked_for_only_where_a_limit_needs_it(runs, capsys):
    from bitwatt.store import baselines

    run = store.load("main-0")
    baselines.put(run, summary(run))
    (runs / "bitwatt.toml").write_text('[budget]\nflops = "1 TFLOP"\n')
    assert "within budget" in told(capsys, "check", "main-0")
    store.find("main-0").unlink()
    assert "within budget" in told(capsys, "check", "wider")
    (runs / "bitwatt.toml").write_text('[budget]\nflops = "+2 %"\n')
    assert "the baseline's run main-0 is gone" in told(capsys, "check", "wider", status=2)


def test_check_writes_for_github(runs, capsys, monkeypatch):
    (runs / "limits.toml").write_text('[budget]\nflops = "+2 %"\n')
    step = runs / "step.md"
    step.write_text("before\n")
    asked = ["check", "wider", "--budget", "limits.toml", "--baseline", "main"]
    assert "needs $GITHUB_STEP_SUMMARY" in told(capsys, *asked, "--summary", status=2)
    monkeypatch.setitem(os.environ, "GITHUB_STEP_SUMMARY", str(step))
    told(capsys, *asked, "--summary", "--junit", "out.xml", "--benchmark-json", "bench.json", status=1)
    assert step.read_text().startswith("before\n## bitwatt: over budget")
    assert "| Totals | A | B | B / A |" in step.read_text()
    assert ElementTree.parse(runs / "out.xml").getroot().find("testsuite").get("failures") == "1"
    assert json.loads((runs / "bench.json").read_text())[0]["unit"] == "FLOP"
    told(capsys, *asked, "--summary", "own.md", status=1)
    assert (runs / "own.md").exists()
    assert json.loads(told(capsys, *asked, "--format", "json", status=1))["ok"] is False
    assert told(capsys, *asked, "--format", "markdown", status=1).startswith("## bitwatt: over budget")
    assert "could not be written" in told(capsys, *asked, "--junit", "no/such/file", status=2)


def test_a_file_that_cannot_be_written_leaves_the_one_before(tmp_path, capsys, monkeypatch):
    store.save(transformer_run(1, 16, batch=4, id="a"))
    page = tmp_path / "page.md"
    page.write_text("before")

    def full(self: Path, *_: object, **__: object) -> None:
        self.touch()
        raise OSError(28, "No space left on device", str(self))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        assert main(["report", "a", "--format", "markdown", "-o", str(page)]) == 2
    assert "page.md could not be written: No space left on device" in capsys.readouterr().err
    assert (page.read_text(), [one.name for one in tmp_path.glob(".page*")]) == ("before", [])
    (tmp_path / "link.md").symlink_to(page)
    assert main(["report", "a", "--format", "markdown", "-o", str(tmp_path / "link.md")]) == 0
    assert "tiny-transformer" in page.read_text()
    assert main(["compare", "a", "a", "-o", "/dev/stdout"]) == 0
    assert main(["report", "a", "-o", str(tmp_path / "no" / "such" / "folder")]) == 2
