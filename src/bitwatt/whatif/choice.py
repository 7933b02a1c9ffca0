"""Which layers of a run are written anew, and in which formats: by pattern, or by a table of widths."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from bitwatt.errors import BitwattError, UnknownNameError
from bitwatt.records import Layer, Run
from bitwatt.whatif.schemes import Scheme, scheme
from bitwatt.whatif.widths import Table, lines

Patterns = str | Iterable[str]


@dataclass(frozen=True, slots=True)
class Formats:
    """What a layer's weights and the values that go into it are written in; None: as recorded."""

    weights: Scheme | None
    activations: Scheme | None

    def __str__(self) -> str:
        told = {"weights": self.weights, "activations": self.activations}
        return ", ".join(f"{part} {scheme.name}" for part, scheme in told.items() if scheme)


@dataclass(frozen=True, slots=True)
class Choice:
    """Formats by scope, and why the other layers with parameters stay as they are."""

    formats: Mapping[str, Formats]
    skipped: Mapping[str, str]


def choose(
    run: Run,
    weights: str | None,
    activations: str | None,
    layers: Patterns,
    except_layers: Patterns,
    table: Table | None,
) -> Choice:
    """Later lines of the table win over earlier ones, the table wins over `weights` and `activations`, and an excepted
    layer is left alone whatever chose it. A pattern that matches a module covers all that is inside it."""
    if weights is None and activations is None and table is None:
        raise BitwattError("nothing to change: give weights, activations or a table of widths")
    scopes = [scope for scope, layer in run.layers.items() if not is_optimizer(layer)]
    _check_shapes(run)
    chosen: dict[str, Formats] = {}
    if weights is not None or activations is not None:
        formats = _formats(weights, activations)
        chosen |= dict.fromkeys(_matching(_patterns(layers), scopes), formats)
    for line in lines(table):
        try:
            matched, formats = _matching([line.layer], scopes), _formats(line.weights, line.activations)
            if formats == _UNCHANGED and chosen.keys().isdisjoint(matched):
                raise BitwattError("neither weights nor activations, and nothing before it to take back")
        except BitwattError as error:
            raise BitwattError(f"{line.where}: {error}") from None
        chosen |= dict.fromkeys(matched, formats)
    excepted = set(_matching(_patterns(except_layers), scopes))
    kept = {scope: formats for scope, formats in chosen.items() if scope not in excepted and formats != _UNCHANGED}
    if not kept:
        raise BitwattError("nothing to change: no layer is chosen, or all that are chosen are excepted")
    return Choice(kept, _skipped(run.layers, scopes, kept, excepted))


_UNCHANGED = Formats(None, None)


def is_optimizer(layer: Layer) -> bool:
    """States of an optimizer stand among the layers, yet are none."""
    return layer.kind == "optimizer"


#: Whose estimators have no layers that could be written anew.
_ESTIMATORS = ("sklearn", "xgboost", "lightgbm", "catboost")


def _check_shapes(run: Run) -> None:
    if not any(layer.shapes for layer in run.layers.values()):
        if any(row.op.name.partition(".")[0] in _ESTIMATORS for row in run.ledger):
            raise BitwattError(
                f"run {run.id} holds estimators, and no module with a weight matrix, which is what can be written in "
                "another format. To try an estimator in others: bitwatt deploy MODEL --data ROWS"
            )
        raise BitwattError(
            f"run {run.id} tells no shapes of weights: it was recorded by an older bitwatt (file version 1), or no "
            "module with a weight matrix was called. Record it again to ask what if"
        )


def _formats(weights: str | None, activations: str | None) -> Formats:
    return Formats(scheme(weights) if weights else None, scheme(activations) if activations else None)


def _patterns(given: Patterns) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _matching(patterns: list[str], scopes: list[str]) -> list[str]:
    found: dict[str, None] = {}
    for pattern in patterns:
        matched = [scope for scope in scopes if any(fnmatchcase(place, pattern) for place in _around(scope))]
        if not matched:
            near = difflib.get_close_matches(pattern, scopes, n=5, cutoff=0.4)
            near += [scope for scope in scopes if pattern.strip("*.") in scope and scope not in near][:3]
            hint = f"near ones are {', '.join(near)}" if near else f"there are {', '.join(scopes[:8])}, …"
            raise UnknownNameError(f"no layer matches {pattern!r}; {hint}")
        found |= dict.fromkeys(matched)
    return list(found)


def _around(scope: str) -> list[str]:
    """The scope and every module it is inside of."""
    steps = scope.split(".")
    return [".".join(steps[:end]) for end in range(len(steps), 0, -1)]


def _skipped(
    layers: Mapping[str, Layer], scopes: list[str], kept: Mapping[str, Formats], excepted: set[str]
) -> dict[str, str]:
    reasons = {}
    for scope in scopes:
        layer = layers[scope]
        if not layer.parameters:
            continue
        if scope in excepted:
            reasons[scope] = "excepted"
        elif scope not in kept:
            reasons[scope] = "matched by no pattern"
        elif not layer.shapes and not _casts(kept[scope]):
            reasons[scope] = f"{layer.kind} has no weight matrix"
    return reasons


def _casts(formats: Formats) -> bool:
    return formats.weights is not None and formats.weights.is_cast
