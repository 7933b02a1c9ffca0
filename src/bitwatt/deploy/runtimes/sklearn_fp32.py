"""The same estimator on rows in float32, with its weights in float32 where scikit-learn then computes in float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bitwatt.deploy.records import Artefact, Case, Loaded, Precision, UnfitError
from bitwatt.deploy.runtimes.sklearn_fp64 import Native, keep, loaded

#: Whose fitted arrays are plain numbers to multiply and add. Compiled code of the others insists on float64.
CASTABLE = ("sklearn.linear_model", "sklearn.preprocessing", "sklearn.decomposition", "sklearn.neural_network",
            "sklearn.svm._classes", "sklearn.discriminant_analysis", "sklearn.cluster")  # fmt: skip


class Narrow(Native):
    def predict(self, rows: Any) -> Any:
        from bitwatt.deploy.given.estimators import as_float32

        return self.answer(self.model, self.method, as_float32(rows))


class SklearnFp32:
    name, baseline, order = "sklearn-fp32", "", 1

    def applies(self, case: Case) -> bool:
        from bitwatt.deploy.given import rows

        return case.framework == "sklearn" and not rows.is_texts(case.inputs)

    def build(self, case: Case, folder: Path) -> Artefact:
        import copy

        from bitwatt.deploy.given import rows
        from bitwatt.deploy.given.estimators import answer, as_float32

        few = as_float32(rows.take(case.inputs, slice(0, 64)))
        model, told = copy.deepcopy(case.model), "weights in float32"
        kinds = narrow(model)
        try:
            found = answer(model, case.method, few) if kinds else None
        except Exception:  # compiled code that insists on float64: its weights stay as they are
            found = None
        if found is None:
            model, told = case.model, "weights as trained"
            try:
                found = answer(model, case.method, few)
            except Exception as error:
                raise UnfitError(f"takes no rows in float32: {type(error).__name__}: {error}") from error
        single = found.dtype == "float32" or (found.dtype.kind != "f" and bool(kinds))
        return keep(case, model, folder, self.name, precision(single, told, found.dtype))

    def load(self, artefact: Artefact, threads: int) -> Loaded:
        return Narrow(loaded(artefact, threads), artefact.method)


RUNTIME = SklearnFp32


def precision(single: bool, told: str, dtype: Any) -> Precision:
    evidence = f"rows in float32, {told}, results in {dtype}"
    if single:
        return Precision("fp32", evidence=evidence)
    return Precision("mixed", note="the rows are float32, what is computed with them is float64", evidence=evidence)


def narrow(model: Any) -> list[str]:
    """Casts fitted arrays in place; returns the classes that have any."""
    import numpy as np

    from bitwatt.deploy.given.estimators import parts

    found = []
    for part in parts(model):
        if not type(part).__module__.startswith(CASTABLE) or type(part).__name__ in ("SVC", "SVR", "NuSVC", "NuSVR"):
            continue
        for key, value in list(vars(part).items()):
            if isinstance(value, np.ndarray | np.float64) and value.dtype == np.float64:
                setattr(part, key, value.astype(np.float32))
            elif isinstance(value, list) and value and all(getattr(v, "dtype", None) == np.float64 for v in value):
                setattr(part, key, [array.astype(np.float32) for array in value])
            else:
                continue
            found.append(type(part).__name__)
    return found
