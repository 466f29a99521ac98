"""A model that changes under a run is the fault of nobody: its cells are missing, and can be resumed."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from harness.cli import main
from harness.core.files.reading import read_regular
from harness.corpus.case import model_files_state
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import ChangedFileError, ModelError
from harness.corpus.suites.suite import open_folder
from harness.engine import dispatcher
from harness.engine.answers.files_in_use import FilesInUse
from tests.kit import read_rows

Project = Callable[..., Path]
Harm = Callable[[Path], object]

CHANGED = "models/relu.onnx: the file changed during the run; restore it, then continue with --resume"


def replace(path: Path) -> None:
    """Another model, which computes something else, under the same name."""
    path.write_bytes(path.with_name("neg.onnx").read_bytes())


def records(folder: Path) -> dict[str, dict[str, Any]]:
    return {record["model"]: record for record in read_rows(folder)}


@pytest.mark.parametrize(
    ("harm", "after"),
    [
        pytest.param(Path.unlink, 0, id="deleted"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:20]), 1, id="truncated"),
        pytest.param(replace, 0, id="replaced before the cell"),
        pytest.param(replace, 1, id="replaced before its golden"),
    ],
)
def test_a_file_that_changes_is_missing_and_blames_nobody(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    harm: Harm,
    after: int,
) -> None:
    """The file changes after it was read, before an agent reads it: for the cell, or for its golden."""
    monkeypatch.setenv("EP_HARNESS_CACHE", str(tmp_path / "cache"))
    matrix, out = project(), tmp_path / "run"
    model = tmp_path / "models" / "relu.onnx"
    content, make = model.read_bytes(), vars(dispatcher)["job"]
    jobs: list[Any] = []

    def job(case: Any, *arguments: Any, **settings: Any) -> Any:
        if case.model_path == model:
            if len(jobs) == after:
                harm(model)
            jobs.append(case)
        return make(case, *arguments, **settings)

    with monkeypatch.context() as patched:
        patched.setattr(dispatcher, "job", job)
        assert main(["run", str(matrix), "--out", str(out), "--no-report"]) == 3
    found = records(out)
    assert {name: one["verdict"] for name, one in found.items()} == {
        "abs.onnx": "pass",
        "neg.onnx": "pass",
        "relu.onnx": "not_run",
    }
    assert found["relu.onnx"]["reason"] == CHANGED
    assert found["relu.onnx"]["family"] == "missing"

    printed = capsys.readouterr().out
    assert "INCOMPLETE   1 of 3 cells have no verdict" in printed
    assert CHANGED in printed
    model.write_bytes(content)
    assert main(["run", str(matrix), "--resume", str(out), "--no-report"]) == 0
    assert {one["verdict"] for one in records(out).values()} == {"pass"}


@pytest.fixture
def suite(project: Project, tmp_path: Path) -> FilesInUse:
    project()
    folder = open_folder(tmp_path / "models")
    return FilesInUse(lambda _, model: load_case(folder, model, {}), lambda _: False)


@pytest.mark.parametrize("fails", [False, True])
def test_the_same_content_anew_explains_only_a_failure(
    suite: FilesInUse, tmp_path: Path, *, fails: bool
) -> None:
    model = tmp_path / "models" / "abs.onnx"
    suite.load("models", model.name)
    assert suite.look("models", model.name, fails=fails) is None
    content = model.read_bytes()
    model.unlink()
    model.with_name("x").write_bytes(content)  # so that it is another file for certain
    model.write_bytes(content)
    assert (suite.look("models", model.name, fails=fails) is not None) is fails


def test_a_further_link_is_no_change(suite: FilesInUse, tmp_path: Path) -> None:
    model = tmp_path / "models" / "abs.onnx"
    before = suite.load("models", model.name)
    os.link(model, tmp_path / "linked.onnx")
    assert model_files_state(before) != before.state
    assert suite.look("models", model.name, fails=True) is None
    model.unlink()
    model.write_bytes((tmp_path / "linked.onnx").read_bytes())
    assert suite.look("models", model.name, fails=True) is not None


def test_a_model_is_read_once_more_only_if_it_is_the_same(suite: FilesInUse, tmp_path: Path) -> None:
    model = tmp_path / "models" / "abs.onnx"
    digest = suite.load("models", model.name).digest
    assert suite.load("models", model.name).digest == digest
    replace(model)
    with pytest.raises(ChangedFileError):
        suite.load("models", model.name)
    assert isinstance(suite.changed("models", model.name), ChangedFileError)
    with pytest.raises(ChangedFileError):  # and not again as what it is now
        suite.load("models", model.name)
    assert suite.load("models", "neg.onnx").outputs == ("y",)


def test_a_model_that_never_could_be_read_has_not_changed(suite: FilesInUse, tmp_path: Path) -> None:
    (tmp_path / "models" / "abs.onnx").write_bytes(b"<html>")
    for _ in range(2):
        with pytest.raises(ModelError, match="a page of the web") as caught:
            suite.load("models", "abs.onnx")
        assert not isinstance(caught.value, ChangedFileError)
        assert suite.look("models", "abs.onnx", fails=True) is None


def test_external_data_and_test_data_belong_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "models" / "m.onnx"
    model.parent.mkdir()
    weight = numpy_helper.from_array(np.ones((2, 2), np.float32), "w")
    graph = onnx.parser.parse_graph("agraph (float[2, 2] x) => (float[2, 2] y) { y = MatMul(x, w) }")
    graph.initializer.append(weight)
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(proto, model, save_as_external_data=True, location="w.bin", size_threshold=0)
    folder = open_folder(model.parent)
    suite = FilesInUse(lambda _, name: load_case(folder, name, {}), lambda _: False)
    suite.load("models", "m.onnx")
    (model.parent / "w.bin").write_bytes(b"\0" * 3)
    assert suite.look("models", "m.onnx", fails=False) is not None

    suite = FilesInUse(lambda _, name: load_case(folder, name, {}), lambda _: False)
    (model.parent / "w.bin").write_bytes(b"\0" * 16)
    data = model.parent / "test_data_set_0" / "input_0.pb"
    data.parent.mkdir()
    data.write_bytes(numpy_helper.from_array(np.ones((2, 2), np.float32)).SerializeToString())

    def torn(path: Path, most: int) -> bytes:
        content = read_regular(path, most)
        if path == data:
            path.write_bytes(content[:-3])
            return content[:-3]
        return content

    monkeypatch.setattr("harness.corpus.beside.data_set_files.read_regular", torn)
    with pytest.raises(ChangedFileError):
        suite.load("models", "m.onnx")
