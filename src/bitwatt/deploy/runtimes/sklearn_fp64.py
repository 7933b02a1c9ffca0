"""The estimator itself, as it was trained: what everything else is held against."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bitwatt.deploy.records import Artefact, Case, Loaded, Precision

FILE = "model.joblib"


class Native:
    """An estimator in this process."""

    def __init__(self, model: Any, method: str) -> None:
        from bitwatt.deploy.given.estimators import answer

        self.model, self.method, self.answer = model, method, answer

    def predict(self, rows: Any) -> Any:
        return self.answer(self.model, self.method, rows)


class SklearnFp64:
    name, baseline, order = "sklearn-fp64", "native", 0

    def applies(self, case: Case) -> bool:
        return case.framework == "sklearn"

    def build(self, case: Case, folder: Path) -> Artefact:
        precision = Precision("fp64", evidence="as trained")
        return keep(case, case.model, folder, self.name, precision)

    def load(self, artefact: Artefact, threads: int) -> Loaded:
        return Native(loaded(artefact, threads), artefact.method)


RUNTIME = SklearnFp64


def keep(case: Case, model: Any, folder: Path, name: str, precision: Precision, **told: Any) -> Artefact:
    """An estimator as a file."""
    from bitwatt.deploy.making import saving

    saving.dump(model, folder / FILE)
    modules = saving.modules(folder / FILE)
    return Artefact(
        name, name, str(folder), (FILE,), case.method, saving.size(folder, (FILE,)), precision,
        ("joblib", *modules), saving.versions("joblib", "numpy", *modules),
        options={"homes": saving.homes(modules)}, **told,
    )  # fmt: skip


def loaded(artefact: Artefact, threads: int) -> Any:
    import joblib

    from bitwatt.deploy.given import estimators
    from bitwatt.deploy.making import saving

    saving.reach(artefact.options)
    model = joblib.load(Path(artefact.folder) / FILE)
    estimators.limit(model, threads)
    return model
