"""The values that operators are defined for: one entry for each operator and input.

A new rule is one entry of ``RULES``. ``harness.corpus.domain_walk`` finds the graph inputs that it is about.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

Extent = int | str
"""The length of an axis: a number, or the name of a dimension; see ``harness.corpus.sizes``."""

NEAREST_ZERO = 0.1
"""Least magnitude of a divisor: its quotients stay within ten times the dividend, so float16 holds them."""

LEAST_POSITIVE = 0.05
"""Least value where an operator takes positive ones only: float16 holds it, and its logarithm is small."""


class Domain(msgspec.Struct, frozen=True, kw_only=True):
    """The values that an input may hold. Several demands on one input intersect.

    Attributes:
        low: The least value; None where there is no bound.
        high: Above every value; None where there is no bound.
        away: The least magnitude.
        extents: The values index axes of these lengths: they are 0 to the least length less one.
        lengths: The values count along axes of these lengths: they are 1 to the least length.
        pattern: The values themselves, in the order of the elements; the last one is repeated.
        distinct: The values differ from each other along this axis; None where they need not.
        tuples: The last axis of the input holds index tuples into axes of these lengths, and the tuples
            differ from each other.
    """

    low: float | None = None
    high: float | None = None
    away: float = 0.0
    extents: tuple[Extent, ...] = ()
    lengths: tuple[Extent, ...] = ()
    pattern: tuple[float, ...] = ()
    distinct: int | None = None
    tuples: tuple[Extent, ...] = ()

    def within(self, other: "Domain") -> "Domain":
        """The values that are in both domains; where there are none, this domain."""
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        low, high = max(lows, default=None), min(highs, default=None)
        if low is not None and high is not None and low >= high:
            return self
        return Domain(
            low=low,
            high=high,
            away=max(self.away, other.away),
            extents=tuple(dict.fromkeys(self.extents + other.extents)),
            lengths=tuple(dict.fromkeys(self.lengths + other.lengths)),
            pattern=self.pattern or other.pattern,
            distinct=self.distinct if self.distinct is not None else other.distinct,
            tuples=self.tuples or other.tuples,
        )


class Use(Protocol):
    """A node as a rule sees it. Inputs go by their index; what is not known is None or empty."""

    opset: int

    def number(self, attribute: str, default: float) -> float:
        """A numeric attribute of the node."""

    def shape(self, index: int) -> tuple[Extent | None, ...] | None:
        """The shape of an input."""

    def constant(self, index: int) -> tuple[float, ...]:
        """The elements of an input that is a small constant."""


Rule = Domain | Callable[[Use], Domain | None]
"""A domain, or a function of the node where its attributes, shapes or constants decide."""


def rules_of(domain: str, op_type: str) -> Mapping[int, Rule]:
    """Input -> rule, for one operator; an empty domain is ONNX's own."""
    return RULES.get((domain, op_type), {})


POSITIVE = Domain(low=LEAST_POSITIVE)
DIVISOR = Domain(away=NEAREST_ZERO)
PROBABILITY = Domain(low=0.0, high=1.0)
SCALE = Domain(low=0.01, high=0.2)
"""Of a quantization: so that standard normal values fill some of the range of 8 bits."""

ONE = Domain(pattern=(1,))
COUNTED = Domain(pattern=(0, 1, 2, 3, 4, 5, 6, 7))
"""Axes: all different, and each is there where the others are."""


def _indexed(table: int, default_axis: int = 0) -> Rule:
    """Indices into the axis that the attribute ``axis`` names."""

    def rule(use: Use) -> Domain | None:
        extent = _extent(use.shape(table), int(use.number("axis", default_axis)))
        return None if extent is None else Domain(extents=(extent,))

    return rule


def _index_of(table: int, axis: int) -> Rule:
    """Indices into a fixed axis."""

    def rule(use: Use) -> Domain | None:
        extent = _extent(use.shape(table), axis)
        return None if extent is None else Domain(extents=(extent,))

    return rule


def _counted_along(table: int, axis: int, attribute: str = "") -> Rule:
    """Lengths along an axis; 1 where the axis is not known."""

    def rule(use: Use) -> Domain:
        along = int(use.number(attribute, axis)) if attribute else axis
        extent = _extent(use.shape(table), along)
        return ONE if extent is None else Domain(lengths=(extent,))

    return rule


def _scattered(use: Use) -> Domain | None:
    axis = int(use.number("axis", 0))
    extent = _extent(use.shape(0), axis)
    return None if extent is None else Domain(extents=(extent,), distinct=axis)


