"""Runs of ranks as one: sums, what is repeated, who is missing."""

import json
import time
import zlib
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest

import bitwatt
from bitwatt import jobs, store
from bitwatt.cli import main
from bitwatt.errors import UnknownNameError
from bitwatt.fingerprint import summary
from bitwatt.ledger import Ledger, Row
from bitwatt.ranks import identity, join
from bitwatt.ranks.arrivals import Recorder
from bitwatt.ranks.shares import shares
from bitwatt.records import Axis, Rank, members, spread
from bitwatt.reports.ranks import render
from factories import make_run, mm_op, transformer_run

MM = mm_op(2, 3, 4)  # 48 FLOPs
STEP = mm_op(5, 5, 5)  # 250 FLOPs


def recorded(busy: float, wait: float, steps: int = 20) -> str:
    recorder = Recorder()
    for _ in range(steps):
        recorder.add(busy, wait)
    return recorder.packed()


def keep(folder, number: int, world: int = 4, status: str = "ok", priced: bool = True, **rank):
    """One rank's run: 2 forward products, and one optimizer step that reads the same on all ranks."""
    facts = {"axes": (Axis("data", spread(range(world)), "DDP"),), "machine": f"node{number // 2}", "node": "host",
             "contents": {MM: 7 + number, STEP: 9}, "groups": {"0": spread(range(world))},
             "comm_seconds": {"0": 0.25}, "arrivals": recorded(0.02, 0.001)} | rank  # fmt: skip
    run = make_run(
        [Row("forward", "a", MM, 2), Row("optimizer", "Adam", STEP, 1)], id=f"r{number}", name="job", status=status,
        rank=Rank(number, world, "j1", **facts),
    )  # fmt: skip
    told = summary(run) | {"ranks": shares(run)} if priced else None
    store.save(run, folder, summary=told)
    return run


def test_totals_are_sums_and_what_all_repeat_is_counted_once(tmp_path):
    for number in range(4):
        keep(tmp_path, number)
    job = bitwatt.join(store=tmp_path)
    assert job.phases["forward"].total[0] == job.phases["forward"].once[0] == 4 * 96
    assert (job.phases["optimizer"].total[0], job.phases["optimizer"].once[0]) == (1000, 250)
    assert job.total.once[0] == 4 * 96 + 250
    assert job.pattern == "data 4 (DDP)"
    assert job.comm_share == pytest.approx(4 * 0.25 / sum(part.kept.seconds for part in job.parts))


def test_forward_on_equal_data_is_repeated_only_where_nothing_shares_out_data(tmp_path):
    for number in range(4):
        keep(tmp_path, number, contents={MM: 7, STEP: 9})
    assert bitwatt.join(store=tmp_path).phases["forward"].repeated[0] == 0
    for number in range(4):
        keep(tmp_path, number, contents={MM: 7, STEP: 9}, axes=())
    assert bitwatt.join(store=tmp_path).phases["forward"].once[0] == 96


