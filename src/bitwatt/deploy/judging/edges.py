"""Rows at the edge of what a model has seen, and whether a scenario answers them as the native one does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bitwatt.deploy.amounts import percent
from bitwatt.deploy.given import rows as rows_of
from bitwatt.deploy.judging import quality
from bitwatt.deploy.judging.asking import Answers
from bitwatt.deploy.records import Case, Checked, Scenario

NAME = "edge-case rows"

#: How far scores may lie apart on such rows before they count as other answers, in units of the largest.
APART = 1e-3
#: The same where 8 bits were asked for.
APART_ROUNDED = 0.25


def checked(case: Case, scenarios: Sequence[Scenario], answers: Mapping[str, Answers]) -> dict[str, Checked]:
    """Of every scenario: whether it answers them as the native one does, or refuses them likewise."""
    native = next((one for one in scenarios if one.baseline == "native" and one.name in answers), None)
    if native is None:
        why = "there is no native scenario to hold it against"
        return {name: Checked(NAME, None, why) for name in answers}
    return {
        one.name: _held(case, one, answers[one.name], native.name, answers[native.name])
        for one in scenarios
        if one.name in answers and not answers[one.name].failure
    }


def _held(case: Case, scenario: Scenario, mine: Answers, native: str, theirs: Answers) -> Checked:
    if mine.crashed:
        return Checked(NAME, False, f"it does not survive them: {mine.crashed}")
    alone = _alone(case, mine)
    if scenario.name == native:
        refused = [f"{edge} ({found})" for edge, found in mine.edges.items() if isinstance(found, str)]
        told = f"it is the model as it was trained: it answers {', '.join(_answered(mine)) or 'none'}"
        told += f" and refuses {', '.join(refused)}" if refused else ""
        return Checked(NAME, not alone, "; ".join(part for part in (told, alone) if part))
    if theirs.crashed:
        return Checked(NAME, None, f"{native}, which it is held against, does not survive them: {theirs.crashed}")
    differing = [
        f"{edge}: {native} {told}"
        for edge, expected in theirs.edges.items()
        if (told := _differs(scenario, expected, mine.edges.get(edge)))
    ]
    differing += [alone] if alone else []
    if differing:
        return Checked(NAME, False, "; ".join(differing))
    return Checked(NAME, True, f"it agrees with {native} on {', '.join(mine.edges)}")


def _answered(answers: Answers) -> list[str]:
    return [edge for edge, found in answers.edges.items() if not isinstance(found, str)]


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


def _differs(scenario: Scenario, expected: Any, found: Any) -> str:
    import numpy as np

    if isinstance(expected, str) or isinstance(found, str):
        if isinstance(expected, str) and isinstance(found, str):
            return ""
        return (
            f"refuses it ({expected}), this answers"
            if isinstance(expected, str)
            else f"answers, this refuses ({found})"
        )
    if expected.shape != found.shape:
        return "answers in another shape"
    if expected.dtype.kind != "f":
        return "gives another label" if quality.differ(expected, found).any() else ""
    if (np.isnan(expected) != np.isnan(found)).any():
        return "gives a number, this NaN" if np.isnan(found).any() else "gives NaN, this a number"
    size = max(1e-9, float(np.nanmax(np.abs(expected), initial=0.0)))
    precision = scenario.artefact.precision if scenario.artefact else None
    coarse = precision is not None and (precision.integer_nodes or precision.mode in ("fp16", "bf16"))
    apart = float(np.nanmax(np.abs(expected - found), initial=0.0)) / size
    return f"is {percent(apart)} away" if apart > (APART_ROUNDED if coarse else APART) else ""


def _alone(case: Case, answers: Answers) -> str:
    """Whether a row's answer depends on the rows beside it, as with ranges that are found in each call."""
    if answers.together is None:
        return ""
    ours, theirs = quality.labels(case, answers.together), quality.labels(case, answers.alone)
    if ours is None or theirs is None:
        return ""
    flips = int(quality.differ(ours, theirs).sum())
    return f"{flips} of {len(answers.together)} labels depend on the rows in the same batch" if flips else ""
