"""The values for which operators are defined: one entry for each operator and input.

A new rule is one entry of ``RULES``. ``harness.corpus.domain_walk`` finds the graph inputs to restrict.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from harness.corpus.nodes import number_of
from harness.corpus.protos import few_numbers

if TYPE_CHECKING:
    import onnx

Extent = int | str
"""The length of an axis: a number, or the name of a dimension; see ``harness.corpus.sizes``."""

Shape = tuple[Extent | None, ...]

_NEAREST_ZERO = 0.1
"""Least magnitude of a divisor: quotients stay within ten times the dividend, so that float16 holds them."""

_LEAST_POSITIVE = 0.05
"""Least input of an operator for positive numbers: float16 holds it, and its logarithm is small."""

_MOST_ROWS = 1 << 16
"""Largest number of table entries with which values are compared, one after another."""

_SMALL_CONSTANT = 64
"""Elements of a constant that a rule may read."""


class Domain(msgspec.Struct, frozen=True, kw_only=True):
    """The values that an input may hold. Several demands on one input intersect.

    Attributes:
        low: The least value; None: no bound.
        high: The bound above every value; None: no bound.
        away: The least magnitude.
        extents: The values index axes of these lengths: they are 0 to the least length less one.
        lengths: The values count along axes of these lengths: they are 1 to the least length.
        pattern: The values themselves, in the order of the elements; the last one is repeated.
        distinct: The values differ from each other along this axis; None: they need not.
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
        """Return the values that are in both domains; if there are none, this domain."""
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


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """A node in the form that a rule reads. Inputs are identified by index; an unknown one is None or empty.

    Shapes and constants are the known ones, by the names of tensors.
    """

    node: "onnx.NodeProto"
    shapes: Mapping[str, Shape]
    constants: "Mapping[str, onnx.TensorProto]"

    def number(self, attribute: str, default: float) -> float:
        """Return a numeric attribute of the node."""
        return number_of(self.node, attribute, default)

    def shape(self, index: int) -> Shape | None:
        """Return the shape of an input."""
        return self.shapes.get(self._name(index))

    def extent(self, index: int, axis: int) -> Extent | None:
        """Return the length of an axis of an input, unless it is unknown or 0."""
        shape = self.shape(index) or ()
        extent = shape[axis] if -len(shape) <= axis < len(shape) else None
        return None if isinstance(extent, int) and extent <= 0 else extent

    def constant(self, index: int, most: int = _SMALL_CONSTANT) -> tuple[float, ...]:
        """Return the elements of an input that is a small constant."""
        return few_numbers(self.constants.get(self._name(index)), most)

    def _name(self, index: int) -> str:
        return self.node.input[index] if index < len(self.node.input) else ""


_Rule = Domain | Callable[[Use], Domain | None]
"""A domain, or a function of the node if its attributes, shapes or constants decide."""

POSITIVE = Domain(low=_LEAST_POSITIVE)
DIVISOR = Domain(away=_NEAREST_ZERO)
SCALE = Domain(low=0.01, high=0.2)
"""Scale of a quantization: standard normal values then use part of the range of 8 bits."""

COUNTED = Domain(pattern=(0, 1, 2, 3, 4, 5, 6, 7))
"""Axes: all different, and each exists if the others do."""

_ZERO, _ONE = Domain(pattern=(0,)), Domain(pattern=(1,))


def _index(table: int, axis: int = 0, attribute: str = "") -> _Rule:
    """Return the rule for indices into an axis of an input; an attribute may name the axis."""

    def rule(use: Use) -> Domain | None:
        extent = use.extent(table, int(use.number(attribute, axis)))
        return None if extent is None else Domain(extents=(extent,))

    return rule


def _length(axis: int = 0, attribute: str = "") -> _Rule:
    """Return the rule for lengths along an axis of the first input; 1 if the axis is unknown."""

    def rule(use: Use) -> Domain:
        extent = use.extent(0, int(use.number(attribute, axis)))
        return _ONE if extent is None else Domain(lengths=(extent,))

    return rule


def _scattered(use: Use) -> Domain | None:
    axis = int(use.number("axis", 0))
    extent = use.extent(0, axis)
    return None if extent is None else Domain(extents=(extent,), distinct=axis)


def _known_shape(use: Use) -> tuple[Extent, ...]:
    """Return the shape of the first input; empty if a part of it is unknown."""
    shape = use.shape(0) or ()
    known = tuple(extent for extent in shape if extent is not None)
    return known if len(known) == len(shape) else ()


def _scattered_tuples(use: Use) -> Domain | None:
    shape = _known_shape(use)
    return Domain(tuples=shape) if shape else None


def _tuple_indices(use: Use) -> Domain | None:
    shape = _known_shape(use)
    return Domain(extents=shape[int(use.number("batch_dims", 0)) :]) if shape else None


def _equal(other: int) -> _Rule:
    """Return the rule for values that are compared with a constant: all numbers of a table occur.

    A scalar equals the number with which it is compared. A tensor compared with one number, such as the
    padding token, has no restriction.
    """

    def rule(use: Use) -> Domain | None:
        numbers = use.constant(other, _MOST_ROWS)
        if not all(one == int(one) for one in numbers if abs(one) < _WHOLE):
            return None
        if len(numbers) > 1:
            return Domain(low=min(numbers), high=max(numbers) + 1)
        scalar = use.shape(1 - other) in {(), (1,)}
        return Domain(pattern=numbers) if numbers and scalar else None

    return rule


def _one_hot_indices(use: Use) -> Domain | None:
    depth = use.constant(1)
    return Domain(extents=(int(depth[0]),)) if len(depth) == 1 and depth[0] >= 1 else Domain(low=0, high=2)


