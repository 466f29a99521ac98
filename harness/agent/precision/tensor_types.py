"""Element types of a graph's tensors, as far as it tells them."""

from __future__ import annotations

from typing import Any


def tensor_types(graph: Any) -> dict[str, int]:
    """Name -> element type; 0 for what is no tensor. A name of unknown type is not in it."""
    known = {tensor.name: tensor.data_type for tensor in graph.initializer}
    for port in (*graph.input, *graph.value_info, *graph.output):
        known[port.name] = port.type.tensor_type.elem_type
    return known
