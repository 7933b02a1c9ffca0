"""Models that the claims about deployment are held against: made and trained here, small enough to take seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Made = tuple[Any, Any, Any]  # a fitted model, rows it has not seen, their labels
ROWS, TRAINED = 2000, 2000


def _split(X: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    return X[:TRAINED], y[:TRAINED], X[TRAINED:], y[TRAINED:]


def _classified(features: int, classes: int) -> tuple[Any, Any, Any, Any]:
    from sklearn.datasets import make_classification

    useful = min(features, 30) // 2 + 5
    X, y = make_classification(
        TRAINED + ROWS, features, n_informative=useful, n_classes=classes, n_clusters_per_class=1, random_state=0
    )
    return _split(X.astype(np.float32), y)


def _fitted(model: Any, features: int = 20, classes: int = 3) -> Made:
    X, y, rows, labels = _classified(features, classes)
    return model.fit(X, y), rows, labels


def logistic_784() -> Made:
    """LogisticRegression, 784 features, 10 classes."""
    from sklearn.linear_model import LogisticRegression

    return _fitted(LogisticRegression(max_iter=20), 784, 10)


def mlp_784() -> Made:
    """MLPClassifier 784-512-512-10."""
    from sklearn.neural_network import MLPClassifier

    return _fitted(MLPClassifier((512, 512), max_iter=4, random_state=0), 784, 10)


def forest() -> Made:
    """RandomForestClassifier of 100 trees, 20 features."""
    from sklearn.ensemble import RandomForestClassifier

    return _fitted(RandomForestClassifier(100, random_state=0))


def boosting() -> Made:
    """GradientBoostingClassifier of 50 rounds, 20 features."""
    from sklearn.ensemble import GradientBoostingClassifier

    return _fitted(GradientBoostingClassifier(n_estimators=50, random_state=0))


def vectors() -> Made:
    """SVC with RBF kernel, 20 features."""
    from sklearn.svm import SVC

    return _fitted(SVC(random_state=0))


def columns() -> Made:
    """ColumnTransformer (scaler, one-hot) and LogisticRegression, 12 numbers and 4 texts in a DataFrame."""
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    X, y, rows, labels = _classified(16, 3)
    numbers, texts = [f"n{i}" for i in range(12)], [f"t{i}" for i in range(4)]

    def frame(array: Any) -> Any:
        found = pd.DataFrame(array[:, :12], columns=numbers)
        for i, name in enumerate(texts):
            found[name] = np.array(list("abcdef"))[np.digitize(array[:, 12 + i], (-2, -1, 0, 1, 2))]
        return found

    made = ColumnTransformer([("numbers", StandardScaler(), numbers), ("texts", OneHotEncoder(), texts)])
    model = Pipeline([("columns", made), ("model", LogisticRegression(max_iter=200))])
    return model.fit(frame(X), y), frame(rows), labels


FAMILIES: dict[str, Callable[[], Made]] = {
    "logistic-784": logistic_784,
    "mlp-784-512-512-10": mlp_784,
    "columns+logistic": columns,
    "forest-100": forest,
    "boosting-50": boosting,
    "svc-rbf": vectors,
}
