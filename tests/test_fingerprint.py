"""A fingerprint is the same for every kernel and machine, and another for every other program."""

from dataclasses import replace

import pytest

from bitwatt.fingerprint import fingerprint, summary
from bitwatt.ledger import Row
from bitwatt.records import Machine, Op
from factories import add_op, make_run, mm_op, spec, transformer_run


def digest(*rows: Row) -> str:
    return fingerprint(make_run(rows)).digest


def bmm(batch: int, m: int, k: int, n: int) -> Op:
    return Op("toy.bmm", (("a", spec(batch, m, k)), ("b", spec(batch, k, n))), (spec(batch, m, n),))


def test_fused_and_composed_attention_agree():
    fused = Op("toy.causal_attention", (("q", spec(8, 10, 4)),), (spec(8, 10, 4),))
    composed = [Row("forward", "", bmm(8, 10, 4, 10), 1), Row("forward", "", bmm(8, 10, 10, 4), 1)]
    assert digest(Row("forward", "", fused, 1)) == digest(*composed)


def test_a_batch_and_as_many_single_products_with_swapped_sides_agree():
    assert digest(Row("forward", "", bmm(8, 10, 4, 6), 1)) == digest(Row("forward", "", mm_op(6, 4, 10), 8))


def test_equal_sums_of_other_sizes_differ():
    assert digest(Row("forward", "", mm_op(2, 3, 4), 1)) != digest(Row("forward", "", mm_op(2, 6, 2), 1))


def test_elementwise_work_free_ops_scopes_and_machines_do_not_matter():
    row = Row("forward", "fc", mm_op(2, 3, 4), 5)
    other = make_run([replace(row, scope="layer"), Row("forward", "", add_op(9), 1)], machine=Machine({"cpu": "other"}))
    assert fingerprint(other).digest == digest(row)


@pytest.mark.parametrize(
    "change",
    [{"layers": 3}, {"width": 65}, {"steps": 4}, {"batch": 9}],
    ids=lambda change: next(iter(change)),
)
def test_one_change_of_the_program_changes_the_digest(change):
    base = {"layers": 2, "width": 64, "steps": 3, "batch": 8}
    assert fingerprint(transformer_run(**base)).digest != fingerprint(transformer_run(**base | change)).digest


def test_another_dtype_or_phase_changes_the_digest():
    row = Row("forward", "", mm_op(2, 3, 4), 1)
    digests = {
        digest(row),
        digest(replace(row, op=mm_op(2, 3, 4, "bfloat16"))),
        digest(replace(row, phase="backward")),
    }
    assert len(digests) == 3


def test_it_carries_flops_and_bops_by_phase():
    # 2·3·4 = 24 MACs are 48 FLOPs; in 32 bits 1536 BOPs
    made = fingerprint(make_run([Row("forward", "", mm_op(2, 3, 4), 1)]))
    assert (made.flops, made.bops) == ({"forward": 48}, {"forward": 1536})
    assert len(made.digest) == 16


def test_a_summary_is_what_a_listing_needs():
    told = summary(make_run([Row("forward", "", mm_op(2, 3, 4), 1), Row("forward", "", Op("toy.unknown"), 2)]))
    # bytes: 2·3, 3·4 and 2·4 values of 4 bytes
    assert told["totals"] == {"flops": 48, "bops": 1536, "macs": 24, "bytes": 104}
    assert told["by_phase"] == {"forward": 48}
    assert told["coverage"] == {"counted": 1, "free": 0, "missing": 2, "estimated": 0}
