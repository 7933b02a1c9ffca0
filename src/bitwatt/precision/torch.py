"""torch.ao: packed int8 modules, quantisation-aware training and, in `torch_graphs`, what PT2E makes of a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bitwatt.precision import torch_graphs
from bitwatt.precision.formats import format_named, integer
from bitwatt.precision.registry import Widths, precision, quantised
from bitwatt.records import Quantised

_STATIC, _DYNAMIC = "torch.ao.nn.quantized.modules", "torch.ao.nn.quantized.dynamic.modules"
#: Convolutions, and those with an activation or an addition fused in, inherit from these.
_CONVOLUTIONS = f"{_STATIC}.conv._ConvNd"
_GATES = {"LSTM": 4, "LSTMCell": 4, "GRU": 3, "GRUCell": 3, "RNNCell": 1}
_IN_INT8 = quantised(integer(8), source="quantised on the way in", stored=False)


@precision(f"{_STATIC}.linear.Linear", _CONVOLUTIONS)
def static(module: Any) -> Widths:
    """Activations arrive in eight bits: the op itself shows it."""
    return _packed([_unpacked(module)])


@precision(f"{_DYNAMIC}.linear.Linear", f"{_DYNAMIC}.conv.*")
def dynamic(module: Any) -> Widths:
    weight = _unpacked(module)
    return _packed([weight], None if weight.is_floating_point() else _IN_INT8)


@precision(f"{_STATIC}.embedding_ops.Embedding")
def embedding(module: Any) -> Widths:
    return _packed([module._packed_params._weight()])


@precision(f"{_DYNAMIC}.rnn.RNNBase")
def recurrent(module: Any) -> Widths:
    """Two weights for each layer and direction. They are inside script objects, which tell neither size nor scales."""
    gates, hidden = _GATES[type(module).__name__] * module.hidden_size, module.hidden_size
    directions = 2 if module.bidirectional else 1
    shapes: list[tuple[int, int]] = []
    for layer in range(module.num_layers):
        width = module.input_size if layer == 0 else hidden * directions
        shapes += [(gates, width), (gates, hidden)] * directions
    return _recurrent(module.dtype, shapes)


@precision(f"{_DYNAMIC}.rnn.RNNCellBase")
def cell(module: Any) -> Widths:
    gates = _GATES[type(module).__name__] * module.hidden_size
    return _recurrent(module.weight_dtype, [(gates, module.input_size), (gates, module.hidden_size)])


def _recurrent(dtype: Any, shapes: list[tuple[int, int]]) -> Widths:
    count = sum(map(math.prod, shapes))
    if "float16" in str(dtype):
        return Widths(quantised("float16", source="dtype=float16"), shapes=tuple(shapes))
    scales = len(shapes) * _PER_TENSOR_BITS  # quantize_dynamic knows no other scheme for them
    value = integer(8)
    weights = Quantised(value, value.bits + scales / count, "dtype=qint8, one scale per weight")
    return Widths(weights, _IN_INT8, tuple(shapes))


@precision("torch.ao.nn.qat.*", "torch.ao.nn.intrinsic.qat.*")
def training(module: Any) -> Widths | None:
    """Quantisation-aware: rounded by a fake quantiser. Its like for activations sits behind each layer, so what comes
    in has passed the one of the layer before, which the same qconfig has made."""
    quantiser: Any = getattr(module, "weight_fake_quant", None)
    value = torch_graphs.fake_quantised(quantiser)
    if value is None:
        return None
    weight = module._parameters["weight"]
    scales = weight.shape[quantiser.ch_axis] if getattr(quantiser, "is_per_channel", False) else 1
    zeros = 0 if "symmetric" in str(quantiser.qscheme) else 32
    source = f"weight_fake_quant {quantiser.quant_min}..{quantiser.quant_max}, {scales} scales"
    weights = Quantised(value, value.bits + scales * (32 + zeros) / weight.numel(), source, stored=False)
    post: Any = getattr(module, "activation_post_process", None)
    inputs = torch_graphs.fake_quantised(post)
    if inputs is None:
        return Widths(weights)
    told = f"activation_post_process {post.quant_min}..{post.quant_max}"
    return Widths(weights, quantised(inputs, source=told, stored=False))


@precision("torch.ao.nn.quantized.reference.modules.*")
def reference(module: Any) -> Widths | None:
    """Modules that stand for quantised ones in a converted graph: a float weight that is rounded in each forward."""
    dtype = str(getattr(module, "weight_dtype", ""))
    weight = module._parameters.get("weight")
    if "int" not in dtype or weight is None:
        return None
    beside = [module._buffers.get("weight_scale"), module._buffers.get("weight_zero_point")]
    value = format_named(dtype)
    return Widths(quantised(value, weight.numel(), beside=beside, source=f"weight_dtype={dtype}", stored=False))


@precision("torch.ao.pruning.sparsifier.utils.FakeSparsity")
def pruned(parametrisation: Any) -> Widths:
    """Of a parametrised weight the layer itself holds nothing, so its shape is told here."""
    return Widths(shapes=(tuple(parametrisation.mask.shape),))


#: A scale in double precision and a zero point of 64 bits: what a quantised tensor keeps.
_PER_TENSOR_BITS = 128


def _unpacked(module: Any) -> Any:
    """The weight in a packed module. It is nowhere else, so it is taken out once: a copy, no arithmetic."""
    return module._weight_bias()[0]


def _packed(weights: Sequence[Any], activations: Quantised | None = None) -> Widths:
    count, beside = 0, 0
    for weight in weights:
        count += weight.numel()
        if weight.is_floating_point():
            value, scheme = format_named("float16"), "packed as float16"
        elif "per_channel" in str(weight.qscheme()):
            value, scheme = format_named(str(weight.dtype)), str(weight.qscheme()).removeprefix("torch.")
            for tensor in (weight.q_per_channel_scales(), weight.q_per_channel_zero_points()):
                beside += tensor.numel() * tensor.element_size() * 8
        else:
            value, scheme = format_named(str(weight.dtype)), str(weight.qscheme()).removeprefix("torch.")
            beside += _PER_TENSOR_BITS
    shapes = tuple(tuple(weight.shape) for weight in weights)
    return Widths(Quantised(value, value.bits + beside / count, scheme), activations, shapes)
