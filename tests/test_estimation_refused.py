"""What `estimate` does not take, and says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge

import bitwatt
from bitwatt.errors import BitwattError


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dtype": "floaty"}, "no number format"),
        ({"density": 2.0}, "0 to 1"),
        ({"density": -0.1}, "0 to 1"),
        ({"nnz": 10_000}, "has 200 elements"),
        ({"classes": -1}, "2 or more"),
        ({"classes": "3"}, "2 or more"),
        ({"assume": {"n_iter": -5}}, "no amount"),
        ({"y": (11,)}, "X has 10 rows and y 11"),
        ({"X": (10,)}, "takes rows and columns"),
        ({"X": (10, 20, 3)}, "takes rows and columns"),
        ({"methods": ["fit", ("predict", (5, 3))]}, "on 3 columns, after a fit on 20"),
    ],
)
def test_data_that_no_fit_would_take_is_refused(given: dict[str, Any], said: str) -> None:
    shapes: dict[str, Any] = {"X": (10, 20), "y": (10,)}
    with pytest.raises(BitwattError, match=said):
        bitwatt.estimate(LogisticRegression(), **(shapes | given))


def test_formats_are_taken_by_name_and_as_numpys() -> None:
    runs = [bitwatt.estimate(Ridge(), (100, 5), dtype=one) for one in ("float32", "f4", np.float32, np.dtype("f4"))]
    assert len({bitwatt.totals(run).total for run in runs}) == 1
    assert not any(bitwatt.totals(run).missing for run in runs)


def test_documents_come_in_one_dimension() -> None:
    run = bitwatt.estimate(CountVectorizer(), ["a few words", "and some more"])
    assert not bitwatt.totals(run).missing


class Own(BaseEstimator):  # type: ignore[misc]
    def fit(self, X: Any, y: Any = None) -> Own:
        return self


def test_a_class_of_ones_own_is_missing_by_its_name() -> None:
    missing = bitwatt.totals(bitwatt.estimate(Own(), (10, 2))).missing
    assert [*missing] == [f"{Own.__module__}.Own.fit"]


@pytest.mark.parametrize("other", [None, {}, 3])
def test_what_is_no_program_is_refused(other: Any) -> None:
    with pytest.raises(BitwattError, match="takes a function, an estimator or an ONNX model"):
        bitwatt.estimate(other, (10, 2))


def test_a_shape_that_contradicts_the_model_is_refused(tmp_path: Path) -> None:
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [given], [out])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph), path)
    assert not bitwatt.totals(bitwatt.estimate(path, shapes={"x": (8, 3)})).missing
    with pytest.raises(BitwattError, match=r"'x' is any, 3 in the model, not 8, 4"):
        bitwatt.estimate(path, shapes={"x": (8, 4)})
