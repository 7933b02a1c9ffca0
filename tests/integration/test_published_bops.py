"""Bit-operations that others published, from one float32 run of each network and `what_if`: nothing is run again.

Sources and traps are in research/demand.md, section 2.1. Left out, since they do not follow from what is published:

- HAWQ's mixed ResNet-18: the widths in its bit_config.py give 93.9, 74.2, 54.4 G (bops) and 105.0, 99.5, 96.4 G (model
  size) where it prints 92, 72, 54 and 103, 98, 95;
- HAWQ's ResNet-101 and 101b: 7780 and 8018 G are 7,598 and 7,830 M multiply-accumulates, the products and convolutions
  of the two networks (v1 and v1.5) are 7,570 and 7,801 M;
- MobileNetV2 in 4 bits, 7 G: all layers in 4 bits are 4.8 G, with the first and last in 8 bits 5.4 G;
- what qonnx discounts for the zeros of trained weights, the model of qonnx#51, and LDM-4.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest
import torch
from torch import nn

import bitwatt
from bitwatt.records import Run
from integration.vision import torchvision_models

PRODUCT, GIGA = "bops:product", 10**9

pytestmark = pytest.mark.filterwarnings("ignore:The default weight initialization of inception_v3:FutureWarning")


@cache
def recorded(name: str, side: int = 224, *, v1: bool = False) -> Run:
    """A torchvision classifier on one image, estimated. `v1`: bottlenecks stride in their first convolution, as He et
    al. have it and HAWQ counts it; torchvision's (v1.5) stride in the second."""

    def classify() -> None:
        model = torchvision_models().get_model(name).eval()
        for block in model.modules() if v1 else ():
            if type(block).__name__ == "Bottleneck":
                block.conv1.stride, block.conv2.stride = block.conv2.stride, block.conv1.stride
        with torch.no_grad():
            model(torch.randn(1, 3, side, side))

    return bitwatt.estimate(classify)


def of_layers(layers: nn.Module, *shape: int) -> Run:
    def infer(model: nn.Module) -> None:
        with torch.no_grad():
            model.eval()(torch.randn(1, *shape))

    return bitwatt.estimate(infer, layers)


@pytest.mark.parametrize(
    ("weights", "activations", "bops"),
    [
        ("fp32", "fp32", 4_187_324_678_144),  # printed as 4187.3 G in GMPQ#5
        ("fp16", "fp16", 1_046_831_169_536),
        ("int16", "int16", 1_046_831_169_536),
        ("int8", "fp16", 523_415_584_768),
        ("int4", "fp16", 261_707_792_384),
        ("int8", "int8", 261_707_792_384),
        ("int4", "int4", 65_426_948_096),
        ("int4", "int2", 32_713_474_048),
    ],
)
def test_resnet50_of_google_aqt(weights: str, activations: str, bops: int) -> None:
    """resnet_cost_test: quadratic cost of ResNet-50 v1.5."""
    assert bitwatt.what_if(recorded("resnet50"), weights, activations)[PRODUCT].after == bops


@pytest.mark.parametrize(("weights", "bits"), [("fp16", 408_046_592), ("int8", 204_023_296), ("int4", 102_011_648)])
def test_weights_of_resnet50_in_google_aqt(weights: str, bits: int) -> None:
    """Memory cost of the same test: 25,502,912 weights, without scales, biases and batch norms."""
    run = bitwatt.what_if(recorded("resnet50"), weights).run
    kept = [layer for layer in run.layers.values() if layer.shapes]
    values = sum(torch.Size(shape).numel() for layer in kept for shape in layer.shapes)
    width = {layer.weights.bits if layer.weights else 16 for layer in kept}
    assert values == 25_502_912
    assert values * width.pop() == bits


def first_and_last_in_8(run: Run, first: str, last: str) -> bitwatt.whatif.WhatIf:
    return bitwatt.what_if(run, table=[("*", "int4", "int4"), (first, "int8", "int8"), (last, "int8", "int8")])


def test_resnet18_of_hawq() -> None:
    """README: 1858 G, 116 G, and 34 G with first and last layer in 8 bits; the last is cut off, not rounded."""
    run = recorded("resnet18")
    assert bitwatt.what_if(run, "int8", "int8")[PRODUCT].before == 1_857_611_104_256
    assert bitwatt.what_if(run, "int8", "int8")[PRODUCT].after // GIGA == 116
    assert first_and_last_in_8(run, "conv1", "fc")[PRODUCT].after // GIGA == 34


