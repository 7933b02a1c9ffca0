"""Quantisation as training emulates it: weights rounded in the forward, gradients passed straight through (Bengio et
al. 2013). Arithmetic stays float32; the layers say how many bits their weights carry, which bitwatt's probe reads."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


def rounded(weight: Tensor, bits: int) -> Tensor:
    """The nearest of 2^bits levels, with one scale for each output channel; the gradient sees the identity."""
    top = 2 ** (bits - 1) - 1
    flat = weight.detach().flatten(1)
    scale = (flat.abs().amax(1) / top).clamp_min(1e-8).reshape(-1, *([1] * (weight.dim() - 1)))
    levels = (weight / scale).round().clamp(-top - 1, top) * scale
    return weight + (levels - weight).detach()


class QuantLinear(nn.Linear):
    weight_bit_width: int

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, rounded(self.weight, self.weight_bit_width), self.bias)


class QuantConv2d(nn.Conv2d):
    weight_bit_width: int

    def forward(self, x: Tensor) -> Tensor:
        return self._conv_forward(x, rounded(self.weight, self.weight_bit_width), self.bias)


class QuantMultiheadAttention(nn.MultiheadAttention):
    weight_bit_width: int

    def forward(self, query: Tensor, key: Tensor, value: Tensor, **options: object) -> tuple[Tensor, None]:
        query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        out, _ = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, rounded(self.in_proj_weight, self.weight_bit_width),
            self.in_proj_bias, None, None, False, self.dropout, rounded(self.out_proj.weight, self.weight_bit_width),
            self.out_proj.bias, self.training, None, False, options.get("attn_mask"),
        )  # fmt: skip
        return out.transpose(0, 1), None


_TWINS = {nn.Linear: QuantLinear, nn.Conv2d: QuantConv2d, nn.MultiheadAttention: QuantMultiheadAttention}


def emulate(model: nn.Module, bits: int) -> nn.Module:
    """The same model, every layer with a product in it rounded to `bits`."""
    for module in model.modules():
        if type(module) in _TWINS:
            module.__class__ = _TWINS[type(module)]
            module.weight_bit_width = bits
    return model
