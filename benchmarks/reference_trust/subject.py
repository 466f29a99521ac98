"""A subject: one node of one operator version, with inputs, that both implementations can be asked about."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TypeProto, helper, numpy_helper

from harness.core.values.value import Array

Attributes = dict[str, Any]
"""Attributes of a node by name."""

Formula = Callable[[list[Any], Attributes, int], list[Any] | None]
"""Inputs in float64, attributes and version of an operator -> its outputs; None where it is not covered."""

NEWEST_OPSET = 26
"""The newest opset that onnxruntime 1.31 supports."""

OLDEST_OPSET = 7
"""``harness.agent.evaluate`` asks the reference about no older one."""

COMPANION_OPSET = 21
"""The opset of ONNX's own domain beside a node of another domain."""


@dataclasses.dataclass(frozen=True)
class Subject:
    """One node and its inputs.

    Attributes:
        node: The node; its inputs are named ``i0``, ``i1``, ... and its outputs ``o0``, ``o1``, ...
        since: The version of its schema.
        opset: The version of its domain that the model imports.
        feeds: Input name -> value: an array, a list, or None for an empty optional.
        types: Types of inputs that no array tells.
        about: What distinguishes it, for people: attributes and the shapes of inputs.
        expected: Outputs that a test of ONNX's expects; empty for inputs of another making.
    """

    node: onnx.NodeProto
    since: int
    opset: int
    feeds: Mapping[str, Any]
    types: Mapping[str, TypeProto]
    about: Mapping[str, str]
    expected: Sequence[Any] = ()

    @property
    def key(self) -> tuple[str, str, int]:
        """Domain, operator, version of the schema."""
        return self.node.domain, self.node.op_type, self.since

    @property
    def dtype(self) -> str:
        """The widest floating type among the inputs; empty where there is none."""
        kinds = {value.dtype.name for value in self.feeds.values() if isinstance(value, np.ndarray)}
        return next((name for name in ("float64", "float32", "float16", "bfloat16") if name in kinds), "")


def subject(
    node: onnx.NodeProto,
    since: int,
    opset: int,
    values: Sequence[Any],
    types: Sequence[TypeProto | None] = (),
    expected: Sequence[Any] = (),
) -> Subject:
    """Make a subject of a node and the values of its inputs; None for one that is left out."""
    one = onnx.NodeProto()
    one.CopyFrom(node)
    del one.input[:], one.output[:]
    one.input.extend("" if value is None else f"i{place}" for place, value in enumerate(values))
    one.output.extend(f"o{place}" if name else "" for place, name in enumerate(node.output))
    while one.input and not one.input[-1]:
        del one.input[-1]
    known = {f"i{place}": kind for place, kind in enumerate(types) if kind is not None}
    return Subject(
        node=one,
        since=since,
        opset=opset,
        feeds={f"i{place}": value for place, value in enumerate(values) if value is not None},
        types=known,
        about=_about(one, values),
        expected=expected,
    )


def model_of(one: Subject, fixed: Sequence[str] = ()) -> onnx.ModelProto:
    """Make a model with that node alone.

    Args:
        one: The subject.
        fixed: Inputs that become initializers.
    """
    inputs = [
        helper.make_value_info(name, one.types[name])
        if name in one.types
        else helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), list(value.shape)
        )
        for name, value in one.feeds.items()
        if name not in fixed
    ]
    graph = helper.make_graph(
        [one.node],
        "one",
        inputs,
        [onnx.ValueInfoProto(name=name) for name in one.node.output if name],
        [numpy_helper.from_array(np.ascontiguousarray(one.feeds[name]), name) for name in fixed],
    )
    opsets = [helper.make_opsetid(one.node.domain, one.opset)]
    if one.node.domain:
        opsets.append(helper.make_opsetid("", COMPANION_OPSET))
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = min(13, max(8, helper.find_min_ir_version_for(opsets, ignore_unknown=True)))
    return model


def in_float64(one: Subject) -> Subject | None:
    """The same with doubles in place of float32; None where nothing is, or where arrays do not tell types."""
    if one.types or not any(value.dtype == np.float32 for value in one.feeds.values()):
        return None
    feeds = {name: _doubled(value) for name, value in one.feeds.items()}
    expected = [_doubled(value) for value in one.expected]
    return dataclasses.replace(one, feeds=feeds, expected=expected)


def _doubled(value: Any) -> Any:
    """A float32 array as doubles; the numbers stay what they are."""
    if isinstance(value, np.ndarray) and value.dtype == np.float32:
        return value.astype(np.float64)
    return value


def shuffled(one: Subject, random: np.random.Generator) -> Subject | None:
    """The same with the elements of every floating input in another order: other values of the same range."""
    arrays = {name: value for name, value in one.feeds.items() if isinstance(value, np.ndarray)}
    floating = {name for name, value in arrays.items() if value.dtype.kind == "f" and value.size > 1}
    if not floating or len(arrays) < len(one.feeds):
        return None
    feeds = {
        name: _in_another_order(value, random) if name in floating else value
        for name, value in one.feeds.items()
    }
    return dataclasses.replace(one, feeds=feeds, expected=())


def _in_another_order(value: Array, random: np.random.Generator) -> Array:
    other: Array = random.permutation(value.reshape(-1)).reshape(value.shape)
    return other


def _about(node: onnx.NodeProto, values: Sequence[Any]) -> dict[str, str]:
    about = {
        attribute.name: _text(helper.get_attribute_value(attribute))
        for attribute in node.attribute
        if attribute.type not in {attribute.GRAPH, attribute.GRAPHS, attribute.TENSOR}
    }
    shapes = [
        "-"
        if value is None
        else "x".join(map(str, np.shape(value))) or "scalar"
        if isinstance(value, np.ndarray)
        else type(value).__name__
        for value in values
    ]
    return about | {"inputs": ", ".join(shapes), "outputs": str(sum(map(bool, node.output)))}


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float):
        return f"{value:.6g}"
    return (
        " ".join(map(_text, value))
        if isinstance(value, Sequence) and not isinstance(value, str)
        else str(value)
    )
