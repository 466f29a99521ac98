"""How much test data and what a graph makes of nothing may take; told before anything is unpacked or run."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
import onnx.parser
import pytest

from harness.corpus.beside.data_set_archive import MOST_MEMBERS, read_data_set_archive
from harness.corpus.beside.numpy_files import read_npy, read_npz
from harness.corpus.load_case import load_case
from harness.corpus.model.data_budget import DataBudget
from harness.corpus.model.model_errors import BoundError, InputError
from harness.corpus.model.port import ValueType
from harness.corpus.model.protos import decode_named
from harness.corpus.suites.suite import open_folder
from harness.corpus.work.estimate import work_of

Write = Callable[..., Path]

FLOATS = ValueType(kind="tensor", dtype="float32")
TOO_LARGE = "test data of the model would take more than"


def test_the_size_of_arrays_is_known_before_they_are_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO()
    np.savez_compressed(content, x=np.zeros(1 << 20, np.float32))
    assert len(content.getvalue()) < 1 << 14
    assert read_npz(content.getvalue(), DataBudget())["x"].size == 1 << 20
    monkeypatch.setattr("zipfile.ZipFile.open", None)
    with pytest.raises(ValueError, match=TOO_LARGE):
        read_npz(content.getvalue(), DataBudget(1 << 22))


def test_texts_count_as_what_they_become() -> None:
    content = io.BytesIO()
    np.save(content, np.zeros(1 << 16, "S1"))
    budget = DataBudget(1 << 20)
    with pytest.raises(ValueError, match=TOO_LARGE):
        read_npy(content.getvalue(), ValueType(kind="tensor", dtype="string"), budget)


def test_an_array_that_claims_more_than_it_has_is_refused() -> None:
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        content, {"descr": "<f4", "fortran_order": False, "shape": (1 << 42,)}
    )
    with pytest.raises((ValueError, MemoryError)):
        read_npy(content.getvalue(), FLOATS, DataBudget())


def test_many_small_tensors_count_by_their_number() -> None:
    sequence = onnx.SequenceProto(elem_type=onnx.SequenceProto.TENSOR)
    sequence.tensor_values.extend(onnx.TensorProto(data_type=1, dims=[0], raw_data=b"") for _ in range(2000))
    declared = ValueType(kind="sequence", item=FLOATS)
    decode_named(sequence.SerializeToString(), declared, None, DataBudget(2 << 20))
    with pytest.raises(ValueError, match=TOO_LARGE):
        decode_named(sequence.SerializeToString(), declared, None, DataBudget(1 << 20))


def test_external_data_of_a_tensor_is_not_read_first(tmp_path: Path) -> None:
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(4 << 30)  # a hole, which takes no disk
    tensor = onnx.TensorProto(data_type=1, dims=[1 << 30], data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="hole")
    with pytest.raises(ValueError, match=TOO_LARGE):
        decode_named(tensor.SerializeToString(), FLOATS, tmp_path, DataBudget())


def test_all_data_sets_of_a_model_share_one_budget(
    write_model: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_model()
    for number in range(3):
        home = path.parent / f"test_data_set_{number}"
        home.mkdir()
        np.save(home / "input_0.npy", np.zeros(1 << 10, np.float32))
    suite = open_folder(path.parent)
    assert len(load_case(suite, path.name, {}).data_sets) == 3
    monkeypatch.setattr("harness.corpus.beside.data_sets.DataBudget", lambda: DataBudget(3 << 12))
    with pytest.raises(InputError, match=f"test_data_set_2/input_0.npy: the {TOO_LARGE}"):
        load_case(suite, path.name, {"N": 4})


def test_a_file_of_data_beyond_the_bound_is_not_read(write_model: Write) -> None:
    path = write_model()
    home = path.parent / "test_data_set_0"
    home.mkdir()
    with (home / "input_0.pb").open("wb") as file:
        file.truncate(4 << 30)
    with pytest.raises(InputError, match="larger than 512 MiB, the bound of the harness"):
        load_case(open_folder(path.parent), path.name, {})


def test_an_archive_of_too_many_files_is_not_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_MEMBERS == 10_000
    monkeypatch.setattr("harness.corpus.beside.data_set_archive.MOST_MEMBERS", 10)
    with tarfile.open(tmp_path / "m.tar.gz", "w:gz") as archive:
        for number in range(11):
            archive.addfile(tarfile.TarInfo(f"m/{number}"))
    with pytest.raises(ValueError, match="more than 10 files"):
        read_data_set_archive(tmp_path / "m.tar.gz")


def test_a_container_is_as_large_as_what_is_in_it(tmp_path: Path) -> None:
    item = oh.make_tensor_type_proto(1, [1 << 20, 1 << 10])
    port = oh.make_value_info("x", oh.make_sequence_type_proto(item))
    node = oh.make_node("SequenceLength", ["x"], ["y"])
    graph = oh.make_graph([node], "g", [port], [oh.make_tensor_value_info("y", 7, [])])
    onnx.save(oh.make_model(graph), tmp_path / "m.onnx")
    with pytest.raises(InputError, match="inputs would be too large"):
        load_case(open_folder(tmp_path), "m.onnx", {})


MATRIX = "agraph ({}) => (float[N,M] y) <int64[2] s = {{65536, 65536}}> {{ y = {} }}"
MAKING = {
    "ConstantOfShape": MATRIX.format("float[1] x", "ConstantOfShape(s)"),
    "Expand": MATRIX.format("float[1] x", "Expand(x, s)"),
    "Tile": MATRIX.format("float[1,1] x", "Tile(x, s)"),
    "Pad": "agraph (float[1] x) => (float[N] y) <int64[2] s = {0, 4294967296}> { y = Pad(x, s) }",
}


@pytest.mark.parametrize("operator", MAKING)
def test_a_graph_makes_no_huge_tensor_of_little(operator: str, write_model: Write) -> None:
    path = write_model(graph=MAKING[operator])
    with pytest.raises(BoundError, match=r"one.onnx: a tensor of 16 GiB .* bound of the harness is 4 GiB"):
        load_case(open_folder(path.parent), path.name, {})
    small = MAKING[operator].replace("65536", "64").replace("4294967296", "64")
    path = write_model(graph=small)
    load_case(open_folder(path.parent), path.name, {})


def test_sparse_tensors_count_as_what_they_become() -> None:
    values = oh.make_tensor("w", 1, [1], [1.0])
    indices = oh.make_tensor("i", 7, [1], [0])
    sparse = oh.make_sparse_tensor(values, indices, [1 << 20, 1 << 20])
    port = oh.make_tensor_value_info("y", 1, None)
    constant = oh.make_graph([oh.make_node("Constant", [], ["y"], sparse_value=sparse)], "g", [], [port])
    weight = oh.make_graph([oh.make_node("Relu", ["w"], ["y"])], "g", [], [port], sparse_initializer=[sparse])
    for graph in (constant, weight):
        with pytest.raises(ValueError, match="4,096 GiB"):
            work_of(oh.make_model(graph), ())
