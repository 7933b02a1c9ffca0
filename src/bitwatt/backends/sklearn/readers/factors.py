"""Factorisations and eigenvalue iterations inside kernel methods, manifolds, covariances and spectral clusters."""

from __future__ import annotations

from typing import Any

from numpy import count_nonzero

from bitwatt.backends.sklearn.probes import probe


def _bits(X: Any) -> int:
    return 32 if getattr(getattr(X, "dtype", None), "char", "") == "f" else 64


def _square(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    return int(args[0].shape[-1]), _bits(args[0])


def _pseudo_inverse(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """Also the rank: the trace of a matrix times its inverse, as far as it has one."""
    return *_square(args, kwargs, result), round(float((args[0] * result).sum()))


def _columns(b: Any) -> int:
    return int(b.shape[1]) if getattr(b, "ndim", 1) > 1 else 1


def _solved(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """Where nothing is said of the matrix, scipy looks: the first row or column tells whether it is triangular, and
    where both are empty it may be diagonal."""
    a = args[0]
    assumed = kwargs.get("assume_a")
    if assumed is None and len(a) > 1 and not (a[0, 1:].any() and a[1:, 0].any()):
        is_diagonal = not (a[0, 1:].any() or a[1:, 0].any()) and count_nonzero(a) == count_nonzero(a.diagonal())
        assumed = "diagonal" if is_diagonal else "triangular"
    return int(a.shape[0]), _columns(args[1]), max(_bits(a), _bits(args[1])), str(assumed or "gen")


def _solved_by_factor(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    factor = args[0][0] if isinstance(args[0], tuple) else args[0]
    return int(factor.shape[0]), _columns(args[1]), max(_bits(factor), _bits(args[1]))


def _eigh(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    n, bits = _square(args, kwargs, result)
    subset = kwargs.get("subset_by_index")
    wanted = int(subset[1] - subset[0] + 1) if subset is not None else n
    return n, bits, str(kwargs.get("driver") or "evr"), len(args) > 1 and args[1] is not None, wanted


def _svd(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    m, n = args[0].shape
    return int(m), int(n), _bits(args[0]), bool(kwargs.get("full_matrices", True)), bool(kwargs.get("compute_uv", True))


def _qr(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    m, n = args[0].shape
    return int(m), int(n), _bits(args[0]), str(kwargs.get("mode", "full")), bool(kwargs.get("pivoting", False))


for _name, _sizes in (
    ("cholesky", _square), ("pinvh", _pseudo_inverse), ("inv", _square), ("solve", _solved), ("eigh", _eigh),
    ("svd", _svd), ("qr", _qr), ("cho_solve", _solved_by_factor), ("solve_triangular", _solved_by_factor),
):  # fmt: skip
    probe(f"scipy.linalg:{_name}", f"scipy {_name}", _sizes)
for _path in (
    "sklearn.gaussian_process._gpr:cholesky", "sklearn.gaussian_process._gpr:cho_solve",
    "sklearn.gaussian_process._gpr:solve_triangular", "sklearn.gaussian_process._gpc:solve",
    "sklearn.manifold._locally_linear:eigh", "sklearn.manifold._locally_linear:qr",
    "sklearn.manifold._locally_linear:svd",
):  # fmt: skip
    _name = _path.rpartition(":")[2]
    _sizes = {"cholesky": _square, "eigh": _eigh, "qr": _qr, "svd": _svd, "solve": _solved}.get(
        _name, _solved_by_factor
    )
    probe(_path, f"scipy {_name}", _sizes)
probe("scipy.linalg:lstsq", "scipy lstsq", lambda args, kwargs, result: (
    *map(int, args[0].shape), _columns(args[1]), max(map(_bits, args[:2]))))  # fmt: skip
probe("sklearn.utils.extmath:fast_logdet", "logdet", _square)


def _arpack(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """Rows, values wanted, vectors kept, the mode (1: products, 3: solves with a shifted matrix), bits."""
    one = args[0]
    return int(one.n), int(one.k), int(one.ncv), int(one.mode), 32 if one.tp in "fF" else 64


_ARPACK = "scipy.sparse.linalg._eigen.arpack.arpack"
probe(f"{_ARPACK}:_SymmetricArpackParams.iterate", "arpack step", _arpack)
probe(f"{_ARPACK}:_SymmetricArpackParams.extract", "arpack vectors", _arpack)


def _operator(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """The matrix that an eigenvalue iteration works on: rows, bits, stored elements, whether it is shifted."""
    matrix = args[0]
    stored = int(matrix.nnz) if hasattr(matrix, "tocsr") else -1
    return int(matrix.shape[0]), _bits(matrix), stored, kwargs.get("sigma") is not None


probe("scipy.sparse.linalg:eigsh", "eigsh", _operator)
probe("sklearn.manifold._spectral_embedding:eigsh", "eigsh", _operator)
probe("sklearn.manifold._spectral_embedding:eigh", "scipy eigh", _eigh)


def _range(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """Rows, columns, vectors, power iterations, bits, stored elements; by LU where there are more than two."""
    A = args[0]
    stored = int(A.nnz) if hasattr(A, "tocsr") else -1
    wanted = int(kwargs.get("size", result.shape[1]))
    return int(A.shape[0]), int(A.shape[1]), wanted, int(kwargs.get("n_iter", 0)), _bits(A), stored


probe("sklearn.utils.extmath:_randomized_range_finder", "random range", _range)
probe("sklearn.utils._arpack:_init_arpack_v0", "arpack start", lambda args, kwargs, result: (int(args[0]),))


def _lu(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """SuperLU tells the stored elements of its factors."""
    return int(result.shape[0]), int(result.L.nnz), int(result.U.nnz)


def _dense_lu(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    return (int(args[0].shape[0]), _bits(args[0]))


probe(f"{_ARPACK}:splu", "sparse lu", _lu)
probe(f"{_ARPACK}:lu_factor", "scipy lu", _dense_lu)
