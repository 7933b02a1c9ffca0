"""Losses of ATen. Per element, then added up (and divided once) where the loss is reduced."""

import math
from typing import Any

from bitwatt.formulas.pointwise import pointwise
from bitwatt.formulas.softmax import log_softmax
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule
from bitwatt.rules._products import Specs
from bitwatt.rules._tables import amounts, named, tensors

NONE, MEAN, SUM = 0, 1, 2

free(
    "aten._use_cudnn_ctc_loss",
    "aten._use_miopen_ctc_loss",
    reason="it only picks a kernel",
)


def reduced(spec: TensorSpec, elements: int, reduction: int) -> Work:
    """The sum or mean of a loss: an addition per element, one division for the mean."""
    if reduction == NONE:
        return Work()
    return Work.of(spec.precision, add=elements, div=int(reduction == MEAN))


def loss(names: str, formula: str, **kinds: int) -> None:
    """Register losses of so many operations per element, then reduced; a weight is one more multiplication."""

    def function(
        out: Specs,
        weight: TensorSpec | None = None,
        pos_weight: TensorSpec | None = None,
        reduction: int = MEAN,
        **args: Any,
    ) -> Work:
        spec = max(tensors(tuple(args.values())), key=lambda tensor: tensor.numel)
        n = spec.numel
        work = pointwise(spec, n, **kinds)
        if weight is not None:
            work += Work.of(spec.precision, mul=n)
        if pos_weight is not None:  # 1 + (w - 1)·t in front of the logarithm
            work += Work.of(spec.precision, add=2 * n, mul=2 * n)
        return work + reduced(spec, n, reduction)

    named(names, f"{formula}: {amounts(kinds)} per element, then the sum.", function, "loss")


def gradient(names: str, formula: str, **kinds: int) -> None:
    """Register gradients of so many operations per element; a mean or a weight is one more multiplication each."""

    def function(
        self: TensorSpec, out: Specs, weight: TensorSpec | None = None, reduction: int = MEAN, **_: Any
    ) -> Work:
        n = self.numel
        scaled = int(weight is not None) + int(reduction == MEAN)
        return pointwise(self, n, **kinds) + Work.of(self.precision, mul=n * scaled)

    named(names, f"{formula}: {amounts(kinds)} per element, 1 mul for the mean.", function, "loss")


loss("mse_loss", "(x - t)²", add=1, mul=1)
loss("l1_loss", "|x - t|", add=1, logic=1)
loss("smooth_l1_loss", "½·d²/β for d = |x - t| < β, else d - ½·β", add=1, logic=1, compare=1, mul=2, div=1)
loss("huber_loss", "½·d² for d = |x - t| < δ, else δ·(d - ½·δ)", add=1, logic=1, compare=1, mul=2)
loss("binary_cross_entropy", "(t - 1)·log(1 - x) - t·log x", log=2, mul=2, add=3)
loss(
    "binary_cross_entropy_with_logits",
    "(1 - t)·x - min(x, 0) + log(1 + e^-|x|)",
    add=4,
    mul=1,
    exp=1,
    log=1,
    compare=1,
    logic=1,
)
loss("soft_margin_loss", "log(1 + e^(-t·x))", mul=1, exp=1, log=1, logic=1)
loss("hinge_embedding_loss", "x where t = 1, max(0, margin - x) where t = -1", add=2, compare=3)
loss("margin_ranking_loss", "max(0, -t·(a - b) + margin)", add=2, mul=1, compare=1, logic=1)
loss("poisson_nll_loss", "e^x - t·x", exp=1, mul=1, add=1)
loss("multilabel_margin_loss multilabel_margin_loss_forward", "Σ max(0, 1 - x_t + x_i)", add=3, compare=2)
loss("multi_margin_loss", "Σ max(0, margin - x_t + x_i)^p", add=3, compare=1, mul=1)

gradient("mse_loss_backward", "2·(x - t)·g", add=1, mul=1)
gradient("smooth_l1_loss_backward", "g·d/β or ±g", add=1, compare=2, mul=1, div=1)
gradient("huber_loss_backward", "g·d or ±g·δ", add=1, compare=2, mul=1)
gradient("binary_cross_entropy_backward", "g·(x - t)/(x·(1 - x))", add=2, mul=2, div=1, compare=1)
gradient("soft_margin_loss_backward", "-g·t·z/(z + 1), z = e^(-t·x)", mul=3, exp=1, add=1, div=1)
gradient("multi_margin_loss_backward", "g where margin - x_t + x_i > 0", add=3, compare=1, mul=1)
gradient("multilabel_margin_loss_backward", "g where 1 - x_t + x_i > 0", add=3, compare=1)


@rule("aten.kl_div", family="loss")
def kl_div(self: TensorSpec, reduction: int = MEAN, log_target: bool = False, **_: Any) -> Work:
    """t·(log t - x): 1 log, 2 mul, 1 add per element; with the target's logarithm given, e^t·(t - x): 1 exp, 1 mul,
    1 add."""
    kinds = {"exp": 1, "mul": 1, "add": 1} if log_target else {"log": 1, "mul": 2, "add": 1}
    work = pointwise(self, self.numel, **kinds)
    return work + reduced(self, self.numel, reduction)


def picked(self: TensorSpec, target: TensorSpec, weighted: bool, reduction: int) -> Work:
    """-x[target]: one element picked for each target, times its class's weight, added up with the weights."""
    n = target.numel
    work = Work.of(self.precision, index=n, logic=n, mul=n * weighted)
    if reduction == NONE:
        return work
    return work + Work.of(self.precision, add=n * (1 + weighted), div=int(reduction == MEAN))


