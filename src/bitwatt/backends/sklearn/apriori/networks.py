"""Networks by their epochs, mixtures by their steps, and the Boltzmann machine."""

from __future__ import annotations

import itertools
from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call, is_classifier
from bitwatt.backends.sklearn.apriori.linear import iterations
from bitwatt.backends.sklearn.apriori.registry import assumes, calls, told_by_shapes
from bitwatt.records import TensorSpec

told_by_shapes("neural_network.", "predict", "predict_proba", "predict_log_proba", "transform", "score_samples",
               "gibbs")  # fmt: skip
calls("neural_network.MLPClassifier", "predict_log_proba", "predict_proba")


@assumes("neural_network.BaseMultilayerPerceptron", methods=("fit", "partial_fit"))
def perceptron(call: Call) -> dict[str, Any]:
    hidden = call.get("hidden_layer_sizes", (100,))
    hidden = (hidden,) if isinstance(hidden, int) else tuple(hidden)
    classes = is_classifier(call.estimator)
    outputs = call.one_for_each_class if call.outputs == 1 else call.outputs
    units = (call.columns, *hidden, outputs)
    solver, limit = call.get("solver", "adam"), int(call.get("max_iter", 200))
    epochs = 1 if call.method == "partial_fit" else iterations(call, limit, "max_iter")
    if solver == "lbfgs":
        call.probe("network_loss", times=int(call.assume("n_evaluations", round(1.1 * epochs) + 1, "of the loss")))
    activation = "identity" if not classes else "softmax" if outputs > 1 and call.outputs == 1 else "logistic"
    kind = "float32" if call.bits == 32 else "float64"
    return {
        "coefs_": tuple(TensorSpec(pair, kind) for pair in itertools.pairwise(units)),
        "intercepts_": tuple(TensorSpec((width,), kind) for width in units[1:]), "out_activation_": activation,
        "n_iter_": epochs, "n_outputs_": outputs, "n_layers_": len(units),
    }  # fmt: skip


@assumes("neural_network.BernoulliRBM", methods=("fit", "partial_fit"))
def boltzmann(call: Call) -> dict[str, Any]:
    return {"_width": int(call.get("n_components", 256)), "_kept": None}


@assumes("mixture.BaseMixture", methods=("fit_predict",))
def mixture(call: Call) -> dict[str, Any]:
    from sklearn.cluster import KMeans

    parts, tries = int(call.get("n_components", 1)), int(call.get("n_init", 1))
    steps = iterations(call, 12)
    call.probe("maximisation", times=steps * tries)
    call.probe("start", times=tries)
    if call.get("init_params", "kmeans") == "kmeans":
        call.ask(KMeans(n_clusters=parts, n_init=1), "fit", call.X, times=tries)
    return {"n_iter_": steps, "means_": TensorSpec((parts, call.columns), "float64"), "_outputs": 1}


calls("mixture.BaseMixture", "fit", "fit_predict")
told_by_shapes("mixture.BaseMixture", "fit", "predict", "predict_proba", "score_samples", "aic", "bic", "sample")
calls("mixture.BaseMixture", "score", "score_samples")
