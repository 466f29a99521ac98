"""bfloat16 for weights and activations; onnxruntime has no converter for it, so this one rewrites the graph.

A node computes in bfloat16 where ONNX's own schema of its operator says that it can; Casts stand where such
nodes meet others. IO types stay. The bodies of If, Loop and Scan, and local functions, stay in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.precision.narrow_nodes import narrow_nodes
from harness.agent.precision.opset import at_least
from harness.agent.precision.spelled_out import spelled_out
from harness.agent.precision.tensor_types import tensor_types

NOTHING = "no operator of it would compute in bfloat16"
OPSET = 13  # the first in which ONNX's operators take bfloat16
FLOAT, NUMBER = 1, 16  # TensorProto.FLOAT and TensorProto.BFLOAT16
INFINITY_BITS = 0x7F800000  # of a float32; what is above, without its sign, is NaN
NARROW_TYPE = "tensor(bfloat16)"
TYPED_BY_ATTRIBUTE = frozenset(
    {"dtype", "output_datatype", "output_dtype", "value_float", "value_floats", "sparse_value"}
)
"""Attributes that decide an output's type otherwise than ``to`` of Cast and ``value`` of Constant do."""


def converted(model: Any, feeds: list[dict[str, Any]]) -> Any:  # noqa: ARG001 - nothing is calibrated
    """The model with every node in bfloat16 that can be."""
    from onnx import shape_inference

    model = at_least(model, OPSET)
    inferred = shape_inference.infer_shapes(model)
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    rewriting = Rewriting(model.graph, tensor_types(inferred.graph), opsets)
    rewriting.rewrite()
    return model


def rounded(model: Any) -> Any:
    """The converted model as the CPU EP can compute it; see ``spelled_out``."""
    return spelled_out(model, NUMBER)


def reduced_nodes(model: Any) -> int:
    """How many nodes take bfloat16."""
    return narrow_nodes(model.graph, NUMBER)


