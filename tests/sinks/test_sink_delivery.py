"""A sink that is down, dies, refuses or hangs never stops the program; the run is kept, and says so."""

from __future__ import annotations

import _thread
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from passing import Passing, until

import bitwatt
from bitwatt.errors import BitwattError
from bitwatt.records import Run
from bitwatt.sinks import Opening, delivery, make, send
from bitwatt.sinks.delivery import Delivery
from factories import make_run, mm_op, transformer_run
from receivers import Receiver, held_port, receiver

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")


class Plain:
    """Keeps what it gets; raises what it is told to."""

    name = "plain"

    def __init__(self, *faults: BaseException | None, patience: float = 300.0) -> None:
        self.faults, self.patience = list(faults), patience
        self.opened: list[Opening] = []
        self.closed: list[Run] = []

    def why_absent(self) -> None: ...

    def open(self, run: Opening) -> None:
        self.opened.append(run)

    def close(self, run: Run) -> str:
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault
        self.closed.append(run)
        return "here"


class Lively(Plain):
    name = "lively"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.seen: list[Run] = []
        self.threads: set[int] = set()
        self.gate: threading.Event | None = None

    def live(self, run: Run) -> None:
        self.threads.add(_thread.get_ident())
        self.seen.append(run)
        if self.gate is not None:
            self.gate.wait(120)


def measured(to: Any, **options: Any) -> Any:
    with bitwatt.measure("toy", to=to, **options) as session:
        pass
    return session


def test_a_run_is_sent_when_it_has_ended_and_says_where() -> None:
    sink = Plain()
    session = measured([sink])
    assert [(one.sink, one.where, one.problem) for one in session.receipts] == [("plain", "here", "")]
    assert sink.opened[0].id == session.run.id == sink.closed[0].id
    assert not [note for note in session.run.notes if "sent" in note]


def test_what_fails_is_tried_again() -> None:
    sink = Plain(OSError("first"), OSError("second"))
    session = measured([sink])
    assert session.receipts[0].tries == 3
    assert session.receipts[0].problem == ""


def test_an_error_that_is_no_use_to_repeat_is_not_repeated() -> None:
    sink = Plain(BitwattError("never"), None)
    session = measured([sink])
    assert (session.receipts[0].problem, session.receipts[0].tries) == ("never", 1)


def test_one_that_stays_down_is_told_in_the_kept_run(clock: Passing) -> None:
    sink = Plain(*[OSError(f"http://user:secret@host is away {i}") for i in range(99)], patience=60.0)
    began = clock.now
    session = measured([sink, Plain()])
    kept = bitwatt.load(session.run.id)
    (note,) = [note for note in kept.notes if "not sent to plain" in note]
    assert "is away" in note
    # at 0, 0.5, 1.5, 3.5, 7.5, 15.5, 23.5, 31.5, 39.5, 47.5 and 55.5 s; 63.5 s is past the end
    assert "tried 11 times" in note
    assert clock.now - began == 55.5
    assert f"bitwatt report {session.run.id} --to plain" in note
    assert "secret" not in note
    assert session.receipts[1].where == "here"


def test_a_thread_that_a_library_ends_is_a_failure_like_any_other(clock: Passing) -> None:
    (receipt,) = measured([Plain(*[SystemExit(3)] * 99, patience=60.0)]).receipts
    assert receipt.problem.startswith("SystemExit")
    assert receipt.tries == 11


