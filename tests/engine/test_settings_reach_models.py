"""What a matrix says about single models reaches them, and a slip in it is told, not only recorded."""

from pathlib import Path

from harness.core.records.verdict import Verdict
from harness.engine.tasks.events import Event, Warned
from tests.kit import fake_target, records_of, run_matrix, write_model

SHAPE = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[batch] x) => (float[batch] y, int32[batch] k, float[batch] z) {
    y = Relu(x) k = Cast<to=6>(x) z = Neg(x) }"""


def run(tmp_path: Path, said: dict[str, object]) -> list[Event]:
    write_model(tmp_path / "models" / "a.onnx", SHAPE)
    write_model(tmp_path / "models" / "b.onnx", SHAPE)
    target = fake_target("fake")
    models = {"folders": ["models"]}
    return run_matrix(
        tmp_path, {"models": models, "model": [{"model": "a.onnx", **said}], "target": [target]}
    )


def test_a_dimension_of_the_matrix_is_that_of_the_outputs(tmp_path: Path) -> None:
    events = run(tmp_path, {"dimensions": {"batch": 3}})
    records = {record.model: record for record in records_of(events)}
    assert {model: record.outputs[0].shape for model, record in records.items()} == {
        "a.onnx": (3,),
        "b.onnx": (2,),
    }
    assert [event for event in events if isinstance(event, Warned)] == []


def test_an_error_in_settings_costs_its_model_and_is_reported_at_once(tmp_path: Path) -> None:
    events = run(tmp_path, {"dimensions": {"bacth": 3}})
    verdicts = {record.model: record.verdict for record in records_of(events)}
    assert verdicts == {"a.onnx": Verdict.NO_INPUT, "b.onnx": Verdict.PASS}
    (warning,) = [event.message for event in events if isinstance(event, Warned)]
    assert warning.startswith(
        "models/a.onnx: its settings name the dimension 'bacth', which it does not have"
    )
    assert "did you mean 'batch'?" in warning