@rule(
    "aten.nll_loss",
    "aten.nll_loss_nd",
    "aten.nll_loss2d",
    "aten.nll_loss_forward",
    "aten.nll_loss2d_forward",
    family="loss",
)
def nll_loss(
    self: TensorSpec, target: TensorSpec, weight: TensorSpec | None = None, reduction: int = MEAN, **_: Any
) -> Work:
    """-x[target]: 1 index and, where reduced, 1 add per target; 1 mul and 1 add more with weights."""
    return picked(self, target, weight is not None, reduction)


@rule("aten.nll_loss_backward", "aten.nll_loss2d_backward", family="loss")
def nll_loss_backward(
    self: TensorSpec, target: TensorSpec, reduction: int, weight: TensorSpec | None = None, **_: Any
) -> Work:
    """-g/Σw at each target: 1 index and, for the mean, 1 div per target; 1 mul more with weights."""
    n = target.numel
    return Work.of(self.precision, index=n, logic=n, mul=n * (weight is not None), div=n * (reduction == MEAN))


@rule("aten.cross_entropy_loss", family="loss")
def cross_entropy_loss(
    self: TensorSpec,
    target: TensorSpec,
    weight: TensorSpec | None = None,
    reduction: int = MEAN,
    label_smoothing: Any = 0.0,
    **_: Any,
) -> Work:
    """log_softmax over the classes, then nll_loss; against class probabilities or smoothed labels, every class counts:
    1 mul, 1 add per element."""
    classes = self.shape[1 if len(self.shape) > 1 else 0] if self.shape else 1
    rows = self.numel // classes if classes else 0
    work = log_softmax(self.numel, rows, self.precision)
    if target.shape == self.shape and math.prod(self.shape) != rows:
        return work + Work.of(self.precision, mul=self.numel, add=self.numel) + reduced(self, rows, reduction)
    if label_smoothing not in (0, None):
        work += Work.of(self.precision, add=self.numel + 2 * rows, mul=2 * rows)
    return work + picked(self, target, weight is not None, reduction)


@rule("aten.cosine_embedding_loss", family="loss")
def cosine_embedding_loss(input1: TensorSpec, target: TensorSpec, reduction: int = MEAN, **_: Any) -> Work:
    """1 - cos or max(0, cos - margin), cos = Σ a·b/√(Σ a²·Σ b²): 3 mul, 3 add per element, 3 add, 1 mul, 1 sqrt, 1 div
    per pair."""
    n, pairs = input1.numel, max(target.numel, 1)
    work = Work.of(input1.precision, mul=3 * n + pairs, add=3 * n + 3 * pairs, sqrt=pairs, div=pairs, compare=pairs)
    return work + reduced(input1, pairs, reduction)


@rule("aten.triplet_margin_loss", family="loss")
def triplet_margin_loss(anchor: TensorSpec, swap: bool = False, reduction: int = MEAN, **_: Any) -> Work:
    """max(0, ‖a - p‖ - ‖a - n‖ + margin): per element 2 add, 1 mul, 1 add for each distance, per row 1 sqrt each; three
    distances with swap."""
    n, distances = anchor.numel, 3 if swap else 2
    rows = n // anchor.shape[-1] if anchor.shape and anchor.shape[-1] else 1
    work = Work.of(
        anchor.precision,
        add=3 * n * distances + 2 * rows,
        mul=n * distances,
        sqrt=rows * distances,
        compare=rows * (1 + swap),
    )
    return work + reduced(anchor, rows, reduction)


#: One step of the recursion: log(e^a + e^b + e^c) of three predecessors, and the symbol's log probability added.
STEP = {"compare": 3, "add": 7, "exp": 3, "log": 1}


@rule("aten._ctc_loss", family="loss")
def ctc_loss(log_probs: TensorSpec, out: Specs, **_: Any) -> Work:
    """The forward recursion over every step and place of the extended target: a logsumexp of three (Graves et al.
    2006, eq. 6). Lengths are taken at their longest."""
    places = out[1].numel
    work = pointwise(log_probs, places, **STEP)
    return Work(work.ops, estimated=True)


@rule("aten._ctc_loss_backward", family="loss")
def ctc_loss_backward(log_probs: TensorSpec, log_alpha: TensorSpec, **_: Any) -> Work:
    """The backward recursion like the forward one, a logsumexp into each symbol, and e^x - e^(…) for every symbol and
    step (Graves et al. 2006, eq. 16)."""
    places, symbols = log_alpha.numel, log_probs.numel
    work = pointwise(log_probs, places, **STEP)
    work += Work.of(log_probs.precision, add=3 * places, exp=2 * places, log=places)
    work += Work.of(log_probs.precision, exp=2 * symbols, add=3 * symbols, mul=symbols)
    return Work(work.ops, estimated=True)


@rule("aten.ctc_loss", "aten._cudnn_ctc_loss", "aten.miopen_ctc_loss", family="loss")
def ctc_loss_whole(log_probs: TensorSpec, targets: TensorSpec, out: Specs, **_: Any) -> Work:
    """As _ctc_loss, with 2·longest + 1 places in the extended target; the vendors' kernels, which give the gradient
    at once, as its backward too."""
    steps, batch = log_probs.shape[0], log_probs.shape[1] if len(log_probs.shape) > 2 else 1
    longest = targets.shape[-1] if len(targets.shape) > 1 else targets.numel // max(batch, 1)
    log_alpha = TensorSpec((batch, steps, 2 * longest + 1), log_probs.dtype)
    work = ctc_loss(log_probs, (log_alpha, log_alpha))
    return work + ctc_loss_backward(log_probs, log_alpha) if len(out) > 1 else work
