"""The probe on libraries that nobody has described: it claims what is beyond doubt, and says why it claims no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from bitwatt.precision import resolve
from precision.quantised import seen

IN, OUT = 64, 32


def told(module: nn.Module) -> tuple[str, str]:
    """Format of the weights, format of the activations; both empty where nothing is claimed."""
    widths, _ = resolve(module)
    parts = (widths.weights, widths.activations) if widths is not None else (None, None)
    weights, activations = ((part.precision.name if part is not None else "") for part in parts)
    return weights, activations


def refused(module: nn.Module) -> str:
    """Nothing is claimed, and the reason."""
    widths, reason = resolve(module)
    assert widths is None
    return reason


def give(module: nn.Module, **attributes: Any) -> nn.Module:
    for name, value in attributes.items():
        setattr(module, name, value)
    return module


class QuantLinear(nn.Linear):
    """A layer that is called quantised and says what its author wants it to."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(IN, OUT)
        give(self, **attributes)


class Quantizer(nn.Module):
    def __init__(self, **attributes: Any) -> None:
        super().__init__()
        give(self, **attributes)


def packed(held: float, dtype: torch.dtype = torch.uint8, **attributes: Any) -> nn.Module:
    """A layer whose container has room for `held` bits a value, with a float16 scale for each row."""
    size = torch.zeros((), dtype=dtype).element_size() * 8
    layer = give(nn.Module(), in_features=IN, out_features=OUT, **attributes)
    layer.register_buffer("qweight", torch.zeros(OUT, int(IN * held / size), dtype=dtype))
    layer.register_buffer("scales", torch.ones(OUT, 1).half())
    return layer


# What the probe should find out ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "weights", "activations"),
    [
        (lambda: QuantLinear(w_bits=4, a_bits=8), "int4", "int8"),
        (lambda: QuantLinear(weight_bit_width=3), "int3", ""),
        (lambda: QuantLinear(nbits=1.58), "ternary", ""),
        (lambda: QuantLinear(w_bits=2, a_bits=32), "int2", ""),  # activations stay as they are
        (lambda: QuantLinear(bits=4, quant_type="nf4"), "nf4", ""),
        (lambda: QuantLinear(elem_dtype=torch.float8_e5m2), "float8_e5m2", ""),
        (lambda: QuantLinear(weight_qtype=SimpleNamespace(name="qint4", bits=4)), "int4", ""),
        # LSQ keeps the bounds of its integers only, as fake quantisers of torch do
        (lambda: QuantLinear(weight_quantizer=Quantizer(thd_neg=-4, thd_pos=3)), "int3", ""),
        (lambda: QuantLinear(weight_quantizer=Quantizer(quant_min=-1, quant_max=1)), "ternary", ""),
        (lambda: QuantLinear(weight_quantizer=Quantizer(n_levels=16)), "uint4", ""),
        # a property of that name computes; behind it lies the number
        (lambda: QuantLinear(weight_quantizer=Quantizer(_num_bits=6, _disabled=False)), "int6", ""),
        # exponent and mantissa, on a quantiser for weights only
        (lambda: QuantLinear(weight_quantizer=Quantizer(num_bits=(4, 3))), "float8_e4m3fn", ""),
        (lambda: QuantLinear(weight_quantizer=Quantizer(num_bits=(2, 1))), "float4_e2m1fn", ""),
        # an ordinary class with quantisers of its own for both
        (
            lambda: give(nn.Linear(IN, OUT), weight_quantizer=Quantizer(bits=5), input_quantizer=Quantizer(bits=7)),
            "int5",
            "int7",
        ),
        (lambda: give(nn.Conv2d(3, 8, 3), w_quant=Quantizer(bit_width=4)), "int4", ""),
        # a scheme for both
        (
            lambda: give(
                nn.Linear(IN, OUT),
                quantization_scheme=SimpleNamespace(
                    weights=SimpleNamespace(num_bits=4, type="int"),
                    input_activations=SimpleNamespace(num_bits=8, type="float"),
                ),
            ),
            "int4",
            "float8",
        ),
        # a number kept as a buffer
        (lambda: _buffered(), "int4", ""),
        (lambda: packed(4, bits=4), "int4", ""),
        (lambda: packed(4, torch.int32, w_bit=4), "int4", ""),
        (lambda: packed(2, bits=1.58), "ternary", ""),
        (lambda: packed(4, bits=3), "int3", ""),  # three bits in nibbles, says the layer itself
        (lambda: packed(8, bits=5), "int5", ""),  # one to a byte
        (lambda: packed(4, quantization_config={"bits": 4}), "int4", ""),
        (lambda: packed(8, torch.int8, num_bits=8), "int8", ""),
    ],
)
def test_widths_that_are_beyond_doubt(build: Callable[[], nn.Module], weights: str, activations: str) -> None:
    module = build()
    assert told(module) == (weights, activations)
    assert resolve(module)[1] == ""


