"""Real ranks under torchrun on gloo: what they count, how the job is spread, and who held up whom."""

from pathlib import Path
from statistics import median

import pytest
import rank_programs
from launching import torchrun

import bitwatt
from bitwatt.ranks.stragglers import waiting
from bitwatt.reports.ranks import render

HERE = Path(__file__).parent
PIPELINES = {"pipeline": 2, "pipeline_1f1b": 2, "pipeline_interleaved": 4, "pipeline_zero_bubble": 4}  # their blocks
DATA = ("ddp", "ddp_unused", "ddp_static", "ddp_compiled", "two_groups", "zero", "hand", "fsdp", "fsdp1")
PROGRAMS = (*DATA, "accumulated", "tensor", *PIPELINES, "expert", "straggler", "slow_backward")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """One launch for all programs: starting torch twice takes longer than any of them."""
    folder = tmp_path_factory.mktemp("ranks")
    torchrun(HERE / "rank_programs.py", folder, *PROGRAMS)
    return folder


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    folder = tmp_path_factory.mktemp("four")
    torchrun(HERE / "rank_programs.py", folder, "clipped", "fsdp_tensor", "hybrid", "serving", ranks=4)
    return folder


@pytest.fixture(scope="module")
def alone():
    """The same training in one process."""
    with bitwatt.measure("alone", keep=False) as session:
        rank_programs.alone()
    return session.run


def once(job) -> dict[str, int]:
    return {phase: work.once[0] for phase, work in job.phases.items() if work.once[0]}


def macs(job) -> dict[str, int]:
    """Multiply-accumulates of all ranks, which no rank repeats in these programs."""
    counted: dict[str, int] = {}
    for part in job.parts:
        for phase, n in bitwatt.totals(bitwatt.load(part.kept.path), "macs").by("phase").items():
            counted[phase] = counted.get(phase, 0) + n
    return {phase: n for phase, n in counted.items() if n}


@pytest.mark.parametrize("name", [*DATA, "accumulated", "tensor"])
def test_all_ranks_multiply_as_much_as_one_process_alone(store, alone, name):
    expected = {phase: n for phase, n in bitwatt.totals(alone, "macs").by("phase").items() if n}
    assert macs(bitwatt.join(name, store)) == expected


@pytest.mark.parametrize("name", DATA)
def test_work_done_once_is_that_of_one_process(store, alone, name):
    expected = {phase: n for phase, n in bitwatt.totals(alone).by("phase").items() if n}
    found = once(bitwatt.join(name, store))
    # The mean of a half is divided once on each rank, and the sum of gradients over a batch adds one less in each half.
    assert found.pop("loss") == pytest.approx(expected.pop("loss"), abs=2 * 2 * rank_programs.STEPS)
    for phase, flops in expected.items():
        assert found[phase] == pytest.approx(flops, rel=2e-3), phase


@pytest.mark.parametrize("name", ["ddp", "ddp_static", "ddp_compiled", "accumulated", "fsdp1"])
def test_what_data_parallelism_does_to_gradients_is_a_phase_of_its_own(store, name):
    weights = sum(parameter.numel() for parameter in rank_programs.model().parameters())
    reducing = bitwatt.join(name, store).phases["backward/reduce"]
    assert reducing.total[0] == weights * rank_programs.STEPS * 2
    assert reducing.once[0] == 0


def test_gradients_that_ranks_accumulate_are_added_as_often_as_one_process_would(store):
    """Two ranks in 4 parts are 8 parts, which one process adds in 7 times: 3 and 3 on the ranks, 1 between them."""
    with bitwatt.measure("in microbatches", keep=False) as session:
        rank_programs.in_microbatches()
    weights = sum(parameter.numel() for parameter in rank_programs.model().parameters())
    found = bitwatt.join("accumulated", store).phases["backward"].once[0]
    assert found - bitwatt.totals(session.run).by("phase")["backward"] == 3 * weights * rank_programs.STEPS


