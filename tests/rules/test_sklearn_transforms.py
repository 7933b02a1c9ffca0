"""Transformers, mixtures, networks, wrappers: small cases by hand, every method once, and every measured call beside
what is counted for it."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest

import bitwatt
from bitwatt.costs.paper_estimators import flops as paper_flops
from bitwatt.formulas.arrays import column_sums, interpolated, lanes, row_squares, sparse_gram, sparse_width
from bitwatt.formulas.decompose import random_range, range_width, tall_lu
from bitwatt.formulas.network import forward, parameters_of
from bitwatt.formulas.parts import factor_sweep
from bitwatt.formulas.vector import DOUBLE, SINGLE
from bitwatt.records import Op, TensorSpec
from executed import amount, counted, estimators, flops

pytest.importorskip("sklearn")

_MODULES = (
    "decomposition", "preprocessing", "feature_extraction", "feature_selection", "impute", "naive_bayes", "mixture",
    "neural_network", "random_projection", "calibration", "multiclass", "multioutput", "compose", "pipeline",
    "model_selection",
)  # fmt: skip
#: How many iterations they take hangs on the last bits of the machine's arithmetic.
_CHAOTIC = ("KernelPCA.linear", "KernelPCA.poly", "KernelPCA.linear.f32", "KernelPCA.poly.f32")


#: Least angles from a Gram matrix of six atoms: the overhead of a step is a large part of it.
_LOOSE = {"SparseCoder.lars": 1.25, "SparseCoder.lasso_lars": 1.25}


def _parameters() -> list[Any]:
    rows = [row for row in estimators.rows() if row["cls"].split(".")[1] in _MODULES]
    rows = [row for row in rows if row["name"] not in _CHAOTIC and not row.get("kept")]
    return [
        pytest.param(row, id=f"{row['name']}-{row['n']}x{row['f']}", marks=[pytest.mark.slow] if place % 12 else [])
        for place, row in enumerate(rows)
    ]


def _totals(call: Any) -> bitwatt.pricing.Totals:
    return bitwatt.totals(counted(call)[1])


@pytest.mark.parametrize("row", _parameters())
def test_measured_calls_are_counted(row: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in estimators.cases(row):
            assert not case.missing, case
            if case.measured:
                slack = 200 / case.measured  # a call of a few operations is books, not arithmetic
                bound = 1.6 if case.estimated else _LOOSE.get(case.name, 1.15)
                assert case.error < bound + slack, case


_X = np.random.default_rng(0).normal(size=(60, 6))
_Y = np.arange(60) % 3


def test_scaling_by_hand() -> None:
    from sklearn.preprocessing import MinMaxScaler, Normalizer, PolynomialFeatures, StandardScaler

    n, f = _X.shape
    scaler = StandardScaler().fit(_X)
    assert flops(lambda: scaler.transform(_X)) == 3 * n * f  # the check, minus the mean, over the deviation
    assert flops(lambda: StandardScaler().fit(_X)) == 7 * n * f + 25 * f
    assert flops(lambda: MinMaxScaler().fit_transform(_X)) == n * f + 5 * f + 3 * n * f
    assert flops(lambda: Normalizer().transform(_X)) == 5 * n * f + 4 * n
    assert flops(lambda: PolynomialFeatures().fit_transform(_X)) == 2 * n * f + n * f * (f + 1) // 2


def test_precision_is_the_arithmetics() -> None:
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(_X.astype("float32"))
    transformed = _totals(lambda: scaler.transform(_X.astype("float32"))).by("precision")
    assert transformed == {"float32": 3 * _X.size}
    fitted = _totals(lambda: StandardScaler().fit(_X.astype("float32"))).by("precision")
    assert fitted == {"float32": _X.size, "float64": 6 * _X.size + 25 * _X.shape[1]}  # it adds up in double


def test_a_network_by_hand() -> None:
    work = forward(10, (4, 8, 3), "relu", "identity", DOUBLE)
    assert work.macs == 10 * (4 * 8 + 8 * 3)
    assert parameters_of((4, 8, 3)) == 4 * 8 + 8 + 8 * 3 + 3
    sparse = forward(10, (4, 8, 3), "relu", "identity", DOUBLE, stored=12)
    assert sparse.macs == 12 * 8 + 10 * 8 * 3


def test_primitives_by_hand() -> None:
    assert [lanes(f, DOUBLE) for f in (3, 8, 9, 14)] == [3, 8, 12, 16]
    assert [lanes(f, SINGLE) for f in (14, 16, 17)] == [14, 16, 24]
    assert amount(column_sums(10, 14, DOUBLE)) == 160
    assert amount(row_squares(10, 5, DOUBLE)) == 10 * (2 * 5 + 3)
    assert amount(interpolated(1, 100, 10)) == 3 * 100 + 3 * 10
    assert amount(interpolated(1, 5, 10)) == 6 * 5
    assert amount(tall_lu(100, 10, DOUBLE)) == round(1.12 * 100 * 100 - 1000 / 3)
    assert sparse_gram(TensorSpec((10, 10), "float64", 100), DOUBLE).macs == 10 * 100  # all stored: every pair
    assert factor_sweep(20, 30, 4, -1, DOUBLE).macs >= 20 * 30 * 4
    assert random_range(50, 20, 8, 4, DOUBLE).macs == (2 * 4 + 1) * 50 * 20 * 8


def test_sparse_input_counts_what_is_stored() -> None:
    from scipy.sparse import random
    from sklearn.decomposition import TruncatedSVD
    from sklearn.naive_bayes import MultinomialNB

    X = random(60, 20, 0.2, format="csr", random_state=0)
    bayes = MultinomialNB().fit(X, _Y)
    assert flops(lambda: bayes.predict(X)) == X.nnz + 2 * X.nnz * 3 + 60 * 3
    svd = TruncatedSVD(2, random_state=0).fit(X)
    assert flops(lambda: svd.transform(X)) == X.nnz + 2 * X.nnz * 2


def test_text_is_characters_and_tokens_not_arithmetic() -> None:
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

    documents = ["one two two", "three one"]
    totals = _totals(lambda: CountVectorizer().fit(documents))
    ops = [entry for entry in totals.entries if entry.op.name.endswith("CountVectorizer.fit_transform")]
    assert ops[0].work is not None
    assert {kind: n for kind, _, _, n in ops[0].work.ops} == {"text": len("".join(documents)) + 5}
    assert "sklearn.feature_extraction.CountVectorizer.fit_transform" not in totals.by("op")  # left out, not 0
    weights = _totals(lambda: TfidfVectorizer().fit_transform(documents))
    assert weights.by("op")["sklearn.feature_extraction.TfidfTransformer.transform"] > 0
    stream = _totals(lambda: CountVectorizer().fit(one for one in documents))
    assert stream.coverage.estimated == 1  # nobody may read a stream twice


def test_wrappers_add_up_to_their_parts() -> None:
    from sklearn.model_selection import cross_val_score
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    whole = flops(lambda: make_pipeline(StandardScaler(), GaussianNB()).fit(_X, _Y))
    scaler = StandardScaler()
    parts = flops(lambda: scaler.fit_transform(_X))
    assert whole == parts + flops(lambda: GaussianNB().fit(_X, _Y))
    scored = _totals(lambda: cross_val_score(GaussianNB(), _X, _Y, cv=3)).by("op")
    assert scored["sklearn.base.ClassifierMixin.score"] == 3 * (20 + 60)


def test_the_papers_examples() -> None:
    X = TensorSpec((500_000, 40), "float64")
    forest = Op("sklearn.ensemble.RandomForestClassifier.fit", (("X", X), ("n_estimators", 200)))
    logistic = Op("sklearn.linear_model.LogisticRegression.fit", (("X", X), ("n_iter_", (100,)), ("classes_", (0, 1))))
    assert f"{paper_flops(forest):.2e}" == "7.57e+10"
    assert f"{paper_flops(logistic):.2e}" == "2.00e+09"


def test_the_papers_formulas_and_what_they_leave_out() -> None:
    from sklearn.cluster import KMeans
    from sklearn.linear_model import LinearRegression
    from sklearn.preprocessing import StandardScaler

    n, f = _X.shape
    with bitwatt.measure(keep=False) as session:
        LinearRegression().fit(_X, _Y)
        means = KMeans(3, n_init=1, random_state=0).fit(_X.astype("float32"))
        StandardScaler().fit(_X)
    priced = bitwatt.totals(session.run, "flops:paper")
    assert priced.by("op")["sklearn.linear_model.LinearRegression.fit"] == round(2 * n * f**2 + 2 / 3 * f**3)
    assert priced.by("op")["sklearn.cluster.KMeans.fit"] == means.n_iter_ * n * f * 3
    assert "sklearn.preprocessing.StandardScaler.partial_fit" in priced.missing
    bits = bitwatt.totals(session.run, "bops:paper").by("op")
    assert bits["sklearn.cluster.KMeans.fit"] == 32 * means.n_iter_ * n * f * 3


def _every() -> list[Any]:
    """Estimators whose other methods no measured row calls, and what to call on them."""
    from sklearn import decomposition as d
    from sklearn import mixture, neural_network
    from sklearn import preprocessing as p
    from sklearn.feature_selection import SelectKBest, VarianceThreshold
    from sklearn.impute import SimpleImputer
    from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
    from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
    from sklearn.random_projection import GaussianRandomProjection

    positive = np.abs(_X)

    def sample(model: Any) -> Any:
        return model.sample(5)

    def partial(model: Any) -> Any:
        return model.partial_fit(positive, _Y, classes=[0, 1, 2])

    return [
        (d.PCA(2), lambda m: (m.fit_transform(_X), m.get_covariance(), m.get_precision(), m.score(_X))),
        (d.PCA(2, svd_solver="covariance_eigh"), lambda m: m.fit_transform(_X)),
        (d.IncrementalPCA(2), lambda m: (m.partial_fit(_X), m.get_covariance(), m.get_precision())),
        (d.FactorAnalysis(2), lambda m: (m.fit_transform(_X), m.get_covariance(), m.get_precision())),
        (d.FastICA(2, random_state=0), lambda m: m.fit_transform(_X)),
        (d.KernelPCA(2, kernel="rbf", fit_inverse_transform=True), lambda m: m.fit_transform(_X)),
        (d.NMF(2, random_state=0), lambda m: m.inverse_transform(m.fit_transform(positive))),
        (d.MiniBatchNMF(2, random_state=0), lambda m: (m.partial_fit(positive), m.fit_transform(positive))),
        (d.LatentDirichletAllocation(2), lambda m: (m.partial_fit(positive), m.fit_transform(positive),
                                                    m.perplexity(positive), m.score(positive))),
        (d.MiniBatchDictionaryLearning(2, max_iter=2), lambda m: (m.partial_fit(_X), m.fit_transform(_X))),
        (d.DictionaryLearning(2, max_iter=2), lambda m: m.inverse_transform(m.fit_transform(_X))),
        (mixture.GaussianMixture(2), lambda m: (m.fit(_X), sample(m), m.aic(_X), m.bic(_X), m.score(_X))),
        (mixture.GaussianMixture(2, covariance_type="diag"), lambda m: (m.fit_predict(_X), sample(m))),
        (mixture.BayesianGaussianMixture(n_components=2), lambda m: (m.fit(_X), m.predict_proba(_X), sample(m))),
        (neural_network.BernoulliRBM(2), lambda m: (m.partial_fit(positive), m.gibbs(positive))),
        (neural_network.MLPClassifier((4,), max_iter=2), lambda m: (m.fit(_X, _Y), m.predict_log_proba(_X),
                                                                    m.partial_fit(_X, _Y), m.score(_X, _Y))),
        (GaussianNB(), lambda m: (partial(m), m.predict_joint_log_proba(_X), m.fit(_X, _Y, np.ones(60)))),
        (MultinomialNB(), lambda m: (partial(m), m.predict_log_proba(positive), m.fit(positive, _Y, np.ones(60)))),
        (BernoulliNB(binarize=None), partial),
        (p.StandardScaler(), lambda m: (m.fit(_X, sample_weight=np.ones(60)), m.partial_fit(_X))),
        (p.StandardScaler(with_mean=False, with_std=False), lambda m: m.fit_transform(_X)),
        (p.MaxAbsScaler(), lambda m: m.partial_fit(_X)),
        (p.TargetEncoder(), lambda m: m.fit_transform(_Y[:, None], _X[:, 0])),
        (p.TargetEncoder(), lambda m: m.fit_transform(_Y[:, None], _Y)),
        (p.PowerTransformer(), lambda m: m.fit_transform(_X)),
        (p.MultiLabelBinarizer(), lambda m: m.inverse_transform(m.fit_transform([(1, 2), (3,)]))),
        (p.LabelEncoder(), lambda m: m.inverse_transform(m.fit_transform(_Y))),
        (p.FunctionTransformer(np.log1p, np.expm1), lambda m: m.inverse_transform(m.fit_transform(positive))),
        (p.SplineTransformer(sparse_output=True), lambda m: m.fit_transform(_X)),
        (p.OneHotEncoder(), lambda m: m.fit_transform([["a"], ["b"]])),
        (SimpleImputer(), lambda m: m.fit_transform(_X)),
        (SelectKBest(k=2), lambda m: m.inverse_transform(m.fit_transform(_X, _Y))),
        (VarianceThreshold(), lambda m: m.fit_transform(_X)),
        (GaussianRandomProjection(2, compute_inverse_components=True), lambda m: (
            m.inverse_transform(m.fit_transform(_X)))),
        (OneVsRestClassifier(GaussianNB()), lambda m: (m.fit(_X, _Y), m.predict_proba(_X), m.score(_X, _Y))),
        (OneVsOneClassifier(MultinomialNB()), lambda m: (partial(m), m.predict(positive))),
    ]  # fmt: skip


@pytest.mark.parametrize(("model", "calls"), _every(), ids=lambda one: type(one).__name__)
def test_every_method_is_totals(model: Any, calls: Any) -> None:
    priced = _totals(lambda: calls(model))
    failed = [f"{entry.op.name}: {entry.reason}" for entry in priced.entries if entry.work is None]
    assert not failed


def test_a_function_of_the_users_own_is_missing() -> None:
    from sklearn.preprocessing import FunctionTransformer

    priced = _totals(lambda: FunctionTransformer(lambda X: X @ X.T).fit_transform(_X))
    assert priced.missing == {"sklearn.preprocessing.FunctionTransformer.transform": 1}


def test_a_module_that_is_imported_while_measuring_is_counted_in_the_next_session_too() -> None:
    import subprocess

    program = """
