"""Batches of different slots, and copies of models that take adapters."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from harness.core.values.value import Tensor
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.case import Case
from harness.corpus.derived.scenario_case import Inapplicable, scenario_case
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import Suite

onnxruntime: Any = pytest.importorskip("onnxruntime")


def case_of(folder: Path, text: str) -> Case:
    (folder / "m").mkdir(exist_ok=True)
    head = '<ir_version: 9, opset_import: ["" : 17]> '
    onnx.save(onnx.parser.parse_model(head + text), folder / "m" / "model.onnx")
    suite = Suite(name="m", root=folder / "m", kind="folder", names=("model.onnx",))
    return load_case(suite, "model.onnx", {})


def only_input(data_set: DataSet) -> np.ndarray:
    ((_, value), *_) = data_set.inputs
    assert isinstance(value, Tensor)
    return value.array


def test_slots_differ_and_run_alone_and_in_reverse(tmp_path: Path, own_cache: Path) -> None:
    assert own_cache
    found = scenario_case(
        case_of(tmp_path, "g (float[batch,4] x) => (float[batch,4] y) { y = Relu(x) }"), "batch_slots"
    )
    assert isinstance(found, Case)
    sets = {one.name: only_input(one) for one in found.data_sets}
    assert list(sets) == [
        "given",
        "3 slots",
        "slots in reverse order",
        *(f"slot {at} alone" for at in range(3)),
    ]
    whole = sets["3 slots"]
    assert len(np.unique(whole, axis=0)) == 3
    assert np.array_equal(sets["slots in reverse order"], whole[::-1])
    assert all(np.array_equal(sets[f"slot {at} alone"], whole[at : at + 1]) for at in range(3))


@pytest.mark.parametrize(
    ("text", "played"),
    [
        ("g (float[2,4] x) => (float[2,4] y) { y = Relu(x) }", True),
        ("g (float[1,4] x) => (float[1,4] y) { y = Relu(x) }", False),
        ("g (float[2,4] x, float[4,3] w) => (float[2,3] y) { y = MatMul(x, w) }", False),
        ("g (float x) => (float y) { y = Relu(x) }", False),
    ],
)
def test_a_fixed_batch_is_turned(tmp_path: Path, own_cache: Path, text: str, *, played: bool) -> None:
    assert own_cache
    found = scenario_case(case_of(tmp_path, text), "batch_slots")
    assert isinstance(found, Case) is played
    if isinstance(found, Case):
        assert [one.name for one in found.data_sets] == ["given", "slots in reverse order"]


def weights(name: str, count: int) -> str:
    return f"float[2,2] {name} = {{{', '.join(str(number + count) for number in range(4))}}}"


def test_a_copy_with_adapters_computes_what_the_model_does(tmp_path: Path, own_cache: Path) -> None:
    assert own_cache
    constants = f"{weights('v', 1)}, {weights('w', 5)}"
    nodes = "a = MatMul(x, v) y = MatMul(a, w)"
    text = f"g (float[3,2] x) => (float[3,2] y) <{constants}> {{ {nodes} }}"
    case = case_of(tmp_path, text)
    found = scenario_case(case, "adapters")
    assert isinstance(found, Case)
    names = [one.name for one in found.data_sets]
    assert names == ["no adapter", "one adapter", "another adapter", "no adapter again", "two adapters"]
    assert [len(one.inputs) - len(case.ports) for one in found.data_sets] == [0, 2, 2, 0, 4]
    plain, copy = (
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        for path in (case.model_path, found.model_path)
    )
    results = []
    for data_set in found.data_sets:
        feeds = {name: value.array for name, value in data_set.inputs if isinstance(value, Tensor)}
        results.append(copy.run(None, feeds)[0])
    (right,) = plain.run(None, {"x": only_input(found.data_sets[0])})
    assert [np.array_equal(right, result) for result in results] == [True, False, False, True, False]
    assert not any(np.allclose(results[at], results[at + 1]) for at in range(4))


def test_a_model_with_one_product_takes_no_adapters(tmp_path: Path, own_cache: Path) -> None:
    assert own_cache
    text = f"g (float[3,2] x) => (float[3,2] y) <{weights('w', 1)}> {{ y = MatMul(x, w) }}"
    assert isinstance(scenario_case(case_of(tmp_path, text), "adapters"), Inapplicable)
