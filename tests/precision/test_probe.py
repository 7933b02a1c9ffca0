"""The probe on libraries that nobody has described: it claims what is beyond doubt, and says why it claims no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from bitwatt.backends.torch.layers import describe
from bitwatt.precision import modelopt, resolve
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
        (lambda: QuantLinear(w_bits=1.58), "ternary", ""),
        (lambda: QuantLinear(w_bits=2, a_bits=32), "int2", ""),  # activations stay as they are
        (lambda: QuantLinear(w_bits=4, bits=4, quant_type="nf4"), "nf4", ""),
        (lambda: QuantLinear(weight_dtype=torch.float8_e5m2), "float8_e5m2", ""),
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
        # its own name, or a weight quantiser of its own, outweighs what else the class is called by
        (lambda: WeightActQuantLinear(w_bits=4, a_bits=8), "int4", "int8"),
        (lambda: ActQuantLinear(weight_quantizer=Quantizer(bits=4), act_quantizer=Quantizer(bits=8)), "int4", "int8"),
        # states that are over
        (lambda: QuantLinear(w_bits=4, calibrating=False, calibrated=True, warmup_done=True), "int4", ""),
        (lambda: QuantLinear(w_bits=4, step=100, quant_start_step=100), "int4", ""),
        (lambda: QuantLinear(w_bits=4, quant_start_step=0), "int4", ""),
        (lambda: QuantLinear(weight_fake_quant=_fake_quantiser()), "int4", ""),
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


class ActQuantLinear(QuantLinear):
    """Rounds its input; of its weights that says nothing."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = x.abs().amax() / 127
        return super().forward((x / scale).round() * scale)


class WeightActQuantLinear(QuantLinear):
    pass


def _fake_quantiser() -> nn.Module:
    """torch's own, which goes on observing while it rounds."""
    return torch.ao.quantization.FakeQuantize(quant_min=-8, quant_max=7, dtype=torch.qint8)


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


class OneToAByte(nn.Module):
    """Integers of a few bits, each in a byte of its own, from `low` to `high`."""

    def __init__(self, low: int = -8, high: int = 7, name: str = "qweight", **attributes: Any) -> None:
        super().__init__()
        self.in_features = self.out_features = 64
        values = torch.arange(64 * 64).reshape(64, 64) % (high - low + 1) + low
        self.register_buffer(name, values.to(torch.int8))
        self.register_buffer("scales", torch.ones(64, 1))
        give(self, **attributes)


def test_room_that_values_do_not_need_is_memory_all_the_same() -> None:
    layer = describe(OneToAByte(bits=4))
    assert layer.weights.precision.name == "int4"
    assert layer.weights.effective_bits == 4 + 32 / 64
    assert layer.weights.memory_bits == 8 + 32 / 64
    assert layer.weight_bytes == 64 * 64 + 64 * 4


def test_values_with_a_byte_each_are_looked_at() -> None:
    assert told(OneToAByte(0, 15, bits=4)) == ("int4", "")
    assert told(OneToAByte(-1, 1, bits=1.58)) == ("ternary", "")
    assert "values from -128 to 127" in refused(OneToAByte(-128, 127, "weight", bits=4))
    assert "values from -128 to 127" in refused(OneToAByte(-128, 127, w_bits=4))
    assert told(OneToAByte(-128, 127, bits=8)) == ("int8", "")
    turned: Any = OneToAByte(-128, 127, bits=4)
    turned.qweight = turned.qweight.t()
    assert "values from" in refused(turned)
    assert "cannot be seen here" in refused(OneToAByte(bits=4).to("meta"))


class Packed4(nn.Module):
    """Two values to a byte, under a name that tells nothing."""

    def __init__(self, *, loose: bool = False, shape: tuple[int, ...] = (16, 8), **attributes: Any) -> None:
        super().__init__()
        self.in_features = self.out_features = 16
        give(self, **attributes)
        tensors = {"data": torch.zeros(shape, dtype=torch.uint8), "scale": torch.ones(16, 1)}
        for name, tensor in tensors.items():
            if loose:
                setattr(self, name, tensor)
            else:
                self.register_buffer(name, tensor)
        self.bias = nn.Parameter(torch.zeros(16))


@pytest.mark.parametrize("loose", [False, True])
@pytest.mark.parametrize("shape", [(16, 8), (128,)])
def test_packed_weights_of_no_name_where_sizes_and_bits_agree(loose: bool, shape: tuple[int, ...]) -> None:
    layer = describe(Packed4(bits=4, loose=loose, shape=shape))
    assert layer.weights.precision.name == "int4"
    assert layer.weights.effective_bits == 4 + 32 / 16
    assert layer.shapes == ((16, 16),)


