"""Recurrent layers and cells of ATen."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bitwatt.formulas import rnn as formulas
from bitwatt.formulas.dropout import dropout as dropped
from bitwatt.formulas.linalg import bias_add
from bitwatt.formulas.rnn import CELLS, Cell, Layer
from bitwatt.records import QUANTISATION, TensorSpec, Work
from bitwatt.registry import free, rule
from bitwatt.rules._products import Specs
from bitwatt.rules.aten.quantized import dynamic

free("aten._use_cudnn_rnn_flatten_weight", reason="it only picks a kernel")

#: cuDNN's and oneDNN's numbers for the kinds of cells.
MODES = {0: CELLS["relu"], 1: CELLS["tanh"], 2: CELLS["lstm"], 3: CELLS["gru"]}


def layers(cell: Cell, rows: int, steps: int, weights: Specs, stride: int) -> Iterator[tuple[Layer, TensorSpec]]:
    """Weights listed as (W_ih, W_hh, [b_ih, b_hh], [W_hr]) for each direction of each layer."""
    for start in range(0, len(weights), stride):
        w_ih, _, *rest = weights[start : start + stride]
        biases = sum(len(spec.shape) == 1 for spec in rest)
        projection = next((spec.shape[0] for spec in rest if len(spec.shape) == 2), 0)
        hidden = w_ih.shape[0] // cell.gates
        yield Layer(cell, rows, steps, w_ih.shape[1], hidden, projection, biases), w_ih


def _extent(x: TensorSpec, batch_sizes: Any, batch_first: bool) -> tuple[int, int]:
    """Rows and steps: from the axes (steps, batch, width), or from packed rows with the batch size of each step."""
    rows = math.prod(x.shape[:-1])
    if isinstance(batch_sizes, TensorSpec):
        return rows, batch_sizes.shape[0]
    if batch_sizes:
        return rows, len(batch_sizes)
    return rows, x.shape[1 if batch_first and len(x.shape) == 3 else 0]


def _between_layers(x: TensorSpec, out: TensorSpec, num_layers: int, dropout: Any, train: bool) -> Work:
    rows = math.prod(x.shape[:-1])
    elements = rows * out.shape[-1] * max(num_layers - 1, 0)
    return dropped(elements, x.precision) if train and dropout not in (0, None) else Work()


def _recurrent(
    cell: Cell,
    x: TensorSpec,
    weights: Specs,
    stride: int,
    out: TensorSpec,
    batch_sizes: Any = (),
    batch_first: bool = False,
    num_layers: int = 1,
    dropout: Any = 0.0,
    train: bool = False,
) -> Work:
    rows, steps = _extent(x, batch_sizes, batch_first)
    works = (formulas.rnn(layer, x, weight) for layer, weight in layers(cell, rows, steps, weights, stride))
    return sum(works, _between_layers(x, out, num_layers, dropout, train))


def _composite(cell: Cell, out: Specs, args: dict[str, Any]) -> Work:
    x = args["input"] if "input" in args else args["data"]
    stride = len(args["params"]) // (args["num_layers"] * (1 + args["bidirectional"]))
    return _recurrent(
        cell,
        x,
        args["params"],
        stride,
        out[0],
        args.get("batch_sizes"),
        args.get("batch_first", False),
        args["num_layers"],
        args["dropout"],
        args["train"],
    )


@rule("aten.lstm", "aten._lstm_mps", family="rnn")
def lstm(out: Specs, **args: Any) -> Work:
    """Steps·batch·4·hidden·(input + hidden) multiply-accumulates for each layer and direction; per hidden unit and
    step 3 sigmoid, 2 tanh, 3 mul, 5 add and 4 add for each bias."""
    return _composite(CELLS["lstm"], out, args)


@rule("aten.gru", family="rnn")
def gru(out: Specs, **args: Any) -> Work:
    """Steps·batch·3·hidden·(input + hidden) multiply-accumulates for each layer and direction; per hidden unit and
    step 2 sigmoid, 1 tanh, 2 mul, 5 add and 3 add for each bias."""
    return _composite(CELLS["gru"], out, args)


@rule("aten.rnn_tanh", family="rnn")
def rnn_tanh(out: Specs, **args: Any) -> Work:
    """Steps·batch·hidden·(input + hidden) multiply-accumulates for each layer and direction; per unit 1 tanh, 1 add
    and 1 add for each bias."""
    return _composite(CELLS["tanh"], out, args)


@rule("aten.rnn_relu", family="rnn")
def rnn_relu(out: Specs, **args: Any) -> Work:
    """As rnn_tanh, with a comparison instead of the tanh."""
    return _composite(CELLS["relu"], out, args)


@rule("aten._cudnn_rnn", "aten.miopen_rnn", family="rnn")
def cudnn_rnn(
    input: TensorSpec,
    weight: Specs,
    weight_stride0: int,
    mode: int,
    num_layers: int,
    batch_first: bool,
    dropout: Any,
    train: bool,
    batch_sizes: tuple[int, ...],
    out: Specs,
    **_: Any,
) -> Work:
    """As lstm, gru or rnn, by mode."""
    return _recurrent(
        MODES[mode], input, weight, weight_stride0, out[0], batch_sizes, batch_first, num_layers, dropout, train
    )


def _gradient(cell: Cell, rows: int, steps: int, x: TensorSpec, weights: Specs, stride: int, wanted: bool) -> Work:
    works = (
        formulas.rnn_backward(layer, x, weight, weights=wanted)
        for layer, weight in layers(cell, rows, steps, weights, stride)
    )
    return sum(works, Work())


@rule("aten._cudnn_rnn_backward", "aten.miopen_rnn_backward", family="rnn")
def cudnn_rnn_backward(
    input: TensorSpec,
    weight: Specs,
    weight_stride0: int,
    mode: int,
    batch_first: bool,
    batch_sizes: tuple[int, ...],
    output_mask: tuple[bool, ...],
    **_: Any,
) -> Work:
    """Twice the forward's multiply-accumulates: once for inputs and states, once for the weights if they are asked
    for; the gates' derivatives."""
    rows, steps = _extent(input, batch_sizes, batch_first)
    return _gradient(MODES[mode], rows, steps, input, weight, weight_stride0, output_mask[3])


