"""Truncated decompositions: Halko's randomised range finder, ARPACK's Lanczos steps, and what follows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.formulas.arrays import sparse_dense
from bitwatt.formulas.lapack import gemv, qr, svd
from bitwatt.formulas.vector import DOUBLE, SINGLE, arithmetic, gemm, multiplied
from bitwatt.records import TensorSpec, Work

Probes = tuple[tuple[Any, ...], ...]
#: A normal number by the polar method: a logarithm, a root, and rejection of one in five.
NORMAL = 24


def seen(probes: Probes, name: str) -> Iterator[tuple[Any, ...]]:
    """(*sizes, times) of each kind of call; calls whose sizes could not be read are left out."""
    return (tuple(rest) for found, *rest in probes if found == name and rest[:1] != ["unknown"])


def times_seen(probes: Probes, name: str) -> int:
    return sum(found[-1] for found in probes if found[0] == name)


def of_bits(bits: int) -> Precision:
    return SINGLE if bits == 32 else DOUBLE


def product(m: int, k: int, n: int, precision: Precision, stored: int = -1) -> Work:
    """A dense product, or one with a sparse factor of so many stored elements."""
    if stored < 0:
        return multiplied(m, k, n, precision)
    return sparse_dense(TensorSpec((m, k), precision.name, stored), n, precision)


def tall_lu(m: int, n: int, precision: Precision) -> Work:
    """Gaussian elimination of a tall matrix: mn² - n³/3, an eighth more for blocks that are computed whole."""
    m, n = max(m, n), min(m, n)
    return arithmetic(1.12 * m * n**2 - n**3 / 3, precision)


def random_range(
    m: int, n: int, size: int, iterations: int, precision: Precision, stored: int = -1, normaliser: str = "auto"
) -> Work:
    """Normal numbers, then `iterations` times a product with A and one with Aᵀ, each normalised by LU (from three
    iterations on, unless asked otherwise), a last product, and its QR. Normalised, more vectors than A has columns are
    as many from the second product on."""
    kind = _normalised_by(iterations, normaliser)
    kept = range_width(m, n, size, iterations, normaliser)
    work = arithmetic(NORMAL * n * size, DOUBLE, random=n * size)
    if iterations:
        work += _iterated(m, n, size, kind, precision, stored)
        work += _iterated(m, n, kept, kind, precision, stored) * (iterations - 1)
    return work + product(m, n, kept, precision, stored) + qr(m, kept, precision)


def _normalised_by(iterations: int, normaliser: str) -> str:
    return ("none" if iterations <= 2 else "LU") if normaliser == "auto" else normaliser


def range_width(m: int, n: int, size: int, iterations: int, normaliser: str) -> int:
    """Vectors that are left of so many."""
    shrinks = iterations and _normalised_by(iterations, normaliser) != "none"
    return min(size, m, n) if shrinks else size


def _iterated(m: int, n: int, size: int, kind: str, precision: Precision, stored: int) -> Work:
    left = size if kind == "none" else min(size, m)
    work = product(m, n, size, precision, stored) + product(n, m, left, precision, stored)
    if kind == "LU":
        return work + tall_lu(m, size, precision) + tall_lu(n, left, precision)
    return work + qr(m, size, precision) + qr(n, left, precision) if kind == "QR" else work


def randomised_svd(
    m: int, n: int, size: int, iterations: int, precision: Precision, stored: int = -1, normaliser: str = "auto"
) -> Work:
    """The range, B = Qᵀ·A, its singular value decomposition, Q·U, and the signs of both factors."""
    work = random_range(m, n, size, iterations, precision, stored, normaliser)
    size = min(range_width(m, n, size, iterations, normaliser), m)
    work += product(n, m, size, precision, stored) + svd(size, n, precision) + gemm(m, size, size, precision)
    return work + arithmetic((m + n) * size, precision)


def randomised(probes: Probes, normaliser: str = "auto") -> Work:
    """Every randomised decomposition of a call."""
    work = Work()
    for m, n, size, iterations, bits, stored, times in seen(probes, "random range"):
        work += randomised_svd(m, n, size, iterations, of_bits(bits), stored, normaliser) * times
    return work


def lanczos_step(n: int, k: int, ncv: int, precision: Precision) -> Work:
    """A step of ARPACK's implicitly restarted Lanczos process without its product: the new vector made orthogonal to
    those before it, half of `ncv` + k on average, twice (8n each). Where the basis does not fill the space, a restart
    after every ncv - kept steps rotates what is kept (2n·ncv each; ARPACK keeps k and about a quarter of the rest) and
    the small matrix (6·ncv² a step)."""
    if ncv >= n:
        return arithmetic(n * (4 * ncv + 8) + 3 * ncv**2, precision)
    kept = k + (ncv - k) / 4
    return arithmetic(n * (4 * (ncv + k) + 8 + 2 * ncv * kept / (ncv - kept)) + 6 * ncv**2, precision)


def lanczos_vectors(n: int, k: int, ncv: int, precision: Precision) -> Work:
    """The small eigenproblem, and the wanted vectors from the basis."""
    return arithmetic(8.5 * ncv**3 + 2 * n * ncv * (1.6 * k + 1.5), precision)


def lanczos(probes: Probes, m: int, n: int, precision: Precision, stored: int, *, centred: bool = False) -> Work:
    """`svds` by ARPACK: for each step a product with A and one with Aᵀ and the Lanczos step; in the end the wanted
    vectors, A times them, and the decomposition of that. Centring a sparse matrix as it is multiplied takes 4(m + n)
    more for each step."""
    steps, vectors = Work(), Work()
    for size, k, ncv, _mode, _bits, times in seen(probes, "arpack step"):
        if stored < 0:
            one = gemv(m, n, precision) + gemv(n, m, precision, columns=True)
        else:
            one = arithmetic(4 * stored, precision)
        if centred:
            one += arithmetic(4 * (m + n), precision)
        steps += (one + lanczos_step(size, k, ncv, precision)) * (times - 1)  # the last call only finds the end
        vectors = lanczos_vectors(size, k, ncv, precision) + product(m, n, k, precision, stored)
        vectors += svd(max(m, n), k, precision) + gemm(size, k, k, precision) + arithmetic((m + n) * k, precision)
    return steps + vectors
