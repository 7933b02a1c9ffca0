"""Traps between a model and its conversions: what the numbers of a scenario show, and what to do about it."""

from __future__ import annotations

from typing import Any

from bitwatt.deploy.amounts import percent
from bitwatt.deploy.given import rows as rows_of
from bitwatt.deploy.records import Case, Precision, Quality, Scenario

#: Relative differences of scores beyond what float32 explains, though nothing was quantised.
TOLERANCE = 1e-3
#: Float32 keeps 24 bits: values whose spread is this small beside their size lose what tells them apart.
COARSE = 1e-5


def raised(case: Case, scenario: Scenario, found: Quality, native: Any, mine: Any) -> tuple[str, ...]:
    """What a user should know before they trust this scenario's predictions."""
    artefact = scenario.artefact
    if artefact is None or scenario.baseline == "native":
        return ()
    rounded = _rounded(artefact.precision)
    said = []
    if mine.shape != native.shape:
        said.append(f"results have the shape {mine.shape}, the native ones {native.shape}")
    if found.flips and not rounded:
        said.append(f"{found.flips:,} of {found.rows:,} labels flip though nothing was quantised: {_why(case)}")
    elif found.max_difference is not None and not rounded and found.max_difference > TOLERANCE * _size(native):
        labels = "no label flips, but scores" if found.flips == 0 else "values"
        said.append(f"{labels} differ by up to {found.max_difference:.2g} though nothing was quantised: {_why(case)}")
    if _undefined(mine) > _undefined(native):
        said.append(f"{_undefined(mine)} results are NaN or infinite, {_undefined(native)} of the native ones")
    if rounded and found.flips and found.rows and found.flips / found.rows > 0.01:
        share = f"{found.flips:,} of {found.rows:,} labels flip ({percent(found.flips / found.rows)})"
        said.append(f"{share}, whatever the accuracy says")
    return tuple(said)


def doubtful(scenario: Scenario, found: Quality, native: Any, mine: Any) -> bool:
    """Whether it is another model than the native one, which no accuracy on some rows makes good."""
    if scenario.artefact is None or scenario.baseline == "native":
        return False
    if mine.shape != native.shape or _undefined(mine) > _undefined(native):
        return True
    far = found.max_difference is not None and found.max_difference > TOLERANCE * _size(native)
    return far and not _rounded(scenario.artefact.precision)


def _rounded(precision: Precision) -> bool:
    return bool(precision.integer_nodes) or precision.mode in ("int8", "fp16", "bf16")


def _why(case: Case) -> str:
    coarse = coarsest(case.inputs)
    if coarse is None:
        return "more than rounding to float32 explains, unless scores lie near a boundary; the conversion may be wrong"
    name, magnitude, spread, spacing = coarse
    return (
        f"the input {name} has values around {magnitude:.3g} that vary by {spread:.3g}, and float32 tells them apart "
        f"in steps of {spacing:.2g}; subtract the offset before the cast to float32, or use a graph in float64"
    )


def coarsest(inputs: Any) -> tuple[str, float, float, float] | None:
    """The feature that loses most in float32: its name, size, spread and the spacing of float32 there."""
    import numpy as np

    if rows_of.is_frame(inputs):
        columns = {
            str(name): inputs[name].to_numpy()
            for name, kind in inputs.dtypes.items()
            if getattr(kind, "kind", "O") in "fiu"
        }
    elif (
        getattr(inputs, "ndim", 0) == 2
        and getattr(getattr(inputs, "dtype", None), "kind", "") in "fiu"
        and not rows_of.is_sparse(inputs)
    ):
        columns = {str(at): inputs[:, at] for at in range(inputs.shape[1])}
    else:
        return None
    worst: tuple[str, float, float, float] | None = None
    for name, values in columns.items():
        magnitude, spread = float(np.nanmax(np.abs(values))), float(np.nanstd(values))
        spacing = float(np.spacing(np.float32(magnitude)))
        if spread and spacing / spread > (COARSE if worst is None else worst[3] / worst[2]):
            worst = name, magnitude, spread, spacing
    return worst


def _size(values: Any) -> float:
    import numpy as np

    finite = np.abs(values[np.isfinite(values)]) if values.dtype.kind == "f" else np.zeros(0)
    return max(1e-9, float(finite.max(initial=0.0)))


def _undefined(values: Any) -> int:
    import numpy as np

    return int((~np.isfinite(values)).sum()) if values.dtype.kind == "f" else 0
