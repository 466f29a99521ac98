"""The declared inputs and outputs of a model."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from harness.corpus.model.element_types import ELEMENT_TYPES
from harness.corpus.model.model_errors import NoInputError
from harness.corpus.model.symbols import computed

if TYPE_CHECKING:
    import onnx

_DENSE = "test a form of the model with dense tensors there"

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

PortKind = Literal["tensor", "sequence", "optional", "map"]


class ValueType(msgspec.Struct, frozen=True, kw_only=True):
    """The declared type of a value.

    Attributes:
        kind: Tensor or container.
        dtype: Element type of a tensor, key type of a map; empty if there is none or it is not declared.
        shape: Shape of a tensor, None for each unknown dimension; None if the rank is unknown.
        symbols: The name of each dimension, even if a size was given for it; empty for an unnamed one, None
            for a fixed one. No items if all are fixed.
        item: The type of the items of a sequence or an optional, or of a map's values.
    """

    kind: PortKind
    dtype: str = ""
    shape: tuple[int | None, ...] | None = None
    symbols: tuple[str | None, ...] = ()
    item: "ValueType | None" = None

    @property
    def rank(self) -> int:
        """Number of axes of a tensor; -1 for any other value, and if it is not declared."""
        return len(self.shape) if self.kind == "tensor" and self.shape is not None else -1

    @property
    def axes(self) -> tuple[str | None, ...]:
        """Name of each axis: empty for an unnamed one, None for one of a fixed size."""
        return self.symbols or (None,) * len(self.shape or ())


class Port(msgspec.Struct, frozen=True, kw_only=True):
    """A graph input that has to be fed; its type has given sizes in place of symbolic dimensions."""

    name: str
    type: ValueType


def name_words(name: str) -> list[str]:
    """Return the words of an input's name in lower case: of ``inputIds`` and ``input_ids`` the same."""
    return [word.lower() for word in _WORD.findall(name)]


def value_type(proto: "onnx.TypeProto", dimensions: Mapping[str, int]) -> ValueType:
    """Read a declared type; an empty one is a tensor of unknown type and rank.

    The sizes of symbolic dimensions are given by name; sums and products of them follow.

    Raises:
        NoInputError: A sparse tensor or an opaque type, which the harness does not support.
    """
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        dtype, dims = ELEMENT_TYPES.get(proto.tensor_type.elem_type, ""), proto.tensor_type.shape.dim
        if not proto.tensor_type.HasField("shape"):
            return ValueType(kind="tensor", dtype=dtype)
        symbols = tuple(map(_symbol, dims))
        return ValueType(
            kind="tensor",
            dtype=dtype,
            shape=tuple(_size(dim, dimensions) for dim in dims),
            symbols=symbols if any(symbol is not None for symbol in symbols) else (),
        )
    if kind in {"sequence_type", "optional_type"}:
        item = value_type(getattr(proto, kind).elem_type, dimensions)
        return ValueType(kind="sequence" if kind == "sequence_type" else "optional", item=item)
    if kind == "map_type":
        item = value_type(proto.map_type.value_type, dimensions)
        return ValueType(kind="map", dtype=ELEMENT_TYPES.get(proto.map_type.key_type, ""), item=item)
    if kind is None:
        return ValueType(kind="tensor")
    raise NoInputError(f"values of type {kind.removesuffix('_type')} cannot be fed or fetched; {_DENSE}")


def model_text(text: str | bytes) -> str:
    """Return a name from a model, which protobuf returns as bytes if it is not UTF-8.

    Raises:
        ValueError: It is not UTF-8, so no record or report could hold it.
    """
    if isinstance(text, bytes):
        raise ValueError(f"the name {text!r} is not valid UTF-8")  # noqa: TRY004 - the data is at fault
    return text


def _symbol(dim: "onnx.TensorShapeProto.Dimension") -> str | None:
    return None if dim.HasField("dim_value") and dim.dim_value >= 0 else model_text(dim.dim_param)


def _size(dim: "onnx.TensorShapeProto.Dimension", dimensions: Mapping[str, int]) -> int | None:
    # Some exporters write unknown sizes as -1, against the standard.
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None
    symbol = model_text(dim.dim_param)
    size = dimensions.get(symbol)
    return computed(symbol, dimensions) if size is None else size
