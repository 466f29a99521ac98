"""The file of a model: its content as a message, or the real kind of the file."""

from pathlib import Path
from typing import TYPE_CHECKING

from harness.core.reading import read_regular
from harness.corpus.model_bounds import check_bounds
from harness.corpus.model_errors import ModelError
from harness.corpus.ort_format.onnx_model import is_ort_format, onnx_model_of
from harness.corpus.protos import parse_proto

if TYPE_CHECKING:
    import onnx

_MODEL_LIMIT = (1 << 31) - 1
"""Largest size of a protobuf message in bytes; larger models keep their weights in other files."""

_OTHERS = (
    (0, b"version https://git-lfs", "a pointer of Git LFS in place of the model: run git lfs pull"),
    (0, b"<", "a page of the web, not a model: the download went wrong"),
    (0, b"\x1f\x8b", "an archive, not a model: unpack it"),
    (0, b"PK\x03\x04", "an archive, not a model: unpack it"),
    (4, b"TFL3", "a model in TensorFlow Lite's format, not in ONNX: convert it"),
)
"""Offset and first bytes of other kinds of files that are named like models, and their kind."""


def read_model_file(path: Path) -> bytes:
    """Return the content of a model's file.

    Raises:
        ModelError: It is larger than ONNX allows.
        ValueError: It is not a regular file, or empty.
        OSError: It cannot be read.
    """
    if path.stat().st_size > _MODEL_LIMIT:
        raise ModelError(path, "larger than 2 GiB, which ONNX does not allow; use external data")
    content = read_regular(path, _MODEL_LIMIT)
    if not content:
        raise ValueError("the file is empty")
    return content


def parse_model(content: bytes) -> "onnx.ModelProto":
    """Return the content of a model's file, in ONNX's format or in ORT format, without its external data.

    Raises:
        ValueError: It is not a model.
        OverBoundError: Reading it would exceed a bound of the harness.
    """
    import onnx

    model: onnx.ModelProto
    if is_ort_format(content):
        model = _saved(content)
        check_bounds(model)
        return model
    try:
        model = parse_proto(onnx.ModelProto, content)
    except ValueError as error:
        raise ValueError(_other(content) or str(error)) from error
    # Protobuf accepts many random bytes as a message without any field.
    if not model.HasField("graph"):
        raise ValueError(_other(content) or "not an ONNX model: it has no graph")
    check_bounds(model)
    return model


def _saved(content: bytes) -> "onnx.ModelProto":
    try:
        return onnx_model_of(content)
    except (ValueError, TypeError) as error:  # TypeError: a number that the ONNX field cannot hold
        raise ValueError(f"a model in ORT format that cannot be read: {error}") from error


def load_model(path: Path) -> "onnx.ModelProto":
    """Return a model without its external data; see ``read_model_file`` and ``parse_model``."""
    return parse_model(read_model_file(path))


def _other(content: bytes) -> str:
    return next((what for offset, start, what in _OTHERS if content.startswith(start, offset)), "")
