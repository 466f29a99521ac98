"""A case from the row cache is the case from the files, and every change of the files is seen."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from harness.core.values.value import Map, Sequence, Tensor, Value, tensor, to_wire
from harness.corpus.case import Case
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import InputError, ModelError
from harness.corpus.model.model_file import ModelFile, read_lean
from harness.corpus.model.port import ValueType
from harness.corpus.model.protos import encode
from harness.corpus.suites.suite import Suite, open_folder

pytestmark = pytest.mark.usefixtures("own_cache")

TENSOR = ValueType(kind="tensor")
FLOATS = tensor(np.array([[1.5, -0.0], [np.nan, np.inf]], np.float32))
STRINGS = tensor(np.array(["", "ä€😀", "a\nb"], dtype=object))
ADD = "agraph (float[2] x) => (float[2] y) <float[2] w> { y = Add(x, w) }"

VALUES: dict[str, tuple[onnx.TypeProto, ValueType, Value]] = {
    "tensor": (helper.make_tensor_type_proto(TensorProto.FLOAT, ("N", 2)), TENSOR, FLOATS),
    "scalar": (helper.make_tensor_type_proto(TensorProto.DOUBLE, ()), TENSOR, tensor(np.array(3.5))),
    "empty": (
        helper.make_tensor_type_proto(TensorProto.INT64, (0, 2)),
        TENSOR,
        tensor(np.zeros((0, 2), int)),
    ),
    "strings": (helper.make_tensor_type_proto(TensorProto.STRING, (3,)), TENSOR, STRINGS),
    "int4": (
        helper.make_tensor_type_proto(TensorProto.INT4, (3,)),
        TENSOR,
        tensor(np.array([-8, 0, 7], ml_dtypes.int4)),
    ),
    "bfloat16": (
        helper.make_tensor_type_proto(TensorProto.BFLOAT16, (2,)),
        TENSOR,
        tensor(np.array([1.5, np.nan], ml_dtypes.bfloat16)),
    ),
    "complex": (
        helper.make_tensor_type_proto(TensorProto.COMPLEX64, (1,)),
        TENSOR,
        tensor(np.array([1 - 2j], np.complex64)),
    ),
    "sequence": (
        helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None)),
        ValueType(kind="sequence", item=TENSOR),
        Sequence(items=(FLOATS, tensor(np.zeros((0,), np.float32)))),
    ),
    "optional": (
        helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None)),
        ValueType(kind="optional", item=TENSOR),
        None,
    ),
    "map": (
        helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, ())),
        ValueType(kind="map", dtype="string", item=TENSOR),
        Map(keys=STRINGS, values=tensor(np.array([1, 2, 3], np.float32))),
    ),
}


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The models that were read from their files, from now on; and files need not have settled."""
    found: list[Path] = []

    def spy(path: Path) -> ModelFile:
        found.append(path)
        return read_lean(path)

    monkeypatch.setattr("harness.corpus.load_case.read_lean", spy)
    monkeypatch.setattr("harness.corpus.beside.file_state.SETTLED_NS", -(10**12))
    return found


@pytest.fixture
def home(write_model: Callable[..., Path]) -> Path:
    """A model with external data, a data set and a tolerance, all of them last changed an hour ago."""
    path = write_model(
        "models/one.onnx", ADD.replace("<float[2] w>", "").replace("[2] x", "[2] x, float[2] w")
    )
    model = onnx.load(path)
    del model.graph.input[1]
    weight = model.graph.initializer.add(name="w", data_type=1, dims=[2], data_location=1)
    weight.external_data.add(key="location", value="deep/w.bin")
    onnx.save(model, path)
    home = path.parent
    (home / "deep").mkdir()
    (home / "deep" / "w.bin").write_bytes(np.array([1, 2], np.float32).tobytes())
    (home / "data.json").write_text('{"rtol": 0.25}')
    save(home / "test_data_set_0" / "input_0.pb", 1)
    save(home / "test_data_set_0" / "output_0.pb", 2)
    for file in home.rglob("*.*"):
        age(file)
    return home


def save(path: Path, number: float) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(encode(tensor(np.full(2, number, np.float32)), TENSOR))


def age(path: Path) -> None:
    os.utime(path, (time.time() - 3600,) * 2)


