"""bfloat16 for weights and activations; onnxruntime has no converter for it, so this one rewrites the graph.

A node computes in bfloat16 if ONNX's schema of its operator allows it; Casts connect such nodes with others.
The types of inputs and outputs stay. The bodies of If, Loop and Scan, and local functions, stay in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.precision.float16 import FLOAT32_NUMBER, tensor_types
from harness.agent.precision.kept import kept_nodes
from harness.agent.precision.weights import at_least

NOTHING = "no operator of it would compute in bfloat16"
OPSET = 13  # the first in which ONNX's operators take bfloat16
NUMBER = 16  # TensorProto.BFLOAT16
_NARROW_TYPE = "tensor(bfloat16)"
_TYPED_BY_ATTRIBUTE = frozenset(
    {"dtype", "output_datatype", "output_dtype", "value_float", "value_floats", "sparse_value"}
)
"""Attributes, besides ``to`` of Cast and ``value`` of Constant, that decide an output's type."""


def converted(model: Any, feeds: list[dict[str, Any]]) -> Any:  # noqa: ARG001 - nothing is calibrated
    """Return the model with all nodes in bfloat16 that support it, but for those that it lists to be kept."""
    from onnx import shape_inference

    model = at_least(model, OPSET)
    inferred = shape_inference.infer_shapes(model)
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    _Rewriting(model.graph, tensor_types(inferred.graph), opsets, kept_nodes(model)).rewrite()
    return model


class _Rewriting:
    """Rewrites one graph to bfloat16, in place.

    A float32 tensor may have a twin in bfloat16: the output of a converted node, a Cast of the tensor, or a
    rounded weight. Converted nodes read and write twins, all others the original tensors.
    """

    def __init__(self, graph: Any, types: dict[str, int], opsets: dict[str, int], kept: list[str]) -> None:
        self.graph = graph
        self.kept = frozenset(kept)
        self.types = types
        self.opsets = opsets
        self.weights = {tensor.name: tensor for tensor in graph.initializer}
        self.fed = {port.name for port in graph.input}
        self.twins: dict[str, str] = {}
        self.wide: set[str] = set(self.weights) | self.fed
        """Tensors that exist in float32."""
        self.taken = set(types) | {name for node in graph.node for name in (*node.input, *node.output)}
        self.nodes: list[Any] = []

    def rewrite(self) -> None:
        """Convert nodes in their order, which is topological."""
        for node in list(self.graph.node):
            places = self._convertible(node)
            if places is None:
                for name in _needed(node):
                    self._widen(name)
                self.nodes.append(node)
                self.wide.update(node.output)
                continue
            inputs, outputs = places
            for place in range(len(node.input)):
                if place in inputs:
                    node.input[place] = self._twin(node.input[place])
                else:
                    self._widen(node.input[place])
            _retype(node)
            self.nodes.append(node)
            for place, name in enumerate(node.output):
                if place in outputs:
                    self.twins[name] = node.output[place] = self._fresh(name)
                else:
                    self.wide.add(name)
        for port in self.graph.output:
            self._widen(port.name)
        del self.graph.node[:]
        self.graph.node.extend(self.nodes)
        del self.graph.value_info[:]  # of the original tensors
        self._drop_unread()

    def _convertible(self, node: Any) -> tuple[set[int], set[int]] | None:
        """Return the indices of inputs and outputs that become bfloat16; None if the node cannot."""
        from onnx import defs

        domain = "" if node.domain == "ai.onnx" else node.domain
        attributes = {attribute.name for attribute in node.attribute}
        bodies = any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute)
        if (
            node.name in self.kept
            or bodies
            or attributes & _TYPED_BY_ATTRIBUTE
            or not defs.has(node.op_type, domain)
        ):
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
                if not kind:  # its type is unknown, or it is no tensor
                    return None
                types = formal[min(place, len(formal) - 1)].type_str
                if kind != FLOAT32_NUMBER or types not in allowed:
                    continue
                if _NARROW_TYPE not in allowed[types]:
                    return None
                found[-1].add(place)
        return (found[0], found[1]) if found[0] or found[1] else None

    def _twin(self, name: str) -> str:
        """Return the name of a tensor's twin, which is made if there is none yet."""
        if name not in self.twins:
            from onnx import helper

            fresh = self._fresh(name)
            weight = self.weights.get(name)
            if weight is not None and name not in self.fed:
                self.graph.initializer.append(in_bfloat16(weight, fresh))
            else:
                self.nodes.append(helper.make_node("Cast", [name], [fresh], to=NUMBER))
            self.twins[name] = fresh
        return self.twins[name]

    def _widen(self, name: str) -> None:
        """Make a tensor in float32 if only its twin exists."""
        if name in self.twins and name not in self.wide:
            from onnx import helper

            self.nodes.append(helper.make_node("Cast", [self.twins[name]], [name], to=FLOAT32_NUMBER))
            self.wide.add(name)

    def _fresh(self, name: str) -> str:
        fresh = name + "/bfloat16"
        while fresh in self.taken:
            fresh += "_"
        self.taken.add(fresh)
        return fresh

    def _drop_unread(self) -> None:
        """Remove the weights that no node reads any more."""
        read = {name for node in self.graph.node for name in _needed(node)}
        read.update(port.name for port in self.graph.output)
        kept = [tensor for tensor in self.graph.initializer if tensor.name in read | self.fed]
        del self.graph.initializer[:]
        self.graph.initializer.extend(kept)


def _needed(node: Any) -> set[str]:
    """Return the names that a node reads, including those that its bodies may take from outside."""
    names = set(node.input)
    for attribute in node.attribute:
        bodies = [attribute.g] if attribute.HasField("g") else attribute.graphs
        for body in bodies:
            names.update(port.name for port in body.output)
            for inner in body.node:
                names |= _needed(inner)
    return names


def _retype(node: Any) -> None:
    """Change the output type of a Cast or a constant from float32 to bfloat16."""
    for attribute in node.attribute:
        if attribute.name == "to" and attribute.i == FLOAT32_NUMBER:
            attribute.i = NUMBER
        elif attribute.name == "value" and attribute.t.data_type == FLOAT32_NUMBER:
            attribute.t.CopyFrom(in_bfloat16(attribute.t, attribute.t.name))


def in_bfloat16(weight: Any, name: str) -> Any:
    """Return a float32 ``TensorProto`` in bfloat16, rounded to nearest, ties to even; NaN stays NaN."""
    from onnx import helper, numpy_helper

    narrow = helper.tensor_dtype_to_np_dtype(NUMBER)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return numpy_helper.from_array(numpy_helper.to_array(weight).astype(narrow), name)
