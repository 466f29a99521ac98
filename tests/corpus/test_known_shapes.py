"""The shapes that the search for fitting sizes knows, against the data of ONNX's operator tests."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import onnx
import pytest
from onnx import numpy_helper

from harness.corpus.inputs.fitting.known_tensors import NOTHING, KnownTensor, results_of
from harness.corpus.inputs.fitting.small_tensors import MOST_NUMBERS
from harness.corpus.suites.suites import operator_tests

BY_VALUES = {
    "Attention", "Compress", "ImageDecoder", "Loop", "MaxUnpool", "NonMaxSuppression", "NonZero", "Range",
    "StringNormalizer", "StringSplit", "Unique",
}  # fmt: skip
"""Operators with results whose shapes depend on values, beyond few numbers."""

OF_ONE_RESULT = {
    "BatchNormalization", "Dropout", "DynamicQuantizeLinear", "LayerNormalization", "LinearAttention",
    "MaxPool", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss",
}  # fmt: skip
"""Operators whose further results are unknown, and losses, which ONNX infers only if nothing is reduced."""

OF_TEXTS = {"LabelEncoder", "RegexFullMatch", "StringConcat"}


class Known(NamedTuple):
    """An output of a test: what is known of its extents, and its shape."""

    test: str
    operator: str
    dims: tuple[int, ...] | None
    shape: tuple[int, ...]


def outputs_of(folder: Path) -> Iterator[Known]:
    """Yield the outputs of a test of one node."""
    model = onnx.load(folder / "model.onnx")
    if len(model.graph.node) != 1:
        return
    node, data = model.graph.node[0], folder / "test_data_set_0"
    given = {}
    for number, port in enumerate(model.graph.input):
        if not port.type.HasField("tensor_type"):
            return
        array = numpy_helper.to_array(onnx.load_tensor(data / f"input_{number}.pb"))
        numbers = array if array.size <= MOST_NUMBERS and array.dtype.kind in "biuf" else None
        given[port.name] = KnownTensor(array.shape, numbers)
    opsets = {one.domain: one.version for one in model.opset_import}
    results = results_of(node, [given[name] if name else None for name in node.input], opsets)
    known = dict(zip(node.output, results, strict=True))
    for number, port in enumerate(model.graph.output):
        if port.type.HasField("tensor_type"):
            shape = tuple(onnx.load_tensor(data / f"output_{number}.pb").dims)
            yield Known(folder.name, node.op_type, known.get(port.name, NOTHING).dims, shape)


@pytest.fixture(scope="module")
def outputs() -> list[Known]:
    folders = sorted(path.parent for path in operator_tests().glob("*/model.onnx"))
    return [one for folder in folders for one in outputs_of(folder)]


def test_no_shape_is_wrong(outputs: list[Known]) -> None:
    assert len(outputs) > 1500
    assert [one for one in outputs if one.dims is not None and one.dims != one.shape] == []


def test_shapes_of_all_other_operators_are_known(outputs: list[Known]) -> None:
    assert {one.operator for one in outputs if one.dims is None} <= BY_VALUES | OF_ONE_RESULT | OF_TEXTS
