"""Operators that work on each element: one input, or several that broadcast."""

from typing import Any

from harness.annex.made.forms.input_values import APART, GENERAL, POSITIVE_VALUES, ValueKind, values
from harness.annex.made.forms.setting import Form, Operand, Setting, broadcast
from harness.core.values.value import STRING
from harness.corpus.model.element_types import NUMBERS, is_floating

_DOMAINS: dict[str, ValueKind] = {
    "Acos": ValueKind(low=-0.875, high=0.875),
    "Acosh": ValueKind(low=1.125, high=4.0),
    "Asin": ValueKind(low=-0.875, high=0.875),
    "Atanh": ValueKind(low=-0.875, high=0.875),
    "Ceil": APART,
    "Floor": APART,
    "HardSigmoid": APART,
    "Log": POSITIVE_VALUES,
    "Reciprocal": ValueKind(away=0.5),
    "Round": APART,
    "Shrink": APART,
    "Sqrt": POSITIVE_VALUES,
    "Tan": ValueKind(low=-1.125, high=1.125),
    "ThresholdedRelu": APART,
}
"""Operators with a limited domain, or with jumps, which lie at multiples of 1/2."""

_ATTRIBUTES: dict[str, dict[str, tuple[Any, ...]]] = {
    "Celu": {"alpha": (0.5, 1.0, 2.0)},
    "Elu": {"alpha": (0.25, 1.0, 2.0)},
    "Gelu": {"approximate": ("none", "tanh")},
    "HardSigmoid": {"alpha": (0.125, 0.25, 0.5), "beta": (0.25, 0.5)},
    "IsInf": {"detect_negative": (0, 1), "detect_positive": (0, 1)},
    "LeakyRelu": {"alpha": (0.0, 0.125, 0.5, 2.0)},
    "QuickGelu": {"alpha": (1.0, 1.702)},
    "ScaledTanh": {"alpha": (0.5, 2.0), "beta": (0.5, 1.0)},
    "Selu": {"alpha": (0.5, 1.5), "gamma": (0.5, 2.0)},
    "Shrink": {"bias": (-0.5, 0.0, 0.25), "lambd": (0.0, 0.5, 1.0)},
    "Swish": {"alpha": (0.5, 1.0, 2.0)},
    "ThresholdedRelu": {"alpha": (0.0, 0.5, 1.0)},
}
"""Operator -> attribute -> values inside and at its limits."""


def unary(setting: Setting) -> Form:
    """Return a form of a function of each element."""
    # onnxruntime's fast path requires an axis that its bias could have.
    shape = setting.shape(1 if setting.name == "FastGelu" else 0, empty=True)
    kind = _DOMAINS.get(setting.name, GENERAL)
    chosen = {name: setting.draw.pick(items) for name, items in _ATTRIBUTES.get(setting.name, {}).items()}
    attributes = setting.maybe(70, {name: item for name, item in chosen.items() if setting.has(name)})
    if attributes.get("bias") and not is_floating(setting.dtype(0)):
        attributes["bias"] = 1.0  # ONNX leaves open how an integer minus a fraction becomes an integer
    return Form(inputs=(setting.operand(0, shape, kind),), attributes=attributes)


def cast(setting: Setting) -> Form:
    """Return a form of a conversion; if it truncates, no value is near a whole number."""
    source, target = setting.dtype(0), setting.output_type(0)
    integer = not is_floating(target) and target not in {"bool", STRING}
    low = 0.0 if target.startswith("u") or target == "float8e8m0" else -4.0
    kind = ValueKind(low=low, high=3.0, apart=is_floating(source) and integer, fine=False)
    if target == "bool":
        kind = APART
    shape = setting.shape(empty=True)
    data = setting.operand(0, shape, kind)
    if source == STRING:
        numbers = values(setting.draw, "int64", shape, ValueKind(low=max(low, -2.0), high=1.0))
        data = Operand(array=numbers.astype(str).astype(object), dtype=STRING)
    if setting.name == "CastLike":
        like = setting.operand(1, setting.shape(1, 2))
        return Form(inputs=(data, like))
    attributes: dict[str, Any] = {"to": NUMBERS[target]}
    if setting.has("saturate") and "float8" in target and setting.draw.chance(50):
        attributes["saturate"] = setting.draw.below(2)
    return Form(inputs=(data,), attributes=attributes)


