"""Cost models against published and hand-derived values."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import bitwatt
from backends.measuring import measured
from bitwatt.testing import check_cost_model
from integration.vision import torchvision_models


def infer(name: str, dtype: torch.dtype) -> None:
    model = torchvision_models().get_model(name).to(dtype).eval()
    with torch.no_grad():
        model(torch.randn(1, 3, 224, 224, dtype=dtype))


@pytest.mark.parametrize(
    ("dtype", "bops"),
    # GMPQ issue 5 prints 4187.3 G for 32 bits; google/aqt's resnet_cost_test has the 16-bit value
    [(torch.float32, 4_089_184_256 * 32 * 32), (torch.bfloat16, 1_046_831_169_536)],
)
def test_resnet50_in_bit_products(dtype: torch.dtype, bops: int) -> None:
    assert bitwatt.totals(bitwatt.estimate(infer, "resnet50", dtype), "bops:product").total == bops


def test_resnet18_in_bit_products_as_in_hawq() -> None:
    # HAWQ prints 1858 G for 32 bits
    total = bitwatt.totals(bitwatt.estimate(infer, "resnet18", torch.float32), "bops:product").total
    assert round(total / 1e9) == 1858


def test_the_jet_tagger_of_hawks_2021() -> None:
    # 16-64-32-32-5 in 32 bits: sum of m·n·(32·32 + 32 + 32 + log2 n)
    net = nn.Sequential(nn.Linear(16, 64), nn.Linear(64, 32), nn.Linear(32, 32), nn.Linear(32, 5))
    run = measured(lambda: net(torch.randn(1, 16)))
    assert bitwatt.totals(run, "bops:hawks2021").total == 4_652_832


def test_bops_weigh_each_flop_by_its_wider_operand() -> None:
    a, b = torch.randn(4, 8), torch.randn(8, 3)
    run = measured(lambda: ((a @ b) + 1, (a.bfloat16() @ b.bfloat16())))
    # 2·4·8·3 FLOPs in 32 and in 16 bits, 12 additions in 32; casting is no FLOP
    assert bitwatt.totals(run, "flops").total == 2 * 96 * 2 + 12
    assert bitwatt.totals(run, "bops").total == 2 * 96 * (32 + 16) + 12 * 32
    assert bitwatt.totals(run, "bops").by("precision") == {"float32": (192 + 12) * 32, "bfloat16": 192 * 16}


def test_aligned_widths_round_up_to_what_hardware_offers() -> None:
    op = bitwatt.Op(
        "aten.mm", (("self", bitwatt.TensorSpec((2, 3), "int3")), ("mat2", bitwatt.TensorSpec((3, 4), "int5")))
    )
    ledger = bitwatt.ledger.Ledger()
    ledger.add("forward", "", op)
    assert bitwatt.totals(ledger, "bops").total == 2 * 24 * 5
    assert bitwatt.totals(ledger, "bops:aligned").total == 2 * 24 * 8
    assert bitwatt.totals(ledger, "bops:product").total == 24 * 3 * 5


def test_causal_attention_dense_and_effective() -> None:
    q = torch.randn(1, 2, 8, 4)
    run = measured(lambda: nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True))
    dense, effective = (bitwatt.totals(run, model).by("kind")["mac"] for model in ("flops", "flops:effective"))
    # two products of 2 heads · 8 · 8 pairs · 4; of the 64 pairs 36 are seen
    assert dense == 2 * 2 * 2 * 64 * 4
    assert effective == 2 * 2 * 2 * 36 * 4


class TestPaper:
    """The conventions of the paper, on sizes small enough to do by hand."""

    def flops(self, function) -> int:  # type: ignore[no-untyped-def]
        return bitwatt.totals(measured(function), "flops:paper").total

    def test_matrix_product(self) -> None:
        a, b = torch.randn(4, 8), torch.randn(8, 3)
        assert self.flops(lambda: a @ b) == 2 * 4 * 3 * 8

    def test_convolution_is_outputs_times_weights_per_output_channel(self) -> None:
        x, w = torch.randn(2, 3, 8, 8), torch.randn(5, 3, 3, 3)
        assert self.flops(lambda: nn.functional.conv2d(x, w)) == 2 * (2 * 5 * 6 * 6) * (5 * 27) // 5

    def test_element_wise_is_the_larger_side(self) -> None:
        x, row = torch.randn(6, 7), torch.randn(7)
        assert self.flops(lambda: x + row) == 42
        assert self.flops(lambda: torch.relu(x)) == 42
        assert self.flops(lambda: x.sum()) == 42

    def test_softmax_is_three_per_element_and_attention_has_it_inside(self) -> None:
        x, q = torch.randn(6, 7), torch.randn(1, 2, 8, 4)
        assert self.flops(lambda: x.softmax(-1)) == 3 * 42
        attention = self.flops(lambda: nn.functional.scaled_dot_product_attention(q, q, q))
        assert attention == 4 * 2 * 8 * 8 * 4 + 3 * 2 * 8 * 8

    def test_bits_are_those_of_the_layers_weights(self) -> None:
        layer = nn.Linear(8, 4, bias=False).to(torch.bfloat16)
        run = measured(lambda: layer(torch.randn(2, 8, dtype=torch.bfloat16)))
        assert bitwatt.totals(run, "bops:paper").by("phase")["forward"] == 16 * 2 * 2 * 8 * 4


def test_every_model_has_a_formula_a_source_and_prices_a_training_step() -> None:
    net = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 4))
    optimizer = torch.optim.AdamW(net.parameters())

    def step() -> None:
        nn.functional.cross_entropy(net(torch.randn(16, 8)), torch.zeros(16, dtype=torch.long)).backward()
        optimizer.step()

    run = measured(step)
    for name in bitwatt.cost_models():
        totals = bitwatt.totals(run, name)
        check_cost_model(name, *(row.op for row in run.ledger))
        assert totals.total > 0, name
        assert sum(totals.by("phase").values()) == sum(totals.by("scope", "op").values()) == totals.total


def test_an_unknown_model_or_key_is_named_with_the_choices() -> None:
    run = measured(lambda: torch.ones(2) + 1)
    with pytest.raises(bitwatt.BitwattError, match="bops:product"):
        bitwatt.totals(run, "calories")
    with pytest.raises(bitwatt.BitwattError, match="phase, scope"):
        bitwatt.totals(run).by("colour")


def test_a_number_format_nobody_described_makes_its_ops_missing() -> None:
    ledger = bitwatt.ledger.Ledger()
    odd = bitwatt.TensorSpec((2, 3), "float7_e9m9")
    ledger.add("forward", "", bitwatt.Op("aten.add", (("self", odd), ("other", odd)), (odd,)))
    totals = bitwatt.totals(ledger)
    assert totals.missing == {"aten.add": 1}
    assert "float7_e9m9" in totals.entries[0].reason
