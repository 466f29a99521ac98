"""Shapes of outputs, declared again after a change."""

from typing import Any

from harness.annex.triage.net import Net
from harness.annex.triage.net_node import copied
from harness.annex.triage.net_tensors import shape_of
from harness.annex.triage.outline import inferred
from harness.core.values.value import Tensor


def redeclared(net: Net) -> Net | None:
    """Return a net with the shapes that onnx infers for outputs and declared inner tensors.

    Returns:
        Return None if shapes contradict each other even with the sizes of the input values in place of
        symbols.
    """
    outputs = {name: _unsized(info) for name, info in net.outputs.items()}
    bare = net.replace(outputs=outputs, infos={})
    if inferred(bare.replace(inputs={name: _sized(net, info) for name, info in net.inputs.items()})) is None:
        return None
    model = inferred(bare)
    if model is None:
        return None
    found = {info.name: info for info in (*model.graph.value_info, *model.graph.output)}
    for name in net.outputs:
        if name in found and shape_of(found[name].type) is not None:
            outputs[name] = found[name]
    return net.replace(outputs=outputs, infos={name: found[name] for name in net.infos if name in found})


def _sized(net: Net, info: Any) -> Any:
    """Return a declaration with the sizes of the input values in place of symbols."""
    value = net.fed.get(info.name)
    dims = info.type.tensor_type.shape.dim
    if not isinstance(value, Tensor) or len(dims) != value.array.ndim:
        return info
    copy = copied(info)
    for dim, size in zip(copy.type.tensor_type.shape.dim, value.array.shape, strict=True):
        dim.dim_value = size
    return copy


def _unsized(info: Any) -> Any:
    """Return a declaration that keeps its rank and no size."""
    copy = copied(info)
    if copy.type.HasField("tensor_type"):
        for dim in copy.type.tensor_type.shape.dim:
            dim.Clear()
    return copy
