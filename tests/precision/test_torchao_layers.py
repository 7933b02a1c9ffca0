"""torchao: tensors that replace weights, training in small formats, quantisation-aware training, low-bit optimizers."""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import bitwatt
from bitwatt.precision.registry import Widths, reader_of
from precision.one_linear import FLOPS, K, M, N, check_backward, check_forward, check_layer, linear, rows
from precision.quantised import seen
from precision.tiny_models import MODELS, float_macs, formats, given, inferred, macs

Q = pytest.importorskip("torchao.quantization")
F32, BF16 = torch.float32, torch.bfloat16
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
BIAS = {F32: 4 * N, BF16: 2 * N}


def converted(config: Any, dtype: torch.dtype = F32, *, bias: bool = True) -> nn.Module:
    holder = nn.Sequential(linear(dtype, bias=bias))
    Q.quantize_(holder, config)
    return holder[0]


def holding(make: Callable[[torch.Tensor], torch.Tensor], dtype: torch.dtype) -> nn.Module:
    layer = linear(dtype)
    layer.weight = nn.Parameter(make(layer.weight.detach()), requires_grad=False)
    return layer


ROWS = 8 + (32 + 8) / K  # a float32 scale and an int8 zero point for each row
ONE = 8 + (32 + 8) / (N * K)  # for the whole tensor


@pytest.mark.parametrize(("granularity", "effective"), [(Q.PerRow, ROWS), (Q.PerTensor, ONE)])
def test_int8_weights_alone(granularity: Any, effective: float) -> None:
    found = seen(converted(Q.Int8WeightOnlyConfig(granularity=granularity())), rows(), backward=True)
    check_layer(found, "int8", effective, inputs=None, bias_bytes=BIAS[F32])
    check_forward(found, "int8", "float32", "float32")
    check_backward(found, "int8", "float32", trains=False)


