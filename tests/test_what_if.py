"""A recorded run in other formats: which layers, what they run in, what is added, and what it comes to."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import bitwatt
from backends.measuring import measured
from bitwatt.errors import BitwattError, UnknownNameError
from bitwatt.pricing import entries_of
from bitwatt.records import Product, Run
from bitwatt.whatif import WhatIf
from bitwatt.whatif.schemes import scheme
from factories import transformer_run
from networks import NETWORKS

ROWS, INTO, HIDDEN, OUT = 6, 16, 32, 8
FIRST, SECOND = INTO * HIDDEN, HIDDEN * OUT


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(INTO, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, OUT))


@pytest.fixture(scope="module")
def inference() -> Run:
    with torch.no_grad():
        return measured(lambda: net()(torch.randn(ROWS, INTO)))


@pytest.fixture(scope="module")
def training() -> Run:
    return measured(lambda: net()(torch.randn(ROWS, INTO)).sum().backward())


def products(result: WhatIf, phase: str = "inference") -> dict[str, list[Product]]:
    """By scope, one for each product."""
    found: dict[str, list[Product]] = {}
    for entry in entries_of(result.run.ledger, result.run.layers):
        if entry.row.phase == phase and entry.work:
            found.setdefault(entry.row.scope, []).extend(product for product, _ in entry.work.products)
    return {scope: each for scope, each in found.items() if each}


def added(result: WhatIf) -> dict[tuple[str, str], int]:
    """FLOPs of quantisation by phase and op."""
    sums = bitwatt.totals(result.run).by("phase", "op", "part")
    return {(phase, op.removeprefix("bitwatt.")): n for (phase, op, part), n in sums.items() if part == "quantisation"}


# ── formats ──


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("fp16", 16), ("int8", 8 + 32 / 512), ("int4:g64", 4 + 32 / 64), ("int4:g128:zp:fp16", 4 + (16 + 4) / 128),
        ("int8:tensor", 8 + 32 / (512 * 512)), ("nf4", 4.5), ("fp4", 4.5), ("mxfp8", 8.25), ("mxfp6", 6.25),
        ("mxfp4", 4.25), ("nvfp4", 4.5), ("ternary", 2 + 32 / (512 * 512)), ("int3", 3 + 32 / 512),
    ],
)  # fmt: skip
def test_effective_bits_hold_scales_and_zero_points(text: str, bits: float) -> None:
    assert scheme(text).effective_bits([(512, 512)], own_bits=32) == bits


@pytest.mark.parametrize(
    "text",
    [
        "int99", "int4:g0", "int4:64", "fp16:g64", "bool", "mxfp5", "", "int4:channel:g4", "int4:g4:g8", "int4:zp:zp",
        "int4:fp16:fp32", "int8:nf4", "int8:ternary", "nf4:zp", "fp8:zp", "mxfp4:g16",
    ],
)  # fmt: skip
def test_formats_that_nobody_knows_are_refused(text: str) -> None:
    with pytest.raises(UnknownNameError):
        scheme(text)


# ── what runs, and what is added ──


def test_narrow_weights_alone_are_expanded_and_the_multiplier_stays(inference: Run) -> None:
    result = bitwatt.what_if(inference, "int4")
    for (product,) in products(result).values():
        assert {product.a.name, product.b.name} == {"float32", "int4"}
        assert product.executed.name == "float32"
    assert added(result) == {("inference", "dequantise"): FIRST + SECOND}
    assert result["macs"].ratio == 1
    assert result["bops:product"].ratio == 4 / 32
    assert result["bops:executed"].after == result["bops:executed"].before + 32 * (FIRST + SECOND)


def test_zero_points_are_subtracted_and_codes_looked_up(inference: Run) -> None:
    assert added(bitwatt.what_if(inference, "int4:g8:zp")) == {("inference", "dequantise"): 2 * (FIRST + SECOND)}
    codes = bitwatt.what_if(inference, "nf4").run
    assert {"index"} <= {kind for entry in entries_of(codes.ledger, codes.layers) for kind, *_ in entry.work.ops}


@pytest.mark.parametrize(
    ("weights", "activations", "ran"),
    [("int8", "int8", "int8"), ("int4", "int8", "int8"), ("int8", "int4", "int8"), ("int2", "int2", "int2"),
     ("fp8", "fp8", "float8_e4m3fn"), ("mxfp6", "mxfp6", "float8_e4m3fn"), ("ternary", "int8", "int8")],
)  # fmt: skip
def test_narrow_on_both_sides_is_multiplied_as_it_is(inference: Run, weights: str, activations: str, ran: str) -> None:
    result = bitwatt.what_if(inference, weights, activations)
    for (product,) in products(result).values():
        widths = {scheme(weights).precision.bits, scheme(activations).precision.bits}
        assert {product.a.bits, product.b.bits} == widths
        assert product.executed.name == ran
    work = added(result)
    assert work[("inference", "quantise")] == ROWS * (INTO + HIDDEN)
    assert ("inference", "dequantise") not in work
    assert work[("inference", "rescale")] == ROWS * (HIDDEN + OUT)


def test_groups_along_the_sum_are_rescaled_each(inference: Run) -> None:
    result = bitwatt.what_if(inference, "int4:g8", "int8")
    results = ROWS * (HIDDEN * INTO // 8 + OUT * HIDDEN // 8)
    assert added(result)[("inference", "rescale")] == 2 * results


def test_what_no_multiplier_takes_is_expanded(inference: Run) -> None:
    for weights, activations in (("nf4", "int8"), ("int8", "fp8")):
        result = bitwatt.what_if(inference, weights, activations)
        assert {product.executed.name for each in products(result).values() for product in each} == {"float32"}
        assert added(result)[("inference", "dequantise")] == FIRST + SECOND + ROWS * (INTO + HIDDEN)


def test_a_change_of_dtype_adds_nothing_and_covers_activations(training: Run) -> None:
    result = bitwatt.what_if(training, "bf16")
    assert result["flops"].after == result["flops"].before
    assert result["weights"].ratio == result["activations"].ratio == 0.5
    assert {entry.op.out[0].dtype for entry in entries_of(result.run.ledger) if entry.op.name == "aten.relu"} == {
        "bfloat16"
    }
    assert bitwatt.what_if(training, "fp32")["bops"].ratio == 1
    assert added(result) == {}


def test_narrow_weights_beside_half_precision_run_in_that(inference: Run) -> None:
    result = bitwatt.what_if(inference, "int8", "fp16")
    (product,) = products(result)["0"]
    assert (product.a.name, product.b.name, product.executed.name) == ("float16", "int8", "float16")
    assert result["bops:product"].ratio == 8 * 16 / (32 * 32)


def test_inputs_alone(inference: Run) -> None:
    result = bitwatt.what_if(inference, activations="int8")
    (product,) = products(result)["0"]
    assert (product.a.name, product.b.name, product.executed.name) == ("int8", "float32", "float32")
    assert result["weights"].ratio == 1
    assert added(result) == {("inference", op): ROWS * (INTO + HIDDEN) for op in ("quantise", "dequantise")}


def test_backward_expands_weights_again_for_the_gradient_of_the_input_only(training: Run) -> None:
    for activations in (None, "int8"):
        result = bitwatt.what_if(training, "int4", activations)
        assert added(result)[("backward", "dequantise")] == SECOND  # the input of the first layer needs no gradient
        pairs = sorted(tuple(sorted((p.a.name, p.b.name))) for p in products(result, "backward")["2"])
        assert pairs == [("float32", "float32"), ("float32", "int4")]
        assert {p.executed.name for p in products(result, "backward")["2"]} == {"float32"}


def test_where_sizes_do_not_tell_weights_from_gradients_nothing_is_claimed() -> None:
    run = measured(lambda: nn.Linear(8, 8)(torch.randn(8, 8, requires_grad=True)).sum().backward())
    result = bitwatt.what_if(run, "int4")
    assert {(p.a.name, p.b.name) for p in products(result, "backward")["Linear"]} == {("float32", "float32")}
    assert any("sizes do not tell" in note for note in result.notes)


def test_weight_bytes_are_of_values_scales_and_what_stays(inference: Run) -> None:
    result = bitwatt.what_if(inference, "int4")
    scales, biases = 4 * (HIDDEN + OUT), 4 * (HIDDEN + OUT)
    assert result["weights"].after == (FIRST + SECOND) // 2 + scales + biases
    assert result["activations"].after == result["activations"].before == 4 * ROWS * (INTO + HIDDEN)
    # packed weights pass memory once for a kernel that reads them so; else they are written out and read again
    saved = 4 * (FIRST + SECOND) - ((FIRST + SECOND) // 2 + scales)
    assert result["bytes:effective"].after == result["bytes:effective"].before - saved
    assert result["bytes"].after == result["bytes"].before + (FIRST + SECOND) // 2 + scales + 4 * (FIRST + SECOND)


def test_values_below_a_byte_are_packed_in_effective_bytes(inference: Run) -> None:
    eight, four = (bitwatt.what_if(inference, width, width) for width in ("int8", "int4"))
    values = (FIRST + SECOND + ROWS * (INTO + HIDDEN)) // 2
    assert eight["bytes:effective"].after - four["bytes:effective"].after == values - 4 * (HIDDEN + OUT)


# ── kinds of layers ──


def test_embeddings_shrink_and_expand_what_they_look_up() -> None:
    run = measured(lambda: nn.Sequential(nn.Embedding(100, 16))(torch.arange(5)))
    result = bitwatt.what_if(run, "int8")
    assert result["weights"].after == 100 * 16 + 100 * 4
    assert result["macs"].after == 0
    assert sum(added(result).values()) == 5 * 16


def test_projections_that_a_parent_uses_without_calling_them() -> None:
    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.attention(x, x, x, need_weights=False)[0]

    def attend() -> None:
        Holder()(torch.randn(2, 5, 16))

    result = bitwatt.what_if(measured(attend), "int4")
    work = bitwatt.totals(result.run).by("op", "part")
    assert work[("bitwatt.dequantise", "quantisation")] == 4 * 16 * 16
    assert {part for (op, part), _ in work.items() if not op.startswith("bitwatt.")} == {""}
    assert result["weights"].after == 4 * 16 * 8 + 4 * 2 * (3 * 16 + 16)  # in halves of bytes, scales and biases


def test_recurrent_layers_carry_the_widths_and_run_as_recorded() -> None:
    run = measured(lambda: nn.LSTM(8, 16)(torch.randn(5, 2, 8)))
    result = bitwatt.what_if(run, "int8", "int8")
    assert result["bops:product"].ratio == 1 / 16
    assert any("more than a product" in note for note in result.notes)


def test_convolutions_quantise_each_input_once() -> None:
    def convolve() -> None:
        nn.Sequential(nn.Conv2d(4, 8, 3, padding=1, groups=2))(torch.randn(2, 4, 6, 6))

    result = bitwatt.what_if(measured(convolve), "int8", "int8")
    assert result["bops:product"].ratio == 1 / 16
    phase = next(iter(added(result)))[0]
    assert added(result) == {(phase, "quantise"): 2 * 4 * 36, (phase, "rescale"): 2 * 8 * 36}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_layers_that_were_quantised_lose_that_format_and_its_work() -> None:
    import torch.ao.quantization as quantization

    packed = quantization.quantize_dynamic(net(), {nn.Linear}, dtype=torch.qint8)
    with torch.no_grad():
        run = measured(lambda: packed(torch.randn(ROWS, INTO)))
    result = bitwatt.what_if(run, "int4")
    assert sorted({p.b.name for each in products(result).values() for p in each}) == ["int4"]
    assert added(result) == {("inference", "dequantise"): FIRST + SECOND}
    assert any("quantised already" in note for note in result.notes)
    back = bitwatt.what_if(run, "fp32")
    assert back["bops:product"].after == 32 * 32 * ROWS * (FIRST + SECOND)
    assert added(back) == {}


# ── which layers ──


def test_patterns_choose_layers_and_reasons_are_given(inference: Run) -> None:
    result = bitwatt.what_if(inference, "int4", layers=("0", "2"), except_layers="2")
    assert result.changed == {"0": "weights int4"}
    assert result.skipped == {"2": "excepted"}
    assert bitwatt.what_if(inference, "int4", layers="0").skipped == {"2": "matched by no pattern"}


def test_a_pattern_covers_what_is_inside() -> None:
    run = bitwatt.estimate(lambda: NETWORKS["resnet18"]("cpu").step())
    result = bitwatt.what_if(run, "int4", layers="blocks.2")
    assert set(result.changed) == {"blocks.2.conv1", "blocks.2.conv2", "blocks.2.short.0"}
    assert result.skipped["blocks.2.norm1"] == "BatchNorm2d has no weight matrix"


def test_a_pattern_that_matches_nothing_names_near_ones() -> None:
    run = bitwatt.estimate(lambda: NETWORKS["resnet18"]("cpu").step())
    with pytest.raises(UnknownNameError, match=r"no layer matches 'blocks\.0\.conv'.*blocks\.0\.conv1"):
        bitwatt.what_if(run, "int4", layers="blocks.0.conv")
    with pytest.raises(UnknownNameError, match="lm_head"):
        bitwatt.what_if(run, "int4", except_layers=("lm_head",))


def test_a_table_of_widths(inference: Run, tmp_path: Path) -> None:
    table = tmp_path / "widths.csv"
    table.write_text("layer,weights,activations\n*,int8,int8\n\n2,,int4\n")
    result = bitwatt.what_if(inference, table=table)
    assert result.changed == {"0": "weights int8, activations int8", "2": "activations int4"}
    assert result["weights"].after == FIRST + 4 * HIDDEN + 4 * SECOND + 4 * (HIDDEN + OUT)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1: the header is layer,weights,activations, not missing"),
        ("0,int8,int8\n", "line 1: the header is layer,weights,activations, not 0,int8,int8"),
        ("layer,weights,activations\n0,int8,\n9,int8,\n", "line 3: no layer matches '9'"),
        ("layer,weights,activations\n0,int77,\n", "line 2: no number format is called 'int77'"),
        ("layer,weights\n0,int8,int8\n", "line 2: '0,int8,int8' is not layer,weights"),
        ("layer,weights\n,int8\n", "line 2: ',int8' is not layer,weights"),
        ("layer,weights,activations\n0,,\n", "line 2: neither weights nor activations"),
        ("layer,weights,activations\n2,int8,\n0,,\n", "line 3: neither weights nor activations"),
    ],
)
def test_mistakes_in_a_table_are_told_with_their_line(inference: Run, tmp_path: Path, text: str, says: str) -> None:
    table = tmp_path / "widths.csv"
    table.write_text(text)
    with pytest.raises(BitwattError) as told:
        bitwatt.what_if(inference, table=table)
    assert f"{table}, {says}" in str(told.value)


def test_requests_that_change_nothing_are_refused(inference: Run, tmp_path: Path) -> None:
    table = tmp_path / "widths.csv"
    table.write_text("layer,weights,activations\n\n")
    with pytest.raises(BitwattError, match="no line below the header"):
        bitwatt.what_if(inference, table=table)
    with pytest.raises(BitwattError, match="has no rows"):
        bitwatt.what_if(inference, table=[])
    with pytest.raises(BitwattError, match="row 1 of the table"):
        bitwatt.what_if(inference, table=[("0", "int8")])  # type: ignore[list-item]
    with pytest.raises(BitwattError, match="all that are chosen are excepted"):
        bitwatt.what_if(inference, "int4", except_layers="*")
    with pytest.raises(BitwattError, match="has weights to be written"):
        bitwatt.what_if(inference, "int4", layers="1")


def test_a_run_of_estimators_is_told_of_deploy_instead() -> None:
    """Recording it again, as a run without shapes is told, would not help."""
    linear = pytest.importorskip("sklearn.linear_model")
    with bitwatt.measure("fit", keep=False) as session:
        linear.Ridge().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    with pytest.raises(BitwattError, match="bitwatt deploy MODEL") as raised:
        bitwatt.what_if(session.run, "int8")
    assert "again" not in str(raised.value)


def test_a_line_without_formats_takes_earlier_ones_back(inference: Run) -> None:
    result = bitwatt.what_if(inference, table=[("*", "int4", "int8"), ("2", None, None)])
    assert result.changed == {"0": "weights int4, activations int8"}


def test_without_shapes_or_without_a_wish_it_says_so(inference: Run) -> None:
    with pytest.raises(BitwattError, match="tells no shapes of weights"):
        bitwatt.what_if(transformer_run(layers=1), "int4")
    with pytest.raises(BitwattError, match="file version 1"):
        bitwatt.what_if(bitwatt.load(Path(__file__).parent / "data" / "run-v1.run"), "int4")
    with pytest.raises(BitwattError, match="nothing to change"):
        bitwatt.what_if(inference)
    with pytest.raises(BitwattError, match="cannot be read"):
        bitwatt.what_if(inference, table="nowhere.csv")


# ── the result ──


def test_the_changed_run_is_a_run_and_the_recorded_one_is_untouched(training: Run) -> None:
    before = bitwatt.totals(training).total
    result = bitwatt.what_if(training, "int4", "int8")
    assert set(result.run.layers) == set(training.layers)
    assert set(bitwatt.totals(result.run).by("phase")) == set(bitwatt.totals(training).by("phase"))
    assert bitwatt.totals(result.run).missing == {}
    assert "int4" in bitwatt.report(result.run)
    bitwatt.save(result.run)
    again = bitwatt.load(result.run.id)
    assert {name: bitwatt.totals(again, name).total for name in ("flops", "bops", "bytes:effective")} == {
        name: result[name].after for name in ("flops", "bops", "bytes:effective")
    }
    assert bitwatt.totals(training).total == before
    assert training.layers["0"].weights is None


@pytest.mark.parametrize("name", list(NETWORKS))
def test_nothing_is_missing_and_macs_stay_for_whole_networks(name: str) -> None:
    run = bitwatt.estimate(lambda: NETWORKS[name]("cpu").step())
    for weights, activations in (("fp16", None), ("nf4", None), ("int4", "int8"), ("mxfp4", "mxfp8")):
        result = bitwatt.what_if(run, weights, activations)
        assert result["macs"].ratio == 1
        assert bitwatt.totals(result.run).missing == {}
        assert 1 <= result["flops"].ratio < 1.1
        assert result["weights"].ratio < 0.55 or weights == "mxfp4"


def test_results_show_themselves(inference: Run) -> None:
    result = bitwatt.what_if(inference, "int4", layers="0")
    assert "1 layer with weights int4" in str(result)
    assert "unchanged, matched by no pattern: 2" in str(result)
    assert "| bops:product |" in result.markdown()
    assert "<table>" in result._repr_html_()
    assert result.json()["figures"]["macs"]["before"] == ROWS * (FIRST + SECOND)
    with pytest.raises(UnknownNameError, match="there are flops"):
        result["watts"]


def test_a_sweep_is_one_table_and_one_plot(inference: Run, tmp_path: Path) -> None:
    sweep = bitwatt.sweep(inference, ("fp32", "fp16", "int8", "int4"))
    assert [sweep[name]["bops:product"].ratio for name in sweep.results] == [1, 1 / 4, 1 / 16, 1 / 64]
    assert [sweep[name]["flops"].ratio for name in ("fp32", "fp16")] == [1, 1]
    assert str(sweep).splitlines()[2].split() == ["recorded", "fp32", "fp16", "int8", "int4"]
    drawn = sweep.save(tmp_path / "plot.svg").read_text()
    assert drawn.startswith("<svg xmlns=")
    assert drawn.count("<polyline") == 6
    assert "prefers-color-scheme: dark" in drawn
    assert "<svg" in sweep._repr_html_()
    only = bitwatt.sweep(inference, ["int4"], activations=None)
    assert only["int4"].changed == {"0": "weights int4", "2": "weights int4"}
    with pytest.raises(BitwattError, match="at least one format"):
        bitwatt.sweep(inference, ())


def test_the_page_shows_the_real_output() -> None:
    model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512))
    with torch.no_grad(), bitwatt.measure("mlp", keep=False) as session:
        model(torch.randn(8, 512))
    page = (Path(__file__).parents[1] / "docs" / "guides" / "what-if.md").read_text(encoding="utf-8")
    assert f"```text\n{bitwatt.what_if(session.run, weights='int4:g128')}\n```" in page


def test_a_quantised_layer_keeps_the_precision_it_ran_in() -> None:
    from torchao.quantization import Float8WeightOnlyConfig, quantize_

    model = nn.Sequential(nn.Linear(64, 32, bias=False).bfloat16())
    quantize_(model, Float8WeightOnlyConfig())
    with torch.no_grad(), bitwatt.measure(keep=False) as session:
        model(torch.randn(8, 64, dtype=torch.bfloat16))
    result = bitwatt.what_if(session.run, weights="int4")
    executed = bitwatt.totals(result.run, "bops:executed").by("kind")
    assert executed["mac"] == 2 * 8 * 64 * 32 * 16


# ── quantised already, wider inside, under autocast ──


def quantised_at_rest() -> Run:
    from torchao.quantization import IntxWeightOnlyConfig, quantize_
    from torchao.quantization.granularity import PerGroup

    model = nn.Sequential(nn.Linear(128, 64))
    quantize_(model, IntxWeightOnlyConfig(torch.int4, PerGroup(32)))
    with torch.no_grad():
        return measured(lambda: model(torch.randn(16, 128)))


def test_room_around_values_goes_with_the_format_that_had_it() -> None:
    run = quantised_at_rest()  # one 4-bit value in each byte
    assert bitwatt.what_if(run, "fp32")["weights"].after == 4 * (128 * 64 + 64)
    assert bitwatt.what_if(run, "int2:g64")["weights"].after == 128 * 64 // 4 + 4 * 128 * 64 // 64 + 4 * 64
    assert bitwatt.what_if(run, activations="int8")["weights"].ratio == 1


def test_biases_wider_than_the_layer_runs_in_are_not_widened_again() -> None:
    bitsandbytes = pytest.importorskip("bitsandbytes")
    model = nn.Sequential(bitsandbytes.nn.Linear4bit(128, 64, compute_dtype=torch.bfloat16)).to("cpu")
    with torch.no_grad():
        run = measured(lambda: model(torch.randn(16, 128, dtype=torch.bfloat16)))
    assert bitwatt.what_if(run, "fp32")["weights"].after == 4 * (128 * 64 + 64)
    assert bitwatt.what_if(run, "bf16")["weights"].after == 2 * 128 * 64 + 4 * 64  # no cast: the bias stays
    assert bitwatt.what_if(run, "fp16")["weights"].after == 2 * (128 * 64 + 64)


def there_and_back() -> dict[str, nn.Module]:
    return {
        "linear": nn.Linear(64, 64),
        "without bias": nn.Linear(64, 64, bias=False),
        "convolution": nn.Conv1d(64, 32, 3, padding=1),
        "embedding": nn.Sequential(nn.Embedding(20, 64)),
    }


@pytest.mark.parametrize("name", list(there_and_back()))
@pytest.mark.parametrize("formats", [("int8", "int8"), ("int4:g16", "int8"), ("nf4", None), (None, "int8")])
def test_there_and_back_is_the_run_as_recorded(name: str, formats: tuple[str | None, str | None]) -> None:
    model = there_and_back()[name]
    x = torch.arange(5) if name == "embedding" else torch.randn(64, 64)
    with torch.no_grad():
        run = measured(lambda: model(x))
    there = bitwatt.what_if(run, *formats)
    back = bitwatt.what_if(there.run, "fp32", "fp32")
    assert {f.name: f.after for f in back.figures} == {f.name: f.before for f in there.figures}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("bias", [True, False])
def test_a_bias_packed_with_its_weight_is_added_still(bias: bool) -> None:
    import torch.ao.quantization as quantization

    model = nn.Sequential(nn.Linear(128, 64, bias=bias))
    packed = quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
    with torch.no_grad():
        run = measured(lambda: packed(torch.randn(16, 128)))
    assert bitwatt.what_if(run, "fp32")["flops"].after == 2 * 16 * 128 * 64 + bias * 16 * 64


class WiderInside(nn.Module):
    """A norm that computes in float32 whatever its weight is in, as RMSNorm of Llama."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


