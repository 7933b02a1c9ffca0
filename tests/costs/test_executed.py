"""flops:executed against what instruments counted: fpcount on AVX2, Nsight Compute's counters on an H200."""

import json
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from bitwatt.ledger import Ledger  # noqa: E402
from bitwatt.pricing import totals  # noqa: E402
from bitwatt.records import Op, TensorSpec  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
ROWS = [json.loads(line) for line in (ROOT / "tests/data/torch_executed_avx2.jsonl").read_text().splitlines()]
TRUTH = [row for row in ROWS if row["source"].startswith("shared")]
OWN = [row for row in ROWS if not row["source"].startswith("shared")]
FIXED = 150  # operations of a call whatever its size: the autograd engine's own, a scalar's whole vector


@cache
def _programs() -> Any:
    sys.path.insert(0, str(ROOT / "benchmarks" / "accuracy"))
    try:
        import programs
    finally:
        sys.path.pop(0)
    return programs


def _is_network(row: dict[str, Any]) -> bool:
    return "loss" in row["executed"]


def _priced(row: dict[str, Any]) -> dict[str, int]:
    programs = _programs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ledger = programs.ledger_of(programs.Program(row["name"], row["setup"], row["phases"]))
    return dict(totals(ledger, "flops:executed@avx2").by("phase"))


def _misses(rows: list[dict[str, Any]], bar: float) -> tuple[list[str], list[str]]:
    """(phases outside the bar that no reason excuses, phases excused that lie inside it)."""
    outside, needless = [], []
    for row in rows:
        model = _priced(row)
        for phase, executed in row["executed"].items():
            said = model.get(phase, 0)
            inside = abs(said - executed) <= max(bar * executed, FIXED)
            excused = phase in row.get("off", {})
            if not inside and not excused:
                outside.append(f"{row['name']} {phase}: executed {executed}, model {said}")
            if inside and excused:
                needless.append(f"{row['name']} {phase}")
    return outside, needless


def test_every_op_of_the_shared_truth_is_within_ten_per_cent() -> None:
    rows = [row for row in TRUTH if not _is_network(row)]
    assert len(rows) >= 60
    assert not any("off" in row for row in rows)
    assert _misses(rows, 0.10) == ([], [])


def test_every_phase_of_the_shared_networks_is_within_five_per_cent() -> None:
    rows = [row for row in TRUTH if _is_network(row)]
    assert len(rows) == 3
    assert not any("off" in row for row in rows)
    assert _misses(rows, 0.05) == ([], [])


def test_other_ops_and_sizes_are_within_ten_per_cent_save_those_with_a_reason() -> None:
    rows = [row for row in OWN if not _is_network(row)]
    assert _misses(rows, 0.10) == ([], [])


def test_other_networks_are_within_five_per_cent_by_phase() -> None:
    rows = [row for row in OWN if _is_network(row)]
    assert len(rows) >= 30
    assert sum(len(row.get("off", {})) for row in rows) <= 1
    assert _misses(rows, 0.05) == ([], [])


def test_every_op_that_is_off_says_why_and_they_are_few() -> None:
    reasons = [reason for row in ROWS for reason in row.get("off", {}).values()]
    assert all(reasons)
    assert len(reasons) < 0.04 * sum(len(row["executed"]) for row in ROWS)


def _price(name: str, model: str, out: tuple[TensorSpec, ...], **arguments: Any) -> int:
    ledger = Ledger()
    ledger.add("", "", Op(name, tuple(arguments.items()), out))
    return totals(ledger, f"flops:executed@{model}").total


def test_integers_execute_no_floating_point_lane() -> None:
    spec = TensorSpec((40, 30), "int64")
    assert _price("aten.add", "avx2", (spec,), self=spec, other=spec) == 0


def test_an_op_in_place_executes_what_its_functional_twin_does() -> None:
    spec = TensorSpec((64, 250))
    assert (
        _price("aten.tanh_", "avx2", (spec,), self=spec) == _price("aten.tanh", "avx2", (spec,), self=spec) == 224_000
    )


def test_padding_is_not_computed_by_a_direct_convolution() -> None:
    # 14 outputs of 3 taps less the 2 that fall on padding: 40 a side; 12 channels in blocks of 8 are 16
    x, weight, out = TensorSpec((2, 8, 14, 14)), TensorSpec((12, 8, 3, 3)), TensorSpec((2, 12, 14, 14))
    sizes = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "transposed": False, "groups": 1}
    executed = _price("aten.convolution", "avx2", (out,), input=x, weight=weight, bias=None, **sizes)
    assert executed == 2 * 2 * 16 * 8 * 40 * 40 + 64


# What Nsight Compute read on an H200, torch 2.11 (shared/truth/h200_counters.json, "by kernel, lm-8 fp32")
WIDE, TOKENS = TensorSpec((1024, 33278)), TensorSpec((1024, 1024))
HEADS = TensorSpec((8, 4, 128, 64))


@pytest.mark.parametrize(
    ("executed", "name", "calls", "out", "arguments"),
    [
        (81_850_000, "aten.gelu", 4, TOKENS, {"self": TOKENS}),
        (152_100_000, "aten.gelu_backward", 4, TOKENS, {"grad_output": TOKENS, "self": TOKENS}),
        (527_600_000, "aten._log_softmax", 1, WIDE, {"self": WIDE, "dim": 1}),
        (460_800_000, "aten._log_softmax_backward_data", 1, WIDE, {"grad_output": WIDE, "output": WIDE, "dim": 1}),
        (99_070_000, "aten.native_layer_norm", 8, TensorSpec((8, 128, 256)), {"input": TensorSpec((8, 128, 256))}),
    ],
)
def test_h200_kernels_of_a_language_model(
    executed: int, name: str, calls: int, out: TensorSpec, arguments: dict[str, Any]
) -> None:
    if name == "aten.native_layer_norm":
        arguments = arguments | {"normalized_shape": (256,)}
    assert calls * _price(name, "sm90", (out,), **arguments) == pytest.approx(executed, rel=0.02)


def test_h200_attention_in_float32_is_three_tf32_products_for_each() -> None:
    heads = {"query": HEADS, "key": HEADS, "value": HEADS}
    name = "aten._scaled_dot_product_efficient_attention"
    forward = _price(name, "sm90", (HEADS,), **heads)
    backward = _price(f"{name}_backward", "sm90", (HEADS,), grad_out_=HEADS, **heads)
    assert 4 * forward == pytest.approx(1_653_000_000, rel=0.01)
    assert 4 * backward == pytest.approx(4_135_000_000, rel=0.01)


def test_h200_training_step_of_an_mlp() -> None:
    programs = _programs()
    step = programs.network(
        "mlp",
        "m = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)); "
        "x = const(64, 784); t = ints(10, 64)",
        "F.cross_entropy(y, t)",
        "Adam(m.parameters(), foreach=True)",
    )
    assert totals(programs.ledger_of(step), "flops:executed@sm90").total == pytest.approx(238_370_000, rel=0.05)


def test_h200_adamw_spends_thirty_seven_operations_on_a_parameter() -> None:
    # read on random gradients: mul 1, lerp 3, mul 1, addcmul 3, sqrt 6, div 10, add 1, addcdiv 12
    programs = _programs()
    step = programs.optimizer("AdamW", "AdamW(ps, foreach=True)", "(1000, 203)")
    executed = totals(programs.ledger_of(step), "flops:executed@sm90").total / 203_000
    assert executed == pytest.approx(37, rel=0.01)
