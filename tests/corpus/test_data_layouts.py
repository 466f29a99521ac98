"""Test data in every layout in which ONNX's model zoo and its test runners have it."""

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from harness.core.values.value import Array, Tensor
from harness.corpus.beside import data_set_archive
from harness.corpus.beside.data_sets import GENERATED
from harness.corpus.beside.file_state import model_state
from harness.corpus.beside.numpy_files import read_npz
from harness.corpus.case import Case
from harness.corpus.load_case import load_case
from harness.corpus.model.data_budget import DataBudget
from harness.corpus.model.model_errors import ModelError
from harness.corpus.suites.suite import open_folder

SUBTRACT = "agraph (float[N] left, float[N] right) => (float[N] y) { y = Sub(left, right) }"


def load(path: Path) -> Case:
    return load_case(open_folder(path.parent), path.name, {})


def values(case: Case, index: int = 0) -> dict[str, Array]:
    data_set = case.data_sets[index]
    both = (*data_set.inputs, *data_set.expected)
    return {name: value.array for name, value in both if isinstance(value, Tensor)}


def full(value: float) -> Array:
    return np.full(3, value, np.float32)


def pb(array: Array) -> bytes:
    data: bytes = numpy_helper.from_array(array).SerializeToString()
    return data


@pytest.fixture
def model(write_model: Callable[..., Path]) -> Path:
    return write_model("zoo/net-7.onnx", SUBTRACT)


@pytest.fixture
def home(model: Path) -> Path:
    folder = model.parent / "test_data_set_0"
    folder.mkdir()
    return folder


def test_npy_and_pb_files_by_number(model: Path, home: Path) -> None:
    np.save(home / "input_0.npy", full(5))
    (home / "input_1.pb").write_bytes(pb(full(2)))
    np.save(home / "output_0.npy", full(3))
    found = values(load(model))
    assert {name: array[0] for name, array in found.items()} == {"left": 5, "right": 2, "y": 3}


def test_npz_files_by_name(model: Path, home: Path) -> None:
    np.savez(home / "inputs.npz", right=full(2), left=full(5))
    np.savez_compressed(home / "outputs.npz", y=full(3))
    found = values(load(model))
    assert {name: array[0] for name, array in found.items()} == {"left": 5, "right": 2, "y": 3}


def test_the_zoos_first_archives_of_arrays(model: Path) -> None:
    for index in (10, 9):
        np.savez(model.parent / f"test_data_{index}.npz", inputs=[full(index), full(2)], outputs=[full(3)])
    case = load(model)
    assert [data_set.name for data_set in case.data_sets] == ["test_data_9", "test_data_10"]
    assert {name: array[0] for name, array in values(case).items()} == {"left": 9, "right": 2, "y": 3}


def test_folders_go_before_the_first_archives(model: Path, home: Path) -> None:
    np.savez(model.parent / "test_data_0.npz", inputs=[full(1), full(2)], outputs=[full(3)])
    np.savez(home / "inputs.npz", left=full(5), right=full(2))
    assert [data_set.name for data_set in load(model).data_sets] == ["test_data_set_0"]


def write_archive(path: Path, **files: bytes) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def test_the_archive_beside_the_model(model: Path, write_model: Callable[..., Path]) -> None:
    files = {
        "net/net-7.onnx": model.read_bytes(),
        "net/test_data_set_1/input_0.pb": pb(full(7)),
        "net/test_data_set_1/input_1.pb": pb(full(2)),
        "net/test_data_set_0/._input_0.pb": b"of macOS",
        "net/test_data_set_0/input_0.pb": pb(full(5)),
        "net/test_data_set_0/input_1.pb": pb(full(2)),
        "net/test_data_set_0/output_0.pb": pb(full(3)),
        "../../test_data_set_2/../../escapes": b"",
    }
    write_archive(model.with_suffix(".tar.gz"), **files)
    # Where models share a folder, each has the archive of its own name.
    other = write_model("zoo/other.onnx", SUBTRACT)
    case = load(model)
    assert [data_set.name for data_set in case.data_sets] == ["test_data_set_0", "test_data_set_1"]
    assert {name: array[0] for name, array in values(case).items()} == {"left": 5, "right": 2, "y": 3}
    assert load(other).data_sets[0].name == GENERATED
    assert not list(model.parent.parent.rglob("escapes"))


def test_the_folder_goes_before_the_archive(model: Path, home: Path) -> None:
    model.with_suffix(".tar.gz").write_bytes(b"\x1f\x8b broken, and never looked at")
    np.savez(home / "inputs.npz", left=full(5), right=full(2))
    assert values(load(model))["left"][0] == 5


def test_a_pointer_in_place_of_the_archive_is_no_data(model: Path) -> None:
    model.with_suffix(".tar.gz").write_text("version https://git-lfs.github.com/spec/v1\n")
    assert load(model).data_sets[0].name == GENERATED


def test_a_broken_archive_names_itself(model: Path) -> None:
    path = write_archive(model.with_suffix(".tar.gz"), **{"a/test_data_set_0/input_0.pb": bytes(5000)})
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ModelError, match=r"zoo/net-7\.tar\.gz: not a whole archive"):
        load(model)