def load(home: Path, **dimensions: int) -> Case:
    return load_case(open_folder(home), "one.onnx", dimensions)


def plain(case: Case) -> Any:
    """Everything about a case, as values that can be compared."""
    data_sets = [
        (
            one.name,
            [(name, to_wire(value)) for name, value in one.inputs],
            [(name, to_wire(value)) for name, value in one.expected],
        )
        for one in case.data_sets
    ]
    return msgspec.structs.replace(case, data_sets=(), state=""), data_sets


def test_every_kind_of_value_comes_back(tmp_path: Path, reads: list[Path]) -> None:
    infos = [helper.make_value_info(name, kind) for name, (kind, _, _) in VALUES.items()]
    outputs = [helper.make_value_info(f"{name}/out", kind) for name, (kind, _, _) in VALUES.items()]
    nodes = [helper.make_node("Identity", [name], [f"{name}/out"]) for name in VALUES]
    folder = tmp_path / "all" / "test_data_set_0"
    folder.mkdir(parents=True)
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", infos, outputs)), folder.parent / "one.onnx")
    for index, (_, declared, value) in enumerate(VALUES.values()):
        for role in ("input", "output"):
            (folder / f"{role}_{index}.pb").write_bytes(encode(value, declared))
    first, second = load(folder.parent), load(folder.parent)
    assert len(reads) == 1
    assert plain(first) == plain(second)
    for (name, value), (_, _, original) in zip(second.data_sets[0].inputs, VALUES.values(), strict=True):
        assert to_wire(value) == to_wire(original), name
        if isinstance(value, Tensor) and isinstance(original, Tensor):
            assert value.array.dtype == original.array.dtype


def test_a_case_is_read_once(home: Path, reads: list[Path]) -> None:
    first, second = load(home), load(home)
    assert len(reads) == 1
    assert plain(first) == plain(second)
    assert (second.rtol, second.data_sets[0].name, second.model_path) == (
        0.25,
        "test_data_set_0",
        home / "one.onnx",
    )


def rewrite_input(home: Path) -> None:
    save(home / "test_data_set_0" / "input_0.pb", 7)


def rewrite_output(home: Path) -> None:
    save(home / "test_data_set_0" / "output_0.pb", 7)


def rewrite_model(home: Path) -> None:
    data = (home / "one.onnx").read_bytes()
    (home / "one.onnx").write_bytes(data.replace(b"agraph", b"bgraph"))


def rewrite_external(home: Path) -> None:
    (home / "deep" / "w.bin").write_bytes(np.array([1, 3], np.float32).tobytes())


def rewrite_tolerance(home: Path) -> None:
    (home / "data.json").write_text('{"rtol": 0.75}')


def replace_input(home: Path) -> None:
    new = home / "new.pb"
    save(new, 9)
    old = home / "test_data_set_0" / "input_0.pb"
    status = old.stat()
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
    new.replace(old)


def add_data_set(home: Path) -> None:
    save(home / "test_data_set_1" / "input_0.pb", 5)
    age(home / "test_data_set_1" / "input_0.pb")


def remove_output(home: Path) -> None:
    (home / "test_data_set_0" / "output_0.pb").unlink()


def remove_tolerance(home: Path) -> None:
    (home / "data.json").unlink()


def remove_data_sets(home: Path) -> None:
    (home / "test_data_set_0").rename(home / "kept")


CHANGES = [
    rewrite_input,
    rewrite_output,
    rewrite_model,
    rewrite_external,
    rewrite_tolerance,
    replace_input,
    add_data_set,
    remove_output,
    remove_tolerance,
    remove_data_sets,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_is_seen(home: Path, reads: list[Path], change: Callable[[Path], None]) -> None:
    before = load(home)
    change(home)
    after = load(home)
    assert len(reads) == 2
    assert plain(before) != plain(after)
    assert plain(load(home)) == plain(after)
    assert len(reads) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="there, files have no time of their last change")
def test_a_change_that_hides_its_time_is_seen(home: Path, reads: list[Path]) -> None:
    path = home / "test_data_set_0" / "input_0.pb"
    before, status = load(home), path.stat()
    time.sleep(0.05)
    rewrite_input(home)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert plain(load(home)) != plain(before)
    assert len(reads) == 2