import numpy as np, bitwatt
from sklearn.preprocessing import KBinsDiscretizer
X = np.random.default_rng(0).normal(size=(60, 3))
def counted():
    with bitwatt.measure(keep=False) as session:
        KBinsDiscretizer(4, strategy="kmeans", random_state=0).fit(X)
    return bitwatt.totals(session.run).total
first, second = counted(), counted()
assert first == second, (first, second)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)


def test_splines_of_one_value_have_no_recursion() -> None:
    """Five knots of degree 3 are seven splines: 2·4·7 for each value, and 42 for de Boor's recursion unless all knots
    are one. With a period they are four splines: 2·4·4, and 2 to find the place in it."""
    from sklearn.preprocessing import SplineTransformer

    X = np.column_stack([np.linspace(0, 1, 40), np.full(40, 2.0)])
    assert flops(lambda: SplineTransformer().fit(X).transform(X)) - flops(lambda: SplineTransformer().fit(X)) == (
        40 * 2 + 40 * (56 + 42) + 40 * 56
    )
    turning = SplineTransformer(extrapolation="periodic").fit(X)
    assert flops(lambda: turning.transform(X)) == 40 * 2 + 40 * (32 + 2 + 42) + 40 * (32 + 2)  # executed: 4403


def test_known_results_of_functions_take_less() -> None:
    """log1p of 0 is known, of 1 and 3 nearly; another value takes a polynomial, and below sqrt(2) - 1 nothing more."""
    from sklearn.preprocessing import FunctionTransformer

    logarithm = FunctionTransformer(np.log1p)
    assert flops(lambda: logarithm.transform(np.full((10, 5), 2.5))) == 50 * 35
    assert flops(lambda: logarithm.transform(np.full((10, 5), 0.3))) == 50 * 25
    assert flops(lambda: logarithm.transform(np.zeros((10, 5)))) == 0
    assert flops(lambda: logarithm.transform(np.tile([1.0, 3.0], (10, 5)))) == 100 * 11