@rule("aten.lstm_mps_backward", family="rnn")
def lstm_mps_backward(
    input: TensorSpec, params: Specs, num_layers: int, bidirectional: bool, batch_first: bool, **_: Any
) -> Work:
    """Twice the forward's multiply-accumulates, and the gates' derivatives."""
    rows, steps = _extent(input, (), batch_first)
    stride = len(params) // (num_layers * (1 + bidirectional))
    return _gradient(CELLS["lstm"], rows, steps, input, params, stride, True)


@rule("aten.mkldnn_rnn_layer", family="rnn")
def mkldnn_rnn_layer(
    input: TensorSpec,
    weight0: TensorSpec,
    mode: int,
    hidden_size: int,
    has_biases: bool,
    **_: Any,
) -> Work:
    """One direction of one layer of an lstm, gru or rnn, by mode; oneDNN always has the steps first."""
    rows, steps = _extent(input, (), False)
    layer = Layer(MODES[mode], rows, steps, input.shape[-1], hidden_size, biases=2 * has_biases)
    return formulas.rnn(layer, input, weight0)


@rule("aten.mkldnn_rnn_layer_backward", family="rnn")
def mkldnn_rnn_layer_backward(
    input: TensorSpec, weight1: TensorSpec, mode: int, hidden_size: int, has_biases: bool, **_: Any
) -> Work:
    """Twice the forward's multiply-accumulates, and the gates' derivatives."""
    rows, steps = _extent(input, (), False)
    layer = Layer(MODES[mode], rows, steps, input.shape[-1], hidden_size, biases=2 * has_biases)
    return formulas.rnn_backward(layer, input, weight1)


def cell_step(cell: Cell, x: TensorSpec, w_ih: TensorSpec, w_hh: TensorSpec, biases: int) -> Work:
    """One step of a cell on its own."""
    rows = math.prod(x.shape[:-1])
    layer = Layer(cell, rows, 1, w_ih.shape[1], w_hh.shape[1], biases=biases)
    return formulas.rnn(layer, x, w_ih)


def _cell_rule(name: str, cell: Cell) -> None:
    @rule(name, family="rnn")
    def one_step(
        input: TensorSpec,
        w_ih: TensorSpec,
        w_hh: TensorSpec,
        b_ih: TensorSpec | None = None,
        b_hh: TensorSpec | None = None,
        **_: Any,
    ) -> Work:
        """One step: batch·gates·hidden·(input + hidden) multiply-accumulates, the biases and the gates."""
        return cell_step(cell, input, w_ih, w_hh, sum(bias is not None for bias in (b_ih, b_hh)))


for _name, _kind in (("lstm", "lstm"), ("gru", "gru"), ("rnn_tanh", "tanh"), ("rnn_relu", "relu")):
    _cell_rule(f"aten.{_name}_cell", CELLS[_kind])
    _cell_rule(f"aten.quantized_{_name}_cell", CELLS[_kind])


