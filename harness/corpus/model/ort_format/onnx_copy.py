"""The ONNX file of a model in ORT format, for users that need one: sessions, references, bundles."""

from pathlib import Path
from typing import TYPE_CHECKING

from harness.core.text.errors import UsageError
from harness.corpus.caches.cache import cache_root, fill_intact
from harness.corpus.model.model_errors import ModelError

if TYPE_CHECKING:
    import onnx

COPIES_FOLDER = "ort-format"
"""The folder of the cache for such models."""


def unpacked(model: "onnx.ModelProto", digest: str) -> Path:
    """Return the ONNX file of a model in ORT format; the digest is that of the ORT file.

    Raises:
        ValueError: It is too large for an ONNX file.
        ModelError: The cache cannot be written.
    """

    def build(folder: Path) -> None:
        (folder / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))

    folder = cache_root() / COPIES_FOLDER / digest
    try:
        return fill_intact(folder, build) / "model.onnx"
    except UsageError as error:
        raise ModelError(folder / "model.onnx", error.problems[0].what) from error
