"""The inputs of the measured fits, by the names that their `data` fields use."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import make_blobs, make_classification, make_regression


def classification(
    n: int, f: int, classes: int = 2, dtype: str = "float64", seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(
        n, f, n_informative=max(4, f // 2), n_redundant=0, n_classes=classes, class_sep=0.7, flip_y=0.05,
        random_state=seed,
    )  # fmt: skip
    return X.astype(dtype), y


def regression(n: int, f: int, dtype: str = "float64", seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_regression(n, f, n_informative=max(4, f // 2), noise=10.0, random_state=seed)
    return X.astype(dtype), y.astype(dtype)


def blobs(n: int, f: int, centers: int, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    X, y = make_blobs(n, f, centers=centers, cluster_std=4.0, random_state=0)
    return X.astype(dtype), y


def nonnegative(n: int, f: int) -> tuple[np.ndarray, None]:
    return np.abs(np.random.RandomState(0).randn(n, 8)) @ np.abs(np.random.RandomState(1).randn(8, f)), None


def text(n: int, f: int) -> tuple[list[str], np.ndarray]:
    random = np.random.RandomState(0)
    words = [f"w{i}" for i in range(f * 20)]
    return [" ".join(random.choice(words, size=40)) for _ in range(n)], random.randint(0, 2, n)


NAMESPACE: dict[str, Any] = {
    "classification": classification, "regression": regression, "blobs": blobs, "nonnegative": nonnegative,
    "text": text, "np": np,
}  # fmt: skip
