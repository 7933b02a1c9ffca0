"""Recurrent layers: the products with both weights, and what happens at each gate."""

from collections.abc import Mapping
from dataclasses import dataclass

from bitwatt.dtypes import Precision
from bitwatt.formulas.linalg import bias_add, matmul
from bitwatt.records import NECESSARY, RECOMPUTED, TensorSpec, Work


@dataclass(frozen=True, slots=True)
class Cell:
    """A kind of cell: how many gates, and the operations per hidden unit and step, forward and backward."""

    gates: int
    forward: Mapping[str, int]
    backward: Mapping[str, int]
    recomputed: Mapping[str, int]


#: Forward counts start where the input's and the hidden state's products (and their biases) are at hand; backward
#: counts end at the gradients of the gates before their activation. σ' = y·(1 - y) and tanh' = 1 - y² are 2 mul and
#: 1 add with the gradient; one more add joins the gradient from the next step.
CELLS: Mapping[str, Cell] = {
    # i, f, o = σ, g = tanh of sums; c' = f·c + i·g; h' = o·tanh c' (Hochreiter & Schmidhuber 1997; Gers et al. 2000)
    "lstm": Cell(4, {"add": 5, "mul": 3, "sigmoid": 3, "tanh": 2}, {"add": 7, "mul": 16}, {"tanh": 1}),
    # r, z = σ of sums; n = tanh(x + r·h); h' = n + z·(h - n) (Cho et al. 2014, 1406.1078)
    "gru": Cell(3, {"add": 5, "mul": 2, "sigmoid": 2, "tanh": 1}, {"add": 6, "mul": 11}, {}),
    # h' = tanh(x + h) (Elman 1990)
    "tanh": Cell(1, {"add": 1, "tanh": 1}, {"add": 2, "mul": 2}, {}),
    "relu": Cell(1, {"add": 1, "compare": 1}, {"add": 1, "mul": 1}, {}),
}


@dataclass(frozen=True, slots=True)
class Layer:
    """One direction of one layer: `rows` = steps x batch inputs of `width`, a `hidden` state, projected or not."""

    cell: Cell
    rows: int
    steps: int
    width: int
    hidden: int
    projection: int = 0
    biases: int = 2

    @property
    def gates(self) -> int:
        return self.cell.gates * self.hidden

    @property
    def recurrent(self) -> int:
        return self.projection or self.hidden


def gates(cell: Cell, units: int, precision: Precision) -> Work:
    """Element-wise work of one step for `units` = batch x hidden."""
    return Work.of(precision, NECESSARY, **{kind: n * units for kind, n in cell.forward.items()})


def gates_backward(cell: Cell, units: int, precision: Precision) -> Work:
    """Element-wise work of one step's gradient for `units` = batch x hidden."""
    again = Work.of(precision, RECOMPUTED, **{kind: n * units for kind, n in cell.recomputed.items()})
    return Work.of(precision, NECESSARY, **{kind: n * units for kind, n in cell.backward.items()}) + again


def rnn(layer: Layer, x: TensorSpec, weight: TensorSpec) -> Work:
    """Gates = x·W_ih (all steps at once) + h·W_hh (step by step): rows·gates·(width + recurrent) MACs, and those of a
    projection h = W_hr·h' (Sak et al. 2014, 1402.1128)."""
    work = matmul(layer.rows, layer.width, layer.gates, x, weight)
    work += _each_step(layer, layer.recurrent, layer.gates, x, weight)
    if layer.projection:
        work += _each_step(layer, layer.hidden, layer.projection, x, weight)
    work += bias_add(layer.rows * layer.gates * layer.biases, x.precision)
    return work + gates(layer.cell, layer.rows * layer.hidden, x.precision)


def rnn_backward(layer: Layer, x: TensorSpec, weight: TensorSpec, *, weights: bool = True) -> Work:
    """Each forward product has two gradients of the same MACs: for what it multiplied, and for its weight (Werbos 1990,
    backpropagation through time)."""
    work = matmul(layer.rows, layer.gates, layer.width, x, weight)
    work += _each_step(layer, layer.gates, layer.recurrent, x, weight)
    if layer.projection:
        work += _each_step(layer, layer.projection, layer.hidden, x, weight)
    if weights:
        work += matmul(layer.gates, layer.rows, layer.width, x, x)
        work += matmul(layer.gates, layer.rows, layer.recurrent, x, x)
        if layer.projection:
            work += matmul(layer.projection, layer.rows, layer.hidden, x, x)
        if layer.biases:
            work += bias_add(layer.rows * layer.gates, x.precision)  # both biases have the same gradient
    return work + gates_backward(layer.cell, layer.rows * layer.hidden, x.precision)


def _each_step(layer: Layer, k: int, n: int, a: TensorSpec, b: TensorSpec) -> Work:
    """One product per step; ragged batches are entered as one product of all their rows."""
    even = layer.steps and layer.rows % layer.steps == 0
    times = layer.steps if even else 1
    return matmul(layer.rows // times if times else 0, k, n, a, b, times=times)
