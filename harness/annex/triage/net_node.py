"""Nodes and weights of a model that is being reduced: parsed once, shared by candidates, never changed."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from harness.core.values.value import BITS, DTYPES, STRING, Tensor
from harness.corpus.model.element_types import ELEMENT_TYPES
from harness.corpus.model.external import external_place
from harness.corpus.model.nodes import all_nodes, bodies, domain_of, taken_from_outside
from harness.corpus.model.port import model_text
from harness.corpus.model.protos import tensor_proto, tensor_value

if TYPE_CHECKING:
    import onnx


class NetNode(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """A node of the main graph.

    Attributes:
        op_type: Its operator, with its domain before it unless that is ONNX's own.
        inputs, outputs: An omitted one has an empty name.
        reads: Every tensor of the main graph that the node or one of its bodies reads.
        names: Its name and those of the nodes in its bodies.
        operators: Domain and type of its operator and of those in its bodies, one for each node.
        details: Number of attributes, inputs, outputs and remarks, including those in bodies.
        wire: The serialized node.
    """

    name: str
    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    reads: frozenset[str]
    names: frozenset[str]
    operators: tuple[tuple[str, str], ...]
    details: int
    wire: bytes

    def proto(self) -> "onnx.NodeProto":
        """Return a separate message, which may be changed."""
        import onnx

        proto: onnx.NodeProto = onnx.NodeProto.FromString(self.wire)
        return proto

    @property
    def made(self) -> tuple[str, ...]:
        """Return its outputs that are not omitted."""
        return tuple(name for name in self.outputs if name)


class NetWeight(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """An initializer of the main graph.

    Attributes:
        dtype: Its element type; empty if its values are not known here.
        external: Whether its elements are in a file.
        wire: The serialized tensor.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    external: bool
    wire: bytes

    @property
    def elements(self) -> int:
        """The number of its elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Return the size of the elements in bytes; for texts, that of the message."""
        if self.dtype in DTYPES:
            return math.ceil(self.elements * BITS.get(self.dtype, 8 * DTYPES[self.dtype].itemsize) / 8)
        return len(self.wire)

    def value(self, folder: Path | None) -> Tensor:
        """Return its elements; those in a file are mapped, not read.

        Raises:
            ValueError: They cannot be read.
        """
        import onnx

        proto = onnx.TensorProto.FromString(self.wire)
        if self.external and folder is not None and self.dtype in DTYPES and self.dtype not in BITS:
            file, offset, length = external_place(proto, folder)
            if length != self.nbytes:
                raise ValueError(f"external data of {length} bytes does not fill {self.dtype}{self.shape}")
            if length:
                mapped = np.memmap(file, np.uint8, "r", offset, (length,))
                return Tensor(dtype=self.dtype, array=mapped.view(DTYPES[self.dtype]).reshape(self.shape))
        return tensor_value(proto, folder)


def node_of(proto: "onnx.NodeProto") -> NetNode:
    """Parse a node; a node without a name gets that of its first output.

    Raises:
        ValueError: A name is not UTF-8.
    """
    every = name_nodes([proto])
    inputs = tuple(model_text(name) for name in proto.input)
    domain = domain_of(proto)
    return NetNode(
        name=model_text(proto.name),
        op_type=f"{domain}.{proto.op_type}" if domain else proto.op_type,
        inputs=inputs,
        outputs=tuple(model_text(name) for name in proto.output),
        reads=frozenset(filter(None, inputs)).union(*map(taken_from_outside, bodies(proto))),
        names=frozenset(model_text(one.name) for one in every),
        operators=tuple((domain_of(one), one.op_type) for one in every),
        details=sum(map(_details, every)),
        wire=proto.SerializeToString(),
    )


def _details(proto: "onnx.NodeProto") -> int:
    remarks = bool(proto.doc_string) + len(proto.metadata_props)
    return len(proto.attribute) + sum(map(bool, (*proto.input, *proto.output))) + remarks


def node_name(proto: "onnx.NodeProto") -> str:
    """Return the name of a node; that of its first output if it has none, else that of its operator."""
    return model_text(proto.name or next(filter(None, proto.output), "") or proto.op_type)


def name_nodes(nodes: "Iterable[onnx.NodeProto]") -> "list[onnx.NodeProto]":
    """Give all unnamed nodes, including those in bodies, a name; return all nodes."""
    every = list(all_nodes(nodes))
    for one in every:
        if not one.name:
            one.name = node_name(one)
    return every


def weight_of(proto: "onnx.TensorProto") -> NetWeight:
    """Parse an initializer."""
    dtype = ELEMENT_TYPES.get(proto.data_type, "")
    return NetWeight(
        name=model_text(proto.name),
        dtype=dtype if dtype in DTYPES or dtype == STRING else "",
        shape=tuple(proto.dims),
        external=proto.data_location == proto.EXTERNAL,
        wire=proto.SerializeToString(),
    )


def new_weight(name: str, value: Tensor) -> NetWeight:
    """Make an initializer from a value."""
    proto = tensor_proto(value)
    proto.name = name
    return weight_of(proto)


def copied(message: Any) -> Any:
    """Return a copy of a message."""
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def replaced_names(node: "onnx.NodeProto", names: Mapping[str, str]) -> None:
    """Make a node and its bodies read other tensors, in place.

    A name that a body itself declares means something else there, and stays.
    """
    for index, name in enumerate(node.input):
        node.input[index] = names.get(name, name)
    for body in bodies(node):
        _replace_in_body(body, names)


def _replace_in_body(body: "onnx.GraphProto", names: Mapping[str, str]) -> None:
    outside = taken_from_outside(body)
    inner = {old: new for old, new in names.items() if old in outside}
    if not inner:
        return
    for node in body.node:
        replaced_names(node, inner)
    for one in body.output:
        one.name = inner.get(one.name, one.name)
