"""The parts of a model on which judging its results depends."""

from collections import ChainMap, Counter
from collections.abc import Iterable, MutableMapping
from typing import TYPE_CHECKING

import msgspec

from harness.corpus.model.branch_inputs import branch_inputs
from harness.corpus.model.element_types import ELEMENT_TYPES, is_floating
from harness.corpus.model.heads import Heads, heads_of
from harness.corpus.model.nodes import domain_of, named_opsets, tensors_in
from harness.corpus.model.origins import Origins, origins_of
from harness.corpus.model.port import model_text
from harness.corpus.model.undefined import Partial, partials_of
from harness.corpus.model.used_operators import OperatorVersions, used_operators
from harness.operators.book import operators_with

if TYPE_CHECKING:
    import onnx

_SHAPE_SOURCES = operators_with(lambda row: row.shape_source)
_SHAPE_ARITHMETIC = operators_with(lambda row: row.shape_arithmetic)

_Names = MutableMapping[str, None]
"""Names in the order in which they were found; a scope sees those around it without copying them."""

_SHAPE_CONSTANT_ELEMENTS = 64
"""A constant of rank 0 or 1 up to this size may be part of shape arithmetic; a larger one is data."""


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a model.

    Attributes:
        ir_version: Version of the file format.
        opsets: Domain -> version; ONNX's own domain is ``ai.onnx``.
        nodes: Number of nodes, including those in subgraphs and in the bodies of local functions.
        op_types: Operator type -> number of nodes, counted likewise.
        float_types: Floating element types of inputs, outputs, weights, constants and casts.
        shape_only_ops: Operator types *all* of whose nodes compute shapes only. An execution provider that
            leaves them to the CPU loses nothing.
        origins: The operators that compute graph outputs, where judging depends on them.
        partials: Nodes whose result ONNX leaves undefined for some values.
        operators: Operator -> versions of its schema; see ``harness.corpus.model.used_operators``.
        heads: Output of a network -> the operator that computes it; empty for any other model.
        branch_inputs: Inputs that choose which branch of an ``If`` runs.
    """

    ir_version: int
    opsets: dict[str, int]
    nodes: int
    op_types: dict[str, int]
    float_types: frozenset[str]
    shape_only_ops: frozenset[str]
    origins: Origins = Origins()
    partials: tuple[Partial, ...] = ()
    operators: OperatorVersions = {}
    heads: Heads = {}
    branch_inputs: tuple[str, ...] = ()


def model_facts(model: "onnx.ModelProto") -> ModelFacts:
    """Return the facts of a model, loaded with or without its external data."""
    census = _Census()
    census.graph(model.graph, {}, {})
    for function in model.functions:
        census.nodes(function.node, {}, {})
    return ModelFacts(
        ir_version=model.ir_version,
        opsets=named_opsets(model),
        nodes=census.counts.total(),
        op_types=dict(sorted(census.counts.items())),
        float_types=frozenset(census.float_types),
        shape_only_ops=frozenset(census.shape_ops - census.other_ops),
        origins=origins_of(model),
        partials=partials_of(model),
        operators=used_operators(model),
        heads=heads_of(model),
        branch_inputs=branch_inputs(model.graph),
    )


class _Census:
    """One walk over a model, scope by scope, in the order of the nodes, which ONNX keeps topological."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.float_types: set[str] = set()
        self.shape_ops: set[str] = set()
        self.other_ops: set[str] = set()

    def graph(self, graph: "onnx.GraphProto", shapes: _Names, constants: _Names) -> None:
        """Walk one graph, and add to both sets of names that it sees."""
        for info in (*graph.input, *graph.output):
            for tensor in tensors_in(info.type):
                self._element_type(tensor.elem_type)
        for weight in graph.initializer:
            self._element_type(weight.data_type)
            if _may_be_shape(weight):
                constants[weight.name] = None
        for sparse in graph.sparse_initializer:
            self._element_type(sparse.values.data_type)
        self.nodes(graph.node, shapes, constants)

    def nodes(self, nodes: "Iterable[onnx.NodeProto]", shapes: _Names, constants: _Names) -> None:
        """Walk the nodes of one scope, and add to both sets of names."""
        for node in nodes:
            self.counts[model_text(node.op_type)] += 1
            for attribute in node.attribute:
                self._attribute(attribute, shapes, constants)
            names = [name for name in node.output if name]
            varying = [name for name in node.input if name and name not in constants]
            own = not domain_of(node)
            arithmetic = own and node.op_type in _SHAPE_ARITHMETIC
            if (own and node.op_type in _SHAPE_SOURCES) or (
                arithmetic and varying and all(name in shapes for name in varying)
            ):
                self.shape_ops.add(node.op_type)
                shapes.update(dict.fromkeys(names))
            else:
                self.other_ops.add(node.op_type)
                if (arithmetic and not varying) or (own and _is_shape_constant(node)):
                    constants.update(dict.fromkeys(names))

    def _attribute(self, attribute: "onnx.AttributeProto", shapes: _Names, constants: _Names) -> None:
        if attribute.type in {attribute.GRAPH, attribute.GRAPHS}:
            for graph in attribute.graphs or [attribute.g]:
                self.graph(graph, ChainMap({}, shapes), ChainMap({}, constants))
        elif attribute.type == attribute.TENSOR:
            self._element_type(attribute.t.data_type)
        elif attribute.type == attribute.INT and attribute.name in {"to", "dtype", "output_dtype"}:
            self._element_type(attribute.i)
        elif attribute.name in {"value_float", "value_floats"}:
            self.float_types.add("float32")

    def _element_type(self, number: int) -> None:
        dtype = ELEMENT_TYPES.get(number, "")
        if is_floating(dtype):
            self.float_types.add(dtype)


def _may_be_shape(weight: "onnx.TensorProto") -> bool:
    return len(weight.dims) == 0 or (len(weight.dims) == 1 and weight.dims[0] <= _SHAPE_CONSTANT_ELEMENTS)


def _is_shape_constant(node: "onnx.NodeProto") -> bool:
    return node.op_type == "Constant" and all(
        _may_be_shape(attribute.t)
        if attribute.type == attribute.TENSOR
        else len(attribute.ints) + len(attribute.floats) <= _SHAPE_CONSTANT_ELEMENTS
        for attribute in node.attribute
    )
