"""What comes out of operators that ONNX Runtime adds (com.microsoft and its layouts), which onnx does not know."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import onnx
import onnx.shape_inference

from bitwatt.backends.onnx.names import INPUTS
from bitwatt.backends.onnx.values import Dims, Value, of_type, type_of, words

#: The result is as large as the first input.
_SAME = words(
    "BiasAdd BiasDropout BiasGelu BiasSoftmax ComplexMul ComplexMulConj FastGelu GatedAdd Gelu GroupNorm "
    "LayerNormalization NGramRepeatBlock QLinearLeakyRelu QLinearSigmoid QLinearSoftmax QuickGelu RotaryEmbedding "
    "ScaledSiLU SimplifiedLayerNormalization SkipGroupNorm SkipLayerNormalization SkipSimplifiedLayerNormalization "
    "Trilu GroupNormalization MeanVarianceNormalization MoE QMoE ReorderInput Affine ImageScaler ParametricSoftplus "
    "ScaledTanh Scale RMSNormalization LRN"
)
#: Computed on as another operator of onnx: what is called like it there has the same sizes.
_AS_STANDARD = {
    "FusedConv": "Conv", "NhwcConv": "Conv", "NhwcFusedConv": "Conv", "QLinearConv": "Conv", "Conv": "Conv",
    "ConvTransposeWithDynamicPads": "ConvTranspose", "QLinearConvTranspose": "ConvTranspose",
    "ConvTranspose": "ConvTranspose", "NhwcMaxPool": "MaxPool", "MaxPool": "MaxPool",
    "QLinearAveragePool": "AveragePool", "AveragePool": "AveragePool",
}  # fmt: skip
#: Standard operators that onnx's inference leaves open.
_ALSO_STANDARD = words("StringNormalizer TfIdfVectorizer")
#: Domains and operators whose tensors have their channels last.
NHWC = "com.ms.internal.nhwc"

_INT32, _UINT8, _FLOAT, _TEXT, _BOOL = (
    int(getattr(onnx.TensorProto, name)) for name in ("INT32", "UINT8", "FLOAT", "STRING", "BOOL")
)


class Call:
    """A node with its inputs by name and its attributes."""

    def __init__(self, node: onnx.NodeProto, inputs: Sequence[Value | None], opsets: Any) -> None:
        self.node, self.inputs, self.opsets = node, inputs, opsets
        self.named = dict(zip(INPUTS.get(node.op_type, ()), inputs, strict=False))
        self.options = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}

    def dims(self, name: str) -> Dims:
        value = self.named.get(name)
        if value is None or value.dims is None:
            raise LookupError(f"the shape of {name} is not known")
        return value.dims

    def known(self, name: str) -> bool:
        return self.named.get(name) is not None

    def elem(self, name: str) -> int:
        value = self.named.get(name)
        return value.elem if value is not None else _FLOAT

    @property
    def channels_last(self) -> bool:
        told = self.options.get("channels_last", 0) or self.node.op_type.startswith("Nhwc")
        return bool(told) or self.node.domain == NHWC


Shaping = Callable[[Call], list[Value]]


def outputs(node: onnx.NodeProto, inputs: Sequence[Value | None], opsets: Any) -> list[Value]:
    """Nothing for an operator that is not known here."""
    call = Call(node, inputs, opsets)
    shaping = SHAPES.get(node.op_type)
    if shaping is None and node.domain == NHWC:
        return []
    try:
        if node.op_type in _SAME and inputs and inputs[0] is not None:
            return [Value(inputs[0].elem, inputs[0].dims)] * len(node.output)
        if shaping is not None and (node.domain or node.op_type in _AS_STANDARD or node.op_type in _ALSO_STANDARD):
            return shaping(call)
        return []
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        return [Value(why=f"its inputs do not tell its shape: {error}") for _ in node.output]


def _windowed(call: Call) -> list[Value]:
    """Through onnx's inference of the operator it is made of, channels brought to the front and back again."""
    names = ("x", "w") if call.node.op_type.startswith("QLinearConv") else ("X", "W")
    x = call.named.get(names[0]) or call.inputs[0]
    assert x is not None
    if x.dims is None:
        raise LookupError("the shape of its input is not known")
    dims = (*x.dims[:1], x.dims[-1], *x.dims[1:-1]) if call.channels_last else x.dims
    kind = _AS_STANDARD[call.node.op_type]
    given = [("x", dims)]
    if kind.startswith("Conv"):
        given.append(("w", call.dims(names[1])))
    told = {name: value for name, value in call.options.items() if name in _WINDOW}
    node = onnx.helper.make_node(kind, [name for name, _ in given], ["y"], **told)
    types = {name: onnx.helper.make_tensor_type_proto(_FLOAT, sizes) for name, sizes in given}
    found = onnx.shape_inference.infer_node_outputs(onnx.defs.get_schema(kind), node, types)
    made = tuple(dim.dim_value for dim in found["y"].tensor_type.shape.dim)
    return [Value(x.elem, (*made[:1], *made[2:], made[1]) if call.channels_last else made)]


