"""The corners as models with test data, in ONNX's usual layout."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from harness.core.value import Array, tensor
from harness.corpus.corners.corner import Corner
from harness.corpus.corners.roster import corners
from harness.corpus.protos import tensor_proto

if TYPE_CHECKING:
    import onnx

IR_VERSION = 9
"""That of the opset, so that old onnxruntimes load the models."""


def write_corner_suite(folder: Path) -> None:
    """Write ``<name>/model.onnx`` with ``test_data_set_0`` for each corner into an empty folder."""
    for name, corner in corners().items():
        home = folder / name
        data_set = home / "test_data_set_0"
        data_set.mkdir(parents=True)
        (home / "model.onnx").write_bytes(model_of(corner).SerializeToString())
        fed = [array for index, array in _present(corner) if index not in corner.constants]
        for role, arrays in (("input", fed), ("output", corner.expected)):
            for index, array in enumerate(arrays):
                data = tensor_proto(tensor(array)).SerializeToString()
                (data_set / f"{role}_{index}.pb").write_bytes(data)


def model_of(corner: Corner) -> "onnx.ModelProto":
    """The model of a corner; inputs are ``a``, ``b``, ``c``, outputs ``y`` and ``z``."""
    import onnx
    from onnx import helper

    attributes = dict(corner.attributes)
    if corner.op == "Cast":
        attributes["to"] = helper.np_dtype_to_tensor_dtype(corner.expected[0].dtype)
    names = ["" if array is None else "abcde"[index] for index, array in enumerate(corner.inputs)]
    outputs = ["y", "z"][: len(corner.expected)]
    made = ["x"] if corner.then else outputs
    nodes = [helper.make_node(corner.op, names, made, **attributes)]
    if corner.then:
        nodes.append(helper.make_node(corner.then, made, outputs))
    inputs, weights = [], []
    for index, array in _present(corner):
        if index in corner.constants:
            weight = tensor_proto(tensor(array))
            weight.name = names[index]
            weights.append(weight)
        else:
            inputs.append(_declared(names[index], array))
    ports = [_declared(name, array) for name, array in zip(outputs, corner.expected, strict=True)]
    graph = helper.make_graph(nodes, corner.name, inputs, ports, weights)
    opset = helper.make_opsetid("", corner.opset)
    return onnx.helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[opset])


def _present(corner: Corner) -> list[tuple[int, Array]]:
    return [(index, array) for index, array in enumerate(corner.inputs) if array is not None]


def _declared(name: str, array: Array) -> "onnx.ValueInfoProto":
    from onnx import helper

    kind = helper.np_dtype_to_tensor_dtype(np.dtype(array.dtype))
    return helper.make_tensor_value_info(name, kind, array.shape)
