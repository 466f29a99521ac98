"""Data that lie where nothing reads them are an error with a remedy, also if the model was read before."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import InputError
from harness.corpus.suites.suite import open_file, open_folder


@pytest.mark.parametrize("name", ["inputs.npz", "input_0.npy", "input_0.pb"])
def test_values_beside_a_model_belong_into_a_data_set(write_model: Callable[..., Path], name: str) -> None:
    path = write_model("m/one.onnx")
    (path.parent / name).touch()
    told = rf"m/{name}: lies beside the model.*; move it to test_data_set_0/{name}, or elsewhere"
    for suite in (open_folder(path.parent), open_file(path)):
        with pytest.raises(InputError, match=told):
            load_case(suite, "one.onnx", {})


@pytest.mark.parametrize("name", ["test_data_set_0", "inputs.npz"])
def test_data_in_a_folder_of_several_models_name_theirs(write_model: Callable[..., Path], name: str) -> None:
    path = write_model("m/one.onnx")
    write_model("m/two.onnx")
    if name == "test_data_set_0":
        (path.parent / name).mkdir()
    else:
        (path.parent / name).touch()
    with pytest.raises(InputError, match=r"move it to one/test_data_set_0"):
        load_case(open_folder(path.parent), "one.onnx", {})


def test_they_are_told_although_the_model_was_kept(
    write_model: Callable[..., Path], own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_model("m/one.onnx")
    monkeypatch.setattr(time, "time_ns", lambda: 1 << 62)  # as if the files were old
    suite = open_folder(path.parent)
    load_case(suite, "one.onnx", {})
    assert own_cache.exists()
    np.savez(path.parent / "inputs.npz", x=np.zeros(2, np.float32))
    with pytest.raises(InputError, match=r"inputs\.npz"):
        load_case(suite, "one.onnx", {})
    (path.parent / "test_data_set_0").mkdir()
    (path.parent / "inputs.npz").rename(path.parent / "test_data_set_0" / "inputs.npz")
    assert load_case(suite, "one.onnx", {}).data_sets[0].name == "test_data_set_0"
