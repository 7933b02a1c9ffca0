"""What a study says of the data: rows at the edge of what the model has seen, drift since training, balance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bitwatt.deploy.given import rows as rows_of
from bitwatt.deploy.judging import drifting, quality, restoring
from bitwatt.deploy.records import Case, Checked, Scenario

#: How far scores may lie apart on such rows before they count as other answers, in units of the largest.
APART = 1e-3
#: The same where 8 bits were asked for.
APART_ROUNDED = 0.25
ALONE = 16  # rows that are also predicted one by one


def checks(case: Case, scenarios: Sequence[Scenario]) -> list[Checked]:
    with restoring.threads():
        return [edge_rows(case, scenarios), drifting.drift(case), drifting.balance(case)]


def edge_rows(case: Case, scenarios: Sequence[Scenario]) -> Checked:
    """Whether every scenario answers them as the native one does, or refuses them likewise."""
    from bitwatt.deploy import runtimes

    name = "edge-case rows"
    ready = {one.name: one for one in scenarios if one.artefact is not None}
    native = next((one for one in ready.values() if one.baseline == "native"), None)
    if native is None or native.artefact is None:
        return Checked(name, None, "there is no native scenario to hold the others against")
    edges = dict(rows(case.inputs))
    expected = {edge: _answer(runtimes.load(native.artefact), given) for edge, given in edges.items()}
    differing: dict[str, list[str]] = {}
    for other in ready.values():
        if other is native or other.artefact is None:
            continue
        loaded = runtimes.load(other.artefact)
        for edge, given in edges.items():
            if told := _differs(case, other, expected[edge], _answer(loaded, given)):
                differing.setdefault(f"{edge}: {native.name} {told}", []).append(other.name)
        if told := _alone(case, loaded):
            differing.setdefault(told, []).append(other.name)
    if not differing:
        return Checked(name, True, f"all agree with {native.name} on {', '.join(edges)}")
    return Checked(name, False, "; ".join(f"{told} ({', '.join(names)})" for told, names in differing.items()))


def rows(inputs: Any) -> Iterator[tuple[str, Any]]:
    """A row of each kind, by what is special about it."""
    one = rows_of.take(inputs, slice(0, 1))
    if rows_of.is_texts(inputs):
        yield from (
            ("an empty text", [""]),
            ("words never seen", ["zzqx vrrk 0 ?"]),
            ("capitals beyond ASCII", ["ÄÖÜ ÉÈ ÇA ΩΣ ЖЯ"]),
        )
    elif rows_of.is_frame(inputs):
        yield from _framed(inputs, one)
    elif isinstance(inputs, tuple) or not hasattr(inputs, "shape"):
        yield "a single row", one
    else:
        yield from _filled(inputs, one)


def _framed(inputs: Any, one: Any) -> Iterator[tuple[str, Any]]:
    numbers = [name for name, kind in inputs.dtypes.items() if getattr(kind, "kind", "O") in "fiu"]
    floats = [name for name, kind in inputs.dtypes.items() if getattr(kind, "kind", "O") == "f"]
    others = [
        name for name in inputs.columns if name not in numbers and getattr(inputs[name].dtype, "kind", "O") != "b"
    ]
    for edge, value in (("zeros", lambda column: 0), ("the highest values", max), ("the lowest values", min)):
        if numbers:
            yield edge, one.assign(**{name: _cast(inputs[name], value) for name in numbers})
    if others:
        yield "a category never seen", one.assign(**dict.fromkeys(others, "never-seen"))
    if floats:
        yield "a missing number", one.assign(**{floats[0]: float("nan")})


def _cast(column: Any, value: Callable[[Any], Any]) -> Any:
    return column.dtype.type(value(column))


def _filled(inputs: Any, one: Any) -> Iterator[tuple[str, Any]]:
    """Of an array or a tensor."""
    import numpy as np

    whole = np.asarray(rows_of.on_host(inputs.toarray() if rows_of.is_sparse(inputs) else inputs))
    finite = whole[np.isfinite(whole)] if whole.dtype.kind == "f" else whole
    high, low = finite.max(initial=0), finite.min(initial=0)
    values = {"zeros": 0, "the highest values": high, "the lowest values": low}
    if whole.dtype.kind == "f":
        values |= {"values 1,000 times as high": high * 1000, "missing numbers": np.nan}
    for edge, value in values.items():
        if edge == "zeros" and whole.dtype.kind != "f" and low > 0:
            continue
        filled = np.full((1, *whole.shape[1:]), value, dtype=whole.dtype)
        yield edge, _like(one, filled)


def _like(one: Any, filled: Any) -> Any:
    if rows_of.is_tensor(one):
        import torch

        return torch.from_numpy(filled).to(one.dtype)
    return type(one)(filled) if rows_of.is_sparse(one) else filled


def _answer(loaded: Any, given: Any) -> Any:
    """What it says, or the name of what it raises."""
    import numpy as np

    try:
        with np.errstate(all="ignore"):
            return np.asarray(loaded.predict(given))
    except Exception as error:  # refusing is an answer here, whatever it is called
        return type(error).__name__


def _differs(case: Case, scenario: Scenario, expected: Any, found: Any) -> str:
    import numpy as np

    if isinstance(expected, str) or isinstance(found, str):
        if isinstance(expected, str) and isinstance(found, str):
            return ""
        return f"refuses it ({expected}), these answer" if isinstance(expected, str) else "answers, these refuse it"
    if expected.shape != found.shape:
        return "answers in another shape"
    if expected.dtype.kind != "f":
        return "gives another label" if quality.differ(expected, found).any() else ""
    if (np.isnan(expected) != np.isnan(found)).any():
        return "gives a number, these NaN" if np.isnan(found).any() else "gives NaN, these a number"
    size = max(1e-9, float(np.nanmax(np.abs(expected), initial=0.0)))
    precision = scenario.artefact.precision if scenario.artefact else None
    coarse = precision is not None and (precision.integer_nodes or precision.mode in ("fp16", "bf16"))
    apart = float(np.nanmax(np.abs(expected - found), initial=0.0)) / size
    return f"is {apart:.1%} away" if apart > (APART_ROUNDED if coarse else APART) else ""


def _alone(case: Case, loaded: Any) -> str:
    """Whether a row's answer depends on the rows beside it, as with ranges that are found in each call."""
    import numpy as np

    few = rows_of.take(case.inputs, slice(0, ALONE))
    together = loaded.predict(few)
    one_by_one = np.concatenate([loaded.predict(rows_of.take(few, slice(at, at + 1))) for at in range(len(together))])
    ours, theirs = quality.labels(case, together), quality.labels(case, one_by_one)
    if ours is None or theirs is None:
        return ""
    flips = int(quality.differ(ours, theirs).sum())
    return f"{flips} of {len(together)} labels depend on the rows in the same batch" if flips else ""
