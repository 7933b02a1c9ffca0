"""The work of what was counted inside a call: each probe's sizes, through the formula of its name, as often as seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.formulas import clusters as c
from bitwatt.formulas import distances as d
from bitwatt.formulas import embeddings as e
from bitwatt.formulas import factors as f
from bitwatt.formulas import processes as p
from bitwatt.formulas.arrays import logarithms
from bitwatt.formulas.vector import DOUBLE, arithmetic
from bitwatt.records import Work

Probes = tuple[tuple[Any, ...], ...]


def inside(probes: Probes, *leave_out: str) -> Work:
    """Everything that has a formula here; a size that could not be read makes it a lower bound."""
    total = Work()
    for name, *sizes, times in probes:
        formula = FORMULAS.get(name)
        if formula is not None and name not in leave_out:
            unknown = sizes[:1] == ["unknown"]
            total = replace(total, estimated=True) if unknown else total + formula(*sizes) * times
    return total + _iterated(probes)


def _iterated(probes: Probes) -> Work:
    """The products of eigenvalue iterations: one for each step of ARPACK, with the matrix that `eigsh` was given."""
    factors = {size[0]: size[1] + size[2] for size in seen(probes, "sparse lu")}
    stored = {size[0]: size[2] for size in seen(probes, "eigsh")}
    total = Work()
    for n, _, _, mode, bits, times in seen(probes, "arpack step"):
        total += f.operated(n, bits, stored.get(n, -1), mode, factors.get(n, -1)) * times
    for n, _, _ in seen(probes, "lobpcg"):
        for size, bits, _, generalised, _, times in seen(probes, "scipy eigh"):
            if generalised:
                total += f.lobpcg_step(n, size, bits) * times
    return total


def seen(probes: Probes, name: str) -> Iterable[tuple[Any, ...]]:
    """The sizes and times of one probe."""
    return (rest for found, *rest in probes if found == name)  # type: ignore[misc]


def looked_at(probes: Probes, name: str) -> tuple[int, ...]:
    """What values of the call told, or nothing where nobody looked."""
    return next((tuple(rest[:-1]) for rest in seen(probes, name)), ())


def logarithms_of(elements: float, precision: Precision, probes: Probes) -> Work:
    """Logarithms that a call gave: as many as it gave, and near to what they were, where somebody looked."""
    count, *known = looked_at(probes, "logarithms") or (elements,)
    return logarithms(count, precision, *map(int, known))


def _dot(m: int, k: int, n: int, bits: int, stored_a: int, stored_b: int, same: bool, meeting: int) -> Work:
    precision = d.of_bits(bits)
    if stored_a < 0 and stored_b < 0:
        return d.product(m, k, n, precision, same=same)
    if stored_a >= 0 and stored_b >= 0:
        return arithmetic(2 * meeting, precision)
    return d.sparse_product(stored_a if stored_a >= 0 else stored_b, n if stored_a >= 0 else m, precision)


def _finite(bits: int, elements: int) -> Work:
    return Work.of(d.of_bits(bits), add=elements)


def _norms(n: int, f: int, bits: int, stored: int, squared: bool) -> Work:
    return d.row_norms(n, f, d.of_bits(bits), stored=stored, squared=squared)


def _euclidean(n: int, m: int, f: int, bits: int, squared: bool, same: bool, stored: bool) -> Work:
    return d.euclidean(n, m, f, bits, squared=squared, same=same)


def _nearest(
    n: int, f: int, m: int, bits: int, metric: str, p: float, found: int, wanted: bool, in_order: bool, *stored: int
) -> Work:
    return _reduced(n, f, m, bits, metric, p, found, wanted, n if found > n else 0, *stored)


def _within(
    n: int, f: int, m: int, bits: int, metric: str, p: float, found: int, wanted: bool, in_order: bool, *stored: int
) -> Work:
    return _reduced(n, f, m, bits, metric, p, found, wanted, n if in_order else 0, *stored)


def _reduced(
    n: int, f: int, m: int, bits: int, metric: str, p: float, found: int, wanted: bool, lists: int, a: int, b: int,
    meeting: int = 0,
) -> Work:  # fmt: skip
    if a < 0 and b < 0:
        return d.reduction(n, f, m, metric=metric, p=p, found=found, wanted=wanted, bits=bits, lists=lists)
    return d.sparse_reduction(
        n, f, m, metric=metric, p=p, found=found, wanted=wanted, bits=bits, lists=lists, stored=(a, b), meeting=meeting
    )


def _kernel(name: str) -> Callable[..., Work]:
    def work(n: int, m: int, f: int, bits: int, vanished: int, degree: float = 3.0) -> Work:
        return d.kernel(name, n, m, bits, degree, f, vanished)

    return work


def _pairwise(name: str, n: int, m: int, f: int, bits: int, vanished: int, degree: float, stored: int) -> Work:
    """Kernels and distances by the names of scikit-learn's functions; what they call is counted on its own."""
    if name.endswith("_kernel") and name not in ("linear_kernel",):
        return d.kernel(name.removesuffix("_kernel"), n, m, bits, degree, f, vanished)
    if name == "nan_euclidean_distances":
        return d.missing(n, m, f, d.of_bits(bits))
    if name == "manhattan_distances" and stored:  # walks along the stored elements of both rows
        return replace(arithmetic(4 * stored * max(n, m), DOUBLE), estimated=True)
    return arithmetic(2 * n * m if name == "cosine_distances" else 0, d.of_bits(bits))


FORMULAS: dict[str, Callable[..., Work]] = {
    "finite": _finite,
    "dot": _dot,
    "row norms": _norms,
    "euclidean": _euclidean,
    "argkmin": _nearest,
    "radius": _within,
    "cdist": d.one_by_one,
    "normalised": lambda bits, elements: arithmetic(0, d.of_bits(bits), div=elements),
    "cosine distances": lambda n, m, f, bits, _: arithmetic(2 * n * m, d.of_bits(bits)),
    "pairwise": _pairwise,
    "components loss": d.neighbourhood_loss,
    "tree built": d.tree_built,
    "tree query": d.tree_query,
    "tree radius": d.tree_radius,
    "tree density": d.tree_density,
    "scipy cholesky": f.cholesky,
    "scipy pinvh": f.pinvh,
    "scipy inv": f.inv,
    "scipy solve": f.solve,
    "scipy cho_solve": f.cho_solve,
    "scipy solve_triangular": f.solve_triangular,
    "scipy lstsq": f.lstsq,
    "scipy eigh": f.eigh,
    "scipy svd": f.svd,
    "scipy qr": f.qr,
    "scipy lu": f.lu,
    "sparse lu": f.sparse_lu,
    "logdet": f.logdet,
    "arpack step": f.arpack_step,
    "arpack vectors": f.arpack_vectors,
    "random range": f.random_range,
    "ward pairs": c.ward_pairs,
    "scaled both ways": c.scaled_both_ways,
    "process kernel": p.kernel,
    "tsne exact": e.tsne_exact,
    "tsne tree": e.tsne_tree,
    "tsne pairs": e.tsne_pairs,
    "kmeans lloyd": c.lloyd,
    "kmeans elkan": c.elkan,
    "kmeans bounds": c.elkan_bounds,
    "kmeans inertia": c.inertia,
    "kmeans minibatch": c.minibatch,
    "kmeans start": c.plus_plus,
    "kmeans tolerance": c.tolerance,
    **{f"kernel {name}": _kernel(name) for name in ("rbf", "laplacian", "sigmoid", "polynomial", "chi2",
                                                     "additive_chi2")},
}  # fmt: skip
