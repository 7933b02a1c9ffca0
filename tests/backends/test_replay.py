"""Learn, then replay: the same numbers as counting every op, and a word on how sure that is."""

from __future__ import annotations

import contextlib
import gc
import weakref
from pathlib import Path

import pytest
import torch
from clock_by_hand import ByHand, Lasts
from replay_programs import PROGRAMS, UNFORESEEN, Experts, Program, mlp, train
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
from torch.utils.data import DataLoader, TensorDataset

import bitwatt
from bitwatt.backends.torch import mode, watch
from bitwatt.backends.torch.replay import learner, lessons, rows
from bitwatt.records import Run
from bitwatt.reports.replay import verdict

#: Where an event is counted, and not the code between two of them.
EVENTS = ("forward", "backward", "optimizer", "inference", "backward/recompute")


def measured(program: str, exactness: str) -> Run:
    torch.manual_seed(0)
    with bitwatt.measure(program, keep=False, exactness=exactness) as session:
        {**PROGRAMS, **UNFORESEEN}[program]()
    assert session.run is not None
    return session.run


def calls(run: Run, *phases: str) -> dict[tuple[str, str, str], int]:
    rows = {(row.phase, row.scope, str(row.op)): row.calls for row in run.ledger}
    return {key: n for key, n in rows.items() if not phases or key[0].split("/")[-1] in phases}


