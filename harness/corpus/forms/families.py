"""Which family makes the forms of which operator: one row for each family."""

from collections.abc import Callable

from harness.corpus.forms import (
    containers,
    elementwise,
    images,
    indexing,
    normalization,
    products,
    quantization,
    reduction,
    reshaping,
    sequences,
    windows,
)
from harness.corpus.forms.setting import Form, Setting

Family = Callable[[Setting], Form]

_ROWS: tuple[tuple[Family, str], ...] = (
    (
        elementwise.unary,
        """Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu
        HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu
        Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh ThresholdedRelu com.microsoft.Gelu
        com.microsoft.QuickGelu com.microsoft.FastGelu""",
    ),
    (elementwise.cast, "Cast CastLike"),
    (
        elementwise.binary,
        """Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual
        Mod Mul Or PRelu Pow Sub Xor com.microsoft.BiasGelu""",
    ),
    (elementwise.variadic, "Max Mean Min Sum"),
    (elementwise.where, "Where"),
    (elementwise.clip, "Clip"),
    (elementwise.dropout, "Dropout"),
    (
        containers.sequence,
        "ConcatFromSequence SequenceAt SequenceConstruct SequenceErase SequenceInsert SequenceLength",
    ),
    (containers.split_to_sequence, "SplitToSequence"),
    (containers.branches, "If"),
    (containers.loop, "Loop"),
    (products.four_bits, "com.microsoft.MatMulNBits"),
    (products.distances, "com.microsoft.CDist"),
    (indexing.cache_update, "TensorScatter"),
    (reshaping.expand_dims, "com.microsoft.ExpandDims"),
    (
        reduction.reduction,
        """ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
        ReduceSumSquare""",
    ),
    (reduction.arg, "ArgMax ArgMin"),
    (reduction.top_k, "TopK"),
    (reduction.along_axis, "Hardmax LogSoftmax LpNormalization Softmax"),
    (reduction.cumulative, "CumProd CumSum"),
    (reduction.mean_variance, "MeanVarianceNormalization"),
    (reshaping.plain, "NonZero Shape Size"),
    (reshaping.transpose, "Transpose"),
    (reshaping.flatten, "Flatten"),
    (reshaping.reshape, "Reshape"),
    (reshaping.squeeze, "Squeeze Unsqueeze"),
    (reshaping.expand, "Expand"),
    (reshaping.tile, "Tile"),
    (reshaping.concat, "Concat"),
    (reshaping.split, "Split"),
    (reshaping.cut, "Slice"),
    (reshaping.pad, "Pad"),
    (reshaping.blocks, "DepthToSpace SpaceToDepth"),
    (reshaping.eye, "EyeLike"),
    (reshaping.triangle, "Trilu com.microsoft.Trilu"),
    (reshaping.filled, "ConstantOfShape"),
    (reshaping.counting, "Range com.microsoft.Range"),
    (products.matmul, "MatMul"),
    (products.gemm, "Gemm com.microsoft.FusedGemm"),
    (products.fused_matmul, "com.microsoft.FusedMatMul com.microsoft.TransposeMatMul"),
    (products.integer_matmul, "MatMulInteger com.microsoft.MatMulInteger16"),
    (products.determinant, "Det com.microsoft.Inverse"),
    (products.einsum, "Einsum"),
    (windows.convolution, "Conv com.microsoft.FusedConv"),
    (windows.transposed, "ConvTranspose"),
    (windows.integer_convolution, "ConvInteger"),
    (windows.pool, "AveragePool LpPool MaxPool"),
    (windows.whole_pool, "GlobalAveragePool GlobalLpPool GlobalMaxPool"),
    (windows.local_response, "LRN"),
    (normalization.batch, "BatchNormalization"),
    (normalization.instance, "InstanceNormalization"),
    (normalization.group, "GroupNormalization"),
    (normalization.layer, "LayerNormalization RMSNormalization"),
    (
        normalization.skip,
        "com.microsoft.SkipLayerNormalization com.microsoft.SkipSimplifiedLayerNormalization",
    ),
    (indexing.gather, "Gather"),
    (indexing.gather_elements, "GatherElements"),
    (indexing.gather_nd, "GatherND com.microsoft.GatherND"),
    (indexing.scatter_elements, "Scatter ScatterElements"),
    (indexing.scatter_nd, "ScatterND"),
    (indexing.one_hot, "OneHot"),
    (indexing.compress, "Compress"),
    (indexing.unique, "Unique com.microsoft.Unique"),
    (indexing.reverse_sequence, "ReverseSequence"),
    (indexing.suppression, "NonMaxSuppression"),
    (
        quantization.linear,
        "DequantizeLinear QuantizeLinear com.microsoft.DequantizeLinear com.microsoft.QuantizeLinear",
    ),
    (quantization.dynamic, "DynamicQuantizeLinear"),
    (quantization.quantized_matmul, "QLinearMatMul"),
    (quantization.quantized_convolution, "QLinearConv"),
    (quantization.quantized_binary, "com.microsoft.QLinearAdd com.microsoft.QLinearMul"),
    (quantization.quantized_unary, "com.microsoft.QLinearLeakyRelu com.microsoft.QLinearSigmoid"),
    (images.resize, "Resize Upsample"),
    (images.grid_sample, "GridSample"),
    (images.affine_grid, "AffineGrid"),
    (images.regions, "RoiAlign"),
    (images.columns_to_image, "Col2Im"),
    (images.center_crop, "CenterCropPad"),
    (images.deformable, "DeformConv"),
    (sequences.recurrent, "GRU LSTM RNN"),
    (sequences.attention, "Attention"),
    (sequences.rotary, "RotaryEmbedding"),
    (sequences.heads, "com.microsoft.MultiHeadAttention"),
    (sequences.fourier, "DFT"),
    (sequences.window_function, "BlackmanWindow HammingWindow HannWindow"),
    (sequences.loss, "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss"),
    (indexing.rows, "ai.onnx.ml.ArrayFeatureExtractor"),
)

FAMILIES: dict[str, Family] = {name: family for family, names in _ROWS for name in names.split()}
"""Operator, with its domain unless that is ONNX's own -> its family."""
