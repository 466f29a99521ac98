"""The profiles: what each is for, which operators are its subject, which cases it keeps in any event."""

from collections.abc import Iterable

import msgspec

from benchmarks.profiles.finding import Finding
from harness.annex.conformance.profiles.profile import JOINT
from harness.core.records.scenario import SCENARIOS as HOW


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a profile is.

    Attributes:
        title: One line.
        about: What it is for.
        ops: The operators that it is about; a case has no others than these and ``AROUND``. Empty for all of
            ONNX's own domain.
        own: A case has at least one of these; empty for any.
        latest: The latest opset of a case.
        plain: Features that belong to the core of this profile.
        kept: Whole networks, ``(suite, model)``, that are taken first.
        by_fault: Whether faults choose its cases; ``api_cases`` chooses others.
    """

    title: str
    about: str
    ops: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    latest: int = 99
    plain: frozenset[str] = frozenset()
    kept: tuple[tuple[str, str], ...] = ()
    by_fault: bool = True


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


AROUND = _names("""
    Add Sub Mul Div Pow Sqrt Exp Reciprocal Neg Abs Max Min Where Cast Identity Constant Reshape
    Transpose Flatten Squeeze Unsqueeze Concat Split Slice Gather Expand Shape Equal Greater Less
    Not And Or ReduceMean ReduceSum ReduceMax Clip Sigmoid Tanh Relu Softmax MatMul Gemm
""")
"""Operators that models of every kind have around those that a profile is about."""

CNN = _names("""
    Conv ConvTranspose MaxPool AveragePool LpPool GlobalAveragePool GlobalMaxPool GlobalLpPool
    BatchNormalization InstanceNormalization GroupNormalization LRN Relu LeakyRelu PRelu Elu Selu
    Celu Sigmoid HardSigmoid HardSwish Mish Softplus Softsign ThresholdedRelu Clip Resize Upsample
    Pad DepthToSpace SpaceToDepth Flatten Gemm MatMul Softmax LogSoftmax Dropout GridSample RoiAlign
    DeformConv MaxUnpool Add Mul Concat ReduceMean ArgMax CenterCropPad
""")
TRANSFORMER = _names("""
    MatMul Gemm Einsum Softmax LogSoftmax LayerNormalization RMSNormalization Gelu Erf Tanh Relu
    Sigmoid Gather GatherElements GatherND ScatterND ScatterElements Attention RotaryEmbedding Add
    Mul Transpose Reshape Expand Where Cast CumSum Range Trilu ReduceMean Split Slice Concat OneHot
    Tile TopK
""")
QDQ = _names("""
    QuantizeLinear DequantizeLinear DynamicQuantizeLinear QLinearConv QLinearMatMul ConvInteger
    MatMulInteger
""")
LLM = _names("""
    Attention RotaryEmbedding RMSNormalization TensorScatter LayerNormalization Softmax Gelu Swish
    MatMul Gather Trilu CumSum com.microsoft.MatMulNBits com.microsoft.MultiHeadAttention
    com.microsoft.SkipLayerNormalization com.microsoft.SkipSimplifiedLayerNormalization
    com.microsoft.FastGelu com.microsoft.QuickGelu com.microsoft.BiasGelu
    com.microsoft.GroupQueryAttention com.microsoft.RotaryEmbedding
    com.microsoft.SimplifiedLayerNormalization com.microsoft.FusedMatMul com.microsoft.Gelu
""")
WEB = (
    _names("""
    ArgMax ArgMin Ceil Cos CumSum Erf Floor Gelu GatherElements GatherND GreaterOrEqual LessOrEqual Log
    LayerNormalization ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMin ReduceProd ReduceSumSquare
    ScatterElements ScatterND Sign Sin Tan Tile Trilu Xor Round Einsum Range
