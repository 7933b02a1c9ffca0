"""From a fitted estimator to an ONNX graph that answers the one question asked, in the given form of rows."""

from __future__ import annotations

import copy
import re
import warnings
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from bitwatt.deploy.given import estimators
from bitwatt.deploy.given import rows as rows_of
from bitwatt.deploy.making import boosters, pruning
from bitwatt.deploy.records import Case, UnfitError

#: In which onnxruntime folds texts to lower case: the first that this machine knows. C knows ASCII alone.
LOCALES = ("en_US.UTF-8", "C.UTF-8", "C")
#: What scikit-learn takes for a word unless told otherwise, and the same for onnxruntime, whose \w is ASCII alone. Left
#: to itself the converter has words end at letters beyond ASCII, and keeps those of one letter between two others.
WORDS, UNICODE_WORDS = r"(?u)\b\w\w+\b", r"[\p{L}\p{N}_]{2,}"


@dataclass(frozen=True, slots=True)
class Converted:
    model: Any  # onnx.ModelProto
    feeds: list[dict[str, Any]]
    tail: list[int]  # what follows the rows in the shape of the native result
    notes: tuple[str, ...] = ()


#: Several runtimes begin with the same graph.
_known: WeakKeyDictionary[Case, Converted] = WeakKeyDictionary()


def convert(case: Case) -> Converted:
    if case not in _known:
        _known[case] = converted(case)
    return _known[case]


def converted(case: Case, *, double: bool = False) -> Converted:
    """The first way to feed it whose results are the native ones; else the one that comes nearest.

    Columns of whole numbers may be numbers to scale or names of categories, which a graph takes in different types.
    `double` makes a graph in float64.
    """
    few = rows_of.take(case.inputs, slice(0, 256))
    native = estimators.answer(case.model, case.method, few)
    tail = list(native.shape[1:])
    best: tuple[float, Converted] | None = None
    failure: Exception | None = None
    for feeds in _ways(case, double):
        for locale in LOCALES if _folds(case.model) else ("",):
            try:
                graph = _graph(case, feeds, locale)
                made = Converted(graph, _taken(feeds, graph), tail, _told(locale))
                apart = _apart(native, _run(made, few))
            except Exception as error:  # of a converter or of the runtime: told if no other way works either
                failure = error
                continue
            if best is None or apart < best[0]:
                best = apart, made
            break
        if best is not None and best[0] < 1e-3:
            break
    if best is None:
        raise UnfitError(f"cannot be converted: {_said(failure)}") from failure
    if double and best[0] > 1e-6:
        raise UnfitError("the converter knows no float64 for this model: its graph gives other results than the model")
    return best[1]


def _ways(case: Case, double: bool) -> list[list[dict[str, Any]]]:
    inputs, number = case.inputs, "double" if double else "float"
    if rows_of.is_texts(inputs):
        return [[{"name": "texts", "of": "texts", "kind": "text"}]]
    numeric = not rows_of.is_frame(inputs) or all(
        kind.kind in "fiub" for kind in inputs.dtypes if hasattr(kind, "kind")
    )
    if numeric and not (rows_of.is_frame(inputs) and _by_column(case.model)):
        return [[{"name": "rows", "of": "matrix", "kind": number, "columns": rows_of.features(inputs)}]]
    ways = []
    for whole in (number, "int64"):
        kinds = {str(name): _kind(inputs[name].dtype, number, whole) for name in inputs.columns}
        way = [{"name": name, "of": "column", "column": name, "kind": kind} for name, kind in kinds.items()]
        if way not in ways:
            ways.append(way)
    return ways


def _kind(dtype: Any, number: str, whole: str) -> str:
    code = getattr(dtype, "kind", "O")
    if code == "f":
        return number
    return whole if code in "iub" else "text"


def _by_column(model: Any) -> bool:
    return any(estimators.is_a(part, "ColumnTransformer") for part in estimators.parts(model))


