"""A copy of a model that computes itself as often as an input says: its nodes are the body of a Loop."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from harness.core.values.value import STRING, tensor
from harness.corpus.case import Case
from harness.corpus.derived.derived_models import LOOPED_FOLDER, MODEL_FILE, derive
from harness.corpus.model.port import Port, ValueType

if TYPE_CHECKING:
    import onnx

_FORMAT = 2
"""Increase it when copies change although their models do not."""

ITERATIONS = "ep_harness_iterations"
"""The last input of a copy, a single int64: how often the model computes itself."""

_NUMBER, _GO, _GO_ON = (f"{ITERATIONS}/{name}" for name in ("number", "go", "go_on"))
"""Values of the body, which Loop asks for."""


def looped_copy(case: Case) -> Case | str:
    """Return the case with a model in a Loop, and one iteration in its data; digest and golden stay the same.

    Every iteration computes the model from the same inputs; the outputs are those of the last one. The copy
    is made in the cache, once. A model in such a loop is its own copy.

    Returns:
        Why there is no such copy, in words.

    Raises:
        ModelError: The model is broken or missing.
        UsageError: The cache cannot be written.
    """
    if any(port.name == ITERATIONS for port in case.ports):
        return case
    if case.external:
        return "its weights lie in another file, which a copy of the model would have to contain"
    if any(one.kind != "tensor" or one.dtype == STRING for one in case.output_types):
        return "an output is no tensor of numbers, and a loop carries such tensors alone"
    folder = derive(
        case,
        LOOPED_FOLDER,
        f"{case.digest}-v{_FORMAT}",
        lambda model: {MODEL_FILE: _in_loop(model).SerializeToString()},
    )
    once = (ITERATIONS, tensor(np.array(1, np.int64)))
    data_sets = tuple(msgspec.structs.replace(one, inputs=(*one.inputs, once)) for one in case.data_sets)
    ports = (*case.ports, Port(name=ITERATIONS, type=ValueType(kind="tensor", dtype="int64", shape=())))
    return msgspec.structs.replace(case, model_path=folder / MODEL_FILE, ports=ports, data_sets=data_sets)


def _in_loop(model: "onnx.ModelProto") -> "onnx.ModelProto":
    """Move the nodes of a model, and the weights that are no inputs, into the body of a Loop."""
    from onnx import TensorProto, helper

    graph = model.graph
    computed = {name for node in graph.node for name in node.output}
    # An output that is an input or a weight itself stays outside.
    outputs = [one for one in graph.output if one.name in computed]
    inner = {one.name: f"{one.name}/in_loop" for one in outputs}
    body = helper.make_graph(graph.node, "body", [], [])
    _rename(body.node, inner)
    body.value_info.extend(info for info in graph.value_info if info.name in computed - inner.keys())
    for name, kind in ((_NUMBER, TensorProto.INT64), (_GO, TensorProto.BOOL)):
        body.input.append(helper.make_tensor_value_info(name, kind, []))
    body.node.append(helper.make_node("Identity", [_GO], [_GO_ON]))
    body.output.append(helper.make_tensor_value_info(_GO_ON, TensorProto.BOOL, []))
    outside = {one.name for one in (*graph.input, *graph.output)}
    body.initializer.extend(one for one in graph.initializer if one.name not in outside)
    kept = [one for one in graph.initializer if one.name in outside]
    del graph.node[:], graph.value_info[:], graph.initializer[:]
    graph.initializer.extend(kept)
    carried = []
    for number, one in enumerate(outputs):
        element = one.type.tensor_type.elem_type
        # The state before the first iteration is empty, so no state has a declared shape.
        carried.append(f"{ITERATIONS}/before{number}")
        empty = helper.make_tensor(carried[-1], element, [0], b"", raw=True)
        graph.node.append(helper.make_node("Constant", [], [carried[-1]], value=empty))
        state = helper.make_tensor_value_info(f"{ITERATIONS}/state{number}", element, None)
        body.input.append(state)
        body.output.append(helper.make_tensor_value_info(inner[one.name], element, None))
    graph.input.append(helper.make_tensor_value_info(ITERATIONS, TensorProto.INT64, []))
    graph.node.append(helper.make_node("Loop", [ITERATIONS, "", *carried], list(inner), body=body))
    return model


def _rename(nodes: "Iterable[onnx.NodeProto]", names: Mapping[str, str]) -> None:
    """Rename values in nodes and in the bodies of these."""
    for node in nodes:
        for ends in (node.input, node.output):
            ends[:] = [names.get(name, name) for name in ends]
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                _rename(graph.node, names)
                for output in graph.output:
                    output.name = names.get(output.name, output.name)
