"""The ONNX model that a file in ORT format holds: the same graph, as onnxruntime optimized it.

The slots are those of ``ort.fbs`` of onnxruntime, whose version 6 renamed none of them.
"""

import heapq
from collections import defaultdict
from typing import TYPE_CHECKING

from harness.corpus.model.ort_format.flat_buffer import Table, root_of

if TYPE_CHECKING:
    import onnx

_MARK = b"ORTM"
_MARK_AT = 4
_MOST_DEPTH = 32
"""Graphs within graphs, as ``protobuf`` limits messages within messages."""

_FUSED = 1
_TENSOR, _SEQUENCE, _MAP = 1, 2, 3
_KNOWN, _NAMED = 1, 2
_NO_OFFSET = -1


def is_ort_format(content: bytes) -> bool:
    """Return whether a file has the mark of ORT format."""
    return content.startswith(_MARK, _MARK_AT)


def onnx_model_of(content: bytes) -> "onnx.ModelProto":
    """Return the model of a file in ORT format.

    Raises:
        ValueError: It is broken, keeps weights elsewhere, or has something that ONNX's format lacks.
    """
    import onnx

    saved = root_of(content).table(6)
    graph = None if saved is None else saved.table(18)
    if saved is None or graph is None:
        raise ValueError("in ORT format, and without a graph")
    model = onnx.ModelProto(ir_version=saved.number(4, "q"), producer_name=saved.text(8))
    for imported in saved.tables(6):
        model.opset_import.add(domain=imported.text(4), version=imported.number(6, "q"))
    _fill_graph(model.graph, graph, 0)
    return model


def _fill_graph(graph: "onnx.GraphProto", saved: Table, depth: int) -> None:
    if depth > _MOST_DEPTH:
        raise ValueError(f"more than {_MOST_DEPTH} graphs within each other")
    if next(saved.tables(18), None) is not None:
        raise ValueError("sparse weights of a file in ORT format are not read")
    graph.name = "graph"
    for tensor in saved.tables(4):
        _fill_tensor(graph.initializer.add(), tensor)
    types = {value.text(4): value.table(8) for value in saved.tables(6)}
    ends = {14: graph.input, 16: graph.output}
    named: set[str] = {tensor.name for tensor in graph.initializer}
    for slot, values in ends.items():
        for given in saved.strings(slot):
            text = given.decode("utf-8", "replace")
            named.add(text)
            value = values.add(name=text)
            kind = types.get(text)
            if kind is not None:
                _fill_type(value.type, kind, 0)
    for text, kind in types.items():
        if text and kind is not None and text not in named:
            _fill_type(graph.value_info.add(name=text).type, kind, 0)
    _fill_nodes(graph, list(saved.tables(8)), depth)


def _fill_nodes(graph: "onnx.GraphProto", saved: list[Table], depth: int) -> None:
    """Add the nodes, each after those that it needs: they are saved in the order of their numbers."""
    import onnx

    nodes, needs = [], []
    for one in saved:
        if one.number(16, "i") == _FUSED:
            raise ValueError("a node that is compiled for one execution provider is not read")
        node = onnx.NodeProto(name=one.text(4), domain=one.text(8), op_type=one.text(14))
        node.input.extend(name.decode("utf-8", "replace") for name in one.strings(20))
        node.output.extend(name.decode("utf-8", "replace") for name in one.strings(22))
        for attribute in one.tables(24):
            _fill_attribute(node.attribute.add(), attribute, depth)
        implicit = (name.decode("utf-8", "replace") for name in one.strings(28))
        nodes.append(node)
        needs.append({*node.input, *implicit})
    maker = {name: number for number, node in enumerate(nodes) for name in node.output if name}
    missing = [{maker[name] for name in names if name in maker} for names in needs]
    waiting = defaultdict(list)
    for number, others in enumerate(missing):
        for other in others:
            waiting[other].append(number)
    ready = [number for number, others in enumerate(missing) if not others]
    heapq.heapify(ready)
    while ready:
        number = heapq.heappop(ready)
        graph.node.append(nodes[number])
        for other in waiting[number]:
            missing[other].discard(number)
            if not missing[other]:
                heapq.heappush(ready, other)
    if len(graph.node) < len(nodes):
        raise ValueError("nodes of the graph need each other's outputs")


def _fill_attribute(attribute: "onnx.AttributeProto", saved: Table, depth: int) -> None:
    attribute.name = saved.text(4)
    # The numbers of types are those of ONNX.
    attribute.type = saved.number(8, "i")
    if attribute.type == attribute.FLOAT:
        attribute.f = saved.number(10, "f")
    elif attribute.type == attribute.INT:
        attribute.i = saved.number(12, "q")
    elif attribute.type == attribute.STRING:
        attribute.s = saved.string(14)
    tensor, graph = saved.table(16), saved.table(18)
    if tensor is not None:
        _fill_tensor(attribute.t, tensor)
    if graph is not None:
        _fill_graph(attribute.g, graph, depth + 1)
    attribute.floats.extend(saved.array(20, "<f4").tolist())
    attribute.ints.extend(saved.array(22, "<i8").tolist())
    attribute.strings.extend(saved.strings(24))
    for one in saved.tables(26):
        _fill_tensor(attribute.tensors.add(), one)
    for one in saved.tables(28):
        _fill_graph(attribute.graphs.add(), one, depth + 1)


def _fill_tensor(tensor: "onnx.TensorProto", saved: Table) -> None:
    import onnx

    if saved.number(16, "q", _NO_OFFSET) != _NO_OFFSET:
        raise ValueError("weights in a file beside a model in ORT format are not read")
    tensor.name, tensor.data_type = saved.text(4), saved.number(10, "i")
    tensor.dims.extend(saved.array(8, "<i8").tolist())
    if tensor.data_type == onnx.TensorProto.STRING:
        tensor.string_data.extend(saved.strings(14))
    else:
        tensor.raw_data = saved.array(12, "u1").tobytes()


def _fill_type(kind: "onnx.TypeProto", saved: Table, depth: int) -> None:
    if depth > _MOST_DEPTH:
        raise ValueError(f"more than {_MOST_DEPTH} types within each other")
    which, value = saved.number(6, "B"), saved.table(8)
    if value is None:
        return
    if which == _TENSOR:
        kind.tensor_type.elem_type = value.number(4, "i")
        _fill_shape(kind.tensor_type, value.table(6))
    elif which == _SEQUENCE:
        item = value.table(4)
        if item is not None:
            _fill_type(kind.sequence_type.elem_type, item, depth + 1)
    elif which == _MAP:
        kind.map_type.key_type = value.number(4, "i")
        item = value.table(6)
        if item is not None:
            _fill_type(kind.map_type.value_type, item, depth + 1)


def _fill_shape(tensor: "onnx.TypeProto.Tensor", saved: Table | None) -> None:
    if saved is None:
        return
    tensor.shape.SetInParent()  # a scalar has a shape without dimensions
    for each in saved.tables(4):
        dimension, value = tensor.shape.dim.add(), each.table(4)
        which = 0 if value is None else value.number(4, "b")
        if value is not None and which == _KNOWN:
            dimension.dim_value = value.number(6, "q")
        elif value is not None and which == _NAMED:
            dimension.dim_param = value.text(8)
