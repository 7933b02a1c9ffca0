"""Scaled dot-product attention: what is computed, whichever kernel computes it."""

from dataclasses import dataclass, replace

from bitwatt.dtypes import Precision
from bitwatt.formulas.dropout import dropout, dropout_backward
from bitwatt.formulas.linalg import matmul
from bitwatt.formulas.softmax import softmax, softmax_backward
from bitwatt.records import MASKED, NECESSARY, RECOMPUTED, TensorSpec, Work


@dataclass(frozen=True, slots=True)
class Scores:
    """The score matrices of one call: `batch` of lq x lk, one for each sequence and query head.

    Keys are d wide and values dv. `shared` counts the matrices of keys, fewer than `batch` where heads share them.
    `visible` is how many pairs of one matrix a mask known from its shape lets through.
    """

    batch: int
    lq: int
    lk: int
    d: int
    dv: int
    shared: int
    visible: int

    @property
    def masked(self) -> int:
        return self.lq * self.lk - self.visible


def dense(batch: int, lq: int, lk: int, d: int, dv: int, shared: int | None = None) -> Scores:
    """Scores that no mask hides."""
    return Scores(batch, lq, lk, d, dv, batch if shared is None else shared, lq * lk)


def causal(scores: Scores, *, bottom_right: bool = False) -> Scores:
    """Query i sees keys up to its own place, counted from the first query and key or from the last ones."""
    return window(scores, None, 0, offset=scores.lk - scores.lq if bottom_right else 0)


def window(scores: Scores, left: int | None, right: int | None, *, offset: int = 0) -> Scores:
    """Query i sees keys i + offset - left to i + offset + right; None is without bound."""
    lq, lk = scores.lq, scores.lk
    until = lq * lk if right is None else _ramp(lq, offset + right + 1, lk)
    before = 0 if left is None else _ramp(lq, offset - left, lk)
    return replace(scores, visible=max(until - before, 0))


def _ramp(n: int, start: int, top: int) -> int:
    """The sum of start, start + 1, ... (n terms), each held between 0 and top."""

    def below(x: int) -> int:  # the same sum over every integer under x
        held = min(max(x - 1, 0), top)
        return held * (held + 1) // 2 + max(x - 1 - top, 0) * top

    return below(start + n) - below(start)


def attention(
    scores: Scores, q: TensorSpec, k: TensorSpec, v: TensorSpec, *, biased: bool = False, dropped: bool = False
) -> Work:
    """softmax(q·kᵀ/√d + mask)·v: q and k each scaled by d^(-1/4), the mask added, two products (Vaswani et al. 2017).

    The scale is counted where torch's composite path applies it, so that every kernel is worth the same.
    """
    s, precision = scores, q.precision
    work = Work.of(precision, mul=s.batch * (s.lq + s.lk) * s.d)
    work += _product(s, s.lq, s.lk, s.d, q, k)
    for pairs, part in _parts(s):
        work += softmax(pairs, precision, part)
        work += Work.of(precision, part, add=pairs * biased)
    if dropped:
        work += dropout(s.batch * s.lq * s.lk, precision)
    return work + _product(s, s.lq, s.dv, s.lk, q, v)


def attention_backward(
    scores: Scores,
    q: TensorSpec,
    k: TensorSpec,
    v: TensorSpec,
    *,
    biased: bool = False,
    dropped: bool = False,
    dq: bool = True,
    dk: bool = True,
    dv: bool = True,
) -> Work:
    """dV = Pᵀ·dO, dP = dO·Vᵀ, dS = P∘(dP - rowsum(P∘dP)), dQ = dS·K, dK = dSᵀ·Q (Dao et al. 2022, 2205.14135, B.2).

    The kernels keep no P and compute it again: that product, the scaling, the mask and the exponentials are marked.
    """
    s, precision = scores, q.precision
    pairs = s.batch * s.lq * s.lk
    work = Work()
    if dv:
        work += _product(s, s.lk, s.dv, s.lq, q, q) + _shared_heads(s, s.dv, v.precision)
    if dq or dk:
        work += _product(s, s.lq, s.lk, s.dv, q, v)
        for part_pairs, part in _parts(s):
            work += softmax_backward(part_pairs, precision, part)
        if dropped:
            work += dropout_backward(pairs, precision)
    if dq:
        work += _product(s, s.lq, s.d, s.lk, q, k) + Work.of(precision, mul=s.batch * s.lq * s.d)
    if dk:
        work += _product(s, s.lk, s.d, s.lq, q, q) + Work.of(precision, mul=s.batch * s.lk * s.d)
        work += _shared_heads(s, s.d, k.precision)
    again = matmul(s.lq, s.d, s.lk, q, k, batch=s.batch, recomputed=True)
    return work + again + Work.of(precision, RECOMPUTED, mul=pairs, add=pairs * (1 + biased), exp=pairs)


def _parts(s: Scores) -> list[tuple[int, str]]:
    return [(s.batch * s.visible, NECESSARY), (s.batch * s.masked, MASKED)]


def _product(s: Scores, m: int, n: int, k: int, a: TensorSpec, b: TensorSpec) -> Work:
    """A product of which each pair of query and key has an equal share."""
    hidden = s.masked * (m * n * k // max(s.lq * s.lk, 1))
    return matmul(m, k, n, a, b, batch=s.batch, masked=s.batch * hidden)


def _shared_heads(s: Scores, width: int, precision: Precision) -> Work:
    """The gradients of the query heads that share a key head are added up."""
    return Work.of(precision, add=s.batch * s.lk * width if s.shared < s.batch else 0)