def test_an_archive_too_large_is_refused(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_set_archive, "LIMIT_BYTES", 1000)
    write_archive(model.with_suffix(".tar.gz"), a=bytes(600), b=bytes(600))
    with pytest.raises(ModelError, match="holds more than 1000 bytes"):
        load(model)


def test_a_new_archive_side_file_or_whole_data_set_is_seen(model: Path) -> None:
    states = [model_state(model, model.parent)]
    for new in ("net-7.tar.gz", "net-7.onnx.toml", "test_data_0.npz", "config.txt"):
        (model.parent / new).write_bytes(b"")
        states.append(model_state(model, model.parent))
    texts = [state.text for state in states if state]
    assert len(set(texts)) == 5


@pytest.mark.parametrize(
    ("name", "content", "cause"),
    [
        ("input_1.npy", b"\x93NUMPY\1\0", "input_1.npy: "),
        ("inputs.npz", b"PK\3\4 no archive", "not a whole file of arrays"),
        ("input_1.npy", b"", "input_1.npy: "),
    ],
)
def test_broken_arrays_name_their_file(
    model: Path, home: Path, name: str, content: bytes, cause: str
) -> None:
    np.save(home / "input_0.npy", full(5))
    (home / name).write_bytes(content)
    with pytest.raises(ModelError, match=cause):
        load(model)


def test_arrays_that_fit_nothing_say_what_would(model: Path, home: Path) -> None:
    np.savez(home / "inputs.npz", left=full(5), rihgt=full(2))
    with pytest.raises(ModelError, match="no input 'rihgt'; did you mean 'right'"):
        load(model)
    np.savez(home / "inputs.npz", left=full(5))
    with pytest.raises(ModelError, match=r"no data for 1 of 2 inputs: 'right'; there is inputs\.npz"):
        load(model)
    np.savez(home / "inputs.npz", left=full(5), right=full(5))
    np.save(home / "input_1.npy", full(5))
    with pytest.raises(ModelError, match="a second value for input 'right'"):
        load(model)


def test_pickles_are_never_read(model: Path, home: Path) -> None:
    np.save(home / "input_0.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ModelError, match="pickled Python objects"):
        load(model)


def test_an_archive_that_claims_too_much_is_not_unpacked() -> None:
    with pytest.raises(ValueError, match="more than 512 MiB"):
        read_npz(_with_member_of(1 << 30), DataBudget())


def _with_member_of(size: int) -> bytes:
    """An archive whose directory claims a member of so many bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("x.npy", b"few")
        archive.filelist[0].file_size = size
    return content.getvalue()


def test_types_that_numpy_does_not_know_are_those_that_the_model_declares(
    write_model: Callable[..., Path],
) -> None:
    graph = "agraph (bfloat16[N] x, int4[N] z) => (bfloat16[N] y) { y = Identity(x) }"
    path = write_model("narrow/one.onnx", graph)
    home = path.parent / "test_data_set_0"
    home.mkdir()
    np.save(home / "input_0.npy", np.arange(3).astype(ml_dtypes.bfloat16))
    np.save(home / "input_1.npy", np.arange(3).astype(ml_dtypes.int4))
    found = load(path).data_sets[0].inputs
    assert [value.dtype for _, value in found if isinstance(value, Tensor)] == ["bfloat16", "int4"]


def test_arrays_of_other_byte_orders_and_texts(write_model: Callable[..., Path]) -> None:
    path = write_model("kinds/one.onnx", "agraph (float[N] x, string[N] t) => (float[N] y) { y = Neg(x) }")
    home = path.parent / "test_data_set_0"
    home.mkdir()
    np.savez(home / "inputs.npz", x=np.arange(3, dtype=">f4"), t=np.array(["a", "bc", ""]))
    found = dict(load(path).data_sets[0].inputs)
    x, t = found["x"], found["t"]
    assert isinstance(x, Tensor)
    assert isinstance(t, Tensor)
    assert (x.dtype, x.array.tolist()) == ("float32", [0, 1, 2])
    assert (t.dtype, t.array.tolist()) == ("string", ["a", "bc", ""])


def test_the_tolerance_of_onnx_test_runner(model: Path, home: Path) -> None:
    np.savez(home / "inputs.npz", left=full(5), right=full(2))
    config = model.parent / "config.txt"
    config.write_text(
        "per_sample_tolerance: 0.25\nrelative_per_sample_tolerance:1e-2\npost_processing:false\n"
    )
    case = load(model)
    assert (case.atol, case.rtol) == (0.25, 0.01)
    config.write_text("per_sample_tolerance: much\n")
    with pytest.raises(ModelError, match="much"):
        load(model)
    (model.parent / "data.json").write_text('{"rtol": 0.5}')
    assert load(model).rtol == 0.5


def test_a_model_that_is_saved_by_onnx_with_external_data(tmp_path: Path) -> None:
    graph = onnx.parser.parse_graph("agraph (float[256] x) => (float[256] y) { y = Add(x, w) }")
    graph.initializer.append(numpy_helper.from_array(np.ones(256, np.float32), "w"))
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    (tmp_path / "m").mkdir()
    onnx.save(
        proto, tmp_path / "m" / "a.onnx", save_as_external_data=True, location="a.onnx.data", size_threshold=0
    )
    case = load(tmp_path / "m" / "a.onnx")
    assert [path.name for path in case.external] == ["a.onnx.data"]
