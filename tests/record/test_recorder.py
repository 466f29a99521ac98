"""What is recorded of an onnxruntime, here one of a few lines, and how calls become data sets."""

import ast
import atexit
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import harness.record
from harness.core.values.value import Tensor
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder
from harness.record.data_set import UnsavedError, array, write_data_set
from harness.record.saved_summary import events_summary
from tests.kit import write_model

PACKAGE = Path(harness.record.__file__).parent


class Port:
    def __init__(self, name: str, kind: str) -> None:
        self.name, self.type = name, kind


class InvalidArgument(Exception):  # noqa: N818 - onnxruntime's name
    pass


def onnxruntime(ports: tuple[Port, ...] = (Port("x", "tensor(float)"),)) -> Any:
    """A module like onnxruntime; its sessions return what they are fed."""

    class IOBinding:
        def bind_cpu_input(self, name: str, arr_on_cpu: object) -> None:
            pass

        def bind_input(self, name: str, *args: object, **kwargs: object) -> None:
            pass

    class InferenceSession:
        def __init__(self, path_or_bytes: object, **_more: object) -> None:
            pass

        def get_inputs(self) -> tuple[Port, ...]:
            return ports

        def run(self, output_names: object, input_feed: dict[str, Any], run_options: object = None) -> Any:  # noqa: ARG002
            if "wrong" in input_feed:
                raise InvalidArgument
            if run_options == "fail":
                raise RuntimeError
            return input_feed

        def run_with_iobinding(self, iobinding: object, run_options: object = None) -> None:
            pass

    module: Any = ModuleType("onnxruntime")
    module.InferenceSession, module.IOBinding = InferenceSession, IOBinding
    return module


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model.onnx").write_bytes(b"any")
    return tmp_path / "model.onnx"


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Start recording in two lines, as an application does, with that module."""
    told: list[Callable[[], None]] = []
    monkeypatch.setattr(atexit, "register", told.append)

    def begin(ports: tuple[Port, ...] = (Port("x", "tensor(float)"),), **settings: Any) -> Any:
        module = onnxruntime(ports)
        monkeypatch.setitem(sys.modules, "onnxruntime", module)
        harness.record.start(**settings)
        module.tell = told[-1]
        return module

    return begin


def fed(value: float, size: int = 2) -> dict[str, Any]:
    return {"x": np.full(size, value, np.float32)}


def saved(folder: Path) -> list[Any]:
    found = sorted(folder.glob("test_data_set_*"))
    return [dict(np.load(each / "inputs.npz")) for each in found]


def test_the_first_different_calls_are_saved_and_the_answers_stay(
    recording: Callable[..., Any], model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = recording(calls=2)
    session = module.InferenceSession(str(model))
    for value in (1, 1, 2, 3):
        given = fed(value)
        assert session.run(None, given) is given
    assert [each["x"][0] for each in saved(model.parent)] == [1, 2]
    module.tell()
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "saved 2 data sets of 1 model: " in told


def test_data_sets_that_are_there_stay(recording: Callable[..., Any], model: Path) -> None:
    (model.parent / "test_data_set_0").mkdir()
    (model.parent / "test_data_set_0" / "mine").touch()
    recording().InferenceSession(model).run(None, fed(1))
    assert [each.name for each in (model.parent / "test_data_set_0").iterdir()] == ["mine"]
    assert (model.parent / "test_data_set_1" / "inputs.npz").is_file()


def test_a_call_that_does_not_fit_the_model_is_not_kept_and_one_that_the_provider_fails_is(
    recording: Callable[..., Any], model: Path
) -> None:
    session = recording().InferenceSession(model)
    with pytest.raises(InvalidArgument):
        session.run(None, {"wrong": np.zeros(1, np.float32)})
    assert saved(model.parent) == []
    with pytest.raises(RuntimeError):
        session.run(None, fed(1), "fail")
    assert len(saved(model.parent)) == 1


def test_what_is_bound_is_saved_as_it_is_when_it_runs(recording: Callable[..., Any], model: Path) -> None:
    module = recording()
    session, binding, values = module.InferenceSession(model), module.IOBinding(), np.zeros(2, np.float32)
    binding.bind_cpu_input("x", values)
    values[:] = 7
    session.run_with_iobinding(binding)
    binding.bind_input("x", "cpu", 0, np.float32, [2], np.full(2, 8, np.float32).ctypes.data)
    assert [each["x"][0] for each in saved(model.parent)] == [7]


def test_what_cannot_be_saved_is_told_once_and_costs_the_application_nothing(
    recording: Callable[..., Any], model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = recording((Port("x", "seq(tensor(float))"),))
    session = module.InferenceSession(model)
    for _ in range(2):
        session.run(None, {"x": [np.zeros(1, np.float32)]})
    in_memory = module.InferenceSession(b"a model")
    in_memory.run(None, {})
    binding = module.IOBinding()
    binding.bind_input("x", "cuda", 0, np.float32, [2], 4096)
    session.run_with_iobinding(binding)
    module.tell()
    told = capsys.readouterr().err
    assert told.count("only tensors are recorded") == 1
    assert "a model made from bytes (SHA-256 " in told
    assert "name one with --out" in told
    assert "on cuda, is not recorded" in told
    assert saved(model.parent) == []


def test_a_model_has_its_own_folder_where_others_are(recording: Callable[..., Any], model: Path) -> None:
    model.with_name("other.onnx").touch()
    recording().InferenceSession(model).run(None, fed(1))
    assert len(saved(model.with_suffix(""))) == 1


def test_another_folder_is_one_of_models(recording: Callable[..., Any], model: Path, tmp_path: Path) -> None:
    module = recording(out=tmp_path / "out")
    module.InferenceSession(model).run(None, fed(1))
    module.InferenceSession(b"a model").run(None, fed(2))
    assert sorted(each.name for each in (tmp_path / "out").glob("*/model.onnx")) == ["model.onnx"] * 2
    assert len(saved(model.parent)) == 0
    assert len(list((tmp_path / "out").glob("*/test_data_set_0/inputs.npz"))) == 2


def test_no_more_than_the_limit_is_written(
    recording: Callable[..., Any], model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = recording(most_mib=1)
    session = module.InferenceSession(model)
    for value in (1, 2):
        session.run(None, fed(value, 200_000))
    assert len(saved(model.parent)) == 1
    module.tell()
    assert "more than 1 MiB" in capsys.readouterr().err


def test_a_full_disk_leaves_no_half_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(OSError, match="No space"):
        write_data_set(str(tmp_path), fed(1))
    assert list(tmp_path.iterdir()) == []


def test_texts_lists_and_odd_names_are_saved_as_the_harness_reads_them(tmp_path: Path) -> None:
    graph = (
        "agraph (string[2] file, float[2] a) => (string[2] b, float[2] c) { b = Identity(file) c = Abs(a) }"
    )
    write_model(tmp_path / "m.onnx", f'<ir_version: 9, opset_import: ["" : 17]> {graph}')
    values = {
        "file": array("file", np.array(["é", b"b"], object), "tensor(string)"),
        "a": array("a", [1, 2], "tensor(float)"),
    }
    write_data_set(str(tmp_path), values)
    (data_set,) = load_case(open_folder(tmp_path), "m.onnx", {}).data_sets
    found = {name: value.array.tolist() for name, value in data_set.inputs if isinstance(value, Tensor)}
    assert found == {"file": ["é", "b"], "a": [1.0, 2.0]}


def test_a_value_that_is_no_array_is_told() -> None:
    with pytest.raises(UnsavedError, match=r"'x' is fed a dict"):
        array("x", {}, "tensor(float)")


def test_the_line_tells_what_to_look_at_if_nothing_was_saved() -> None:
    assert "no Python of the application imported onnxruntime" in events_summary([])
    assert "made no session" in events_summary([{"what": "loaded"}])


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.name)
def test_it_is_written_for_python_3_9(path: Path) -> None:
    ast.parse(path.read_text("utf-8"), feature_version=(3, 9))
