"""Cuts: the part of a model that some of its nodes make up, fed with golden tensors."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from harness.core.value import Map, Sequence, Tensor, Value
from harness.corpus.element_types import NUMBERS
from harness.corpus.graph import taken_from_outside
from harness.corpus.model_file import parse_model
from harness.corpus.schema_types import bodies
from harness.triage.subject import Subject

if TYPE_CHECKING:
    import onnx


class Boundary(msgspec.Struct, frozen=True, kw_only=True):
    """The tensors on the edge of some nodes.

    Attributes:
        inputs: What the nodes read and neither make nor have as an initializer; inputs of the graph included.
        outputs: What the nodes make and others read, and outputs of the graph.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Net:
    """A model's main graph, parsed once, from which cuts are made.

    Args:
        subject: The whole model with its inputs.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.model: onnx.ModelProto = parse_model(subject.model)
        graph = self.model.graph
        self.nodes = list(graph.node)
        self.names = tuple(_name(node) for node in self.nodes)
        self.reads = tuple(frozenset(_reads(node)) for node in self.nodes)
        self.outputs = tuple(one.name for one in graph.output)
        self._constants = {one.name for one in graph.initializer}
        self._constants |= {one.values.name for one in graph.sparse_initializer}
        self._declared = {one.name: one for one in (*graph.value_info, *graph.output, *graph.input)}
        self._made_by = {name: index for index, node in enumerate(self.nodes) for name in node.output if name}

    def maker(self, tensor: str) -> int | None:
        """Return the number of the node that makes a tensor; None of an input or initializer."""
        return self._made_by.get(tensor)

    def ancestors(self, tensors: Iterable[str]) -> list[int]:
        """Return the numbers of the nodes that tensors depend on, in topological order."""
        found: set[int] = set()
        waiting = [self._made_by[name] for name in tensors if name in self._made_by]
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                waiting += [self._made_by[name] for name in self.reads[number] if name in self._made_by]
        return sorted(found)

    def boundary(self, numbers: Collection[int]) -> Boundary:
        """Return what is on the edge of some nodes."""
        inside = set(numbers)
        made = {name for number in inside for name in self.nodes[number].output if name}
        read = dict.fromkeys(name for number in sorted(inside) for name in sorted(self.reads[number]))
        outside = set().union(*(self.reads[one] for one in range(len(self.nodes)) if one not in inside))
        outside.update(self.outputs)
        given = tuple(name for name in read if name not in made and name not in self._constants)
        return Boundary(
            inputs=given,
            outputs=tuple(
                name for number in sorted(inside) for name in self.nodes[number].output if name in outside
            ),
        )

    def cut(
        self, numbers: Collection[int], values: Mapping[str, Value], outputs: Collection[str] | None = None
    ) -> Subject:
        """Return the model of some nodes.

        Args:
            numbers: Numbers of the nodes.
            values: Golden tensors, for each input of the boundary that is none of the graph's.
            outputs: What the model gives; the boundary's outputs by default.
        """
        import onnx

        boundary = self.boundary(numbers)
        wanted = boundary.outputs if outputs is None else tuple(outputs)
        known = dict(self.subject.inputs) | dict(values)
        read = set().union(*(self.reads[number] for number in numbers))
        made = onnx.ModelProto()
        _copy_head(self.model, made)
        graph = made.graph
        graph.name = self.model.graph.name or "graph"
        graph.node.extend(self.nodes[number] for number in sorted(numbers))
        graph.initializer.extend(one for one in self.model.graph.initializer if one.name in read)
        graph.sparse_initializer.extend(
            one for one in self.model.graph.sparse_initializer if one.values.name in read
        )
        graph.input.extend(self._port(name, known.get(name)) for name in boundary.inputs)
        graph.output.extend(self._port(name, values.get(name)) for name in wanted)
        return Subject(
            model=made.SerializeToString(),
            inputs=tuple((name, known[name]) for name in boundary.inputs if name in known),
            external=self.subject.external,
        )

    def _port(self, name: str, value: Value | None) -> "onnx.ValueInfoProto":
        """Return the declaration of a tensor: by its value, else as the model has it, else the name alone."""
        import onnx

        if value is not None:
            return onnx.ValueInfoProto(name=name, type=type_of(value, self._declared.get(name)))
        return self._declared.get(name) or onnx.ValueInfoProto(name=name)


def type_of(value: Value, declared: "onnx.ValueInfoProto | None" = None) -> "onnx.TypeProto":
    """Return the type of a value; of one that does not carry its type whole, the declared one."""
    import onnx

    if isinstance(value, Tensor):
        return onnx.helper.make_tensor_type_proto(NUMBERS[value.dtype], value.array.shape)
    if declared is not None and declared.HasField("type"):
        return declared.type
    if isinstance(value, Sequence) and value.items:
        return onnx.helper.make_sequence_type_proto(type_of(value.items[0]))
    if isinstance(value, Map):
        raise ValueError("a map whose type the model does not declare")  # noqa: TRY004 - the model is at fault
    return onnx.TypeProto()


def tensor_and_node_names(subject: Subject) -> frozenset[str]:
    """Return the names that a message about a model may quote, those in bodies and functions included."""
    model = parse_model(subject.model)
    found: set[str] = {one.name for one in (*model.graph.input, *model.graph.initializer)}
    waiting = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    while waiting:
        node = waiting.pop()
        found.update((node.name, *node.input, *node.output))
        waiting += [inner for body in bodies(node) for inner in body.node]
    return frozenset(found - {""})


def _copy_head(model: "onnx.ModelProto", made: "onnx.ModelProto") -> None:
    made.ir_version = model.ir_version
    made.opset_import.extend(model.opset_import)
    made.functions.extend(model.functions)


def _name(node: "onnx.NodeProto") -> str:
    """Return the name of a node, or that of its first output, which is unique."""
    return node.name or next((name for name in node.output if name), "")


def _reads(node: "onnx.NodeProto") -> Iterator[str]:
    """Yield what a node reads, what its bodies take from outside included."""
    yield from (name for name in node.input if name)
    for body in bodies(node):
        yield from sorted(taken_from_outside(body))
