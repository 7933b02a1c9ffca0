"""A baseline for each project and kind of machine: what it ran on, and what one epoch cost."""

from dataclasses import replace
from pathlib import Path

import pytest

import bitwatt
from bitwatt import store
from bitwatt.about import described
from bitwatt.cli import main
from bitwatt.config import project
from bitwatt.errors import BitwattError
from bitwatt.observed import Observed
from bitwatt.pricing import totals
from bitwatt.readings import Device, Energy, Metered, PhaseEnergy
from bitwatt.records import Machine
from bitwatt.store import baselines
from bitwatt.store.baselines import Epoch
from factories import make_run, metered, transformer_run

HERE = {"cpu": "A Processor", "cores": "8", "gpu": "NVIDIA H200", "torch": "2.13.0", "cuda": "12.8", "os": "Debian"}


def run_on(facts: dict[str, str], **fields):
    return transformer_run(1, 16, batch=4, machine=Machine(facts), **fields)


def test_it_is_found_by_project_and_hardware():
    first, other = run_on(HERE, id="first"), run_on(HERE | {"gpu": "NVIDIA L4"}, id="other")
    assert baselines.find(first) is None
    baselines.put(first, {"totals": {"flops": 5}})
    baselines.put(other, {}, of="another project")
    again = run_on(HERE | {"torch": "2.14.0", "os": "another"}, id="later")
    found = baselines.find(again)
    assert (found.run, found.summary) == ("first", {"totals": {"flops": 5}})
    assert found.hardware == {"cpu": "A Processor", "cores": "8", "gpu": "NVIDIA H200"}
    assert found.versions == {"torch": "2.13.0", "cuda": "12.8"}
    assert baselines.find(other) is None
    assert baselines.find(other, of="another project").run == "other"
    assert [one.run for one in baselines.known()] == ["other", "first"]
    assert [one.run for one in baselines.known(of=project())] == ["first"]
    baselines.put(again, {})
    assert baselines.find(first).run == "later"
    assert baselines.clear(first)
    assert not baselines.clear(first)
    assert baselines.find(first) is None


def test_one_epoch_is_the_mean_of_its_phases():
    phases = {"epoch": (2, 8.0), "epoch/inner": (9, 1.0), "warmup": (1, 1.0)}
    run = run_on(HERE, observed=Observed(phases=phases), meter=metered())
    run = replace(run, ledger=run.ledger.within("epoch"))
    flops, bops = totals(run, "flops").total, totals(run, "bops").total
    found = baselines.epoch_of(run)
    assert found == Epoch(2, "the mean of 2 phases called epoch", 4.0, round(flops / 2), round(bops / 2), None)
    numbered = replace(run, observed=Observed(phases={"epoch 0": (1, 3.0), "epoch 1": (1, 5.0)}))
    assert baselines.epoch_of(numbered).seconds == 4.0


@pytest.mark.parametrize(
    ("how", "seconds", "joules"), [("measured", 30.0, 60.0), ("modelled", 30.0, None), ("measured", 9.0, None)]
)
def test_an_epoch_has_the_energy_that_was_measured_all_along(how, seconds, joules):
    parts = (
        Energy(Device("cpu", "cpu"), 120.0, how, "", seconds),
        Energy(Device("gpu:1", "gpu"), None, "measured", ""),
    )
    meter = Metered(30.0, parts, {"epoch/forward": PhaseEnergy({"cpu": 120.0}, "apportioned", 8.0)})
    run = run_on(HERE, observed=Observed(phases={"epoch": (2, 8.0)}), meter=meter)
    assert baselines.epoch_of(run).energy_j == joules


def test_one_epoch_is_an_even_share_where_only_their_number_is_known():
    run = run_on(HERE, seconds=30.0, about=described(parameters={"num_epochs": 3}), meter=metered())
    found = baselines.epoch_of(run)
    assert (found.epochs, found.seconds, found.energy_j) == (3, 10.0, 1200.0)  # 3000 J and 600 J
    assert found.how == "the run shared out evenly: num_epochs = 3"
    assert baselines.epoch_of(run_on(HERE)) is None


def test_a_real_program_with_phases_called_epoch():
    with bitwatt.measure("x", meter=False, parameters={"epochs": 7}) as session:
        for _ in range(3):
            with bitwatt.phase("epoch"):
                pass
    assert baselines.epoch_of(session.run).epochs == 3


def test_only_a_run_that_ended_well_is_a_baseline():
    with pytest.raises(BitwattError, match="its status is 'interrupted'"):
        baselines.put(make_run(status="interrupted"), {})


@pytest.mark.parametrize("name", ["../../etc", "a/b", "", "ü" * 300, "."])
def test_a_project_may_be_called_anything(name):
    run = make_run()
    baselines.put(run, {}, of=name or "x")
    assert baselines.find(run, of=name or "x").project == (name or "x")
    assert [path.parent for path in Path(".bitwatt").rglob("*.json")] == [Path(".bitwatt/baselines")]


def test_a_file_that_is_none_is_left_out():
    baselines.put(make_run(), {})
    Path(".bitwatt/baselines/x.json").write_text("{}")
    Path(".bitwatt/baselines/y.json").write_text("rubbish")
    assert len(baselines.known()) == 1


def test_the_command_sets_shows_and_clears(kept, capsys, tmp_path):
    kept("a", name="first", batch_size=32, machine=Machine(HERE))
    kept("b", name="other\x1b[2J", machine=Machine(HERE))
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "my-project"\n')

    def told(*arguments: str) -> str:
        assert main(["baseline", *arguments]) == 0
        return capsys.readouterr().out

    assert told("show") == "my-project has no baseline; make one with: bitwatt baseline set RUN\n"
    text = told("set", "a")
    for part in ("baseline of my-project", "a (first", "NVIDIA H200", "torch 2.13.0", "batch size  32", "not known"):
        assert part in text
    assert told("show") == text
    assert "\x1b" not in told("set", "b")
    assert '"run": "b"' in told("show", "--format", "json")
    assert told("clear", "a") == "the baseline of my-project is forgotten\n"
    assert told("clear", "a") == "my-project has no baseline for that machine\n"
    assert store.load("a").name == "first"
