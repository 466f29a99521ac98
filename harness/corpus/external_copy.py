"""A model once more, with its weights in a file beside it: what ``onnx.save`` makes for large models."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.corpus.cache import cache_root, fill_once
from harness.corpus.case import Case
from harness.corpus.errors import blame

if TYPE_CHECKING:
    import onnx

FORMAT = 1
"""Rises when copies change although their models do not."""

SMALLEST = 1024
"""Bytes from which on a weight is moved; onnx's own default, for shapes and scalars have to stay."""

ALIGNMENT = 4096
"""Every weight begins at a multiple of so many bytes, as ONNX recommends for files that are mapped."""

MODEL, WEIGHTS = "model.onnx", "weights.bin"


def external_copy(case: Case) -> Case | None:
    """The case with a model whose weights lie in another file; its digest is the same, and so its golden.

    The copy is made in the cache, once. A model that has external data already is its own copy.

    Returns:
        None where the model has no weight that could be moved.

    Raises:
        ModelError: A weight is broken, or the model has gone.
        UsageError: The cache cannot be written.
    """
    if case.external:
        return case
    entry = cache_root() / "external-data" / f"{case.digest}-v{FORMAT}"
    if not entry.is_dir():
        with blame(case.model_path):
            model, weights = _split(case.model_path)
        if not weights:
            return None

        def build(folder: Path) -> None:
            (folder / MODEL).write_bytes(model)
            with (folder / WEIGHTS).open("wb") as file:
                for offset, content in weights:
                    file.seek(offset)
                    file.write(content)

        fill_once(entry, build)
    return msgspec.structs.replace(case, model_path=entry / MODEL, external=(entry / WEIGHTS,))


def _split(path: Path) -> tuple[bytes, list[tuple[int, bytes]]]:
    """The model without the weights that are moved, and these with their offsets."""
    import onnx

    from harness.corpus.protos import parse

    model: onnx.ModelProto = parse(onnx.ModelProto, path.read_bytes())
    weights: list[tuple[int, bytes]] = []
    end = 0
    for weight in model.graph.initializer:
        content = _content(weight)
        if len(content) < SMALLEST:
            continue
        offset = -(-end // ALIGNMENT) * ALIGNMENT
        end = offset + len(content)
        weights.append((offset, content))
        moved = onnx.TensorProto(
            name=weight.name,
            data_type=weight.data_type,
            dims=weight.dims,
            data_location=onnx.TensorProto.EXTERNAL,
        )
        for key, entry in (("location", WEIGHTS), ("offset", offset), ("length", len(content))):
            moved.external_data.add(key=key, value=str(entry))
        weight.CopyFrom(moved)
    return model.SerializeToString(), weights


def _content(weight: "onnx.TensorProto") -> bytes:
    """The elements as they lie in a file; empty for texts, which ONNX keeps inside the model."""
    from harness.core.value import STRING, pack
    from harness.corpus.protos import tensor_value

    if weight.HasField("raw_data"):
        return weight.raw_data
    value = tensor_value(weight)
    return b"" if value.dtype == STRING else bytes(pack(value))
