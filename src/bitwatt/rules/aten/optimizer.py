"""Optimizer steps in one kernel, counted as the same step written out tensor by tensor."""

from typing import Any

from bitwatt.formulas.pointwise import pointwise, stored
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._tables import size_of

Tensors = tuple[TensorSpec, ...]


def _step(parameters: Tensors, written: Any, kinds: dict[str, int]) -> Work:
    work = sum((pointwise(spec, stored(spec), **kinds) for spec in parameters), Work())
    return work + Work(bytes_written=size_of((parameters, written)))


def _plus(*parts: dict[str, int]) -> dict[str, int]:
    return {kind: sum(part.get(kind, 0) for part in parts) for part in parts for kind in part}


MUL = {"mul": 1}
AXPY = {"mul": 1, "add": 1}  # x + α·y
LERP = {"add": 2, "mul": 1}
ADDCMUL = {"mul": 2, "add": 1}
ADDCDIV = {"div": 1, "mul": 1, "add": 1}
ADAM = _plus(LERP, MUL, ADDCMUL, {"sqrt": 1, "div": 1, "add": 1}, ADDCDIV)
ADAGRAD = _plus(AXPY, {"sqrt": 1, "add": 1}, ADDCDIV)


def _unscaled(grad_scale: Any) -> dict[str, int]:
    return MUL if isinstance(grad_scale, TensorSpec) else {}


def _extras(amsgrad: bool, maximize: bool, grad_scale: Any) -> dict[str, int]:
    return _plus(_unscaled(grad_scale), {"compare": int(amsgrad), "logic": int(maximize)})


@rule("aten._fused_adam", family="optimizer")
def adam(
    self: Tensors,
    exp_avgs: Tensors = (),
    exp_avg_sqs: Tensors = (),
    max_exp_avg_sqs: Tensors = (),
    weight_decay: Any = 0,
    amsgrad: bool = False,
    maximize: bool = False,
    grad_scale: Any = None,
    **_: Any,
) -> Work:
    """m += (1-β₁)(g - m), v = β₂·v + (1-β₂)·g·g, p -= lr·m/(√v/c + ε): 13 per parameter (5 add, 5 mul, 2 div, 1 sqrt);
    weight decay g + w·p 1 mul, 1 add; amsgrad 1 compare; loss scale 1 mul."""
    decay = AXPY if weight_decay else {}
    kinds = _plus(ADAM, decay, _extras(amsgrad, maximize, grad_scale))
    return _step(self, (exp_avgs, exp_avg_sqs, max_exp_avg_sqs), kinds)


@rule("aten._fused_adamw", family="optimizer")
def adamw(
    self: Tensors,
    exp_avgs: Tensors = (),
    exp_avg_sqs: Tensors = (),
    max_exp_avg_sqs: Tensors = (),
    weight_decay: Any = 0,
    amsgrad: bool = False,
    maximize: bool = False,
    grad_scale: Any = None,
    **_: Any,
) -> Work:
    """As _fused_adam, 13 per parameter, with weight decay p·(1 - lr·w) apart from the gradient: 1 mul more, 14."""
    decay = MUL if weight_decay else {}
    kinds = _plus(ADAM, decay, _extras(amsgrad, maximize, grad_scale))
    return _step(self, (exp_avgs, exp_avg_sqs, max_exp_avg_sqs), kinds)


@rule("aten._fused_sgd", family="optimizer")
def sgd(
    self: Tensors,
    momentum_buffer_list: Tensors = (),
    weight_decay: Any = 0,
    momentum: Any = 0,
    lr: Any = None,
    dampening: Any = 0,
    nesterov: bool = False,
    maximize: bool = False,
    is_first_step: bool = False,
    grad_scale: Any = None,
    **_: Any,
) -> Work:
    """p -= lr·g: 2 per parameter; weight decay g + w·p 2; momentum b = μ·b + g 2 (3 if dampened, none on the first
    step); Nesterov g + μ·b 2; loss scale 1 mul."""
    step = {"add": 1} if lr in (1, -1) else AXPY
    decay = AXPY if weight_decay else {}
    buffer = _plus(MUL, AXPY if dampening else {"add": 1}) if momentum and not is_first_step else {}
    ahead = AXPY if momentum and nesterov else {}
    return _step(self, momentum_buffer_list, _plus(step, decay, buffer, ahead, _extras(False, maximize, grad_scale)))


@rule("aten._fused_adagrad", family="optimizer")
def adagrad(
    self: Tensors,
    state_sums: Tensors = (),
    weight_decay: Any = 0,
    maximize: bool = False,
    grad_scale: Any = None,
    **_: Any,
) -> Work:
    """s += g·g, p -= lr·g/(√s + ε): 7 per parameter; weight decay g + w·p 2; loss scale 1 mul."""
    decay = AXPY if weight_decay else {}
    return _step(self, state_sums, _plus(ADAGRAD, decay, _extras(False, maximize, grad_scale)))
