"""What `bitwatt explain` says of one layer: how its weights are written, who told, and what its products ran in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bitwatt.records import Layer, Quantised, Run


def explain_layer(run: Run, scope: str) -> list[str]:
    layer = run.layers.get(scope)
    return [*_layer(scope, layer), *_work(run, scope)]


def _layer(scope: str, layer: Layer | None) -> list[str]:
    from bitwatt.units import format_bytes, format_percent

    if layer is None:
        return [f"{scope}: code, no layer of a model"]
    lines = [f"{scope}: {layer.kind}"]
    if layer.shapes:
        lines.append(f"  weights      {', '.join(' x '.join(map(str, shape)) for shape in layer.shapes)}")
    if layer.parameters:
        lines.append(f"  kept in      {format_bytes(layer.weight_bytes)} for {layer.parameters:,} values")
    if layer.weights is not None:
        lines += _format("precision", layer.weights)
    elif layer.weight_dtype is not None:
        why = f"; {layer.unknown}" if layer.unknown else ""
        lines += [f"  precision    {layer.weight_dtype}", f"  told by      the dtype only{why}"]
    if layer.activations is not None:
        lines += _format("inputs", layer.activations)
    if layer.density < 1:
        lines.append(f"  not zero     {format_percent(layer.density)} of the weights")
    return lines


def _format(name: str, quantised: Quantised) -> list[str]:
    told = f"{quantised.precision.name}, {quantised.bits:.4g} bits a value"
    if quantised.effective_bits != quantised.bits:
        told += f", {quantised.effective_bits:.4g} with scales and zero points"
    if not quantised.stored:
        told += "; rounded on the way, not kept so"
    return [f"  {name:12s} {told}", f"  told by      {quantised.source}"]


def _work(run: Run, scope: str) -> list[str]:
    from bitwatt.pricing import entries_of, totals
    from bitwatt.units import format_bytes, format_count

    lines = ["", f"in run {run.id} ({run.name}):"]
    models = ("flops", "bops", "bops:executed", "bytes", "bytes:effective")
    sums = {model: totals(run, model).by("phase", "scope") for model in models}
    parts = totals(run, "flops").by("phase", "scope", "part")
    phases = [phase for phase, place in sums["bytes"] if place == scope]  # type: ignore[str-unpack]
    for phase in phases:
        n = {model: sums[model].get((phase, scope), 0) for model in models}  # type: ignore[call-overload]
        quantising = parts.get((phase, scope, "quantisation"), 0)  # type: ignore[call-overload]
        told = [format_count(n["flops"], "FLOP")]
        if quantising:
            told.append(f"of which {format_count(quantising)} quantisation")
        told.append(format_count(n["bops"], "BOP"))
        if n["bops:executed"] != n["bops"]:
            told.append(f"{format_count(n['bops:executed'])} executed")
        told.append(f"{format_bytes(n['bytes'])} moved")
        if n["bytes:effective"] != n["bytes"]:
            told.append(f"{format_bytes(n['bytes:effective'])} if kept packed")
        lines.append(f"  {phase:12s} {' · '.join(told)}")
    for entry in entries_of(run.ledger, run.layers):
        if entry.row.scope != scope or entry.work is None:
            continue
        for p, times in entry.work.products:
            size = f"{p.m:,} x {p.k:,} by {p.k:,} x {p.n:,}" + (f", {p.batch:,} of them" if p.batch > 1 else "")
            folded = entry.op.folded
            calls = times * entry.row.calls if folded is None else folded.calls
            size = size if folded is None else f"up to {folded.sizes:,} sizes, together {size}"
            lines.append(
                f"  {entry.row.phase:12s} {calls:,}x {entry.op.name}: {size}; {p.a.name} by {p.b.name}, "
                f"ran in {p.executed.name}"
            )
    return lines
