"""A model in pieces that candidates share, so that making a candidate copies no weights."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Optional

import msgspec

from harness.annex.triage.net_node import NetNode, NetWeight, name_nodes, node_of, replaced_names, weight_of
from harness.annex.triage.subject import Subject
from harness.core.values.value import Value
from harness.corpus.model.nodes import opsets_of
from harness.corpus.model.port import model_text

IR_WEIGHTS_ALONE = 4
"""``ir_version`` from which on an initializer need not be a graph input as well."""

_GRAPH, _FUNCTION = 7, 25
_NODE, _INITIALIZER, _INPUT, _OUTPUT, _VALUE_INFO, _ANNOTATION, _SPARSE = 1, 5, 11, 12, 13, 14, 15
"""Numbers of fields of ``ModelProto`` and ``GraphProto`` in onnx.proto."""


class Net(msgspec.Struct, frozen=True, kw_only=True, eq=False, weakref=True):
    """A model and its input values. Messages in it are shared and never changed.

    Attributes:
        header: The serialized model without graph and functions.
        labels: The serialized graph without its content: name, documentation, metadata.
        opsets: Domain -> version; ONNX's own is empty.
        nodes: In topological order.
        inputs, outputs, infos: Declarations of graph inputs, graph outputs and inner tensors, by name.
        weights: Initializers by name.
        sparse: Sparse initializers by the name of their values.
        annotations: Quantization annotations by tensor.
        functions: The model's own functions.
        fed: Value of each graph input that is fed.
        folder: The folder of the external data.
        origins: Name of a node -> its original name, where they differ.
        home: The net in which each common tensor has the same value; None if it is this net.
    """

    header: bytes
    labels: bytes
    ir_version: int
    opsets: dict[str, int]
    nodes: tuple[NetNode, ...]
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    weights: dict[str, NetWeight]
    sparse: dict[str, Any]
    infos: dict[str, Any]
    annotations: dict[str, Any]
    functions: tuple[Any, ...]
    fed: dict[str, Value]
    folder: Path | None
    origins: dict[str, str]
    home: Optional["Net"] = None

    def replace(self, **changes: Any) -> "Net":
        """Return a net with some parts replaced whose tensors keep their values."""
        return msgspec.structs.replace(self, home=self.home or self, **changes)

    def changed(self, **changes: Any) -> "Net":
        """Return a net with some parts replaced whose tensors may have other values."""
        return msgspec.structs.replace(self, home=None, **changes)

    def read_names(self) -> set[str]:
        """Return the names that nodes read."""
        return set().union(*(node.reads for node in self.nodes))

    def makers(self) -> dict[str, int]:
        """Return the index of the node that makes each tensor."""
        return {name: index for index, node in enumerate(self.nodes) for name in node.made}

    def model_bytes(self, *, weights: Iterable[NetWeight] | None = None, inputs: Iterable[Any] = ()) -> bytes:
        """Serialize the model, optionally with other initializers and with further inputs."""
        held = self.weights.values() if weights is None else weights
        parts: list[bytes] = [self.labels]
        _put(parts, _NODE, (node.wire for node in self.nodes))
        _put(parts, _INITIALIZER, (weight.wire for weight in held))
        for number, protos in (
            (_INPUT, (*self.inputs.values(), *inputs)),
            (_OUTPUT, self.outputs.values()),
            (_VALUE_INFO, self.infos.values()),
            (_ANNOTATION, self.annotations.values()),
            (_SPARSE, self.sparse.values()),
        ):
            _put(parts, number, (proto.SerializeToString() for proto in protos))
        whole = [self.header, _key(_GRAPH), _varint(sum(map(len, parts))), *parts]
        _put(whole, _FUNCTION, (function.SerializeToString() for function in self.functions))
        return b"".join(whole)

    def subject(self) -> Subject:
        """Return the net in the form that others use."""
        fed = tuple((name, self.fed[name]) for name in self.inputs if name in self.fed)
        return Subject(model=self.model_bytes(), inputs=fed, external=self.folder, origins=self.origins)


def load(subject: Subject) -> Net:
    """Split a subject into its parts.

    Raises:
        ValueError: It is not a model, or a name in it is not UTF-8.
    """
    model = subject.proto()
    graph = model.graph
    nodes = tuple(node_of(node) for node in graph.node)
    weights = {weight.name: weight for weight in map(weight_of, graph.initializer)}
    sparse = {model_text(one.values.name): _own(one) for one in graph.sparse_initializer}
    inputs, outputs, infos = (
        {model_text(info.name): _own(info) for info in infos}
        for infos in (graph.input, graph.output, graph.value_info)
    )
    annotations = {model_text(one.tensor_name): _own(one) for one in graph.quantization_annotation}
    functions = tuple(_own(function) for function in model.functions)
    for function in functions:
        name_nodes(function.node)
    for field in _CONTENT:
        graph.ClearField(field)
    labels = graph.SerializeToString()
    model.ClearField("graph")
    model.ClearField("functions")
    return Net(
        header=model.SerializeToString(),
        labels=labels,
        ir_version=model.ir_version,
        opsets=opsets_of(model),
        nodes=nodes,
        inputs=inputs,
        outputs=outputs,
        weights=weights,
        sparse=sparse,
        infos=infos,
        annotations=annotations,
        functions=functions,
        fed=dict(subject.inputs),
        folder=subject.external,
        origins=subject.origins,
    )


def renamed_nodes(nodes: Iterable[NetNode], names: Mapping[str, str]) -> tuple[NetNode, ...]:
    """Return nodes that read other tensors in place of some."""
    made = []
    for node in nodes:
        if names.keys().isdisjoint(node.reads):
            made.append(node)
        else:
            proto = node.proto()
            replaced_names(proto, names)
            made.append(node_of(proto))
    return tuple(made)


_CONTENT = (
    "node",
    "initializer",
    "sparse_initializer",
    "input",
    "output",
    "value_info",
    "quantization_annotation",
)


def _own(proto: Any) -> Any:
    """Return a copy that does not keep alive the message that it came from."""
    return type(proto).FromString(proto.SerializeToString())


def _put(parts: list[bytes], number: int, messages: Iterable[bytes]) -> None:
    key = _key(number)
    for message in messages:
        parts += (key, _varint(len(message)), message)


def _key(number: int) -> bytes:
    return _varint(number << 3 | 2)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits in each byte, as protobuf writes numbers
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
