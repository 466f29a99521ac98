"""A recording can be read as a folder of models, and every alteration of it is reported."""

from pathlib import Path

import msgspec
import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

from harness.core.text.errors import UsageError
from harness.core.values.value import Sequence, Value, tensor
from harness.corpus.caches.cache import ENVIRONMENT
from harness.corpus.derived.external_copy import external_copy
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder
from harness.golden.golden_answer import Golden
from harness.golden.recording import Recorder, altered_files, read_recording

TEXT = """<ir_version: 9, opset_import: ["" : 17]>
g (float[N] x, seq(float[2]) s) => (float[N] y, seq(float[2]) t, string[1] n) {
    y = Relu(x) t = Identity(s) n = Constant<value_strings = ["a"]>() u = Identity(w) }"""


def answer(number: float) -> tuple[tuple[str, Value], ...]:
    pair = tensor(np.full(2, number, np.float32))
    return (
        ("y", tensor(np.array([number, np.nan], np.float32))),
        ("t", Sequence(items=(pair, pair))),
        ("n", tensor(np.array(["ä\n"]))),
    )


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Models whose recordings lie within each other's folders."""
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
    for name in ("a.onnx", "a/b.onnx", "a/model.onnx"):
        path = tmp_path / "models" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        model = onnx.parser.parse_model(TEXT)
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(512, np.float32), "w"))
        onnx.save(model, path)
    return tmp_path / "models"


def test_models_inputs_and_outputs_come_back(models: Path, tmp_path: Path) -> None:
    suite, out = open_folder(models), tmp_path / "out"
    recorder = Recorder(out)
    cases = {name: load_case(suite, name, {"N": 2}) for name in suite.models()}
    for number, (name, case) in enumerate(cases.items()):
        recorder.add("models", name, case, Golden(status="ok", outputs=(answer(number),)))
    with pytest.raises(UsageError, match="an incomplete one"):
        read_recording(out)
    recorder.finish({"onnxruntime": "1.31.1"})
    recording = read_recording(out)
    assert [one.folder for one in recording.models] == ["models/a", "models/a/b", "models/a/model"]
    for recorded in recording.models:
        assert list(altered_files(out, recorded)) == []
        case = load_case(open_folder(out), f"{recorded.folder}/model.onnx", {})
        number = list(cases).index(recorded.model)
        assert repr(case.data_sets[0].expected) == repr(answer(number))
        assert repr(case.data_sets[0].inputs) == repr(cases[recorded.model].data_sets[0].inputs)


def test_external_data_comes_along(models: Path, tmp_path: Path) -> None:
    case = external_copy(load_case(open_folder(models), "a.onnx", {}))
    assert case is not None
    recorder = Recorder(tmp_path / "out")
    recorder.add("models", "a.onnx", case, Golden(status="refused", message="no"))
    recorder.finish({})
    (recorded,) = read_recording(tmp_path / "out").models
    assert (recorded.status, recorded.message) == ("refused", "no")
    assert {"model.onnx", "weights.bin", "test_data_set_0/input_0.pb"} <= recorded.files.keys()
    again = load_case(open_folder(tmp_path / "out"), "models/a/model.onnx", {})
    assert [file.name for file in again.external] == ["weights.bin"]


def test_each_alteration_is_reported(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    recorder = Recorder(out)
    case = load_case(open_folder(models), "a.onnx", {})
    recorder.add("models", "a.onnx", case, Golden(status="ok", outputs=(answer(0),)))
    recorder.finish({})
    (recorded,) = read_recording(out).models
    home = out / "models" / "a"
    with (home / "model.onnx").open("ab") as file:
        file.write(b"\x00")
    (home / "test_data_set_0" / "output_1.pb").unlink()
    (home / "test_data_set_0" / "input_2.npy").touch()
    assert list(altered_files(out, recorded)) == [
        "models/a/model.onnx has changed",
        "models/a/test_data_set_0/output_1.pb is missing",
        "models/a/test_data_set_0/input_2.npy is new",
    ]


def test_values_that_the_model_does_not_declare_leave_nothing(models: Path, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "out")
    case = load_case(open_folder(models), "a.onnx", {})
    wrong = (("y", Sequence(items=())), *answer(0)[1:])
    with pytest.raises(TypeError, match="declared as tensor"):
        recorder.add("models", "a.onnx", case, Golden(status="ok", outputs=(wrong,)))
    recorder.finish({})
    assert read_recording(tmp_path / "out").models == ()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["manifest.json"]


def test_a_folder_that_is_not_empty_or_another_schema_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(UsageError, match="not empty"):
        Recorder(tmp_path)
    with pytest.raises(UsageError, match="cannot be written"):
        Recorder(tmp_path / "x" / "below a file")
    Recorder(tmp_path / "new").finish({})
    path = tmp_path / "new" / "manifest.json"
    recording = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode({**recording, "schema": 2}))
    with pytest.raises(UsageError, match="it has schema 2, and this release reads 1"):
        read_recording(tmp_path / "new")
    path.write_bytes(b"[]")
    with pytest.raises(UsageError, match="cannot be read"):
        read_recording(tmp_path / "new")
