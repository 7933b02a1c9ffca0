"""what_if(): a recorded run in other formats beside the run as it was."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.errors import UnknownNameError
from bitwatt.precision.operands import is_backward, weight_side
from bitwatt.pricing import entries_of
from bitwatt.records import Run
from bitwatt.whatif.choice import Choice, Patterns, choose
from bitwatt.whatif.drawing import html, markdown, text
from bitwatt.whatif.figures import Figure, compared
from bitwatt.whatif.layers import Rewriting, rewritten
from bitwatt.whatif.rows import changed_ledger, multiplies, owner
from bitwatt.whatif.widths import Table


@dataclass(frozen=True, eq=False, repr=False)
class WhatIf:
    """A run as recorded (`original`) and in other formats (`run`), what each layer became, and both in numbers.

    `run` is a run like any other: price it, report it, keep it. `result["bops"]` is one of the `figures`.
    """

    original: Run
    run: Run
    changed: Mapping[str, str]
    skipped: Mapping[str, str]
    notes: tuple[str, ...]
    figures: tuple[Figure, ...]

    def __getitem__(self, name: str) -> Figure:
        for figure in self.figures:
            if figure.name == name:
                return figure
        raise UnknownNameError(f"no figure is called {name!r}; there are {', '.join(f.name for f in self.figures)}")

    @property
    def title(self) -> str:
        formats = list(dict.fromkeys(self.changed.values()))
        shown = "; ".join(formats[:3]) + ("; …" if len(formats) > 3 else "")
        layers = "layer" if len(self.changed) == 1 else "layers"
        return f"{self.original.name or self.original.id}: {len(self.changed)} {layers} with {shown}"

    @property
    def remarks(self) -> list[str]:
        """What a reader should know beside the numbers: layers left alone, by reason, and notes."""
        reasons: dict[str, list[str]] = {}
        for scope, reason in self.skipped.items():
            reasons.setdefault(reason, []).append(scope)
        told = [f"unchanged, {reason}: {_listed(scopes)}" for reason, scopes in reasons.items()]
        return [*told, *self.notes]

    def table(self) -> list[list[str]]:
        return [["", "recorded", "what if", "ratio"], *(figure.cells() for figure in self.figures)]

    def markdown(self) -> str:
        return markdown(self.title, self.table(), self.remarks)

    def json(self) -> dict[str, Any]:
        return {
            "run": self.original.id,
            "figures": {f.name: {"before": f.before, "after": f.after, "unit": f.unit} for f in self.figures},
            "changed": dict(self.changed),
            "skipped": dict(self.skipped),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return text(self.title, self.table(), self.remarks)

    def _repr_html_(self) -> str:
        return html(self.title, self.table(), self.remarks)


def what_if(
    run: Run,
    weights: str | None = None,
    activations: str | None = None,
    layers: Patterns = "*",
    except_layers: Patterns = (),
    table: Table | None = None,
) -> WhatIf:
    """The run as it would be with these formats in the layers that match `layers` and none of `except_layers`.

    `weights` alone keeps the arithmetic as it was and adds the work of expanding the weights. Integers on both sides,
    or narrow floats, are multiplied as they are. float32, float16 and bfloat16 are what a layer then runs in.
    `table` names formats by layer: a CSV file with the columns layer, weights and activations, or such rows.
    """
    choice = choose(run, weights, activations, layers, except_layers, table)
    ran = _ran_in(run)
    rewritings = {
        scope: rewriting
        for scope, formats in choice.formats.items()
        if (rewriting := rewritten(run.layers[scope], formats, ran.get(scope))).layer.shapes or rewriting.dtype
    }
    changed = {scope: str(choice.formats[scope]) for scope in rewritings if run.layers[scope].parameters}
    notes = (*_as_recorded(run, rewritings), *_replaced(run, changed))
    after = _run(run, rewritings, changed, choice)
    return WhatIf(run, after, changed, choice.skipped, notes, compared(run, after, frozenset(rewritings)))


def _run(run: Run, rewritings: Mapping[str, Rewriting], changed: Mapping[str, str], choice: Choice) -> Run:
    """Under another id, so that both can be kept, and without times: nobody has run it."""
    digest = hashlib.sha256(repr(sorted(choice.formats.items(), key=lambda item: item[0])).encode()).hexdigest()[:6]
    formats = "; ".join(dict.fromkeys(changed.values()))
    return replace(
        run,
        id=f"{run.id}-if-{digest}",
        name=f"{run.name} what if",
        seconds=0.0,
        phase_seconds={},
        ledger=changed_ledger(run, rewritings),
        layers={scope: rewritings[scope].layer if scope in rewritings else run.layers[scope] for scope in run.layers},
        notes=(*run.notes, f"not measured: run {run.id} with {formats} in {len(changed)} layers, by what_if"),
    )


def _ran_in(run: Run) -> dict[str, str]:
    """The widest precision that products with the layer's weights were computed in, by scope."""
    found: dict[str, Precision] = {}
    for entry in entries_of(run.ledger, run.layers):
        layer = run.layers.get(entry.row.scope)
        for product, _ in entry.work.products if entry.work and layer is not None else ():
            if layer is not None and weight_side(product, layer, entry.row.phase) in ("a", "b"):
                known = found.setdefault(entry.row.scope, product.executed)
                found[entry.row.scope] = max(known, product.executed, key=lambda precision: precision.bits)
    return {scope: precision.name for scope, precision in found.items()}


def _as_recorded(run: Run, rewritings: Mapping[str, Rewriting]) -> tuple[str, ...]:
    """What could not be written anew, said: products of backward whose sizes leave open whether the weight is a factor
    or the result, of which nothing is claimed, and kernels that cannot be told to multiply narrow operands."""
    unclear: dict[str, None] = {}
    fused: dict[str, None] = {}
    for entry in entries_of(run.ledger, run.layers):
        found = owner(entry.row.scope, rewritings, run.layers)
        if found is None or found.weights is None or entry.work is None:
            continue
        frozen, phase = replace(found.layer, trains=False), entry.row.phase
        for product, _ in entry.work.products:
            side = weight_side(product, found.layer, phase)
            if side == "out" and weight_side(product, frozen, phase) != "out":
                unclear[entry.row.scope] = None
            if side in ("a", "b") and found.multiplier and not is_backward(phase) and not multiplies(entry.op):
                fused[entry.op.name] = None
    notes = {
        "in backward, products whose sizes do not tell weights from gradients are left as recorded": unclear,
        "kernels that do more than a product run in the precision that was recorded": fused,
    }
    return tuple(f"{note}: {_listed(list(names))}" for note, names in notes.items() if names)


def _replaced(run: Run, changed: Mapping[str, str]) -> tuple[str, ...]:
    scopes = [scope for scope in changed if run.layers[scope].weights is not None]
    note = "were quantised already: that format and the work of going to and from it are replaced"
    return (f"{note}: {_listed(scopes)}",) if scopes else ()


def _listed(scopes: list[str]) -> str:
    return ", ".join(scopes[:6]) + (f" and {len(scopes) - 6} more" if len(scopes) > 6 else "")
