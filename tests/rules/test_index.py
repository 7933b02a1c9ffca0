"""Looking up, scattering, sorting, drawing: what is touched, what is added, what is compared."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from bitwatt.pricing import totals
from bitwatt.records import Op, TensorSpec
from bitwatt.registry import RULES, work_of
from rules.capture import TALLY, Number, kinds, kinds_of, ledger_of, works_of


def test_an_embedding_reads_only_the_rows_it_looks_up() -> None:
    table, tokens = torch.ones(1000, 16), torch.randint(0, 1000, (4, 6))
    work = works_of(lambda: F.embedding(tokens, table))["aten.embedding"]
    assert kinds(work) == {"index": 24 * 16}
    assert work.bytes_read == 24 * 16 * 4 + 24 * 8
    assert work.bytes_written == 24 * 16 * 4


def test_the_gradient_of_an_embedding_is_added_row_by_row() -> None:
    table = torch.ones(1000, 16, requires_grad=True)
    tokens = torch.randint(0, 1000, (4, 6))
    counts = kinds_of("aten.embedding_dense_backward", lambda: F.embedding(tokens, table).sum().backward())
    assert counts == {"add": 24 * 16, "index": 24 * 16}


@pytest.mark.parametrize(
    ("mode", "extra"), [("sum", {"add": 80}), ("mean", {"add": 80, "div": 24}), ("max", {"compare": 80})]
)
def test_a_bag_reduces_its_rows(mode: str, extra: dict[str, int]) -> None:
    table, tokens, offsets = torch.ones(50, 8), torch.randint(0, 50, (10,)), torch.tensor([0, 4, 7])
    works = works_of(lambda: F.embedding_bag(tokens, table, offsets, mode=mode))
    (name,) = (name for name in works if "embedding_bag" in name)
    assert kinds(works[name]) == {"index": 80} | extra


def test_gathering_is_index_work_and_scattering_adds() -> None:
    x, index = torch.ones(5, 7), torch.zeros(5, 3, dtype=torch.int64)
    assert kinds_of("aten.gather", lambda: x.gather(1, index)) == {"index": 15}
    assert kinds_of("aten.scatter_add", lambda: x.scatter_add(1, index, torch.ones(5, 3))) == {"index": 15, "add": 15}
    assert kinds_of("aten.index_add", lambda: x.index_add(0, torch.tensor([1, 3]), torch.ones(2, 7))) == {
        "index": 14,
        "add": 14,
    }


def test_a_scatter_in_place_touches_only_its_places_and_a_functional_one_copies_the_rest() -> None:
    x, index = torch.ones(100, 7), torch.tensor([1, 3])
    placed = works_of(lambda: x.index_copy_(0, index, torch.zeros(2, 7)))["aten.index_copy_"]
    copied = works_of(lambda: x.index_copy(0, index, torch.zeros(2, 7)))["aten.index_copy"]
    assert placed.bytes_written == 2 * 7 * 4
    assert copied.bytes_written == placed.bytes_written + 100 * 7 * 4


def test_assigning_by_index_counts_what_is_assigned() -> None:
    x = torch.zeros(10, 6, 4)
    rows = torch.tensor([1, 2, 5])

    def assign() -> None:
        x[rows] = 1.0

    assert kinds_of("aten.index_put_", assign) == {"index": 3 * 6 * 4}


def test_a_sort_is_estimated_near_what_merging_compares() -> None:
    def merge(values):
        if len(values) < 2:
            return values
        left, right = merge(values[: len(values) // 2]), merge(values[len(values) // 2 :])
        out = []
        while left and right:
            out.append(left.pop(0) if left[0] < right[0] else right.pop(0))
        return out + left + right

    torch.manual_seed(0)
    row = torch.rand(500)
    TALLY.clear()
    assert merge([Number(v) for v in row.tolist()]) == row.sort().values.tolist()
    work = works_of(lambda: row.sort())["aten.sort"]
    assert work.estimated
    # merge sort needs n·log2 n less about 1.25·n
    assert kinds(work)["compare"] == pytest.approx(TALLY["compare"], rel=0.2)


def test_the_best_few_cost_less_than_sorting_all() -> None:
    x = torch.rand(3, 1000)
    best, all_of_them = works_of(lambda: x.topk(5))["aten.topk"], works_of(lambda: x.sort())["aten.sort"]
    assert kinds(best)["compare"] < kinds(all_of_them)["compare"] / 4


def test_dropout_costs_the_same_fused_as_drawn_scaled_and_multiplied() -> None:
    def phases(function) -> dict[str, int]:
        x = torch.ones(100, 20, requires_grad=True)
        return totals(ledger_of(lambda: function(x).backward(torch.ones(100, 20)))).by("phase")

    apart = phases(lambda x: F.dropout(x, 0.3))
    fused = phases(lambda x: torch.native_dropout(x, 0.3, True)[0])
    assert apart["forward"] == fused["forward"] == 2 * 2000
    assert apart["backward"] == fused["backward"] == 2000


def test_a_draw_is_no_flop_and_reads_nothing() -> None:
    work = works_of(lambda: torch.empty(10).normal_())["aten.normal_"]
    assert kinds(work) == {"random": 10}
    assert (work.bytes_read, work.bytes_written) == (0, 40)


def test_a_collective_counts_elements_on_the_wire_and_their_bytes() -> None:
    tensors = (TensorSpec((8, 4), "bfloat16"), TensorSpec((6,), "bfloat16"))
    op = Op("c10d.allreduce_", (("tensors", tensors), ("process_group", "<ProcessGroup>")))
    rule = RULES.find(op.name)
    work = work_of(rule, op)
    assert rule.family == "comm"
    assert kinds(work) == {"comm": 38}
    assert (work.bytes_read, work.bytes_written) == (76, 76)


def test_gathering_from_ranks_counts_what_arrives() -> None:
    op = Op("_c10d_functional.all_gather_into_tensor", (("input", TensorSpec((4, 4))),), (TensorSpec((32, 4)),))
    work = work_of(RULES.find(op.name), op)
    assert kinds(work) == {"comm": 128}
    assert (work.bytes_read, work.bytes_written) == (64, 512)


def test_a_collective_that_is_handed_its_output_reads_one_and_writes_the_other() -> None:
    args = (("output_tensor", TensorSpec((32, 4))), ("input_tensor", TensorSpec((4, 4))))
    work = work_of(RULES.find("c10d._allgather_base_"), Op("c10d._allgather_base_", args))
    assert kinds(work) == {"comm": 128}
    assert (work.bytes_read, work.bytes_written) == (64, 512)
