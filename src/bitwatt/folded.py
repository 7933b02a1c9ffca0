"""Many sizes of one op in one place as one row: what all their calls add up to.

A program on text of every length makes millions of distinct calls. What is kept of them is the sum of their work under
the rules of the day, their number, and the smallest and the largest call as examples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.records import Op, Product, Work

#: So many sums of products are kept apart in one row; what fits none of them is added to the one most like it.
_APART = 4
_DIMS = ("batch", "m", "n", "k")
#: Of what is added up to tell equal programs (fingerprint.mark).
MARKS = 1 << 128

#: A cost model's charges by kind, precision and part.
Price = tuple[tuple[str, str, str, int], ...]


@dataclass(frozen=True, slots=True)
class Sum:
    """Matrix products added up: `times` the same, or of sizes added up in `varied`, one of batch, m, n and k, if they
    differed in nothing else; where more differed ("*") those sizes are 1 and the batch holds the rest. The
    multiply-accumulates are the sum every time."""

    product: Product
    times: int = 1
    varied: str = ""

    def plus(self, other: Sum) -> Sum | None:
        """Both together; None where a size would come to vary beside another that does."""
        differ = _differences(self, other)
        if not differ and (self.product.masked, self.product.sparse) == (other.product.masked, other.product.sparse):
            return Sum(self.product, self.times + other.times)
        return self._joined(other, differ) if len(differ) <= 1 else None

    def lumped(self, other: Sum) -> Sum:
        return self._joined(other, _differences(self, other))

    def __mul__(self, times: int) -> Sum:
        if not self.varied:
            return Sum(self.product, self.times * times)
        return Sum(self._total("batch" if self.varied == "*" else self.varied, times), 1, self.varied)

    def _total(self, size: str, times: int = 1) -> Product:
        """All in one product, longer in one of its sizes."""
        p, n = self.product, self.times * times
        return replace(p, masked=p.masked * n, sparse=p.sparse * n, **{size: getattr(p, size) * n})

    def _joined(self, other: Sum, differ: set[str]) -> Sum:
        varied = "*" if "*" in differ or len(differ) > 1 else next(iter(differ), "batch")
        a, b = (one._total("batch" if varied == "*" else varied) for one in (self, other))
        changes: dict[str, Any] = {"masked": a.masked + b.masked, "sparse": a.sparse + b.sparse}
        if varied != "*":
            changes[varied] = getattr(a, varied) + getattr(b, varied)
            return Sum(replace(a, **changes), 1, varied)
        fixed = {name: getattr(a, name) for name in ("m", "n", "k") if getattr(a, name) == getattr(b, name)}
        each = math.prod(fixed.values())
        batch = sum(p.batch * p.m * p.n * p.k for p in (a, b)) // each if each else 0
        changes |= {"m": 1, "n": 1, "k": 1} | fixed | {"batch": batch}
        return Sum(replace(a, **changes), 1, "*")


def _differences(one: Sum, other: Sum) -> set[str]:
    differ = {name for name in _DIMS if getattr(one.product, name) != getattr(other.product, name)}
    return differ | ({one.varied, other.varied} - {""})


@dataclass(frozen=True, slots=True)
class Folded:
    """What `calls` calls of one op add up to. `sizes` of them were distinct when they were folded; one that came again
    afterwards was folded again. Without a rule there are no amounts, and `reason` says why."""

    calls: int
    sizes: int
    smallest: Op
    largest: Op
    span: tuple[int, int]  # elements of the smallest and the largest
    ops: tuple[tuple[str, Precision, str, int], ...] = ()
    products: tuple[Sum, ...] = ()
    bytes_read: int = 0
    bytes_written: int = 0
    bytes_effective: int | None = None
    estimated: int = 0  # calls whose amount depends on data nobody saw
    mark: int = 0  # the part of the matrix work in the run's fingerprint
    prices: tuple[tuple[str, Price], ...] = ()  # under the models that no sum of work can be priced by
    reason: str = ""

    @property
    def work(self) -> Work | None:
        """Of all calls together."""
        if self.reason:
            return None
        products = tuple((one.product, one.times) for one in self.products)
        return Work(self.ops, products, self.bytes_read, self.bytes_written, bool(self.estimated))

    def price(self, model: str) -> Price | None:
        return next((price for name, price in self.prices if name == model), None)

    def __add__(self, other: Folded) -> Folded:
        tally = Tally()
        tally.add(self)
        tally.add(other)
        return tally.folded()

    def __mul__(self, times: int) -> Folded:
        tally = Tally()
        tally.add(self, times)
        return tally.folded()

    def __str__(self) -> str:
        if self.sizes == 1:
            return _arguments(self.smallest)
        return f"up to {self.sizes:,} sizes: {_arguments(self.smallest)} to {_arguments(self.largest)}"


class Tally:
    """A sum of folded calls under way."""

    def __init__(self) -> None:
        self.calls = self.sizes = self.estimated = self.read = self.written = self.effective = self.mark = 0
        self.told = False  # whether some call's effective bytes are others than those it moved
        self.smallest: Op | None = None
        self.largest: Op | None = None
        self.least = self.most = 0
        self.ops: dict[tuple[str, Precision, str], int] = {}
        self.products: dict[tuple[object, ...], list[Sum]] = {}
        self.prices: dict[str, dict[tuple[str, str, str], int]] | None = None
        self.reason = ""

    def add(self, one: Folded, times: int = 1) -> None:
        if self.smallest is None or one.span[0] < self.least:
            self.smallest, self.least = one.smallest, one.span[0]
        if self.largest is None or one.span[1] > self.most:
            self.largest, self.most = one.largest, one.span[1]
        self.calls += one.calls * times
        self.sizes += one.sizes
        self.estimated += one.estimated * times
        self.read += one.bytes_read * times
        self.written += one.bytes_written * times
        self.told = self.told or one.bytes_effective is not None
        moved = one.bytes_read + one.bytes_written
        self.effective += (moved if one.bytes_effective is None else one.bytes_effective) * times
        self.mark = (self.mark + one.mark * times) % MARKS
        self.reason = self.reason or one.reason
        for kind, precision, part, n in one.ops:
            key = (kind, precision, part)
            self.ops[key] = self.ops.get(key, 0) + n * times
        for product in one.products:
            self._add_product(product * times)
        self._add_prices(one.prices, times)

    def _add_product(self, one: Sum) -> None:
        p = one.product
        sums = self.products.setdefault((p.a, p.b, p.ran, p.recomputed), [])
        for i, known in enumerate(sums):
            joined = known.plus(one)
            if joined is not None:
                sums[i] = joined
                return
        if len(sums) < _APART:
            sums.append(one)
        else:
            like = min(range(_APART), key=lambda i: len(_differences(sums[i], one)))
            sums[like] = sums[like].lumped(one)

    def _add_prices(self, prices: tuple[tuple[str, Price], ...], times: int) -> None:
        """A model that cannot price one of the calls cannot price the sum."""
        if self.prices is None:
            self.prices = {model: {} for model, _ in prices}
        elif len(prices) != len(self.prices):
            told = {model for model, _ in prices}
            self.prices = {model: sums for model, sums in self.prices.items() if model in told}
        for model, price in prices:
            sums = self.prices.get(model)
            if sums is not None:
                for kind, precision, part, n in price:
                    key = (kind, precision, part)
                    sums[key] = sums.get(key, 0) + n * times

    def folded(self) -> Folded:
        assert self.smallest is not None
        assert self.largest is not None
        prices: Mapping[str, dict[tuple[str, str, str], int]] = self.prices or {}
        return Folded(
            calls=self.calls,
            sizes=self.sizes,
            smallest=self.smallest,
            largest=self.largest,
            span=(self.least, self.most),
            ops=tuple((*key, n) for key, n in self.ops.items()),
            products=tuple(one for sums in self.products.values() for one in sums),
            bytes_read=self.read,
            bytes_written=self.written,
            bytes_effective=self.effective if self.told else None,
            estimated=self.estimated,
            mark=self.mark,
            prices=tuple((model, tuple((*key, n) for key, n in sums.items())) for model, sums in prices.items()),
            reason=self.reason,
        )


def _arguments(op: Op) -> str:
    return f"({', '.join(map(str, op.inputs))})"


def folded_json(folded: Folded, index: Callable[[Op], int]) -> dict[str, Any]:
    """Plain data for a run file: precisions as (name, kind, bits), ops by their `index`, what says nothing left out."""
    blank = Folded(0, 0, folded.smallest, folded.largest, (0, 0))
    told = {f.name: getattr(folded, f.name) for f in fields(Folded)}
    told = {name: value for name, value in told.items() if name == "calls" or value != getattr(blank, name)}
    told |= {name: index(getattr(folded, name)) for name in ("smallest", "largest")}
    if folded.ops:
        told["ops"] = [[kind, astuple(precision), part, n] for kind, precision, part, n in folded.ops]
    if folded.products:
        told["products"] = [[*astuple(one.product), one.times, one.varied] for one in folded.products]
    if folded.mark:
        told["mark"] = f"{folded.mark:x}"
    return told


def folded_of(told: Mapping[str, Any], ops: Sequence[Op]) -> Folded:
    """What folded_json wrote."""
    read: dict[str, Any] = dict(told)
    read |= {name: ops[told[name]] for name in ("smallest", "largest")}
    read["span"] = tuple(told.get("span", (0, 0)))
    read["ops"] = tuple((kind, Precision(*of), part, n) for kind, of, part, n in told.get("ops", ()))
    read["products"] = tuple(_sum(*one) for one in told.get("products", ()))
    read["prices"] = tuple((model, tuple(map(tuple, price))) for model, price in told.get("prices", ()))
    read["mark"] = int(told.get("mark", "0"), 16)
    return Folded(**{"sizes": 0} | read)


def _sum(*values: Any) -> Sum:
    batch, m, n, k, a, b, masked, sparse, recomputed, ran, times, varied = values
    ran = None if ran is None else Precision(*ran)
    product = Product(batch, m, n, k, Precision(*a), Precision(*b), masked, sparse, recomputed, ran)
    return Sum(product, times, varied)
