"""The layers that transformers itself brings along for quantised checkpoints."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.precision.formats import format_named, integer
from bitwatt.precision.packed import grouped, sides, tensor
from bitwatt.precision.registry import Widths, precision, quantised
from bitwatt.records import Quantised

_HERE = "transformers.integrations"
_FP4 = format_named("float4_e2m1fn")
_IN_INT8 = quantised(integer(8), source="int8 per token, dynamic", stored=False)


@precision(f"{_HERE}.bitnet.BitLinear")
def bitnet(module: Any) -> Widths:
    """Four ternary values to a byte, one scale (BitNet b1.58, 2402.17764); activations in int8."""
    shape = sides(module)
    scale = [tensor(module, "weight_scale")]
    weights = quantised("ternary", math.prod(shape), beside=scale, source="four values to a byte, one scale")
    return Widths(weights, _IN_INT8, (shape,))


@precision(f"{_HERE}.bitnet.AutoBitLinear")
def auto_bitnet(module: Any) -> Widths:
    """Floats that are rounded to ternary values in each forward, or have been when they were stored."""
    scale, count = [tensor(module, "weight_scale")], math.prod(sides(module))
    source = f"online_quant={module.online_quant}"
    return Widths(quantised("ternary", count, beside=scale, source=source, stored=False), _IN_INT8)


@precision(f"{_HERE}.finegrained_fp8.FP8Linear", f"{_HERE}.fbgemm_fp8.FbgemmFp8Linear")
def fp8_linear(module: Any) -> Widths | None:
    """float8 in blocks or rows; activations are cast on the way in. A wider weight was left as it was."""
    weight = tensor(module, "weight")
    if weight.element_size() > 1:
        return None
    beside = [tensor(module, "weight_scale_inv"), tensor(module, "weight_scale")]
    scheme = getattr(module, "activation_scheme", "dynamic")
    source = f"block_size={getattr(module, 'block_size', None)}, activation_scheme={scheme}"
    value = format_named(str(weight.dtype))
    inputs = quantised(value, source=f"activation_scheme={scheme}", stored=False)
    return Widths(quantised(value, weight.numel(), beside=beside, source=source), inputs, (tuple(weight.shape),))


@precision(f"{_HERE}.finegrained_fp8.FP8Embedding")
def fp8_embedding(module: Any) -> Widths:
    weight = tensor(module, "weight")
    value = format_named(str(weight.dtype))
    weights = quantised(value, weight.numel(), beside=[tensor(module, "weight_scale")], source=value.name)
    return Widths(weights, shapes=(tuple(weight.shape),))


@precision(f"{_HERE}.finegrained_fp8.FP8Experts", f"{_HERE}.fbgemm_fp8.FbgemmFp8Llama4TextExperts")
def fp8_experts(module: Any) -> Widths:
    """A stack of weights for the experts: each counts as a weight of its own, as the products see them."""
    held = [(name, tensor(module, name)) for name in ("gate_up_proj", "up_proj", "down_proj")]
    stacks = [(name, stack) for name, stack in held if stack is not None]
    formats = {str(stack.dtype) for _, stack in stacks}
    if len(formats) != 1 or "float8" not in (dtype := formats.pop()):
        raise ValueError(f"experts in {', '.join(str(stack.dtype) for _, stack in stacks)}")
    beside = [tensor(module, name + end) for name, _ in stacks for end in ("_scale_inv", "_scale")]
    count = sum(stack.numel() for _, stack in stacks)
    shapes = tuple(tuple(stack.shape[1:]) for _, stack in stacks for _ in range(stack.shape[0]))
    value = format_named(dtype)
    inputs = quantised(value, source="cast on the way in", stored=False)
    return Widths(quantised(value, count, beside=beside, source=f"{len(shapes)} experts"), inputs, shapes)


@precision(f"{_HERE}.mxfp4.Mxfp4GptOssExperts")
def mxfp4_experts(module: Any) -> Widths:
    """Blocks of 32 values of four bits with an exponent of eight (OCP microscaling), in whatever layout the kernel has
    given them: sizes are read from the configuration."""
    wide, hidden = 2 * module.intermediate_size, module.hidden_size
    shapes = ((wide, hidden), (hidden, module.intermediate_size)) * module.num_experts
    return Widths(Quantised(_FP4, 4 + 8 / 32, "MXFP4, blocks of 32"), shapes=shapes)


@precision(f"{_HERE}.nvfp4.NVFP4Linear")
def nvfp4(module: Any) -> Widths | None:
    """Blocks of 16 with a float8 scale, held twice in two orders: one counts. Whether activations are rounded too is
    the kernel's choice by the number of rows, so it is not claimed."""
    if tensor(module, "weight").element_size() > 1:  # a placeholder until the checkpoint is loaded
        return None
    shape = sides(module)
    beside = [tensor(module, "weight_sf_rowmajor"), tensor(module, "weight_global_scale")]
    return Widths(quantised(_FP4, math.prod(shape), beside=beside, source="NVFP4, blocks of 16"), shapes=(shape,))


