import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper

from harness.core.values.value import Array, Sequence, Tensor
from harness.corpus.beside.data_sets import GENERATED
from harness.corpus.case import Case
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import InputError, MisnamedError, ModelError
from harness.corpus.model.port import Port, ValueType
from harness.corpus.suites.suite import Suite, open_folder
from harness.engine.measuring.early_end import without_case

RELU = "agraph (float[N] x) => (float[N] y) { y = Relu(x) }"
SUBTRACT = """agraph (float[N] left, float[N] right, float[1] scale) => (float[N] y)
<float[1] scale = {2.0}> { d = Sub(left, right) y = Mul(d, scale) }"""


def serialized(graph: str) -> bytes:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]> {graph}')
    data: bytes = model.SerializeToString()
    return data


def save_data(home: Path, index: int = 0, **files: Array) -> Path:
    folder = home / f"test_data_set_{index}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in files.items():
        (folder / f"{name}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    return folder


def load(path: Path, seed: int = 0, **dimensions: int) -> Case:
    return load_case(open_folder(path.parent), path.name, dimensions, seed)


def ones(*shape: int) -> Array:
    return np.ones(shape, np.float32)


def test_data_sets_are_read_in_the_order_of_their_numbers(write_model: Callable[..., Path]) -> None:
    path = write_model()
    for index in (10, 9):
        save_data(path.parent, index, input_0=ones(index), output_0=ones(index))
    (path.parent / "data.json").write_text('{"rtol": 0.5, "other": [1]}')
    case = load(path)
    assert case.model_path == path
    kind = ValueType(kind="tensor", dtype="float32", shape=(None,), symbols=("N",))
    assert case.ports == (Port(name="x", type=kind),)
    assert case.outputs == ("y",)
    assert [data_set.name for data_set in case.data_sets] == ["test_data_set_9", "test_data_set_10"]
    assert [name for name, _ in case.data_sets[0].inputs] == ["x"]
    assert [name for name, _ in case.data_sets[0].expected] == ["y"]
    assert (case.rtol, case.atol) == (0.5, 1e-7)
    assert case.facts.op_types == {"Relu": 1}


def test_without_data_inputs_are_generated_by_declared_shape(write_model: Callable[..., Path]) -> None:
    path = write_model()
    case = load(path, N=7)
    assert case.ports[0].type.shape == (7,)
    (data_set,) = case.data_sets
    assert (data_set.name, data_set.expected) == (GENERATED, ())
    ((_, value),) = data_set.inputs
    assert isinstance(value, Tensor)
    assert value.array.shape == (7,)
    assert load(path, N=7).digest == case.digest
    assert len({case.digest, load(path, seed=1, N=7).digest, load(path).digest}) == 3


def test_expected_data_and_their_tolerance_are_part_of_the_digest(write_model: Callable[..., Path]) -> None:
    # Whether a golden is disputed is kept with it, so it must not serve a model that expects something else.
    path = write_model()
    digests = set()
    for expected in (2.0, 3.0):
        save_data(path.parent, input_0=ones(2), output_0=expected * ones(2))
        digests.add(load(path).digest)
    (path.parent / "data.json").write_text('{"rtol": 0.5}')
    digests.add(load(path).digest)
    (path.parent / "test_data_set_0" / "output_0.pb").unlink()
    digests.add(load(path).digest)
    assert len(digests) == 4


def test_names_inside_the_files_go_before_their_numbers(write_model: Callable[..., Path]) -> None:
    path = write_model(graph=SUBTRACT)
    folder = save_data(path.parent)
    for index, (name, number) in enumerate({"right": 1, "left": 5}.items()):
        proto = numpy_helper.from_array(np.full(2, number, np.float32), name)
        (folder / f"input_{index}.pb").write_bytes(proto.SerializeToString())
    case = load(path)
    assert [port.name for port in case.ports] == ["left", "right"]  # scale has an initializer
    values = dict(case.data_sets[0].inputs)
    assert isinstance(values["left"], Tensor)
    assert values["left"].array.tolist() == [5, 5]


def test_models_that_share_a_folder_keep_data_under_their_stem(
    write_model: Callable[..., Path],
) -> None:
    one, two = write_model("zoo/one.onnx"), write_model("zoo/two.onnx")
    save_data(one.parent, input_0=ones(9))
    save_data(one.with_suffix(""), input_0=ones(3), output_0=ones(3))
    assert load(one).data_sets[0].expected
    with pytest.raises(InputError, match=r"is the data of none; move it to two/test_data_set_0"):
        load(two)


def test_sequences_are_read_by_the_declared_type(write_model: Callable[..., Path]) -> None:
    path = write_model(graph="agraph (seq(float[N]) s) => (int64 y) { y = SequenceLength(s) }")
    folder = path.parent / "test_data_set_0"
    folder.mkdir()
    proto = numpy_helper.from_list([ones(1), ones(2)])
    (folder / "input_0.pb").write_bytes(proto.SerializeToString())
    ((_, value),) = load(path).data_sets[0].inputs
    assert isinstance(value, Sequence)
    assert len(value.items) == 2


def test_a_model_without_inputs_needs_no_data(write_model: Callable[..., Path]) -> None:
    path = write_model(graph="agraph () => (float[1] y) { y = Constant<value = float[1] {1.0}>() }")
    assert load(path).data_sets[0].inputs == ()
    save_data(path.parent, output_0=ones(1))
    assert load(path).data_sets[0].expected[0][0] == "y"


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "the file is empty"),
        (b"\x08\x09", "no graph"),
        (b"version https://git-lfs.github.com/spec/v1\n", "run git lfs pull"),
        (serialized(RELU)[:-5], "corrupt"),
        (b"<html>404</html>", "a page of the web"),
        (b"\x1f\x8b\x08\0", "an archive, not a model"),
        (b"PK\x03\x04\0", "an archive, not a model"),
        (b"\x10\0\0\0ORTM", "a model in ORT format"),
    ],
)
def test_a_file_that_is_no_model_costs_only_its_own_cells(
    write_model: Callable[..., Path], content: bytes, cause: str
) -> None:
    path = write_model()
    path.write_bytes(content)
    with pytest.raises(ModelError, match=cause) as caught:
        load(path)
    assert caught.value.path == path
    assert "\n" not in str(caught.value)
    assert load(write_model("models/other.onnx")).data_sets


