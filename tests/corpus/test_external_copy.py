"""Copies of models with their weights in another file."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.corpus.case import Case
from harness.corpus.derived.external_copy import ALIGNMENT, SMALLEST, external_copy
from harness.corpus.derived.scenario_case import Inapplicable, scenario_case
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import ModelError
from harness.corpus.suites.suite import open_folder

ROWS = SMALLEST // 4

pytestmark = pytest.mark.usefixtures("own_cache")


def weight(name: str, dtype: int, values: list[int], *, raw: bool) -> TensorProto:
    content = helper.make_tensor(name, dtype, [len(values)], values)
    if raw:
        content = numpy_helper.from_array(numpy_helper.to_array(content), name)
    assert content.HasField("raw_data") is raw
    return content


@pytest.fixture
def case(tmp_path: Path) -> Case:
    numbers = [index % 7 for index in range(ROWS)]
    weights = [
        weight("raw", TensorProto.FLOAT, numbers, raw=True),
        weight("typed", TensorProto.FLOAT, numbers, raw=False),
        weight("nibbles", TensorProto.INT4, numbers * 8, raw=False),
        weight("small", TensorProto.FLOAT, numbers[:-1], raw=True),
        TensorProto(name="text", data_type=TensorProto.STRING, dims=[1], string_data=[b"a" * SMALLEST]),
    ]
    names = [one.name for one in weights]
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"]) for name in names]
    outputs = [helper.make_empty_tensor_value_info(f"{name}_out") for name in names]
    graph = helper.make_graph(nodes, "g", [], outputs, weights)
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    (tmp_path / "models").mkdir()
    onnx.save(model, tmp_path / "models" / "one.onnx")
    return load_case(open_folder(tmp_path / "models"), "one.onnx", {})


def test_weights_move_and_keep_their_values(case: Case) -> None:
    copy = external_copy(case)
    assert copy is not None
    assert copy.digest == case.digest
    assert copy.model_path.read_bytes() != case.model_path.read_bytes()
    assert [file.name for file in copy.external] == ["weights.bin"]
    before, after = onnx.load(case.model_path), onnx.load(copy.model_path, load_external_data=False)
    moved = {one.name for one in after.graph.initializer if one.data_location == TensorProto.EXTERNAL}
    assert moved == {"raw", "typed", "nibbles"}
    for one in after.graph.initializer:
        entries = {entry.key: entry.value for entry in one.external_data}
        assert int(entries.get("offset", 0)) % ALIGNMENT == 0
    loaded = onnx.load(copy.model_path)
    for was, now in zip(before.graph.initializer, loaded.graph.initializer, strict=True):
        np.testing.assert_array_equal(numpy_helper.to_array(was), numpy_helper.to_array(now))


def test_the_copy_is_made_once(case: Case) -> None:
    first = external_copy(case)
    assert first is not None
    stamp = first.model_path.stat().st_mtime_ns
    again = external_copy(case)
    assert again == first
    assert first.model_path.stat().st_mtime_ns == stamp


def test_a_model_with_external_data_is_its_own_copy(case: Case) -> None:
    copy = external_copy(case)
    assert copy is not None
    assert external_copy(copy) is copy


def test_a_model_without_weights_cannot_play(write_model: Callable[..., Path]) -> None:
    path = write_model()
    case = load_case(open_folder(path.parent), path.name, {})
    assert scenario_case(case, "external_data") == Inapplicable(
        f"no weight of the model takes {SMALLEST} bytes or more"
    )


def test_a_broken_weight_is_the_models_fault(tmp_path: Path) -> None:
    broken = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], float_data=[1.0])
    graph = helper.make_graph(
        [helper.make_node("Identity", ["w"], ["y"])],
        "g",
        [],
        [helper.make_empty_tensor_value_info("y")],
        [broken],
    )
    path = tmp_path / "models" / "one.onnx"
    path.parent.mkdir()
    path.write_bytes(helper.make_model(graph).SerializeToString())
    case = load_case(open_folder(path.parent), path.name, {})
    with pytest.raises(ModelError, match=r"one\.onnx"):
        external_copy(case)
