"""The file of a model: its content as a message, or the real kind of the file."""

import hashlib
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness.core.files.reading import open_regular
from harness.corpus.model.lean_model import LARGE, IsKept, lean_content, none_is_kept
from harness.corpus.model.model_bounds import check_bounds
from harness.corpus.model.model_errors import ModelError
from harness.corpus.model.ort_format.onnx_model import is_ort_format, onnx_model_of
from harness.corpus.model.protos import parse_proto

if TYPE_CHECKING:
    import onnx

_MODEL_LIMIT = (1 << 31) - 1
"""Largest size of a protobuf message in bytes; larger models keep their weights in other files."""

_FIRST_BYTES = 16
"""Of a file, which show its kind."""

_OTHERS = (
    (0, b"version https://git-lfs", "a pointer of Git LFS in place of the model: run git lfs pull"),
    (0, b"<", "a page of the web, not a model: the download went wrong"),
    (0, b"\x1f\x8b", "an archive, not a model: unpack it"),
    (0, b"PK\x03\x04", "an archive, not a model: unpack it"),
    (4, b"TFL3", "a model in TensorFlow Lite's format, not in ONNX: convert it"),
)
"""Offset and first bytes of other kinds of files that are named like models, and their kind."""


class ModelFile(NamedTuple):
    """What the file of a model holds.

    Attributes:
        model: The model without the bytes of its large weights, or of external data.
        digest: SHA-256 over the file.
        in_ort_format: Whether the file is in ORT format.
    """

    model: "onnx.ModelProto"
    digest: "hashlib._Hash"
    in_ort_format: bool


def read_model_file(path: Path) -> bytes:
    """Return the content of a model's file.

    Raises:
        ModelError: It is larger than ONNX allows.
        ValueError: It is not a regular file, or empty.
        OSError: It cannot be read.
    """
    with _opened(path) as file:
        return _filled(file.read(_MODEL_LIMIT))


def _filled(content: bytes) -> bytes:
    if not content:
        raise ValueError("the file is empty")
    return content


def _opened(path: Path) -> BufferedReader:
    if path.stat().st_size > _MODEL_LIMIT:
        raise ModelError(path, "larger than 2 GiB, which ONNX does not allow; use external data")
    return open_regular(path, _MODEL_LIMIT)


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


def load_lean(
    path: Path, least_bytes: int = LARGE, beside: str = "", is_kept: IsKept = none_is_kept
) -> "onnx.ModelProto":
    """Return a model without the bytes of its large weights; see ``lean_content``, and ``load_model``."""
    with _opened(path) as file:
        return parse_model(_lean(file, least_bytes, beside, is_kept))


def read_lean(path: Path) -> ModelFile:
    """Return a model without the bytes of its large weights, with what its whole file shows."""
    with _opened(path) as file:
        model = parse_model(_lean(file, LARGE, "", none_is_kept))
        file.seek(0)
        in_ort_format = is_ort_format(file.read(_FIRST_BYTES))
        file.seek(0)
        return ModelFile(model, hashlib.file_digest(file, "sha256"), in_ort_format)


def _lean(file: BufferedReader, least_bytes: int, beside: str, is_kept: IsKept) -> bytes:
    first = file.read(LARGE)
    if len(first) < LARGE or is_ort_format(first):
        content = None
    else:
        content = lean_content(file, least_bytes, beside, is_kept)
    if content is not None:
        return content
    file.seek(len(first))
    return _filled(first + file.read())


def _other(content: bytes) -> str:
    return next((what for offset, start, what in _OTHERS if content.startswith(start, offset)), "")
