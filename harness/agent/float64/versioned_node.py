"""One node of a model, in the form for operators in float64."""

from __future__ import annotations

from typing import Any

from harness.agent.float64.array_budget import ArrayBudget

AnyArray = Any
"""A numpy array; ``Any``, since its element type is only known when a model runs."""


class VersionedNode:
    """A node with the version of its operator.

    Args:
        proto: The ``NodeProto``, without references to attributes of a function.
        since: ``since_version`` of its schema; 0 if ONNX has no schema for it.
        opsets: Domain -> version.
    """

    def __init__(self, proto: Any, since: int, opsets: dict[str, int]) -> None:
        from onnx import helper

        self.proto = proto
        self.since = since
        self.opsets = opsets
        self.domain = "" if proto.domain == "ai.onnx" else proto.domain
        self.op_type = proto.op_type
        self.inputs = list(proto.input)
        self.outputs = list(proto.output)
        self.name = self.domain + "." + self.op_type if self.domain else self.op_type
        self.budget = ArrayBudget(0)
        """The memory that may still be used while it runs; set before each run."""
        self._attributes = {one.name: helper.get_attribute_value(one) for one in proto.attribute}

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute: a number, text, list, tensor or graph."""
        value = self._attributes.get(name, default)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return list(value) if isinstance(value, tuple) else value

    def has(self, name: str) -> bool:
        """Return whether an attribute is given."""
        return name in self._attributes

    @property
    def wanted(self) -> int:
        """The number of outputs up to the last that has a name."""
        return max((index + 1 for index, name in enumerate(self.outputs) if name), default=0)
