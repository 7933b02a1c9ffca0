"""Dictionary learning and sparse codes: a Lasso or least angles for every sample, over the atoms."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call
from bitwatt.backends.sklearn.apriori.decomposition import components, random_range, wanted
from bitwatt.backends.sklearn.apriori.linear import iterations
from bitwatt.backends.sklearn.apriori.registry import assumes, told_by_shapes
from bitwatt.records import TensorSpec


def encode(call: Call, algorithm: str, samples: int, atoms: int, times: int = 1) -> None:
    """The code of so many samples: atoms are columns of a regression with the features as its rows."""
    from sklearn.linear_model import Lasso, LassoLars

    X = TensorSpec((call.columns, atoms), call.X.dtype)
    y = TensorSpec((call.columns, samples), call.X.dtype)
    if algorithm in ("cd", "lasso_cd"):
        call.ask(Lasso(precompute=True, fit_intercept=False), "fit", X, y, times=times)
    elif algorithm in ("lars", "lasso_lars"):
        call.ask(LassoLars(fit_intercept=False), "fit", X, y, times=times)


@assumes("decomposition.DictionaryLearning", methods=("fit_transform",))
def dictionary(call: Call) -> dict[str, Any]:
    atoms, steps = wanted(call, call.columns), iterations(call, int(call.get("max_iter", 1000)))
    encode(call, str(call.get("fit_algorithm", "lars")), call.rows, atoms, steps)
    return components(call, atoms) | {"n_iter_": steps}


@assumes("decomposition.MiniBatchDictionaryLearning")
def minibatch_dictionary(call: Call) -> dict[str, Any]:
    atoms, batch = wanted(call, call.columns), min(int(call.get("batch_size", 256)), call.rows)
    epochs = iterations(call, int(call.get("max_iter", 1000)))
    random_range(call, call.rows, call.columns, atoms)
    steps = epochs * math.ceil(call.rows / batch)
    call.probe("atoms", times=steps)
    encode(call, str(call.get("fit_algorithm", "lars")), batch, atoms, steps)
    return components(call, atoms) | {"n_iter_": float(epochs), "n_steps_": steps}


@assumes("decomposition.SparsePCA", "decomposition.MiniBatchSparsePCA")
def sparse_pca(call: Call) -> dict[str, Any]:
    """A dictionary of the transposed data."""
    from sklearn.decomposition import DictionaryLearning, MiniBatchDictionaryLearning

    count, method = wanted(call, call.columns), str(call.get("method", "lars"))
    turned = TensorSpec((call.columns, call.rows), call.X.dtype)
    if "MiniBatch" in type(call.estimator).__name__:
        few, rounds = call.get("batch_size", 3), call.get("max_iter", 1000)
        inner: Any = MiniBatchDictionaryLearning(count, max_iter=rounds, fit_algorithm=method, batch_size=few)
        call.ask(inner, "fit", turned)
    else:
        inner = DictionaryLearning(count, max_iter=call.get("max_iter", 1000), fit_algorithm=method)
        call.ask(inner, "fit_transform", turned)
    return components(call, count)


@assumes("decomposition.DictionaryLearning", "decomposition.MiniBatchDictionaryLearning", methods=("transform",))
def code(call: Call) -> dict[str, Any]:
    atoms = call.known["components_"].shape[0]
    encode(call, str(call.get("transform_algorithm", "omp")), call.rows, atoms)
    return {"_width": atoms}


told_by_shapes("decomposition.SparseCoder", "fit")


@assumes("decomposition.SparseCoder", methods=("transform",))
def given_code(call: Call) -> dict[str, Any]:
    atoms = call.estimator.dictionary.shape[0]
    encode(call, str(call.get("transform_algorithm", "omp")), call.rows, atoms)
    return {"_width": atoms}
