"""Text and dictionaries: tokens, words and vocabularies, of which shapes tell nothing."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call
from bitwatt.backends.sklearn.apriori.registry import assumes, calls, told_by_shapes
from bitwatt.records import TensorSpec

told_by_shapes("feature_extraction.TfidfTransformer feature_extraction.PatchExtractor", "fit", "transform")
told_by_shapes("feature_extraction.HashingVectorizer feature_extraction.FeatureHasher", "fit", "partial_fit")
told_by_shapes("feature_extraction.DictVectorizer", "fit")


def _tokens(call: Call) -> tuple[int, int]:
    """Tokens of all documents, and distinct ones in each, added up."""
    each = float(call.assume("tokens", 100, "of a document"))
    share = float(call.assume("distinct", 0.7, "share of a document's tokens"))
    return round(each * call.rows), round(each * share * call.rows)


def _vocabulary(call: Call) -> int:
    if call.get("vocabulary") is not None:
        return len(call.get("vocabulary"))
    words = int(call.assume("vocabulary", 20_000, "words"))
    most = call.get("max_features")
    return words if most is None else min(words, int(most))


@assumes("feature_extraction.CountVectorizer", methods=("fit_transform",))
def counted(call: Call) -> dict[str, Any]:
    tokens, distinct = _tokens(call)
    width = _vocabulary(call)
    characters = float(call.assume("characters", 5.5, "of a token, with the space after it"))
    call.probe("tokens", round(characters * tokens), tokens)
    told = {"_width": width, "_kept": distinct / max(call.rows, 1), "_dtype": str(_dtype(call))}
    if "Tfidf" in type(call.estimator).__name__:
        _weigh(call, TensorSpec((call.rows, width), "float64", distinct), "fit")
        if call.method == "fit_transform":
            _weigh(call, TensorSpec((call.rows, width), "float64", distinct), "transform")
    return told


def _dtype(call: Call) -> str:
    kind = call.get("dtype")
    return "float64" if "Tfidf" in type(call.estimator).__name__ else getattr(kind, "__name__", "int64")


def _weigh(call: Call, counts: TensorSpec, method: str) -> None:
    from sklearn.feature_extraction.text import TfidfTransformer

    names = ("norm", "use_idf", "smooth_idf", "sublinear_tf")
    call.ask(TfidfTransformer(**{name: call.estimator.get_params()[name] for name in names}), method, counts)


calls("feature_extraction.CountVectorizer feature_extraction.TfidfVectorizer", "fit", "fit_transform")


@assumes("feature_extraction.CountVectorizer", methods=("transform",))
def counted_again(call: Call) -> dict[str, Any]:
    tokens, distinct = _tokens(call)
    characters = float(call.assume("characters", 5.5, "of a token, with the space after it"))
    call.probe("tokens", round(characters * tokens), tokens)
    if "Tfidf" in type(call.estimator).__name__:
        _weigh(call, TensorSpec((call.rows, call.known["_width"]), "float64", distinct), "transform")
    return {}


@assumes("feature_extraction.HashingVectorizer", methods=("transform",))
def hashed_text(call: Call) -> dict[str, Any]:
    from sklearn.feature_extraction import FeatureHasher

    tokens, distinct = _tokens(call)
    width = int(call.get("n_features", 2**20))
    hasher = FeatureHasher(width, input_type="string")
    call.walk.fitted[id(hasher)] = {"_hashes": tokens, "_kept": distinct / max(call.rows, 1), "_width": width}
    call.ask(hasher, "transform", call.X)
    return {"_width": width, "_kept": distinct / max(call.rows, 1), "_dtype": "float64"}


calls("feature_extraction.HashingVectorizer", "fit_transform", "fit", "transform")


@assumes("feature_extraction.FeatureHasher", methods=("transform",))
def hashed(call: Call) -> dict[str, Any]:
    hashes = call.known.get("_hashes") or round(float(call.assume("tokens", 100, "of a row")) * call.rows)
    call.probe("hashes", hashes)
    width, each = int(call.get("n_features", 2**20)), hashes / max(call.rows, 1)
    kept = call.known.get("_kept") or width * -math.expm1(-each / width)  # buckets that are hit
    return {"_width": width, "_kept": kept, "_dtype": "float64"}


@assumes("feature_extraction.DictVectorizer", methods=("transform", "fit_transform"))
def dictionaries(call: Call) -> dict[str, Any]:
    width = int(call.assume("vocabulary", 100, "keys"))
    each = float(call.assume("tokens", 10, "keys of a row"))
    return {"_width": width, "_kept": each if call.get("sparse", True) else None, "_dtype": "float64"}
