"""float16 for weights and activations, by the converter of onnxruntime's transformer tools; IO types stay."""

from __future__ import annotations

from typing import Any

from harness.agent.precision.narrow_nodes import narrow_nodes
from harness.agent.precision.spelled_out import spelled_out

NOTHING = "no operator of it would compute in float16"
NUMBER = 10  # TensorProto.FLOAT16


def converted(model: Any, feeds: list[dict[str, Any]]) -> Any:  # noqa: ARG001 - nothing is calibrated
    """The model with what its converter's own list of operators allows in float16."""
    from onnxruntime.transformers import float16

    convert: Any = float16.convert_float_to_float16
    return convert(model, keep_io_types=True)


def rounded(model: Any) -> Any:
    """The converted model as the CPU EP rounds in it; see ``spelled_out``."""
    return spelled_out(model, NUMBER)


def reduced_nodes(model: Any) -> int:
    """How many nodes take float16."""
    return narrow_nodes(model.graph, NUMBER)
