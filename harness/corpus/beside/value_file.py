"""Values as files of ONNX's test data; large tensors are in a file beside them, as ONNX's external data.

A protobuf is limited to 2 GiB; outputs of models are not.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from harness.core.values.value import BITS, STRING, Array, Tensor, Value, pack, tensor, value_bytes
from harness.corpus.model.external import make_external
from harness.corpus.model.port import ValueType
from harness.corpus.model.protos import decode, encode, tensor_proto, tensor_type

if TYPE_CHECKING:
    import onnx

LARGE_BYTES = 1 << 30
"""Bytes of a value from which on its large tensors are in their own file."""

OUTSIDE_FROM = 1 << 20
"""Bytes from which on a tensor is large."""

SUFFIX = ".data"
"""Suffix of the file with the tensors."""

BLOCK_BYTES = 16 << 20
"""Bytes that are written, or read, at once."""


def write_value(path: Path, value: Value, declared: ValueType, name: str = "") -> str:
    """Write a value, under a name, to ``output_0.pb``; tensors of a large one go to ``output_0.data``.

    ``read_value`` with the same declared type returns it.

    Returns:
        Return the SHA-256 in hex over the written files.

    Raises:
        OSError: It cannot be written.
        TypeError: The value's structure differs from the declared one.
        TooLargeError: The part that has to stay inside, such as texts, takes 2 GiB or more.
    """
    if value_bytes(value) < LARGE_BYTES:
        content = encode(value, declared, name)
        path.write_bytes(content)
        return hashlib.sha256(content).hexdigest()
    with path.with_suffix(SUFFIX).open("wb") as side:
        outside = _Outside(side, path.with_suffix(SUFFIX).name)
        content = encode(value, declared, name, put=outside.put)
    path.write_bytes(content)
    outside.digest.update(content)
    return outside.digest.hexdigest()


def read_value(path: Path, declared: ValueType, digest: str) -> Value:
    """Read a value that ``write_value`` has written.

    Raises:
        OSError: It cannot be read.
        ValueError: It differs from what was written.
    """
    content, side = path.read_bytes(), path.with_suffix(SUFFIX)
    found = hashlib.sha256()
    if side.exists():
        with side.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                found.update(block)
    found.update(content)
    if found.hexdigest() != digest:
        raise ValueError(f"{path} has another SHA-256")
    return decode(content, declared, path.parent)


def write_model_folder(folder: Path, model: "onnx.ModelProto", inputs: Mapping[str, Array]) -> None:
    """Write ``model.onnx`` and ``test_data_set_0/input_N.pb`` into an empty folder.

    There are no expected data: goldens are computed, as for a user's own model.
    """
    (folder / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
    data_set = folder / "test_data_set_0"
    data_set.mkdir()
    for index, (name, array) in enumerate(inputs.items()):
        proto = tensor_proto(tensor(array), name)
        (data_set / f"input_{index}.pb").write_bytes(proto.SerializeToString(deterministic=True))


class _Outside:
    """Writes tensors to a file with a name beside the value."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.digest = hashlib.sha256()
        self._file = file
        self._name = name

    def put(self, value: Tensor) -> "onnx.TensorProto":
        """Return the message of a tensor; if it has many elements, they are in the file."""
        if value.dtype == STRING or value.array.nbytes < OUTSIDE_FROM:
            return tensor_proto(value)
        start = self._file.tell()
        # Viewed in place: a copy would double the memory.
        whole = np.ascontiguousarray(value.array).reshape(-1)
        data: Any = pack(value) if value.dtype in BITS else whole.view(np.uint8)
        for at in range(0, len(data), BLOCK_BYTES):
            block = data[at : at + BLOCK_BYTES]
            self._file.write(block)
            self.digest.update(block)
        proto = tensor_type(value)
        make_external(proto, self._name, start, len(data))
        return proto
