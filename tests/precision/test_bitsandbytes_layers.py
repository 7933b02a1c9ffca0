"""bitsandbytes: LLM.int8() and 4-bit layers, embeddings, 8-bit optimizers, and QLoRA."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import bitwatt
from bitwatt.pricing import entries_of
from precision.one_linear import FLOPS, K, M, N, check_backward, check_forward, check_layer, linear, rows, sizes
from precision.quantised import seen
from precision.tiny_models import MODELS, TOKENS, WIDTH, float_macs, formats, given, inferred, llama, macs

bnb = pytest.importorskip("bitsandbytes")

BIAS = 4 * N
EIGHT = 8 + 32 / K  # a float32 scale for each row
FOUR = 4 + 32 / 64  # a float32 scale for each block of 64
DOUBLE = 4 + 8 / 64 + 32 / (64 * 256) + 32 / (N * K)  # a byte, a float32 for 256 of those, one offset


def eight(*, trained: bool = False, threshold: float = 0.0) -> Any:
    layer = bnb.nn.Linear8bitLt(K, N, True, has_fp16_weights=trained, threshold=threshold)
    layer.load_state_dict(linear().state_dict())
    return layer.to("cpu")


def four(kind: str, *, double: bool, dtype: torch.dtype = torch.bfloat16) -> Any:
    layer = bnb.nn.Linear4bit(K, N, True, compute_dtype=dtype, quant_type=kind, compress_statistics=double)
    layer.load_state_dict(linear().state_dict())
    return layer.to("cpu")


def test_int8_training_on_a_cpu_expands_the_weight_and_leaves_inputs_float() -> None:
    found = seen(eight(), rows(), backward=True)
    check_layer(found, "int8", EIGHT, inputs=None, bias_bytes=BIAS)
    check_forward(found, "int8", "float32", "float32")
    check_backward(found, "int8", "float32", trains=False)


def test_int8_whose_weight_stays_float_trains_it() -> None:
    found = seen(eight(trained=True), rows(), backward=True)
    check_layer(found, "int8", EIGHT, inputs=None, bias_bytes=BIAS, kept_bytes=4 * N * K)
    check_forward(found, "int8", "float32", "float32")
    check_backward(found, "int8", "float32", trains=True)


@pytest.mark.parametrize("again", [False, True])
def test_int8_inference_multiplies_integers(again: bool) -> None:
    """Scales move from the weight to the layer in its first forward: both places are read."""
    layer = eight()
    if again:
        layer.eval()(rows())
        assert layer.weight.SCB is None
    found = seen(layer, rows(), training=False)
    check_layer(found, "int8", EIGHT, inputs=None, bias_bytes=BIAS)  # its ops tell
    check_forward(found, "int8", "int8", "int8", phase="inference")
    # rounding x, and a scale for each row and each column of the result
    assert found.flops("inference", part="quantisation") == M * K + 2 * M * N


def test_columns_with_outliers_are_multiplied_again_in_float() -> None:
    x = rows().clamp(-3, 3)
    x[:, [3, 40]] = 10.0
    found = seen(eight(threshold=6.0), x, training=False)
    check_layer(found, "int8", EIGHT, inputs=None, bias_bytes=BIAS)  # its ops tell
    products = {sizes(p): (p.a.kind, p.b.name, p.executed.kind) for p in found.products("inference")}
    assert products == {(M, N, K): ("int", "int8", "int"), (M, N, 2): ("float", "int8", "float")}
    assert found.flops("inference", kind="mac") == FLOPS + 2 * M * N * 2


def test_a_layer_never_moved_to_a_device_is_quantised_in_its_first_forward() -> None:
    layer = bnb.nn.Linear8bitLt(K, N, True, has_fp16_weights=False)
    found = seen(layer, rows())
    assert layer.weight.dtype == torch.int8
    check_layer(found, "int8", EIGHT, inputs=None, bias_bytes=BIAS)
    check_forward(found, "int8", "float32", "float32", phase="inference")


@pytest.mark.parametrize("kind", ["nf4", "fp4"])
@pytest.mark.parametrize("double", [False, True])
def test_four_bits_in_training(kind: str, double: bool) -> None:
    found = seen(four(kind, double=double), rows(), backward=True)
    check_layer(found, kind, DOUBLE if double else FOUR, inputs=None, bias_bytes=BIAS)
    check_forward(found, kind, "bfloat16", "bfloat16")
    check_backward(found, kind, "bfloat16", trains=False)
    # code[q]·scale for each weight, in both directions; code[q]·scale + offset for each scale
    scales = N * K // 64 * double
    assert found.flops(part="quantisation") == N * K + 2 * scales


def test_the_named_classes_are_four_bits_too() -> None:
    for kind, name in ((bnb.nn.LinearNF4, "nf4"), (bnb.nn.LinearFP4, "fp4")):
        found = seen(kind(K, N).to("cpu"), rows(), backward=True)
        check_layer(found, name, DOUBLE, inputs=None, bias_bytes=BIAS)
        check_forward(found, name, "float32", "float32")


@pytest.mark.parametrize("double", [False, True])
def test_four_bits_in_inference(double: bool) -> None:
    layer = four("nf4", double=double)
    found = seen(layer, rows(), training=False)
    check_layer(found, "nf4", DOUBLE if double else FOUR, inputs=None, bias_bytes=BIAS)
    (product,) = found.products("inference")
    assert (sizes(product), product.b.name, product.executed.name) == ((M, N, K), "nf4", "bfloat16")
    assert found.flops("inference", kind="mac") == FLOPS
    assert found.flops("inference", part="quantisation") >= N * K
    repacked = getattr(layer.weight.quant_state, "packing_format_for_cpu", False)
    if repacked:  # a CPU with bfloat16 instructions: one bfloat16 scale for each block from now on
        again = seen(layer, rows(), training=False)
        check_layer(again, "nf4", 4 + 16 / 64, inputs=None, bias_bytes=2 * N)  # the forward has cast the bias
        check_forward(again, "nf4", "bfloat16", "bfloat16", phase="inference")


def test_float_inputs_run_in_bfloat16_where_the_cpu_kernel_does() -> None:
    layer = four("nf4", double=False, dtype=torch.float32)
    (product,) = seen(layer, rows(), training=False).products("inference")
    repacked = getattr(layer.weight.quant_state, "packing_format_for_cpu", False)
    assert (product.a.name, product.b.name) == ("float32", "nf4")
    assert product.executed.name == ("bfloat16" if repacked else "float32")


def test_a_parametrised_weight() -> None:
    from bitsandbytes.nn.parametrize import replace_parameter_4bit

    layer = linear()
    replace_parameter_4bit(layer, "weight", quant_type="nf4")
    found = seen(layer, rows(), backward=True)
    assert found.layer.weights is not None
    assert found.layer.weights.precision.name == "nf4"
    assert found.layer.weights.effective_bits == pytest.approx(FOUR)
    check_forward(found, "nf4", "float32", "float32")
    check_backward(found, "nf4", "float32", trains=False)


@pytest.mark.parametrize(
    ("kind", "name", "effective"),
    [
        ("Embedding8bit", "int8", 8 + 32 / 64),
        ("Embedding4bit", "fp4", 4 + 32 / 64),
        ("EmbeddingNF4", "nf4", 4 + 32 / 64),
        ("EmbeddingFP4", "fp4", 4 + 32 / 64),
    ],
)
def test_embeddings(kind: str, name: str, effective: float) -> None:
    found = seen(getattr(bnb.nn, kind)(100, 64).to("cpu"), torch.arange(16))
    layer = found.layer
    assert layer.weights is not None
    assert (layer.weights.precision.name, layer.weights.effective_bits) == (name, effective)
    assert (layer.unknown, layer.shapes) == ("", ((100, 64),))
    assert layer.weight_bytes == math.ceil(100 * 64 * effective / 8)
    assert found.flops("inference", part="quantisation") >= 16 * 64
    assert found.flops("inference", kind="mac") == 0


#: Per parameter, written out from the update rules: Adam m, v, √v + ε, the step; momentum on its first step; Lion.
ADAM, FIRST_MOMENTUM, LION, RMSPROP = 12, 2, 8, 9


@pytest.mark.parametrize(
    ("name", "options", "each", "states"),
    [
        ("Adam8bit", {}, ADAM, 2),
        ("AdamW8bit", {"weight_decay": 0.01}, ADAM + 1, 2),
        ("PagedAdamW8bit", {"weight_decay": 0.01}, ADAM + 1, 2),
        ("Lion8bit", {}, LION, 1),
        ("RMSprop8bit", {}, RMSPROP, 1),
        ("SGD8bit", {"momentum": 0.9}, FIRST_MOMENTUM, 1),
        ("AdamW", {"weight_decay": 0.01}, ADAM + 1, 0),
    ],
)
def test_a_step_of_an_optimizer(name: str, options: dict[str, float], each: int, states: int) -> None:
    net = nn.Sequential(linear(), nn.ReLU(), nn.Linear(N, 10))
    optimizer = getattr(bnb.optim, name)(net.parameters(), lr=1e-3, **options)
    with bitwatt.measure("step", keep=False) as session:
        net(rows()).sum().backward()
        optimizer.step()
    done = bitwatt.totals(session.run, strict=True)
    parameters = K * N + N + 10 * N + 10
    sums: Any = done.by("phase", "part")
    assert sums["optimizer", ""] == each * parameters
    # of the tensors large enough to be kept in 8 bits, each state is expanded and scaled back: a multiplication each
    assert sums.get(("optimizer", "quantisation"), 0) == 2 * states * K * N
    assert {entry.rule.family for entry in done.entries if "optimizer_update" in entry.op.name} == {"optimizer"}


def test_optimizers_are_not_listed_again_at_every_step() -> None:
    net = nn.Sequential(linear())
    optimizer = bnb.optim.Adam8bit(net.parameters(), lr=1e-3)
    with bitwatt.measure("steps", keep=False) as session:
        for _ in range(20):
            net(rows()).sum().backward()
            optimizer.step()
    rows_of = [row for row in session.run.ledger if "optimizer_update_8bit" in row.op.name]
    assert len(rows_of) < 8
    assert sum(row.calls for row in rows_of) == 20


CONFIGS = {
    "int8": {"load_in_8bit": True},
    "nf4": {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True},
}


def loaded(name: str, kind: str, folder: Path) -> Any:
    from transformers import BitsAndBytesConfig

    model = MODELS[name]()
    model.save_pretrained(folder)
    config = BitsAndBytesConfig(**CONFIGS[kind])
    return type(model).from_pretrained(folder, quantization_config=config, device_map="cpu").eval()


#: Linear layers of the two blocks; the head stays float where it predicts tokens. GPT-2's Conv1D become linear ones.
LAYERS = {"llama": 2 * 7, "gpt2": 2 * 4, "vit": 2 * 6}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("kind", CONFIGS)
def test_models_do_the_same_products_as_in_float(name: str, kind: str, tmp_path: Path) -> None:
    model = loaded(name, kind, tmp_path)
    expected = {path: kind for path, layer in model.named_modules() if isinstance(layer, _classes())}
    run = inferred(model, given(name))
    assert formats(run) == expected
    assert len(expected) >= LAYERS[name]
    assert macs(run) == float_macs(name)


def _classes() -> tuple[type, ...]:
    return (bnb.nn.Linear8bitLt, bnb.nn.Linear4bit)


def test_qlora_trains_adapters_through_four_bit_weights(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    rank, targets = 8, ["q_proj", "v_proj"]
    base = loaded("llama", "nf4", tmp_path)
    config = peft.LoraConfig(r=rank, target_modules=targets, lora_dropout=0.0, task_type="CAUSAL_LM")
    model = peft.get_peft_model(base, config).train()
    ids = torch.arange(TOKENS).reshape(1, TOKENS)
    with bitwatt.measure("qlora", keep=False) as session:
        model(ids, labels=ids).loss.backward()
    run = session.run
    assert bitwatt.totals(run).missing == {}
    assert set(formats(run).values()) == {"nf4"}
    assert len(formats(run)) == 2 * 7
    # an adapter in·r and r·out beside each of the targets: q is 64 to 64, v 64 to 32
    adapters = 2 * TOKENS * rank * ((WIDTH + WIDTH) + (WIDTH + WIDTH // 2))
    by_phase: Any = bitwatt.totals(run, "macs").by("phase")
    assert by_phase["forward"] == float_macs("llama") + adapters
    backward = [
        (entry.row.scope, product)
        for entry in entries_of(run.ledger, run.layers)
        for product, times in (entry.work.products if entry.work else ())
        for _ in range(times * entry.row.calls)
        if entry.row.phase == "backward" and entry.layer is not None and entry.layer.weights is not None
    ]
    # only gradients of inputs pass the packed weights, and none those of the first q, k, v: nothing before them trains
    assert len(backward) == 2 * 7 - 3
    assert all("nf4" in (product.a.name, product.b.name) for _, product in backward)
    weights = {shape for layer in run.layers.values() if layer.weights for shape in layer.shapes}
    assert {sizes(product)[1:] for _, product in backward} <= {shape[::-1] for shape in weights}


def test_a_float_model_is_not_touched() -> None:
    assert formats(inferred(llama(), given("llama"))) == {}
