"""Methods that only call others of their own estimator, or of other estimators, and are called often."""

from __future__ import annotations

from bitwatt.backends.sklearn.facts import hollow

_ASKED = ("predict", "predict_proba", "predict_log_proba", "decision_function")
_CALLS = {
    "base.TransformerMixin": ("fit_transform",),
    "base.ClusterMixin": ("fit_predict",),
    "base.OutlierMixin": ("fit_predict",),
    "pipeline.Pipeline": (
        "fit", "fit_transform", "fit_predict", *_ASKED, "score", "score_samples", "transform", "inverse_transform",
    ),
    "pipeline.FeatureUnion": ("fit", "fit_transform", "transform"),
    "compose.ColumnTransformer": ("fit", "fit_transform", "transform"),
    **{f"preprocessing.{scaler}": ("fit",) for scaler in ("StandardScaler", "MinMaxScaler", "MaxAbsScaler")},
    **{
        f"linear_model.{kind}": ("predict",)
        for kind in ("LogisticRegression", "LogisticRegressionCV", "SGDClassifier", "Perceptron", "RidgeClassifier",
                     "PassiveAggressiveClassifier")
    },
    "svm.LinearSVC": ("predict",),
    "discriminant_analysis.LinearDiscriminantAnalysis": ("predict",),
    "ensemble.RandomForestClassifier": ("predict",),
    "ensemble.ExtraTreesClassifier": ("predict",),
    "neighbors.KNeighborsClassifier": ("score",),
}  # fmt: skip

hollow.update(f"sklearn.{kind}.{method}" for kind, methods in _CALLS.items() for method in methods)
