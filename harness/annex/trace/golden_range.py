"""The golden values of a node against the range of the precision that a target delivers."""

from collections.abc import Iterable, Mapping

import numpy as np

from harness.agent.precision.attention_ranges import MASKED
from harness.annex.trace.node_error import OF_INT8
from harness.annex.triage.net import Net
from harness.annex.triage.net_node import NetNode
from harness.core.comparison.metrics import widen
from harness.core.comparison.tolerance import UNIT_ROUNDOFF
from harness.core.records.trace import GoldenRange
from harness.core.values.value import Floats, Tensor, Value

_LIMITS = {
    "float32": (float(np.finfo(np.float32).max), 2.0**-126),
    "float16": (65504.0, 2.0**-14),
    "bfloat16": ((2 - 2.0**-7) * 2.0**127, 2.0**-126),
}
"""Precision -> its largest number, and its smallest normal one."""


def step_of(value: Value | None) -> float:
    """Return the relative error that int8 gives a tensor: rounding to a step, over its root mean square.

    A range has 255 steps and contains 0. The result is 0 for a tensor without floats, or of zeros alone.
    """
    if not isinstance(value, Tensor) or value.dtype not in UNIT_ROUNDOFF:
        return 0.0
    part = _finite(value)
    span = _quantized_span(part)
    size = float(np.sqrt(np.mean(np.square(part)))) if part.size else 0.0
    return span / 255 / 12**0.5 / size if size else 0.0


def golden_range(values: Iterable[Value | None], delivers: str) -> GoldenRange | None:
    """Return the range of floats; None where there are none."""
    parts = [
        part
        for one in values
        if isinstance(one, Tensor) and one.dtype in UNIT_ROUNDOFF and (part := _finite(one)).size
    ]
    if not parts:
        return None
    (largest, smallest), size = _LIMITS.get(delivers, _LIMITS["float32"]), sum(part.size for part in parts)
    large = sum(int(np.count_nonzero(np.abs(part) > largest)) for part in parts)
    small = sum(int(np.count_nonzero((part != 0) & (np.abs(part) < smallest))) for part in parts)
    return GoldenRange(
        low=min(float(part.min()) for part in parts),
        high=max(float(part.max()) for part in parts),
        too_large=large / size,
        too_small=small / size,
        below_step=sum(map(_below_step, parts)) / size if delivers == OF_INT8 else 0.0,
    )


def _below_step(part: Floats) -> int:
    step = _quantized_span(part) / 255
    return int(np.count_nonzero((part != 0) & (np.abs(part) < step)))


def _quantized_span(part: Floats) -> float:
    """Return the length of the range of eight bits: from it, ``int8-static`` leaves masked scores out."""
    visible = part[part > MASKED]
    return float(visible.max(initial=0.0) - visible.min(initial=0.0))


def clipped_share(net: Net, node: NetNode, values: Mapping[str, Value]) -> float:
    """Return the share of the values that a `QuantizeLinear` clips; 0 for another node, and if unknown."""
    if node.op_type != "QuantizeLinear" or len(node.inputs) < 3:  # noqa: PLR2004 - without a zero point
        return 0.0
    read = [values.get(name) or _weight(net, name) for name in node.inputs[:3]]
    result = values.get(node.outputs[0])
    data, scale, zero = read
    if not (isinstance(data, Tensor) and isinstance(scale, Tensor) and isinstance(zero, Tensor)):
        return 0.0
    if scale.array.size != 1 or not isinstance(result, Tensor) or zero.array.dtype.kind not in "iu":
        return 0.0
    limits = np.iinfo(zero.array.dtype)
    steps = np.rint(_finite(data) / float(scale.array.reshape(-1)[0])) + int(zero.array.reshape(-1)[0])
    return float(np.mean((steps < limits.min) | (steps > limits.max))) if steps.size else 0.0


def _weight(net: Net, name: str) -> Tensor | None:
    weight = net.weights.get(name)
    return None if weight is None else weight.value(net.folder)


def _finite(value: Tensor) -> Floats:
    wide = widen(value.array.reshape(-1), value.dtype).astype(np.float64)
    return wide[np.isfinite(wide)]