def _quantised(cell: Cell, out: Specs, args: dict[str, Any]) -> Work:
    """Packed weights do not tell their sizes; those of input and result do."""
    x = args["input"] if "input" in args else args["data"]
    directions = 1 + args["bidirectional"]
    hidden = out[0].shape[-1] // directions
    rows, steps = _extent(x, args.get("batch_sizes"), args.get("batch_first", False))
    widths = [x.shape[-1]] + [directions * hidden] * (args["num_layers"] - 1)
    layers = [Layer(cell, rows, steps, width, hidden) for width in widths]
    if args.get("dtype") == "float16":
        return sum((formulas.rnn(layer, x, TensorSpec((), "float16")) * directions for layer in layers), Work())
    return sum((eight_bit(layer, x) * directions for layer in layers), Work())


def eight_bit(layer: Layer, x: TensorSpec) -> Work:
    """With 8-bit weights: what is multiplied with them is quantised on the way in, and both sums are scaled back."""
    byte = TensorSpec((), "int8")
    work = formulas.rnn(layer, x, byte)
    products = tuple((replace(product, a=byte.precision), times) for product, times in work.products)
    inputs = TensorSpec((layer.rows, layer.width + layer.recurrent), x.dtype)
    scaled = Work.of(x.precision, QUANTISATION, mul=2 * layer.rows * layer.gates)
    return replace(work, products=products) + dynamic(inputs) + scaled


@rule("aten.quantized_lstm", family="rnn")
def quantized_lstm(out: Specs, **args: Any) -> Work:
    """As lstm, with weights of 8 bits or 16-bit floats."""
    return _quantised(CELLS["lstm"], out, args)


@rule("aten.quantized_gru", family="rnn")
def quantized_gru(out: Specs, **args: Any) -> Work:
    """As gru, with weights of 8 bits or 16-bit floats."""
    return _quantised(CELLS["gru"], out, args)


@rule("aten._thnn_fused_lstm_cell", "aten._thnn_fused_gru_cell", family="rnn")
def fused_cell(
    input_gates: TensorSpec,
    input_bias: TensorSpec | None = None,
    hidden_bias: TensorSpec | None = None,
    cx: TensorSpec | None = None,
    **_: Any,
) -> Work:
    """The gates after both products: activations, sums and products per hidden unit, and the biases."""
    cell = CELLS["gru"] if cx is None else CELLS["lstm"]
    biases = sum(bias is not None for bias in (input_bias, hidden_bias))
    work = formulas.gates(cell, input_gates.numel // cell.gates, input_gates.precision)
    return work + bias_add(input_gates.numel * biases, input_gates.precision)


@rule("aten._thnn_fused_lstm_cell_backward", "aten._thnn_fused_lstm_cell_backward_impl", family="rnn")
def fused_lstm_cell_backward(cx: TensorSpec, has_bias: bool, **_: Any) -> Work:
    """The gates' derivatives per hidden unit, and the bias's gradient added up over the batch."""
    work = formulas.gates_backward(CELLS["lstm"], cx.numel, cx.precision)
    return work + bias_add(4 * cx.numel * has_bias, cx.precision)


@rule("aten._thnn_fused_gru_cell_backward", family="rnn")
def fused_gru_cell_backward(grad_hy: TensorSpec, has_bias: bool, **_: Any) -> Work:
    """The gates' derivatives per hidden unit, and both biases' gradients added up over the batch."""
    work = formulas.gates_backward(CELLS["gru"], grad_hy.numel, grad_hy.precision)
    return work + bias_add(6 * grad_hy.numel * has_bias, grad_hy.precision)


@rule("aten._thnn_differentiable_lstm_cell_backward", "aten._thnn_differentiable_gru_cell_backward", family="rnn")
def differentiable_cell_backward(
    input_gates: TensorSpec, input_bias: TensorSpec | None = None, cx: TensorSpec | None = None, **_: Any
) -> Work:
    """The gates once more and their derivatives, out of differentiable operations."""
    cell = CELLS["gru"] if cx is None else CELLS["lstm"]
    units, precision = input_gates.numel // cell.gates, input_gates.precision
    work = formulas.gates(cell, units, precision) + formulas.gates_backward(cell, units, precision)
    return work + bias_add(input_gates.numel * (input_bias is not None), precision)


@rule("aten._cudnn_rnn_flatten_weight", family="rnn")
def flatten_weight(**_: Any) -> Work:
    """The weights copied into one buffer."""
    return Work()
