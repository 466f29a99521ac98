"""Productions of operators on single elements, with broadcasting."""

import numpy as np

from harness.annex.made.grown.growth import GrownTensor, Growth, MisfitError
from harness.corpus.model.element_types import NUMBERS
from harness.corpus.model.nodes import operator_set

GROWN_FLOATS = frozenset({"float32", "float64", "float16"})
WHOLE_TYPES = frozenset({"int32", "int64"})

_BOUNDED = ("Tanh", "Sigmoid", "Erf", "Softsign", "HardSigmoid")
_ANGLES = ("Sin", "Cos", "Atan")
_LINEAR = ("Relu", "LeakyRelu", "Elu", "Celu", "Selu", "HardSwish", "Mish", "Gelu", "Softplus",
           "ThresholdedRelu")  # fmt: skip
_JUMPS = ("Floor", "Ceil", "Round", "Sign", "Shrink")
_COMPARED = ("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal")

_NOT_OF_DOUBLES = operator_set("""
    Atan Celu Elu Erf Gelu HardSigmoid HardSwish LeakyRelu Mean Mish Selu Shrink Softplus Softsign
    ThresholdedRelu
""")
"""Operators that onnxruntime's CPU EP has no float64 kernel for."""

NEAR = 30.0
"""Bound of the arguments of functions: Exp and similar ones stay far from infinity, and angles are small."""


def is_float(value: GrownTensor) -> bool:
    """Return whether a value is floating."""
    return value.dtype in GROWN_FLOATS


def bounded(g: Growth) -> None:
    """Add a function with values within 2."""
    x = g.pick(lambda one: is_float(one) and one.most <= NEAR)
    g.op(known(g.random.pick(_BOUNDED + _ANGLES), x), x, most=2)


def activation(g: Growth) -> None:
    """Add an activation, with an attribute other than the default."""
    x = g.pick(lambda one: is_float(one) and one.most <= NEAR)
    op_type = g.random.pick(_LINEAR)
    if op_type == "ThresholdedRelu" and not x.exact:
        raise MisfitError("it jumps")
    alphas = {"LeakyRelu", "Elu", "Celu", "ThresholdedRelu"}
    alpha = g.random.pick([None, 0.25, 1.0, 2.0]) if op_type in alphas else None
    if op_type == "Celu" and x.dtype != "float32":
        raise MisfitError("of float32 only")
    approximate = g.random.pick([None, "tanh"]) if op_type == "Gelu" else None
    g.op(known(op_type, x), x, most=2 * x.most + 2, alpha=alpha, approximate=approximate)


def exact_unary(g: Growth) -> None:
    """Add an operator that rounds nothing; if its result jumps, on exact values only."""
    jumps = g.chance(0.5)
    op_type = g.random.pick(_JUMPS if jumps else ("Neg", "Abs", "Identity"))
    x = g.pick(lambda one: is_float(one) and (one.exact or not jumps))
    g.op(known(op_type, x), x, most=x.most + 1, exact=True)


def guarded(g: Growth) -> None:
    """Add a function of positive numbers, on a magnitude that is kept away from zero."""
    x = g.pick(lambda one: is_float(one) and one.most <= NEAR)
    away = g.op("Add", g.op("Abs", x, most=x.most, exact=True), constant(g, x, 0.5), most=x.most + 1)
    g.op(g.random.pick(["Sqrt", "Log", "Reciprocal"]), away, most=NEAR)


def exponential(g: Growth) -> None:
    """Add Exp of small numbers."""
    x = g.pick(lambda one: is_float(one) and one.most <= 4)  # noqa: PLR2004 - exp(4) is 55
    g.op("Exp", x, most=55)


def binary(g: Growth) -> None:
    """Add arithmetic on two values that broadcast; occasionally on a value and itself."""
    x = g.pick(lambda one: one.dtype in GROWN_FLOATS | WHOLE_TYPES)
    y = operand(g, x)
    op_type = g.random.pick(["Add", "Sub", "Mul", "Max", "Min"])
    most = x.most * y.most if op_type == "Mul" else x.most + y.most
    whole = x.dtype in WHOLE_TYPES
    first, second = (x, y) if g.chance(0.5) else (y, x)
    g.op(op_type, first, second, most=max(most, 1), exact=whole or op_type in {"Max", "Min"})


def quotient(g: Growth) -> None:
    """Add a quotient or remainder by numbers away from zero."""
    x = g.pick(lambda one: one.dtype in GROWN_FLOATS | WHOLE_TYPES)
    values = np.abs(g.draw(x.dtype, broadcast_shape(g, x))) + np.array(1, x.dtype)
    divisor = g.weight(values)
    if x.dtype in WHOLE_TYPES:
        # Kinds of division differ for negative operands; so magnitudes only.
        magnitude = g.op("Abs", x, most=x.most, exact=True)
        g.op(g.random.pick(["Div", "Mod"]), magnitude, divisor, most=x.most + 16, exact=True)
    else:
        g.op("Div", x, divisor, most=x.most)