@pytest.fixture(params=["int8", "uint8"])
def inputs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What torchao multiplies int8 weights with on a CPU. With VNNI inputs are moved by 128, which sums of the weight's
    columns take back; both ways run everywhere."""
    intmm = importlib.import_module("torchao.kernel.intmm")
    monkeypatch.setattr(intmm, "_cpu_is_vnni_supported", lambda: request.param == "uint8")
    monkeypatch.setattr(intmm, "_cpu_is_amx_tile_supported", lambda: False)
    return str(request.param)


def test_int8_weights_and_inputs_are_multiplied_as_integers(inputs: str) -> None:
    found = seen(converted(Q.Int8DynamicActivationInt8WeightConfig()), rows())
    check_layer(found, "int8", ROWS, inputs="int8", bias_bytes=BIAS[F32])
    check_forward(found, "int8", inputs, inputs, phase="inference", spare=N * K * (inputs == "uint8"))
    assert found.flops("inference", part="quantisation") > 2 * M * N


def test_int8_inputs_with_a_zero_point() -> None:
    config = Q.Int8DynamicActivationInt8WeightConfig(act_mapping_type=Q.MappingType.ASYMMETRIC)
    found = seen(converted(config), rows())
    check_layer(found, "int8", ROWS, inputs="int8", bias_bytes=BIAS[F32])
    (product,) = found.products("inference")
    assert (product.executed.bits, product.executed.kind) == (8, "int")
    assert found.flops("inference", kind="mac") == FLOPS


def test_int8_inputs_with_a_scale_known_before(inputs: str) -> None:
    config = Q.Int8StaticActivationInt8WeightConfig(act_quant_scale=torch.tensor([[0.03]]), granularity=Q.PerTensor())
    found = seen(converted(config), rows())
    check_layer(found, "int8", ONE, inputs="int8", bias_bytes=BIAS[F32])
    check_forward(found, "int8", inputs, inputs, phase="inference", spare=N * K * (inputs == "uint8"))
    assert found.layer.activations is not None
    assert "static" in found.layer.activations.source


@pytest.mark.parametrize("bits", range(1, 9))
def test_integers_of_any_width(bits: int) -> None:
    config = Q.IntxWeightOnlyConfig(weight_dtype=getattr(torch, f"int{bits}"), granularity=Q.PerGroup(32))
    found = seen(converted(config), rows(), backward=True)
    check_layer(found, f"int{bits}", bits + (32 + 8) / 32, inputs=None, bias_bytes=BIAS[F32], room=8 - bits)
    check_forward(found, f"int{bits}", "float32", "float32")
    check_backward(found, f"int{bits}", "float32", trains=False)
    assert found.flops(part="quantisation") == 2 * N * K  # (q - z)·s


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_integers_of_any_width_with_int8_inputs(bits: int) -> None:
    dtype = getattr(torch, f"int{bits}")
    config = Q.Int8DynamicActivationIntxWeightConfig(weight_dtype=dtype, weight_granularity=Q.PerGroup(32))
    found = seen(converted(config), rows())
    check_layer(found, f"int{bits}", bits + 40 / 32, inputs="int8", bias_bytes=BIAS[F32], room=8 - bits)
    check_forward(found, f"int{bits}", "int8", "float32", phase="inference")  # both are expanded first


@pytest.mark.parametrize(("dtype", "name"), [(E4M3, "float8_e4m3fn"), (E5M2, "float8_e5m2")])
def test_float8_weights_alone(dtype: torch.dtype, name: str) -> None:
    found = seen(converted(Q.Float8WeightOnlyConfig(weight_dtype=dtype), BF16), rows(BF16), backward=True)
    check_layer(found, name, 8 + 32 / K, inputs=None, bias_bytes=BIAS[BF16])
    check_forward(found, name, "bfloat16", "bfloat16")
    check_backward(found, name, "bfloat16", trains=False)


def float8_dynamic(weight: torch.Tensor) -> torch.Tensor:
    from torchao.float8.inference import Float8MMConfig
    from torchao.quantization.quantize_.workflows import QuantizeTensorToFloat8Kwargs

    inputs = QuantizeTensorToFloat8Kwargs(E4M3, Q.PerRow())
    fast = Float8MMConfig(use_fast_accum=True)
    return Q.Float8Tensor.from_hp(weight, E4M3, Q.PerRow(), mm_config=fast, act_quant_kwargs=inputs)


def test_float8_weights_and_inputs_are_multiplied_in_float8() -> None:
    found = seen(holding(float8_dynamic, BF16), rows(BF16))
    check_layer(found, "float8_e4m3fn", 8 + 32 / K, inputs="float8_e4m3fn", bias_bytes=BIAS[BF16])
    check_forward(found, "float8_e4m3fn", "float8_e4m3fn", "float8_e4m3fn", phase="inference")


def test_nf4_with_scales_quantised_again() -> None:
    from torchao.quantization.quantize_.workflows.nf4.nf4_tensor import to_nf4

    found = seen(holding(lambda w: to_nf4(w, block_size=64, scaler_block_size=256), F32), rows(), backward=True)
    # a byte for each block of 64, a float32 for each 256 of those, and their mean
    effective = 4 + 8 / 64 + 32 / (64 * 256) + 32 / (N * K)
    check_layer(found, "nf4", effective, inputs=None, bias_bytes=BIAS[F32])
    check_forward(found, "nf4", "float32", "float32")
    check_backward(found, "nf4", "float32", trains=False)


@pytest.mark.parametrize(
    ("dtype", "name", "bits"),
    [
        (E4M3, "float8_e4m3fn", 8),
        (torch.float4_e2m1fn_x2, "float4_e2m1fn", 4),
        ("fp6_e2m3", "fp6_e2m3", 6),
        ("fp6_e3m2", "fp6_e3m2", 6),
    ],
)
def test_microscaling_formats(dtype: Any, name: str, bits: int) -> None:
    from torchao.prototype.mx_formats import MXDynamicActivationMXWeightConfig
    from torchao.quantization.quantize_.common import KernelPreference

    config = MXDynamicActivationMXWeightConfig(
        activation_dtype=dtype, weight_dtype=dtype, kernel_preference=KernelPreference.EMULATED
    )
    found = seen(converted(config, BF16), rows(BF16))
    room = 2 if bits == 6 else 0  # six bits take a byte
    check_layer(found, name, bits + 8 / 32, inputs=name, bias_bytes=BIAS[BF16], room=room)  # an exponent for 32 values
    check_forward(found, name, name, "bfloat16", phase="inference", spare=M * K)  # rounding, in integers


@pytest.mark.parametrize("two_levels", [False, True])
def test_nvfp4_is_four_and_a_half_bits(two_levels: bool) -> None:
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale

    def make(weight: torch.Tensor) -> torch.Tensor:
        scale = per_tensor_amax_to_scale(weight.abs().max()) if two_levels else None
        return NVFP4Tensor.to_nvfp4(weight, per_tensor_scale=scale)

    found = seen(holding(make, BF16), rows(BF16), backward=True)
    effective = 4 + 8 / 16 + (32 / (N * K) if two_levels else 0)
    check_layer(found, "float4_e2m1fn", effective, inputs=None, bias_bytes=BIAS[BF16])
    check_forward(found, "float4_e2m1fn", "bfloat16", "bfloat16")
    check_backward(found, "float4_e2m1fn", "bfloat16", trains=False)


def test_an_embedding() -> None:
    holder = nn.Sequential(nn.Embedding(100, 64))
    config = Q.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=Q.PerGroup(32))
    Q.quantize_(holder, config, filter_fn=lambda module, _: isinstance(module, nn.Embedding))
    found = seen(holder[0], torch.arange(16))
    assert found.layer.weights is not None
    assert (found.layer.weights.precision.name, found.layer.weights.effective_bits) == ("int4", 5.25)
    assert found.flops("inference", part="quantisation") == 2 * 100 * 64  # the whole table is expanded


# Classes whose kernels need another device: built by hand and read.


def read(tensor: Any) -> Widths:
    found = reader_of(type(tensor))
    assert found is not None
    widths = found[1](tensor)
    assert widths is not None
    return widths


def bf16(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape, dtype=BF16)


def test_plain_int4() -> None:
    halves = torch.zeros(N, K // 2, dtype=torch.int8)
    tensor = Q.Int4Tensor(halves, bf16(K // 32, N), bf16(K // 32, N), [1, 32], (N, K))
    widths = read(tensor)
    assert widths.shapes == ((N, K),)
    assert widths.activations is None
    assert (widths.weights.precision.name, widths.weights.effective_bits) == ("int4", 4 + 2 * 16 / 32)
    with_inputs = Q.Int4Tensor(halves, bf16(K // 32, N), bf16(K // 32, N), [1, 32], (N, K), activation_dtype=E4M3)
    assert read(with_inputs).activations.precision.name == "float8_e4m3fn"


def test_int4_in_tiles() -> None:
    from torchao.quantization import Int4TilePackedTo4dTensor

    packed = torch.zeros(N // 8, K // 128, 32, 4, dtype=torch.int32)
    widths = read(Int4TilePackedTo4dTensor(packed, bf16(K // 64, N, 2), [1, 64], (N, K)))
    assert widths.shapes == ((N, K),)
    assert (widths.weights.precision.name, widths.weights.effective_bits) == ("int4", 4 + 2 * 16 / 64)


def test_int4_preshuffled_for_float8_inputs() -> None:
    from torchao.quantization import Int4PreshuffledTensor

    halves = torch.zeros(N, K // 2, dtype=torch.int8)
    scale = torch.zeros(K // 128, N, dtype=E4M3)
    tensor = Int4PreshuffledTensor(halves, scale, [1, 128], (N, K), row_scale=torch.zeros(N))
    widths = read(tensor)
    assert widths.weights.effective_bits == 4 + 8 / 128 + 32 / K
    assert widths.activations.precision.name == "float8_e4m3fn"


def test_int4_on_other_devices() -> None:
    from torchao.quantization import Int4PlainInt32Tensor

    words, zeros = torch.zeros(N, K // 8, dtype=torch.int32), torch.zeros(K // 32, N, dtype=torch.int8)
    widths = read(Int4PlainInt32Tensor(words, bf16(K // 32, N), zeros, [1, 32], (N, K)))
    assert (widths.weights.precision.name, widths.weights.effective_bits) == ("int4", 4 + (16 + 8) / 32)


def test_older_affine_tensors_by_stand_ins() -> None:
    """Their attributes, as torchao's public source had them; the classes themselves are gone from this version."""

    def stand_in(path: str, **attributes: Any) -> Any:
        module, _, name = path.rpartition(".")
        return type(name, (types.SimpleNamespace,), {"__module__": module})(**attributes)

    codes, scale = torch.zeros(N, K, dtype=torch.int8), torch.zeros(N, K // 32)
    inner = types.SimpleNamespace(int_data=codes, scale=scale, zero_point=None, _layout=None)
    told = {"block_size": (1, 32), "quant_min": -8, "quant_max": 7, "shape": (N, K), "numel": lambda: N * K}
    path = "torchao.dtypes.affine_quantized_tensor.AffineQuantizedTensor"
    weight = stand_in(path, tensor_impl=inner, **told)
    widths = read(weight)
    assert (widths.weights.precision.name, widths.weights.effective_bits) == ("int4", 4 + 32 / 32)

    def _int8_asymm_per_token_quant(x: Any) -> Any:
        return x

    outer = "torchao.quantization.linear_activation_quantized_tensor.LinearActivationQuantizedTensor"
    both = read(stand_in(outer, original_weight_tensor=weight, input_quant_func=_int8_asymm_per_token_quant))
    assert (both.weights.precision.name, both.activations.precision.name) == ("int4", "int8")
    floats = types.SimpleNamespace(float8_data=codes.to(E4M3), scale=torch.zeros(N), _layout=None)
    told |= {"quant_min": -448, "quant_max": 448}
    eight = read(stand_in(path, tensor_impl=floats, **told)).weights
    assert (eight.precision.name, eight.effective_bits) == ("float8_e4m3fn", 8 + 32 / K)


# Training.


def test_float8_training_multiplies_in_float8_both_ways() -> None:
    from torchao.float8 import convert_to_float8_training

    layer = convert_to_float8_training(nn.Sequential(linear(BF16)))[0]
    found = seen(layer, rows(BF16), backward=True)
    check_layer(
        found, "float8_e4m3fn", 8, inputs="float8_e4m3fn", bias_bytes=BIAS[BF16], kept_bytes=2 * N * K
    )  # the weight stays bfloat16
    check_forward(found, "float8_e4m3fn", "float8_e4m3fn", "float8_e4m3fn")
    check_backward(found, "float8_e4m3fn", "float8_e5m2", trains=True, gradient="float8_e5m2")


def test_float8_training_emulated_runs_in_float32() -> None:
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training

    layer = convert_to_float8_training(nn.Sequential(linear(BF16)), config=Float8LinearConfig(emulate=True))[0]
    found = seen(layer, rows(BF16), backward=True)
    check_forward(found, "float8_e4m3fn", "float8_e4m3fn", "float32")


def trained(name: str) -> nn.Module:
    import torchao.prototype.quantized_training as training

    return converted(getattr(training, name)(), BF16)


def test_int8_weights_that_train() -> None:
    found = seen(trained("int8_weight_only_quantized_training"), rows(BF16), backward=True)
    check_layer(found, "int8", 8 + 16 / K, inputs=None, bias_bytes=BIAS[BF16])
    check_forward(found, "int8", "bfloat16", "bfloat16")
    check_backward(found, "int8", "bfloat16", trains=True)


def test_ternary_weights_with_int8_inputs_are_multiplied_as_integers() -> None:
    found = seen(trained("bitnet_training"), rows(BF16), backward=True)
    check_layer(found, "ternary", 1.58, inputs="int8", bias_bytes=BIAS[BF16], kept_bytes=2 * N * K)
    check_forward(found, "ternary", "int8", "int8")
    check_backward(found, "ternary", "bfloat16", trains=True)


def test_a_weight_that_only_says_it_is_rounded() -> None:
    """torchao 0.18 never calls the kernel of this class: the product runs in bfloat16, and nothing else is claimed."""
    found = seen(trained("int8_mixed_precision_training"), rows(BF16), backward=True)
    products = found.products()
    assert {p.a.name for p in products} | {p.b.name for p in products} == {"bfloat16"}
    assert (found.layer.weights, found.layer.unknown) == (None, "")


def aware(**options: Any) -> Any:
    from torchao.quantization.qat import QATConfig

    return QATConfig(step="prepare", **options)


def fake(*args: Any, **options: Any) -> Any:
    from torchao.quantization.qat import IntxFakeQuantizeConfig

    return IntxFakeQuantizeConfig(*args, **options)


@pytest.mark.parametrize("bits", [2, 4])
def test_quantisation_aware_training(bits: int) -> None:
    config = aware(weight_config=fake(getattr(torch, f"int{bits}"), group_size=32))
    found = seen(converted(config), rows(), backward=True)
    check_layer(
        found, f"int{bits}", bits + 32 / 32, inputs=None, bias_bytes=BIAS[F32], kept_bytes=4 * N * K
    )  # a float32 scale for each group
    check_forward(found, f"int{bits}", "float32", "float32")
    check_backward(found, f"int{bits}", "float32", trains=True)


def test_quantisation_aware_training_of_inputs_too() -> None:
    base = Q.Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=Q.PerGroup(32))
    found = seen(converted(aware(base_config=base)), rows(), backward=True)
    check_layer(found, "int4", 5, inputs="int8", bias_bytes=BIAS[F32], kept_bytes=4 * N * K)
    check_forward(found, "int4", "int8", "float32")
    check_backward(found, "int4", "float32", trains=True)


