"""Linear models: small cases by hand, and every measured fit beside what is counted for it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import bitwatt
from bitwatt.formulas import lapack
from bitwatt.formulas.arrays import logarithms
from bitwatt.formulas.descent import coordinate_descent
from bitwatt.formulas.linear import Design, lbfgs, linear_loss, product
from bitwatt.formulas.vector import DOUBLE, SINGLE
from bitwatt.records import Work
from bitwatt.rules.sklearn.linear_sag import sag
from bitwatt.rules.sklearn.linear_sgd import sgd_epoch_cost
from executed import amount, counted, estimators, flops

pytest.importorskip("sklearn")

_MODULES = ("linear_model", "svm.LinearSV", "discriminant_analysis", "cross_decomposition", "isotonic", "dummy")


def _parameters() -> list[Any]:
    rows = [row for row in estimators.rows() if any(module in row["cls"] for module in _MODULES)]
    rows = [row for row in rows if row.get("kept") != "fresh"]
    return [
        pytest.param(row, id=f"{row['name']}-{row['n']}x{row['f']}", marks=[pytest.mark.slow] if place % 9 else [])
        for place, row in enumerate(rows)
    ]


@pytest.mark.parametrize("row", _parameters())
def test_measured_calls_are_counted(row: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in estimators.cases(row):
            assert not case.missing, case
            if case.method != "fit":
                assert case.error < 1.1, case
            else:
                steps = 5.0 if "QuantileRegressor" in row["cls"] else 1.6  # what a linear program takes is typical
                assert case.error < (steps if case.estimated else 1.2), case


def test_prediction_is_check_product_and_intercept() -> None:
    from sklearn.linear_model import LinearRegression

    X, y = np.random.default_rng(0).normal(size=(50, 6)), np.arange(50.0)
    model = LinearRegression().fit(X, y)
    assert flops(lambda: model.predict(X)) == 50 * 6 + (2 * 50 * 6 + 6 * 50) + 50
    single = X.astype("float32")
    other = LinearRegression().fit(single, y.astype("float32"))
    assert flops(lambda: other.predict(single)) == 50 * 6 + (2 * 50 * 6 + 14 * 50) + 50


def test_sparse_prediction_counts_stored_elements() -> None:
    from scipy.sparse import random
    from sklearn.linear_model import Lasso, Ridge

    X = random(80, 12, 0.2, format="csr", random_state=0)
    y = np.asarray(X.sum(axis=1)).ravel()
    ridge, lasso = Ridge().fit(X, y), Lasso(alpha=1e-4).fit(X, y)
    assert flops(lambda: ridge.predict(X)) == 3 * X.nnz + 80
    assert flops(lambda: lasso.predict(X)) == 2 * X.nnz + 80  # it does not check sparse data


def test_gram_matrix_is_half_in_blocks_of_eight() -> None:
    assert amount(lapack.syrk(16, 200, DOUBLE)) == 2 * 200 * (64 + 2 * 64) + (192 + 2 * 36)
    assert amount(lapack.syrk(8, 60, DOUBLE)) == 2 * 60 * 64 + 64 + 36
    assert amount(lapack.syrk(10, 100, DOUBLE)) == 2 * 100 * (64 + 20) + 84 + 36 + 3


def test_products_and_their_last_step() -> None:
    assert amount(product(600, 16, 4, DOUBLE)) == 2 * 600 * 64 + 2400
    assert amount(product(200, 16, 3, DOUBLE)) == 2 * 200 * 48 + 1200
    assert amount(product(200, 16, 3, SINGLE)) == 2 * 200 * 48 + 1200
    assert amount(product(600, 40, 1, DOUBLE)) == 51600
    assert amount(lapack.gemv(600, 40, DOUBLE, columns=True)) == 54000
    assert product(600, 16, 4, DOUBLE).macs == 600 * 64


@pytest.mark.parametrize(
    ("work", "executed"),
    [
        (lapack.least_squares(600, 40, 1, DOUBLE), 2589146),
        (lapack.least_squares(300, 20, 3, DOUBLE), 433343),
        (lapack.svd(600, 40, DOUBLE), 6829789),
        (lapack.svd(203, 17, DOUBLE), 479675),
        (lapack.svd(150, 100, DOUBLE), 16908294),
        (lapack.singular_values(300, 33, DOUBLE), 766540),
        (lapack.qr(600, 40, DOUBLE), 3769164),
        (lapack.eigh(100, DOUBLE), 4374636),
        (lapack.eigh_divided(100, DOUBLE), 7219660),
        (lapack.eigh_generalised(64, DOUBLE), 2575243),
        (lapack.cholesky(100, DOUBLE), 376391),
        (lapack.solve_positive(40, 1, DOUBLE), 54660),
        (lapack.lu(100, DOUBLE), 691597),
        (lapack.inverse(50), 344429),
        (lapack.pseudo_inverse_symmetric(40, DOUBLE), 878227),
    ],
)
def test_factorisations_are_near_what_runs(work: Work, executed: int) -> None:
    assert amount(work) == pytest.approx(executed, rel=0.07)


def test_coordinate_descent_by_hand() -> None:
    dense = Design(600, 16, -1, DOUBLE)
    work = coordinate_descent(dense, sweeps=5, nonzero=16)
    gaps = 2 * (2 * 600 * 16 + 6 * 16 + 4 * 600 + 4 * 16)
    assert amount(work) == 4.25 * 9600 + 2 * 600 + gaps + 5 * 16 * (4 * 600 + 30)
    assert not work.estimated
    assert coordinate_descent(dense, sweeps=5, nonzero=9).estimated


def test_stochastic_average_gradient_by_hand() -> None:
    design = Design(100, 10, -1, DOUBLE)
    work = sag(design, "squared", 1, 3, saga=False, stepwise=None, intercept=False)
    assert amount(work) == 3 * (8 * 1000 + 10 * 100 + 6 * 10)
    work = sag(design, "squared", 1, 3, saga=True, stepwise=None, intercept=False)
    assert amount(work) == 3 * (14 * 1000 + 10 * 100 + 6 * 10)


def test_a_proximal_step_by_hand() -> None:
    """Of weights within the penalty 5 and the two that are the same for all classes, of those beyond it three more; as
    the instrument read it for three classes: 47.1 and 54.9 operations for each element, 11 % of the weights beyond it
    and all."""
    design = Design(100, 10, -1, DOUBLE)

    def each(stepwise: float) -> float:
        work = sag(design, "multinomial", 3, 1, saga=True, stepwise=stepwise, intercept=False)
        return (amount(work) - 100 * (26 * 3 - 18 + 9) - 10 * 16) / 1000

    assert [each(0.11), each(1.0)] == pytest.approx([47.1, 54.9], rel=0.01)


def test_logistic_loss_by_hand() -> None:
    design = Design(100, 10, -1, DOUBLE)
    work = linear_loss(design, "HalfBinomialLoss", 0, False, False, 2)
    raw, pointwise = 2 * 1000 + 6 * 100 + 100, 58 * 100
    by_columns = 8 * 25 + 2 * 2  # 25 sums of four columns for the results that come in fours, and two others
    gradient = 2 * 1000 + by_columns + 100 + 20 + 100
    assert amount(work) == raw + pointwise + 100 + 20 + 17 + gradient


def test_lbfgs_grows_with_its_memory() -> None:
    assert amount(lbfgs(200, 1, 2)) == 200 * 12 + 6 * 200
    assert amount(lbfgs(200, 40, 41)) == pytest.approx(1442435, rel=0.05)
    assert amount(lbfgs(92, 40, 43, bounded=True)) == pytest.approx(1088465, rel=0.05)


def test_columns_that_lie_together_are_multiplied_by_columns() -> None:
    """X[:, picked] leaves columns together: four at a time, 2¼ for each element, and no sums of registers."""
    from sklearn.linear_model import LinearRegression

    X, y = np.random.default_rng(0).normal(size=(50, 8)), np.arange(50.0)
    picked = X[:, np.arange(8)]
    model = LinearRegression().fit(X, y)
    assert picked.flags.f_contiguous
    assert flops(lambda: model.predict(picked)) == 50 * 8 + 2.25 * 50 * 8 + 50


def test_a_wider_intercept_makes_wider_results() -> None:
    """SGD keeps its intercept in double: what follows X·w in single precision is in double."""
    from sklearn.linear_model import SGDClassifier

    X = np.random.default_rng(0).normal(size=(60, 8)).astype("float32")
    model = SGDClassifier(loss="log_loss", max_iter=3, tol=None, random_state=0).fit(X, X[:, 0] > 0)
    _, run = counted(lambda: model.predict_proba(X))
    assert bitwatt.totals(run).by("precision") == {"float32": 60 * (8 + 16 + 14), "float64": 60 * (1 + 22 + 1)}


def test_determination_runs_in_the_wider_precision() -> None:
    from sklearn.linear_model import Ridge
    from sklearn.tree import DecisionTreeRegressor

    X = np.random.default_rng(0).normal(size=(70, 4)).astype("float32")
    y = X[:, 0]
    for model, precision in ((Ridge().fit(X, y), "float32"), (DecisionTreeRegressor().fit(X, y), "float64")):
        _, run = counted(lambda model=model: model.score(X, y))
        asked, whole = bitwatt.totals(counted(lambda model=model: model.predict(X))[1]), bitwatt.totals(run)
        own = {name: n - asked.by("precision").get(name, 0) for name, n in whole.by("precision").items()}
        assert own[precision] == 11 * 70
        assert sum(own.values()) == 11 * 70


def test_logarithms_of_what_is_sure_are_known() -> None:
    """22 operations for a logarithm, 17 more near to one, none of one, and of zero a division."""
    from sklearn.tree import DecisionTreeClassifier

    X = np.random.default_rng(0).normal(size=(80, 3))
    model = DecisionTreeClassifier().fit(X, X[:, 0] > 0)  # pure leaves
    _, run = counted(lambda: model.predict_log_proba(X))
    assert bitwatt.totals(run).by("op")["sklearn.tree.DecisionTreeClassifier.predict_log_proba"] == 80
    assert amount(logarithms(1000, DOUBLE, 100, 200, 50)) == 750 * 22 + 100 * 17 + 50
    assert amount(logarithms(1000, SINGLE, 100, 200, 50)) == 29_000


def test_samples_far_on_the_right_do_not_move_the_weights() -> None:
    """A logistic loss that is known at once takes 2 operations of 45, and a gradient of zero moves nothing."""
    design = Design(100, 10, -1, DOUBLE)
    near, far = (
        sgd_epoch_cost(design, share, "log_loss", None, "constant", False, False, known)
        for share, known in ((1.0, 0.0), (0.0, 1.0))
    )
    assert amount(near) - amount(far) == 5 * 1000 + 6 * 100 + 43 * 100


def test_labels_may_be_strings() -> None:
    from sklearn.svm import LinearSVC

    X = np.random.default_rng(0).normal(size=(60, 5))
    y = (X[:, 0] > 0).astype(int)
    work = flops(lambda: LinearSVC(random_state=0).fit(X, y))
    assert flops(lambda: LinearSVC(random_state=0).fit(X, np.array(["no", "yes"])[y])) == work