def variadic(g: Growth) -> None:
    """Add Sum, mean, maximum or minimum of one to three values."""
    x = g.pick(is_float)
    rest = [operand(g, x) for _ in range(g.random.below(3))]
    op_type = g.random.pick(["Sum", "Mean", "Max", "Min"])
    most = sum(one.most for one in (x, *rest))
    g.op(known(op_type, x), x, *rest, most=most, exact=op_type in {"Max", "Min"})


def power(g: Growth) -> None:
    """Add a small whole power."""
    x = g.pick(lambda one: one.dtype in GROWN_FLOATS - {"float16"} and one.most <= NEAR)
    exponent = g.random.pick([2, 3])
    power_of = g.weight(np.array(exponent, g.random.pick([x.dtype, "int64"])))
    g.op("Pow", x, power_of, most=max(x.most, 1) ** exponent)


def clipped(g: Growth) -> None:
    """Clip with both bounds, one bound, or none."""
    x = g.pick(lambda one: is_float(one) or one.dtype in WHOLE_TYPES)
    low = constant(g, x, -1) if g.chance(0.7) else None
    high = constant(g, x, 1) if g.chance(0.7) else None
    g.op("Clip", x, low, high, most=x.most, exact=True)


def sloped(g: Growth) -> None:
    """Add PRelu; its slope broadcasts to its input only."""
    x = g.pick(lambda one: one.dtype == "float32")
    slope = g.drawn(x.dtype, [size if g.chance(0.5) else 1 for size in x.shape], 0.5)
    g.op("PRelu", x, slope, most=x.most + 1)


def compared(g: Growth) -> None:
    """Add a comparison of exact values, or a combination of flags."""
    if g.chance(0.6):
        x = g.pick(lambda one: one.exact and one.dtype in (GROWN_FLOATS - {"float16"}) | WHOLE_TYPES)
        g.op(g.random.pick(_COMPARED), x, operand(g, x, exact=True), most=1, exact=True)
        return
    flag = g.pick(lambda one: one.dtype == "bool")
    if g.chance(0.3):
        g.op("Not", flag, most=1, exact=True)
    else:
        g.op(g.random.pick(["And", "Or", "Xor"]), flag, operand(g, flag), most=1, exact=True)


def chosen(g: Growth) -> None:
    """Add Where, with a condition that broadcasts."""
    x = g.pick(lambda one: one.dtype in GROWN_FLOATS | WHOLE_TYPES)
    mask = g.weight(g.draw("bool", broadcast_shape(g, x)))
    y = operand(g, x)
    g.op("Where", mask, x, y, most=max(x.most, y.most), exact=True)


def converted(g: Growth) -> None:
    """Add a cast that keeps every value, or that rounds an exact one."""
    x = g.pick(lambda one: one.dtype in GROWN_FLOATS | WHOLE_TYPES | {"bool", "int8", "uint8"})
    to = {"float32": "float64", "int32": "int64", "uint8": "int32"}.get(x.dtype, "float32")
    # Exact values are small dyadic numbers, which float16 holds.
    to = "float16" if x.dtype == "float32" and g.chance(0.4) else to
    g.op("Cast", x, to=NUMBERS[to], most=x.most, exact=x.dtype not in {"float64", "int64"})


def known(op_type: str, x: GrownTensor) -> str:
    """Return an operator that the CPU EP computes for the type of a value.

    Raises:
        RefusedError: It does not compute it.
    """
    if x.dtype == "float64" and op_type in _NOT_OF_DOUBLES:
        raise MisfitError("not of doubles")
    return op_type


def operand(g: Growth, x: GrownTensor, *, exact: bool = False) -> GrownTensor:
    """Return a second operand: the value itself, another one of its shape, or a constant that broadcasts."""
    drawn = g.random.below(100)
    if drawn < 15:  # noqa: PLR2004 - aliasing
        return x
    if drawn < 50:  # noqa: PLR2004 - two computed values
        return g.pick(lambda one: _broadcasts(one, x) and (one.exact or not exact))
    return g.drawn(x.dtype, broadcast_shape(g, x))


def broadcast_shape(g: Growth, x: GrownTensor) -> tuple[int, ...]:
    """Return a shape that broadcasts to that of a value."""
    shape = x.shape[g.random.below(x.rank + 1) :] if g.chance(0.6) else x.shape
    return tuple(1 if g.chance(0.2) else size for size in shape)


def constant(g: Growth, like: GrownTensor, value: float) -> GrownTensor:
    """Add a scalar of the type of a value."""
    return g.weight(np.array(value, like.dtype))


def _broadcasts(one: GrownTensor, x: GrownTensor) -> bool:
    pairs = zip(one.shape[::-1], x.shape[::-1], strict=False)
    return one.dtype == x.dtype and all(a == b or 1 in (a, b) for a, b in pairs)


ELEMENTWISE = (
    bounded, activation, exact_unary, guarded, exponential, binary, binary, quotient, variadic, power,
    clipped, sloped, compared, chosen, converted,
)  # fmt: skip
