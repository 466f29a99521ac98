"""Models that are not judged, each by the right word: the model, its data, the CPU EP, or the machine."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.engine.tasks.events import Event
from tests.kit import of_folder, records_of, run_matrix

HEAD = '<ir_version: %d, opset_import: ["" : %d, "nowhere" : 1, "com.microsoft" : 1]> agraph '
RELU = "(float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }"
ADD = "(float[2] x, float[2] z) => (float[2] y) { y = Add(x, z) }"
LOWER = 'case_change_action = "LOWER", locale = "xx_YY"'
STRINGS = f"(string[n] x) => (string[m] y) {{ y = StringNormalizer<{LOWER}>(x) }}"
# Model -> text; IR version and opset, if they are others than usual; verdict on the CPU; what its reason has.
MODELS = {
    "encoder_decoder": (RELU, (), Verdict.PASS, ""),
    "empty_data_set": (RELU, (), Verdict.PASS, ""),
    "outputs_only": (RELU, (), Verdict.PASS, ""),
    "half_a_data_set": (ADD, (), Verdict.NO_INPUT, "no data for 1 of 2 inputs: 'z'"),
    "unfit_data_set": (RELU, (), Verdict.NO_INPUT, "the data do not fit the model: InvalidArgument"),
    "torn_data_set": (RELU, (), Verdict.NO_INPUT, "fix this test data, or remove it"),
    "typo": (RELU, (), Verdict.NO_INPUT, "its settings name the dimension 'bacth'"),
    "large": ("(float[15000, 15000] x) => (float y) { y = ReduceSum(x) }", (), Verdict.NO_INPUT, "too large"),
    "no_shape": (RELU, (), Verdict.NO_INPUT, "give it a shape or dimensions in [[model]]"),
    "sparse": (RELU, (), Verdict.NO_INPUT, "values of type sparse_tensor cannot be fed"),
    "no_kernel": (
        "(float[2, 3, 320] x, float[320] b) => (float[2, 3, 320] y) { y = com.microsoft.BiasAdd(x, b, x) }",
        (),
        Verdict.UNSUPPORTED,
        "Could not find an implementation for BiasAdd",
    ),
    "no_operator": (
        "(float[2] x) => (float[2] y) { y = nowhere.Op(x) }",
        (),
        Verdict.UNSUPPORTED,
        "not a registered function/op",
    ),
    "too_new": (RELU, (9, 99), Verdict.UNSUPPORTED, "opset"),
    "too_new_ir": (RELU, (99, 17), Verdict.UNSUPPORTED, "IR version"),
    "invalid": ("(float[2] x) => (float[2] y) { y = Foo(x) }", (), Verdict.INVALID_MODEL, "No Op registered"),
    "no_model": ("", (), Verdict.INVALID_MODEL, "Git LFS"),
    "no_locale": (STRINGS, (), Verdict.UNAVAILABLE, "the machine lacks this locale"),
}


def write_models(home: Path) -> None:
    for name, (text, versions, _, _) in MODELS.items():
        folder = home / name
        folder.mkdir(parents=True)
        if not text:
            (folder / "m.onnx").write_text("version https://git-lfs.github.com/spec/v1\n", encoding="utf-8")
            continue
        model = onnx.parser.parse_model(HEAD % (versions or (9, 17)) + text)
        if name == "no_shape":
            model.graph.input[0].type.tensor_type.ClearField("shape")
        if name == "sparse":
            model.graph.input[0].CopyFrom(
                helper.make_sparse_tensor_value_info("x", TensorProto.FLOAT, (2, 3))
            )
        onnx.save(model, folder / "m.onnx")
    for name in ("empty_data_set", "outputs_only", "half_a_data_set", "torn_data_set", "unfit_data_set"):
        (home / name / "test_data_set_0").mkdir()
    np.save(home / "outputs_only" / "test_data_set_0" / "output_0.npy", np.zeros((2, 3), np.float32))
    np.save(home / "half_a_data_set" / "test_data_set_0" / "input_0.npy", np.zeros(2, np.float32))
    np.save(home / "unfit_data_set" / "test_data_set_0" / "input_0.npy", np.zeros((7, 7), np.float32))
    (home / "torn_data_set" / "test_data_set_0" / "input_0.npy").write_bytes(b"\x93NUMPY torn")
    (home / "typo" / "m.onnx.toml").write_text("dimensions = { bacth = 1 }\n", encoding="utf-8")
    config = {"model": {"type": "t5", "encoder": {"filename": "m.onnx"}, "decoder": {"filename": "d.onnx"}}}
    (home / "encoder_decoder" / "genai_config.json").write_text(json.dumps(config), encoding="utf-8")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("excluded")
    write_models(home / "models")
    return home


@pytest.fixture(scope="module")
def records(home: Path) -> dict[str, Record]:
    target = {"name": "cpu", "provider": "CPUExecutionProvider"}
    return found_in(run_matrix(home, of_folder(target)))


def found_in(events: list[Event]) -> dict[str, Record]:
    return {record.model.partition("/")[0]: record for record in records_of(events)}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_has_the_right_word_on_the_cpu(records: dict[str, Record], name: str) -> None:
    _, _, verdict, reason = MODELS[name]
    record = records[name]
    assert record.verdict is verdict, record.reason
    assert reason in record.reason
    assert "\n" not in record.reason
    assert record.expected


def test_a_locale_that_one_model_needs_does_not_make_a_target_unavailable(records: dict[str, Record]) -> None:
    assert records["no_locale"].cause == "library_missing"
    assert records["no_locale"].family is Family.SKIPPED
