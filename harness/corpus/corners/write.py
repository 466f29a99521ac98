"""The corners as models with test data, in ONNX's usual layout."""

from pathlib import Path

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from harness.corpus.corners.corner import Corner
from harness.corpus.corners.equal_values import TIES
from harness.corpus.corners.integers import INTEGERS
from harness.corpus.corners.not_finite import NOT_FINITE
from harness.corpus.corners.sizes import SIZES
from harness.corpus.corners.zeros import ZEROS
from harness.corpus.model.protos import value_info

_OPSET, _IR_VERSION = 20, 9
"""The IR version is that of the opset, so that old onnxruntimes load the models."""


def corners() -> dict[str, Corner]:
    """Return every corner by its name, which is unique."""
    makers = (*NOT_FINITE, *INTEGERS, *ZEROS, *TIES, *SIZES)
    with np.errstate(all="ignore"):  # corners are what numpy warns of
        return {corner.name: corner for make in makers for corner in make()}


def write_corner_suite(folder: Path) -> None:
    """Write ``<name>/model.onnx`` with ``test_data_set_0`` for each corner into an empty folder."""
    for name, corner in corners().items():
        home = folder / name
        data_set = home / "test_data_set_0"
        data_set.mkdir(parents=True)
        (home / "model.onnx").write_bytes(model_of(corner).SerializeToString())
        fed = [array for index, array in enumerate(corner.inputs) if index not in corner.constants]
        for role, arrays in (("input", fed), ("output", corner.expected)):
            for index, array in enumerate(arrays):
                data = numpy_helper.from_array(array).SerializeToString()
                (data_set / f"{role}_{index}.pb").write_bytes(data)


def model_of(corner: Corner) -> ModelProto:
    """Return the model of a corner; inputs are ``a``, ``b``, ``c``, outputs ``y`` and ``z``."""
    attributes = dict(corner.attributes)
    if corner.op == "Cast":
        attributes["to"] = helper.np_dtype_to_tensor_dtype(corner.expected[0].dtype)
    named = dict(zip("abcde", corner.inputs, strict=False))
    expected = dict(zip("yz", corner.expected, strict=False))
    made = ["x"] if corner.then else [*expected]
    nodes = [helper.make_node(corner.op, [*named], made, **attributes)]
    if corner.then:
        nodes.append(helper.make_node(corner.then, made, [*expected]))
    weights = {"abcde"[index] for index in corner.constants}
    declared = {
        name: value_info(name, array.dtype.name, array.shape) for name, array in (named | expected).items()
    }
    graph = helper.make_graph(
        nodes,
        corner.name,
        [declared[name] for name in named if name not in weights],
        [declared[name] for name in expected],
        [numpy_helper.from_array(array, name) for name, array in named.items() if name in weights],
    )
    opset = helper.make_opsetid("", _OPSET)
    return helper.make_model(graph, ir_version=_IR_VERSION, opset_imports=[opset])