def test_quantisation_aware_training_in_float8() -> None:
    found = seen(
        converted(aware(base_config=Q.Float8DynamicActivationFloat8WeightConfig()), BF16), rows(BF16), backward=True
    )
    check_layer(found, "float8_e4m3fn", 8, inputs="float8_e4m3fn", bias_bytes=BIAS[BF16], kept_bytes=2 * N * K)
    check_forward(found, "float8_e4m3fn", "float8_e4m3fn", "bfloat16")


def test_fake_quantisers_that_are_switched_off() -> None:
    layer: Any = converted(aware(weight_config=fake(torch.int4, group_size=32)))
    layer.weight_fake_quantizer.enabled = False
    found = seen(layer, rows())
    assert (found.layer.weights, found.layer.unknown) == (None, "")


def test_the_layer_after_quantisation_aware_training() -> None:
    from torchao.quantization.qat import Int8DynActInt4WeightQATQuantizer

    quantizer = Int8DynActInt4WeightQATQuantizer(groupsize=32)
    layer = quantizer.convert(quantizer.prepare(nn.Sequential(linear(bias=False))))[0]
    assert type(layer).__name__ == "Int8DynActInt4WeightLinear"
    found = seen(nn.Sequential(layer, nn.Linear(N, 2)), rows())
    layer_seen = found.run.layers["0.0"]
    assert layer_seen.weights is not None
    assert layer_seen.activations is not None
    assert (layer_seen.weights.precision.name, layer_seen.weights.effective_bits) == ("int4", 4 + 64 / 32)
    assert (layer_seen.activations.precision.name, layer_seen.shapes) == ("int8", ((N, K),))
    product = found.products("inference")[0]
    assert (product.a.name, product.b.name, product.executed.name) == ("int8", "int4", "float32")


