"""Operators of quantisation libraries: each has a rule, and kernels that do not run here count what they should."""

from __future__ import annotations

import importlib

import pytest
import torch

from bitwatt.records import QUANTISATION, TensorSpec, Work
from bitwatt.registry import RULES
from rules.capture import kinds
from rules.priced import work

M, K, N = 16, 256, 128
X, Y = TensorSpec((M, K), "float16"), TensorSpec((M, N), "float16")


@pytest.mark.parametrize(
    ("library", "space"),
    [
        ("bitsandbytes", "bitsandbytes"),
        ("optimum.quanto", "quanto"),
        ("torchao.quantization", "torchao"),
        ("torchao.prototype.mx_formats", "torchao"),
        ("torchao.ops", "torchao"),
    ],
)
def test_every_operator_that_a_library_registers_has_a_rule(library: str, space: str) -> None:
    pytest.importorskip(library.partition(".")[0])
    importlib.import_module(library)
    names = {name.split(".")[0] for name in torch._C._dispatch_get_all_op_names() if name.startswith(f"{space}::")}
    assert names
    assert sorted(name for name in names if RULES.find(name.replace("::", ".")) is None) == []


def parts(done: Work) -> dict[str, int]:
    """Arithmetic by part."""
    sums: dict[str, int] = {}
    for kind, _, part, n in done.ops:
        if kind in ("add", "mul", "div"):
            sums[part] = sums.get(part, 0) + n
    return sums


def test_four_bit_weights_are_expanded_and_their_scales_before_them() -> None:
    blocks = TensorSpec((N * K // 64,), "uint8")
    scales, bias = TensorSpec((2,)), TensorSpec((N,), "float16")
    given = {"A": X, "B": TensorSpec((N * K // 2, 1), "uint8"), "shapeB": (N, K), "absmax": scales, "blocksize": 64}
    done = work("bitsandbytes.gemm_4bit", **given, quant_type="fp4", bias=bias, absmax_8bit=blocks, out=(Y,))
    ((product, _),) = done.products
    assert (product.macs, product.a.name, product.b.name) == (M * N * K, "float16", "fp4")
    assert parts(done) == {QUANTISATION: N * K + 2 * (N * K // 64), "": M * N}


def test_codes_are_found_by_halving_a_table() -> None:
    for codes, steps in ((256, 8), (16, 4)):
        done = work("bitsandbytes.quantize_blockwise", A=X, code=TensorSpec((codes,)), blocksize=256, out=())
        assert kinds(done) == {"compare": (1 + steps) * M * K, "mul": M * K}


def test_a_result_written_into_a_given_tensor_counts_its_own_bytes() -> None:
    packed = TensorSpec((N * K // 2, 1), "uint8")
    given = {"A": packed, "absmax": TensorSpec((N * K // 64,)), "blocksize": 64, "quant_type": "nf4"}
    done = work("bitsandbytes.dequantize_4bit", **given, shape=(N, K), dtype="bfloat16", out=(packed,))
    assert kinds(done) == {"index": N * K, "mul": N * K}
    assert done.bytes_written == 2 * N * K


def test_products_of_integers_with_outliers_in_float() -> None:
    eight, weight = TensorSpec((M, K), "int8"), TensorSpec((N, K), "int8")
    columns = TensorSpec((3,), "int64")
    given = {"A": X, "CA": eight, "CB": weight, "SCA": TensorSpec((M,)), "SCB": TensorSpec((N,))}
    done = work("bitsandbytes.int8_mixed_scaled_mm", **given, outlier_cols=columns, out=(Y, TensorSpec((M, 3))))
    ran = {(product.k, product.executed.name) for product, _ in done.products}
    assert ran == {(K, "int8"), (3, "float16")}
    assert parts(done) == {QUANTISATION: 2 * M * N + 3 * N, "": M * N}


def test_kernels_of_quanto_on_a_gpu() -> None:
    for name, operand in (("quanto.gemm_f16i4_awq", "input"), ("quanto.gemm_f16i4_marlin", "input")):
        done = work(name, **{operand: X}, out=(Y,))
        ((product, _),) = done.products
        assert (product.macs, product.b.bits, product.executed.name) == (M * N * K, 4, "float16")
        assert parts(done) == {QUANTISATION: 2 * N * K}
    ((product, _),) = work("quanto.gemm_f16f8_marlin", a=X, out=(Y,)).products
    assert (product.macs, product.b.bits) == (M * N * K, 8)


def test_kernels_of_torchao_on_other_machines() -> None:
    eight = TensorSpec((M, K), "int8")
    done = work("torchao.da8w4_linear_cpu", input=eight, out=(Y,))
    ((product, _),) = done.products
    assert (product.macs, product.b.name, product.executed.name) == (M * N * K, "int4", "int8")
    assert parts(done) == {QUANTISATION: 4 * M * N}
    done = work(
        "torchao._linear_8bit_act_3bit_weight", activations=X, packed_weights=TensorSpec((9,), "int8"), out=(Y,)
    )
    ((product, _),) = done.products
    assert (product.a.name, product.b.name) == ("int8", "int3")
    float8 = TensorSpec((M, K), "float8_e4m3fn")
    scales = {"input_scale": TensorSpec((M, 1)), "weight_scale": TensorSpec((N, 1))}
    half = TensorSpec((N, K // 2), "float8_e4m3fn")
    done = work("torchao.rowwise_scaled_linear_sparse_cutlass_f8f8", input=float8, weight=half, **scales, out=(Y,))
    ((product, _),) = done.products
    assert (product.macs, product.necessary) == (M * N * K, M * N * K // 2)


def test_requantising_is_told_from_the_bias() -> None:
    eight, result = TensorSpec((M, K), "quint8"), TensorSpec((M, N), "quint8")
    done = work("quantized.linear", X=eight, W_prepack=None, out=(result,))
    assert parts(done) == {QUANTISATION: 2 * M * N, "": M * N}
    done = work("quantized.linear_dynamic", X=TensorSpec((M, K)), W_prepack=None, out=(TensorSpec((M, N)),))
    assert parts(done) == {QUANTISATION: 2 * M * K + M * N, "": M * N}
    int4 = work("aten._weight_int4pack_mm_for_cpu", self=X, mat2=TensorSpec((N, K // 2), "uint8"), out=(Y,))
    assert parts(int4) == {QUANTISATION: 2 * N * K}
