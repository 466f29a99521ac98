"""How much an operator rounds, in unit roundoffs of the computing precision."""

from harness.corpus.nodes import operators

EXACT = operators("""
    Abs And ArgMax ArgMin ArrayFeatureExtractor Binarizer BitCast Cast CastLike CastMap
    CategoryMapper Ceil CenterCropPad Clip Compress Concat ConcatFromSequence Constant ConstantOfShape
    DepthToSpace DictVectorizer Dropout DynamicQuantizeLinear Equal Expand EyeLike FeatureVectorizer
    Flatten Floor Gather GatherElements GatherND GlobalMaxPool Greater GreaterOrEqual Hardmax Identity
    If Imputer IsInf IsNaN LabelEncoder Less LessOrEqual Loop Max MaxPool MaxRoiPool MaxUnpool Min Neg
    NonMaxSuppression NonZero Not OneHot OneHotEncoder Optional OptionalGetElement OptionalHasElement Or
    Pad QuantizeLinear ReduceMax ReduceMin Relu Reshape ReverseSequence Round Scan Scatter SequenceAt
    SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap Shape Shrink
    Sign Size Slice SpaceToDepth Split SplitToSequence Squeeze TensorScatter ThresholdedRelu Tile TopK
    Transpose Trilu Unique Unsqueeze Where Xor ZipMap
""")
"""Operators that copy, choose or count: their result is right to the last bit, or wrong."""

DISCONTINUOUS = operators("""
    ArgMax ArgMin Binarizer Ceil DynamicQuantizeLinear Equal Floor Greater GreaterOrEqual Hardmax
    LabelEncoder Less LessOrEqual LinearClassifier MaxUnpool Mod NonMaxSuppression NonZero OneHot
    OneHotEncoder QLinearConv QLinearMatMul QuantizeLinear Range Round SVMClassifier Shrink Sign
    ThresholdedRelu TopK TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor Unique
""")
"""Operators whose result jumps: the least noise in their float inputs may change it completely.

``Cast`` to anything but a float also belongs to them.
"""

QUANTIZING = frozenset({"DynamicQuantizeLinear", "QuantizeLinear"})
"""Operators that divide by a scale before they round to integers."""

INSIDE = operators("""
    Acos Acosh Asin Asinh Atan Atanh Attention BiasGelu CausalConvWithState Cosh Erf Exp FastGelu
    FlexAttention GRU Gelu GroupNormalization GroupQueryAttention InstanceNormalization LSTM
    LayerNormalization LinearAttention Log LogSoftmax LpNormalization
    MeanVarianceNormalization Mish MultiHeadAttention Pow QuickGelu RMSNormalization RNN Resize
    RotaryEmbedding Sigmoid SimplifiedLayerNormalization Sinh SkipLayerNormalization
    SkipSimplifiedLayerNormalization Softmax Softplus Swish Tanh
""")
"""Operators that round inside, depending on the values of their operand.

The circular functions do not: processors reduce an argument of any size to the last bit. For numbers up to
100,000, onnxruntime's Sin and Cos are at most 1.5 unit roundoffs off, OpenVINO's 0.5.
"""

CIRCULAR = frozenset({"Cos", "Sin", "Tan"})
"""Operators for which the last bit of a large angle matters more than that of a small one."""

COPIES = operators("""
    Concat Expand Flatten Gather Identity Neg Reshape Slice Split Squeeze Tile Transpose Unsqueeze
""")
"""Operators that pass angles on."""

EVEN = operators("""
    Asin Atan Attention BatchNormalization BlackmanWindow CausalConvWithState Cos DFT FlexAttention GridSample
    GroupNormalization GroupQueryAttention HammingWindow HannWindow InstanceNormalization LayerNormalization
    LinearAttention LpNormalization MeanVarianceNormalization MultiHeadAttention RMSNormalization Resize
    RoiAlign RotaryEmbedding STFT Sin SkipLayerNormalization Tan Upsample
""")
"""Operators whose results are differences of larger numbers, or come from a polynomial.

A small element is about as uncertain as a large one. BatchNormalization is usually computed as a product plus
an offset, both of which may be larger than their sum.
"""

COMPOSED = operators("""
    Attention CausalConvWithState FlexAttention GRU GroupQueryAttention LSTM LinearAttention
    MultiHeadAttention RNN
""")
"""Operators of several products and functions, each of which an implementation may round by itself."""

STEPWISE = operators("""
    BatchNormalization BiasGelu FastGelu Gelu GroupNormalization HardSwish InstanceNormalization
    LayerNormalization LogSoftmax LpNormalization MeanVarianceNormalization Mish QuickGelu RMSNormalization
    SimplifiedLayerNormalization SkipLayerNormalization SkipSimplifiedLayerNormalization Softmax Swish
""")
"""Normalizations and activations of several steps, each of which a coarse implementation may round.

The normalized value is rounded before an offset is added, which may cancel it; HardSwish multiplies by a
rounded factor.
"""

TRANSFORMS = frozenset({"DFT", "STFT"})
"""Operators that multiply sines and cosines by their input: the error of these is proportional to it."""

