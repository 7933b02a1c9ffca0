"""What the inputs of ONNX Runtime's own operators are called, by the runtime's schemas, which onnx does not have.

A test holds them against an installed runtime.
"""

from __future__ import annotations

_QUANTISED_UNARY = "X X_scale X_zero_point Y_scale Y_zero_point"
_QUANTISED_POOL = "X x_scale x_zero_point y_scale y_zero_point"
_QUANTISED_PAIR = "A A_scale A_zero_point B B_scale B_zero_point C_scale C_zero_point"
_RECURRENT = "X W R B sequence_lens initial_h initial_c P"
_NORM = "input skip gamma beta bias"

#: Names of the inputs in order; one that ends with * takes all that are left.
INPUTS: dict[str, tuple[str, ...]] = {
    name: tuple(text.split())
    for name, text in {
        "Attention": "input weights bias mask_index past attention_bias past_sequence_length",
        "BiasAdd": "X bias skip", "BiasDropout": "data bias residual ratio training_mode", "BiasGelu": "A B",
        "BiasSoftmax": "data bias", "BiasSplitGelu": "X bias", "CDist": "A B", "ComplexMul": "A B",
        "ComplexMulConj": "A B", "ConvTransposeWithDynamicPads": "X W Pads B",
        "DecoderMaskedMultiHeadAttention": "query key value mask_index attention_bias past_key past_value "
        "past_sequence_length beam_width cache_indirection bias",
        "DequantizeLinear": "x x_scale x_zero_point",
        "DynamicQuantizeLSTM": f"{_RECURRENT} W_scale W_zero_point R_scale R_zero_point",
        "DynamicQuantizeMatMul": "A B b_scale b_zero_point bias",
        "EmbedLayerNormalization": "input_ids segment_ids word_embedding position_embedding segment_embedding gamma "
        "beta mask position_ids", "FastGelu": "X bias", "FusedConv": "X W B Z", "FusedGemm": "A B C",
        "FusedMatMul": "A B", "FusedMatMulActivation": "A B", "GatedAdd": "X Y gate",
        "GatherBlockQuantized": "data indices scales zero_points", "GatherND": "data indices", "Gelu": "X",
        "GemmFastGelu": "X W bias", "GemmFloat8": "A B C scaleA scaleB scaleY",
        "GroupNorm": "X gamma beta",
        "GroupQueryAttention": "query key value past_key past_value seqlens_k total_sequence_length cos_cache "
        "sin_cache position_ids attention_bias head_sink k_scale v_scale q_norm_weight k_norm_weight",
        "IsAllFinite": "input*", "LayerNormalization": "X Scale B",
        "MatMulBnb4": "A B absmax", "MatMulFpQ4": "A B B_shape", "MatMulInteger16": "A B",
        "MatMulIntegerToFloat": "A B a_scale b_scale a_zero_point b_zero_point bias",
        "MatMulNBits": "A B scales zero_points g_idx bias",
        "MoE": "input router_probs fc1_experts_weights fc1_experts_bias fc2_experts_weights fc2_experts_bias "
        "fc3_experts_weights fc3_experts_bias",
        "MulInteger": "A A_zero_point B B_zero_point",
        "MultiHeadAttention": "query key value bias key_padding_mask attention_bias past_key past_value "
        "past_sequence_length cache_indirection",
        "MurmurHash3": "X", "NGramRepeatBlock": "input_ids scores", "NhwcConv": "X W B", "NhwcFusedConv": "X W B Z",
        "NhwcMaxPool": "x", "PackedAttention": "input weights bias token_offset cumulative_sequence_length "
        "attention_bias", "Pad": "data pads value",
        "QAttention": "input weight bias input_scale weight_scale mask_index input_zero_point weight_zero_point past",
        "QEmbedLayerNormalization": "input_ids segment_ids word_embedding_quant position_embedding_quant "
        "segment_embedding gamma_quant beta_quant mask word_embedding_scale position_embedding_scale "
        "segment_embedding_scale gamma_scale beta_scale word_embedding_zero_point position_embedding_zero_point "
        "segment_embedding_zero_point gamma_zero_point beta_zero_point",
        "QGemm": "A a_scale a_zero_point B b_scale b_zero_point C y_scale y_zero_point",
        "QLinearAdd": _QUANTISED_PAIR, "QLinearMul": _QUANTISED_PAIR, "QLinearAveragePool": _QUANTISED_POOL,
        "QLinearConcat": "Y_scale Y_zero_point inputs*",
        "QLinearConv": "x x_scale x_zero_point w w_scale w_zero_point y_scale y_zero_point B",
        "QLinearConvTranspose": "x x_scale x_zero_point w w_scale w_zero_point y_scale y_zero_point B",
        "QLinearGlobalAveragePool": _QUANTISED_POOL, "QLinearLeakyRelu": _QUANTISED_UNARY,
        "QLinearReduceMean": "data data_scale data_zero_point reduced_scale reduced_zero_point",
        "QLinearSigmoid": _QUANTISED_UNARY, "QLinearSoftmax": "X X_scale x_zero_point y_scale y_zero_point",
        "QLinearWhere": "condition X x_scale x_zero_point Y y_scale y_zero_point z_scale z_zero_point",
        "QMoE": "input router_probs fc1_experts_weights fc1_scales fc1_experts_bias fc2_experts_weights fc2_scales "
        "fc2_experts_bias fc3_experts_weights fc3_scales fc3_experts_bias",
        "QuantizeLinear": "x y_scale y_zero_point", "QuickGelu": "X", "Range": "start limit delta",
        "ReduceSumInteger": "data", "RelativePositionBias": "bias_table query_length key_length",
        "RotaryEmbedding": "input position_ids cos_cache sin_cache", "ScaledSiLU": "X scale",
        "SimplifiedLayerNormalization": "X scale", "SkipGroupNorm": "X gamma beta skip bias",
        "SkipLayerNormalization": _NORM, "SkipSimplifiedLayerNormalization": "input skip gamma bias",
        "SparseToDenseMatMul": "A B", "Tokenizer": "X", "TorchEmbedding": "weight indices padding_idx "
        "scale_grad_by_freq", "TransposeMatMul": "A B", "Trilu": "X k",
        "ReorderInput": "X", "ReorderOutput": "X", "Upsample": "X",
        "Conv": "X W B Sum", "MaxPool": "X", "AveragePool": "X", "GlobalAveragePool": "X", "GlobalMaxPool": "X",
        "Affine": "X", "ImageScaler": "input", "ParametricSoftplus": "X", "ScaledTanh": "input", "Scale": "input",
    }.items()
}  # fmt: skip
