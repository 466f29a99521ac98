"""The subject of a reduction: a model with its input data."""

import functools
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.core.values.value import STRING, Map, Sequence, Tensor, Value, value_bytes
from harness.corpus.model.external import external_files
from harness.corpus.model.model_file import parse_model

if TYPE_CHECKING:
    import onnx

MODEL = "model.onnx"


class Subject(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A model and one data set.

    Attributes:
        model: The serialized model. Large tensors may be external data.
        inputs: Value of each graph input that is fed, by name.
        external: Folder in which external data lies; None if the model never had any.
        origins: Name of a node -> its name in the initial model of the reduction, where they differ. An
            unnamed node has the name of its first output. It is not part of the digest.
    """

    model: bytes
    inputs: tuple[tuple[str, Value], ...]
    external: Path | None = None
    origins: dict[str, str] = {}

    @functools.cached_property
    def digest(self) -> str:
        """Return the SHA-256 over the model and its inputs; the content of external data does not count."""
        whole = hashlib.sha256(self.model)
        for name, value in self.inputs:
            whole.update(b"\0input\0" + name.encode())
            _add(whole, value)
        return whole.hexdigest()

    @property
    def nbytes(self) -> int:
        """Bytes of the model and its inputs, without external data."""
        return len(self.model) + sum(value_bytes(value) for _, value in self.inputs)

    def proto(self) -> "onnx.ModelProto":
        """Return the model as a message, with its external data left in place."""
        return parse_model(self.model)

    def write(self, folder: Path) -> Path:
        """Write ``model.onnx`` into a folder; external data is linked, not copied.

        Returns:
            Return the model's path.

        Raises:
            ValueError: External data is missing, too short or outside of its folder.
        """
        path = folder / MODEL
        if self.external is not None:
            for file in external_files(self.proto(), self.external / MODEL):
                link = folder / file.relative_to(self.external)
                link.parent.mkdir(parents=True, exist_ok=True)
                if not link.exists():
                    _link(file.resolve(), link)
        path.write_bytes(self.model)
        return path


def _link(file: Path, link: Path) -> None:
    """Make a file appear in another place without copying it, if the disk supports that."""
    try:
        # onnxruntime refuses external data that leave the model's folder by a symbolic link.
        os.link(file, link)
    except OSError:
        link.symlink_to(file)


def _add(whole: "hashlib._Hash", value: Value) -> None:
    if isinstance(value, Tensor):
        whole.update(f"\0{value.dtype}{value.array.shape}".encode())
        if value.dtype == STRING:
            whole.update("\0".join(map(str, value.array.reshape(-1).tolist())).encode())
        else:
            whole.update(value.array.tobytes())
    elif isinstance(value, Sequence):
        whole.update(f"\0sequence{len(value.items)}".encode())
        for item in value.items:
            _add(whole, item)
    elif isinstance(value, Map):
        whole.update(b"\0map")
        _add(whole, value.keys)
        _add(whole, value.values)
    else:
        whole.update(b"\0none")
