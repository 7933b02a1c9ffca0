"""bitsandbytes' optimizers: one kernel for each parameter, which computes in float32 whatever states are kept in."""

from collections.abc import Mapping
from typing import Any

from bitwatt.dtypes import DTYPES
from bitwatt.records import NECESSARY, QUANTISATION, TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._tables import size_of

FLOAT = DTYPES["float32"].precision
#: Per parameter, as the kernels write it. Moving averages β·m + (1-β)·g: 2 mul, 1 add; of squares 1 mul more.
KINDS: Mapping[str, Mapping[str, int]] = {
    "adam": {"mul": 6, "add": 4, "sqrt": 1, "div": 1},  # two averages, p + s·m/(√v + ε)
    "ademamix": {"mul": 9, "add": 6, "sqrt": 1, "div": 3},  # three, p - lr·(m₁/c + α·m₂)/(√v/c + ε)
    "momentum": {"mul": 2, "add": 2},  # b = μ·b + g, p - lr·b
    "lion": {"mul": 5, "add": 3, "compare": 1},  # p - lr·sign(β₁·m + (1-β₁)·g), then the average
    "rmsprop": {"mul": 4, "add": 3, "sqrt": 1, "div": 1},  # v, p - lr·g/(√v + ε)
    "adagrad": {"mul": 2, "add": 3, "sqrt": 1, "div": 1},  # s + g·g, p - lr·g/(√s + ε)
}
TWINS = {"lamb": "adam", "lars": "momentum"}
#: Those that shrink p itself, p·(1 - lr·w), where others add w·p to the gradient.
DECOUPLED = ("adam", "ademamix", "lion")
#: A state's byte is an index into a table of 256: the nearest is found in eight comparisons.
CODE_BITS = 8


def _step(name: str, g: TensorSpec, p: TensorSpec, step: Any, weight_decay: Any, gnorm_scale: Any) -> Work:
    known, n = TWINS.get(name, name), p.numel
    counts = dict(KINDS[known])
    if known == "momentum" and step == 1:  # the buffer begins as the gradient
        counts = {"mul": 1, "add": 1}
    if weight_decay:
        counts["mul"] += 1
        counts["add"] += known not in DECOUPLED
    if gnorm_scale != 1:
        counts["mul"] += 1
    counts["cast"] = (g.precision != FLOAT) + 2 * (p.precision != FLOAT)
    return Work.of(FLOAT, NECESSARY, **{kind: each * n for kind, each in counts.items()})


@rule("bitsandbytes.optimizer_update_32bit", family="optimizer")
def update_32bit(
    optimizer_name: str,
    g: TensorSpec,
    p: TensorSpec,
    state1: TensorSpec,
    state2: TensorSpec | None = None,
    max_unorm: Any = 0.0,
    weight_decay: Any = 0.0,
    step: Any = 0,
    gnorm_scale: Any = 1.0,
    **_: Any,
) -> Work:
    """The optimizer's arithmetic in float32: Adam 12 per parameter, AdEMAMix 19, momentum 4, Lion 8, RMSprop 9,
    Adagrad 7; weight decay 1 or 2, a norm of the gradient 1; LAMB and LARS 2 for the norm of the update."""
    work = _step(optimizer_name, g, p, step, weight_decay, gnorm_scale)
    if max_unorm:
        work += Work.of(FLOAT, mul=p.numel, add=p.numel)
    return work + Work(bytes_written=size_of((p, state1, state2)))


@rule("bitsandbytes.optimizer_update_8bit_blockwise", family="optimizer")
def update_8bit(
    optimizer_name: str,
    g: TensorSpec,
    p: TensorSpec,
    state1: TensorSpec,
    state2: TensorSpec | None = None,
    absmax1: TensorSpec | None = None,
    absmax2: TensorSpec | None = None,
    weight_decay: Any = 0.0,
    step: Any = 0,
    gnorm_scale: Any = 1.0,
    **_: Any,
) -> Work:
    """As optimizer_update_32bit; each state expanded (code[q]·scale: 1 index, 1 mul) and written back (the largest of
    its block, x/scale, the nearest of 256 codes: 9 compare, 1 mul)."""
    kept = state1.numel + (state2.numel if state2 is not None else 0)
    quantised = Work.of(FLOAT, QUANTISATION, index=kept, mul=2 * kept, compare=(1 + CODE_BITS) * kept)
    written = size_of((p, state1, state2, absmax1, absmax2))
    return _step(optimizer_name, g, p, step, weight_decay, gnorm_scale) + quantised + Work(bytes_written=written)
