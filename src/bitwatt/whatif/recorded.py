"""What the calls of a run tell of its layers: the dtype each computes in, and which convolutions are transposed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from bitwatt.dtypes import DTYPES, Precision
from bitwatt.precision.operands import is_backward, weight_side
from bitwatt.pricing import Entry, entries_of
from bitwatt.records import Layer, Product, Run


def own_dtypes(run: Run) -> dict[str, str]:
    """By scope: the float that its weights are in, or that its products ran in where they are packed. A place without
    weights has that of most weights around it."""
    ran = _ran_in(run)
    own: dict[str, str] = {}
    inside: dict[str, Counter[str]] = {}
    for scope, layer in run.layers.items():
        dtype = next((name for name in (layer.weight_dtype, ran.get(scope)) if name and _is_float(name)), None)
        if dtype is not None:
            own[scope] = dtype
            for place in _around(scope):
                inside.setdefault(place, Counter())[dtype] += layer.parameters
    for scope in run.layers:
        if scope not in own:
            near = next((inside[place] for place in _around(scope) if place in inside), Counter(["float32"]))
            own[scope] = near.most_common(1)[0][0]
    return own


def transposed_groups(run: Run) -> dict[str, int]:
    """Groups of the layers that are transposed convolutions, by scope."""
    groups = {scope: 1 for scope, layer in run.layers.items() if layer.kind.startswith("ConvTranspose")}
    for entry, product, _ in _uses(run):
        transposed = dict(entry.op.args).get("transposed") is True or "conv_transpose" in entry.op.name
        if transposed and not is_backward(entry.row.phase):
            groups[entry.row.scope] = product.batch
    return groups


def _ran_in(run: Run) -> dict[str, str]:
    """The widest precision that products with the layer's weights were computed in, by scope."""
    found: dict[str, Precision] = {}
    for entry, product, _ in _uses(run):
        known = found.setdefault(entry.row.scope, product.executed)
        found[entry.row.scope] = max(known, product.executed, key=lambda precision: precision.bits)
    return {scope: precision.name for scope, precision in found.items()}


def _uses(run: Run) -> Iterator[tuple[Entry, Product, Layer]]:
    """Every product that has a weight of its layer for a factor."""
    for entry in entries_of(run.ledger, run.layers):
        layer = run.layers.get(entry.row.scope)
        if layer is None or entry.work is None:
            continue
        for product, _ in entry.work.products:
            if weight_side(product, layer, entry.row.phase) in ("a", "b"):
                yield entry, product, layer


def _around(scope: str) -> Iterator[str]:
    """The scope, every module it is inside of, and the whole."""
    place = scope
    while place:
        yield place
        place = place.rpartition(".")[0]
    yield ""


def _is_float(name: str) -> bool:
    known = DTYPES.get(name)
    return known is not None and known.precision.kind == "float" and known.precision.bits >= 16
