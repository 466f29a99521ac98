"""Models in a Loop that computes them as often as an input says."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest

from harness.core.values.value import tensor
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.case import Case
from harness.corpus.derived.looped_copy import ITERATIONS, looped_copy
from harness.corpus.derived.scenario_case import Inapplicable, scenario_case
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder
from harness.engine.measuring.cell_record import model_content
from tests.kit import parse

pytestmark = pytest.mark.usefixtures("own_cache")

BRANCH = """g (float[N] x, bool c) => (float[N] y, float[N] z) <float w = {2}> {
    z = Mul(x, w)
    y = If (c) <
        then_branch = t () => (float[N] a) { a = Add(z, x) },
        else_branch = e () => (float[N] b) { b = Identity(z) }
    >
}"""
YES = np.array([1], bool).reshape(())
X = np.arange(3, dtype=np.float32)


def case_of(folder: Path, text: str) -> Case:
    (folder / "models").mkdir()
    (folder / "models" / "one.onnx").write_bytes(parse(text))
    return load_case(open_folder(folder / "models"), "one.onnx", {"N": 3})


def run(path: Path, feeds: dict[str, Any]) -> Any:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return dict(zip([one.name for one in session.get_outputs()], session.run(None, feeds), strict=True))


@pytest.mark.parametrize("count", [1, 5])
def test_a_loop_computes_the_model(tmp_path: Path, count: int) -> None:
    """Outputs that a branch reads keep their values, and weights are found inside the body."""
    case = case_of(tmp_path, BRANCH)
    copy = looped_copy(case)
    assert isinstance(copy, Case)
    onnx.checker.check_model(onnx.load(copy.model_path), full_check=True)
    feeds = {"x": X, "c": YES}
    found = run(copy.model_path, {**feeds, ITERATIONS: np.array(count)})
    assert found.keys() == {"y", "z"}
    for name, value in run(case.model_path, feeds).items():
        assert np.array_equal(found[name], value), name


def test_its_data_ask_for_one_iteration(tmp_path: Path) -> None:
    case = case_of(tmp_path, BRANCH)
    given = DataSet(name="given", inputs=(("x", tensor(X)), ("c", tensor(YES))))
    plain = msgspec.structs.replace(case, data_sets=(given,))
    copy = scenario_case(plain, "terminate")
    assert isinstance(copy, Case)
    assert copy.digest == case.digest
    ((name, value),) = copy.data_sets[0].inputs[2:]
    assert (name, value) == (ITERATIONS, tensor(np.array(1)))
    assert copy.ports[-1].name == ITERATIONS
    assert model_content(copy) == model_content(plain)
    assert scenario_case(copy, "terminate") is copy


def test_an_output_that_is_an_input_stays_outside(tmp_path: Path) -> None:
    copy = looped_copy(case_of(tmp_path, "g (float[N] x) => (float[N] x, float[N] y) { y = Neg(x) }"))
    assert isinstance(copy, Case)
    found = run(copy.model_path, {"x": X, ITERATIONS: np.array(2)})
    assert np.array_equal(found["y"], -X)
    assert np.array_equal(found["x"], X)


def test_what_no_loop_carries(tmp_path: Path) -> None:
    case = case_of(tmp_path, "g (float[N] x) => (string[N] y) { y = Cast<to=8>(x) }")
    assert scenario_case(case, "terminate") == Inapplicable(
        "an output is no tensor of numbers, and a loop carries such tensors alone"
    )