SUMS = frozenset({"Mean", "Sum"})
"""Operators whose operands are all terms of a sum: noise on one of them would not show how large the
others are."""

COPIED = {
    "Attention": frozenset({1, 2}),
    "GroupQueryAttention": frozenset({2}),
}
"""Operators of ONNX's own domain or of contributors -> results that are copies of their inputs."""

OFFSETS = {"Conv": 2, "ConvTranspose": 2, "FusedConv": 2, "FusedGemm": 2, "Gemm": 2}
"""Operators -> input that is added to their products, which partial sums may begin with."""

OF_ONE = operators("""
    Acos Acosh Asinh Atanh BiasGelu Celu Elu Erf FastGelu GRU Gelu LSTM LogSoftmax Mish QuickGelu RNN
    ReduceLogSum ReduceLogSumExp Selu Sigmoid Sinh Softplus Swish Tanh
""")
"""Operators whose result derives from a number near 1, and so has its error, however small the results are.

The CPU EP computes ``sigmoid(x)`` as 0.5 and a quotient of polynomials. Shaders and vector libraries compute
``erf(x)`` as 1 less a polynomial times ``exp(-x^2)``, ``tanh(x)`` as 1 less ``2 / (exp(2x) + 1)``, and
``elu(x)`` as ``exp(x)`` less 1. A logarithm of a number near 1 has the relative error of that number: inverse
hyperbolic functions, Softplus and logarithms of sums end with one.
"""

BY_BLOCKS = "MatMulNBits"
"""onnxruntime's product with weights of a few bits: with ``accuracy_level`` 4 it rounds the other factor
to int8.

onnxruntime also forms it from a DequantizeLinear and an operator that multiplies by its result.
"""

MULTIPLIES_BY_WEIGHTS = frozenset({"Gemm", "MatMul"})
"""Operators that onnxruntime may turn into ``BY_BLOCKS``."""

CLOSED = operators("""
    Abs Add Ceil Clip Concat Expand Floor Gather Identity Max Min Mul Neg Reshape Round Sign Slice
    Squeeze Sub Tile Transpose Unsqueeze Where
""")
"""Operators that compute whole numbers from whole numbers, exactly if these are small."""

# fmt: off
CONTROL_INPUTS: dict[str, frozenset[int]] = {
    "CenterCropPad": frozenset({1}), "Col2Im": frozenset({1, 2}), "ConstantOfShape": frozenset({0}),
    "CumSum": frozenset({1}), "DFT": frozenset({1, 2}), "Expand": frozenset({1}), "GRU": frozenset({4}),
    "LSTM": frozenset({4}), "Loop": frozenset({0}), "NonMaxSuppression": frozenset({2, 3, 4}),
    "OneHot": frozenset({1}), "Pad": frozenset({1, 3}), "RNN": frozenset({4}), "Range": frozenset({0, 1, 2}),
    "ReduceSum": frozenset({1}), "Reshape": frozenset({1}), "Resize": frozenset({1, 2, 3}),
    "ReverseSequence": frozenset({1}), "STFT": frozenset({1, 3}), "Slice": frozenset({1, 2, 3, 4}),
    "Split": frozenset({1}), "Squeeze": frozenset({1}), "Tile": frozenset({1}), "TopK": frozenset({1}),
    "Unsqueeze": frozenset({1}), "Upsample": frozenset({1}),
}
"""Inputs that set the size of a result, or where to cut: they and their sources stay exact."""

UNITS: dict[str, float] = {
    "Acos": 2, "Acosh": 2, "Asin": 2, "Asinh": 2, "Atan": 2.5, "Atanh": 2.5, "BiasGelu": 4, "Celu": 2,
    "Cos": 2, "Cosh": 2, "DFT": 16, "Div": 1.25, "Elu": 2, "Erf": 4, "Exp": 1.5, "FastGelu": 4, "GRU": 4,
    "Gelu": 4, "GridSample": 4, "LSTM": 4, "Log": 1.5, "LogSoftmax": 2, "Mish": 4, "Pow": 4,
    "QuickGelu": 4, "RNN": 4, "Reciprocal": 1.25, "ReduceLogSumExp": 1.5, "Resize": 4, "RoiAlign": 4,
    "STFT": 16, "Selu": 2, "Sigmoid": 2.5, "Sin": 2, "Sinh": 2, "Softmax": 2, "Softplus": 2.5,
    "Swish": 2.5, "Tan": 2.5, "Tanh": 2.5, "Upsample": 4,
}
# fmt: on
"""Half-width of an operator's own error in unit roundoffs, where it is not 1.

Functions get half of the units in the last place that the OpenCL C specification allows (relative error of
single-precision built-in functions, full profile): 3 for exp and log, 4 to 5 for the circular and hyperbolic
functions, 2.5 for a quotient. erf and pow, which are allowed 16, get a quarter. One unit in the last place is
up to two unit roundoffs. Healthy implementations err by less; an implementation that used all of it would
still be within the limits. Softmax is an exponential and a quotient. Interpolating operators (Resize,
GridSample, RoiAlign) also round their coordinates, and recurrent ones use several functions in each step.
Transforms multiply by sines of angles of several turns, of which float32 rounds each.
"""
