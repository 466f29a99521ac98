"""One model by its path, or as suite/model."""

from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.corpus.suites import open_model


def test_a_file_is_a_suite_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").touch()
    suite = open_model(str(tmp_path / "a.onnx"))
    assert suite.models() == ("a.onnx",)
    assert suite.model_path("a.onnx") == tmp_path / "a.onnx"
    assert suite.data_folder("a.onnx") == tmp_path


def test_data_beside_it_is_not_its_own_where_other_models_are(tmp_path: Path) -> None:
    for name in ("a.onnx", "b.onnx"):
        (tmp_path / name).touch()
    assert open_model(str(tmp_path / "a.onnx")).data_folder("a.onnx") == tmp_path / "a"


def test_a_model_of_a_suite() -> None:
    suite = open_model("zoo/mnist-small-op12")
    assert (suite.name, suite.models()) == ("zoo", ("mnist-small-op12",))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("zoo/mnist-smal-op12", "did you mean 'mnist-small-op12'"),
        ("no/such.onnx", "there is no such model"),
        ("zo/mnist-small-op12", "one of the suites"),
        (".", "is a folder"),
        (__file__, "is not named"),
    ],
)
def test_what_is_none_is_said(name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        open_model(name)
