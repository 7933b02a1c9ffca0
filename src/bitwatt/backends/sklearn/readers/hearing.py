"""Which families have a use for which probes, and after a fit for what it told. Families that are not here add up all
that was counted inside."""

from __future__ import annotations

from bitwatt.backends.sklearn.facts import passes
from bitwatt.backends.sklearn.probes import hears

#: Their formulas need sizes and attributes alone, or they leave all the work to estimators of their own.
for _family in ("pipeline", "compose", "model_selection", "multiclass", "multioutput", "dummy",
                "isotonic", "discriminant_analysis", "cross_decomposition", "random_projection"):  # fmt: skip
    hears(f"sklearn.{_family}.")

hears("sklearn.naive_bayes.", "binary")
hears("sklearn.linear_model.", "linear_")
hears("sklearn.svm._classes.Linear", "linear_")
hears("sklearn.tree.", "columns", "pruned")
hears("sklearn.ensemble.", "columns", "pruned", "trees", "grower", "initial")
hears("sklearn.mixture.", "maximisation", "start")
hears("sklearn.neural_network.", "network_loss")
hears("sklearn.preprocessing.", "likelihood", "nonzero")
hears("sklearn.calibration.", "calibration")
for _part in ("pca", "incremental_pca", "truncated_svd", "factor_analysis", "fastica"):
    hears(f"sklearn.decomposition._{_part}.", "random range", "arpack step", "deflation step")
hears("sklearn.decomposition._nmf.NMF", "factor descent", "factor updates", "random range")
hears("sklearn.decomposition._nmf.MiniBatchNMF", "factor ", "divergence", "random range")
hears("sklearn.decomposition._lda.", "topics")
for _library in ("xgboost", "lightgbm", "catboost"):
    hears(f"{_library}.", "columns")

#: What they predict takes as long after many iterations as after few: sizes of the fitted arrays tell.
for _family in ("linear_model", "svm", "neural_network", "mixture"):
    passes(f"sklearn.{_family}.", "n_iter_")
