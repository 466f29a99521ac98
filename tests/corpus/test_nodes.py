"""What nodes hold."""

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from harness.corpus.model.nodes import constant_of


@pytest.mark.parametrize(
    ("held", "value"),
    [
        ({"value": numpy_helper.from_array(np.array([[1, 2]], np.uint8))}, np.array([[1, 2]], np.uint8)),
        ({"value_int": 3}, np.array(3)),
        ({"value_ints": [3, 4]}, np.array([3, 4])),
        ({"value_float": 0.5}, np.array(0.5, np.float32)),
        ({"value_floats": [0.5]}, np.array([0.5], np.float32)),
        ({"value_string": "a"}, None),
        ({}, None),
    ],
)
def test_what_a_constant_holds_in_any_of_its_attributes(held: dict[str, Any], value: Any) -> None:
    found = constant_of(helper.make_node("Constant", [], ["c"], **held))
    assert (found is None) == (value is None)
    if found is not None:
        array = numpy_helper.to_array(found)
        assert (array.dtype, array.shape) == (value.dtype, value.shape)
        assert np.array_equal(array, value)