def test_messages_of_two_groups_are_told_apart(store):
    part = bitwatt.join("two_groups", store).parts[0]
    sent = {group: n for kind, group, _, _, n in part.shares["messages"] if kind == "all-reduce"}
    weights = sum(parameter.numel() for parameter in rank_programs.model().parameters())
    assert sorted(sent.values()) == [4 * 1000 * rank_programs.STEPS, 4 * weights * rank_programs.STEPS]
    assert set(sent) <= set(part.rank.comm_seconds)


@pytest.mark.parametrize(
    ("name", "copies"),
    [
        ("ddp", 2),
        ("ddp_unused", 2),
        ("fsdp1", 1),
        ("hand", 2),
        ("zero", 1),
        ("fsdp", 1),
        ("pipeline", 1),
        ("expert", 1),
    ],
)
def test_an_optimizer_that_every_rank_repeats_is_told_from_one_that_is_shared_out(store, name, copies):
    optimizer = bitwatt.join(name, store).phases["optimizer"]
    assert optimizer.once[0] * copies == optimizer.total[0]


def test_norms_are_repeated_in_tensor_parallel_and_products_are_not(store, alone):
    job = bitwatt.join("tensor", store)
    norms = [n for (phase, op), n in bitwatt.totals(alone).by("phase", "op").items() if "layer_norm" in op]
    loss = bitwatt.totals(alone).by("phase")["loss"]
    assert job.phases["loss"].repeated[0] == loss
    assert job.phases["forward"].repeated[0] + job.phases["backward"].repeated[0] >= sum(norms)
    assert once(job)["forward"] == pytest.approx(bitwatt.totals(alone).by("phase")["forward"], rel=5e-3)


@pytest.fixture(scope="module", params=PIPELINES)
def piped(request, store):
    """A pipeline's job, the phases of one process that does the same in microbatches, and the number of weights."""
    with bitwatt.measure("in microbatches", keep=False) as session:
        rank_programs.in_microbatches(PIPELINES[request.param])
    weights = sum(parameter.numel() for parameter in rank_programs.model(PIPELINES[request.param]).parameters())
    return bitwatt.join(request.param, store), bitwatt.totals(session.run).by("phase"), weights


def test_a_pipeline_does_the_work_of_one_process_in_microbatches(piped):
    job, expected, weights = piped
    found = once(job)
    assert found.pop("other") == weights * rank_programs.STEPS  # schedules divide gradients by the microbatches
    if job.name == "pipeline_zero_bubble":  # gradients of norms are computed twice, for what went in and for weights
        assert 1 < found.pop("backward") / expected["backward"] < 1.01
        expected = {phase: n for phase, n in expected.items() if phase != "backward"}
    assert found == {phase: n for phase, n in expected.items() if n}
    assert job.total.once[0] == sum(work.once[0] for work in job.phases.values())


def test_what_stages_do_to_learn_their_shapes_has_a_phase_of_its_own(piped):
    job, expected, _ = piped
    looks = [name for name in ("learning shapes/forward", "learning shapes/inference") if name in job.phases]
    (shapes,) = [job.phases[name] for name in looks]  # the latter where torch makes no graph of it, as 2.8 does not
    assert shapes.total[0] * rank_programs.STEPS * rank_programs.MICROBATCHES == expected["forward"]
    assert shapes.once == (0, 0)
    assert "stages of the pipeline ran once to learn their shapes: " in render(job)


@pytest.mark.parametrize(
    ("name", "kind", "source"),
    [
        *[(name, "data", "DistributedDataParallel") for name in DATA if "ddp" in name or name == "two_groups"],
        ("accumulated", "data", "DistributedDataParallel"),
        ("fsdp1", "data", "FullyShardedDataParallel"),
        ("zero", "data", "DistributedDataParallel"),
        ("hand", "data", "all-reduce of gradients"),
        ("fsdp", "data", "fully_shard"),
        ("tensor", "tensor", "DTensor"),
        *[(name, "pipeline", "PipelineStage") for name in PIPELINES],
        ("expert", "expert", "all-to-all"),
    ],
)
def test_the_way_work_is_spread_is_recognised(store, name, kind, source):
    assert bitwatt.join(name, store).axes == {kind: (2, source)}


