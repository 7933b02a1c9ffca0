"""Linear layers in INT8, FP8 and with packed 4-bit weights, of nothing but torch: for inference on a GPU."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

GROUP = 128


class Int8(nn.Module):
    """Integers times integers: a scale for each row of the weight, one for the input, found anew for each call."""

    def __init__(self, old: nn.Linear) -> None:
        super().__init__()
        scale = old.weight.abs().amax(1) / 127
        self.register_buffer("weight", (old.weight / scale[:, None]).round().to(torch.int8))
        self.register_buffer("scale", scale)
        self.bias = old.bias

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, -2)
        scale = rows.abs().amax() / 127
        product = torch._int_mm((rows / scale).round().to(torch.int8), self.weight.t())
        return (product * (scale * self.scale) + self.bias).to(x.dtype).unflatten(0, x.shape[:-1])


class Float8(nn.Module):
    """e4m3 times e4m3, a scale for each tensor."""

    def __init__(self, old: nn.Linear) -> None:
        super().__init__()
        scale = old.weight.abs().amax().float() / 448
        self.register_buffer("weight", (old.weight / scale).to(torch.float8_e4m3fn))
        self.register_buffer("scale", scale)
        self.bias = old.bias

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, -2)
        scale = rows.abs().amax().float() / 448
        narrow = (rows / scale).to(torch.float8_e4m3fn)
        out = torch._scaled_mm(narrow, self.weight.t(), scale_a=scale, scale_b=self.scale, out_dtype=torch.bfloat16)
        return (out + self.bias).to(x.dtype).unflatten(0, x.shape[:-1])


class Packed4(nn.Module):
    """4-bit weights, two to a byte, that the kernel expands to bfloat16: what packing changes is memory alone."""

    def __init__(self, old: nn.Linear) -> None:
        super().__init__()
        outer, inner = old.weight.shape
        groups = old.weight.view(outer, inner // GROUP, GROUP)
        low, high = groups.amin(-1, keepdim=True), groups.amax(-1, keepdim=True)
        scale = (high - low).clamp(min=1e-6) / 15
        values = ((groups - low) / scale).round().clamp(0, 15).to(torch.int32).view(outer, inner)
        middle = low + 8 * scale  # the kernel computes (value - 8)·scale + middle
        both = torch.cat([scale, middle], -1).transpose(0, 1).contiguous().to(torch.bfloat16)
        self.register_buffer("scales", both)
        if old.weight.is_cuda:
            bytes_ = (values[:, ::2] << 4 | values[:, 1::2]).to(torch.uint8)
            self.register_buffer("weight", torch._convert_weight_to_int4pack(bytes_, 8))
            self.product: Callable[..., Tensor] = torch._weight_int4pack_mm
        else:
            self.register_buffer("weight", torch._convert_weight_to_int4pack_for_cpu(values, 1))
            self.product = torch.ops.aten._weight_int4pack_mm_for_cpu
        self.bias = old.bias

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, -2).to(torch.bfloat16)
        out = self.product(rows, self.weight, GROUP, self.scales)
        return (out + self.bias).to(x.dtype).unflatten(0, x.shape[:-1])


LAYERS: dict[str, type[nn.Module]] = {"int8": Int8, "fp8": Float8, "int4 weights": Packed4}


def narrowed(model: nn.Module, precision: str) -> int:
    """Replace in place what the kernels take: widths that are multiples of 16, of a group for 4 bits. Says how many."""
    least = GROUP if precision == "int4 weights" else 16
    found = [(parent, name, child) for parent in model.modules() for name, child in parent.named_children()]
    fitting = [
        one for one in found
        if type(one[2]) is nn.Linear and not one[2].in_features % least and not one[2].out_features % 16
    ]  # fmt: skip
    for parent, name, old in fitting:
        setattr(parent, name, LAYERS[precision](old))
    return len(fitting)
