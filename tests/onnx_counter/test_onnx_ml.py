"""ai.onnx.ml by hand, and scikit-learn's models as skl2onnx writes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import bitwatt
from bitwatt.backends.onnx import count
from onnx_counter.graphs import kinds, one

ML = "ai.onnx.ml"


def ml(op: str, *shape: int, outputs: int = 1, **options: Any) -> onnx.ModelProto:
    return one(op, {"X": shape}, domain=ML, outputs=outputs, **options)


def test_linear_models() -> None:
    # 7 rows of 4 features, 3 classes: softmax and a compare for the label
    given = ml("LinearClassifier", 7, 4, outputs=2, coefficients=[0.0] * 12, intercepts=[0.0] * 3,
               classlabels_ints=[0, 1, 2], post_transform="SOFTMAX")  # fmt: skip
    n = 21
    assert kinds(given) == {"mac": 84, "add": n + 2 * n, "compare": n + n, "exp": n, "div": n}
    regressor = ml("LinearRegressor", 7, 4, coefficients=[0.0] * 8, intercepts=[0.0] * 2, targets=2)
    assert kinds(regressor) == {"mac": 56, "add": 14}


def test_coefficients_are_read_like_tensors() -> None:
    run = count(ml("LinearRegressor", 7, 4, coefficients=[0.0] * 4, intercepts=[0.0]))
    assert bitwatt.totals(run, "bytes").total == 4 * (28 + 4 + 1 + 7)


def test_a_machine_with_a_radial_kernel() -> None:
    # 5 rows, 6 support vectors of 3 features: differences, squares summed, exp(-γ·d); 2 coefficients for 3 classes
    given = ml("SVMClassifier", 5, 3, outputs=2, kernel_type="RBF", kernel_params=[0.1, 0.0, 3.0],
               support_vectors=[0.0] * 18, vectors_per_class=[2, 2, 2], coefficients=[0.0] * 12, rho=[0.0] * 3,
               classlabels_ints=[0, 1, 2])  # fmt: skip
    found = kinds(given)
    assert found["mac"] == 5 * 6 * 3 + 5 * 6 * 2
    assert found["exp"] == 30
    assert found["add"] == 90 + 15  # and rho for each pair of classes


def test_transformers() -> None:
    assert kinds(ml("Scaler", 5, 3, offset=[0.0] * 3, scale=[1.0] * 3)) == {"add": 15, "mul": 15}
    assert kinds(ml("Normalizer", 5, 3, norm="L2")) == {"mul": 15, "add": 15, "sqrt": 5, "div": 15}
    assert kinds(ml("Binarizer", 5, 3, threshold=0.5)) == {"compare": 15}
    assert kinds(ml("Imputer", 5, 3, imputed_value_floats=[0.0] * 3)) == {"compare": 15}
    (row,) = count(ml("OneHotEncoder", 5, 3, cats_int64s=[1, 2, 3, 4])).ledger
    assert row.op.out[0].shape == (5, 3, 4)
    assert kinds(ml("ZipMap", 5, 3, classlabels_int64s=[0, 1, 2])) == {}


def stump(hitrates: list[float], **options: Any) -> onnx.ModelProto:
    """Two trees: a split over a leaf and a split over two leaves; and a split over two leaves."""
    return ml(
        "TreeEnsembleRegressor", 10, 2,
        nodes_treeids=[0] * 5 + [1] * 3, nodes_nodeids=[0, 1, 2, 3, 4, 0, 1, 2],
        nodes_modes=["BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 3, 0, 0, 1, 0, 0], nodes_falsenodeids=[2, 0, 4, 0, 0, 2, 0, 0],
        nodes_featureids=[0] * 8, nodes_values=[0.0] * 8, **({"nodes_hitrates": hitrates} if hitrates else {}),
        target_treeids=[0, 0, 0, 1, 1], target_nodeids=[1, 3, 4, 1, 2], target_ids=[0] * 5, target_weights=[1.0] * 5,
        n_targets=1, **options,
    )  # fmt: skip


def test_trees_are_walked_as_deep_as_their_leaves_lie() -> None:
    # leaves of the first tree at depths 1, 2, 2, of the second at 1, 1; each row adds a leaf of each
    steps = 10 * (5 / 3 + 1)
    for flat in ([], [1.0] * 8):
        found = kinds(stump(flat))
        assert found == {"compare": round(steps), "index": round(steps), "add": 20}
    # 9 of 10 rows end at the first leaf: 1 + 0.1 splits, and 1
    assert kinds(stump([1.0, 0.9, 0.1, 0.05, 0.05, 1.0, 0.5, 0.5]))["compare"] == 10 * 1.1 + 10
    assert kinds(stump([], aggregate_function="AVERAGE"))["div"] == 10
    assert bitwatt.totals(count(stump([]))).coverage.estimated == 1


def test_the_newer_trees_count_as_the_older() -> None:
    leaf = helper.make_tensor("w", onnx.TensorProto.FLOAT, [3], [1.0] * 3)
    split = helper.make_tensor("s", onnx.TensorProto.FLOAT, [2], [0.0] * 2)
    modes = helper.make_tensor("m", onnx.TensorProto.UINT8, [2], [0, 0])
    node = helper.make_node(
        "TreeEnsemble", ["X"], ["Y"], domain=ML, tree_roots=[0], nodes_featureids=[0, 0], nodes_splits=split,
        nodes_modes=modes, nodes_truenodeids=[0, 1], nodes_trueleafs=[1, 1], nodes_falsenodeids=[1, 2],
        nodes_falseleafs=[0, 1], leaf_targetids=[0, 0, 0], leaf_weights=leaf, n_targets=1, aggregate_function=1,
    )  # fmt: skip
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, (30, 2))],
        [helper.make_tensor_value_info("Y", onnx.TensorProto.FLOAT, None)],
    )  # fmt: skip
    given = helper.make_model(graph, opset_imports=[helper.make_opsetid(ML, 5)])
    assert kinds(given) == {"compare": 50, "index": 50, "add": 30}


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import make_classification

    X, y = make_classification(600, 20, n_informative=10, n_classes=3, random_state=0)
    return X.astype("float32"), y


@pytest.mark.filterwarnings("ignore")
def test_estimators_of_scikit_learn_leave_nothing_missing(data: tuple[np.ndarray, np.ndarray]) -> None:
    from skl2onnx import to_onnx
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR, LinearSVC

    X, y = data
    expected = {
        LogisticRegression(): 20 * 3,
        Ridge(): 20,
        LinearSVC(): 20 * 3,
        MLPClassifier((16, 8), max_iter=3): 20 * 16 + 16 * 8 + 8 * 3,
        make_pipeline(StandardScaler(), PCA(5), LogisticRegression()): 20 * 5 + 5 * 3,
        KMeans(8, n_init=1): 20 * 8,
        SVC(): None,
        SVR(): None,
        KNeighborsClassifier(): None,
    }
    for estimator, products in expected.items():
        estimator.fit(X, y)
        run = count(to_onnx(estimator, X[:1]), batch=64)
        totals = bitwatt.totals(run, "macs")
        assert totals.missing == {}, estimator
        if products is not None:
            assert totals.total == 64 * products, estimator
        elif hasattr(estimator, "support_vectors_"):
            vectors = len(estimator.support_vectors_)
            assert totals.total == 64 * vectors * (20 + max(len(estimator.dual_coef_), 1)), estimator


@pytest.mark.parametrize("leaf", [1, 5])
def test_estimated_ways_through_a_forest_are_near_the_true_ones(data: tuple[np.ndarray, np.ndarray], leaf: int) -> None:
    from skl2onnx import to_onnx
    from sklearn.ensemble import RandomForestClassifier

    X, y = data
    forest = RandomForestClassifier(20, min_samples_leaf=leaf, random_state=0).fit(X, y)
    true = sum(tree.decision_path(X).sum() / len(X) - 1 for tree in forest.estimators_)
    run = count(to_onnx(forest, X[:1]), batch=1000)
    (op,) = [row.op for row in run.ledger if "Tree" in row.op.name]
    assert dict(op.args)["steps_millionths"] / 1e6 == pytest.approx(true, rel=0.1)
    assert bitwatt.totals(run, "macs").total == 0