_WINDOW = words(
    "auto_pad dilations group kernel_shape pads strides ceil_mode count_include_pad output_padding output_shape"
)


def _product(call: Call) -> list[Value]:
    """A·B with leading axes broadcast, either transposed."""
    a, b = list(call.dims("A")), list(call.dims("B"))
    for sides, name in ((a, "A"), (b, "B")):
        if call.options.get(f"transBatch{name}"):
            sides[:-1] = [*sides[1:-1], sides[0]]
        if call.options.get(f"trans{name}") and len(sides) > 1:
            sides[-2:] = sides[:-3:-1]
    outer = _broadcast(tuple(a[:-2]), tuple(b[:-2]))
    rows = a[-2:-1] if len(a) > 1 else []
    columns = b[-1:] if len(b) > 1 else []
    return [Value(_result(call), (*outer, *rows, *columns))]


def _broadcast(a: Dims, b: Dims) -> Dims:
    width = max(len(a), len(b))
    pairs = zip((1,) * (width - len(a)) + a, (1,) * (width - len(b)) + b, strict=True)
    return tuple(y if x == 1 else x for x, y in pairs)


def _result(call: Call) -> int:
    match call.node.op_type:
        case "MatMulInteger16":
            return _INT32
        case "QGemm":
            return call.elem("y_zero_point") if call.known("y_zero_point") else _FLOAT
        case "MatMulIntegerToFloat" | "DynamicQuantizeMatMul":
            return call.elem("b_scale")
    return call.elem("A")


def _packed_product(call: Call) -> list[Value]:
    width = call.options["N"] if "N" in call.options else call.named["B_shape"].data[-1]  # type: ignore[union-attr]
    return [Value(call.elem("A"), (*call.dims("A")[:-1], int(width)))]


def _pair(call: Call) -> list[Value]:
    names = ("X", "Y") if call.node.op_type == "QLinearWhere" else ("A", "B")
    a, b = call.dims(names[0]), call.dims(names[1])
    elem = _INT32 if call.node.op_type == "MulInteger" else call.elem(names[0])
    return [Value(elem, _broadcast(a, b))]


def _pooled(call: Call) -> list[Value]:
    dims = call.dims("X")
    spatial = len(dims) - 2
    made = (dims[0], *(1,) * spatial, dims[-1]) if call.channels_last else (*dims[:2], *(1,) * spatial)
    return [Value(call.elem("X"), made)]


def _reduced(call: Call) -> list[Value]:
    dims = call.dims("data")
    axes = {axis % len(dims) for axis in call.options.get("axes", range(len(dims)))}
    keep = call.options.get("keepdims", 1)
    made = tuple(1 if at in axes else size for at, size in enumerate(dims) if keep or at not in axes)
    return [Value(_INT32 if call.node.op_type == "ReduceSumInteger" else call.elem("data"), made)]


def _joined(call: Call) -> list[Value]:
    parts = [value for value in call.inputs[2::3] if value is not None]
    dims = [value.dims for value in parts if value.dims is not None]
    if not parts or len(dims) < len(parts):
        raise LookupError("the shape of an input is not known")
    axis = call.options["axis"] % len(dims[0])
    lengths = [each[axis] for each in dims]
    whole = None if None in lengths else sum(size for size in lengths if size is not None)
    return [Value(parts[0].elem, (*dims[0][:axis], whole, *dims[0][axis + 1 :]))]