def test_tensor_parallel_groups_are_compared_each_for_itself(tmp_path):
    for number in range(4):
        axes = (
            Axis("data", spread([number % 2, number % 2 + 2]), "FSDP"),
            Axis("tensor", spread([number // 2 * 2, number // 2 * 2 + 1]), "DTensor"),
        )
        # Ranks 0 and 1 read the same, and so do 2 and 3, from another part of the data.
        keep(tmp_path, number, contents={MM: 7 + number // 2, STEP: 20 + number % 2}, axes=axes)
    job = bitwatt.join(store=tmp_path)
    assert job.phases["forward"].once[0] == 2 * 96
    assert job.phases["optimizer"].once[0] == 2 * 250  # each half of the weights is kept twice
    assert job.axes == {"data": (2, "FSDP"), "tensor": (2, "DTensor")}


def test_calls_whose_contents_tell_nothing_go_with_those_of_their_size(tmp_path):
    zeros = mm_op(5, 4, 5)  # gives a matrix of the same size as STEP
    for number in range(2):
        run = keep(tmp_path, number, world=2)
        run = replace(
            run, ledger=run.ledger + type(run.ledger)([Row("optimizer", "Adam", zeros, 1)]),
            rank=replace(run.rank, contents={**run.rank.contents, zeros: 0}),
        )  # fmt: skip
        store.save(run, tmp_path, summary=summary(run) | {"ranks": shares(run)})
    assert bitwatt.join(store=tmp_path).phases["optimizer"].once[0] == 250 + 200


def test_the_least_and_the_most_carry_the_ranks_number(tmp_path):
    for number in range(3):
        run = keep(tmp_path, number, world=3)
        more = replace(run, ledger=run.ledger + type(run.ledger)([Row("forward", "a", MM, 10 * (number == 1))]))
        store.save(more, tmp_path, summary=summary(more) | {"ranks": shares(more)})
    spread_of = bitwatt.join(store=tmp_path).phases["forward"].spread
    assert (spread_of.least, spread_of.middle, spread_of.most) == ((0, 96), 96, (1, 96 + 480))


def test_a_rank_that_never_closed_its_file_is_lost_and_one_without_a_file_is_named(tmp_path):
    for number in (0, 1, 3):
        keep(tmp_path, number, status="under way" if number == 1 else "ok", priced=number != 1, process="1@0")
    job = bitwatt.join(store=tmp_path)
    assert ([part.number for part in job.lost], job.absent) == ([1], [2])
    assert job.parts[1].total[0] == 96 + 250  # priced when read
    text = render(job)
    assert "rank 1 was lost after 1.5 s" in text
    assert "rank 2 left no file" in text
    assert text.startswith("3 of 4 ranks on 2 nodes · data 4 (DDP)\n")


def test_a_rank_that_is_still_running_is_not_lost(tmp_path):
    keep(tmp_path, 0, status="under way", machine=identity.machine_id(), process=identity.process())
    assert bitwatt.join(store=tmp_path).lost == []


def test_a_rank_that_closes_its_file_and_ends_while_the_files_are_read_is_not_lost(tmp_path, monkeypatch):
    """Its first line was read before, and when its process is looked for, that is gone."""
    keep(tmp_path, 0, world=2)
    keep(tmp_path, 1, world=2, status="under way", machine=identity.machine_id(), process="1@0")

    def ends(rank):
        keep(tmp_path, 1, world=2, machine=identity.machine_id(), process="1@0")
        return False

    with monkeypatch.context() as patch:
        patch.setattr(join, "is_alive", ends)
        job = bitwatt.join(store=tmp_path)
    assert [part.kept.status for part in job.parts] == ["ok", "ok"]
    assert job.lost == []


def test_what_belongs_to_a_node_is_counted_once_for_each(tmp_path):
    """Two nodes with two ranks each. Every rank reads its node's whole energy; who started later read a little less."""
    for number in range(4):
        keep(tmp_path, number)
    energy_j = {0: 100.0, 1: 98.0, 2: 60.0, 3: 61.0}
    job = bitwatt.join(store=tmp_path)
    assert job.nodes == {"node0": [0, 1], "node1": [2, 3]}
    assert job.once_per_node(lambda part: energy_j[part.number]) == 161.0


def test_the_newest_file_of_a_rank_counts(tmp_path):
    keep(tmp_path, 0, world=2)
    keep(tmp_path, 1, world=2)
    store.save(replace(keep(tmp_path, 1, world=2), id="older", status="under way", started="2020-01-01"), tmp_path)
    assert [part.kept.id for part in bitwatt.join(store=tmp_path).parts] == ["r0", "r1"]


def test_jobs_are_found_by_name_job_or_any_run_and_kept_apart(tmp_path):
    for number in range(2):
        keep(tmp_path, number, world=2)
        store.save(replace(make_run(id=f"x{number}", name="other"), rank=Rank(number, 2, "j2")), tmp_path)
    store.save(make_run(id="single", name="job"), tmp_path)
    for which in ("j1", "job", "r0", "r1", str(tmp_path / "r1.run"), tmp_path / "r0.run"):
        assert bitwatt.join(which, tmp_path).job == "j1"
    assert bitwatt.join("j2", tmp_path).name == "other"
    with pytest.raises(UnknownNameError, match=r"no job in .* is called 'nobody'; there are j"):
        bitwatt.join("nobody", tmp_path)
    with pytest.raises(UnknownNameError, match="is a rank of a job"):
        bitwatt.join(store=tmp_path / "empty")


def test_a_rank_comes_back_from_its_file_as_it_was(tmp_path):
    run = keep(tmp_path, 2)
    back = store.load(tmp_path / "r2.run")
    assert back.rank == run.rank
    assert store.runs(tmp_path)[0].rank == replace(run.rank, contents={})


def test_files_of_ranks_follow_the_published_schema(tmp_path):
    schema = json.loads((Path(__file__).parents[2] / "docs" / "reference" / "run-file.schema.json").read_text())
    keep(tmp_path, 1, overlap=0.5, clock="cuda", process="12@34", local_rank=1)
    header, _, body = (tmp_path / "r1.run").read_bytes().partition(b"\n")
    for name, document in (("header", json.loads(header)), ("body", json.loads(zlib.decompress(body)))):
        jsonschema.Draft202012Validator({**schema, "$ref": f"#/$defs/{name}"}).validate(document)
    told = json.loads(header)
    assert set(told["rank"]) == {field.name for field in fields(Rank)} - {"contents"}
    assert set(told["summary"]["ranks"]) == {"phases", "messages", "shared"}


def test_the_command_line_reports_lists_and_joins(tmp_path, capsys):
    for number in range(4):
        keep(tmp_path, number, arrivals=recorded(0.05 if number == 2 else 0.02, 0.001 if number == 2 else 0.031))
    where = ["--store", str(tmp_path)]
    assert main(["report", "--ranks", *where]) == 0
    assert "rank 2 held up 100 % of steps by a median of 30 ms" in capsys.readouterr().out
    assert main(["report", "--ranks", "--format", "json", *where]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["total"]["flops_once"], told["stragglers"][0]["rank"]) == (634, 2)
    assert main(["ls", *where]) == 0
    _, line = capsys.readouterr().out.splitlines()
    assert line.split()[:6] == ["j1", "job", "1.5", "s", "1.38", "kFLOP"]
    assert line.endswith("  4 of 4 ranks")
    assert main(["join", *where]) == 0
    whole = store.load("j1", tmp_path)
    assert (bitwatt.totals(whole).total, whole.rank) == (4 * (96 + 250), None)


def test_256_ranks_join_in_less_than_two_seconds(tmp_path):
    run = keep(tmp_path, 0, world=256, arrivals=recorded(0.02, 0.01, 900))
    told = summary(run) | {"ranks": shares(run)}
    for number in range(1, 256):
        store.save(
            replace(run, id=f"r{number}", rank=replace(run.rank, rank=number)), tmp_path, summary=told, sync=False
        )
    began = time.process_time()
    text = render(bitwatt.join(store=tmp_path))
    assert time.process_time() - began < 2
    assert "256 of 256 ranks" in text


@pytest.mark.parametrize("ranks", [[], [3], [0, 1, 2], [0, 2, 4, 6], [1, 5, 9], [0, 1, 5], [7, 3], [4, 4]])
def test_ranks_in_few_letters_come_back(ranks):
    assert list(members(spread(ranks))) == ranks
    assert len(spread(range(10_000))) < 12


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}, (3, 8, 1)),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "6", "SLURM_LOCALID": "2", "SLURM_JOB_ID": "77"}, (5, 6, 2)),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, (0, 2, 0)),
        ({"RANK": "0", "WORLD_SIZE": "1"}, None),
        ({"RANK": "junk", "WORLD_SIZE": "2"}, None),
        ({}, None),
    ],
)
def test_launchers_tell_the_rank(environment, expected):
    found = identity.from_environment(environment)
    assert (None if found is None else (found.rank, found.world, found.local_rank)) == expected


