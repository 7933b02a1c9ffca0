"""Too many distinct calls: which of them are folded into one row, and what that row holds.

What is folded is priced now, by the rules of today: the elementary work, bytes and matrix products of all calls added
up, with the layer's formats applied. Models that price such sums stay exact. Those that ask for each call's own sizes
(the paper's, executed operations) are asked now, and their answers kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from bitwatt.fingerprint import mark_of
from bitwatt.folded import Folded, Price, Sum, Tally
from bitwatt.ledger import Ledger, Row
from bitwatt.precision.operands import is_backward
from bitwatt.pricing import MISSING, CostModel, Entry, Pricer, cost_models
from bitwatt.records import Layer, Op

#: A ledger longer than this is folded.
LIMIT = 20_000
#: An op that was called with so many sizes in one place, or fewer, keeps them.
SIZES = 8
#: Calls whose work is remembered while others are folded: layers that are alike make the same ones.
_REMEMBERED = 2_000


class Folder:
    """Folds calls made in the layers of one model."""

    def __init__(self, layers: Mapping[str, Layer]) -> None:
        self._layers = layers
        self._pricer = Pricer(layers)
        #: Layer, whether in a part of it, and in backward -> op, by identity -> what one call amounts to.
        self._known: dict[tuple[Layer | None, bool, bool], dict[int, tuple[Op, Folded]]] = {}

    @cached_property
    def _models(self) -> list[CostModel]:
        return [model for model in cost_models().values() if not model.adds_up]

    def fold(self, phase: str, scope: str, calls: Iterable[tuple[Op, int]]) -> list[Op]:
        """One folded op for all calls of one name in one place; another for those that no rule covers."""
        tallies: dict[bool, Tally] = {}
        name = ""
        shares = self._known.setdefault((*self._pricer.owner(scope), is_backward(phase)), {})
        for op, n in calls:
            name = op.name
            known = shares.get(id(op))
            if known is None:
                one = op.folded or self._folded(self._pricer.entry(Row(phase, scope, op, 1)))
                known = shares[id(op)] = (op, one)  # the op is held, so that its id stays its own
            tallies.setdefault(bool(known[1].reason), Tally()).add(known[1], n)
            if len(shares) > _REMEMBERED:
                self._known.clear()
                shares.clear()
                self._pricer = Pricer(self._layers)
        return [Op(name, folded=tally.folded()) for tally in tallies.values()]

    def ledger(self, ledger: Ledger, limit: int | None = None) -> Ledger:
        """The ledger with ops of many sizes folded if it is too long; and those that have been folded before."""
        long = len(ledger) > (LIMIT if limit is None else limit)
        if not long and not ledger.has_folded:
            return ledger
        groups: dict[tuple[str, str, str], list[Row]] = {}
        for row in ledger:
            groups.setdefault((row.phase, row.scope, row.op.name), []).append(row)
        made = Ledger()
        for (phase, scope, _), rows in groups.items():
            if len(rows) > 1 and (any(row.op.folded for row in rows) or (long and len(rows) > SIZES)):
                for op in self.fold(phase, scope, ((row.op, row.calls) for row in rows)):
                    made.add(phase, scope, op)
            else:
                for row in rows:
                    made.add(phase, scope, row.op, row.calls)
        return made

    def _folded(self, entry: Entry) -> Folded:
        op, work = entry.op, entry.work
        elements = sum(spec.numel for spec in (*op.inputs, *op.out))
        if work is None:
            return Folded(1, 1, op, op, (elements, elements), reason=entry.reason or MISSING)
        return Folded(
            calls=1,
            sizes=1,
            smallest=op,
            largest=op,
            span=(elements, elements),
            ops=work.ops,
            products=tuple(Sum(product, times) for product, times in work.products),
            bytes_read=work.bytes_read or 0,
            bytes_written=work.bytes_written or 0,
            bytes_effective=entry.bytes_effective,
            estimated=int(work.estimated),
            mark=mark_of(work),
            prices=tuple((model.name, price) for model in self._models if (price := _price(model, entry)) is not None),
        )


def _price(model: CostModel, entry: Entry) -> Price | None:
    """Nothing where the model cannot speak of the work, None where it has no formula for it."""
    try:
        if model.status(entry) == MISSING:
            return None
        if entry.work is None or not model.covers(entry.work):
            return ()
        return tuple((charge.kind, charge.precision, charge.part, charge.amount) for charge in model.price(entry))
    except Exception:  # a faulty model must not cost the user the run: under it, the folded calls are missing
        return None


def note(ledger: Ledger) -> str | None:
    """What a reader of the run should know of its folded rows."""
    if not ledger.has_folded:
        return None
    folded = [row.op.folded for row in ledger if row.op.folded is not None]
    calls, sizes = sum(one.calls for one in folded), sum(one.sizes for one in folded)
    return (
        f"{calls:,} calls of up to {sizes:,} sizes are folded into {len(folded):,} rows: their work, added up by the "
        "rules of this bitwatt, is exact; of their sizes the smallest and the largest are kept"
    )
