"""The formulas that say which of two answers is right, by hand."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from benchmarks.reference_trust.formulas import formula
from benchmarks.reference_trust.subject import subject

LINE = np.array([[[1.0, -2.0, 3.0, -4.0]]])


def by_formula(op_type: str, opset: int, *values: Any, outputs: int = 1, **attributes: Any) -> list[Any]:
    names = [f"x{place}" for place in range(len(values))]
    node = helper.make_node(op_type, names, [f"y{place}" for place in range(outputs)], **attributes)
    arrays = [None if value is None else np.asarray(value) for value in values]
    found = formula(subject(node, opset, opset, arrays))
    assert found is not None
    return found


def test_without_a_formula_there_is_none() -> None:
    assert formula(subject(helper.make_node("Relu", ["x"], ["y"]), 14, 14, [LINE])) is None


def test_p_norms_take_absolute_values() -> None:
    found = by_formula("LpNormalization", 22, [[3.0, -1.0]], p=1, axis=-1)
    assert found[0].tolist() == [[0.75, -0.25]]
    assert by_formula("LpNormalization", 22, [[0.0, 0.0]], p=2)[0].tolist() == [[0.0, 0.0]]
    assert by_formula("GlobalLpPool", 2, LINE, p=1)[0].tolist() == [[[10.0]]]


def test_batch_normalization_uses_the_given_statistics() -> None:
    x = np.ones((1, 2, 2))
    found = by_formula(
        "BatchNormalization", 9, x, [2.0, 1.0], [0.5, 0.0], [0.0, 1.0], [3.0, 4.0], epsilon=1.0
    )
    assert found[0].tolist() == [[[1.5, 1.5], [0.0, 0.0]]]


def test_lrn_sums_over_neighbouring_channels() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0]).reshape(1, 4, 1, 1)
    found = by_formula("LRN", 13, x, size=3, alpha=3.0, beta=1.0, bias=1.0)
    assert found[0].ravel().tolist() == pytest.approx([1 / 6, 2 / 15, 3 / 30, 4 / 26])
    # Of an even size the longer half is behind.
    even = by_formula("LRN", 13, x, size=2, alpha=2.0, beta=1.0, bias=0.0)
    assert even[0].ravel().tolist() == pytest.approx([1 / 5, 2 / 13, 3 / 25, 4 / 16])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [1.0, 3.0, 3.0]),
        ({"strides": [3]}, [1.0]),
        # The second window would start at 3, within the data, and is cut off.
        ({"strides": [3], "ceil_mode": 1}, [1.0, -4.0]),
        ({"strides": [2], "auto_pad": "SAME_UPPER"}, [1.0, 3.0]),
        ({"strides": [3], "auto_pad": "SAME_LOWER"}, [1.0, 3.0]),
        ({"dilations": [2]}, [3.0, -2.0]),
        ({"pads": [1, 0]}, [1.0, 1.0, 3.0, 3.0]),
    ],
)
def test_pooling(given: dict[str, Any], expected: list[float]) -> None:
    assert by_formula("MaxPool", 22, LINE, kernel_shape=[2], **given)[0].ravel().tolist() == expected


def test_padding_counts_where_it_is_asked_for() -> None:
    for count, first in ((0, 1.0), (1, 0.5)):
        given: dict[str, Any] = {"pads": [1, 0], "strides": [2], "count_include_pad": count}
        found = by_formula("AveragePool", 22, LINE, kernel_shape=[2], **given)
        assert found[0].ravel().tolist() == [first, 0.5]


def test_positions_of_the_largest() -> None:
    image = np.array([[[[1.0, 9.0], [2.0, 3.0]]]])
    for order, place in ((0, 1), (1, 2)):
        found = by_formula("MaxPool", 22, image, outputs=2, kernel_shape=[2, 2], storage_order=order)
        assert found[1].ravel().tolist() == [place]


def test_softmax_before_13_is_over_all_axes_behind() -> None:
    x = np.zeros((2, 2, 2))
    assert by_formula("Softmax", 11, x, axis=1)[0].ravel().tolist() == [0.25] * 8
    assert by_formula("Softmax", 13, x, axis=1)[0].ravel().tolist() == [0.5] * 8
    assert by_formula("LogSoftmax", 13, np.array([[0.0, 1e4]]))[0].tolist() == [[-1e4, 0.0]]


def test_unique_rows_in_the_order_in_which_they_occur() -> None:
    x = np.array([[2.0, 1.0, 2.0]])
    values, first, inverse, counts = by_formula("Unique", 11, x, outputs=4, axis=-1, sorted=0)
    assert values.tolist() == [[2.0, 1.0]]
    assert (first.tolist(), inverse.tolist(), counts.tolist()) == ([0, 1], [0, 1, 0], [2, 1])
    assert by_formula("Unique", 11, x, outputs=4)[0].tolist() == [1.0, 2.0]


def test_resize_by_coordinates() -> None:
    x, twice = np.array([[0.0, 1.0]]), np.array([1.0, 2.0])
    linear = by_formula("Resize", 19, x, None, twice, mode="linear")[0]
    assert linear.tolist() == [[0.0, 0.25, 0.75, 1.0]]
    corners = by_formula(
        "Resize", 19, x, None, twice, mode="linear", coordinate_transformation_mode="align_corners"
    )
    assert corners[0].ravel().tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    nearest = by_formula(
        "Resize", 19, x, None, twice, coordinate_transformation_mode="asymmetric", nearest_mode="ceil"
    )
    assert nearest[0].tolist() == [[0.0, 1.0, 1.0, 1.0]]


def test_cubic_samples_meet_the_pixels() -> None:
    x = np.arange(16.0).reshape(1, 1, 4, 4)
    grid = np.array([[[[-1.0, -1.0], [1.0, 1.0]]]])
    for padding in ("zeros", "border", "reflection"):
        given: dict[str, Any] = {"mode": "cubic", "padding_mode": padding, "align_corners": 1}
        assert by_formula("GridSample", 22, x, grid, **given)[0].ravel().tolist() == [0.0, 15.0]
