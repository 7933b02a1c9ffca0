"""The case: a fitted model and rows that it takes, from files or from objects. What is wrong is told in a sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bitwatt.deploy.given import checking, datafiles, estimators, modelfiles
from bitwatt.deploy.given import rows as rows_of
from bitwatt.deploy.records import Case
from bitwatt.errors import BitwattError


def case(
    model: Any,
    data: Any,
    y: Any = None,
    *,
    trust: bool = False,
    target: str | None = None,
    train: Any = None,
    method: str | None = None,
    metric: Any = None,
    name: str = "",
    device: str = "",
) -> Case:
    """`model` is a file, package.module:function, or the model itself; `data` a file or the rows, `y` their targets.

    `method` is asked of an estimator: predict_proba where it has one, else predict. `train` are rows it was trained on,
    for calibration and drift. Raises `BitwattError` where the two do not fit.
    """
    path, notes = None, tuple[str, ...]()
    if isinstance(model, str | Path):
        model, path, notes = modelfiles.read(model, trust)
        name = name or (path.name if path else "")
    framework = _framework(model)
    data_path = Path(data) if isinstance(data, str | Path) else None
    if data_path is not None:
        data, found = datafiles.read(data_path, target, trusted=trust)
        y = found if y is None else y
        train = datafiles.training(data_path) if train is None else train
    if isinstance(train, str | Path):
        train = datafiles.read(Path(train), target, train=True, trusted=trust)[0]
    if framework == "torch":
        from bitwatt.deploy.given import modules

        modules.reachable(device)
        model = modules.ready(model)
        inputs, train = modules.tensors(model, data), None if train is None else modules.tensors(model, train)
        method, classes = "forward", None
        y = modules.targets(y)
    else:
        given, (inputs, y) = data, checking.suited(model, data, y)
        notes += checking.unused(given, inputs, y)
        train = None if train is None else checking.suited(model, train, None)[0]
        classes = checking.classes(model)
        asked, method = method, _method(model, method)
    checking.sizes(model, inputs, y)
    output = checking.tried(model, framework, inputs, method)
    if framework != "torch" and asked is None:
        method = checking.question(model, inputs, classes)
    if framework == "torch":
        classes = modules.classes(output, y)
    if not estimators.clusters(model):
        checking.targets(classes, y, output)
    checking.narrow(train, inputs)
    found = Case(
        model, framework, name or type(model).__name__, inputs, y, method, classes, train, path,
        digest(path) if path else _of_object(model), digest(data_path) if data_path else rows_of.digest((inputs, y)),
        data_path, metric, {"device": device} if device else {}, notes,
    )  # fmt: skip
    if metric is not None:
        _scored(found)
    return found


def digest(path: Path | str) -> str:
    """sha256 of a file. Nothing in it is run."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def described(case: Case) -> Mapping[str, Any]:
    """What a study keeps of the case."""
    return {
        "name": case.name, "class": type(case.model).__name__, "framework": case.framework, "method": case.method,
        "rows": rows_of.count(case.inputs), "features": rows_of.features(case.inputs),
        "classes": None if case.classes is None else [str(label) for label in case.classes],
        "clusters": estimators.clusters(case.model),
        "path": str(case.path.absolute() if case.path else ""),
        "data_path": str(case.data_path.absolute() if case.data_path else ""), "model_digest": case.model_digest,
        "data_digest": case.data_digest, "metric": getattr(case.metric, "__name__", case.metric) or "",
        "notes": list(case.notes),
    }  # fmt: skip


def _framework(model: Any) -> str:
    if hasattr(model, "state_dict") and hasattr(model, "parameters"):
        return "torch"
    if hasattr(model, "get_params") and hasattr(model, "predict"):
        return "sklearn"
    kind = f"{type(model).__module__}.{type(model).__name__}"
    if type(model).__name__ == "Booster":
        raise BitwattError(f"this is a {kind}; save the estimator around it (XGBClassifier, LGBMRegressor, ...)")
    raise BitwattError(f"this is a {kind}, neither an estimator with predict nor a torch module")


def _method(model: Any, asked: str | None) -> str:
    if asked is None:
        several = isinstance(getattr(model, "classes_", None), list)  # outputs, whose scores have no common shape
        return "predict_proba" if hasattr(model, "predict_proba") and not several else "predict"
    if not hasattr(model, asked):
        raise BitwattError(f"{type(model).__name__} has no {asked}")
    return asked


def _scored(case: Case) -> None:
    """A metric that cannot be computed is told before anything is measured."""
    from bitwatt.deploy.given import modules
    from bitwatt.deploy.judging import quality

    if case.target is None:
        raise BitwattError("a metric needs targets: y, or --target")
    if case.framework == "torch":
        quality.score(case, modules.answer(case.model, case.inputs))
    else:
        quality.score(case, estimators.answer(case.model, case.method, case.inputs))


def _of_object(model: Any) -> str:
    """Of its pickle: equal for one object in one process at least."""
    import io

    import joblib

    held = io.BytesIO()
    try:
        joblib.dump(model, held)
    except Exception:  # a lambda, a lock: what cannot be pickled has no digest
        return ""
    return hashlib.sha256(held.getvalue()).hexdigest()
