"""Models whose weights are really packed, by the libraries that do so on a CPU. Packed weights have no gradient."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def _torchao(bits: int) -> Callable[[nn.Module], nn.Module]:
    def pack(model: nn.Module) -> nn.Module:
        from torchao.quantization import Int8WeightOnlyConfig, IntxWeightOnlyConfig, quantize_

        quantize_(model, Int8WeightOnlyConfig() if bits == 8 else IntxWeightOnlyConfig(torch.int4))
        return model

    return pack


def _quanto(bits: int) -> Callable[[nn.Module], nn.Module]:
    def pack(model: nn.Module) -> nn.Module:
        from optimum.quanto import freeze, qint4, qint8, quantize

        quantize(model, weights=qint8 if bits == 8 else qint4)
        freeze(model)
        return model

    return pack


def _bitsandbytes(model: nn.Module) -> nn.Module:
    from bitsandbytes.nn import Linear4bit

    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Linear:
                packed = Linear4bit(
                    child.in_features, child.out_features, quant_type="nf4", compute_dtype=child.weight.dtype
                )
                packed.load_state_dict(child.state_dict())
                setattr(parent, name, packed.to("cpu"))
    return model


#: Library and format -> what packs a model in place.
PACKED: dict[str, Callable[[nn.Module], nn.Module]] = {
    "torchao int8": _torchao(8),
    "torchao int4": _torchao(4),
    "quanto qint8": _quanto(8),
    "quanto qint4": _quanto(4),
    "bitsandbytes nf4": _bitsandbytes,
}
