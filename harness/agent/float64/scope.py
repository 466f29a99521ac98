"""The values of a graph while it runs, each with its element type in the original model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from harness.agent.float64.array_budget import ArrayBudget
from harness.agent.float64.kinds import FLOAT32, kind_of, widened


class ScopeValue(NamedTuple):
    """A value: an array, a list, a map or None; ``kind`` is its elements' type before widening."""

    data: Any
    kind: str


_NOTHING = ScopeValue(None, "")


class Scope:
    """The values of one graph, body or function; missing ones are looked up in the scope around it."""

    def __init__(self, budget: ArrayBudget, weights: dict[str, Any], outer: Scope | None = None) -> None:
        self.budget = budget
        self._weights = weights
        self._outer = outer
        self._values: dict[str, ScopeValue] = {}

    def value(self, name: str) -> ScopeValue:
        """Return a value; LookupError if no value has that name."""
        if not name:
            return _NOTHING
        if name in self._values:
            return self._values[name]
        if name in self._weights:
            self.put(name, stored(self._weights[name]))
            return self._values[name]
        if self._outer is None:
            raise LookupError("nothing has the name %r" % name)
        return self._outer.value(name)

    def put(self, name: str, value: ScopeValue) -> None:
        """Add a value; MemoryError if it exceeds the limit."""
        self._values[name] = value
        self.budget.hold(value.data)

    def drop(self, names: Any) -> None:
        """Drop values that nothing reads any more."""
        for name in names:
            if name in self._values:
                self.budget.drop(self._values.pop(name).data)

    def close(self) -> None:
        """Drop all."""
        self.drop(list(self._values))


def stored(tensor: Any) -> ScopeValue:
    """Return a ``TensorProto`` or ``SparseTensorProto`` as a value."""
    from onnx import numpy_helper

    if not hasattr(tensor, "indices"):
        array = numpy_helper.to_array(tensor)
        return ScopeValue(widened(array), kind_of(array))
    found = numpy_helper.to_array(tensor.values)
    where = numpy_helper.to_array(tensor.indices)
    dense = np.zeros(tuple(tensor.dims), found.dtype)
    dense[tuple(where.T) if where.ndim > 1 else np.unravel_index(where, dense.shape)] = found
    return ScopeValue(widened(dense), kind_of(dense))


def fed(data: Any) -> ScopeValue:
    """Return an input of the model, whose floats are still narrow, as a value."""
    return ScopeValue(widened(data), kind_of(data) or FLOAT32)
