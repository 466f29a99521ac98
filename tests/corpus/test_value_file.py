"""Values as files of ONNX test data, with large tensors beside them."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf.message import EncodeError  # type: ignore[import-untyped]

from harness.core.values.value import DTYPES, STRING, Map, Sequence, Tensor, Value, tensor, to_wire
from harness.corpus.beside import value_file
from harness.corpus.beside.value_file import read_value, write_value
from harness.corpus.model.port import ValueType
from harness.corpus.model.protos import TooLargeError, encode

TENSOR = ValueType(kind="tensor")
FLOATS = tensor(np.arange(12, dtype=np.float32).reshape(3, 4).T)
NIBBLES = Tensor(dtype="int4", array=(np.arange(9) % 5).astype(DTYPES["int4"]))
WORDS = tensor(np.array(["a", "b" * 99], dtype=object))


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_file, "LARGE_BYTES", 16)
    monkeypatch.setattr(value_file, "OUTSIDE_FROM", 9)
    monkeypatch.setattr(value_file, "BLOCK_BYTES", 10)


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize(
    ("value", "declared"),
    [
        (FLOATS, TENSOR),
        (NIBBLES, TENSOR),
        (WORDS, TENSOR),
        (Sequence(items=(FLOATS, NIBBLES, FLOATS)), ValueType(kind="sequence", item=TENSOR)),
        (FLOATS, ValueType(kind="optional", item=TENSOR)),
        (
            Map(keys=tensor(np.arange(9)), values=tensor(np.arange(9.0))),
            ValueType(kind="map", dtype="int64", item=TENSOR),
        ),
    ],
)
def test_a_large_value_comes_back_from_two_files(tmp_path: Path, value: Value, declared: ValueType) -> None:
    digest = write_value(tmp_path / "output_0.pb", value, declared)
    assert to_wire(read_value(tmp_path / "output_0.pb", declared, digest)) == to_wire(value)


@pytest.mark.usefixtures("small_limits")
def test_others_read_a_large_tensor_too(tmp_path: Path) -> None:
    write_value(tmp_path / "output_0.pb", FLOATS, TENSOR)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["output_0.data", "output_0.pb"]
    proto = onnx.TensorProto.FromString((tmp_path / "output_0.pb").read_bytes())
    assert not proto.raw_data
    assert np.array_equal(onnx.numpy_helper.to_array(proto, str(tmp_path)), FLOATS.array)


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("damage", ["output_0.data", "output_0.pb"])
def test_damage_in_either_file_is_found(tmp_path: Path, damage: str) -> None:
    digest = write_value(tmp_path / "output_0.pb", FLOATS, TENSOR)
    content = bytearray((tmp_path / damage).read_bytes())
    content[-1] ^= 1
    (tmp_path / damage).write_bytes(content)
    with pytest.raises(ValueError, match="another SHA-256"):
        read_value(tmp_path / "output_0.pb", TENSOR, digest)


def test_a_small_value_is_one_file(tmp_path: Path) -> None:
    write_value(tmp_path / "output_0.pb", FLOATS, TENSOR)
    assert (tmp_path / "output_0.pb").read_bytes() == encode(FLOATS, TENSOR)
    assert len(list(tmp_path.iterdir())) == 1


class Endless:
    """A protobuf that has become too large."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's own name
        raise EncodeError("Failed to serialize proto")


def test_a_value_too_large_for_a_protobuf_is_an_error_of_its_own() -> None:
    endless: Any = Endless()
    with pytest.raises(TooLargeError, match="a protobuf ends at 2 GiB"):
        encode(Tensor(dtype=STRING, array=np.empty(0, object)), TENSOR, put=lambda _: endless)
