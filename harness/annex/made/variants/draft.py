"""A model during transformation: its types, its edges, and new nodes on an edge."""

import itertools
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.defs
import onnx.helper
import onnx.numpy_helper
import onnx.shape_inference

from harness.annex.made.forms.draw import ChoiceStream
from harness.core.values.value import Array
from harness.corpus.model.element_types import ELEMENT_TYPES
from harness.corpus.model.nodes import all_nodes, bodies, domain_of, opsets_of, taken_from_outside
from harness.corpus.noise.operator_rounding import CONTROL_INPUTS

OLDEST_OPSET = 13
"""The oldest opset that is transformed: since opset 13, the axes of Squeeze and Unsqueeze are an input."""

DraftShape = tuple[int | None, ...]


class Type(NamedTuple):
    """Element type and shape of a tensor; an unknown size is None."""

    dtype: str
    shape: DraftShape

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """The shape if every size is known and the tensor has elements."""
        known = tuple(size for size in self.shape if size is not None)
        return known if len(known) == self.rank and all(known) else None


class Edge(NamedTuple):
    """Where a tensor is read: a node and one of its inputs, or None and an output of the graph, by index."""

    node: int | None
    slot: int


class Draft:
    """A model that transformations change in place.

    Only the nodes of the main graph are transformed. The names of inputs and outputs stay. ``random`` decides
    on places and attributes.

    Raises:
        ValueError: onnx cannot infer its types.
    """

    def __init__(self, model: onnx.ModelProto, random: ChoiceStream) -> None:
        self.model = model
        self.random = random
        self.types: dict[str, Type] = {}
        self._numbers = itertools.count()
        graph = model.graph
        self._taken = {name for node in all_nodes(graph.node) for name in (*node.input, *node.output)}
        self._taken |= {one.name for one in (*graph.input, *graph.output, *graph.initializer)}
        self.infer()

    @property
    def graph(self) -> onnx.GraphProto:
        """The main graph."""
        return self.model.graph

    @property
    def opset(self) -> int:
        """Version of ONNX's own operators."""
        return opsets_of(self.model).get("", 0)

    def infer(self) -> None:
        """Infer the types of all tensors again, after a change."""
        try:
            inferred = onnx.shape_inference.infer_shapes(self.model, data_prop=True).graph
        except Exception as error:
            raise ValueError(f"onnx cannot infer its types: {error}") from error
        self.types = {}
        for info in (*inferred.input, *inferred.value_info, *inferred.output):
            kind = _type_of(info.type)
            if kind is not None:
                self.types[info.name] = kind
        for weight in inferred.initializer:
            self.types[weight.name] = Type(ELEMENT_TYPES[weight.data_type], tuple(weight.dims))

    def fresh(self, stem: str) -> str:
        """Return an unused name."""
        name = next(one for number in self._numbers if (one := f"{stem}_v{number}") not in self._taken)
        self._taken.add(name)
        return name

    def constants(self) -> dict[str, Array]:
        """Return initializers and values of Constant nodes by name, except external and sparse ones."""
        found = {one.name: one for one in self.graph.initializer}
        found |= {
            node.output[0]: one.t
            for node in self.graph.node
            if is_op(node, "Constant")
            for one in node.attribute
            if one.name == "value"
        }
        external = onnx.TensorProto.EXTERNAL
        return {
            name: onnx.numpy_helper.to_array(proto)
            for name, proto in found.items()
            if proto.data_location != external and ELEMENT_TYPES.get(proto.data_type) != "string"
        }

    def name_at(self, edge: Edge) -> str:
        """Return the tensor that is read on an edge."""
        if edge.node is None:
            return str(self.graph.output[edge.slot].name)
        return str(self.graph.node[edge.node].input[edge.slot])

    def edges(self, dtypes: Collection[str]) -> list[Edge]:
        """Return the edges of computed tensors of some types, except those that set the size of a result."""
        nodes = (node for node in self.graph.node if not is_op(node, "Constant"))
        computed = {name for node in nodes for name in node.output if name}
        weights = {one.name for one in self.graph.initializer}
        open_ = computed | ({port.name for port in self.graph.input} - weights)
        found = [
            Edge(index, slot)
            for index, node in enumerate(self.graph.node)
            for slot, name in enumerate(node.input)
            if name in open_ and slot not in CONTROL_INPUTS.get(node.op_type, ())
        ]
        found += [Edge(None, slot) for slot, port in enumerate(self.graph.output) if port.name in computed]
        return [edge for edge in found if self.type_of(self.name_at(edge)).dtype in dtypes]

    def nodes(self, op_types: Collection[str]) -> list[int]:
        """Return the nodes of some operators of ONNX's own whose first input has a known type."""
        return [
            index
            for index, node in enumerate(self.graph.node)
            if not domain_of(node) and node.op_type in op_types and node.input and node.input[0] in self.types
        ]

    def type_of(self, name: str) -> Type:
        """Return the type of a tensor; rank 0 without an element type if unknown."""
        return self.types.get(name, Type("", ()))

    def reroute(self, edge: Edge, part: "NewNodes", result: str) -> None:
        """Put new nodes on an edge, which then carries their result."""
        nodes = self.graph.node
        if edge.node is not None:
            nodes[edge.node].input[edge.slot] = result
            insert(self.graph, edge.node, part.nodes)
            return
        name = self.name_at(edge)
        index = next(at for at, node in enumerate(nodes) if name in node.output)
        inner = self.fresh(name)
        replace_names(nodes[index].output, {name: inner})
        for node in part.nodes:
            replace_names(node.input, {name: inner})
            replace_names(node.output, {result: name})
        insert(self.graph, index + 1, part.nodes)

    def replace(self, index: int, part: "NewNodes", results: Sequence[str]) -> None:
        """Replace a node by new nodes; their results take the names of its outputs."""
        names = dict(zip(results, self.graph.node[index].output, strict=True))
        for node in part.nodes:
            replace_names(node.input, names)
            replace_names(node.output, names)
        del self.graph.node[index]
        insert(self.graph, index, part.nodes)