class Rewriting:
    """One graph on its way to bfloat16.

    Each float32 tensor may have a twin in bfloat16: what a node makes that was converted, what a Cast makes
    of it, or a weight rounded. Converted nodes read and make twins, all others the tensors as they were.

    Args:
        graph: Changed in place.
        types: Element types by name.
        opsets: Domain -> version.
    """

    def __init__(self, graph: Any, types: dict[str, int], opsets: dict[str, int]) -> None:
        self.graph = graph
        self.types = types
        self.opsets = opsets
        self.weights = {tensor.name: tensor for tensor in graph.initializer}
        self.fed = {port.name for port in graph.input}
        self.twins: dict[str, str] = {}
        self.wide: set[str] = set(self.weights) | self.fed
        """Tensors that are there as they were."""
        self.taken = set(types) | {name for node in graph.node for name in (*node.input, *node.output)}
        self.nodes: list[Any] = []

    def rewrite(self) -> None:
        """Convert what can be, in the order of the nodes, which is topological."""
        for node in list(self.graph.node):
            places = self.convertible(node)
            if places is None:
                for name in needed(node):
                    self.widen(name)
                self.nodes.append(node)
                self.wide.update(node.output)
                continue
            inputs, outputs = places
            for place in range(len(node.input)):
                if place in inputs:
                    node.input[place] = self.twin(node.input[place])
                else:
                    self.widen(node.input[place])
            retype(node)
            self.nodes.append(node)
            for place, name in enumerate(node.output):
                if place in outputs:
                    self.twins[name] = node.output[place] = self.fresh(name)
                else:
                    self.wide.add(name)
        for port in self.graph.output:
            self.widen(port.name)
        del self.graph.node[:]
        self.graph.node.extend(self.nodes)
        del self.graph.value_info[:]  # of what the tensors were
        self.drop_unread()

    def convertible(self, node: Any) -> tuple[set[int], set[int]] | None:
        """Places of the inputs and outputs that become bfloat16; None where the node cannot."""
        from onnx import defs

        domain = "" if node.domain == "ai.onnx" else node.domain
        attributes = {attribute.name for attribute in node.attribute}
        bodies = any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute)
        if bodies or attributes & TYPED_BY_ATTRIBUTE or not defs.has(node.op_type, domain):
            return None
        try:
            schema = defs.get_schema(node.op_type, self.opsets.get(domain, 1), domain)
        except defs.SchemaError:
            return None
        allowed = {one.type_param_str: one.allowed_type_strs for one in schema.type_constraints}
        found: list[set[int]] = []
        for names, formal in ((node.input, schema.inputs), (node.output, schema.outputs)):
            found.append(set())
            for place, name in enumerate(names):
                if not name:
                    continue
                kind = self.types.get(name, 0)
                if not kind:  # of unknown type, or no tensor
                    return None
                types = formal[min(place, len(formal) - 1)].type_str
                if kind != FLOAT or types not in allowed:
                    continue
                if NARROW_TYPE not in allowed[types]:
                    return None
                found[-1].add(place)
        return (found[0], found[1]) if found[0] or found[1] else None

    def twin(self, name: str) -> str:
        """The name of a tensor's twin, made here where there is none yet."""
        if name not in self.twins:
            from onnx import helper

            fresh = self.fresh(name)
            weight = self.weights.get(name)
            if weight is not None and name not in self.fed:
                self.graph.initializer.append(in_bfloat16(weight, fresh))
            else:
                self.nodes.append(helper.make_node("Cast", [name], [fresh], to=NUMBER))
            self.twins[name] = fresh
        return self.twins[name]

    def widen(self, name: str) -> None:
        """Have a tensor in float32, where only its twin is there."""
        if name in self.twins and name not in self.wide:
            from onnx import helper

            self.nodes.append(helper.make_node("Cast", [self.twins[name]], [name], to=FLOAT))
            self.wide.add(name)

    def fresh(self, name: str) -> str:
        """A name that nobody has."""
        fresh = name + "/bfloat16"
        while fresh in self.taken:
            fresh += "_"
        self.taken.add(fresh)
        return fresh

    def drop_unread(self) -> None:
        """Without the weights of which only twins are read."""
        read = {name for node in self.graph.node for name in needed(node)}
        read.update(port.name for port in self.graph.output)
        kept = [tensor for tensor in self.graph.initializer if tensor.name in read | self.fed]
        del self.graph.initializer[:]
        self.graph.initializer.extend(kept)


def needed(node: Any) -> set[str]:
    """Names that a node reads, those that its bodies may take from outside included."""
    names = set(node.input)
    for attribute in node.attribute:
        bodies = [attribute.g] if attribute.HasField("g") else attribute.graphs
        for body in bodies:
            names.update(port.name for port in body.output)
            for inner in body.node:
                names |= needed(inner)
    return names


def retype(node: Any) -> None:
    """Have a Cast or a constant make bfloat16 where it made float32."""
    for attribute in node.attribute:
        if attribute.name == "to" and attribute.i == FLOAT:
            attribute.i = NUMBER
        elif attribute.name == "value" and attribute.t.data_type == FLOAT:
            attribute.t.CopyFrom(in_bfloat16(attribute.t, attribute.t.name))


def in_bfloat16(weight: Any, name: str) -> Any:
    """A float32 tensor in bfloat16, rounded to nearest, ties to even; NaN stays NaN.

    Args:
        weight: A ``TensorProto``.
        name: Of the result.
    """
    from onnx import TensorProto, numpy_helper

    bits = np.ascontiguousarray(numpy_helper.to_array(weight), "<f4").view("<u4")
    nan = (bits & 0x7FFFFFFF) > INFINITY_BITS
    nearest = (bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16
    narrow = np.where(nan, (bits >> 16) | 0x40, nearest).astype("<u2")
    return TensorProto(name=name, data_type=NUMBER, dims=weight.dims, raw_data=narrow.tobytes())
