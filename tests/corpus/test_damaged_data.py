"""Damaged test data, of every layout, is a case or a model error, and nothing else."""

import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import ModelError
from harness.corpus.suites.suite import Suite
from tests.kit import write_model

MODEL = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[batch] x, string[batch] t) => (float[batch] y) { y = Relu(x) }"""
X, T = np.arange(3, dtype=np.float32), np.array(["a", "bc", ""])


def npy(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def npz(*, compressed: bool, **arrays: Any) -> bytes:
    content = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(content, **arrays)
    return content.getvalue()


def archive(**files: bytes) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as writing:
        for name, data in files.items():
            member = tarfile.TarInfo(f"net/test_data_set_0/{name}")
            member.size = len(data)
            writing.addfile(member, io.BytesIO(data))
    return content.getvalue()


DATA = {
    "test_data_set_0/input_0.npy": npy(X),
    "test_data_set_0/inputs.npz": npz(compressed=False, x=X, t=T),
    "test_data_set_0/outputs.npz": npz(compressed=True, y=X),
    "test_data_0.npz": npz(compressed=False, inputs=np.stack([X, X]), outputs=X[None]),
    "model.tar.gz": archive(**{"input_0.npy": npy(X), "input_1.npy": npy(T)}),
    "model.onnx.toml": b"dimensions = { batch = 3 }\ninputs = { x = { low = -1, high = 1.5 } }\n",
    "config.txt": b"per_sample_tolerance: 1e-3\nrelative_per_sample_tolerance: 0.1\n",
}


@pytest.mark.parametrize("name", DATA)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_damage_is_a_case_or_a_model_error(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp() / f"damaged-{name.replace('/', '-')}"
    (folder / "test_data_set_0").mkdir(parents=True, exist_ok=True)
    write_model(folder / "model.onnx", MODEL)
    good = DATA[name]
    at = data.draw(st.integers(0, len(good)))
    noise = data.draw(st.binary(max_size=12))
    rest = good[at + len(noise) :] if data.draw(st.booleans()) else good[at + data.draw(st.integers(0, 50)) :]
    _write(folder, "test_data_set_0/inputs.npz", DATA["test_data_set_0/inputs.npz"])
    if name in {"test_data_0.npz", "model.tar.gz", "model.onnx.toml"}:
        (folder / "test_data_set_0" / "inputs.npz").unlink()
        (folder / "test_data_set_0").rmdir()
    _write(folder, name, good[:at] + noise + rest)
    suite = Suite(name="damaged", root=folder, kind="folder", names=("model.onnx",))
    try:
        load_case(suite, "model.onnx", {})
    except ModelError as error:
        assert "\n" not in str(error)  # noqa: PT017 - what is intact is fine too


def _write(folder: Path, name: str, content: bytes) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)


@pytest.mark.parametrize("name", DATA)
def test_undamaged_it_is_a_case(tmp_path: Path, name: str) -> None:
    write_model(tmp_path / "model.onnx", MODEL)
    if name.endswith("input_0.npy"):
        _write(tmp_path, "test_data_set_0/input_1.npy", npy(T))
    elif name.endswith("outputs.npz") or name == "config.txt":
        _write(tmp_path, "test_data_set_0/inputs.npz", DATA["test_data_set_0/inputs.npz"])
    elif name == "test_data_0.npz":
        write_model(tmp_path / "model.onnx", MODEL.replace("string[batch] t", "float[batch] t"))
    _write(tmp_path, name, DATA[name])
    suite = Suite(name="whole", root=tmp_path, kind="folder", names=("model.onnx",))
    assert len(load_case(suite, "model.onnx", {}).data_sets[0].inputs) == 2