def test_messages_are_counted_with_their_bytes_and_their_group(store):
    weights = sum(parameter.numel() for parameter in rank_programs.model().parameters())
    reduced = [link for link in bitwatt.join("ddp", store).links if link.kind == "all-reduce"]
    # One float32 for each weight, in each step, on each of two ranks.
    assert [(link.ranks, link.bytes) for link in reduced] == [("0:2:1", weights * 4 * rank_programs.STEPS * 2)]


def test_messages_between_two_ranks_name_both(store):
    sent = {link.ranks for link in bitwatt.join("pipeline", store).links if link.kind == "send"}
    assert sent == {"0 to 1", "1 to 0"}


@pytest.mark.parametrize(
    ("name", "late", "share", "delay"), [("straggler", 1, 0.5, 0.03), ("slow_backward", 0, 1, 0.02)]
)
def test_the_rank_that_holds_up_the_others_is_named(store, name, late, share, delay):
    job = bitwatt.join(name, store)
    found = waiting({part.number: part.arrivals for part in job.parts})
    (named,) = [one for one in found.delays if one.is_chronic]  # a machine may hold up any of them once
    assert named.rank == late
    assert named.steps / named.of == pytest.approx(share, abs=0.25)
    assert 0.7 * delay < named.typical < 10 * delay  # it sleeps for so long, or longer where others take its turn
    assert str(named).startswith(f"rank {late} held up ")
    assert found.waited[1 - late] > 0.5 * named.steps * delay
    slow, other = (job.parts[rank].arrivals.sample for rank in (late, 1 - late))
    held_up = [step for step in slow.keys() & other.keys() if slow[step][0] - other[step][0] > 0.5e6 * delay]
    assert median(other[step][1] - slow[step][1] for step in held_up) > 0.5e6 * delay  # who was there waited, in µs


def test_everything_hung_into_torch_is_taken_out_again(store):
    # The programs run one after another in one process, each in a session of its own, with barriers between.
    assert {part.kept.status for name in PROGRAMS for part in bitwatt.join(name, store).parts} == {"ok"}
    assert len({bitwatt.join(name, store).job for name in PROGRAMS}) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "axes", "copies"),
    [
        ("clipped", {"data": (4, "DistributedDataParallel")}, 4),
        ("hybrid", {"data": (4, "fully_shard")}, 2),
        ("fsdp_tensor", {"data": (2, "fully_shard"), "tensor": (2, "DTensor")}, 1),
    ],
)
def test_four_ranks_on_two_axes(four, alone, name, axes, copies):
    job = bitwatt.join(name, four)
    expected = bitwatt.totals(alone).by("phase")
    assert job.axes == axes
    assert macs(job) == {phase: n for phase, n in bitwatt.totals(alone, "macs").by("phase").items() if n}
    optimizer = job.phases["optimizer"]
    assert optimizer.once[0] == pytest.approx(expected["optimizer"], rel=2e-3)
    assert optimizer.total[0] == pytest.approx(copies * expected["optimizer"], rel=2e-2)  # the norms' are few
    assert once(job)["forward"] == pytest.approx(expected["forward"], rel=5e-3)


@pytest.mark.slow
def test_clipping_after_adding_up_is_repeated_by_every_rank(four):
    other = bitwatt.join("clipped", four).phases["other"]
    assert other.once[0] * 4 == other.total[0] > 0


@pytest.mark.slow
def test_without_an_optimizer_each_collective_is_a_step(four):
    job = bitwatt.join("serving", four)
    found = waiting({part.number: part.arrivals for part in job.parts})
    # Two blocks, so every second all-reduce comes right after the other one.
    (named,) = [one for one in found.delays if one.is_chronic]
    assert named.rank == 1
    assert named.steps / named.of == pytest.approx(0.5, abs=0.2)
