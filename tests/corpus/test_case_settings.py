"""Dimensions and inputs of single models: from the matrix, and from the side file."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from harness.core.records.model_settings import InputSettings, ModelSettings
from harness.core.values.value import Array, Tensor
from harness.corpus.case import Case
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import ModelError
from harness.corpus.suites.suite import open_folder

BERT = """agraph (int64[batch, seq] input_ids, int64[batch, seq] attention_mask, float[batch, 3] x)
=> (float[b, s] y) { y = Identity(x) }"""
NOTHING = ModelSettings()


@pytest.fixture
def bert(write_model: Callable[..., Path]) -> Path:
    return write_model("m/bert.onnx", BERT)


def load(path: Path, settings: ModelSettings = NOTHING, **dimensions: int) -> Case:
    return load_case(open_folder(path.parent), path.name, dimensions, settings=settings)


def inputs(case: Case) -> dict[str, Array]:
    return {name: value.array for name, value in case.data_sets[0].inputs if isinstance(value, Tensor)}


def side(path: Path, text: str) -> None:
    Path(f"{path}.toml").write_text(text, encoding="utf-8")


def settings_of(**inputs: InputSettings) -> ModelSettings:
    return ModelSettings(inputs={**inputs})


def test_sizes_come_from_the_matrix_then_the_side_file_then_for_all_models(bert: Path) -> None:
    assert inputs(load(bert))["input_ids"].shape == (2, 3)
    assert inputs(load(bert, batch=5, seq=6, other=7))["input_ids"].shape == (5, 6)
    side(bert, "dimensions = { seq = 3 }")
    assert inputs(load(bert, batch=5, seq=6))["input_ids"].shape == (5, 3)
    settings = ModelSettings(dimensions={"batch": 2})
    assert inputs(load(bert, settings, batch=5, seq=6))["input_ids"].shape == (2, 3)


def test_ranges_values_and_shapes_are_followed_and_part_of_the_digest(bert: Path) -> None:
    side(bert, "dimensions = { batch = 8, seq = 64 }\ninputs = { input_ids = { low = 100, high = 103 } }")
    case = load(bert)
    assert set(inputs(case)["input_ids"].ravel().tolist()) == {100, 101, 102}
    assert inputs(case)["attention_mask"].all()
    settings = settings_of(attention_mask=InputSettings(value=0), x=InputSettings(low=-2.0, high=-1.0))
    changed = load(bert, settings)
    assert not inputs(changed)["attention_mask"].any()
    assert -2 <= inputs(changed)["x"].min() < -1.5 < inputs(changed)["x"].max() <= -1
    assert changed.digest != case.digest
    assert load(bert, settings).digest == changed.digest
    shaped = settings_of(x=InputSettings(shape=[8, 3]))
    assert inputs(load(bert, shaped))["x"].shape == (8, 3)
    # One symbol has one size: a size in the settings also holds for the shape.
    with pytest.raises(ModelError, match=r"the shape \[8, 3\] is not one of \[4, 3\]"):
        load(bert, ModelSettings(dimensions={"batch": 4}).over(shaped))


def test_the_matrix_replaces_what_the_side_file_says_of_the_same_input(bert: Path) -> None:
    side(bert, "inputs = { x = { high = 1.0 }, input_ids = { value = 7 } }")
    found = inputs(load(bert, settings_of(x=InputSettings(value=9))))
    assert set(found["x"].ravel().tolist()) == {9}
    assert set(found["input_ids"].ravel().tolist()) == {7}


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        (
            ModelSettings(dimensions={"bacth": 2}),
            "dimension 'bacth', which it does not have; did you mean 'batch'",
        ),
        (
            settings_of(input_idx=InputSettings(high=2)),
            "input 'input_idx', which it does not have; did you mean 'input_ids'",
        ),
        (settings_of(x=InputSettings(shape=[2, 4])), r"'x': the shape \[2, 4\] is not one of \[\?, 3\]"),
        (settings_of(x=InputSettings(shape=[3])), r"the shape \[3\] is not one of"),
        (settings_of(input_ids=InputSettings(high=2.5)), "2.5 is no value of type int64"),
        (settings_of(input_ids=InputSettings(value="a")), "'a' is no value of type int64"),
        (settings_of(x=InputSettings(value="a")), "'a' is no value of type float32"),
        (ModelSettings(dimensions={"seq": 1 << 40}), "would be too large; 'input_ids' is"),
    ],
)
def test_settings_that_do_not_fit_the_model(bert: Path, settings: ModelSettings, cause: str) -> None:
    with pytest.raises(ModelError, match=cause):
        load(bert, settings)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("dimensions = {", r"bert\.onnx\.toml: "),
        ("dims = 1", "dims: unknown key; valid: dimensions, fixed, inputs, vary, agree"),
        ("inputs = { x = { hihg = 1 } }", "inputs.x.hihg: unknown key; did you mean 'high'"),
        ("inputs = { x = { low = 1 } }\ndimensions = { a = -1 }", r"\(2 problems in all\)"),
        ("dimensions = { bacth = 2 }", "did you mean 'batch'"),
        ("\ufeffdimensions = 3", "dimensions: expected a table, got 3"),
        (f"inputs = {'[' * 5000}", "nested too deeply"),
    ],
)
def test_a_wrong_side_file_costs_its_own_model_and_says_where(bert: Path, text: str, cause: str) -> None:
    side(bert, text)
    with pytest.raises(ModelError, match=cause) as caught:
        load(bert)
    assert len(str(caught.value).splitlines()) == 1


def test_settings_of_inputs_that_are_not_generated_are_an_error(bert: Path) -> None:
    (bert.parent / "test_data_set_0").mkdir()
    for index in range(3):
        np.save(bert.parent / "test_data_set_0" / f"input_{index}.npy", np.ones((1, 3), np.float32))
    assert load(bert, ModelSettings(dimensions={"seq": 3})).data_sets[0].name == "test_data_set_0"
    with pytest.raises(ModelError, match="nothing is generated: it has test_data_set_0"):
        load(bert, settings_of(x=InputSettings(value=1)))


def test_only_tensors_can_be_described(write_model: Callable[..., Path]) -> None:
    path = write_model(
        "m/s.onnx", "agraph (seq(float[2]) s) => (float[n] y) { y = ConcatFromSequence<axis=0>(s) }"
    )
    with pytest.raises(ModelError, match="'s': only tensors can be described, and this is of kind sequence"):
        load(path, settings_of(s=InputSettings(value=1)))


def test_sizes_that_are_spelled_as_expressions_follow(write_model: Callable[..., Path]) -> None:
    path = write_model(
        "m/d.onnx", "agraph (float[past] p, float[seq] s, float[t] m) => (float[n] y) { y = Neg(p) }"
    )
    model = onnx.load(path)
    model.graph.input[2].type.tensor_type.shape.dim[0].dim_param = "past + 2*seq"
    onnx.save(model, path)
    assert inputs(load(path))["m"].shape == (8,)
    assert inputs(load(path, seq=4))["m"].shape == (10,)
    assert inputs(load(path, seq=4, past=0))["m"].shape == (8,)
    # The size of an expression as a whole can be given, too.
    settings = ModelSettings(dimensions={"past": 5})
    assert inputs(load(path, settings))["m"].shape == (11,)


def test_a_shape_helps_a_model_that_declares_none(write_model: Callable[..., Path]) -> None:
    path = write_model("m/r.onnx", "agraph (float[] x) => (float[] y) { y = Neg(x) }")
    model = onnx.load(path)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    onnx.save(model, path)
    with pytest.raises(ModelError, match=r"no shape is declared .* give it a shape"):
        load(path)
    assert inputs(load(path, settings_of(x=InputSettings(shape=[2, 5]))))["x"].shape == (2, 5)
