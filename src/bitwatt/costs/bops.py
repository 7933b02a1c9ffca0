"""Bit-operations: FLOPs and MACs weighed by the widths of their operands."""

import math
from collections.abc import Callable, Iterable

from bitwatt.costs.flops import label
from bitwatt.pricing import Charge, Entry, cost_model
from bitwatt.records import ARITHMETIC, RECOMPUTED, SPARSE, Product

HARDWARE_WIDTHS = (4, 8, 16, 32, 64)


def _weighed(entry: Entry, width: Callable[[int], int]) -> Iterable[Charge]:
    assert entry.work is not None
    for product, times in entry.work.products:
        if product.part != RECOMPUTED:
            bits = width(max(product.a.bits, product.b.bits))
            yield "mac", label(product.a.name, product.b.name), 2 * product.macs * times * bits
    for kind, precision, part, n in entry.work.ops:
        if kind in ARITHMETIC and part != RECOMPUTED:
            yield kind, precision.name, n * width(precision.bits)


@cost_model("bops", unit="BOP", source="bitwatt: FLOPs x bits, the reading of a FLOP as work linear in operand width")
def BOPS(entry: Entry) -> Iterable[Charge]:
    """FLOPs times the bits of the wider operand."""
    return _weighed(entry, lambda bits: bits)


@cost_model("bops:aligned", unit="BOP", source="as bops, after google/aqt compute_cost_utils' snapping of widths")
def ALIGNED(entry: Entry) -> Iterable[Charge]:
    """FLOPs times the wider operand's bits rounded up to a width that hardware offers: 4, 8, 16, 32 or 64."""
    return _weighed(entry, lambda bits: next((width for width in HARDWARE_WIDTHS if width >= bits), bits))


def _per_product(entry: Entry, price: Callable[[Product], int], without: frozenset[str]) -> Iterable[Charge]:
    assert entry.work is not None
    for product, times in entry.work.products:
        if product.part not in without:
            yield "mac", label(product.a.name, product.b.name), price(product) * times


@cost_model("bops:product", unit="BOP", source="qonnx, HAWQ-V3, google/aqt quadratic, Sony MCT: sum of MAC·b_w·b_a")
def PRODUCT(entry: Entry) -> Iterable[Charge]:
    """MAC · b_w · b_a over matrix products and convolutions; element-wise work is 0."""
    return _per_product(entry, lambda p: p.macs * p.a.bits * p.b.bits, frozenset({RECOMPUTED}))


@cost_model("bops:product_sparse", unit="BOP", source="qonnx with discount_sparsity")
def PRODUCT_SPARSE(entry: Entry) -> Iterable[Charge]:
    """As bops:product, without the products that fall on zeros of a sparse operand."""
    return _per_product(entry, lambda p: p.macs * p.a.bits * p.b.bits, frozenset({RECOMPUTED, SPARSE}))


@cost_model("bops:hawks2021", unit="BOP", source="Hawks et al. 2021, Ps and Qs, eq. 1 (after Baskin et al. 2018, UNIQ)")
def HAWKS2021(entry: Entry) -> Iterable[Charge]:
    """m·n·(p·b_a·b_w + b_a + b_w + log2 n) for each output row, n being the length of the sum and p the share of
    weights that are not zero; convolutions with n = channels·kernel. Rounded once per product."""
    assert entry.work is not None
    for product, times in entry.work.products:
        if product.part == RECOMPUTED:
            continue
        a, b = product.a.bits, product.b.bits
        accumulate = 0 if product.part == SPARSE else a * b
        bits = accumulate + a + b + math.log2(max(product.k, 1))
        yield "mac", label(product.a.name, product.b.name), round(product.macs * times * bits)