def _scattered_tuples(use: Use) -> Domain | None:
    shape = use.shape(0)
    known = tuple(extent for extent in shape or () if extent is not None)
    return Domain(tuples=known) if shape and len(known) == len(shape) else None


def _tuple_indices(use: Use) -> Domain | None:
    shape = use.shape(0)
    if not shape or any(extent is None for extent in shape):
        return None
    skipped = int(use.number("batch_dims", 0))
    return Domain(extents=tuple(extent for extent in shape[skipped:] if extent is not None))


def _class_indices(use: Use) -> Domain | None:
    """Labels: indices into axis 1 of the scores."""
    extent = _extent(use.shape(0), 1)
    return None if extent is None else Domain(extents=(extent,))


def _one_hot_indices(use: Use) -> Domain | None:
    depth = use.constant(1)
    return Domain(extents=(int(depth[0]),)) if len(depth) == 1 and depth[0] >= 1 else Domain(low=0, high=2)


def _base(use: Use) -> Domain | None:
    """The base of a power may be negative where the exponent is known to be a whole number."""
    exponents = use.constant(1)
    if exponents and all(one == int(one) for one in exponents if abs(one) < _WHOLE):
        return DIVISOR if min(exponents) < 0 else None
    return POSITIVE


def _cast(use: Use) -> Domain | None:
    return Domain(low=0.0, high=100.0) if int(use.number("to", 0)) in _UNSIGNED else None


def _resized(use: Use) -> Domain:
    """Factors of a resize: those of the batch and the channels, which most kernels leave alone, are 1."""
    shape = use.shape(0)
    rank = len(shape) if shape else 4
    return Domain(pattern=tuple(1.0 if axis < rank - 2 else 2.0 for axis in range(rank)))


def _extent(shape: tuple[Extent | None, ...] | None, axis: int) -> Extent | None:
    if shape is None or not -len(shape) <= axis < len(shape):
        return None
    extent = shape[axis]
    return None if isinstance(extent, int) and extent <= 0 else extent


_WHOLE = 2.0**31
_UNSIGNED = frozenset({2, 4, 12, 13, 21, 25})
"""``TensorProto.DataType`` of uint8, uint16, uint32, uint64, uint4 and uint2."""

_MICROSOFT = "com.microsoft"
_ML = "ai.onnx.ml"
_LENGTHS_OF_BATCH = {4: _counted_along(0, 0)}
_AXES = {1: COUNTED}
_QUANTIZED_MATRICES = {1: SCALE, 4: SCALE, 6: SCALE}