def test_resnet18_of_qonnx_with_some_operands_in_8_bits() -> None:
    """test_quantize_graph: the stem and the last layer in 8 bits, one convolution's inputs, another's weights."""
    table = [
        ("conv1", "int8", "int8"),
        ("layer1.0.conv1", None, "int8"),
        ("layer1.0.conv2", "int8", None),
        ("fc", "int8", "int8"),
    ]
    result = bitwatt.what_if(recorded("resnet18"), table=table)
    kept = [layer for layer in result.run.layers.values() if layer.shapes]
    sizes = [(layer.weights.bits if layer.weights else 32, torch.Size(layer.shapes[0]).numel()) for layer in kept]
    assert result["macs"].after == result["macs"].before == 1_814_073_344
    assert sum(n for _, n in sizes) == 11_678_912
    assert result[PRODUCT].after == 1_566_256_136_192
    assert sum(bits * n for bits, n in sizes) == 360_326_656
    assert bitwatt.totals(result.run, "macs").by("precision")["int8"] == 118_525_952


def test_resnet50_of_hawq() -> None:
    """README: 3951, 247 and 67 G, for the network that strides in the first convolution of a bottleneck."""
    run = recorded("resnet50", v1=True)
    uniform = bitwatt.what_if(run, "int8", "int8")[PRODUCT]
    assert (round(uniform.before / GIGA), round(uniform.after / GIGA)) == (3951, 247)
    assert round(first_and_last_in_8(run, "conv1", "fc")[PRODUCT].after / GIGA) == 67


def test_inception_v3_of_hawq() -> None:
    """README: 5850 G in float32."""
    assert round(bitwatt.totals(recorded("inception_v3", 299), PRODUCT).total / GIGA) == 5850


def test_mobilenet_v2_of_lightweight_nas() -> None:
    """README of alibaba/lightweight-neural-architecture-search: 19.2 G in 8 bits."""
    bops = bitwatt.what_if(recorded("mobilenet_v2"), "int8", "int8")[PRODUCT].after
    assert round(bops / GIGA, 1) == 19.2


class CNV(nn.Module):
    """Brevitas' bnn_pynq CNV: 3x3 convolutions without padding on 32x32 images, three linear layers."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 3
        for after, pooled in ((64, False), (64, True), (128, False), (128, True), (256, False), (256, False)):
            layers += [nn.Conv2d(before, after, 3, bias=False), nn.BatchNorm2d(after)]
            layers += [nn.MaxPool2d(2)] if pooled else []
            before = after
        self.convs = nn.Sequential(*layers)
        sizes = ((256, 512), (512, 512), (512, 10))
        self.linears = nn.Sequential(*(nn.Linear(before, after, bias=False) for before, after in sizes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linears(self.convs(x).flatten(1))


def test_cnv_of_qonnx() -> None:
    """test_inference_cost, dense: inputs of 8 bits, everything else of 2."""
    result = bitwatt.what_if(of_layers(CNV(), 3, 32, 32), table=[("*", "int2", "int2"), ("convs.0", "int2", "int8")])
    assert bitwatt.totals(result.run, "macs").by("precision") == {"int2": 57_906_176, "int2 x int8": 1_555_200}
    assert result[PRODUCT].after == 256_507_904


def test_tfc_of_qonnx() -> None:
    """test_inference_cost, dense: 784-64-64-64-10 in 2 bits."""
    sizes = (784, 64, 64, 64, 10)
    layers = nn.Sequential(*(nn.Linear(n, m, bias=False) for n, m in pairwise(sizes)))
    assert bitwatt.what_if(of_layers(layers, 784), "int2", "int2")[PRODUCT].after == 236_032


def test_radioml_vgg10_of_qonnx() -> None:
    """test_inference_cost, dense: seven 1-d convolutions of 64 channels, each halved after, and three linear layers."""
    layers: list[nn.Module] = []
    for before in (2, 64, 64, 64, 64, 64, 64):
        layers += [nn.Conv1d(before, 64, 3, padding=1, bias=False), nn.BatchNorm1d(64), nn.ReLU(), nn.MaxPool1d(2)]
    layers += [nn.Flatten(), *(nn.Linear(n, m, bias=False) for n, m in ((512, 128), (128, 128), (128, 24)))]
    result = bitwatt.what_if(of_layers(nn.Sequential(*layers), 2, 1024), "int8", "int8")
    assert bitwatt.totals(result.run, "macs").total == 12_864_512
    assert result[PRODUCT].after == 823_328_768


@pytest.mark.parametrize(
    ("width", "bops"), [("fp32", 4_652_832), ("int12", 737_312), ("int6", 226_592), ("int4", 124_448)]
)
def test_jet_tagger_of_hawks(width: str, bops: int) -> None:
    """16-64-32-32-5 of ben-hawks/pytorch-jet-classify, dense, under the formula of its param_count.py with all widths
    equal. The values were derived for demand.md from that formula, they are not printed anywhere."""
    sizes = (16, 64, 32, 32, 5)
    layers = nn.Sequential(*(nn.Linear(n, m) for n, m in pairwise(sizes)))
    assert bitwatt.what_if(of_layers(layers, 16), width, width)["bops:hawks2021"].after == bops
