"""what_if(): a recorded run in other formats beside the run as it was."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bitwatt.errors import BitwattError, UnknownNameError
from bitwatt.precision.operands import is_backward, weight_side
from bitwatt.pricing import entries_of
from bitwatt.records import Run
from bitwatt.whatif.choice import Choice, Patterns, choose
from bitwatt.whatif.drawing import html, markdown, text
from bitwatt.whatif.figures import Figure, compared
from bitwatt.whatif.layers import Rewriting, rewritten
from bitwatt.whatif.recorded import own_dtypes, transposed_groups
from bitwatt.whatif.rows import changed_ledger, is_float, is_of_model, multiplies, owner
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
    own, transposed = own_dtypes(run), transposed_groups(run)
    written = {
        scope: rewritten(run.layers[scope], formats, own[scope], transposed.get(scope, 0))
        for scope, formats in choice.formats.items()
    }
    rewritings = {scope: to for scope, to in written.items() if to.layer.shapes or to.dtype}
    changed = {scope: str(choice.formats[scope]) for scope in rewritings if run.layers[scope].parameters}
    if not changed:
        raise BitwattError("nothing to change: no layer that was chosen has weights to be written in these formats")
    notes = (*_as_recorded(run, rewritings), *_other_dtypes(run, rewritings), *_replaced(run, changed))
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
        device_seconds={},
        ledger=changed_ledger(run, rewritings),
        layers={scope: rewritings[scope].layer if scope in rewritings else run.layers[scope] for scope in run.layers},
        notes=(*run.notes, f"not measured: run {run.id} with {formats} in {len(changed)} layers, by what_if"),
    )


def _as_recorded(run: Run, rewritings: Mapping[str, Rewriting]) -> tuple[str, ...]:
    """What could not be written anew, said: products of backward whose sizes leave open whether the weight is a factor
    or the result, of which nothing is claimed, and kernels that cannot be told to multiply narrow operands."""
    unclear: dict[str, None] = {}
    fused: dict[str, None] = {}
    folded: dict[str, None] = {}
    for entry in entries_of(run.ledger, run.layers):
        found = owner(entry.row.scope, rewritings, run.layers)
        if found is None or entry.work is None:
            continue
        if entry.op.folded is not None and is_of_model(entry.row.phase):
            folded[entry.row.scope] = None
        if entry.op.folded is not None or found.weights is None:
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
        "calls whose sizes were folded are left as recorded": folded,
    }
    return tuple(f"{note}: {_listed(list(names))}" for note, names in notes.items() if names)


def _other_dtypes(run: Run, rewritings: Mapping[str, Rewriting]) -> tuple[str, ...]:
    """A change of dtype goes with the dtype of the weights. What ran in others would do so again: autocast casts
    weights of any dtype, and a norm that computes in float32 asks for it."""
    found: dict[str, dict[str, None]] = {}
    for row in run.ledger:
        to = owner(row.scope, rewritings, run.layers)
        if to is None or to.dtype is None or not is_of_model(row.phase):
            continue
        for spec in (*row.op.inputs, *row.op.out):
            if is_float(spec) and spec.dtype not in (to.own, to.dtype):
                found.setdefault(spec.dtype, {})[row.scope] = None
    note = "computed in another dtype than that of the weights (by autocast, or as the model asks), which stays"
    return tuple(f"{note}: {dtype} in {_listed(list(scopes))}" for dtype, scopes in found.items())


def _replaced(run: Run, changed: Mapping[str, str]) -> tuple[str, ...]:
    scopes = [scope for scope in changed if run.layers[scope].weights or run.layers[scope].activations]
    note = "were quantised already: that format and the work of going to and from it are replaced"
    return (f"{note}: {_listed(scopes)}",) if scopes else ()


def _listed(scopes: list[str]) -> str:
    return ", ".join(scopes[:6]) + (f" and {len(scopes) - 6} more" if len(scopes) > 6 else "")