def test_a_second_model_in_the_folder_changes_whose_data_it_is(home: Path, reads: list[Path]) -> None:
    assert load(home).data_sets[0].name == "test_data_set_0"
    (home / "two.onnx").write_bytes(b"")
    with pytest.raises(InputError, match="a folder of several models"):
        load(home)
    assert len(reads) == 2


@pytest.mark.parametrize("gone", ["one.onnx", "deep/w.bin"])
def test_what_is_gone_is_an_error_that_is_not_kept(home: Path, reads: list[Path], gone: str) -> None:
    suite = open_folder(home)
    case = load_case(suite, "one.onnx", {})
    content = (home / gone).read_bytes()
    (home / gone).unlink()
    for _ in range(2):
        with pytest.raises(ModelError):
            load_case(suite, "one.onnx", {})
    (home / gone).write_bytes(content)
    assert plain(load_case(suite, "one.onnx", {})) == plain(case)
    assert len(reads) == 4


def test_sizes_and_seeds_make_cases_of_their_own(write_model: Callable[..., Path], reads: list[Path]) -> None:
    suite = open_folder(write_model().parent)
    keys = [({"N": 4}, 0), ({"N": 3}, 0), ({"N": 4}, 1), ({}, 0)]
    first = [load_case(suite, "one.onnx", dimensions, seed) for dimensions, seed in keys]
    again = [load_case(suite, "one.onnx", dimensions, seed) for dimensions, seed in keys]
    assert len(reads) == len({case.digest for case in first}) == 4
    assert list(map(plain, first)) == list(map(plain, again))


@pytest.mark.parametrize("young", ["one.onnx", "deep/w.bin", "test_data_set_0/input_0.pb", "data.json", None])
def test_young_files_are_read_each_time(
    home: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch, young: str | None
) -> None:
    # A file that changes twice within a tick of the clock looks the same after both.
    monkeypatch.setattr("harness.corpus.beside.file_state.SETTLED_NS", 2 * 10**9)
    # Times of last change cannot be set, so the clock goes ahead instead.
    ahead = time.time_ns() + 60 * 10**9
    monkeypatch.setattr("harness.corpus.load_case.time.time_ns", lambda: ahead)
    if young:
        os.utime(home / young, ns=(ahead - 10**9, ahead - 10**9))
    cases = [load(home), load(home)]
    assert len(reads) == (2 if young else 1)
    assert plain(cases[0]) == plain(cases[1])


def test_data_that_may_lie_deeper_is_read_each_time(home: Path, reads: list[Path]) -> None:
    (home / "test_data_set_0" / "more").mkdir()
    load(home)
    load(home)
    assert len(reads) == 2


def test_large_cases_are_read_each_time(write_model: Callable[..., Path], reads: list[Path]) -> None:
    home = write_model().parent
    assert load(home, N=600_000).nbytes == 2_400_000
    load(home, N=600_000)
    assert len(reads) == 2


def test_a_suite_without_a_cache_keeps_nothing(
    write_model: Callable[..., Path], reads: list[Path], own_cache: Path
) -> None:
    suite = msgspec.structs.replace(open_folder(write_model().parent), cache=None)
    load_case(suite, "one.onnx", {})
    load_case(suite, "one.onnx", {})
    assert len(reads) == 2
    assert not own_cache.exists()


def test_of_a_built_in_suite_only_the_model_is_looked_at(
    write_model: Callable[..., Path], reads: list[Path], own_cache: Path
) -> None:
    path = write_model("built/test_relu/model.onnx")
    suite = Suite(
        name="s", root=path.parents[1], kind="built_in", names=("test_relu",), cache=own_cache / "suites"
    )
    case = load_case(suite, "test_relu", {"N": 2})
    save(path.parent / "test_data_set_0" / "input_0.pb", 1)
    assert plain(load_case(suite, "test_relu", {"N": 2})) == plain(case)
    age(path)
    assert load_case(suite, "test_relu", {"N": 2}).data_sets[0].name == "test_data_set_0"
    assert len(reads) == 2
    path.unlink()
    with pytest.raises(ModelError, match="No such file"):
        load_case(suite, "test_relu", {"N": 2})


def test_a_cache_that_cannot_be_written_changes_nothing(
    home: Path, reads: list[Path], own_cache: Path
) -> None:
    own_cache.write_text("in the way")
    assert plain(load(home)) == plain(load(home))
    assert len(reads) == 2