def binary(setting: Setting) -> Form:
    """Return a form of a function of two inputs that broadcast; either one may be smaller."""
    shape = setting.shape(empty=True)
    shapes = [shape, broadcast(setting, shape)]
    if setting.name not in {"PRelu", "BiasGelu"} and setting.draw.chance(40):
        shapes.reverse()
    if setting.name == "BiasGelu":
        shape = setting.shape(1)
        shapes = [shape, shape[-1:]]
    kinds = _kinds(setting)
    inputs = tuple(setting.operand(at, one, kinds[at]) for at, one in enumerate(shapes))
    attributes: dict[str, Any] = {}
    if setting.name == "Mod" and (is_floating(setting.dtype(0)) or setting.draw.chance(40)):
        attributes["fmod"] = 1
    elif setting.name == "BitShift":
        attributes["direction"] = setting.draw.pick(("LEFT", "RIGHT"))
    return Form(inputs=inputs, attributes=attributes, aliases=setting.name in _ALIASING)


def _kinds(setting: Setting) -> tuple[ValueKind, ValueKind]:
    name = setting.name
    whole = not is_floating(setting.dtype(0))
    if name == "Pow":
        exponent = ValueKind(low=0.0 if whole or not is_floating(setting.dtype(1)) else -2.0, high=3.0)
        return (ValueKind(low=0.0, high=4.0) if whole else POSITIVE_VALUES), exponent
    if name == "Div":
        # Integer division truncates; ONNX says so for both signs.
        return GENERAL, ValueKind(low=1.0 if whole else -4.0, away=0.5)
    if name == "Mod":
        return (ValueKind(low=-8.0, high=8.0), ValueKind(low=1.0, high=5.0)) if whole else (APART, _MODULI)
    if name == "BitShift":
        # No bit is shifted out of the narrowest type: ONNX does not define the result.
        return ValueKind(low=0.0, high=3.0), ValueKind(low=0.0, high=5.0)
    if name.startswith("Bitwise"):
        return ValueKind(low=-100.0, high=100.0), ValueKind(low=-100.0, high=100.0)
    return GENERAL, GENERAL


_ALIASING = frozenset({"Add", "And", "Equal", "Greater", "Less", "Mul", "Or", "Sub", "Xor"})
"""Operators that accept the same values in both inputs."""

_MODULI = ValueKind(low=4.0, high=4.0, fine=False)
"""Divisors with which the remainder of an ``APART`` value is as far from its jumps as the value from whole
numbers."""


_BROADCASTING = 8
"""Version of Max, Mean, Min and Sum from which on their inputs broadcast."""


def variadic(setting: Setting) -> Form:
    """Return a form of an operator of one to four inputs that broadcast."""
    shape = setting.shape(empty=True)
    others = setting.draw.below(4)
    if setting.since < _BROADCASTING:
        shapes = [shape] * (others + 1)
    else:
        shapes = [shape, *(broadcast(setting, shape) for _ in range(others))]
    return Form(inputs=tuple(setting.operand(0, one) for one in shapes), aliases=True)


def where(setting: Setting) -> Form:
    """Return a form of Where."""
    shape = setting.shape(empty=True)
    shapes = [shape, broadcast(setting, shape), broadcast(setting, shape)]
    shapes = [shapes[at] for at in setting.draw.order(3)]
    return Form(inputs=tuple(setting.operand(at, one) for at, one in enumerate(shapes)))


def clip(setting: Setting) -> Form:
    """Return a form of Clip, whose bounds are attributes before opset 11."""
    data = setting.operand(0, setting.shape(empty=True))
    has_low, has_high = setting.draw.chance(70), setting.draw.chance(70)
    floats = is_floating(setting.dtype(0))
    low, high = (-0.5, 1.5) if floats else (1, 3)
    if not setting.takes(1):
        bounds = (("min", low, has_low), ("max", high, has_high))
        return Form(inputs=(data,), attributes={name: value for name, value, given in bounds if given})
    least = setting.given(1, low) if has_low else None
    return Form(inputs=(data, least, setting.given(2, high) if has_high else None))


def dropout(setting: Setting) -> Form:
    """Return a form of Dropout outside of training."""
    data = setting.operand(0, setting.shape())
    if not setting.takes(1):
        return Form(inputs=(data,), attributes=setting.maybe(50, {"ratio": 0.25}))
    return Form(inputs=(data, setting.given(1, 0.25)) if setting.draw.chance(50) else (data,))
