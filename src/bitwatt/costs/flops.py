"""MACs and FLOPs of the mathematics: the same on every device and for every kernel."""

from collections.abc import Iterable

from bitwatt.pricing import Charge, Entry, cost_model
from bitwatt.records import ARITHMETIC, MASKED, RECOMPUTED, SPARSE


def arithmetic(entry: Entry, without: frozenset[str]) -> Iterable[Charge]:
    """2 for each multiply-accumulate and 1 for every other arithmetic operation, parts in `without` left out."""
    assert entry.work is not None
    for product, times in entry.work.products:
        if product.part not in without:
            yield "mac", label(product.a.name, product.b.name), 2 * product.macs * times
    for kind, precision, part, n in entry.work.ops:
        if kind in ARITHMETIC and part not in without:
            yield kind, precision.name, n


def label(a: str, b: str) -> str:
    return a if a == b else " x ".join(sorted((a, b)))


@cost_model("macs", unit="MAC", source="the definition")
def MACS(entry: Entry) -> Iterable[Charge]:
    """Multiply-accumulates of matrix products and convolutions, masks and sparsity not discounted."""
    assert entry.work is not None
    for product, times in entry.work.products:
        if product.part != RECOMPUTED:
            yield "mac", label(product.a.name, product.b.name), product.macs * times


@cost_model("flops", unit="FLOP", source="IEEE 754 operations as in Golub & Van Loan 1.1.15; MAC = 2")
def FLOPS(entry: Entry) -> Iterable[Charge]:
    """2 per multiply-accumulate, 1 per other arithmetic operation (exp, division, square root included), in whatever
    number format; comparing, moving, casting and logic are 0. A function of shapes alone: masks and sparse zeros count
    as if computed, what a kernel computes twice counts once."""
    return arithmetic(entry, frozenset({RECOMPUTED}))


@cost_model("flops:effective", unit="FLOP", source="as flops, less what masks and sparsity make unnecessary")
def EFFECTIVE(entry: Entry) -> Iterable[Charge]:
    """As flops, without the operations that fall on a causal mask or on the zeros of a sparse operand."""
    return arithmetic(entry, frozenset({RECOMPUTED, MASKED, SPARSE}))