def test_ranks_of_one_job_find_each_other_and_two_jobs_do_not():
    def job(**more: str) -> str:
        return identity.from_environment({"RANK": "0", "WORLD_SIZE": "2"} | more).job

    assert job(SLURM_JOB_ID="1") == job(SLURM_JOB_ID="1", RANK="1")
    assert job(SLURM_JOB_ID="1") != job(SLURM_JOB_ID="2")
    assert job(MASTER_PORT="1") != job(MASTER_PORT="2")


def test_whole_jobs_keep_what_was_remarked(tmp_path):
    for number in range(2):
        keep(tmp_path, number, world=2)
    whole = jobs.whole(bitwatt.join(store=tmp_path))
    assert whole.notes[0] == "2 of 2 ranks joined: data 2 (DDP)"


def test_a_lost_rank_that_wrote_nothing_did_not_do_nothing(tmp_path):
    started = datetime.now(UTC).isoformat()
    for number in range(3):
        lost = {"status": "under way", "ledger": Ledger()} if number == 2 else {}
        rank = Rank(number, 3, "a-job", machine=identity.machine_id(), process="999999999@1" if lost else "")
        run = replace(transformer_run(), id=f"r-{number}", started=started, rank=rank, **lost)
        bitwatt.save(run, tmp_path, summary=None if lost else summary(run) | {"ranks": shares(run)})
    job = bitwatt.join(store=tmp_path)
    assert [part.number for part in job.lost] == [2]
    assert job.total.spread.least[1] == job.total.spread.most[1] > 0
    text = render(job)
    (total,) = [line for line in text.splitlines() if line.startswith("total ")]
    assert total.count("equal") == 2
    assert total.count("≥ ") == 2
    (row,) = [line for line in text.splitlines() if line.startswith("2 ")]
    assert "—" in row
    last = json.loads(render(job, "json"))["ranks"][2]
    assert (last["status"], last["flops"], last["is_least"]) == ("lost", None, True)