def _buffered() -> nn.Module:
    layer = QuantLinear()
    layer.register_buffer("w_bits", torch.tensor(4))
    return layer


def test_scales_beside_packed_weights_count() -> None:
    widths, _ = resolve(packed(4, bits=4))
    assert widths.weights.effective_bits == 4 + 16 / IN
    assert widths.weights.stored
    assert widths.shapes == ((OUT, IN),)
    assert widths.weights.source == "probe: bits=int4"


def test_a_float8_weight_speaks_for_itself() -> None:
    layer = nn.Linear(IN, OUT)
    layer.weight = nn.Parameter(layer.weight.to(torch.float8_e4m3fn), requires_grad=False)
    layer.register_buffer("weight_scale", torch.ones(OUT, 1))
    widths, _ = resolve(layer)
    assert widths.weights.precision.name == "float8_e4m3fn"
    assert widths.weights.effective_bits == 8 + 32 / IN


class Rounded(QuantLinear):
    """Rounds its weights to `w_bits`, straight through."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        top = 2 ** (self.w_bits - 1) - 1
        scale = self.weight.detach().abs().amax(1, keepdim=True) / top
        rounded = (self.weight / scale).round().clamp(-top, top) * scale
        return nn.functional.linear(x, self.weight + (rounded - self.weight).detach(), self.bias)


def test_a_hand_written_layer_is_counted_like_one_of_a_library() -> None:
    found = seen(Rounded(w_bits=4), torch.randn(24, IN), backward=True)
    (product,) = found.products("forward")
    assert (product.a.name, product.b.name, product.executed.name) == ("float32", "int4", "float32")
    assert found.flops("forward", kind="mac") == 2 * 24 * IN * OUT
    assert found.flops("backward", kind="mac") == 4 * 24 * IN * OUT
    assert found.flops("forward", part="quantisation") > 2 * IN * OUT
    assert not found.layer.weights.stored


# What it must not claim -----------------------------------------------------------------------------------------------


class HashLinear(nn.Linear):
    """Locality-sensitive hashing: `bits` is the length of a hash."""

    def __init__(self) -> None:
        super().__init__(IN, OUT)
        self.bits = self.n_bits = 4


class QuantileHead(nn.Linear):
    """Quantiles, not quantised; and so are quantum circuits."""

    def __init__(self) -> None:
        super().__init__(IN, OUT)
        self.num_bits = 8


class QuantumLayer(QuantileHead):
    pass


class BinaryClassifier(QuantileHead):
    pass


class LayerScale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight, self.scale = nn.Parameter(torch.ones(OUT, IN)), nn.Parameter(torch.ones(OUT, 1))


@dataclass
class ModelConfig:
    """The configuration of a whole model, hung on every layer of it."""

    hidden_size: int = IN
    quantization_config: Any = None


def _skipped() -> nn.Module:
    """A layer that was left out (modules_to_not_convert) of a model whose configuration says four bits."""
    return give(nn.Linear(IN, OUT).bfloat16(), quantization_config={"bits": 4, "modules_to_not_convert": ["lm_head"]})


def _indexed() -> nn.Module:
    table = nn.Embedding(100, IN)
    table.register_buffer("position_ids", torch.arange(100)[None])
    table.register_buffer("scale", torch.ones(1))
    return table


def _vector_quantised() -> nn.Module:
    """A codec whose *values* go through a codebook: its weights are ordinary."""
    return give(nn.Conv1d(3, 8, 3), quantizer=Quantizer(n_bits=10, codebook_size=1024))


@pytest.mark.parametrize(
    "build",
    [
        HashLinear,
        QuantileHead,
        QuantumLayer,
        BinaryClassifier,
        LayerScale,
        _skipped,
        _indexed,
        _vector_quantised,
        lambda: give(nn.Linear(IN, OUT), config=ModelConfig(quantization_config={"bits": 4})),
        lambda: give(nn.Linear(IN, OUT), config=SimpleNamespace(quantization_config=SimpleNamespace(bits=4))),
        lambda: give(nn.Linear(IN, OUT), output_quantizer=Quantizer(bits=4)),
        lambda: nn.BatchNorm2d(8),
        lambda: nn.LayerNorm(8),
        lambda: nn.MultiheadAttention(8, 2),
        lambda: nn.utils.parametrizations.weight_norm(nn.Linear(IN, OUT)),
        lambda: nn.utils.weight_norm(nn.Linear(IN, OUT)),
        lambda: QuantLinear(w_bits=32),  # how such layers say that they are off
        lambda: QuantLinear(w_bits=16, a_bits=16),
    ],
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_ordinary_layers_are_neither_claimed_nor_suspected(build: Callable[[], nn.Module]) -> None:
    assert resolve(build()) == (None, "")


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (lambda: QuantLinear(), "does not tell its width"),
        (lambda: QuantLinear(w_bits=4, num_bits=8), "do not agree"),
        (lambda: QuantLinear(bits=4, weight_quantizer=Quantizer(bits=8)), "do not agree"),
        (lambda: QuantLinear(w_bits=(4, 8)), "is no width"),  # weights and activations? exponent and mantissa?
        (lambda: QuantLinear(w_bits=0), "is no width"),
        (lambda: QuantLinear(w_bits=4.7), "is no width"),
        (lambda: QuantLinear(w_bits="auto"), "is no width"),
        (lambda: QuantLinear(weight_quantizer=Quantizer(num_bits=(4, 8))), "is no width"),
        (lambda: QuantLinear(weight_quantizer=Quantizer(num_bits=8, enabled=False)), "enabled=False"),
        (lambda: QuantLinear(weight_quantizer=Quantizer(num_bits=8, is_quant_enabled=False)), "enabled=False"),
        (lambda: QuantLinear(weight_quantizer=Quantizer(num_bits=8, _disabled=True)), "_disabled=True"),
        (lambda: QuantLinear(w_bits=4, use_weight_quant=False), "use_weight_quant=False"),
        (lambda: QuantLinear(w_bits=4, mode="raw"), "mode=raw"),
        (lambda: give(nn.Linear(IN, OUT), w_bits=4), "ordinary float32 weights"),  # who rounds it?
        (lambda: packed(4), "nothing tells"),
        (lambda: packed(4, bits=8), "4 bits for each value"),
        (lambda: packed(2, bits=4), "2 bits for each value"),
        (lambda: packed(8, torch.int32, bits=2), "8 bits for each value"),
        (lambda: packed(8, torch.int8, quantization_config={"bits": 4}), "8 bits for each value"),  # a wider layer
        (lambda: packed(4, bits=4, w_bit=8), "do not agree"),
        (lambda: _of_no_size(), "not the size"),
        (lambda: _contradicted(), "float8_e4m3fn"),
        (lambda: _integers(), "nothing tells"),
    ],
)
def test_doubts_are_told_and_nothing_is_claimed(build: Callable[[], nn.Module], why: str) -> None:
    assert why in refused(build())


def _of_no_size() -> nn.Module:
    layer: Any = packed(4, bits=4)
    del layer.in_features
    return layer


def _contradicted() -> nn.Module:
    layer = QuantLinear(w_bits=4)
    layer.weight = nn.Parameter(layer.weight.to(torch.float8_e4m3fn), requires_grad=False)
    return layer


def _integers() -> nn.Module:
    layer = nn.Linear(IN, OUT)
    layer.weight = nn.Parameter(torch.zeros(IN * OUT // 2, 1, dtype=torch.uint8), requires_grad=False)
    return layer


class Strange(torch.Tensor):
    """A tensor of a library nobody knows: four bits in half a byte each, expanded when it is used."""

    @staticmethod
    def __new__(cls, data: torch.Tensor, shape: tuple[int, ...], **_: Any) -> Strange:
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=torch.float32, requires_grad=False)

    def __init__(self, data: torch.Tensor, shape: tuple[int, ...], **attributes: Any) -> None:
        self.data_, self.scale = data, torch.ones(shape[0], 1)
        for name, value in attributes.items():
            setattr(self, name, value)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.detach.default:
            return args[0]
        raise NotImplementedError(func)


def _strange(held: float, **attributes: Any) -> nn.Module:
    layer = nn.Module()
    data = torch.zeros(OUT, int(IN * held / 8), dtype=torch.uint8)
    layer.register_buffer("weight", Strange(data, (OUT, IN), **attributes))
    return layer


def test_tensors_of_an_unknown_class() -> None:
    widths, _ = resolve(_strange(4, bits=4))
    assert widths.weights.precision.name == "int4"
    assert widths.weights.effective_bits == 4 + 32 / IN
    assert "nothing is known of" in refused(_strange(4))
    assert "2 bits for each value" in refused(_strange(2, bits=4))


def test_attributes_that_raise_cost_nothing() -> None:
    class Trap(QuantLinear):
        @property
        def bits(self) -> int:
            raise RuntimeError("computed")

    assert "does not tell its width" in refused(Trap())


def test_a_layer_in_doubt_is_counted_by_its_dtype() -> None:
    found = seen(QuantLinear(w_bits=4, num_bits=8), torch.randn(8, IN))
    assert "do not agree" in found.layer.unknown
    (product,) = found.products("inference")
    assert (product.a.name, product.b.name) == ("float32", "float32")
