"""sklearn.feature_extraction: text is counted in characters and tokens; tf-idf is arithmetic."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from bitwatt.dtypes import dtype
from bitwatt.formulas.arrays import checked, floats, logarithms, stored
from bitwatt.formulas.inside import Probes, looked_at
from bitwatt.formulas.trees import LOG2
from bitwatt.formulas.vector import DOUBLE, SINGLE, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule

_NAME = "sklearn.feature_extraction."
_STEPS = dtype("int64").precision
#: Characters to a token where documents came from a stream that nobody may read twice: five and a space.
_TOKEN = 6

free(f"{_NAME}CountVectorizer.fit", f"{_NAME}TfidfVectorizer.fit", reason="calls fit_transform, which is counted")
free(
    f"{_NAME}HashingVectorizer.fit", f"{_NAME}HashingVectorizer.partial_fit", f"{_NAME}FeatureHasher.fit",
    f"{_NAME}PatchExtractor.fit",
    reason="there is nothing to learn, and the data is not looked at",
)  # fmt: skip
free(
    f"{_NAME}HashingVectorizer.fit_transform", f"{_NAME}DictVectorizer.inverse_transform",
    reason="calls transform, which is counted, or looks names up by index",
)  # fmt: skip


def _text(probes: tuple[Any, ...]) -> Work:
    """Characters and tokens of every pass over documents."""
    steps, guessed = 0, False
    for name, *sizes, times in probes:
        if name == "tokens" and len(sizes) == 2:
            characters, tokens = sizes
            guessed |= characters < 0
            steps += (tokens + (_TOKEN * tokens if characters < 0 else characters)) * times
    return replace(Work.of(_STEPS, text=steps), estimated=guessed)


@rule(
    *(f"{_NAME}{kind}.{method}" for kind in ("CountVectorizer", "TfidfVectorizer") for method in (
        "fit_transform", "transform")),
    family="text",
)  # fmt: skip
def count_words(probes: tuple[Any, ...] = (), **_: Any) -> Work:
    """One step for each character that is read and for each token that is counted. The weights of tf-idf are counted as
    their own: TfidfTransformer. Where only the most frequent words are kept, their counts are added up when they are
    learnt: a product with ones."""
    kept = (found[1:] for found in probes if found[0] == "limited" and len(found) == 4)
    return sum((arithmetic(2 * n * times, SINGLE if bits == 32 else DOUBLE) for n, bits, times in kept), _text(probes))


@rule(*(f"{_NAME}{kind}.inverse_transform" for kind in ("CountVectorizer", "TfidfVectorizer")), family="text")
def words_back(X: TensorSpec, **_: Any) -> Work:
    """The finiteness check; names are looked up by index, sorted before (27 operations bound the depth)."""
    return (checked(X) if X.precision.kind == "float" else Work()) + arithmetic(LOG2, DOUBLE)


@rule(f"{_NAME}HashingVectorizer.transform", family="text")
def hashed_words(norm: Any = "l2", out: tuple[TensorSpec, ...] = (), probes: tuple[Any, ...] = (), **_: Any) -> Work:
    """One step for each character and token; hashes are counted as their own (FeatureHasher). Rows are normalised."""
    return _text(probes) + (_normalised(out[0], norm) if out else Work())


@rule(f"{_NAME}FeatureHasher.transform", family="text")
def hashed(out: tuple[TensorSpec, ...] = (), probes: tuple[Any, ...] = (), **_: Any) -> Work:
    """One step for each feature that is hashed, and an addition where two fall into the same column of a row."""
    tokens = sum(found[1] * found[-1] for found in probes if found[0] == "hashes" and len(found) == 3)
    met = tokens - stored(out[0]) if out and out[0].nnz is not None else 0
    return Work.of(_STEPS, text=tokens) + Work.of(DOUBLE, add=max(met, 0))


free(f"{_NAME}FeatureHasher.fit_transform", reason="calls transform, which is counted")


@rule(*(f"{_NAME}DictVectorizer.{method}" for method in ("fit", "transform", "fit_transform")), family="text")
def named_features(X: Any = None, out: tuple[TensorSpec, ...] = (), feature_names_: Any = (), **_: Any) -> Work:
    """One step for each named value. Without a result to count them in, as many as names in every sample."""
    names = len(feature_names_) if isinstance(feature_names_, tuple) else feature_names_
    if isinstance(feature_names_, TensorSpec):
        names = feature_names_.shape[0]
    rows = X.shape[0] if isinstance(X, TensorSpec) else len(X) if isinstance(X, tuple) else 1
    if out:
        return Work.of(_STEPS, text=stored(out[0]))
    return replace(Work.of(_STEPS, text=rows * int(names or 0)), estimated=True)


def _normalised(X: TensorSpec, norm: Any) -> Work:
    """The finiteness check, the norm of each row in double, and a division."""
    if norm is None:
        return Work()
    kept = stored(X)
    filled = X.shape[0] * (1 - math.exp(-kept / max(X.shape[0], 1)))
    norms = arithmetic(2 * kept + filled if norm == "l2" else kept if norm == "l1" else 0, DOUBLE)
    return checked(X) + norms + Work.of(floats(X), div=kept)


@rule(f"{_NAME}TfidfTransformer.fit", family="text")
def frequencies(X: TensorSpec, use_idf: bool = True, **_: Any) -> Work:
    """The finiteness check; documents that hold a word are counted; for each word log(n / count) + 1."""
    logs = logarithms(X.shape[1], floats(X)) + arithmetic(3 * X.shape[1], floats(X)) if use_idf else Work()
    return checked(X) + logs


@rule(f"{_NAME}TfidfTransformer.transform", family="text")
def weighted(
    X: TensorSpec, use_idf: bool = True, sublinear_tf: bool = False, norm: Any = "l2", out: tuple[TensorSpec, ...] = (),
    probes: Probes = (), **_: Any,
) -> Work:  # fmt: skip
    """The finiteness check, a product with the word's weight for each stored count, and the norm of each document.
    Sublinear: the logarithm of each count first; in double that of 1 is known at once, and where nobody looked one
    count in twelve is taken to be larger."""
    kept, p, logs = stored(out[0]) if out else stored(X), floats(X), Work()
    if sublinear_tf:
        known = looked_at(probes, "counts of one")
        logs = logarithms(kept, p, 0, known[0] if known else 917, 0) + Work.of(p, add=kept)
        logs = replace(logs, estimated=not known and p.bits == 64)
    return checked(X) + logs + Work.of(p, mul=kept * use_idf) + _normalised(out[0] if out else X, norm)


@rule(f"{_NAME}PatchExtractor.transform", family="copy")
def patches(X: TensorSpec, out: tuple[TensorSpec, ...] = (), **_: Any) -> Work:
    """The finiteness check of the images, twice; patches are copied."""
    return checked(X) * 2
