"""Recurrent layers of ONNX."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bitwatt.formulas.pointwise import pointwise
from bitwatt.formulas.rnn import CELLS, Cell, Layer, rnn
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule


def recurrent(
    cell: Cell, X: TensorSpec, W: TensorSpec, R: TensorSpec, B: TensorSpec | None, layout: int, lengths: bool
) -> Work:
    """Every direction: the products with both weights, and the gates. W is (directions, gates·hidden, width)."""
    steps, batch = (X.shape[1], X.shape[0]) if layout else (X.shape[0], X.shape[1])
    hidden = R.shape[-1]
    layer = Layer(cell, steps * batch, steps, X.shape[-1], hidden, biases=0 if B is None else 2)
    work = rnn(layer, X, W) * W.shape[0]
    return replace(work, estimated=lengths)  # shorter sequences end earlier; how long they are is data


@rule("onnx.LSTM", family="rnn")
def lstm(
    X: TensorSpec,
    W: TensorSpec,
    R: TensorSpec,
    B: TensorSpec | None = None,
    P: TensorSpec | None = None,
    sequence_lens: TensorSpec | None = None,
    layout: int = 0,
    **_: Any,
) -> Work:
    """Steps·batch·4·hidden·(input + hidden) multiply-accumulates for each direction; per hidden unit and step 3
    sigmoid, 2 tanh, 3 mul, 5 add, 4 add for each bias, and 3 mul, 3 add for peepholes. Sequences are taken as long as
    the longest."""
    work = recurrent(CELLS["lstm"], X, W, R, B, layout, sequence_lens is not None)
    units = X.numel // max(X.shape[-1], 1) * R.shape[-1] * W.shape[0]
    return work if P is None else work + pointwise(X, units, mul=3, add=3)


@rule("onnx.GRU", family="rnn")
def gru(
    X: TensorSpec,
    W: TensorSpec,
    R: TensorSpec,
    B: TensorSpec | None = None,
    sequence_lens: TensorSpec | None = None,
    layout: int = 0,
    **_: Any,
) -> Work:
    """Steps·batch·3·hidden·(input + hidden) multiply-accumulates for each direction; per hidden unit and step 2
    sigmoid, 1 tanh, 2 mul, 5 add and 3 add for each bias."""
    return recurrent(CELLS["gru"], X, W, R, B, layout, sequence_lens is not None)


_KINDS: Mapping[str, str] = {"Relu": "relu", "Tanh": "tanh"}


@rule("onnx.RNN", family="rnn")
def simple(
    X: TensorSpec,
    W: TensorSpec,
    R: TensorSpec,
    B: TensorSpec | None = None,
    sequence_lens: TensorSpec | None = None,
    activations: tuple[str, ...] = ("Tanh",),
    layout: int = 0,
    **_: Any,
) -> Work:
    """Steps·batch·hidden·(input + hidden) multiply-accumulates for each direction; per unit 1 tanh (or compare), 1 add
    and 1 add for each bias."""
    cell = CELLS[_KINDS.get(activations[0], "tanh")]
    return recurrent(cell, X, W, R, B, layout, sequence_lens is not None)
