"""A copy of a model with its weights in a file beside it, as ``onnx.save`` makes for large models."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.core.values.value import STRING, pack
from harness.corpus.caches.cache import cache_root, fill_once
from harness.corpus.case import Case
from harness.corpus.derived.derived_models import MODEL_FILE
from harness.corpus.model.external import make_external
from harness.corpus.model.model_errors import blame
from harness.corpus.model.protos import parse_proto, tensor_value

if TYPE_CHECKING:
    import onnx

_FORMAT = 1
"""Increase it when copies change although their models do not."""

SMALLEST = 1024
"""Bytes from which on a weight is moved.

This is onnx's own default, because shapes and scalars have to stay.
"""

ALIGNMENT = 4096
"""Every weight begins at a multiple of so many bytes, as ONNX recommends for mapped files."""

_WEIGHTS = "weights.bin"


def external_copy(case: Case) -> Case | None:
    """Return the case with a model whose weights are in another file; digest and golden stay the same.

    The copy is made in the cache, once. A model that has external data already is its own copy.

    Returns:
        None if no weight of the model can be moved.

    Raises:
        ModelError: A weight is broken, or the model is missing.
        UsageError: The cache cannot be written.
    """
    if case.external:
        return case
    entry = cache_root() / "external-data" / f"{case.digest}-v{_FORMAT}"
    if not entry.is_dir():
        with blame(case.model_path):
            model, weights = _split(case.model_path)
        if not weights:
            return None

        def build(folder: Path) -> None:
            (folder / MODEL_FILE).write_bytes(model)
            with (folder / _WEIGHTS).open("wb") as file:
                for offset, content in weights:
                    file.seek(offset)
                    file.write(content)

        fill_once(entry, build)
    return msgspec.structs.replace(case, model_path=entry / MODEL_FILE, external=(entry / _WEIGHTS,))


def _split(path: Path) -> tuple[bytes, list[tuple[int, bytes]]]:
    """Return the model without the moved weights, and these weights with their offsets."""
    import onnx

    model: onnx.ModelProto = parse_proto(onnx.ModelProto, path.read_bytes())
    weights: list[tuple[int, bytes]] = []
    end = 0
    for weight in model.graph.initializer:
        content = _content(weight)
        if len(content) < SMALLEST:
            continue
        offset = -(-end // ALIGNMENT) * ALIGNMENT
        end = offset + len(content)
        weights.append((offset, content))
        moved = onnx.TensorProto(name=weight.name, data_type=weight.data_type, dims=weight.dims)
        make_external(moved, _WEIGHTS, offset, len(content))
        weight.CopyFrom(moved)
    return model.SerializeToString(), weights


def _content(weight: "onnx.TensorProto") -> bytes:
    """Return the elements as bytes of a file; empty for texts, which ONNX keeps inside the model."""
    if weight.HasField("raw_data"):
        return weight.raw_data
    value = tensor_value(weight)
    return b"" if value.dtype == STRING else bytes(pack(value))
