"""Visible faults that pass by a rule of the harness's documentation: listed, and counted apart."""

import numpy as np

from benchmarks.planted.arithmetic import Array
from benchmarks.planted.subject import VISIBLE, Scale, Subject, is_float

STEP = "one step of a quantization is granted (tolerances.md, step 4)"
DOUBLE = "float64 is held to float32"
NEAR_ONE = "what comes from a number near 1 has the error of 1 (tolerances.md), whatever its own size"
FUNCTIONS = (
    "functions and quotients are granted the errors of OpenCL C: up to 4 roundings, times 32 for one element"
)

STEPS = {"int8-qdq": float(np.float32(0.1))}
"""Model -> step of its outputs' quantization, whose operand is rounded; an exact one excuses nothing."""

OF_ONE = frozenset({"small-divisor", "sigmoid-tails", "tiny-values", "huge-values"})
"""Models of a sigmoid or a hyperbolic tangent near a limit where it vanishes."""

GRANTED_ULP = 160.0
"""Units of the noise by hand: 32 x 4 roundings, of which one may be two units."""


def allowed(subject: Subject, scale: Scale, found: list[Array], size: float) -> str:
    """Return the rule by which a visible fault may pass; empty if none is known."""
    name = subject.model.name
    if any(
        one.shape != like.shape or one.dtype != like.dtype
        for one, like in zip(found, scale.honest, strict=True)
    ):
        return ""
    if name in STEPS:
        return STEP if _largest(scale, found) <= STEPS[name] * 1.001 else ""
    if any(str(one.dtype) == "float64" for one in scale.honest):
        wider = Scale(subject.model, scale.inputs, scale.honest, "float32", unit="float32")
        return DOUBLE if wider.effect(found)[0] != VISIBLE else ""
    if name in OF_ONE and size < 1 / np.finfo(np.float32).eps * 4:
        return NEAR_ONE
    rounded = all(
        is_float(one) or np.array_equal(one, like) for one, like in zip(found, scale.honest, strict=True)
    )
    return FUNCTIONS if size < GRANTED_ULP and rounded else ""


def _largest(scale: Scale, found: list[Array]) -> float:
    """Return the largest difference from the CPU EP's answer."""
    pairs = zip(found, scale.honest, strict=True)
    return max(
        float(np.abs(one.astype(np.float64) - like.astype(np.float64)).max(initial=0)) for one, like in pairs
    )
