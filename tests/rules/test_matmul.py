"""Matrix products against loops that count, in every layout and precision torch has for them."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from priced import flops, macs, products, work

from bitwatt.pricing import totals
from bitwatt.records import TensorSpec

SIZE = st.integers(0, 5)


def _loop(shape_a: tuple[int, ...], shape_b: tuple[int, ...]) -> int:
    """Index tuples of c[..., i, j] += a[..., i, k]·b[..., k, j]."""
    a = (1, *shape_a) if len(shape_a) == 1 else shape_a
    b = (*shape_b, 1) if len(shape_b) == 1 else shape_b
    leading = torch.broadcast_shapes(a[:-2], b[:-2])
    return sum(1 for _ in itertools.product(*map(range, leading), range(a[-2]), range(b[-1]), range(a[-1])))


@settings(max_examples=80, deadline=None)
@given(st.lists(SIZE, max_size=2), st.lists(SIZE, max_size=2), SIZE, SIZE, SIZE, st.booleans(), st.booleans())
def test_any_matmul_is_the_loops_count_in_either_mode(
    left: list[int], right: list[int], m: int, k: int, n: int, row: bool, column: bool
) -> None:
    common = max(len(left), len(right))
    right = [size if size == 1 or i >= len(left) else left[::-1][i] for i, size in enumerate(right[::-1])][::-1]
    a = torch.ones(k) if row and not left else torch.ones(*left, m, k)
    b = torch.ones(k) if column and not right else torch.ones(*right, k, n)
    assert common <= 2
    expected = _loop(tuple(a.shape), tuple(b.shape))
    assert macs(lambda: a @ b).get("forward", 0) == expected
    assert work("aten.matmul", self=_spec(a), other=_spec(b)).macs == expected


def _spec(tensor: torch.Tensor) -> TensorSpec:
    return TensorSpec(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))


def test_a_linear_layer_and_its_gradients() -> None:
    x, layer = torch.randn(3, 4, 6, requires_grad=True), torch.nn.Linear(6, 5)
    # 12 rows; forward 12·5·6 products and 12·5 additions; backward both gradients, the bias's 60 additions
    assert flops(lambda: layer(x).backward(torch.ones(3, 4, 5))) == {"forward": 780, "backward": 2 * 720 + 60}


def test_an_undecomposed_linear_layer_costs_what_its_parts_cost() -> None:
    x, w, b = TensorSpec((3, 4, 6)), TensorSpec((5, 6)), TensorSpec((5,))
    done = work("aten.linear", input=x, weight=w, bias=b, out=(TensorSpec((3, 4, 5)),))
    assert done.macs == 360
    assert [(kind, n) for kind, _, _, n in done.ops] == [("add", 60)]
    assert done.products[0][0].m == 12  # one product of all rows, as torch folds it


@pytest.mark.parametrize(
    ("beta", "alpha", "extra"), [(1, 1, 20), (0, 1, 0), (1, 3, 40), (0.3, 1, 20 + 5), (0.3, 0.7, 40 + 5)]
)
def test_scales_of_addmm_count_where_they_are_not_one(beta: float, alpha: float, extra: int) -> None:
    c, a, b = torch.ones(5), torch.ones(4, 3), torch.ones(3, 5)
    assert flops(lambda: torch.addmm(c, a, b, beta=beta, alpha=alpha)) == {"forward": 2 * 60 + extra}


def test_batches_that_are_added_up_make_a_longer_sum() -> None:
    c, a, b = torch.ones(4, 5), torch.ones(7, 4, 3), torch.ones(7, 3, 5)
    assert flops(lambda: torch.addbmm(c, a, b)) == {"forward": 2 * 7 * 60 + 20}
    assert flops(lambda: torch.baddbmm(c, a, b)) == {"forward": 2 * 7 * 60 + 7 * 20}


def test_vectors() -> None:
    a, x = torch.ones(4, 3), torch.ones(3)
    assert macs(lambda: a @ x) == {"forward": 12}
    assert macs(lambda: x @ x) == {"forward": 3}
    assert flops(lambda: torch.addmv(torch.ones(4), a, x)) == {"forward": 24 + 4}


def test_complex_products_cost_four_real_ones() -> None:
    z = torch.ones(4, 3, dtype=torch.complex64)
    assert macs(lambda: z @ z.T) == {"forward": 4 * 48}
    # and the two components of a sum are added apart
    assert flops(lambda: torch.addmm(torch.ones(4, 4, dtype=torch.complex64), z, z.T)) == {"forward": 8 * 48 + 32}


@pytest.mark.parametrize(
    ("equation", "shapes", "expected"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)], 24),
        ("bthi,hio->btho", [(2, 5, 3, 4), (3, 4, 6)], 2 * 5 * 3 * 4 * 6),
        ("bij,bjk,bkl->bil", [(2, 3, 4), (2, 4, 5), (2, 5, 6)], 2 * 3 * 4 * 5 + 2 * 3 * 5 * 6),
        ("i,j", [(3,), (4,)], 12),
        ("ij,ij", [(3, 4), (3, 4)], 12),
    ],
)
def test_einsum_contracts_from_left_to_right(equation: str, shapes: list[tuple[int, ...]], expected: int) -> None:
    done = work("aten.einsum", equation=equation, tensors=tuple(map(TensorSpec, shapes)))
    assert done.macs == expected


def test_a_chain_is_multiplied_in_the_cheapest_order() -> None:
    # (10x100)(100x5)(5x50): 10·100·5 + 10·5·50 = 7,500, and 75,000 the other way round
    chain = tuple(map(TensorSpec, [(10, 100), (100, 5), (5, 50)]))
    assert work("aten.linalg_multi_dot", tensors=chain, out=(TensorSpec((10, 50)),)).macs == 7_500
    assert macs(lambda: torch.linalg.multi_dot([torch.ones(s.shape) for s in chain])) == {"forward": 7_500}


def test_a_bilinear_form_multiplies_out_its_inputs() -> None:
    a, b = torch.ones(7, 4), torch.ones(7, 3)
    layer = torch.nn.Bilinear(4, 3, 5)
    # x·y: 7·12 mul; 7·5·12 multiply-accumulates; 7·5 biases
    expected = 7 * 12 + 2 * 7 * 5 * 12 + 35
    assert flops(lambda: layer(a, b)) == {"forward": expected}
    specs = {"input1": _spec(a), "input2": _spec(b), "weight": TensorSpec((5, 4, 3)), "bias": TensorSpec((5,))}
    composite = work("aten.bilinear", **specs, out=(TensorSpec((7, 5)),))
    assert 2 * composite.macs + sum(n for *_, n in composite.ops) == expected


def test_grouped_products_deal_out_rows_columns_or_the_summed_axis() -> None:
    two, three = TensorSpec((12, 8), "bfloat16"), TensorSpec((3, 8, 16), "bfloat16")
    assert work("aten._grouped_mm", self=two, mat2=three, offs=TensorSpec((3,), "int32")).macs == 12 * 8 * 16
    columns = TensorSpec((8, 21), "bfloat16")
    stack = TensorSpec((3, 4, 8), "bfloat16")
    assert work("aten._grouped_mm", self=stack, mat2=columns, offs=TensorSpec((3,), "int32")).macs == 4 * 8 * 21
    assert work("aten._grouped_mm", self=two, mat2=columns, offs=TensorSpec((3,), "int32")).macs == 12 * 8 * 21
    assert work("aten._grouped_mm", self=stack, mat2=three).macs == 3 * 4 * 8 * 16


def test_sparse_products_are_dense_in_flops_and_stored_in_effective_ones() -> None:
    sparse, dense = torch.eye(6).to_sparse_csr(), torch.ones(6, 4)
    step = lambda: sparse @ dense  # noqa: E731
    assert flops(step) == {"forward": 2 * 6 * 6 * 4}
    assert flops(step, "flops:effective") == {"forward": 2 * 6 * 4}
    assert flops(lambda: dense.T @ sparse, "flops:effective") == {"forward": 2 * 6 * 4}


def test_sampled_products_are_computed_where_something_is_stored() -> None:
    sparse, a, b = torch.eye(6).to_sparse_csr(), torch.ones(6, 3), torch.ones(3, 6)
    step = lambda: torch.sparse.sampled_addmm(sparse, a, b)  # noqa: E731
    assert flops(step) == {"forward": 2 * 36 * 3 + 6}
    assert flops(step, "flops:effective") == {"forward": 2 * 6 * 3 + 6}


def test_two_of_four_weights_leave_half_of_the_products() -> None:
    x, w = TensorSpec((10, 64), "float16"), TensorSpec((32, 32), "float16")
    done = work("aten._sparse_semi_structured_linear", input=x, weight=w, out=(TensorSpec((10, 32), "float16"),))
    assert done.macs == 10 * 64 * 32
    assert sum(product.necessary for product, _ in done.products) == 10 * 32 * 32


def test_nested_rows_are_multiplied_by_a_matrix_at_once() -> None:
    nested = torch.nested.nested_tensor([torch.ones(3, 8), torch.ones(5, 8)])
    layer = torch.nn.Linear(8, 6)
    assert products(lambda: layer(nested)) == {"forward": {(1, 6, 8, 8): 1}}


def test_integers_are_products_of_integers() -> None:
    a = torch.ones(32, 64, dtype=torch.int8)
    done = work("aten._int_mm", self=_spec(a), mat2=TensorSpec((64, 16), "int8"))
    ((product, _),) = done.products
    assert (product.a.bits, product.b.bits, product.macs) == (8, 8, 32 * 64 * 16)


def test_packed_four_bit_weights_are_four_bits() -> None:
    x, y = TensorSpec((5, 64), "bfloat16"), TensorSpec((5, 32), "bfloat16")
    done = work("aten._weight_int4pack_mm_for_cpu", self=x, mat2=TensorSpec((32, 32), "uint8"), qGroupSize=32, out=(y,))
    ((product, _),) = done.products
    assert (product.a.name, product.b.bits, product.macs) == ("bfloat16", 4, 5 * 64 * 32)
    assert {kind: n for kind, _, _, n in done.ops} == {"mul": 64 * 32, "add": 64 * 32}  # w·s + z


def test_scaled_products_in_eight_and_four_bit_floats() -> None:
    a, b = TensorSpec((16, 32), "float8_e4m3fn"), TensorSpec((32, 8), "float8_e4m3fn")
    y, one = TensorSpec((16, 8), "bfloat16"), TensorSpec(())
    done = work("aten._scaled_mm", self=a, mat2=b, scale_a=one, scale_b=one, out=(y,))
    assert (done.macs, [n for *_, n in done.ops]) == (16 * 32 * 8, [128])
    # two values in each element: the sum is twice as long as the shape says
    packed, other = TensorSpec((16, 16), "float4_e2m1fn_x2"), TensorSpec((16, 8), "float4_e2m1fn_x2")
    assert work("aten._scaled_mm", self=packed, mat2=other, scale_a=one, scale_b=one, out=(y,)).macs == 16 * 32 * 8


def test_quantised_linear_layers_are_products_of_bytes() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(16, 8))
    quantised = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    from capture import ledger_of

    bits = totals(ledger_of(lambda: quantised(torch.ones(4, 16))), "macs", strict=True).by("precision")
    assert bits == {"int8": 4 * 16 * 8}


@pytest.mark.parametrize(
    ("shapes", "dims"), [(((2, 3, 4), (4, 3, 5)), ([1, 2], [1, 0])), (((2, 3), (3, 4)), ([1], [0]))]
)
def test_tensordot_is_one_product(shapes: tuple, dims: tuple) -> None:
    a, b = map(torch.ones, shapes)
    k = math.prod(a.shape[axis] for axis in dims[0])
    expected = a.numel() * b.numel() // k
    assert macs(lambda: torch.tensordot(a, b, dims)) == {"forward": expected}
    args = {"self": _spec(a), "other": _spec(b), "dims_self": tuple(dims[0]), "dims_other": tuple(dims[1])}
    assert work("aten.tensordot", **args).macs == expected
