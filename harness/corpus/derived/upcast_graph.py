"""The nodes and weights of a model in float64."""

import itertools
import re
from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import numpy as np
import onnx
import onnx.defs
import onnx.helper
import onnx.numpy_helper

from harness.core.values.value import Tensor
from harness.corpus.model.element_types import NARROWER, NUMBERS
from harness.corpus.model.nodes import bodies, domain_of, opsets_of, replace_nodes, tensors_in
from harness.corpus.model.protos import tensor_proto, tensor_value
from harness.corpus.model.schema_types import (
    FLOAT32_BY_DEFAULT,
    TYPE_ATTRIBUTES,
    declared_types,
    formal_of,
    output_types,
    schema_of,
    tensor_text,
)
from harness.operators.book import operators_with


class NotInFloat64Error(ValueError):
    """Something in a model has no counterpart in float64, or none that is known here."""


_DOUBLE = NUMBERS["float64"]

_WIDTHS = {tensor_text(number): number for number in map(NUMBERS.__getitem__, NARROWER)}
"""The types that become float64 -> ``TensorProto.DataType``."""

_FLOAT32_INSIDE = operators_with(lambda row: row.float32_inside)

_PARAMETERS = {"Resize": range(1, 3), "Upsample": range(1, 2)}
"""Operator -> inputs that may stay float32, because weights are exact there: regions and scales."""

_NARROW_TENSOR = re.compile(r"tensor\((?:float|float16|bfloat16)\)")


def upcast_graph(model: onnx.ModelProto, folder: Path) -> None:
    """Rewrite a model in place; its external data, until then in files of a folder, becomes part of it.

    Raises:
        NotInFloat64Error: It has operators that are not ONNX's, or values of unknown type.
    """
    if model.functions:
        raise NotInFloat64Error("it has functions of its own")
    _Upcast(opsets_of(model), folder).graph(model.graph, {})


