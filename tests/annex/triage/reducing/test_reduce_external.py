"""Models whose weights lie in files: these are linked and mapped, never read as a whole."""

import os
import resource
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from harness.annex.triage.net import load
from harness.annex.triage.reduce import reduction
from harness.annex.triage.reduction_settings import ReductionSettings
from harness.annex.triage.subject import Subject
from harness.core.values.value import Tensor
from harness.corpus.model.external import external_place
from tests.annex.triage.reducing.reductions import finish

ROWS, COLUMNS = 1 << 20, 640
"""A float32 weight of 2.5 GiB."""


def external_weight(name: str, shape: tuple[int, ...], offset: int = 0) -> onnx.TensorProto:
    weight = onnx.TensorProto(name=name, data_type=1, dims=shape, data_location=onnx.TensorProto.EXTERNAL)
    length = 4 * int(np.prod(shape))
    for key, value in (("location", "weights.bin"), ("offset", offset), ("length", length)):
        weight.external_data.add(key=key, value=str(value))
    return weight


@pytest.fixture
def large(tmp_path: Path) -> Subject:
    """Gather from a sparse file of 2.5 GiB, and nodes around it."""
    file = tmp_path / "weights.bin"
    with file.open("wb") as stream:
        stream.truncate(4 * ROWS * COLUMNS)
        stream.write(np.arange(1, 9, dtype=np.float32).tobytes())
    nodes = [
        onnx.helper.make_node("Abs", ["i"], ["j"], name="before"),
        onnx.helper.make_node("Gather", ["w", "j"], ["g"], name="gather"),
        onnx.helper.make_node("Sin", ["g"], ["s"], name="after"),
        onnx.helper.make_node("Cos", ["s"], ["y"], name="last"),
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "g",
        [onnx.helper.make_tensor_value_info("i", 7, [5])],
        [onnx.helper.make_tensor_value_info("y", 1, [5, COLUMNS])],
        [external_weight("w", (ROWS, COLUMNS))],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    indices = Tensor(dtype="int64", array=np.zeros(5, np.int64))
    return Subject(model=model.SerializeToString(), inputs=(("i", indices),), external=tmp_path)


def gather_stays(subject: Subject) -> bool:
    return any(node.op_type == "Gather" for node in subject.proto().graph.node)


def test_a_weight_of_2_gib_stays_in_its_file_until_it_is_small(large: Subject) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    smallest, tried = finish(reduction(large, ReductionSettings(), lambda _: None), gather_stays)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if sys.platform == "linux":
        assert grown < 300 << 10  # KiB
    assert max(len(one.model) for one in tried) < 64 << 20
    (node,) = smallest.proto().graph.node
    assert node.op_type == "Gather"
    (weight,) = smallest.proto().graph.initializer
    assert not weight.external_data
    assert len(smallest.model) < 300


def test_a_weight_that_must_stay_large_stays_in_its_file(large: Subject) -> None:
    def judge(subject: Subject) -> bool:
        return any(list(one.dims) == [ROWS, COLUMNS] for one in subject.proto().graph.initializer)

    smallest, _ = finish(reduction(large, ReductionSettings(), lambda _: None), judge)
    (weight,) = load(smallest).weights.values()
    assert weight.external
    assert len(smallest.proto().graph.node) == 1


def test_external_data_is_linked_where_a_subject_is_written(large: Subject, tmp_path: Path) -> None:
    home = tmp_path / "trial"
    home.mkdir()
    path = large.write(home)
    assert path.read_bytes() == large.model
    weights = home / "weights.bin"
    assert weights.samefile(tmp_path / "weights.bin")
    (weight,) = onnx.load(path, load_external_data=False).graph.initializer
    assert external_place(weight, home)[2] == 4 * ROWS * COLUMNS
    if os.name == "posix":
        assert weights.stat().st_blocks < 1000


def test_external_data_outside_of_the_folder_is_refused(large: Subject, tmp_path: Path) -> None:
    model = large.proto()
    model.graph.initializer[0].external_data[0].value = "../weights.bin"
    hostile = Subject(model=model.SerializeToString(), inputs=large.inputs, external=tmp_path / "inner")
    home = tmp_path / "trial"
    home.mkdir()
    with pytest.raises(ValueError, match="outside the model's folder"):
        hostile.write(home)
    assert not list(home.iterdir())


def test_a_part_of_an_external_weight_has_its_values(large: Subject) -> None:
    weight = load(large).weights["w"]
    value = weight.value(large.external)
    assert isinstance(value.array.base, np.ndarray)
    np.testing.assert_array_equal(value.array[0, :9], [1, 2, 3, 4, 5, 6, 7, 8, 0])
