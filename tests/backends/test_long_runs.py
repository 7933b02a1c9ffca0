"""A session does not grow with what a program does for days: sizes are folded, and what is gone is let go."""

from __future__ import annotations

import threading
import time
import tracemalloc

import pytest
import torch
from measuring import measured
from sklearn.linear_model import LinearRegression
from torch import nn

import bitwatt
from bitwatt import context, folding
from bitwatt.backends.sklearn import watch as estimators
from bitwatt.backends.torch import compact, dataloader, scopes, state, watch
from bitwatt.backends.torch.replay import learner, lessons, memory
from bitwatt.pricing import cost_models

KEYS = ("phase", "scope", "op", "kind", "precision", "part")


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (compact, "LIMIT", 400), (compact, "STEP", 20), (compact, "ROWS", 200), (compact, "OPS", 50),
        (folding, "LIMIT", 200), (folding, "_REMEMBERED", 30),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


def text() -> None:
    """Batches of text of every length, trained on and then read in evaluation mode, its phases named afterwards."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    model = nn.Sequential(nn.Embedding(20, 8), layer, nn.Linear(8, 20))
    optimizer = torch.optim.Adam(model.parameters())
    for length in range(1, 30):
        tokens = torch.randint(0, 20, (1 + length % 3, length))
        nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    for length in range(1, 30):
        model(torch.randint(0, 20, (1, length)))


def same(run: bitwatt.Run, other: bitwatt.Run) -> None:
    for model in cost_models():
        one, two = bitwatt.totals(run, model), bitwatt.totals(other, model)
        assert one.by(*KEYS) == two.by(*KEYS), model
        assert (one.coverage, one.missing) == (two.coverage, two.missing), model
    assert run.fingerprint == other.fingerprint


@pytest.mark.parametrize("exactness", ["always", "auto"])
def test_text_of_every_length_folds_and_every_number_stays(request, exactness):
    whole = measured(text, exactness=exactness)
    request.getfixturevalue("little_room")
    folded = measured(text, exactness=exactness)
    assert len(whole.ledger) > 1000 > 300 > len(folded.ledger)
    assert "folded into" in folded.notes[-1]
    same(whole, folded)


def test_a_thread_keeps_so_many_calls_and_no_more(little_room):
    kept = []

    def products() -> None:
        for n in range(1, 2000):
            torch.mm(torch.empty(n, 2), torch.empty(2, 3))
            kept.append(sum(map(len, watch.active.states.here.counts.values())))

    run = measured(products)
    assert max(kept) <= compact.LIMIT + 2 * compact.STEP
    assert bitwatt.totals(run, "macs").total == sum(n * 2 * 3 for n in range(1, 2000))
    assert bitwatt.totals(run).coverage.free == 2 * 1999


def lengths() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.GELU(), nn.LayerNorm(3), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for n in range(1, 400):
        optimizer.zero_grad()
        model(torch.ones(n, 2)).mean().backward()
        optimizer.step()


def test_what_was_credited_at_many_sizes_is_written_in_parts_and_in_nobodys_time(little_room, monkeypatch):
    monkeypatch.setattr(compact, "LIMIT", 1500)
    monkeypatch.setattr(memory, "_SIZES", 100)
    monkeypatch.setattr(memory, "_WRITTEN", 60)
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    kept, credits, relieve = [], [], compact.relieve

    def slowly(watched, thread):
        kept.append(sum(map(len, thread.counts.values())))
        credits.append(sum(type(call) is lessons.Credit for counts in thread.counts.values() for call in counts))
        time.sleep(0.02)
        relieve(watched, thread)

    whole = measured(lengths, exactness="always")
    monkeypatch.setattr(compact, "relieve", slowly)
    run = measured(lengths)
    assert run.replay.replayed > 300
    assert max(credits) <= 3 * memory._SIZES  # a step has three marks
    assert max(kept) <= compact.LIMIT + memory._WRITTEN + 40 + max(credits)  # a stretch has fewer calls than 40
    assert run.replay.paused < 0.02 * len(kept) / 2
    same(run, whole)


def test_a_run_that_is_read_under_way_holds_no_more_after_it(monkeypatch):
    """What stands for steps of many sizes is worked out for the reader, and not kept."""
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    with bitwatt.measure("under way", keep=False, meter=False) as session:
        lengths()
        seen = watch.active.snapshot(session._token).ledger
        here = [call for counts in watch.active.states.here.counts.values() for call in counts]
        credits = [call for call in here if type(call) is lessons.Credit and call.lesson.predicted is not None]
        assert len(credits) > 300
        assert [credit for credit in credits if credit._rows is not None] == []
    assert sum(row.calls for row in seen) == sum(row.calls for row in session.run.ledger)


def test_calls_that_no_rule_covers_stay_named(little_room):
    with torch.library._scoped_library("longruns", "DEF") as library:
        library.define("strange(Tensor x) -> Tensor")
        library.impl("strange", lambda x: x.clone(), "CPU")

        def strange() -> None:
            for n in range(1, 600):
                torch.ops.longruns.strange(torch.empty(n))

        run = measured(strange)
    assert bitwatt.totals(run).missing == {"longruns.strange": 599}
    assert len(run.ledger) < 200


def test_phases_without_end_share_a_name(monkeypatch):
    monkeypatch.setattr(context, "PHASES", 10)

    def steps() -> None:
        for i in range(100):
            with bitwatt.phase(f"step {i}"):
                torch.ones(2) + 1
            with bitwatt.phase(f"named {'x' * i}"):
                torch.ones(2) + 1

    phases = bitwatt.totals(measured(steps)).by("phase")
    assert len(phases) <= 21
    assert "step 1" in phases
    assert "step #" in phases
    assert sum(phases.values()) == 400


def test_the_same_phase_a_thousand_times_is_one_place():
    sizes = []

    def steps() -> None:
        for _ in range(1000):
            with bitwatt.phase("train"):
                torch.ones(2) + 1
        sizes.append(len(watch.active.states.here.counts))

    measured(steps)
    assert max(sizes) < 5


def test_models_without_end_are_let_go(monkeypatch):
    monkeypatch.setattr(scopes, "ROOTS", 20)
    monkeypatch.setattr(state, "FRAMES", 20)
    seen = {}

    def search() -> None:
        held = []
        for i in range(3000):
            model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
            if i % 5 == 0:
                held = [*held[-50:], torch.empty(i % 100)]  # so that memory is not simply used again
            model(torch.ones(1, 2))
        here = watch.active.states.here
        seen.update(
            roots=len(watch.active.scopes.roots), frames=len(here.frames), places=len(here.counts) + len(here.pending),
            names=len(watch.active.scopes._known._known), layers=len(watch.active.scopes._layers),
        )  # fmt: skip

    run = measured(search, exactness="always")
    assert bitwatt.totals(run, "macs").total == 3000 * 4
    for what, most in {"roots": 200, "frames": 400, "places": 600, "layers": 400, "names": 2500}.items():
        assert seen[what] <= most  # of 3,000 models: when dead ones are met depends on the memory's luck


def test_a_thread_for_every_request_leaves_its_counts_and_nothing_else(monkeypatch):
    monkeypatch.setattr(compact, "THREADS", 10)
    model, seen = nn.Linear(4, 4), []

    def serve() -> None:
        for _ in range(100):
            thread = threading.Thread(target=lambda: model(torch.ones(2, 4)).sum().backward())
            thread.start()
            thread.join()
            seen.append(len(watch.active.everyone))

    run = measured(serve)
    assert max(seen) <= 12
    assert bitwatt.totals(run, "macs").by("phase") == {"forward": 100 * 32, "loss": 0, "other": 0, "backward": 3200}


def test_sessions_inside_a_session_add_up_to_one_ledger(little_room):
    with bitwatt.measure(keep=False) as outer:
        for n in range(1, 400):
            with bitwatt.measure(keep=False):
                torch.mm(torch.empty(n, 2), torch.empty(2, 3))
        assert sum(map(len, outer._token.inner)) <= 200
    assert bitwatt.totals(outer.run, "macs").total == sum(n * 6 for n in range(1, 400))


class Images(torch.utils.data.Dataset):
    """Of every size."""

    def __len__(self) -> int:
        return 300

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.ones(index + 1, 2) @ torch.ones(2, 1).sum(0, keepdim=True).expand(2, 1)


def test_a_worker_adds_up_what_it_has_written(little_room, monkeypatch):
    monkeypatch.setattr(dataloader, "SPOOL", 20_000)
    longest = []

    def load() -> None:
        for _ in torch.utils.data.DataLoader(Images(), batch_size=None, num_workers=1):
            longest.extend(file.stat().st_size for file in watch.active.spool.folder.rglob("*.counts"))

    run = measured(load)
    assert bitwatt.totals(run, "macs").total == sum(n * 2 for n in range(1, 301))
    assert max(longest) < 300_000


def test_estimators_on_data_of_every_length_fold(monkeypatch):
    monkeypatch.setattr(estimators, "_ROOM", 50)
    model = LinearRegression().fit([[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]], [1.0, 2.0, 3.0])

    def predict() -> None:
        for n in range(1, 300):
            model.predict([[1.0, 2.0]] * n)

    whole = measured(predict)
    assert len(whole.ledger) < 100
    assert bitwatt.totals(whole).coverage.counted == 299
    monkeypatch.setattr(estimators, "_ROOM", 10_000)
    same(whole, measured(predict))


@pytest.mark.slow
def test_a_hundred_thousand_signatures_stay_small():
    def products() -> None:
        for i in range(100_000):
            torch.mm(torch.empty(1 + i % 1000, 4), torch.empty(4, 1 + i // 1000))

    tracemalloc.start()
    run = measured(products)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200e6
    assert len(run.ledger) < 100
    assert bitwatt.totals(run, "macs").total == sum((1 + i % 1000) * 4 * (1 + i // 1000) for i in range(100_000))


@pytest.mark.slow
def test_steps_of_a_day_do_not_grow():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    sizes = []

    def train() -> None:
        tracemalloc.start()
        for i in range(12_000):
            model(torch.ones(2, 4)).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            if i in (6_000, 11_999):
                sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()

    run = measured(train)
    assert bitwatt.totals(run, "macs").by("phase")["forward"] == 12_000 * 2 * (16 + 4)
    assert sizes[1] - sizes[0] < 0.5e6
