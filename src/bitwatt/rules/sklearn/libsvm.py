"""sklearn.svm, the machines of libsvm. How many rows of the kernel its solver computes depends on the data: fits are
estimated from iterations and support vectors; predictions are exact for dense data."""

import math
from dataclasses import replace
from typing import Any

from bitwatt.formulas import smo
from bitwatt.formulas.arrays import floats
from bitwatt.formulas.inside import Probes, inside, logarithms_of, looked_at, seen
from bitwatt.formulas.vector import DOUBLE, EXP, SINGLE, arithmetic, function
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule

_HERE = "sklearn.svm"
_KINDS = {"SVC": "c_svc", "NuSVC": "nu_svc", "OneClassSVM": "one_class", "SVR": "epsilon_svr", "NuSVR": "nu_svr"}

free(
    f"{_HERE}.OneClassSVM.fit_predict",
    reason="calls fit and predict, which are counted",
)


def _shared(n: int, f: int, stored: int) -> float:
    """Features in which two rows both have an element, if they are spread evenly; -1 for dense rows."""
    return -1.0 if stored < 0 else (stored / max(n, 1)) ** 2 / max(f, 1)


def _fit(kind: str) -> Any:
    def fit(
        X: TensorSpec, kernel: str = "rbf", degree: int = 3, gamma: Any = "scale", nu: float = 0.5,
        shrinking: bool = True, probability: Any = False, cache_size: float = 200, coef0: float = 0.0,
        probes: Probes = (), **_: Any,
    ) -> Work:  # fmt: skip
        """The finiteness check, the variance of X for gamma, and for each pair of classes: rows of the kernel's matrix
        for all variables that move, and five to ten operations on each active row and iteration. Probabilities train
        five times more, on four fifths."""
        elements = X.numel if X.nnz is None else X.nnz
        scale = 4 if gamma == "scale" and kernel != "precomputed" else 0
        work = inside(probes) + arithmetic(scale * elements, floats(X))
        double, single, values = 0.0, 0.0, looked_at(probes, "meeting") if X.nnz is None else ()
        for n, f, stored, problems, times in seen(probes, "libsvm"):
            empty = math.exp(-2 * stored / max(n, 1)) if stored >= 0 else 0.0  # of both rows, if spread evenly
            each = smo.trained_kernel(kernel, f, degree, _shared(n, f, stored), coef0, empty, values)
            if kernel == "rbf":  # which goes by the norms of the rows
                work += arithmetic((n * smo.dot(f) if stored < 0 else 2 * stored) * times, DOUBLE)
            for rows, steps, used, at_bound in problems:
                sizes = [(rows, steps, used, at_bound)]
                if probability is True:
                    sizes += [(round(0.8 * rows), round(0.8 * steps), round(0.8 * used), round(0.8 * at_bound))] * 5
                    other = smo.predicted_kernel(kernel, f, degree, 0, -1, known=values)
                    work += smo.decided(rows, round(0.8 * used), other, 1)
                for size in sizes:
                    problem = smo.Problem(*size, kind=kind, nu=nu, shrinking=shrinking)
                    one = smo.solved(problem, each, smo.rows_cached(size[0], cache_size))
                    double, single = double + one[0] * times, single + one[1] * times
        solved = arithmetic(double, DOUBLE) + arithmetic(single, SINGLE)
        return work + replace(solved, estimated=True) if double else work

    return fit


for _name, _kind in _KINDS.items():
    rule(f"{_HERE}.{_name}.fit", family="libsvm")(_fit(_kind))


@rule(
    *(f"{_HERE}.{name}.predict" for name in _KINDS),
    *(f"{_HERE}.{name}.decision_function" for name in ("SVC", "NuSVC", "OneClassSVM")),
    family="libsvm",
)
def predict(
    X: TensorSpec, support_vectors_: TensorSpec, dual_coef_: TensorSpec, kernel: str = "rbf", degree: int = 3,
    coef0: float = 0.0, decision_function_shape: str = "ovr", break_ties: bool = False, probes: Probes = (),
    out: tuple[TensorSpec, ...] = (), **_: Any,
) -> Work:  # fmt: skip
    """The kernel of each row with each support vector, times a coefficient for each other class. Decisions of pairs of
    classes are added up by class: sums and votes (4 for each pair), and five to bring the sums between votes. With
    `break_ties` labels are the largest of decision_function, which is counted as itself."""
    n, f = X.shape
    coefficients, used = dual_coef_.shape
    classes = coefficients + 1
    is_label = not any(len(spec.shape) == 2 for spec in out)
    if break_ties and is_label and classes > 2 and decision_function_shape == "ovr":
        return Work()
    stored, shared, empty, values = 0.0, -1.0, 0.0, looked_at(probes, "meeting") if X.nnz is None else ()
    if X.nnz is not None:
        mine, theirs = X.nnz / max(n, 1), (support_vectors_.nnz or 0) / max(used, 1)
        stored, pairs = mine + theirs, max(n * used, 1)
        met = looked_at(probes, "meeting")  # else as if elements were spread evenly
        shared, empty = (met[0] / pairs, met[1] / pairs) if met else (mine * theirs / max(f, 1), math.exp(-stored))
    each = smo.predicted_kernel(kernel, f, degree, stored, shared, coef0, empty, values)
    work = inside(probes) + smo.decided(n, used, each, coefficients)
    unsure = kernel == "sigmoid" or not looked_at(probes, "meeting")  # small arguments of a tangent take less
    work = replace(work, estimated=X.nnz is not None and unsure)
    if out and len(out[0].shape) == 2 and decision_function_shape == "ovr":
        work += arithmetic(n * classes * (2 * (classes - 1) + 5), DOUBLE)
    return work


@rule(*(f"{_HERE}.{name}.predict_proba" for name in ("SVC", "NuSVC")), family="libsvm")
def predict_proba(X: TensorSpec, dual_coef_: TensorSpec, **given: Any) -> Work:
    """Decisions, an exponential for each pair of classes, and what makes them agree with each other (some 65 for each
    class)."""
    n, classes = X.shape[0], dual_coef_.shape[0] + 1
    pairs = n * classes * (classes - 1) // 2
    decided = predict(X, dual_coef_=dual_coef_, **{**given, "out": ()})
    return decided + function(EXP, pairs, DOUBLE) + arithmetic(10 * pairs + 65 * n * classes, DOUBLE)


@rule(*(f"{_HERE}.{name}.predict_log_proba" for name in ("SVC", "NuSVC")), family="libsvm")
def predict_log_proba(out: tuple[TensorSpec, ...] = (), probes: Probes = (), **_: Any) -> Work:
    """The logarithm of predict_proba, which is counted."""
    return logarithms_of(sum(spec.numel for spec in out), DOUBLE, probes)


@rule(f"{_HERE}.OneClassSVM.score_samples", family="libsvm")
def score_samples(X: TensorSpec, **_: Any) -> Work:
    """decision_function, which is counted, and the offset added."""
    return Work.of(DOUBLE, add=X.shape[0])