def test_the_program_does_not_wait_for_a_sink_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One hangs from its first look on. The others hear of the newest run, and nothing piles up."""
    monkeypatch.setattr(delivery, "INTERVAL", 0.02)
    stuck, well = Lively(patience=0.5), Lively()
    stuck.gate = threading.Event()
    numbers = iter(range(10_000))
    going = Delivery([stuck, well], Opening("id", "toy", ""), lambda: make_run(seconds=float(next(numbers))))
    until(lambda: len(well.seen) >= 5 and stuck.seen)
    going.rest()
    receipts = going.finish(make_run())
    stuck.gate.set()
    assert len(stuck.seen) == 1
    assert [one.problem for one in receipts] == ["no answer within 0.5 s", ""]
    assert well.closed[0].seconds == make_run().seconds  # the finished one, whatever was so far
    assert threading.main_thread().ident not in well.threads


def test_what_a_sink_computes_is_not_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(delivery, "INTERVAL", 0.02)
    monkeypatch.setattr(delivery, "SHARE", 1.0)
    monkeypatch.setattr(delivery, "SINK_SHARE", 1.0)

    class Computes(Lively):
        told: list[int] = []  # noqa: RUF012 - multiply-accumulates of the program, as far as it had come

        def live(self, run: Run) -> None:
            thread = threading.Thread(target=lambda: torch.ones(8, 8) @ torch.ones(8, 8))  # as a library may
            thread.start()
            thread.join()
            torch.nn.Linear(8, 8)(torch.ones(8, 8))
            self.told.append(bitwatt.totals(run, "macs").total)

    sink = Computes()
    with bitwatt.measure(keep=False, to=[sink], exactness="always") as session:
        torch.ones(2, 2) @ torch.ones(2, 2)
        until(lambda: sink.told.count(8) >= 3)
    assert bitwatt.totals(session.run, "macs").total == 8
    assert set(sink.told) <= {0, 8}  # before the program's product, and after


def test_a_sink_that_is_dear_to_tell_is_told_seldomer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "INTERVAL", 0.02)

    class Dear(Lively):
        def __init__(self) -> None:
            super().__init__()
            self.when: list[tuple[float, float]] = []

        def live(self, run: Run) -> None:
            began, spent = time.monotonic(), time.thread_time() + 0.05
            while time.thread_time() < spent:
                pass
            super().live(run)
            self.when.append((began, time.monotonic()))

    cheap, dear = Lively(), Dear()
    going = Delivery([cheap, dear], Opening("id", "toy", ""), make_run)
    until(lambda: len(cheap.seen) >= 10 and dear.when)
    going.rest()
    going.finish(make_run())
    # 0.05 s of CPU time are 5 s at 1/100 of a core
    assert [later for (_, ended), (later, _) in pairwise(dear.when) if later - ended < 5] == []
    assert len(dear.closed) == 1


def test_a_server_that_is_down_at_the_start_and_comes_back_gets_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Receiver] = []
    with held_port() as port:
        (sink,) = make(f"otel=http://127.0.0.1:{port},timeout=0.5")
        close, tries = sink.close, list[Run]()

        def closing(run: Run) -> str:
            tries.append(run)
            if len(tries) == 3:
                opened.append(Receiver(port))
            return close(run)

        monkeypatch.setattr(sink, "close", closing)
        (receipt,) = send(transformer_run(), [sink])
        opened[0].close()
    assert (receipt.problem, receipt.tries) == ("", len(tries))
    assert len(tries) >= 3  # half a second may be too short on a crowded machine
    assert opened[0].bodies


def test_a_server_that_dies_in_the_middle_costs_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "INTERVAL", 0.05)
    with receiver() as server, bitwatt.measure("toy", to=f"otel={server.url},timeout=0.3,patience=1") as session:
        until(lambda: server.bodies)  # it heard of the run while it lived
        server.close()
    assert "not sent to otel" in " ".join(bitwatt.load(session.run.id).notes)


@pytest.mark.parametrize("status", [500, 503, 404])
def test_a_server_that_refuses_costs_a_note_in_time(status: int, clock: Passing) -> None:
    with receiver() as server:
        server.status = status
        session = measured(f"otel={server.url},timeout=0.2,patience=60")
    assert clock.now <= 1060
    assert server.asked
    assert "not sent to otel" in " ".join(bitwatt.load(session.run.id).notes)


def test_a_server_that_hangs_costs_its_patience_and_a_note() -> None:
    with receiver() as server:
        server.hang = True
        began = time.monotonic()
        session = measured(f"otel={server.url},timeout=300,patience=1")
        assert time.monotonic() - began < 120
    assert "no answer within 1 s" in " ".join(bitwatt.load(session.run.id).notes)


def test_a_program_ends_though_its_sink_hangs(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print('done')\n")
    with receiver() as server:
        server.hang = True
        to = f"otel={server.url},timeout=600,patience=1"
        done = subprocess.run(
            [sys.executable, "-m", "bitwatt", "run", "--quiet", "--to", to, "program.py"],
            capture_output=True, text=True, cwd=tmp_path, timeout=300,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr == "not sent to otel: no answer within 1 s\n"


def test_nothing_is_sent_from_a_forked_child() -> None:
    sink = Plain()
    with bitwatt.measure(keep=False, to=[sink]):
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
    assert len(sink.closed) == 1


def test_of_a_job_the_first_rank_speaks_and_sinks_of_metrics_hear_all() -> None:
    from bitwatt.records import Rank

    def told(rank: int) -> tuple[list[Run], list[Run]]:
        one, every = Plain(), Plain()
        every.every_rank = True  # type: ignore[attr-defined]
        run = make_run(rank=Rank(rank, 2, "job"))
        opening = Opening(run.id, run.name, run.started)
        Delivery([one, every], opening, lambda: None, lambda run: replace(run, name="both", rank=None)).finish(run)
        return one.closed, every.closed

    (whole,), (first,) = told(0)
    assert (whole.name, first.rank) == ("both", Rank(0, 2, "job"))
    nothing, (second,) = told(1)
    assert (nothing, second.rank) == ([], Rank(1, 2, "job"))
    asked = Plain()
    send(make_run(rank=Rank(1, 2, "job")), [asked])  # a kept run that somebody names is what he wants
    assert len(asked.closed) == 1


def test_the_first_rank_waits_for_the_others_and_sends_what_all_of_them_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bitwatt.records import Rank
    from bitwatt.sinks import job

    def kept(rank: int, **fields: Any) -> Run:
        run = transformer_run(1, 16, batch=4, id=f"r{rank}", rank=Rank(rank, 3, "job"), **fields)
        bitwatt.save(run, tmp_path)
        return run

    first = kept(0)
    kept(1, status="under way", started=datetime.now(UTC).isoformat())
    kept(2)

    # it ends while the first waits
    monkeypatch.setattr(job, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda _: kept(1)))
    found = job.of_job(first, tmp_path)
    assert (found.id, found.status, found.rank) == ("job", "ok", None)
    assert bitwatt.totals(found).total == 3 * bitwatt.totals(first).total
    assert not [note for note in found.notes if note.startswith("so far")]


def test_a_rank_that_does_not_end_or_never_came_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bitwatt.ranks.identity import this_rank
    from bitwatt.records import Rank
    from bitwatt.sinks import job

    monkeypatch.setattr(job, "CLOSING", 0.3)
    monkeypatch.setattr(job, "COMING", 0.2)
    first = transformer_run(1, 16, batch=4, id="r0", rank=Rank(0, 3, "job"))
    bitwatt.save(first, tmp_path)
    alive = this_rank(2, 3, "job")
    bitwatt.save(transformer_run(1, 16, batch=4, id="r2", status="under way", rank=alive), tmp_path)
    found = job.of_job(first, tmp_path)
    assert found.status == "ok"
    assert "2 of 3 ranks joined" in found.notes[0]
    assert found.notes[-1] == "so far of ranks that had not ended: 2"
    alone = job.of_job(first, tmp_path / "nowhere")
    assert (alone.id, alone.rank) == ("r0", first.rank)
    assert alone.notes[-1].startswith("rank 0 alone: the ranks could not be joined (no run in")


def test_of_a_job_values_so_far_are_called_by_their_rank() -> None:
    from bitwatt.records import Rank
    from bitwatt.sinks.values import values

    run = transformer_run(1, 16, batch=4, rank=Rank(0, 2, "job"))
    assert {"rank_0/flops", "rank_0/phase_flops/forward"} <= {one.flat for one in values(run, live=True)}
    assert "flops" in {one.flat for one in values(run)}


def test_what_a_sink_could_not_look_at_or_import_is_said_once(tmp_path: Path) -> None:
    class Blind(Plain):
        def look(self, *, ended: bool) -> None:
            raise RuntimeError("no view")

        def warm(self) -> None:
            raise ImportError("not here")

    sink = Blind()
    with bitwatt.measure("seen", store=tmp_path, meter=False, to=[sink]) as session:
        session.delivery.prepare()
    said = [note for note in bitwatt.load(session.path).notes if note.startswith("plain: ")]
    assert said == [
        "plain: what the program itself has open there could not be looked at (RuntimeError: no view)",
        "plain: what it needs could not be imported in time (ImportError: not here)",
    ]
    assert len(sink.closed) == 1


def test_sessions_inside_another_are_not_sent_by_the_settings(tmp_path: Path) -> None:
    (tmp_path / "bitwatt.toml").write_text('to = ["csv=all.csv"]\n')
    with bitwatt.measure("outer"), bitwatt.measure("inner"):
        pass
    lines = (tmp_path / "all.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in lines] == ["project_name", "outer"]


def test_settings_that_name_no_sink_are_a_remark_and_arguments_an_error(tmp_path: Path) -> None:
    (tmp_path / "bitwatt.toml").write_text('to = ["nosuch", "csv=all.csv"]\n')
    with pytest.warns(UserWarning, match="no sink is called 'nosuch'"):
        session = measured(None)
    assert "no sink is called 'nosuch'" in " ".join(session.run.notes)
    assert (tmp_path / "all.csv").exists()
    with pytest.raises(BitwattError, match="no sink is called 'nosuch'; there are csv, mlflow"):
        bitwatt.measure(to="nosuch")
    assert measured([]).receipts == []


def test_a_run_so_far_knows_models_that_have_come_since_the_last_look() -> None:
    torch = pytest.importorskip("torch")
    with bitwatt.measure(keep=False, exactness="always") as session:
        torch.nn.Linear(2, 2)(torch.ones(1, 2))
        first = session.so_far("under way")
        torch.nn.Sequential(torch.nn.Linear(2, 2))(torch.ones(1, 2))
        second = session.so_far("under way")
    assert [bitwatt.totals(run, "macs").total for run in (first, second, session.run)] == [4, 8, 8]
    assert {row.scope for row in second.ledger} == {row.scope for row in session.run.ledger}


def test_a_run_so_far_is_priced_like_a_finished_one() -> None:
    from bitwatt.ledger import Row
    from bitwatt.sinks.values import values

    run = make_run([Row("forward", "", mm_op(2, 3, 4), 5)], status="under way")
    assert {one.name: one.amount for one in values(run, live=True)}["flops"] == 2 * 2 * 3 * 4 * 5