@pytest.mark.parametrize("name", ["input_name", "Relu", "output_name"])
def test_names_that_are_not_text_are_refused(write_model: Callable[..., Path], name: str) -> None:
    path = write_model(graph=RELU.replace("x", "input_name").replace("y", "output_name"))
    path.write_bytes(path.read_bytes().replace(name.encode(), name.encode()[:-1] + b"\xff"))
    with pytest.raises(ModelError, match="is not valid UTF-8"):
        load(path)


def test_a_missing_model_and_unsupported_inputs_are_model_errors(write_model: Callable[..., Path]) -> None:
    path = write_model()
    suite = open_folder(path.parent)
    path.unlink()
    with pytest.raises(ModelError, match="No such file"):
        load_case(suite, path.name, {})
    sparse = write_model(graph="agraph (sparse_tensor(float[2]) x) => (float[2] y) { y = Identity(x) }")
    with pytest.raises(ModelError, match="sparse_tensor cannot be fed"):
        load(sparse)
    unranked = write_model(graph="agraph (float x) => (float y) { y = Relu(x) }")
    model = onnx.load(unranked)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    onnx.save(model, unranked)
    with pytest.raises(ModelError, match="input 'x': no shape is declared"):
        load(unranked)


def test_test_data_may_name_an_input_with_a_default(write_model: Callable[..., Path]) -> None:
    path = write_model(graph=SUBTRACT)
    model = onnx.load(path)
    model.graph.initializer.append(numpy_helper.from_array(ones(2), "right"))
    onnx.save(model, path)
    folder = save_data(path.parent, input_0=ones(2))
    (folder / "input_1.pb").write_bytes(numpy_helper.from_array(ones(2), "right").SerializeToString())
    assert [name for name, _ in load(path).data_sets[0].inputs] == ["left", "right"]
    (folder / "input_1.pb").write_bytes(numpy_helper.from_array(ones(2), "other").SerializeToString())
    with pytest.raises(ModelError, match=r"input_1\.pb: the model has only 1 inputs"):
        load(path)


