"""Parallelism that no library announces, recognised by what a rank exchanges with the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from bitwatt.ledger import Ledger, Row
from bitwatt.ranks.arrivals import Arrivals
from bitwatt.ranks.shares import REDUCING, message_kind, place_of
from bitwatt.records import Axis, Layer, Rank, TensorSpec, members

#: Of the trainable weights, the share that must be added up in each step to call it data parallel.
_MOST = 0.9

#: Who divides gradients.
_DIVIDING = ("DistributedDataParallel", "FullyShardedDataParallel", "fully_shard")


def recognised(rank: Rank, ledger: Ledger, layers: Mapping[str, Layer]) -> Rank:
    """With the axes that its messages tell, where they are not known yet."""
    known = {axis.kind for axis in rank.axes}
    found = {axis.kind: axis for axis in _axes(rank, ledger, layers) if axis.kind not in known}
    if known & {"data", "tensor"}:
        found.pop("data", None)
    return replace(rank, axes=(*rank.axes, *found.values())) if found else rank


def apart(rank: Rank | None, ledger: Ledger) -> Ledger:
    """With what data parallelism does to gradients before it adds them up, which one process alone need not do, as a
    phase of its own: it divides them by the number of ranks."""
    if rank is None or not any(axis.source in _DIVIDING for axis in rank.axes):
        return ledger
    return Ledger(replace(row, phase=_reducing(row.phase)) if _divides(row) else row for row in ledger)


def _reducing(phase: str) -> str:
    return f"{phase.removesuffix('backward')}{REDUCING}"


def _divides(row: Row) -> bool:
    """DDP multiplies into a place it has for it, FSDP divides many gradients in one row where they are. Formulas of
    backward do neither."""
    op = row.op
    if row.phase.rpartition("/")[2] != "backward":
        return False
    flat = all(len(spec.shape) == 1 for spec in op.inputs)
    return (op.name, op.overload) == ("aten.mul", "out") or (op.name == "aten.div_" and flat)


def _axes(rank: Rank, ledger: Ledger, layers: Mapping[str, Layer]) -> Iterator[Axis]:
    reduced: dict[str, int] = {}
    peers: dict[str, set[tuple[str, int]]] = {}
    for row in ledger:
        kind = message_kind(row.op)
        if not kind:
            continue
        group, peer = place_of(row.op)
        ranks = rank.groups.get(group, "")
        if ranks.isdigit():
            continue  # with itself
        if kind == "all-to-all" and not row.op.name.startswith("_dtensor") and _elements(row.op.inputs):
            yield Axis("expert", ranks, kind)
        elif kind in ("all-reduce", "reduce-scatter") and row.phase != "forward":
            reduced[ranks] = reduced.get(ranks, 0) + _elements(row.op.inputs) * row.calls
        elif kind in ("send", "receive"):
            peers.setdefault(ranks, set()).add((kind, peer))
    steps = _steps(rank)
    weights = sum(layer.parameters for layer in layers.values() if layer.trains)
    for ranks, elements in reduced.items():
        if weights and steps and elements >= _MOST * weights * steps:
            yield Axis("data", ranks, "all-reduce of gradients")
    for ranks, met in peers.items():
        if ranks and not _is_ring(met, len(members(ranks))):
            yield Axis("pipeline", ranks, "send and receive")


def _elements(specs: Iterable[TensorSpec]) -> int:
    return sum(spec.numel for spec in specs)


def _steps(rank: Rank) -> int:
    arrivals = Arrivals.unpacked(rank.arrivals)
    return 0 if arrivals is None or arrivals.rounds else arrivals.count + 1  # the first has nothing to measure from


def _is_ring(met: set[tuple[str, int]], size: int) -> bool:
    """Whether all is sent to one and received from another, as where blocks of a sequence go round."""
    to, origin = ({peer for kind, peer in met if kind == name} for name in ("send", "receive"))
    return size > 2 and len(to) == len(origin) == 1 and to != origin