def _folds(model: Any) -> bool:
    """Whether it folds texts to lower case, for which onnxruntime needs a locale."""
    return any(_vectorises(part) and getattr(part, "lowercase", False) for part in estimators.parts(model))


def _vectorises(part: Any) -> bool:
    return estimators.is_a(part, "CountVectorizer", "TfidfVectorizer")


def _read(vectoriser: Any, locale: str) -> dict[str, Any]:
    """How texts are read: in which locale, and what is a word."""
    told = {"locale": locale} if locale else {}
    if vectoriser.analyzer == "word" and vectoriser.token_pattern == WORDS:
        told["tokenexp"] = UNICODE_WORDS
    return told


def _graph(case: Case, feeds: list[dict[str, Any]], locale: str) -> Any:
    import skl2onnx
    from skl2onnx.common import data_types as types

    boosters.register()
    kinds = {"float": types.FloatTensorType, "double": types.DoubleTensorType, "int64": types.Int64TensorType,
             "text": types.StringTensorType}  # fmt: skip
    initial = [(feed["name"], kinds[feed["kind"]]([None, feed.get("columns") or 1])) for feed in feeds]
    options: dict[int, dict[str, Any]] = {}
    estimator = copy.deepcopy(getattr(case.model, "best_estimator_", case.model))
    final = estimators.last(estimator)
    # None at all, and skl2onnx gives a classifier in a pipeline those of ZipMap, which not all have.
    options[id(final)] = {"raw_scores": True} if case.method == "decision_function" else {}
    for part in estimators.parts(estimator):
        if _vectorises(part) and (told := _read(part, locale)):
            options[id(part)] = told
        if estimators.is_a(part, "VotingClassifier"):
            part.flatten_transform = False  # its converter insists, though it matters to transform alone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = skl2onnx.to_onnx(
            estimator, initial_types=initial, options=options,
            target_opset={"": skl2onnx.get_latest_tested_opset_version(), "ai.onnx.ml": 3},
        )  # fmt: skip
    outputs = [value.name for value in pruning.without_zipmap(model).graph.output]
    asked = outputs[min(1, len(outputs) - 1)] if case.method in ("predict_proba", "decision_function") else outputs[0]
    return pruning.prune(model, asked)


def _taken(feeds: list[dict[str, Any]], model: Any) -> list[dict[str, Any]]:
    """The feeds that the graph has, by its own names: columns that are not used are gone, signs in names replaced."""
    names = [value.name for value in model.graph.input]
    if len(names) == len(feeds):
        return [feed | {"name": name} for feed, name in zip(feeds, names, strict=True)]
    plain = {re.sub(r"\W", "_", feed["name"]): feed for feed in feeds} | {feed["name"]: feed for feed in feeds}
    return [plain[name] | {"name": name} for name in names]


def _run(made: Converted, rows: Any) -> Any:
    import onnxruntime

    from bitwatt.deploy.making import feeding

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(made.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return feeding.shaped(session.run(None, feeding.fed(made.feeds)(rows))[0], made.tail)


def _apart(native: Any, found: Any) -> float:
    """How far results lie from the native ones: a share of labels, or a difference in units of the largest value."""
    import numpy as np

    if native.dtype.kind != "f":
        return float(np.mean(native.astype(str) != found.astype(native.dtype).astype(str)))
    with np.errstate(invalid="ignore"):
        return float(np.nanmax(np.abs(native - found), initial=0.0) / (np.nanmax(np.abs(native), initial=0.0) or 1.0))


def _told(locale: str) -> tuple[str, ...]:
    if not locale:
        return ()
    ascii_only = ", which folds ASCII letters alone to lower case" if locale == "C" else ""
    return (f"texts are folded to lower case in the locale {locale}{ascii_only}; a machine needs it to load the model",)


def _said(error: Exception | None) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}".rstrip(": ")
