"""How much of a run was computed in integers: the proof, or not, that a model called INT8 is one."""

from __future__ import annotations

from typing import Any, NamedTuple

from bitwatt.pricing import COUNTED, Entry, entries_of
from bitwatt.records import ARITHMETIC, QUANTISATION, Run

#: What quantised tensors are kept in; wider integers are indices, lengths and sums.
_WIDEST = 16


class Share(NamedTuple):
    """Multiply-accumulates that ran in integers, all of them; nodes that compute in integers, and all that compute."""

    integer_macs: int
    macs: int
    integer_nodes: int
    nodes: int


def share(model: Any, shapes: Any = None, batch: int | None = None) -> Share:
    """Of an ONNX model (a path, bytes or a ModelProto), best of the graph that a runtime has optimised, since that is
    what runs; or of a run, where a node in a loop counts as often as it ran.

    A product is in integers if its multiplier was: an 8-bit weight that is expanded to float before it is multiplied is
    not. A node computes if it multiplies matrices, or calculates with or compares floats or integers of up to 16 bits.
    Nodes that move data, that only go to and from a small format, or that deal with lengths and indices do not. A node
    computes in integers if all its products do, or, without any, if all its calculating does.
    """
    if isinstance(model, Run):
        return Share(*_macs(model), *_nodes(model))
    from bitwatt.backends.onnx import count

    return Share(*_macs(count(model, shapes, batch)), *_nodes(count(model, shapes, batch, once=True)))


def _macs(run: Run) -> tuple[int, int]:
    products = [
        (product, product.macs * times * entry.row.calls)
        for entry in _counted(run)
        if entry.work is not None
        for product, times in entry.work.products
    ]
    return sum(n for product, n in products if product.executed.kind == "int"), sum(n for _, n in products)


def _nodes(run: Run) -> tuple[int, int]:
    computing = [(entry, kinds) for entry in _counted(run) if (kinds := _kinds(entry))]
    return sum(entry.calls for entry, kinds in computing if kinds == {"int"}), sum(
        entry.calls for entry, _ in computing
    )


def _counted(run: Run) -> list[Entry]:
    return [entry for entry in entries_of(run.ledger, run.layers) if entry.status == COUNTED]


def _kinds(entry: Entry) -> set[str]:
    """Kinds of numbers that it calculates with; of its products alone where it has some, since what stands beside them
    (scales, a bias) is in floats in integer kernels too."""
    assert entry.work is not None
    if entry.work.products:
        return {product.executed.kind for product, _ in entry.work.products}
    return {
        precision.kind
        for kind, precision, part, _ in entry.work.ops
        if (kind in ARITHMETIC or kind == "compare" or _is_table(entry, kind))
        and part != QUANTISATION
        and (precision.kind in ("float", "complex") or (precision.kind == "int" and precision.bits <= _WIDEST))
    }


def _is_table(entry: Entry, kind: str) -> bool:
    """Functions of 8-bit values are looked up, not calculated."""
    return kind == "index" and entry.rule is not None and entry.rule.family == "activation"
