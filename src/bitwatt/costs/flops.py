"""MACs and FLOPs of the mathematics: the same on every device and for every kernel."""

from collections.abc import Callable, Iterable

from bitwatt.dtypes import Precision
from bitwatt.pricing import Charge, Entry, cost_model
from bitwatt.records import ARITHMETIC, MASKED, RECOMPUTED, Product


def products(entry: Entry, amount: Callable[[Product], float]) -> Iterable[Charge]:
    """`amount` of each matrix product that no kernel computes a second time."""
    assert entry.work is not None
    for product, times in entry.work.products:
        if not product.recomputed:
            yield Charge("mac", label(product.a.name, product.b.name), whole(amount(product) * times))


def elements(entry: Entry, amount: Callable[[Precision], float], without: frozenset[str]) -> Iterable[Charge]:
    """`amount` for each arithmetic operation that is no multiply-accumulate, parts in `without` left out."""
    assert entry.work is not None
    for kind, precision, part, n in entry.work.ops:
        if kind in ARITHMETIC and part not in without:
            yield Charge(kind, precision.name, whole(n * amount(precision)), part)


def whole(amount: float) -> int:
    """Amounts are whole but where a ternary value's 1.58 bits come in."""
    return amount if isinstance(amount, int) else round(amount)


def label(a: str, b: str) -> str:
    return a if a == b else " x ".join(sorted((a, b)))


@cost_model("macs", unit="MAC", source="the definition", adds_up=True)
def MACS(entry: Entry) -> Iterable[Charge]:
    """Multiply-accumulates of matrix products and convolutions, masks and sparsity not discounted."""
    return products(entry, lambda product: product.macs)


@cost_model("flops", unit="FLOP", source="IEEE 754 operations as in Golub & Van Loan 1.1.15; MAC = 2", adds_up=True)
def FLOPS(entry: Entry) -> Iterable[Charge]:
    """2 per multiply-accumulate, 1 per other arithmetic operation (exp, division, square root included), in whatever
    number format; comparing, moving, casting and logic are 0. A function of shapes alone: masks and sparse zeros count
    as if computed, what a kernel computes twice counts once."""
    yield from products(entry, lambda product: 2 * product.macs)
    yield from elements(entry, lambda _: 1, frozenset({RECOMPUTED}))


@cost_model(
    "flops:effective", unit="FLOP", source="as flops, less what masks and sparsity make unnecessary", adds_up=True
)
def EFFECTIVE(entry: Entry) -> Iterable[Charge]:
    """As flops, without the operations that fall on a causal mask or on the zeros of a sparse operand."""
    yield from products(entry, lambda product: 2 * product.necessary)
    yield from elements(entry, lambda _: 1, frozenset({RECOMPUTED, MASKED}))