@pytest.mark.parametrize(
    ("name", "format", "effective"),
    [("AdamW8bit", "uint8", 8 + 32 / 256), ("AdamW4bit", "uint4", 4 + 32 / 128), ("AdamWFp8", "float8_e4m3fn", 8.125)],
)
def test_low_bit_optimizers(name: str, format: str, effective: float) -> None:
    """Their steps are compiled as a whole unless torch is told to run eagerly, which a session does."""
    import torchao.optim

    net = nn.Sequential(linear(), nn.ReLU(), nn.Linear(N, 10))
    optimizer = getattr(torchao.optim, name)(net.parameters(), lr=1e-3)
    before = net[0].weight.detach().clone()
    with bitwatt.measure("step", keep=False) as session:
        net(rows()).sum().backward()
        optimizer.step()
    assert not torch.equal(before, net[0].weight)
    done: Any = bitwatt.totals(session.run, strict=True).by("phase")
    parameters = K * N + N + 10 * N + 10
    assert done["optimizer"] > 12 * parameters  # Adam's own arithmetic, and going to and from the formats
    assert done["forward"] == FLOPS + M * N + 2 * M * N * 10 + M * 10
    for moment in ("exp_avg", "exp_avg_sq"):
        widths = read(optimizer.state[net[0].weight][moment])
        assert (widths.weights.precision.name, widths.weights.effective_bits) == (format, effective)
        assert widths.shapes == ((N, K),)


CONFIGS: dict[str, Callable[[], Any]] = {
    "int8": Q.Int8WeightOnlyConfig,
    "int8 dynamic": Q.Int8DynamicActivationInt8WeightConfig,
    "int4": lambda: Q.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=Q.PerGroup(32)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", CONFIGS)
def test_models_do_the_same_products_as_in_float(name: str, kind: str) -> None:
    """torchao takes linear layers; GPT-2's others are Conv1D and stay as they are."""
    model = MODELS[name]()
    expected = {path: kind.partition(" ")[0] for path, part in model.named_modules() if type(part) is nn.Linear}
    Q.quantize_(model, CONFIGS[kind]())
    run = inferred(model, given(name))
    assert formats(run) == expected
    assert expected
    assert macs(run) == float_macs(name)
