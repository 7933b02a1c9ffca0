"""ONNX's optimizers: each is a step of the optimizer that torch has under the same name."""

from collections.abc import Mapping
from typing import Any

from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules.aten.optimizer import ADAGRAD, ADAM, AXPY


def _step(inputs: tuple[TensorSpec, ...], tensors: int, kinds: Mapping[str, int]) -> Work:
    """Weights come first, then as many gradients and states: `tensors` for each weight."""
    weights = inputs[: len(inputs) // tensors]
    return sum((pointwise(spec, spec.numel, **kinds) for spec in weights), Work())


def _decayed(kinds: Mapping[str, int], norm_coefficient: float) -> dict[str, int]:
    more = AXPY if norm_coefficient else {}
    return {kind: kinds.get(kind, 0) + more.get(kind, 0) for kind in {*kinds, *more}}


@rule("onnx_preview_training.Adam", family="optimizer")
def adam(inputs: tuple[TensorSpec, ...], norm_coefficient: float = 0.0, **_: Any) -> Work:
    """m, v and p as torch's Adam: 13 operations per parameter; a penalty on the norm 1 mul, 1 add more."""
    return _step(inputs, 4, _decayed(ADAM, norm_coefficient))


@rule("onnx_preview_training.Adagrad", family="optimizer")
def adagrad(inputs: tuple[TensorSpec, ...], norm_coefficient: float = 0.0, **_: Any) -> Work:
    """h += g·g, p -= lr·g/(√h + ε): as torch's Adagrad; a penalty on the norm 1 mul, 1 add more."""
    return _step(inputs, 3, _decayed(ADAGRAD, norm_coefficient))


@rule("onnx_preview_training.Momentum", family="optimizer")
def momentum(inputs: tuple[TensorSpec, ...], mode: str = "standard", norm_coefficient: float = 0.0, **_: Any) -> Work:
    """v = α·v + β·g, p -= lr·v: 3 mul, 2 add per parameter; Nesterov's 1 mul, 1 add more, and so a penalty."""
    kinds = {"mul": 3, "add": 2} if mode == "standard" else {"mul": 4, "add": 3}
    return _step(inputs, 3, _decayed(kinds, norm_coefficient))
