"""Quantised and sparse layers where they need CUDA: the ops that really run there, their operands and their widths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import bitwatt
from precision.quantised import Seen, seen

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

ROWS, IN, OUT = 64, 1024, 128  # torchao pads the inputs of 4-bit layers to 1024
MACS = ROWS * IN * OUT


def linear(dtype: torch.dtype = torch.bfloat16) -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(IN, OUT, bias=True, device="cuda", dtype=dtype)


def rows(dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(ROWS, IN, device="cuda", dtype=dtype)


def check(found: Seen, weight: str, executed: str, activation: str | None = None, phase: str = "inference") -> None:
    weighed = [p for p in found.products(phase) if p.macs == MACS]
    assert len(weighed) == 1, found.products(phase)
    assert found.flops(phase, kind="mac") == 2 * MACS
    (product,) = weighed
    names = {product.a.name, product.b.name}
    assert weight in names
    assert product.executed.name == executed
    if activation is not None:
        assert activation in names
    assert found.layer.unknown == ""
    assert found.layer.shapes[0] == (OUT, IN)


def bitsandbytes_linear(make: Callable[[Any], nn.Module]) -> nn.Module:
    bnb = pytest.importorskip("bitsandbytes")
    return make(bnb).to("cuda")


@pytest.mark.parametrize("kind", ["nf4", "fp4"])
@pytest.mark.parametrize("nested", [False, True])
def test_bitsandbytes_4_bit(kind: str, nested: bool) -> None:
    module = bitsandbytes_linear(
        lambda bnb: bnb.nn.Linear4bit(
            IN, OUT, compute_dtype=torch.bfloat16, quant_type=kind, compress_statistics=nested
        )
    )
    found = seen(module, rows(), training=False)
    check(found, kind, "bfloat16")
    assert found.layer.weights is not None
    blocks = IN * OUT // 64
    scales = blocks * 8 + -(-blocks // 256) * 32 + 32 if nested else blocks * 32
    assert found.layer.weights.effective_bits == pytest.approx(4 + scales / (IN * OUT))
    assert found.flops("inference", part="quantisation") > 0
    back = seen(module, rows(), backward=True)
    assert [p.b.name for p in back.products("backward") if p.macs == MACS] == [kind]


@pytest.mark.parametrize("threshold", [0.0, 6.0])
def test_bitsandbytes_8_bit(threshold: float) -> None:
    module = bitsandbytes_linear(
        lambda bnb: bnb.nn.Linear8bitLt(IN, OUT, has_fp16_weights=False, threshold=threshold).half()
    )
    x = rows(torch.float16)
    x[:, 7] *= 20  # an outlier column, which the threshold takes out
    found = seen(module, x, training=False)
    products = found.products("inference")
    assert [p.executed.name for p in products if p.k == IN] == ["int8"]
    assert found.layer.weights is not None
    assert found.layer.weights.bits == 8
    assert found.layer.weights.effective_bits == pytest.approx(8 + 32 / IN)


def torchao_linear(make: Callable[[Any], Any], dtype: torch.dtype = torch.bfloat16) -> nn.Module:
    quantization = pytest.importorskip("torchao.quantization")
    module = linear(dtype)
    quantization.quantize_(module, make(quantization))
    return module


@pytest.mark.parametrize(
    ("config", "weight", "executed", "activation"),
    [
        ("Int8WeightOnlyConfig", "int8", "bfloat16", None),
        ("Int8DynamicActivationInt8WeightConfig", "int8", "int8", "int8"),
        ("Float8WeightOnlyConfig", "float8_e4m3fn", "bfloat16", None),
        ("Float8DynamicActivationFloat8WeightConfig", "float8_e4m3fn", "float8_e4m3fn", "float8_e4m3fn"),
    ],
)
def test_torchao(config: str, weight: str, executed: str, activation: str | None) -> None:
    module = torchao_linear(lambda ao: getattr(ao, config)())
    check(seen(module, rows(), training=False), weight, executed, activation)


def test_torchao_int4() -> None:
    module = torchao_linear(lambda ao: ao.Int4WeightOnlyConfig(group_size=32, int4_packing_format="tile_packed_to_4d"))
    found = seen(module, rows(), training=False)
    check(
        found, "uint4" if found.layer.weights and found.layer.weights.precision.name == "uint4" else "int4", "bfloat16"
    )
    assert found.layer.weights is not None
    assert found.layer.weights.effective_bits == pytest.approx(4 + 2 * 16 / 32)  # scale and zero of each 32, bfloat16


@pytest.mark.parametrize("qtype", ["qint8", "qint4", "qint2", "qfloat8"])
def test_quanto(qtype: str) -> None:
    quanto = pytest.importorskip("optimum.quanto")
    module = nn.Sequential(linear())
    quanto.quantize(module, weights=getattr(quanto, qtype))
    quanto.freeze(module)
    found = seen(module[0], rows(), training=False)
    formats = {"qint8": "int8", "qint4": "int4", "qint2": "int2", "qfloat8": "float8_e4m3fn"}
    assert found.layer.weights is not None
    assert found.layer.weights.precision.name == formats[qtype]
    assert found.flops("inference", kind="mac") == 2 * MACS


def test_two_in_four() -> None:
    from torch.sparse import to_sparse_semi_structured

    module = linear(torch.float16)
    pattern = torch.tensor([1, 1, 0, 0], device="cuda", dtype=torch.float16).tile(OUT, IN // 4)
    module.weight = nn.Parameter(to_sparse_semi_structured(module.weight.detach() * pattern), requires_grad=False)
    found = seen(module, rows(torch.float16), training=False)
    assert found.layer.density == 0.5
    assert found.flops("inference", kind="mac") == 2 * MACS
    kinds: Any = bitwatt.totals(found.run, "flops:effective").by("kind")
    assert kinds["mac"] == MACS
    assert found.layer.unknown == ""
    assert found.layer.weight_bytes == IN * OUT * 2 * 9 // 16 + 2 * OUT  # half the values, two bits for each of them
    assert bitwatt.totals(found.run, "bops:product_sparse").total == MACS // 2 * 16 * 16


def test_8_bit_optimizer_states() -> None:
    bnb = pytest.importorskip("bitsandbytes")
    net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 64)).cuda()
    optimizer = bnb.optim.AdamW8bit(net.parameters())
    with bitwatt.measure(keep=False) as session:
        net(torch.randn(32, 256, device="cuda")).sum().backward()
        optimizer.step()
    assert session.run is not None
    states = session.run.layers["AdamW8bit"]
    assert states.weights is not None
    assert states.weights.bits == 8
    assert bitwatt.totals(session.run).missing == {}
    by_phase: Any = bitwatt.totals(session.run).by("phase")
    assert by_phase["optimizer"] > 10 * 256 * 512
