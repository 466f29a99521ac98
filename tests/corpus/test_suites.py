"""Suites: their models, names and data folders; listing imports neither onnx nor a runtime."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.core.text.errors import UsageError
from harness.core.values.value import Tensor
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder
from harness.corpus.suites.suites import open_model, open_suite, suite_lines

LISTING = """
import sys
from pathlib import Path
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder
from harness.corpus.suites.suites import open_suite

assert len(open_suite("onnx-simple").models()) > 20
assert len(open_suite("onnx-light").models()) == 9
assert open_folder(Path(sys.argv[1])).models()
loaded = {"onnx", "onnxruntime", "google.protobuf"} & set(sys.modules)
assert not loaded, loaded
"""


@pytest.mark.parametrize(
    ("suite", "count", "some"),
    [
        ("onnx-simple", 23, "test_sequence_model1"),
        ("onnx-pytorch-operator", 35, "test_operator_conv"),
        ("onnx-pytorch-converted", 82, "test_Conv2d"),
    ],
)
def test_suites_are_read_in_place(suite: str, count: int, some: str) -> None:
    opened = open_suite(suite)
    assert opened.name == suite
    assert len(opened.models()) == count
    assert list(opened.models()) == sorted(opened.models())
    assert some in opened.models()
    for model in opened.models():
        case = load_case(opened, model, {})
        assert case.model_path == opened.model_path(model)
        assert all(data_set.expected for data_set in case.data_sets)


def test_light_models_come_with_the_ramp_that_their_outputs_were_computed_from(own_cache: Path) -> None:
    suite = open_suite("onnx-light")
    assert suite.root.is_relative_to(own_cache)
    assert len(suite.models()) == 9
    case = load_case(suite, "light_densenet121", {})
    ((_, value),) = case.data_sets[0].inputs
    assert isinstance(value, Tensor)
    assert value.array.shape == (1, 3, 224, 224)
    assert value.array.dtype == np.float32
    ramp = np.arange(value.array.size) / value.array.size
    np.testing.assert_array_equal(value.array.ravel(), ramp.astype(np.float32))
    ((_, expected),) = case.data_sets[0].expected
    assert isinstance(expected, Tensor)
    assert expected.array.size == 1000
    assert case.rtol == 2e-3  # onnx keeps this model's tolerance apart from it
    assert load_case(suite, "light_vgg19", {}).rtol == 1e-3


def test_an_unknown_suite_is_a_usage_error_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="did you mean 'onnx-node'") as caught:
        open_suite("onnx-nodes")
    assert all(name in str(caught.value) for name in suite_lines())


def test_a_folder_goes_by_its_base_name_and_its_models_by_relative_paths(
    write_model: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model("zoo/resnet/model.onnx")
    write_model("zoo/small.onnx")
    suite = open_folder(tmp_path / "zoo")
    assert suite.name == "zoo"
    assert suite.models() == ("resnet/model.onnx", "small.onnx")
    assert suite.model_path("resnet/model.onnx") == tmp_path / "zoo" / "resnet" / "model.onnx"
    monkeypatch.chdir(tmp_path / "zoo" / "resnet")
    assert open_folder(Path("..")).name == "zoo"
    assert open_folder(Path()).name == "resnet"


def test_test_data_lies_beside_the_only_model_of_a_folder_or_else_under_its_stem(
    write_model: Callable[..., Path], tmp_path: Path
) -> None:
    for name in ("zoo/alone/model.onnx", "zoo/a.onnx", "zoo/b.onnx"):
        write_model(name)
    suite = open_folder(tmp_path / "zoo")
    assert suite.data_folder("alone/model.onnx") == tmp_path / "zoo" / "alone"
    assert suite.data_folder("a.onnx") == tmp_path / "zoo" / "a"


def test_listing_imports_neither_onnx_nor_a_runtime(
    own_cache: Path, write_model: Callable[..., Path]
) -> None:
    open_suite("onnx-light")  # the first use does import onnx
    folder = write_model().parent
    environment = {**os.environ, "EP_HARNESS_CACHE": str(own_cache), "PYTHONPATH": str(Path.cwd())}
    subprocess.run([sys.executable, "-c", LISTING, str(folder)], check=True, env=environment)


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
def test_what_is_no_model_is_an_error(name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        open_model(name)
