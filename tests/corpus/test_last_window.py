"""Pools whose number of windows is rounded up: the last one holds something of the input."""

import onnx
import pytest

from harness.annex.made.forms.draw import ChoiceStream
from harness.annex.made.forms.numbered_forms import KernelChoice, form_model, known_operators
from harness.corpus.model.last_window import begins_behind


@pytest.mark.parametrize(
    ("size", "reach", "stride", "pads", "behind"),
    [
        (2, 1, 2, (0, 0), True),  # windows at 0 and 2, and the input ends at 1
        (3, 1, 2, (0, 0), False),
        (4, 3, 2, (0, 0), False),
        (2, 2, 3, (1, 1), True),  # windows at -1 and 2
        (3, 2, 3, (1, 1), False),
        (1, 1, 1, (0, 0), False),
    ],
)
def test_where_the_last_window_begins(
    size: int, reach: int, stride: int, pads: tuple[int, int], *, behind: bool
) -> None:
    assert begins_behind((size,), (reach,), {"strides": (stride,), "pads": pads}) is behind
    attributes = {"strides": (1, stride), "pads": (0, pads[0], 0, pads[1])}
    assert begins_behind((5, size), (1, reach), attributes) is behind
    if reach > 1:
        dilated = {"strides": (stride,), "pads": pads, "dilations": (reach - 1,)}
        assert begins_behind((size,), (2,), dilated) is behind


@pytest.mark.parametrize("name", ["AveragePool", "MaxPool", "LpPool"])
def test_shapes_of_forms_are_those_of_the_cpu_kernels(name: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    operator = next(one for one in known_operators()[name] if one.last == 21)
    types = {"T": "float32", "I": "int64"}
    rounded_up = 0
    for number in range(150):
        built = form_model(KernelChoice(operator=operator, opset=21, types=types), ChoiceStream(12, number))
        node = next(one for one in built.model.graph.node if one.op_type == name)
        if all(one.name != "ceil_mode" or not one.i for one in node.attribute):
            continue
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        session = runtime.InferenceSession(
            built.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        result = node.output[0]
        if result not in [port.name for port in session.get_outputs()]:
            continue
        shape = session.run([result], built.inputs)[0].shape
        rounded_up += 1
        inferred = onnx.shape_inference.infer_shapes(built.model).graph
        (port,) = [one for one in (*inferred.value_info, *inferred.output) if one.name == result]
        wanted = [dim.dim_value for dim in port.type.tensor_type.shape.dim]
        assert all(there in (0, here) for there, here in zip(wanted, shape, strict=True)), number
    assert rounded_up > 5
