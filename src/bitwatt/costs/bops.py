"""Bit-operations: FLOPs and MACs weighed by the widths of their operands."""

import math
from collections.abc import Callable, Iterable

from bitwatt.costs.flops import elements, products
from bitwatt.pricing import Charge, Entry, cost_model
from bitwatt.records import RECOMPUTED, Product

HARDWARE_WIDTHS = (4, 8, 16, 32, 64)


def _weighed(entry: Entry, width: Callable[[float], float]) -> Iterable[Charge]:
    yield from products(entry, lambda product: 2 * product.macs * width(max(product.a.bits, product.b.bits)))
    yield from elements(entry, lambda precision: width(precision.bits), frozenset({RECOMPUTED}))


@cost_model(
    "bops",
    unit="BOP",
    source="bitwatt: FLOPs x bits, the reading of a FLOP as work linear in operand width",
    adds_up=True,
)
def BOPS(entry: Entry) -> Iterable[Charge]:
    """FLOPs times the bits that the values of the wider operand carry (its effective precision)."""
    return _weighed(entry, lambda bits: bits)


@cost_model("bops:executed", unit="BOP", source="as bops, at the width of the multiplier that ran", adds_up=True)
def EXECUTED(entry: Entry) -> Iterable[Charge]:
    """FLOPs times the bits of the precision the arithmetic ran in: a 4-bit weight that is expanded to bfloat16 and
    multiplied by bfloat16 costs 16."""
    yield from products(entry, lambda product: 2 * product.macs * product.executed.bits)
    yield from elements(entry, lambda precision: precision.bits, frozenset({RECOMPUTED}))


@cost_model(
    "bops:aligned", unit="BOP", source="as bops, after google/aqt compute_cost_utils' snapping of widths", adds_up=True
)
def ALIGNED(entry: Entry) -> Iterable[Charge]:
    """FLOPs times the wider operand's bits rounded up to a width that hardware offers: 4, 8, 16, 32 or 64."""
    return _weighed(entry, lambda bits: next((width for width in HARDWARE_WIDTHS if width >= bits), bits))


@cost_model(
    "bops:product",
    unit="BOP",
    source="qonnx, HAWQ-V3, google/aqt quadratic, Sony MCT: sum of MAC·b_w·b_a",
    adds_up=True,
)
def PRODUCT(entry: Entry) -> Iterable[Charge]:
    """MAC · b_w · b_a over matrix products and convolutions; element-wise work is 0."""
    return products(entry, lambda product: product.macs * product.a.bits * product.b.bits)


@cost_model("bops:product_sparse", unit="BOP", source="qonnx with discount_sparsity", adds_up=True)
def PRODUCT_SPARSE(entry: Entry) -> Iterable[Charge]:
    """As bops:product, without the products that fall on zeros of a sparse operand."""
    return products(entry, lambda product: _nonzero(product) * product.a.bits * product.b.bits)


@cost_model("bops:hawks2021", unit="BOP", source="Hawks et al. 2021, Ps and Qs, eq. 1 (after Baskin et al. 2018, UNIQ)")
def HAWKS2021(entry: Entry) -> Iterable[Charge]:
    """m·n·(p·b_a·b_w + b_a + b_w + log2 n) for each output row, n being the length of the sum and p the share of
    weights that are not zero; convolutions with n = channels·kernel. Rounded once per product."""

    def bits(product: Product) -> int:
        a, b = product.a.bits, product.b.bits
        return round(_nonzero(product) * a * b + product.macs * (a + b + math.log2(max(product.k, 1))))

    return products(entry, bits)


def _nonzero(product: Product) -> int:
    return product.macs - product.sparse * product.components