def _base(use: Use) -> Domain | None:
    """Allow a negative base of a power if the exponent is known to be a whole number."""
    exponents = use.constant(1)
    if exponents and all(one == int(one) for one in exponents if abs(one) < _WHOLE):
        return DIVISOR if min(exponents) < 0 else None
    return POSITIVE


def _cast(use: Use) -> Domain | None:
    return Domain(low=0.0, high=100.0) if int(use.number("to", 0)) in _UNSIGNED else None


def _resized(use: Use) -> Domain:
    """Return factors of a resize: 1 for batch and channels, which most kernels do not resize."""
    shape = use.shape(0)
    rank = len(shape) if shape else 4
    return Domain(pattern=tuple(1.0 if axis < rank - 2 else 2.0 for axis in range(rank)))


_WHOLE = 2.0**31
_UNSIGNED = frozenset({2, 4, 12, 13, 21, 25})
"""``TensorProto.DataType`` of uint8, uint16, uint32, uint64, uint4 and uint2."""

_QUANTIZED_MATRICES = {1: SCALE, 4: SCALE, 6: SCALE}


def _by_operator(*rows: tuple[str, Mapping[int, _Rule]]) -> dict[str, Mapping[int, _Rule]]:
    return {op: rules for ops, rules in rows for op in ops.split()}


RULES = _by_operator(
    # Elementwise functions with a limited domain.
    ("Acos Asin Atanh", {0: Domain(low=-0.9, high=0.9)}),
    ("Acosh", {0: Domain(low=1.1, high=4.0)}),
    ("Log Sqrt", {0: POSITIVE}),
    ("Pow", {0: _base, 1: Domain(low=-2.0, high=3.0)}),
    ("Tan", {0: Domain(low=-1.2, high=1.2)}),  # its poles are at 1.57
    ("Reciprocal", {0: DIVISOR}),
    ("Div Mod", {1: DIVISOR}),
    ("BitShift", {1: Domain(low=0, high=4)}),
    ("Cast", {0: _cast}),
    ("Clip", {1: Domain(low=-2.0, high=-0.5), 2: Domain(low=0.5, high=2.0)}),
    ("ReduceLogSum", {0: POSITIVE, 1: COUNTED}),
    # Statistics, probabilities, quantization.
    ("BatchNormalization", {4: POSITIVE}),
    ("Bernoulli", {0: Domain(low=0.0, high=1.0)}),
    ("Dropout", {1: Domain(low=0.1, high=0.5)}),
    ("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", {1: _index(0, 1)}),
    ("DequantizeLinear QuantizeLinear", {1: SCALE}),
    ("com.microsoft.DequantizeLinear com.microsoft.QuantizeLinear", {1: SCALE}),
    ("QLinearConv QLinearMatMul", _QUANTIZED_MATRICES),
    ("com.microsoft.QLinearAdd com.microsoft.QLinearMul", _QUANTIZED_MATRICES),
    # Indices.
    ("ArrayFeatureExtractor ai.onnx.ml.ArrayFeatureExtractor", {1: _index(0, -1)}),
    ("Gather GatherElements com.microsoft.GatherBlockQuantized", {1: _index(0, attribute="axis")}),
    ("GatherND com.microsoft.GatherND", {1: _tuple_indices}),
    ("Equal", {0: _equal(1), 1: _equal(0)}),
    ("OneHot", {0: _one_hot_indices, 1: Domain(low=3, high=6)}),
    ("RoiAlign", {2: _index(0)}),
    ("Scatter ScatterElements", {1: _scattered}),
    ("ScatterND", {1: _scattered_tuples}),
    ("com.microsoft.EmbedLayerNormalization", {0: _index(2), 1: _index(4), 8: _index(3)}),
    ("com.microsoft.RotaryEmbedding", {1: _index(2)}),
    ("RotaryEmbedding", {3: _index(1)}),
    # Lengths, counts and axes.
    ("GRU LSTM RNN", {4: _length()}),
    ("ReverseSequence", {1: _length(0, "time_axis")}),
    ("TopK", {1: _length(-1, "axis")}),
    ("CumSum CumProd SequenceAt SequenceErase", {1: _ZERO}),
    ("SequenceInsert TensorScatter", {2: _ZERO}),
    ("HannWindow HammingWindow BlackmanWindow", {0: Domain(low=4, high=9)}),
    ("Loop", {0: Domain(low=2, high=5), 1: _ONE}),
    ("NonMaxSuppression", {2: Domain(pattern=(3,)), 3: Domain(low=0.2, high=0.8), 4: Domain(high=0.3)}),
    ("Range", {0: Domain(low=0, high=2), 1: Domain(low=4, high=8), 2: _ONE}),
    ("Squeeze Unsqueeze ReduceL1 ReduceL2 ReduceLogSumExp ReduceMax", {1: COUNTED}),
    ("ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare", {1: COUNTED}),
    # Shapes. In Reshape, 0 keeps an axis, and -1 is computed from the others.
    ("ConstantOfShape", {0: Domain(low=1, high=4)}),
    ("Expand", {1: _ONE}),
    ("GridSample", {1: Domain(low=-1.0, high=1.0)}),
    ("Pad", {1: Domain(low=0, high=2)}),
    ("Reshape", {1: Domain(pattern=(-1, 1))}),
    ("Resize", {2: _resized}),
    ("Slice", {1: _ZERO, 2: Domain(pattern=(2,)), 3: COUNTED, 4: _ONE}),
    ("Tile", {1: Domain(low=1, high=3)}),
    ("Upsample", {1: _resized}),
)
"""Operator -> input -> rule. Operators have the names of ONNX and of onnxruntime's documentation."""