class _Upcast:
    def __init__(self, opsets: Mapping[str, int], folder: Path) -> None:
        self.opsets = opsets
        self.folder = folder
        self.numbers = itertools.count()

    def graph(self, graph: onnx.GraphProto, outer: MutableMapping[str, str]) -> MutableMapping[str, str]:
        """Rewrite one scope. Return the types of everything in it by name, before the rewriting.

        ``outer`` has the types of the visible names from outside.
        """
        if graph.sparse_initializer:
            raise NotInFloat64Error("it has sparse weights")
        types = ChainMap(declared_types(graph), outer)  # no copy: there may be as many bodies as tensors
        for weight in graph.initializer:
            weight.CopyFrom(self.weight(weight))
        del graph.value_info[:]
        for info in (*graph.input, *graph.output):
            _widen(info.type)
        replace_nodes(graph, [made for node in graph.node for made in self.node(node, types)])
        return types

    def weight(self, weight: onnx.TensorProto) -> onnx.TensorProto:
        """Return a tensor with its data in the model, in float64 if its type is narrower."""
        if weight.data_type not in _WIDTHS.values() and weight.data_location != weight.EXTERNAL:
            return weight
        value = tensor_value(weight, self.folder)
        if weight.data_type in _WIDTHS.values():
            value = Tensor(dtype="float64", array=value.array.astype("float64"))
        return tensor_proto(value, weight.name)

    def node(self, node: onnx.NodeProto, types: MutableMapping[str, str]) -> list[onnx.NodeProto]:
        """Return the nodes that replace a node, and add the types of its outputs."""
        domain, schema = domain_of(node), schema_of(node, self.opsets)
        if schema is None:
            raise NotInFloat64Error(f"{node.op_type} of {domain or 'ai.onnx'} is not ONNX's")
        if not domain and node.op_type in _FLOAT32_INSIDE:
            raise NotInFloat64Error(f"the CPU EP computes {node.op_type} in float32, or with constants of it")
        inner = [self.graph(graph, types) for graph in bodies(node)]
        for name, text in output_types(node, schema, types, inner):
            types[name] = types.get(name) or text
        if not domain and node.op_type in {"Cast", "CastLike"}:
            return self.cast(node, types)
        if not domain:
            self.attributes(node)
        return self.with_parameters(node, schema, types)

    def attributes(self, node: onnx.NodeProto) -> None:
        """Rewrite constants and types that are attributes."""
        if node.op_type in {"Constant", "ConstantOfShape"}:
            self.constant(node)
        given = set()
        for attribute in node.attribute:
            given.add(attribute.name)
            if attribute.name in TYPE_ATTRIBUTES and attribute.i in _WIDTHS.values():
                # This one belongs to DequantizeLinear, which has no doubles.
                attribute.i = NUMBERS["float32"] if attribute.name == "output_dtype" else _DOUBLE
            elif attribute.type == attribute.TYPE_PROTO:
                _widen(attribute.tp)
        missing = FLOAT32_BY_DEFAULT.get(node.op_type)
        if missing and missing not in given:
            node.attribute.append(onnx.helper.make_attribute(missing, _DOUBLE))

    def constant(self, node: onnx.NodeProto) -> None:
        if node.op_type == "ConstantOfShape" and not node.attribute:
            zero = onnx.numpy_helper.from_array(np.zeros(1))
            node.attribute.append(onnx.helper.make_attribute("value", zero))
        for attribute in node.attribute:
            if attribute.name == "value":
                attribute.t.CopyFrom(self.weight(attribute.t))
            elif attribute.name in {"value_float", "value_floats"}:
                numbers = attribute.f if attribute.name == "value_float" else list(attribute.floats)
                tensor = onnx.numpy_helper.from_array(np.array(numbers, np.float64))
                attribute.CopyFrom(onnx.helper.make_attribute("value", tensor))
            elif attribute.name == "sparse_value":
                raise NotInFloat64Error("it has sparse constants")

    def cast(self, node: onnx.NodeProto, types: Mapping[str, str]) -> list[onnx.NodeProto]:
        """Return a cast; a cast to a narrower float still rounds, unless it changes nothing."""
        source, wanted = types.get(node.input[0], ""), types[node.output[0]]
        if not wanted:
            raise NotInFloat64Error(f"the type that {node.op_type} casts to is unknown")
        if wanted not in _WIDTHS:
            return [node]
        double = self.cast_node(node.input[0], node.output[0], _DOUBLE)
        if source == wanted or (source in _WIDTHS and wanted == "tensor(float)"):
            return [double]
        rounded = self.cast_node(node.input[0], self.name(node.output[0]), _WIDTHS[wanted])
        double.input[0] = rounded.output[0]
        return [rounded, double]

    def with_parameters(
        self, node: onnx.NodeProto, schema: onnx.defs.OpSchema, types: Mapping[str, str]
    ) -> list[onnx.NodeProto]:
        """Return a node with casts of its parameters, if its schema allows no doubles for them."""
        before = []
        for index, name in enumerate(node.input):
            formal = formal_of(schema.inputs, index)
            number = self.stays(node, types.get(name, ""), formal.types) if name else 0
            if number and index not in _PARAMETERS.get(node.op_type, ()):
                raise NotInFloat64Error(f"{node.op_type} has no form for doubles")
            if number:
                before.append(self.cast_node(name, self.name(name), number))
                node.input[index] = before[-1].output[0]
        for index, name in enumerate(node.output):
            if name and self.stays(node, types[name], formal_of(schema.outputs, index).types):
                raise NotInFloat64Error(f"{node.op_type} has no form for doubles")
        return [*before, node]

    def stays(self, node: onnx.NodeProto, text: str, allowed: AbstractSet[str]) -> int:
        """Return the narrower type that a value keeps; 0 if it becomes double, or is no float.

        ``text`` is its present type, empty if unknown; ``allowed`` are the types that the schema allows in
        its place.
        """
        if not text and any(map(_is_narrow, allowed)):
            raise NotInFloat64Error(f"the type of a value of {node.op_type} is unknown")
        if not _is_narrow(text) or _NARROW_TENSOR.sub("tensor(double)", text) in allowed:
            return 0
        for number in (_WIDTHS["tensor(float)"], _WIDTHS.get(text, 0)):
            if number and text in _WIDTHS and tensor_text(number) in allowed:
                return number
        raise NotInFloat64Error(f"{node.op_type} has no form for doubles")

    def cast_node(self, source: str, result: str, to: int) -> onnx.NodeProto:
        return onnx.helper.make_node("Cast", [source], [result], to=to)

    def name(self, name: str) -> str:
        """Return a name that no other tensor has."""
        return f"{name}/narrow/{next(self.numbers)}"


def _widen(declared: onnx.TypeProto) -> None:
    """Replace the narrower types in a declaration by float64."""
    for tensor in tensors_in(declared):
        if tensor.elem_type in _WIDTHS.values():
            tensor.elem_type = _DOUBLE


def _is_narrow(text: str) -> bool:
    return _NARROW_TENSOR.search(text) is not None