@precision(f"{_HERE}.eetq.EetqLinear")
def eetq(module: Any) -> Widths:
    """int8, kept turned round: in by out."""
    weight = tensor(module, "weight")
    weights = quantised(
        integer(8), weight.numel(), beside=[tensor(module, "weight_scales")], source="one scale per row"
    )
    return Widths(weights, shapes=(tuple(weight.shape)[::-1],))


@precision(f"{_HERE}.higgs.HiggsLinear")
def higgs(module: Any) -> Widths:
    """Points of a grid, `num_bits` for each value (2411.17525); the grid itself is a table for all layers."""
    return grouped(module, module.num_bits, sides(module), weight="weight")


@precision(f"{_HERE}.metal_quantization.MetalLinear")
def metal(module: Any) -> Widths | None:
    if "uint32" not in str(tensor(module, "weight").dtype):
        return None
    return grouped(module, module.bits, sides(module), weight="weight", beside=("scales", "qbiases"))


@precision(f"{_HERE}.gemma_quant.QuantizedLinear")
def gemma(module: Any) -> Widths:
    """Rows with a scale. Activations are rounded to eight bits if the checkpoint had a scale for them; else it is 0."""
    scale = tensor(module, "input_activation_scale")
    inputs = quantised(integer(8), source="input_activation_scale", stored=False) if _is_set(scale) else None
    return grouped(module, module.num_bits, sides(module), weight="weight", activations=inputs)


@precision(f"{_HERE}.gemma_quant.QuantizedEmbedding")
def gemma_embedding(module: Any) -> Widths:
    shape = (module.num_embeddings, module.embedding_dim)
    return grouped(module, module.num_bits, shape, weight="embedding_quantized", beside=("embedding_scale",))


def _is_set(scale: Any) -> bool:
    return scale is not None and not scale.is_meta and bool(float(scale.detach()))


#: ggml's number of a block format -> bits of one value; what a block holds beside them is in the size of its rows.
_GGML = {2: 4, 3: 4, 6: 5, 7: 5, 8: 8, 10: 2, 11: 3, 12: 4, 13: 5, 14: 6, 20: 4, 23: 4}


@precision(f"{_HERE}.gguf.utils.GgufLinear", f"{_HERE}.gguf.utils.GgufEmbedding")
def gguf(module: Any) -> Widths:
    """Blocks as the file has them: bytes of a row over its values is the width with everything in it. The formats that
    look vectors up in a table (IQ1 to IQ3) have no width of one value: they are left to the dtype."""
    shape = sides(module) if hasattr(module, "in_features") else (module.num_embeddings, module.embedding_dim)
    weight, value = tensor(module, "weight"), integer(_GGML[int(module.ggml_type)])
    effective = 8 * weight.numel() / math.prod(shape)
    return Widths(Quantised(value, effective, f"ggml_type={int(module.ggml_type)}"), shapes=(shape,))