def _attended(call: Call) -> list[Value]:
    """Attention with the products of q, k and v inside."""
    rows, length, _ = call.dims("input")
    weight = call.dims("weights" if call.known("weights") else "weight")
    sizes = call.options.get("qkv_hidden_sizes")
    if weight[-1] is None:
        raise LookupError("the width of the weight is not known")
    width = sizes[2] if sizes else weight[-1] // 3
    heads = call.options["num_heads"]
    elem = call.elem("input") if call.node.op_type == "Attention" else call.elem("bias")
    past = call.dims("past")[3] if call.known("past") else 0
    total = None if length is None or past is None else length + past
    return [Value(elem, (rows, length, width)), Value(elem, (2, rows, heads, total, width // heads))]


def _multi_headed(call: Call) -> list[Value]:
    query = call.dims("query")
    heads = call.options["num_heads"]
    elem = call.elem("query")
    if len(query) == 5:  # q, k and v packed: (batch, length, heads, 3, width)
        rows, length, _, _, width = query
        return [Value(elem, (rows, length, heads * (width or 0))), *[Value(elem)] * 3]
    rows, length, hidden = query
    value = call.named.get("value")
    wide, kv, width = hidden, length, (hidden or 0) // heads
    if value is not None and value.dims is not None:
        kv = value.dims[-2]
        wide = value.dims[-1] if len(value.dims) == 3 else heads * (value.dims[-1] or 0)
        width = (wide or 0) // heads
    past = call.dims("past_key")[2] if call.known("past_key") else 0
    total = None if kv is None or past is None else kv + past
    present = Value(elem, (rows, heads, total, width))
    return [Value(elem, (rows, length, wide)), present, present, Value(elem, (rows, heads, length, total))]


def _grouped(call: Call) -> list[Value]:
    """GroupQueryAttention: q, or q, k and v packed beside each other; the cache may be longer than what it holds."""
    rows, length, hidden = call.dims("query")
    heads, shared = call.options["num_heads"], call.options["kv_num_heads"]
    packed = not call.known("key")
    width = (hidden or 0) // (heads + 2 * shared if packed else heads)
    total = call.named.get("total_sequence_length")
    past = call.dims("past_key")[2] if call.known("past_key") else 0
    most = None if length is None or past is None else length + past
    if total is not None and total.data is not None:
        most = max(int(total.data.reshape(-1)[0]), past or 0)
    elem = call.elem("query")
    present = Value(elem, (rows, shared, most, width))
    return [Value(elem, (rows, length, heads * width)), present, present]


def _embedded(call: Call) -> list[Value]:
    rows, length = call.dims("input_ids")
    quantised = call.node.op_type.startswith("Q")
    table = call.dims("word_embedding_quant" if quantised else "word_embedding")
    elem = call.elem("gamma_scale") if quantised else call.elem("word_embedding")
    whole = Value(elem, (rows, length, table[-1]))
    return [whole, Value(_INT32, (rows,)), whole]


def _gathered(call: Call) -> list[Value]:
    data, indices = list(call.dims("data")), call.dims("indices")
    axis = call.options.get("gather_axis", 0) % len(data)
    if call.elem("data") == _UINT8 and (last := data[-1]) is not None:  # several values in each byte
        data[-1] = last * 8 // call.options.get("bits", 4)
    return [Value(call.elem("scales"), (*data[:axis], *indices, *data[axis + 1 :]))]


def _half(call: Call) -> list[Value]:
    dims = call.dims("X")
    return [Value(call.elem("X"), (*dims[:-1], None if dims[-1] is None else dims[-1] // 2))]


def _linear(call: Call) -> list[Value]:
    return [Value(call.elem("X"), (*call.dims("X")[:-1], call.dims("W")[-1]))]


def _distances(call: Call) -> list[Value]:
    return [Value(call.elem("A"), (call.dims("A")[0], call.dims("B")[0]))]


def _recurrent(call: Call) -> list[Value]:
    steps, rows, _ = call.dims("X")
    hidden, ways = call.options["hidden_size"], call.dims("W")[0]
    last = Value(_FLOAT, (ways, rows, hidden))
    return [Value(_FLOAT, (steps, ways, rows, hidden)), last, last]


def _reordered(call: Call) -> list[Value]:
    """Out of the blocked layout, where channels are filled up to whole blocks."""
    dims, channels = call.dims("X"), call.options["channels"]
    last = call.options.get("channels_last", 0)
    made = (dims[0], *dims[2:], channels) if last else (dims[0], channels, *dims[2:])
    return [Value(call.elem("X"), made)]


def _scaled_up(call: Call) -> list[Value]:
    sizes = zip(call.dims("X"), call.options["scales"], strict=True)
    return [Value(call.elem("X"), tuple(None if n is None else math.floor(n * by) for n, by in sizes))]


def _cast(call: Call) -> list[Value]:
    to = call.elem("x_scale") if call.node.op_type == "DequantizeLinear" else call.elem("y_zero_point")
    to = to if call.node.op_type == "DequantizeLinear" or call.known("y_zero_point") else _UINT8
    return [Value(to, call.dims("x"))]


def _looked_up(call: Call) -> list[Value]:
    return [Value(call.elem("weight"), (*call.dims("indices"), *call.dims("weight")[1:]))]


def _tokens(call: Call) -> list[Value]:
    """Words of each text; how many the longest has is data."""
    return [Value(_TEXT, (*call.dims("X"), None), why="how many words a text has depends on data")]


def _normalised(call: Call) -> list[Value]:
    """Texts without stop words, of which some may vanish."""
    x = call.inputs[0] or Value()
    if "stopwords" not in call.options:
        return [Value(_TEXT, x.dims, why=x.why)]
    return [
        Value(_TEXT, None if x.dims is None else (*x.dims[:-1], None), why="which words are dropped depends on data")
    ]


def _vectors(call: Call) -> list[Value]:
    """A column for each entry of the vocabulary, however many words there are."""
    x, columns = call.inputs[0] or Value(), max(call.options["ngram_indexes"]) + 1
    if x.dims is None:
        raise LookupError("how many texts there are is not known")
    return [Value(_FLOAT, (x.dims[0], columns) if len(x.dims) > 1 else (columns,))]


def _as_named(call: Call) -> list[Value]:
    """As the operator of the same name that onnx knows."""
    node = onnx.helper.make_node(call.node.op_type, call.node.input, call.node.output, **call.options)
    given = {name: value for name, value in zip(node.input, call.inputs, strict=True) if value is not None}
    types = {name: type_of(value) for name, value in given.items()}
    data = {n: onnx.numpy_helper.from_array(v.data, n) for n, v in given.items() if v.data is not None}
    found = onnx.shape_inference.infer_node_outputs(onnx.defs.get_schema(node.op_type), node, types, data)
    return [of_type(found[name]) for name in node.output]


def _position_bias(call: Call) -> list[Value]:
    lengths = [call.named[name] for name in ("query_length", "key_length")]
    sizes = [None if value is None or value.data is None else int(value.data.reshape(-1)[0]) for value in lengths]
    return [Value(call.elem("bias_table"), (1, call.dims("bias_table")[1], *sizes))]


def _packed_attention(call: Call) -> list[Value]:
    width = call.dims("weights")[-1]
    sizes = call.options.get("qkv_hidden_sizes") or [None, None, None if width is None else width // 3]
    return [Value(call.elem("input"), (call.dims("input")[0], sizes[2]))]


def _hashed(call: Call) -> list[Value]:
    return [Value(_INT32, call.dims("X"))]


SHAPES: dict[str, Shaping] = {
    **dict.fromkeys(_AS_STANDARD, _windowed),
    **dict.fromkeys(
        words(
            "FusedGemm FusedMatMul FusedMatMulActivation TransposeMatMul QGemm MatMulIntegerToFloat MatMulInteger16 "
            "DynamicQuantizeMatMul GemmFloat8 SparseToDenseMatMul"
        ),
        _product,
    ),
    **dict.fromkeys(("MatMulNBits", "MatMulBnb4", "MatMulFpQ4"), _packed_product),
    **dict.fromkeys(("QLinearAdd", "QLinearMul", "QLinearWhere", "MulInteger"), _pair),
    **dict.fromkeys(("QLinearGlobalAveragePool", "GlobalAveragePool", "GlobalMaxPool"), _pooled),
    **dict.fromkeys(("QLinearReduceMean", "ReduceSumInteger"), _reduced),
    **dict.fromkeys(("Attention", "QAttention"), _attended),
    **dict.fromkeys(("MultiHeadAttention", "DecoderMaskedMultiHeadAttention"), _multi_headed),
    **dict.fromkeys(("EmbedLayerNormalization", "QEmbedLayerNormalization"), _embedded),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), _cast),
    **dict.fromkeys(("GatherND", "Pad", "Range"), _as_named),
    "IsAllFinite": lambda call: [Value(_BOOL, (1,))], "RelativePositionBias": _position_bias,
    "PackedAttention": _packed_attention, "MurmurHash3": _hashed,
    "QLinearConcat": _joined, "GroupQueryAttention": _grouped, "GatherBlockQuantized": _gathered,
    "BiasSplitGelu": _half, "GemmFastGelu": _linear, "CDist": _distances, "DynamicQuantizeLSTM": _recurrent,
    "ReorderOutput": _reordered, "Upsample": _scaled_up, "TorchEmbedding": _looked_up, "Tokenizer": _tokens,
    "StringNormalizer": _normalised, "TfIdfVectorizer": _vectors,
}  # fmt: skip
