"""Weights that a model keeps in other files, all of which have to be inside the model's folder.

The location is text from the model, so it may be hostile.
"""

import re
from os.path import realpath
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from harness.core.text.errors import one_line
from harness.corpus.model.port import model_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import onnx


def external_files(model: "onnx.ModelProto", path: Path) -> tuple[Path, ...]:
    """Return every external data file of a model, checked but not read, in the order of first use.

    Raises:
        ValueError: A file is missing, too short, or outside the model's folder.
    """
    found: dict[Path, None] = {}
    for tensor in _tensors(model):
        if tensor.data_location == tensor.EXTERNAL:
            found[external_place(tensor, path.parent, path)[0]] = None
    return tuple(found)


def read_external(tensor: "onnx.TensorProto", folder: Path) -> bytes:
    """Return the external bytes of one tensor.

    Raises:
        ValueError: As ``external_files``.
    """
    file, offset, length = external_place(tensor, folder)
    with file.open("rb") as stream:
        stream.seek(offset)
        return stream.read(length)


def make_external(tensor: "onnx.TensorProto", location: str, offset: int, length: int) -> None:
    """Point a tensor without elements to elements in a file."""
    tensor.data_location = tensor.EXTERNAL
    for key, entry in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(entry))


def external_place(
    tensor: "onnx.TensorProto", folder: Path, model: Path | None = None
) -> tuple[Path, int, int]:
    """Return the file that holds the external bytes of one tensor, their offset and their number.

    Raises:
        ValueError: As ``external_files``.
    """
    entries = {entry.key: model_text(entry.value) for entry in tensor.external_data}
    location = entries.get("location", "")
    spellings = (PurePosixPath(location), PureWindowsPath(location))
    if not location:
        raise ValueError(f"tensor {tensor.name!r} is external data without a location")
    if any(one.is_absolute() or one.drive or one.root or ".." in one.parts for one in spellings):
        raise ValueError(f"external data {location!r} points outside the model's folder")
    file = folder / location
    # A model that is itself a symbolic link, as in a download cache, may keep its data beside its target.
    # realpath, because resolve() fails over a link that leads to itself.
    homes = (Path(realpath(folder)), Path(realpath(model or folder / "tensor.pb")).parent)
    if not any(Path(realpath(file)).is_relative_to(home) for home in homes):
        raise ValueError(f"external data {location!r} leads outside the model's folder by a symbolic link")
    if not file.is_file():
        how = "is no file" if file.exists() else "is missing"
        raise ValueError(f"external data {location!r} {how}")
    size = file.stat().st_size
    offset = _number(entries, "offset", 0)
    length = _number(entries, "length", size - offset)
    if offset < 0 or length < 0 or offset + length > size:
        raise ValueError(
            f"external data {location!r} is too short: {size} bytes, "
            f"tensor {tensor.name!r} takes {length} from {offset}"
        )
    return file, offset, length


def _number(entries: "dict[str, str]", key: str, default: int) -> int:
    text = entries.get(key) or str(default)
    if not re.fullmatch(r"-?\d{1,20}", text):
        raise ValueError(f"external data whose {key} is {one_line(text, 40)!r}, no number")
    return int(text)


def _tensors(model: "onnx.ModelProto") -> "Iterator[onnx.TensorProto]":
    yield from _in_graph(model.graph)
    for function in model.functions:
        yield from _in_nodes(function.node)


def _in_graph(graph: "onnx.GraphProto") -> "Iterator[onnx.TensorProto]":
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _in_nodes(graph.node)


def _in_nodes(nodes: "Iterable[onnx.NodeProto]") -> "Iterator[onnx.TensorProto]":
    for attribute in (attribute for node in nodes for attribute in node.attribute):
        if attribute.type not in _PLAIN:
            yield attribute.t
            yield from attribute.tensors
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)
            for graph in (attribute.g, *attribute.graphs):
                yield from _in_graph(graph)


_PLAIN = frozenset({1, 2, 3, 6, 7, 8, 13, 14})
"""``AttributeProto.AttributeType`` of numbers, strings and types, singly and in lists: most attributes."""
