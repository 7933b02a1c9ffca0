"""Names of estimators: as people import them, and as they are called inside a pipeline."""

from __future__ import annotations

import functools
from typing import Any

from numpy import ndarray

#: Libraries whose estimators have rules. Methods of other classes are the user's own code.
LIBRARIES = ("sklearn", "xgboost", "lightgbm", "catboost")

#: What a method is, for the phase of the outermost call.
PHASES = {
    "fit": "fit", "partial_fit": "fit", "fit_transform": "fit", "fit_predict": "fit", "path": "fit",
    "predict": "predict", "predict_proba": "predict", "predict_log_proba": "predict", "decision_function": "predict",
    "predict_joint_log_proba": "predict", "score_samples": "predict", "kneighbors": "predict",
    "radius_neighbors": "predict", "kneighbors_graph": "predict", "radius_neighbors_graph": "predict",
    "apply": "predict", "decision_path": "predict", "staged_predict": "predict", "staged_predict_proba": "predict",
    "staged_decision_function": "predict", "sample": "predict", "sample_y": "predict", "predict_quantiles": "predict",
    "transform": "transform", "inverse_transform": "transform", "score": "score", "staged_score": "score",
    "mahalanobis": "score", "error_norm": "score", "log_marginal_likelihood": "score", "aic": "score", "bic": "score",
    "perplexity": "score", "gibbs": "predict", "correct_covariance": "fit", "reweight_covariance": "fit",
    "get_feature_importance": "score", "densify": "fit", "sparsify": "fit", "get_covariance": "score",
    "get_precision": "score", "train": "fit", "get_submatrix": "predict", "hdbscan": "fit", "dbscan_clustering": "fit",
    "build_tokenizer": "transform", "inplace_predict": "predict", "refit": "fit", "calc_leaf_indexes": "predict",
    "eval_metrics": "score", "select_features": "fit", "grid_search": "fit", "randomized_search": "fit",
    "staged_predict_log_proba": "predict", "virtual_ensembles_predict": "predict", "get_object_importance": "score",
    "calc_feature_statistics": "score", "quantize": "fit", "latent_mean_and_variance": "predict",
    "reconstruction_error": "score",
}  # fmt: skip
METHODS = tuple(method for method in PHASES if method not in ("train", "build_tokenizer", "hdbscan"))


def library_of(kind: type) -> str:
    return kind.__module__.partition(".")[0]


@functools.cache
def public_name(kind: type) -> str:
    """`sklearn.linear_model._ridge.Ridge` -> `sklearn.linear_model.Ridge`, for the nearest class of a library."""
    for parent in kind.__mro__:
        if library_of(parent) in LIBRARIES:
            parts = [part for part in parent.__module__.split(".") if not part.startswith("_")]
            if parts[0] != "sklearn":
                parts = parts[:1]
            elif len(parts) > 2 and parts[-1].islower() and parts[1] != "experimental":
                parts = parts[:2]
            return ".".join([*parts, parent.__name__])
    return f"{kind.__module__}.{kind.__qualname__}"


def own_name(kind: type, method: str, function: Any) -> str:
    """The method's own path, as one would import it. A class that is made in a function and unpickled by value forgets
    where it was made, and its functions do not."""
    parts = [part for part in kind.__module__.split(".") if part == "__main__" or not part.startswith("_")]
    path = function.__qualname__.split(".")[:-1]
    if path[-1:] != [kind.__name__]:  # made elsewhere, and given to the class
        path = kind.__qualname__.split(".")
    return ".".join([*parts, *(part for part in path if part != "<locals>"), method])


def op_name(kind: type, method: str, function: Any) -> str:
    """The estimator's name and the method's; one that scikit-learn's base mixins define for all who inherit it goes
    by theirs: `sklearn.base.ClassifierMixin.score`."""
    if getattr(function, "__module__", "") == "sklearn.base":
        return f"sklearn.base.{function.__qualname__}"
    return f"{public_name(kind)}.{method}"


def _held(estimator: Any) -> dict[str, Any]:
    """Its attributes; the program's own classes may have slots."""
    return getattr(estimator, "__dict__", {})


def steps_of(estimator: Any) -> list[tuple[str, Any]]:
    """Named parts: the steps of a Pipeline, the transformers of a ColumnTransformer or FeatureUnion, the estimators of
    a vote; and single ones by the name of their parameter."""
    found: list[tuple[str, Any]] = []
    held = _held(estimator)
    for attribute in _LISTS:
        parts = held.get(attribute)
        if parts is not None and isinstance(parts, (list, tuple)):
            found += [(str(part[0]), part[1]) for part in parts if isinstance(part, tuple) and len(part) >= 2]
    kinds = {kind for kind in {*map(type, held.values())} - _NEVER if is_part(kind)}
    if kinds:
        found += [
            (attribute.rstrip("_"), part)
            for attribute, part in held.items()
            if type(part) in kinds and not attribute.startswith("_")
        ]
    return found


def maybe_parts(estimator: Any) -> set[type]:
    """Classes among which those of its parts are, quickly."""
    held = _held(estimator)
    found = {*map(type, held.values())}
    for attribute in _lists_of(estimator.__class__):
        parts = held.get(attribute)
        if parts is not None and isinstance(parts, (list, tuple)):
            found.update([type(part[1]) for part in parts if isinstance(part, tuple) and len(part) >= 2])
    return found - _NEVER


def steps_by_identity(estimator: Any) -> dict[int, tuple[str, Any]]:
    """Parts that stand in lists with their names."""
    held, lists = _held(estimator), _lists_of(estimator.__class__)
    found: dict[int, tuple[str, Any]] = {}
    for attribute in lists:
        if attribute in held and isinstance(parts := held[attribute], (list, tuple)):
            for part in parts:
                if isinstance(part, tuple) and len(part) >= 2:
                    found.setdefault(id(part[1]), (str(part[0]), part[1]))
    return found


def parts_like(estimator: Any, child: Any) -> list[tuple[str, Any]]:
    """Those of `steps_of` that are the child or of its class; quickly, for it is asked for every child."""
    kind: Any = type(child)
    held = _held(estimator)
    found: list[tuple[str, Any]] = []
    for attribute in _LISTS:
        if attribute in held and isinstance(parts := held[attribute], (list, tuple)):
            for part in parts:
                if isinstance(part, tuple) and len(part) >= 2 and type(part[1]) is kind:
                    if part[1] is child:
                        return [(str(part[0]), child)]
                    found.append((str(part[0]), part[1]))
    for one in held.values():  # quicker than to hand their types to `in`
        if type(one) is kind:
            return found + _called(held, kind)
    return found


def _called(held: dict[str, Any], kind: Any) -> list[tuple[str, Any]]:
    """Attributes that are parts of this class."""
    if not is_part(kind):
        return []
    return [(name.rstrip("_"), part) for name, part in held.items() if type(part) is kind and name[:1] != "_"]


_LISTS = ("steps", "transformers", "transformer_list", "estimators")


@functools.cache
def _lists_of(kind: Any) -> tuple[str, ...]:
    """Those that estimators of a class may hold: a library's are parameters."""
    if library_of(kind) not in LIBRARIES or not hasattr(kind, "_get_param_names"):
        return _LISTS
    return tuple([name for name in _LISTS if name in kind._get_param_names()])


#: Most attributes are of these, and no parts.
_NEVER = frozenset({type(None), bool, int, float, str, list, tuple, dict, ndarray})


@functools.cache
def is_part(kind: type) -> bool:
    return hasattr(kind, "fit") or hasattr(kind, "transform")
