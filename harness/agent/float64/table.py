"""The operators of our own: what ``onnx.reference`` computes wrongly or not at all, and what it is too slow for.

In tests each of them is held against ``onnx.reference`` where that is right, the CPU provider's kernel for
doubles, or a slow formula after the operator's text.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.float64.ops import (
    activations,
    attention,
    attention_contrib,
    classic,
    conv,
    experts,
    grid,
    matmul,
    norms,
    pool,
    quantize,
    recurrent,
    resize,
    sequences,
)

_ONNX: dict[str, Any] = {
    "AffineGrid": grid.affine_grid,
    "Attention": attention.attention,
    "AveragePool": pool.average_pool,
    "BatchNormalization": norms.batch_normalization,
    "Conv": conv.conv,
    "ConvInteger": conv.conv_integer,
    "ConvTranspose": conv.conv_transpose,
    "DequantizeLinear": quantize.dequantize_linear,
    "DynamicQuantizeLinear": quantize.dynamic_quantize_linear,
    "Erf": activations.erf_of,
    "GRU": recurrent.gru,
    "Gelu": activations.gelu,
    "Gemm": matmul.gemm,
    "GlobalAveragePool": pool.global_average_pool,
    "GlobalLpPool": pool.global_lp_pool,
    "GlobalMaxPool": pool.global_max_pool,
    "GridSample": grid.grid_sample,
    "GroupNormalization": norms.group_normalization,
    "Hardmax": activations.hardmax,
    "InstanceNormalization": norms.instance_normalization,
    "LRN": norms.lrn,
    "LSTM": recurrent.lstm,
    "LayerNormalization": norms.layer_normalization,
    "LogSoftmax": activations.log_softmax,
    "LpNormalization": norms.lp_normalization,
    "LpPool": pool.lp_pool,
    "MatMul": matmul.matmul,
    "MatMulInteger": matmul.matmul_integer,
    "MaxPool": pool.max_pool,
    "MaxUnpool": pool.max_unpool,
    "MeanVarianceNormalization": norms.mean_variance_normalization,
    "Optional": sequences.optional,
    "OptionalGetElement": sequences.optional_get_element,
    "OptionalHasElement": sequences.optional_has_element,
    "QLinearConv": matmul.qlinear_conv,
    "QLinearMatMul": matmul.qlinear_matmul,
    "QuantizeLinear": quantize.quantize_linear,
    "RMSNormalization": norms.rms_normalization,
    "RNN": recurrent.rnn,
    "Resize": resize.resize,
    "RotaryEmbedding": attention.rotary_embedding,
    "ConcatFromSequence": sequences.concat_from_sequence,
    "SequenceAt": sequences.at,
    "SequenceConstruct": sequences.construct,
    "SequenceEmpty": sequences.empty,
    "SequenceErase": sequences.erase,
    "SequenceInsert": sequences.insert,
    "SequenceLength": sequences.length,
    "SimplifiedLayerNormalization": norms.rms_normalization,
    "Softmax": activations.softmax,
    "SplitToSequence": sequences.split,
    "Upsample": resize.upsample,
}

_CONTRIB: dict[str, Any] = {
    "Attention": attention_contrib.attention,
    "BiasAdd": activations.bias_add,
    "BiasGelu": activations.bias_gelu,
    "BiasSoftmax": activations.bias_softmax,
    "BiasSplitGelu": activations.bias_split_gelu,
    "DequantizeLinear": quantize.dequantize_linear,
    "DynamicQuantizeMatMul": matmul.dynamic_quantize_matmul,
    "EmbedLayerNormalization": norms.embed_layer_normalization,
    "FastGelu": activations.fast_gelu,
    "FusedConv": conv.fused_conv,
    "FusedGemm": norms.fused_gemm,
    "FusedMatMul": matmul.fused_matmul,
    "GatherBlockQuantized": matmul.gather_block_quantized,
    "Gelu": activations.gelu,
    "GroupNorm": norms.contrib_group_norm,
    "GroupQueryAttention": attention_contrib.group_query_attention,
    "MatMulIntegerToFloat": matmul.matmul_integer_to_float,
    "MatMulNBits": matmul.matmul_nbits,
    "MoE": experts.moe,
    "MultiHeadAttention": attention_contrib.multi_head_attention,
    "NhwcFusedConv": conv.nhwc_fused_conv,
    "QGemm": matmul.qgemm,
    "QLinearAdd": quantize.binary(np.add),
    "QLinearAveragePool": quantize.pooled(pool.average_pool),
    "QLinearConcat": quantize.concat,
    "QLinearConv": matmul.qlinear_conv,
    "QLinearGlobalAveragePool": quantize.pooled(pool.global_average_pool),
    "QLinearLeakyRelu": quantize.unary(
        lambda node, x: np.where(x < 0, node.get("alpha", float(np.float32(0.01))) * x, x)
    ),
    "QLinearMul": quantize.binary(np.multiply),
    "QLinearSigmoid": quantize.unary(lambda _, x: 1.0 / (1.0 + np.exp(-x))),
    "QLinearSoftmax": quantize.softmax,
    "QLinearWhere": quantize.where,
    "QMoE": experts.qmoe,
    "QuantizeLinear": quantize.quantize_linear,
    "QuickGelu": activations.quick_gelu,
    "RotaryEmbedding": attention_contrib.rotary_embedding,
    "SkipLayerNormalization": norms.skip_layer_normalization,
    "SkipSimplifiedLayerNormalization": norms.skip_rms_normalization,
    "TransposeMatMul": matmul.fused_matmul,
}

_CLASSIC: dict[str, Any] = {
    "LinearClassifier": classic.linear_classifier,
    "LinearRegressor": classic.linear_regressor,
    "Normalizer": classic.normalizer,
    "Scaler": classic.scaler,
    "ZipMap": classic.zip_map,
}

OWN: dict[str, Any] = {
    **_ONNX,
    **{"com.microsoft." + name: function for name, function in _CONTRIB.items()},
    **{"ai.onnx.ml." + name: function for name, function in _CLASSIC.items()},
}
"""Operator, with its domain unless it is ONNX's own -> function of a node and its inputs."""