""")
    | (CNN - {"DeformConv", "MaxUnpool", "RoiAlign", "GlobalLpPool", "LpPool"})
    | AROUND
)

PLANS: dict[str, Plan] = {
    "core-opset21@1": Plan(
        title="ONNX's operators up to opset 21",
        about="Each operator of ONNX's own domain that models of opset 21 and before use, in each "
        "element type "
        "that it has: the widest profile, for providers that run any model.",
        latest=21,
    ),
    "cnn@1": Plan(
        title="Convolutional networks",
        about="Convolutions, pools, normalizations, activations and resizing, alone and in whole "
        "networks: for "
        "providers whose users run vision models.",
        ops=CNN,
        own=CNN - AROUND,
        kept=(("zoo", "mnist-small-op12"), ("zoo", "mobilenet-small-op17"), ("zoo", "unet-small-op17")),
    ),
    "transformer@1": Plan(
        title="Encoders and other transformers",
        about="Matrix products, attention, layer norms, embeddings and the moving of tensors around them.",
        ops=TRANSFORMER,
        own=TRANSFORMER,
    ),
    "qdq@1": Plan(
        title="Quantized models",
        about="QuantizeLinear and DequantizeLinear with scales for tensors, channels and blocks, the "
        "operators of "
        "integers, and whole networks in QDQ form.",
        ops=QDQ | CNN | TRANSFORMER,
        own=QDQ,
        plain=frozenset({"int8", "quantized"}),
        kept=(("zoo", "int8-cnn-small-op22"),),
    ),
    "llm-ops@1": Plan(
        title="Operators of language models",
        about="Attention with a cache, rotary positions, RMS norms and weights of four bits. ONNX's "
        "operators are "
        "the core; those of com.microsoft are a feature.",
        ops=LLM,
        own=LLM - AROUND,
    ),
    "web@1": Plan(
        title="Operators for browsers",
        about="Operators that WebGPU and WebNN back ends have, in models small enough to be downloaded.",
        ops=WEB,
        own=WEB,
        kept=(("zoo", "mnist-small-op12"), ("zoo", "efficientnet-small-op17")),
    ),
    "api@1": Plan(
        title="What applications do besides create and run",
        about="Few models in every scenario that a frozen case can play: each surface of onnxruntime's API "
        "is a feature of its own. The core is one small network, created and run.",
        by_fault=False,
    ),
}
"""Label -> plan, in the order of the page."""

BY_FAULT = {label: plan for label, plan in PLANS.items() if plan.by_fault}
"""The plans of profiles whose cases are chosen by the faults that they show."""

FEATURES: dict[str, str] = {
    "float16": "float16 tensors",
    "bfloat16": "bfloat16 tensors",
    "float64": "float64 tensors",
    "float8": "float8 tensors",
    "int8": "integers of 8 bits that are not quantized",
    "int16": "integers of 16 bits",
    "int4": "integers of 4 bits",
    "unsigned": "unsigned integers of 32 and 64 bits",
    "quantized": "quantized tensors, in QDQ form or by operators of integers",
    "strings": "strings",
    "sequences": "sequences and optional values",
    "control_flow": "If, Loop and Scan",
    "recurrent": "LSTM, GRU and RNN",
    "signal": "Fourier transforms and window functions",
    "losses": "loss functions",
    "data_dependent_shapes": "outputs whose shape depends on values",
    "shape_operators": "shapes as values, which providers may leave to the CPU",
    "contrib": "operators of com.microsoft",
    "large_rank": "tensors of more than four dimensions",
    "zero_size": "tensors without elements",
    "symbolic_shapes": "inputs with dimensions that the model leaves open",
    "special_values": "NaN and infinity in inputs or outputs",
    "dynamic_shapes": "one session runs several shapes",
    "io_binding": "inputs and outputs are bound",
    "ep_context": "a compiled model is written, and loaded by a fresh process",
}
"""Extended features with their meaning, in the order of pages."""

FEATURES |= {name: one.meaning for name, one in HOW.items() if name not in FEATURES}

SCENARIOS = {"dynamic_shapes": "symbolic_shapes", "io_binding": "", "ep_context": ""}
"""Features that are scenarios -> the feature of the cases that play it; empty for core cases."""

_BY_OPERATOR = {
    "control_flow": _names("If Loop Scan"),
    "recurrent": _names("LSTM GRU RNN"),
    "signal": _names("DFT STFT HannWindow HammingWindow BlackmanWindow MelWeightMatrix"),
    "losses": _names("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss"),
    "data_dependent_shapes": _names("NonZero Compress Unique NonMaxSuppression"),
    "shape_operators": _names("Size ConstantOfShape EyeLike Range"),
    "quantized": QDQ,
    "sequences": _names("""
        SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap
        SplitToSequence ConcatFromSequence Optional OptionalGetElement OptionalHasElement
    """),
}
_BY_TYPE = {
    "float16": "float16", "bfloat16": "bfloat16", "float64": "float64", "int8": "int8", "uint8": "int8",
    "int16": "int16", "uint16": "int16", "int4": "int4", "uint4": "int4", "uint32": "unsigned",
    "uint64": "unsigned", "string": "strings",
}  # fmt: skip
_MOST_RANK = 4

MOST_FEATURES = 3
"""Features of a case."""


def in_scope(finding: Finding, plan: Plan) -> bool:
    """Return whether a case is about a profile's operators."""
    ops = finding.ops.keys()
    if any(op.startswith("ai.onnx.") or (op.startswith("com.") and op not in plan.ops) for op in ops):
        return False
    if finding.opset > plan.latest or (plan.own and not ops & plan.own):
        return False
    return not plan.ops or ops <= plan.ops | AROUND


def feature_of(finding: Finding, plan: Plan) -> str | None:
    """Return the feature of a case; empty for the core, None if it needs more than ``MOST_FEATURES`` at once.

    Several at once are a feature of their own, such as ``float16+large_rank``: a failure would not tell which
    of them a provider lacks, and a provider that has each may still not have them together.
    """
    found = set(_features(finding)) - plan.plain
    if "quantized" in found or plan.plain:
        found -= {"int8"}
    return None if len(found) > MOST_FEATURES else JOINT.join(sorted(found, key=order_of))


def order_of(feature: str) -> tuple[int, list[int]]:
    """Return the place of a feature in the order of pages: single ones first.

    Raises:
        ValueError: It has no meaning.
    """
    parts = feature.split(JOINT)
    known = list(FEATURES)
    if unknown := set(parts) - FEATURES.keys():
        raise ValueError(f"no meaning of the feature {min(unknown)!r} is written down")
    return len(parts), [known.index(part) for part in parts]


def meaning_of(feature: str) -> str:
    """Return the meaning of a feature, or of several at once."""
    return ", with ".join(FEATURES[part] for part in feature.split(JOINT))


def _features(finding: Finding) -> Iterable[str]:
    yield from (_BY_TYPE[one] for one in finding.types if one in _BY_TYPE)
    yield from ("float8" for one in finding.types if one.startswith("float8"))
    yield from (name for name, ops in _BY_OPERATOR.items() if finding.ops.keys() & ops)
    if set(finding.ops) == {"Shape"}:
        yield "shape_operators"
    if finding.containers:
        yield "sequences"
    if any(op.startswith("com.microsoft") for op in finding.ops):
        yield "contrib"
    if finding.ranks > _MOST_RANK:
        yield "large_rank"
    if finding.empty:
        yield "zero_size"
    if finding.special:
        yield "special_values"
    if finding.symbolic:  # many accelerators compile graphs of fixed shapes alone
        yield "symbolic_shapes"