RULES: dict[tuple[str, str], Mapping[int, Rule]] = {
    # Elementwise functions with a limited domain.
    ("", "Acos"): {0: Domain(low=-0.9, high=0.9)},
    ("", "Acosh"): {0: Domain(low=1.1, high=4.0)},
    ("", "Asin"): {0: Domain(low=-0.9, high=0.9)},
    ("", "Atanh"): {0: Domain(low=-0.9, high=0.9)},
    ("", "Log"): {0: POSITIVE},
    ("", "Pow"): {0: _base, 1: Domain(low=-2.0, high=3.0)},
    ("", "Sqrt"): {0: POSITIVE},
    ("", "Tan"): {0: Domain(low=-1.2, high=1.2)},  # its poles lie at 1.57
    ("", "Reciprocal"): {0: DIVISOR},
    ("", "Div"): {1: DIVISOR},
    ("", "Mod"): {1: DIVISOR},
    ("", "BitShift"): {1: Domain(low=0, high=4)},
    ("", "Cast"): {0: _cast},
    ("", "Clip"): {1: Domain(low=-2.0, high=-0.5), 2: Domain(low=0.5, high=2.0)},
    ("", "ReduceLogSum"): {0: POSITIVE, **_AXES},
    # Statistics, probabilities, quantization.
    ("", "BatchNormalization"): {4: POSITIVE},
    ("", "Bernoulli"): {0: PROBABILITY},
    ("", "Dropout"): {1: Domain(low=0.1, high=0.5)},
    ("", "NegativeLogLikelihoodLoss"): {1: _class_indices},
    ("", "SoftmaxCrossEntropyLoss"): {1: _class_indices},
    ("", "DequantizeLinear"): {1: SCALE},
    ("", "QuantizeLinear"): {1: SCALE},
    ("", "QLinearConv"): {1: SCALE, 4: SCALE, 6: SCALE},
    ("", "QLinearMatMul"): _QUANTIZED_MATRICES,
    (_MICROSOFT, "QLinearAdd"): _QUANTIZED_MATRICES,
    (_MICROSOFT, "QLinearMul"): _QUANTIZED_MATRICES,
    (_MICROSOFT, "DequantizeLinear"): {1: SCALE},
    (_MICROSOFT, "QuantizeLinear"): {1: SCALE},
    # Indices.
    ("", "ArrayFeatureExtractor"): {1: _index_of(0, -1)},
    (_ML, "ArrayFeatureExtractor"): {1: _index_of(0, -1)},
    ("", "Gather"): {1: _indexed(0)},
    ("", "GatherElements"): {1: _indexed(0)},
    ("", "GatherND"): {1: _tuple_indices},
    ("", "OneHot"): {0: _one_hot_indices, 1: Domain(low=3, high=6)},
    ("", "RoiAlign"): {2: _index_of(0, 0)},
    ("", "Scatter"): {1: _scattered},
    ("", "ScatterElements"): {1: _scattered},
    ("", "ScatterND"): {1: _scattered_tuples},
    ("", "TensorScatter"): {2: Domain(pattern=(0,))},
    (_MICROSOFT, "EmbedLayerNormalization"): {0: _index_of(2, 0), 1: _index_of(4, 0), 8: _index_of(3, 0)},
    (_MICROSOFT, "GatherBlockQuantized"): {1: _indexed(0)},
    (_MICROSOFT, "GatherND"): {1: _tuple_indices},
    (_MICROSOFT, "RotaryEmbedding"): {1: _index_of(2, 0)},
    ("", "RotaryEmbedding"): {3: _index_of(1, 0)},
    # Lengths, counts and axes.
    ("", "GRU"): _LENGTHS_OF_BATCH,
    ("", "LSTM"): _LENGTHS_OF_BATCH,
    ("", "RNN"): _LENGTHS_OF_BATCH,
    ("", "ReverseSequence"): {1: _counted_along(0, 0, "time_axis")},
    ("", "TopK"): {1: _counted_along(0, -1, "axis")},
    ("", "CumSum"): {1: Domain(pattern=(0,))},
    ("", "CumProd"): {1: Domain(pattern=(0,))},
    ("", "HannWindow"): {0: Domain(low=4, high=9)},
    ("", "HammingWindow"): {0: Domain(low=4, high=9)},
    ("", "BlackmanWindow"): {0: Domain(low=4, high=9)},
    ("", "Loop"): {0: Domain(low=2, high=5), 1: ONE},
    ("", "NonMaxSuppression"): {2: Domain(pattern=(3,)), 3: Domain(low=0.2, high=0.8), 4: Domain(high=0.3)},
    ("", "Range"): {0: Domain(low=0, high=2), 1: Domain(low=4, high=8), 2: ONE},
    ("", "SequenceAt"): {1: Domain(pattern=(0,))},
    ("", "SequenceErase"): {1: Domain(pattern=(0,))},
    ("", "SequenceInsert"): {2: Domain(pattern=(0,))},
    ("", "Squeeze"): _AXES,
    ("", "Unsqueeze"): _AXES,
    ("", "ReduceL1"): _AXES,
    ("", "ReduceL2"): _AXES,
    ("", "ReduceLogSumExp"): _AXES,
    ("", "ReduceMax"): _AXES,
    ("", "ReduceMean"): _AXES,
    ("", "ReduceMin"): _AXES,
    ("", "ReduceProd"): _AXES,
    ("", "ReduceSum"): _AXES,
    ("", "ReduceSumSquare"): _AXES,
    # Shapes. A zero of Reshape keeps an axis, and -1 takes what is left.
    ("", "ConstantOfShape"): {0: Domain(low=1, high=4)},
    ("", "Expand"): {1: ONE},
    ("", "GridSample"): {1: Domain(low=-1.0, high=1.0)},
    ("", "Pad"): {1: Domain(low=0, high=2)},
    ("", "Reshape"): {1: Domain(pattern=(-1, 1))},
    ("", "Resize"): {2: _resized},
    ("", "Slice"): {1: Domain(pattern=(0,)), 2: Domain(pattern=(2,)), 3: COUNTED, 4: ONE},
    ("", "Tile"): {1: Domain(low=1, high=3)},
    ("", "Upsample"): {1: _resized},
}
"""Domain and operator -> input -> rule. Names of operators are as in ONNX and onnxruntime's documentation."""
