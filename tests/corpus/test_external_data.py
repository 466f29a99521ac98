import os
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from harness.corpus.case import Case
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import ModelError
from harness.corpus.suites.suite import open_folder

links = pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need a privilege on Windows")
WEIGHTS = np.arange(4, dtype=np.float32).tobytes()


def save(folder: Path, location: str, **more: int) -> Path:
    weight = onnx.TensorProto(name="w", data_type=1, dims=[4], data_location=onnx.TensorProto.EXTERNAL)
    for key, value in {"location": location, **more}.items():
        weight.external_data.add(key=key, value=str(value))
    x, y = (helper.make_tensor_value_info(name, 1, [4]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [weight])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    return path


def load(folder: Path) -> Case:
    return load_case(open_folder(folder), "model.onnx", {})


def test_data_beside_the_model_or_below_is_part_of_the_digest(tmp_path: Path) -> None:
    save(tmp_path / "m", "deep/weights.bin", offset=0, length=16)
    (tmp_path / "m" / "deep").mkdir()
    weights = tmp_path / "m" / "deep" / "weights.bin"
    weights.write_bytes(WEIGHTS)
    before = load(tmp_path / "m")
    assert [port.name for port in before.ports] == ["x"]
    weights.write_bytes(WEIGHTS[::-1])
    assert load(tmp_path / "m").digest != before.digest


@pytest.mark.parametrize(
    "location",
    [
        "../secret.bin",
        "a/../../secret.bin",
        "/etc/passwd",
        "C:\\secret.bin",
        "..\\secret.bin",
        "\\\\host\\a",
    ],
)
def test_locations_outside_the_folder_are_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "secret.bin").write_bytes(WEIGHTS)
    save(tmp_path / "m", location)
    with pytest.raises(ModelError, match="outside the model's folder") as caught:
        load(tmp_path / "m")
    assert str(caught.value).startswith("m/model.onnx: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("location", "cause"),
    [
        ("", "without a location"),
        (".", "is no file"),
        ("a\0b", "null (byte|character)"),
        ("x" * 5000, "too long"),
    ],
)
def test_locations_that_are_none_are_refused(tmp_path: Path, location: str, cause: str) -> None:
    save(tmp_path / "m", location)
    with pytest.raises(ModelError, match=cause):
        load(tmp_path / "m")


@pytest.mark.parametrize("offset", ["0x10", "-", "1e3", "9" * 5000])
def test_an_offset_that_is_no_number_is_refused(tmp_path: Path, offset: str) -> None:
    path = save(tmp_path / "m", "weights.bin", offset=0)
    (tmp_path / "m" / "weights.bin").write_bytes(WEIGHTS)
    model = onnx.load(path, load_external_data=False)
    next(entry for entry in model.graph.initializer[0].external_data if entry.key == "offset").value = offset
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match="external data whose offset is"):
        load(tmp_path / "m")


@links
def test_a_link_to_itself_is_missing_data(tmp_path: Path) -> None:
    save(tmp_path / "m", "weights.bin")
    (tmp_path / "m" / "weights.bin").symlink_to("weights.bin")
    with pytest.raises(ModelError, match="is missing"):
        load(tmp_path / "m")


def test_missing_and_short_data_are_refused(tmp_path: Path) -> None:
    save(tmp_path / "m", "weights.bin", offset=8, length=16)
    with pytest.raises(ModelError, match=r"'weights\.bin' is missing"):
        load(tmp_path / "m")
    (tmp_path / "m" / "weights.bin").write_bytes(WEIGHTS)
    with pytest.raises(ModelError, match="too short: 16 bytes, tensor 'w' takes 16 from 8"):
        load(tmp_path / "m")


@links
def test_a_link_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.bin").write_bytes(WEIGHTS)
    save(tmp_path / "m", "weights.bin")
    (tmp_path / "m" / "weights.bin").symlink_to(tmp_path / "secret.bin")
    with pytest.raises(ModelError, match="by a symbolic link"):
        load(tmp_path / "m")


@links
def test_a_download_cache_that_links_model_and_data_to_one_store_works(tmp_path: Path) -> None:
    save(tmp_path / "store", "weights.bin").rename(tmp_path / "store" / "blob1")
    (tmp_path / "store" / "blob2").write_bytes(WEIGHTS)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "model.onnx").symlink_to(tmp_path / "store" / "blob1")
    (tmp_path / "m" / "weights.bin").symlink_to(tmp_path / "store" / "blob2")
    assert load(tmp_path / "m").facts.op_types == {"Add": 1}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_place_of_data_or_model_does_not_hang(tmp_path: Path) -> None:
    save(tmp_path / "m", "weights.bin")
    os.mkfifo(tmp_path / "m" / "weights.bin")
    with pytest.raises(ModelError, match="is no file"):
        load(tmp_path / "m")
    os.mkfifo(tmp_path / "m" / "pipe.onnx")
    with pytest.raises(ModelError, match="not a file"):
        load_case(open_folder(tmp_path / "m"), "pipe.onnx", {})


def test_data_larger_than_two_gigabytes_is_only_measured_and_streamed(tmp_path: Path) -> None:
    size = (2 << 30) + 16
    save(tmp_path / "m", "weights.bin", offset=2 << 30, length=16)
    with (tmp_path / "m" / "weights.bin").open("wb") as stream:
        stream.truncate(size - 1)
    with pytest.raises(ModelError, match="too short"):
        load(tmp_path / "m")
