"""The weights of a run's model by format: what a value carries, what it takes with its scales, what it ran in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bitwatt.dtypes import DTYPES
from bitwatt.precision.operands import is_backward, weight_side
from bitwatt.pricing import Entry
from bitwatt.records import Layer


@dataclass(frozen=True, slots=True)
class WeightGroup:
    """Layers whose weights are written alike."""

    format: str
    scopes: tuple[str, ...]
    values: int
    nbytes: int
    bits: float | None
    effective_bits: float | None
    inputs: tuple[str, ...]
    executed: tuple[str, ...]
    density: float
    unknown: tuple[str, ...]


def weight_groups(layers: Mapping[str, Layer], entries: Iterable[Entry]) -> list[WeightGroup]:
    """Layers that own weights, grouped by format, largest first."""
    ran: dict[str, set[str]] = {}
    inputs: dict[str, set[str]] = {}
    for entry in entries:
        scope = entry.row.scope
        if entry.work is None or scope not in layers or is_backward(entry.row.phase):
            continue
        for product, _ in entry.work.products:
            side = weight_side(product, layers[scope], entry.row.phase)
            if side in ("a", "b"):
                ran.setdefault(scope, set()).add(product.executed.name)
                inputs.setdefault(scope, set()).add((product.b if side == "a" else product.a).name)
    groups: dict[tuple[object, ...], list[str]] = {}
    for scope, layer in layers.items():
        if layer.parameters and layer.weight_dtype is not None:
            groups.setdefault((scope if layer.kind == "optimizer" else "", *_key(layer)), []).append(scope)
    made = [_group([(scope, layers[scope]) for scope in scopes], ran, inputs) for scopes in groups.values()]
    return sorted(made, key=lambda group: -group.values)


def are_told_apart(layers: Iterable[Layer]) -> bool:
    """Whether dtypes alone would leave something out."""
    return any(not layer.is_plain or layer.unknown for layer in layers)


def _key(layer: Layer) -> tuple[object, ...]:
    weights, activations = layer.weights, layer.activations
    return (
        weights.precision.name if weights else layer.weight_dtype,
        round(weights.effective_bits, 1) if weights else None,
        activations.precision.name if activations else "",
        bool(layer.unknown),
        layer.density < 1,
    )


def _group(members: list[tuple[str, Layer]], ran: dict[str, set[str]], inputs: dict[str, set[str]]) -> WeightGroup:
    layers = [layer for _, layer in members]
    first = layers[0]
    values = sum(layer.parameters for layer in layers)
    dtype = DTYPES.get(first.weight_dtype or "")
    bits = first.weights.bits if first.weights else dtype.precision.bits if dtype else None
    effective = None
    if first.weights:
        sized = [(layer.weights.effective_bits, layer.parameters) for layer in layers if layer.weights]
        effective = sum(bits * n for bits, n in sized) / max(sum(n for _, n in sized), 1)
    states = f"{members[0][0]} states: " if first.kind == "optimizer" else ""
    return WeightGroup(
        format=states + (first.weights.precision.name if first.weights else str(first.weight_dtype)),
        scopes=tuple(scope for scope, _ in members),
        values=values,
        nbytes=sum(layer.weight_bytes for layer in layers),
        bits=bits,
        effective_bits=effective if effective is not None else bits,
        inputs=_all(members, inputs),
        executed=_all(members, ran),
        density=sum(layer.density * layer.parameters for layer in layers) / max(values, 1),
        unknown=tuple(dict.fromkeys(layer.unknown for layer in layers if layer.unknown)),
    )


def _all(members: list[tuple[str, Layer]], found: dict[str, set[str]]) -> tuple[str, ...]:
    return tuple(sorted({name for scope, _ in members for name in found.get(scope, ())}))