def test_broken_test_data_names_the_file(write_model: Callable[..., Path]) -> None:
    path = write_model(graph=SUBTRACT)
    folder = save_data(path.parent, input_0=ones(2))
    with pytest.raises(ModelError, match="no data for 1 of 2 inputs: 'right'"):
        load(path)
    save_data(path.parent, input_1=ones(2), input_2=ones(2))
    with pytest.raises(ModelError, match=r"input_2\.pb: the model has only 2 inputs"):
        load(path)
    (folder / "input_2.pb").unlink()
    (folder / "input_1.pb").write_bytes(b"\xff\xff")
    with pytest.raises(ModelError, match=r"test_data_set_0/input_1\.pb: corrupt"):
        load(path)
    save_data(path.parent, input_1=ones(2))
    (path.parent / "data.json").write_text('{"rtol": -1}')
    with pytest.raises(ModelError, match=r"data\.json: .*>= 0"):
        load(path)


def test_what_lies_in_data_json_of_a_model_without_test_data_does_not_matter(
    write_model: Callable[..., Path],
) -> None:
    path = write_model()
    (path.parent / "data.json").write_text("[1, 2")
    assert load(path).rtol == 1e-3


@settings(max_examples=200)
@given(cut=st.integers(0, 200), noise=st.binary(max_size=40), at=st.integers(0, 200), keep=st.booleans())
def test_any_damage_is_a_case_or_a_model_error(
    tmp_path_factory: pytest.TempPathFactory, cut: int, noise: bytes, at: int, *, keep: bool
) -> None:
    folder = tmp_path_factory.getbasetemp() / "damaged"
    folder.mkdir(exist_ok=True)
    good = serialized(SUBTRACT)
    rest = good[at + len(noise) :] if keep else good[cut:]
    (folder / "model.onnx").write_bytes(good[:at] + noise + rest)
    suite = Suite(name="damaged", root=folder, kind="folder", names=("model.onnx",))
    try:
        load_case(suite, "model.onnx", {"N": 2})
    except ModelError as error:
        assert "\n" not in str(error)  # noqa: PT017 - an intact model is fine too


@pytest.mark.parametrize("length", [250, 251, 252, 254, 255])
def test_a_name_of_any_length_that_the_system_allows_is_a_model(tmp_path: Path, length: int) -> None:
    """Names of files that may lie beside it, such as ``<name>.toml`` and ``<stem>.tar.gz``, are longer."""
    path = tmp_path / ("n" * (length - 5) + ".onnx")
    path.write_bytes(serialized(RELU))
    assert load(path).data_sets[0].name == GENERATED


@pytest.mark.skipif(sys.platform != "linux", reason="other file systems refuse such names")
def test_a_name_that_is_not_text_costs_its_own_model(tmp_path: Path) -> None:
    for name in (b"good.onnx", b"bad\xff.onnx"):
        (tmp_path / os.fsdecode(name)).write_bytes(serialized(RELU))
    suite = open_folder(tmp_path)
    assert suite.models() == (r"bad\udcff.onnx", "good.onnx")
    assert load_case(suite, "good.onnx", {}).outputs == ("y",)
    with pytest.raises(MisnamedError, match="not UTF-8: rename it") as caught:
        load_case(suite, r"bad\udcff.onnx", {})
    ended = without_case(caught.value).ended
    assert ended is not None
    assert ended.how == "declared"
