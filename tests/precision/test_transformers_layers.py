"""Layers that transformers itself brings along, and models that it loads with a quantization_config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import bitwatt
from bitwatt.backends.torch.layers import describe
from precision.quantised import Seen, seen
from precision.tiny_models import TOKENS, WIDTH, llama

transformers = pytest.importorskip("transformers")
from transformers.integrations import bitnet, eetq, finegrained_fp8, gemma_quant, higgs  # noqa: E402

ROWS, IN, OUT = 24, 256, 128
PRODUCT = 2 * ROWS * IN * OUT
WEIGHTS = IN * OUT


def formats(found: Seen, phase: str = "forward") -> list[tuple[str, str, str]]:
    return [(product.a.name, product.b.name, product.executed.name) for product in found.products(phase)]


def x() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(ROWS, IN).bfloat16()


def test_packed_bitnet() -> None:
    layer = bitnet.BitLinear(IN, OUT, bias=True, dtype=torch.bfloat16)
    layer.weight.copy_(torch.randint(0, 2, layer.weight.shape, dtype=torch.uint8))
    found = seen(layer, x())
    assert found.layer.unknown == ""
    assert found.layer.weights.bits == 1.58
    assert found.layer.weights.effective_bits == 2 + 16 / WEIGHTS  # four values to a byte, a bfloat16 scale
    assert found.layer.shapes == ((OUT, IN),)
    assert formats(found, "inference") == [("int8", "ternary", "bfloat16")]
    assert found.flops("inference", kind="mac") == PRODUCT
    assert found.flops("inference", part="") == PRODUCT + ROWS * OUT
    assert found.flops("inference", part="quantisation") >= WEIGHTS + ROWS * IN + ROWS * OUT


@pytest.mark.parametrize("online", [True, False])
def test_bitnet_in_training(online: bool) -> None:
    layer = bitnet.AutoBitLinear(IN, OUT, bias=True, dtype=torch.bfloat16, online_quant=online)
    found = seen(layer, x(), backward=True)
    assert found.layer.weights.effective_bits == 1.58 + (0 if online else 16 / WEIGHTS)
    assert not found.layer.weights.stored
    assert found.layer.activations.bits == 8
    assert formats(found) == [("int8", "ternary", "bfloat16")]
    assert found.flops("forward", kind="mac") == PRODUCT
    assert found.flops("backward", kind="mac") == 2 * PRODUCT
    assert ("bfloat16", "ternary", "bfloat16") in formats(found, "backward")


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_gemma_layers(bits: int) -> None:
    layer = gemma_quant.QuantizedLinear(IN, OUT, bias=True, num_bits=bits)
    layer.weight.data.zero_()
    found = seen(layer, x().float())
    assert found.layer.weights.effective_bits == bits + 32 / IN
    assert found.layer.activations is None
    assert formats(found, "inference") == [("float32", f"int{bits}", "float32")]
    assert found.layer.weight_bytes == WEIGHTS * (bits + 32 / IN) / 8 + 4 * OUT
    layer.input_activation_scale.data.fill_(0.1)  # calibrated: inputs are rounded too
    assert describe(layer).activations.bits == 8
    table = describe(gemma_quant.QuantizedEmbedding(100, 64, torch.float32, num_bits=bits))
    assert table.shapes == ((100, 64),)
    assert table.weights.effective_bits == bits + 32 / 64


def test_layers_whose_kernels_need_a_gpu_are_read_where_they_are_built() -> None:
    """On a CPU they are made, not run: what they say is checked by hand against their tensors."""
    fp8 = finegrained_fp8.FP8Linear(IN, OUT, block_size=(128, 128), activation_scheme="dynamic")
    layer = describe(fp8)
    assert (layer.weights.precision.name, layer.activations.precision.name) == ("float8_e4m3fn", "float8_e4m3fn")
    assert layer.weights.effective_bits == 8 + 32 * 2 / WEIGHTS  # a scale for each block of 128 x 128
    assert layer.shapes == ((OUT, IN),)

    rows = describe(eetq.EetqLinear(IN, OUT, dtype=torch.int8, bias=True))
    assert rows.weights.effective_bits == 8 + 16 / IN
    assert rows.shapes == ((OUT, IN),)

    grid = describe(higgs.HiggsLinear(IN, OUT, num_bits=4, group_size=256, dtype=torch.float16))
    assert (grid.weights.bits, grid.shapes[0]) == (4, (OUT, IN))
    assert grid.weights.effective_bits == 4 + 16 / 256


def test_blocks_of_gguf() -> None:
    from transformers.integrations.gguf.utils import GgufLinear

    q4_k, q6_k, iq2_xxs = 12, 14, 16
    found = describe(GgufLinear(IN, OUT, q4_k))
    assert (found.weights.bits, found.weights.effective_bits) == (4, 144 * 8 / 256)  # 144 bytes for 256 values
    found = describe(GgufLinear(IN, OUT, q6_k))
    assert (found.weights.bits, found.weights.effective_bits) == (6, 210 * 8 / 256)
    found = describe(GgufLinear(IN, OUT, iq2_xxs))  # codes of vectors: no width of one value
    assert found.weights is None
    assert "GgufLinear" in found.unknown


def test_experts_in_mxfp4() -> None:
    from transformers.integrations.mxfp4 import Mxfp4GptOssExperts

    config = transformers.GptOssConfig(num_local_experts=4, intermediate_size=64, hidden_size=32)
    layer = describe(Mxfp4GptOssExperts(config))
    assert (layer.weights.bits, layer.weights.effective_bits) == (4, 4.25)
    assert layer.shapes.count((128, 32)) == layer.shapes.count((32, 64)) == 4


def test_experts_in_float8() -> None:
    config = transformers.Qwen3MoeConfig(num_experts=4, moe_intermediate_size=128, hidden_size=256)
    layer = describe(finegrained_fp8.FP8Experts(config, block_size=(128, 128)))
    assert layer.weights.precision.name == "float8_e4m3fn"
    assert layer.shapes[:4] == ((256, 256),) * 4
    assert layer.shapes[4:8] == ((256, 128),) * 4
    assert layer.weights.effective_bits == 8 + 32 / (128 * 128)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny")
    llama().bfloat16().save_pretrained(path)
    return path


def configs() -> dict[str, tuple[Any, str, float, str | None]]:
    """Name -> (configuration, format, bits of the 64 x 64 projection with scales, activations)."""
    torchao = pytest.importorskip("torchao.quantization")
    bnb = {"bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": torch.bfloat16}
    return {
        "bitsandbytes 8": (transformers.BitsAndBytesConfig(load_in_8bit=True), "int8", 8 + 32 / WIDTH, None),
        "bitsandbytes 4": (transformers.BitsAndBytesConfig(load_in_4bit=True, **bnb), "nf4", 4 + 32 / 64, None),
        "quanto 8": (transformers.QuantoConfig(weights="int8"), "int8", 8 + 16 / WIDTH, None),
        "torchao 8": (transformers.TorchAoConfig(torchao.Int8WeightOnlyConfig()), "int8", 8 + (32 + 8) / WIDTH, None),
    }


@pytest.mark.parametrize("name", ["bitsandbytes 8", "bitsandbytes 4", "quanto 8", "torchao 8"])
def test_a_model_loaded_with_a_configuration(folder: Path, name: str) -> None:
    config, value, effective, inputs = configs()[name]
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, quantization_config=config, dtype=torch.bfloat16, device_map="cpu"
    )
    with bitwatt.measure(keep=False) as session, torch.no_grad():
        model(torch.arange(TOKENS)[None])
    run = session.run
    assert bitwatt.totals(run).missing == {}
    assert [path for path, layer in run.layers.items() if layer.unknown] == []
    quantised = {path: layer for path, layer in run.layers.items() if layer.weights is not None}
    assert len(quantised) == 2 * 7  # q, k, v, o, gate, up and down of two layers; lm_head and embeddings are left out
    layer = run.layers["model.layers.0.self_attn.q_proj"]
    assert layer.weights.precision.name == value
    assert layer.weights.effective_bits == pytest.approx(effective)
    assert (layer.activations and layer.activations.precision.name) == inputs
    macs: Any = bitwatt.totals(run, "macs").by("scope")
    for path, found in quantised.items():
        (shape,) = found.shapes
        assert macs[path] == TOKENS * shape[0] * shape[1]
    assert macs["lm_head"] == TOKENS * WIDTH * WIDTH


def test_a_bitnet_llama_trains_and_is_ternary_throughout() -> None:
    """The layers of a BitNet checkpoint in a Llama, as its configuration puts them there."""
    model = llama().bfloat16()
    config = transformers.BitNetQuantConfig(linear_class="autobitlinear", quantization_mode="online")
    model = bitnet.replace_with_bitnet_linear(model, modules_to_not_convert=["lm_head"], quantization_config=config)
    for module in model.modules():
        if isinstance(module, bitnet.AutoBitLinear):
            module.to_empty(device="cpu")
            nn.init.normal_(module.weight)
    model.train()
    with bitwatt.measure(keep=False) as session:
        model(torch.arange(TOKENS)[None]).logits.float().sum().backward()
    run = session.run
    assert bitwatt.totals(run).missing == {}
    ternary = {path: layer for path, layer in run.layers.items() if layer.weights is not None}
    assert len(ternary) == 2 * 7
    assert {layer.weights.bits for layer in ternary.values()} == {1.58}
    macs: Any = bitwatt.totals(run, "macs").by("scope", "phase")
    for path, layer in ternary.items():
        (shape,) = layer.shapes
        assert macs[path, "forward"] == TOKENS * shape[0] * shape[1]
        assert macs[path, "backward"] == 2 * macs[path, "forward"]