def priced(result: WhatIf, *, after: bool) -> dict[str, float]:
    return {figure.name: figure.after if after else figure.before for figure in result.figures}


def test_what_a_model_computes_wider_stays_so() -> None:
    def step(dtype: torch.dtype) -> Run:
        model = nn.Sequential(nn.Linear(16, 32), WiderInside(), nn.ReLU(), nn.Linear(32, 8)).to(dtype)
        return measured(lambda: model(torch.randn(6, 16).to(dtype)).sum().backward())

    run = step(torch.bfloat16)
    same = bitwatt.what_if(run, "bf16")
    assert priced(same, after=True) == priced(same, after=False)
    assert any("which stays: float32 in 1" in note for note in same.notes)
    for name, dtype in (("fp16", torch.float16), ("fp32", torch.float32)):
        result, really = bitwatt.what_if(run, name).run, step(dtype)
        for model in ("flops", "bops", "bops:executed", "bytes"):
            one, other = (bitwatt.totals(each, model).by("scope", "phase") for each in (result, really))
            scopes = [place for place in one.keys() | other.keys() if place[0] in "0123"]
            assert {place: one.get(place, 0) for place in scopes} == {place: other.get(place, 0) for place in scopes}


def test_under_autocast_products_run_in_its_dtype_whatever_the_weights_are() -> None:
    model = net()

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
            model(torch.randn(ROWS, INTO))

    run = measured(step)
    same = bitwatt.what_if(run, "fp32")
    assert priced(same, after=True) == priced(same, after=False)
    assert any("by autocast" in note and "bfloat16 in 0" in note for note in same.notes)
    half = bitwatt.what_if(run, "bf16")
    assert half["weights"].ratio == 0.5
    assert half["bops:product"].ratio == 1


@pytest.mark.parametrize(("groups", "weights"), [(1, 540), (2, 270)])
def test_transposed_convolutions_have_a_scale_for_each_output(groups: int, weights: int) -> None:
    model = nn.ConvTranspose2d(6, 10, 3, groups=groups)
    with torch.no_grad():
        run = measured(lambda: model(torch.randn(2, 6, 8, 8)))
    assert bitwatt.what_if(run, "int8")["weights"].after == weights + 4 * 10 + 4 * 10


def test_a_sweep_says_where_formats_change_unlike_work(training: Run, inference: Run):
    told = bitwatt.sweep(training, ["fp32", "fp16", "int8", "int4"]).remarks
    assert "not the same work: fp32, fp16 change forward and backward; int8, int4 forward alone" in told
    assert not any("not the same work" in one for one in bitwatt.sweep(training, ["int8", "int4"]).remarks)
    assert not any("not the same work" in one for one in bitwatt.sweep(inference, ["fp16", "int8"]).remarks)