class NewNodes:
    """New nodes of a draft, in the order in which they were added."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.nodes: list[onnx.NodeProto] = []

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output; an attribute that is None is left out."""
        return self.ops(1, op_type, *inputs, **attributes)[0]

    def ops(self, count: int, op_type: str, *inputs: str, **attributes: Any) -> list[str]:
        """Add a node with several outputs."""
        outputs = [self.draft.fresh(op_type) for _ in range(count)]
        given = {name: value for name, value in attributes.items() if value is not None}
        node = onnx.helper.make_node(op_type, inputs, outputs, name=self.draft.fresh(f"n_{op_type}"), **given)
        self.nodes.append(node)
        return outputs

    def like(self, node: onnx.NodeProto, inputs: Sequence[str]) -> str:
        """Add a copy of a node of one output, which reads other tensors."""
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.name = self.draft.fresh(f"n_{node.op_type}")
        output = self.draft.fresh(node.op_type)
        copy.input[:] = inputs
        copy.output[:] = [output]
        self.nodes.append(copy)
        return output

    def constant(self, values: Array) -> str:
        """Add an initializer."""
        name = self.draft.fresh("c")
        self.draft.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def ints(self, *values: int) -> str:
        """Add an int64 vector."""
        return self.constant(np.array(values, np.int64))

    def split(self, x: str, axis: int, sizes: Sequence[int]) -> list[str]:
        """Cut a tensor along an axis."""
        return self.ops(len(sizes), "Split", x, self.ints(*sizes), axis=axis)

    def slice(self, x: str, axis: int, start: int, end: int, step: int = 1) -> str:
        """Take a range of an axis."""
        bounds = (self.ints(start), self.ints(end), self.ints(axis), self.ints(step))
        return self.op("Slice", x, *bounds)


def is_op(node: onnx.NodeProto, op_type: str) -> bool:
    """Return whether a node has an operator of ONNX's own."""
    return node.op_type == op_type and not domain_of(node)


def result_of(node: onnx.NodeProto) -> str:
    """Return the name of the first output of a node."""
    return str(node.output[0])


def reads(node: onnx.NodeProto) -> set[str]:
    """Return the tensors that a node reads, including those that its bodies take from outside."""
    return (set(node.input) - {""}).union(*map(taken_from_outside, bodies(node)))


def insert(graph: onnx.GraphProto, index: int, nodes: Sequence[onnx.NodeProto]) -> None:
    """Insert nodes before the one of an index."""
    later = list(graph.node)[index:]
    kept = [onnx.NodeProto.FromString(one.SerializeToString()) for one in later]
    del graph.node[index:]
    graph.node.extend([*nodes, *kept])


def replace_names(names: Any, by: dict[str, str]) -> None:
    """Replace names of a node in place."""
    names[:] = [by.get(name, name) for name in names]


def complete(node: onnx.NodeProto, opset: int) -> None:
    """Write out the defaults of a node's missing attributes."""
    given = {one.name for one in node.attribute}
    schema = onnx.defs.get_schema(node.op_type, opset, "")
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.name:
            node.attribute.append(attribute.default_value)


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Return the attributes of a node by name; texts as such."""
    found = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in found.items()}


def cut_sizes(random: ChoiceStream, size: int) -> tuple[int, int]:
    """Return two sizes of at least 1 whose sum is the given size of at least 2."""
    first = random.between(1, size - 1)
    return first, size - first


def factored(random: ChoiceStream, count: int) -> tuple[int, ...]:
    """Return a shape of one to three axes with a number of elements."""
    divisors = [one for one in range(1, min(count, 64) + 1) if count % one == 0]
    first = random.pick(divisors)
    second = random.pick([one for one in divisors if (count // first) % one == 0])
    return random.pick([(count,), (first, count // first), (first, second, count // first // second)])


def inverse(order: Sequence[int]) -> list[int]:
    """Return the permutation that undoes another one."""
    return [order.index(place) for place in range(len(order))]


def _type_of(declared: onnx.TypeProto) -> Type | None:
    if not declared.HasField("tensor_type") or not declared.tensor_type.HasField("shape"):
        return None
    dtype = ELEMENT_TYPES.get(declared.tensor_type.elem_type)
    if dtype is None:
        return None
    sizes = (dim.dim_value if dim.HasField("dim_value") else None for dim in declared.tensor_type.shape.dim)
    return Type(dtype, tuple(sizes))