@pytest.mark.parametrize("program", PROGRAMS)
def test_where_gaps_are_watched_replayed_runs_equal_counted_ones(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_SHARE", float("inf"))
    counted, replayed = measured(program, "always"), measured(program, "auto")
    assert counted.replay is None
    assert replayed.replay is not None
    assert calls(counted) == calls(replayed)


@pytest.mark.parametrize("program", PROGRAMS)
def test_where_they_are_not_events_are_equal_all_the_same(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    monkeypatch.setattr(lessons, "GAPS", 2)
    counted, replayed = measured(program, "always"), measured(program, "auto")
    assert replayed.replay is not None
    assert calls(counted, *EVENTS) == calls(replayed, *EVENTS)
    assert bitwatt.totals(replayed).total == pytest.approx(bitwatt.totals(counted).total, rel=0.02)


@pytest.mark.parametrize("program", ["plain_training", "growing_cache", "gan", "no_training_at_all"])
def test_what_agrees_everywhere_is_called_exact(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_SHARE", float("inf"))
    run = measured(program, "auto")
    assert run.replay is not None
    assert run.replay.exact
    assert run.replay.replayed > run.replay.counted
    assert verdict(run).startswith("exact: ")


def test_unwatched_code_between_steps_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    monkeypatch.setattr(lessons, "GAPS", 2)
    run = measured("plain_training", "auto")
    assert run.replay is not None
    assert run.replay.agrees
    assert not run.replay.exact
    assert "the code between them was watched in" in verdict(run)


def test_a_change_that_no_mark_shows_is_noticed_and_told() -> None:
    counted, replayed = measured("a_depth_in_the_data", "always"), measured("a_depth_in_the_data", "auto")
    assert replayed.replay is not None
    assert not replayed.replay.agrees
    assert sum(replayed.replay.disagreed.values()) >= 2  # the depth changed twice
    assert verdict(replayed).startswith("replayed, verified ")
    assert bitwatt.totals(replayed).total == pytest.approx(bitwatt.totals(counted).total, rel=0.03)


def test_odd_work_between_steps_is_counted_from_the_start() -> None:
    counted, replayed = measured("metrics_now_and_then", "always"), measured("metrics_now_and_then", "auto")
    assert calls(counted) == calls(replayed)


def test_what_varies_can_be_sampled_with_an_interval() -> None:
    torch.manual_seed(0)
    model, optimizer = (experts := Experts()), torch.optim.SGD(experts.parameters(), lr=0.01)
    runs = []
    for exactness in ("always", "sample"):
        torch.manual_seed(0)
        with bitwatt.measure("sampled", keep=False, exactness=exactness) as session:
            for _ in range(200):
                train(model, optimizer, 32)
        runs.append(session.run)
    counted, sampled = (bitwatt.totals(run).total for run in runs)
    replay = runs[1].replay
    assert replay is not None
    assert replay.replayed > 50
    assert sampled == pytest.approx(counted, rel=0.1)
    assert replay.interval is not None
    assert abs(sampled - counted) < 3 * max(replay.interval, 0.001 * counted)


def test_exactness_is_checked() -> None:
    with pytest.raises(bitwatt.BitwattError, match="auto, always, sample"):
        bitwatt.measure(exactness="never")


def test_runs_keep_how_they_were_replayed(tmp_path: Path) -> None:
    torch.manual_seed(0)
    with bitwatt.measure("kept", store=tmp_path) as session:
        PROGRAMS["plain_training"]()
    assert bitwatt.load(session.path).replay == session.run.replay


class Failing(torch.optim.SGD):
    fails = False

    def step(self, closure: object = None) -> None:
        if self.fails:
            raise RuntimeError
        super().step()


@pytest.mark.parametrize("share", [0.0, float("inf")])
def test_a_step_that_raises_does_not_silence_what_follows(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_SHARE", share)
    monkeypatch.setattr(lessons, "GAPS", 2)
    monkeypatch.setattr(lessons, "FOREIGN", 2)
    found = []
    for exactness in ("always", "auto"):
        model = torch.nn.Linear(12, 4)
        optimizer = Failing(model.parameters(), lr=0.1)
        with bitwatt.measure(keep=False, exactness=exactness) as session:
            for _ in range(12):
                train(model, optimizer)
            optimizer.fails = True
            with pytest.raises(RuntimeError):
                train(model, optimizer)
            with torch.no_grad():
                for _ in range(20):
                    model(torch.ones(8, 12))
        found.append(bitwatt.totals(session.run).by("phase")["inference"])
    assert found[0] == found[1] > 0


def test_nothing_of_the_program_is_kept_alive() -> None:
    def program() -> list[weakref.ref[object]]:
        model = torch.nn.Linear(12, 4)
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(60):
            train(model, optimizer)
        return [weakref.ref(model), weakref.ref(optimizer), weakref.ref(model.weight)]

    with bitwatt.measure(keep=False):
        refs = program()
        gc.collect()
        assert [ref() for ref in refs] == [None, None, None]


class Choosy(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(12, 16), torch.nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.first(x)
        if x.isnan().any():
            raise ValueError
        return self.second(hidden)


def test_a_call_that_raises_is_told_and_looked_at_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    monkeypatch.setattr(lessons, "GAPS", 2)
    found = []
    for exactness in ("always", "auto"):
        torch.manual_seed(0)
        model, run_of = Choosy(), []
        with bitwatt.measure(keep=False, exactness=exactness) as session, torch.no_grad():
            for i in range(160):
                x = torch.full((8, 12), float("nan") if i in (100, 101, 102) else 1.0)
                with contextlib.suppress(ValueError):
                    run_of.append(model(x))
        assert len(run_of) == 157
        found.append(session.run)
    first, again = (bitwatt.totals(run, "macs").by("scope") for run in found)
    assert again["second"] == first["second"]
    assert first["first"] - again["first"] == 8 * 12 * 16  # of the one that raised while nobody looked
    assert found[1].replay is not None
    assert found[1].replay.assumed == 1


def test_a_step_that_raised_keeps_nothing_alive() -> None:
    class Held(Failing):
        def step(self, closure: object = None) -> None:
            held = torch.ones(3)
            refs.append(weakref.ref(held))
            super().step()

    refs: list[weakref.ref[torch.Tensor]] = []
    model = torch.nn.Linear(12, 4)
    optimizer = Held(model.parameters(), lr=0.1)
    with bitwatt.measure(keep=False):
        for i in range(6):
            optimizer.fails = i == 5
            with contextlib.suppress(RuntimeError):
                train(model, optimizer)
        gc.collect()
        assert [ref() for ref in refs] == [None] * 6


def one_model() -> None:
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(200):
        train(model, optimizer)


def two_in_turn() -> None:
    models = [mlp(), torch.nn.Linear(12, 4)]
    optimizers = [torch.optim.Adam(model.parameters()) for model in models]
    for i in range(400):
        train(models[i % 2], optimizers[i % 2])


def batches_of_a_loader() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (x,) in DataLoader(TensorDataset(torch.randn(800, 12)), batch_size=4):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()


def compiled_model() -> None:
    model = torch.compile(mlp(), backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(200):
        train(model, optimizer)


def compiled_function() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = torch.compile(lambda x: model(x).square().mean(), backend="aot_eager")
    for _ in range(200):
        optimizer.zero_grad()
        loss(torch.randn(8, 12)).backward()
        optimizer.step()


@pytest.mark.parametrize(
    "program",
    [one_model, two_in_turn, batches_of_a_loader, compiled_model, compiled_function],
    ids=lambda f: f.__name__,
)
def test_most_laps_are_taken_the_swiftest_way(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    monkeypatch.setattr(lessons, "GAPS", 2)
    monkeypatch.setitem(PROGRAMS, "swift", program)
    laps = []
    slow_down = rows.Rows._slow_down

    def counting(self: rows.Rows) -> None:
        if self.swift is not None:
            laps.append(self.pace.done * len(self.swift.lanes))
        slow_down(self)

    monkeypatch.setattr(rows.Rows, "_slow_down", counting)
    counted, replayed = measured("swift", "always"), measured("swift", "auto")
    assert replayed.replay is not None
    assert sum(laps) > replayed.replay.replayed / 2
    assert calls(counted, *EVENTS) == calls(replayed, *EVENTS)


def test_work_after_a_loader_has_come_to_its_end_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    monkeypatch.setattr(lessons, "GAPS", 2)
    counted, replayed = measured("work_after_each_epoch", "always"), measured("work_after_each_epoch", "auto")
    assert replayed.replay is not None
    assert replayed.replay.replayed > 100
    assert calls(counted) == calls(replayed)


@pytest.mark.parametrize(
    ("program", "check"),
    [
        ("layers_changed_without_a_word", "marks of models"),
        ("a_forward_in_the_place_of_another", "marks of models"),
        ("a_loss_of_less", "marks of losses"),
    ],
)
def test_what_changes_without_a_word_is_found_soon_and_told(
    program: str, check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    monkeypatch.setattr(lessons, "GAPS", 2)
    counted, replayed = calls(measured(program, "always"), *EVENTS), measured(program, "auto")
    found = calls(replayed, *EVENTS)
    assert all(abs(counted.get(key, 0) - found.get(key, 0)) <= 16 for key in {*counted, *found})
    assert replayed.replay is not None
    assert replayed.replay.disagreed == {check: 1}
    assert verdict(replayed).startswith("replayed, verified ")


def test_a_step_that_raises_is_not_credited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    monkeypatch.setattr(lessons, "GAPS", 2)
    counted, replayed = measured("a_step_that_raises", "always"), measured("a_step_that_raises", "auto")
    assert calls(counted, *EVENTS) == calls(replayed, *EVENTS)
    assert replayed.replay is not None
    assert replayed.replay.assumed
    assert replayed.replay.replayed > 150


def test_a_session_that_counts_all_inside_one_that_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    monkeypatch.setattr(lessons, "GAPS", 2)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with bitwatt.measure(keep=False):
        for _ in range(60):
            train(model, optimizer)
        with bitwatt.measure(keep=False, exactness="always") as inner:
            torch.ones(9, 9) @ torch.ones(9, 9)
            for _ in range(20):
                train(model, optimizer)
    macs = bitwatt.totals(inner.run, "macs").by("phase")
    assert macs["forward"] == 20 * 8 * (12 * 16 + 16 * 4)
    assert macs["other"] == 9**3


def test_a_long_stretch_is_counted_and_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mode, "LOG", 30)
    kept = []
    with bitwatt.measure(keep=False) as session, torch.no_grad():
        model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(20)])
        for _ in range(20):
            model(torch.ones(2, 4))
            for _ in range(40):
                torch.ones(3) + 1
            active = watch.active.states.here.mode if watch.active is not None else None
            kept.append(len(active.log or ()) if active is not None else -1)
    assert session.run is not None
    assert session.run.replay is not None
    assert not session.run.replay.replayed
    assert 0 <= max(kept) <= 30
    assert bitwatt.totals(session.run, "macs").total == 20 * 20 * 2 * 16


def test_what_ran_unseen_after_the_last_step_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    monkeypatch.setattr(lessons, "GAPS", 2)
    clock = ByHand(monkeypatch)
    with bitwatt.measure(keep=False) as session:
        model = mlp().append(Lasts(clock))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(60):
            train(model, optimizer)
        clock.now += 5.0
    assert session.run is not None
    assert session.run.replay is not None
    assert not session.run.replay.exact
    assert any("after the last step or call, was not watched" in note for note in session.run.notes)


def test_steps_with_a_closure_between_known_ones_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    monkeypatch.setattr(lessons, "GAPS", 2)
    counted, replayed = measured("closures_now_and_then", "always"), measured("closures_now_and_then", "auto")
    assert replayed.replay is not None
    assert replayed.replay.replayed > 60
    assert bitwatt.totals(replayed).by("phase") == bitwatt.totals(counted).by("phase")


def test_samples_that_the_programs_own_code_reads_are_not_called_exact() -> None:
    run = measured("samples_that_are_changed_now_and_then", "auto")
    assert run.replay is not None
    assert run.replay.unchecked
    assert not verdict(run).startswith(("exact", "calls and steps exact"))


def test_an_interrupt_while_the_mode_is_entered_does_not_enter_it_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    monkeypatch.setattr(lessons, "GAPS", 2)
    enter, interrupts, most = watch._enter, [1], 0

    def interrupted(one: mode.CountingMode) -> None:
        enter(one)
        if interrupts:
            interrupts.pop()
            raise KeyboardInterrupt

    monkeypatch.setattr(watch, "_enter", interrupted)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with bitwatt.measure(keep=False):
        for _ in range(200):
            with contextlib.suppress(KeyboardInterrupt):
                train(model, optimizer)
            most = max(most, len(_get_current_dispatch_mode_stack()))
    assert not interrupts
    assert most == 1
    assert not _get_current_dispatch_mode_stack()


def test_code_that_differs_before_the_same_call_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    program = "a_critic_that_steps_more_often"
    counted, replayed = measured(program, "always"), measured(program, "auto")
    assert replayed.replay is not None
    assert replayed.replay.replayed > 200
    assert calls(counted) == calls(replayed)
