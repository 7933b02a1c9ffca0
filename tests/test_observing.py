"""What a run shows beside its counts: samples and tokens, batches of DataLoaders, spans of phases, a timeline."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import bitwatt
from bitwatt import observing
from bitwatt.backends.torch.batches import LOADED
from bitwatt.errors import BitwattError
from bitwatt.observed import Figure, Observed, Span, observed_json, observed_of, settled, together
from factories import metered, transformer_run


def seen(session: bitwatt.Session) -> Observed:
    assert session.run is not None
    assert session.run.observed is not None
    return session.run.observed


def quiet(**options: Any) -> Any:
    return bitwatt.measure("test", keep=False, meter=False, **options)


def test_what_the_program_counts_is_kept_by_phase() -> None:
    with quiet() as session:
        bitwatt.count(samples=1)
        with bitwatt.phase("train"):
            for _ in range(3):
                bitwatt.count(samples=32, tokens=4096)
            with bitwatt.phase("warm up"):
                bitwatt.count(samples=4)
    observed = seen(session)
    train = {"samples": 96, "tokens": 3 * 4096}
    assert observed.processed == {"": {"samples": 1}, "train": train, "train/warm up": {"samples": 4}}
    assert observed.total("samples") == 101
    assert observed.inside("train") == {"samples": 100, "tokens": 3 * 4096}
    assert observed.phases["train"][0] == 1


def test_outside_a_run_it_does_nothing_and_inside_it_takes_whole_numbers() -> None:
    bitwatt.count(samples=32)
    with quiet():
        bitwatt.count(samples=torch.tensor(3).item())
        for wrong in (-1, 1.5, True, "3"):
            with pytest.raises(BitwattError, match="whole numbers"):
                bitwatt.count(samples=wrong)


def test_a_run_inside_another_counts_for_both() -> None:
    with quiet() as outer, bitwatt.phase("fold"), quiet() as inner, bitwatt.phase("train"):
        bitwatt.count(samples=5)
    assert seen(inner).processed == {"train": {"samples": 5}}
    assert seen(outer).processed == {"fold/train": {"samples": 5}}


def test_spans_tell_when_phases_ran_on_which_thread_and_are_not_without_end() -> None:
    def other() -> None:
        with bitwatt.phase("beside"):
            pass

    with quiet() as session:
        with bitwatt.phase("outer"), bitwatt.phase("inner"):
            pass
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        for _ in range(observing.SPANS):
            with bitwatt.phase("often"):
                pass
    observed = seen(session)
    inner, outer, beside = observed.spans[:3]
    assert (inner.phase, outer.phase, beside.phase) == ("outer/inner", "outer", "beside")
    assert outer.begin_s <= inner.begin_s
    assert inner.begin_s + inner.seconds <= outer.begin_s + outer.seconds
    assert beside.thread != outer.thread == inner.thread
    assert len(observed.spans) == observing.SPANS
    assert observed.phases["often"][0] == observing.SPANS


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter(torch.randn(10, 2))


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_that_loaders_hand_out_are_counted_where_their_size_is_known(workers: int) -> None:
    data = TensorDataset(torch.randn(23, 2))
    with quiet() as session:
        with bitwatt.phase("epoch"):
            for _ in DataLoader(data, batch_size=5, num_workers=workers):
                pass
        with bitwatt.phase("left early"):
            loader = DataLoader(data, batch_size=5, num_workers=workers, persistent_workers=bool(workers))
            for _ in range(2):  # workers have drawn more by then
                for _ in loader:
                    break
        with bitwatt.phase("unknown"):
            for _ in DataLoader(Stream(), batch_size=4):  # the last has 2
                pass
            for _ in DataLoader(data, batch_size=None):
                pass
    assert seen(session).processed == {"epoch": {LOADED: 23}, "left early": {LOADED: 10}}


def test_without_cuda_there_is_no_memory_and_ranges_are_no_trouble() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is CUDA")
    with quiet(nvtx=True) as session, bitwatt.phase("train"):
        torch.nn.Linear(4, 4)(torch.randn(2, 4)).sum().backward()
    assert (seen(session).device_memory, seen(session).device_peak) == ({}, None)


def test_a_run_that_shows_nothing_has_nothing() -> None:
    with quiet() as session:
        pass
    assert session.run.observed is None


WHOLE = Observed(
    {"train": {"samples": 400, "tokens": 8_000}},
    {"train": (2, 4.0)},
    (Span("train", 0.5, 1.5), Span("train", 2.0, 2.5, 1)),
    {"forward": 10**9, "backward": 3 * 10**9},
    4 * 10**9,
    (Figure("Zeus", 12.5, "measured, window 'epoch'", 3.0, {"GPU": 12.5}),),
)


def test_it_comes_back_from_a_file(tmp_path: Path) -> None:
    path = bitwatt.save(transformer_run(observed=WHOLE), tmp_path)
    assert bitwatt.load(path).observed == WHOLE
    assert observed_of(json.loads(json.dumps(observed_json(WHOLE)))) == WHOLE


def test_ranks_of_a_job_process_together() -> None:
    other = Observed({"train": {"samples": 100}}, {"train": (1, 6.0)}, (), {"forward": 2 * 10**9}, 5 * 10**9)
    both = together([WHOLE, other])
    assert both is not None
    assert both.processed == {"train": {"samples": 500, "tokens": 8_000}}
    assert both.phases == {"train": (2, 6.0)}
    assert both.device_memory == {"forward": 2 * 10**9, "backward": 3 * 10**9}
    assert both.device_peak == 5 * 10**9
    assert together([]) is None


def test_the_report_tells_rates_and_what_a_thousand_cost() -> None:
    run = transformer_run(observed=WHOLE, meter=metered(), seconds=8.0)
    text = " ".join(bitwatt.report(run).split())
    assert "Throughput: 400 samples (50/s), 8,000 tokens (1 k/s) over 8 s" in text
    assert "in train: 400 samples (100/s), 8,000 tokens (2 k/s)" in text
    assert "the whole run, per 1,000 samples: 9 kJ" in text  # 3.6 kJ for 400; what `train` drew is not known
    assert "device memory: 4 GB at most, backward ≥ 3 GB, forward ≥ 1 GB" in text
    found = json.loads(bitwatt.report(run, format="json"))["throughput"]
    assert found["processed"]["samples"] == {"count": 400, "per_second": 50.0}
    assert found["by_phase"]["train"]["tokens"]["per_second"] == 2_000.0


def test_a_timeline_holds_what_was_noted_and_nothing_else() -> None:
    run = transformer_run(observed=WHOLE, meter=metered(), seconds=12.0)
    trace = json.loads(bitwatt.report(run, format="trace"))
    complete = [one for one in trace["traceEvents"] if one["ph"] == "X"]
    assert [(one["name"], one["ts"], one["dur"], one["tid"]) for one in complete] == [
        ("tiny-transformer", 0, 12e6, 0), ("train", 0.5e6, 1.5e6, 1), ("train", 2e6, 2.5e6, 2)
    ]  # fmt: skip
    power = [(one["ts"], one["args"]["W"]) for one in trace["traceEvents"] if one["ph"] == "C"]
    assert power == [(1e6 * i, 100.0 + 40 * i) for i in range(1, 13)]
    assert trace["otherData"]["phase_seconds"]["forward"] == 1.1  # a sum: it has no place on the timeline
    bare = json.loads(bitwatt.report(transformer_run(), format="trace"))
    assert [one["name"] for one in bare["traceEvents"] if one["ph"] == "X"] == ["tiny-transformer"]


def test_phases_of_the_user_have_the_time_that_frameworks_do_not_see() -> None:
    told = {"a": (1, 2.0), "a/b": (1, 1.5), "c": (3, 1.0)}
    found = settled({"other": 4.0, "c/forward": 0.995}, told, 4.995)
    assert found == pytest.approx({"other": 2.0, "c/forward": 0.995, "a": 0.5, "a/b": 1.5})
    assert settled({"other": 4.0}, {}, 4.0) == {"other": 4.0}
    assert settled({}, told, 4.0) == {}


def test_time_that_was_booked_to_the_phase_after_goes_back() -> None:
    told = {"data": (600, 3.0), "step": (600, 7.0), "tail": (1, 0.5)}
    found = settled({"other": 0.1, "data": 0.5, "step": 2.0, "step/forward": 7.5}, told, 10.6)
    assert found == pytest.approx({"other": 0.1, "data": 3.0, "step": 0.0, "step/forward": 7.0, "tail": 0.5})


def test_phases_that_overlap_are_given_no_more_than_there_is() -> None:
    found = settled({"other": 1.0, "inference": 0.5}, {"request": (100, 100.0)}, 1.5)
    assert found == pytest.approx({"other": 0.0, "inference": 0.5, "request": 1.0})


def test_a_run_books_time_to_the_phases_that_it_passed_in() -> None:
    with bitwatt.measure("phases", keep=False) as session:
        torch.nn.Linear(2, 2)(torch.ones(1, 2))
        with bitwatt.phase("wait"):
            time.sleep(0.2)
        torch.nn.Linear(2, 2)(torch.ones(1, 2))
    seconds = session.run.phase_seconds
    assert seconds["wait"] == pytest.approx(session.run.observed.phases["wait"][1], rel=0.02)
    assert sum(seconds.values()) <= session.run.seconds + 0.1