def test_packed_weights_of_no_name_are_told_where_they_do_not() -> None:
    assert "data uint8[16, 8], and nothing tells" in refused(Packed4())
    assert "4 bits for each value" in refused(Packed4(bits=8))
    assert "4 bits for each value" in refused(Packed4(bits=3))  # in nibbles? nothing else tells that these are weights
    assert "8 bits for each value" in refused(Packed4(bits=4, shape=(16, 16)))
    assert "nothing tells" in refused(give(Packed4(), scale=None))
    assert "keeps several" in refused(give(Packed4(bits=4), more=torch.zeros(16, 8, dtype=torch.uint8)))
    unsized: Any = Packed4(bits=4)
    del unsized.in_features
    assert "not the size" in refused(unsized)
    stranger = give(nn.Module(), in_features=IN, out_features=OUT)
    stranger.register_buffer("content", Strange(torch.zeros(OUT, IN // 2, dtype=torch.uint8), (OUT, IN)))
    assert "content as a Strange, which nothing is known of" in refused(stranger)


def test_packed_weights_that_are_plain_attributes() -> None:
    layer = give(nn.Module(), in_features=IN, out_features=OUT, bits=4, scales=torch.ones(OUT, 1).half())
    layer.qweight = torch.zeros(OUT, IN // 2, dtype=torch.uint8)
    widths, _ = resolve(layer)
    assert (widths.weights.precision.name, widths.weights.effective_bits) == ("int4", 4 + 16 / IN)
    del layer.bits
    assert "nothing tells" in refused(layer)


class Grid(nn.Module):
    """A parametrisation: what is multiplied lies on a grid."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__()
        give(self, **attributes)

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight + ((weight * 7).round() / 7 - weight).detach()


class FakeQuant(Grid):
    pass


class RoundWeights(Grid):
    pass


def _parametrised(step: nn.Module, layer: nn.Module | None = None) -> nn.Module:
    return nn.utils.parametrize.register_parametrization(layer or nn.Linear(IN, OUT), "weight", step)


def test_parametrisations_that_round_are_told() -> None:
    assert "weight is made by Grid, which says bits=int4" in refused(_parametrised(Grid(bits=4)))
    assert "made by FakeQuant, which says no width" in refused(_parametrised(FakeQuant()))
    assert "made by RoundWeights" in refused(_parametrised(RoundWeights()))
    assert "its weight is made by a parametrisation" in refused(_parametrised(Grid(), QuantLinear(w_bits=4)))
    for ordinary in (Grid(), FakeQuant(bits=32)):
        assert resolve(_parametrised(ordinary)) == (None, "")
    found = seen(_parametrised(Grid(bits=4)), torch.randn(8, IN))
    assert "made by Grid" in found.layer.unknown


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


class GradQuantLinear(QuantLinear):
    pass


class OutputQuantizedLinear(QuantLinear):
    pass


class HashQuantLinear(QuantLinear):
    pass


class QLinear(nn.Linear):
    """Q for query."""

    def __init__(self) -> None:
        super().__init__(IN, OUT)
        self.bits = 8


class KVQuantAttention(nn.Module):
    """Keys and values are kept in two bits, weights as they are."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__()
        self.qkv_weight = nn.Parameter(torch.ones(3 * IN, IN))
        give(self, **attributes)


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


def _pointed() -> nn.Module:
    """Integers that point, in a module of a layer's sizes and with a scale."""
    layer = give(nn.Module(), in_features=IN, out_features=OUT, scale=0.125)
    layer.register_buffer("relative_position_index", torch.zeros(16, 16, dtype=torch.int64))
    layer.register_buffer("token_ids", torch.zeros(1, 16, dtype=torch.int32))
    layer.register_buffer("neighbours", torch.zeros(16, 16, dtype=torch.int64))
    return layer


def _masked() -> nn.Module:
    """An ordinary layer that keeps integers for something else."""
    return give(nn.Linear(IN, OUT), bits=4, degrees=torch.zeros(OUT, IN, dtype=torch.int32))


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
        _pointed,
        _masked,
        lambda: give(nn.Linear(IN, OUT), config=ModelConfig(quantization_config={"bits": 4})),
        lambda: give(nn.Linear(IN, OUT), config=SimpleNamespace(quantization_config=SimpleNamespace(bits=4))),
        lambda: give(nn.Linear(IN, OUT), output_quantizer=Quantizer(bits=4)),
        lambda: nn.BatchNorm2d(8),
        lambda: nn.LayerNorm(8),
        lambda: nn.MultiheadAttention(8, 2),
        lambda: torch.jit.script(nn.Linear(IN, OUT)),
        lambda: nn.utils.parametrizations.weight_norm(nn.Linear(IN, OUT)),
        lambda: nn.utils.weight_norm(nn.Linear(IN, OUT)),
        lambda: QuantLinear(w_bits=32),  # how such layers say that they are off
        lambda: QuantLinear(w_bits=16, a_bits=16),
    ],
)
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_ordinary_layers_are_neither_claimed_nor_suspected(build: Callable[[], nn.Module]) -> None:
    assert resolve(build()) == (None, "")


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (lambda: QuantLinear(), "does not tell its width"),
        # bits of what? of inputs, of gradients, of outputs, of a cache, of a query's layer
        (lambda: ActQuantLinear(bits=8), "not that these are its float32 weights'"),
        (lambda: GradQuantLinear(num_bits=4), "not that these are its float32 weights'"),
        (lambda: OutputQuantizedLinear(n_bits=8), "not that these are its float32 weights'"),
        (lambda: KVQuantAttention(nbits=2), "not that these are its float32 weights'"),
        (lambda: QLinear(), "not that these are its float32 weights'"),
        (lambda: QuantLinear(bits=4, quant_type="nf4"), "not that these are its float32 weights'"),
        (lambda: QuantLinear(quantizer=Quantizer(bits=4)), "not that these are its float32 weights'"),
        (lambda: ActQuantLinear(w_bits=4), "something other than weights"),
        (lambda: KVQuantAttention(w_bits=4), "something other than weights"),
        (lambda: HashQuantLinear(w_bits=4), "something other than weights"),
        # not yet
        (lambda: QuantLinear(w_bits=4, calibrating=True), "calibrating=True"),
        (lambda: QuantLinear(w_bits=4, is_calibrated=False), "is_calibrated=False"),
        (lambda: QuantLinear(w_bits=4, observe=True), "observe=True"),
        (lambda: QuantLinear(w_bits=4, in_warmup=True), "in_warmup=True"),
        (lambda: QuantLinear(w_bits=4, step=10, quant_start_step=100), "quant_start_step=100"),
        (lambda: QuantLinear(w_bits=4, warmup_steps=100), "warmup_steps=100"),
        (lambda: QuantLinear(w_bits=4, step=500, start_epoch=3, epoch=1), "start_epoch=3"),
        (lambda: QuantLinear(w_bits=4, enabled=False), "enabled=False"),
        (lambda: QuantLinear(w_bits=4, state="observe"), "state=observe"),
        (lambda: QuantLinear(weight_quantizer=Quantizer(num_bits=8, _if_quant=False)), "_if_quant=False"),
        (lambda: QuantLinear(weight_quantizer=Quantizer(num_bits=8, _if_calib=True)), "_if_calib=True"),
        (lambda: give(nn.Linear(IN, OUT), weight_quantizer=Quantizer(bits=8, calibrating=True)), "calibrating=True"),
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
        (lambda: QuantLinear(weight_bit=8, quant_mode=False), "quant_mode=False"),  # I-BERT, before it is tuned
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


# ModelOpt, as its layers are built; the library itself is not installed here ------------------------------------------


def _tensor_quantiser(bits: Any, blocks: Any = None, *, disabled: bool = False) -> nn.Module:
    return Quantizer(_num_bits=bits, _block_sizes=blocks, _axis=None, _disabled=disabled)


def test_quantisers_one_after_the_other() -> None:
    """W4A8: integers of four bits are stored, and expanded to float8 for the product."""
    four, eight = _tensor_quantiser(4, {-1: 16}), _tensor_quantiser((4, 3))
    layer = give(nn.Linear(IN, OUT), weight_quantizer=nn.Sequential(four, eight), input_quantizer=eight)
    widths = modelopt.layer(layer)
    assert (widths.weights.precision.name, widths.activations.precision.name) == ("int4", "float8_e4m3fn")
    assert widths.weights.effective_bits == 4 + 32 / 16
    assert widths.weights.source.endswith("the first of 2")
    off = [_tensor_quantiser(4, disabled=True), _tensor_quantiser((4, 3), disabled=True)]
    assert modelopt.layer(give(nn.Linear(IN, OUT), weight_quantizer=nn.Sequential(*off))) is None