def test_selectors_around_trees_ask_them_and_do_not_check() -> None:
    from sklearn.feature_selection import SelectFromModel
    from sklearn.linear_model import Lasso
    from sklearn.tree import DecisionTreeRegressor

    y = _X[:, 0]
    around_tree = SelectFromModel(DecisionTreeRegressor(random_state=0)).fit(_X, y)
    around_lasso = SelectFromModel(Lasso(alpha=0.01)).fit(_X, y)
    assert flops(lambda: around_tree.transform(_X)) == 751  # as the instrument read
    assert flops(lambda: around_lasso.transform(_X)) == _X.size


def test_what_features_are_worth_to_ensembles() -> None:
    """Beside what the instrument read of `transform`, for 60 x 6."""
    from sklearn import ensemble
    from sklearn.feature_selection import SelectFromModel

    X = np.random.default_rng(0).normal(size=(60, 6))
    read = {
        ensemble.RandomForestRegressor(10, random_state=0): 4983,
        ensemble.ExtraTreesRegressor(7, random_state=0): 5343,
        ensemble.GradientBoostingRegressor(n_estimators=12, random_state=0): 1703,
        ensemble.AdaBoostRegressor(n_estimators=6, random_state=0): 1231,
    }
    for inner, executed in read.items():
        selector = SelectFromModel(inner).fit(X, X[:, 0])
        assert flops(lambda selector=selector: selector.transform(X)) == pytest.approx(executed, rel=0.02)


def test_registers_of_sparse_products() -> None:
    """In single precision two columns that are left over fill a register of four, and three take one more."""
    assert [sparse_width(k, SINGLE) for k in (1, 2, 3, 4, 5, 6, 8)] == [1, 4, 5, 4, 5, 8, 8]
    assert [sparse_width(k, DOUBLE) for k in (1, 2, 3)] == [1, 2, 3]


def test_a_random_range_of_more_vectors_than_columns_shrinks() -> None:
    """LU leaves five of fourteen after the first product and its way back."""
    assert range_width(180, 5, 14, 3, "auto") == 5
    assert range_width(180, 5, 14, 2, "auto") == 14  # nothing is normalised
    assert amount(random_range(180, 5, 14, 4, DOUBLE)) - amount(random_range(180, 5, 14, 3, DOUBLE)) == pytest.approx(
        amount(random_range(180, 5, 5, 4, DOUBLE)) - amount(random_range(180, 5, 5, 3, DOUBLE)), abs=2
    )
