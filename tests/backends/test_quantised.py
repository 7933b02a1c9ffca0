"""Layers that torch itself quantises, and integer and packed products, are counted with the bits they carry."""

from __future__ import annotations

import pytest
import torch
import torch.ao.quantization as quantization
from torch import nn

import bitwatt
from backends.measuring import FC1, FC2, Net, macs, measured

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


def test_dynamic_quantisation_of_linear_layers() -> None:
    net = quantization.quantize_dynamic(Net(), {nn.Linear}, dtype=torch.qint8)
    run = measured(lambda: net(torch.randn(32, 8)))
    assert macs(run, "scope", "precision") == {("fc1", "int8"): FC1, ("fc2", "int8"): FC2}
    assert bitwatt.totals(run).missing == {}


def test_static_quantisation_of_convolutions() -> None:
    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
            self.conv = nn.Conv2d(3, 8, 3, padding=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.dequant(self.conv(self.quant(x)))

    net, x = Small().eval(), torch.randn(2, 3, 8, 8)
    net.qconfig = quantization.get_default_qconfig("x86")
    quantization.prepare(net, inplace=True)(x)
    quantization.convert(net, inplace=True)
    run = measured(lambda: net(x))
    assert macs(run, "phase", "op") == {("inference", "quantized.conv2d"): 2 * 8 * 8 * 8 * 3 * 9}
    assert bitwatt.totals(run).missing == {}


def test_integer_and_packed_products() -> None:
    a, b = torch.ones(32, 64, dtype=torch.int8), torch.ones(64, 32, dtype=torch.int8)
    assert macs(measured(lambda: torch._int_mm(a, b)), "precision") == {"int8": 32 * 64 * 32}
    x, scales = torch.randn(4, 64, dtype=torch.bfloat16), torch.ones(32, dtype=torch.bfloat16)
    packed = measured(lambda: torch._weight_int8pack_mm(x, b.t().contiguous(), scales))
    assert macs(packed, "precision") == {"bfloat16 x int8": 4 * 64 * 32}


def test_sparse_and_mkldnn_layouts() -> None:
    sparse, dense = torch.eye(32).to_sparse_csr(), torch.randn(32, 8)
    run = measured(lambda: sparse @ dense)
    assert bitwatt.totals(run, "macs").total == 32 * 32 * 8
    assert bitwatt.totals(run, "flops:effective").total == 2 * 32 * 8  # 32 stored elements meet 8 columns
    blocked = torch.randn(4, 4).to_mkldnn()
    assert measured(lambda: torch.relu(blocked).to_dense()).notes == ()
