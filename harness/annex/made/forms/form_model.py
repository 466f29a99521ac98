"""A form as a model with its inputs."""

from collections.abc import Iterator
from typing import Any

import msgspec
import onnx
import onnx.checker
import onnx.shape_inference
from onnx import helper

from harness.annex.made.forms.draw import ChoiceStream
from harness.annex.made.forms.input_values import values
from harness.annex.made.forms.operator_schemas import OperatorSchema
from harness.annex.made.forms.setting import Form, Operand
from harness.core.values.value import Array, tensor
from harness.corpus.model.protos import tensor_proto, value_info

_IR_VERSION, _PLAIN_OPSET = 8, 21
_IR_OF_OPSET = {19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12, 25: 13, 26: 13}
"""Opset of ONNX -> the IR version of the same release, from onnx's table of versions; older opsets use 8."""

_FOLLOWERS = ("Relu", "Sigmoid", "Tanh", "Neg", "Add", "Mul")
_FOLLOW_PERCENT, _SHARE_PERCENT, _CONSTANT_PERCENT, _SYMBOL_PERCENT, _ALIAS_PERCENT = 20, 30, 30, 30, 30


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """A model, and the data of its inputs by name, in their order."""

    model: onnx.ModelProto
    inputs: dict[str, Array]


def build(
    operator: OperatorSchema, opset: int, form: Form, output_types: tuple[str, ...], draw: ChoiceStream
) -> Built:
    """Return the model of a form: which inputs are constant, which sizes are open, and which node follows.

    ``output_types`` has the element type of each output; empty where only shape inference knows it.
    """
    placed = tuple(_placed(form, draw))
    types = {f"y{at}": dtype for at, dtype in enumerate(output_types)}
    shown = [*types]
    weights: list[onnx.TensorProto] = []
    names = [name for name, _, _ in placed]
    nodes = [*form.nodes] or [
        helper.make_node(operator.name, names, shown, domain=operator.domain, **form.attributes)
    ]
    if draw.chance(_FOLLOW_PERCENT) and types["y0"] == "float32":
        follower, weights = _follower(draw.pick(_FOLLOWERS), draw)
        nodes.append(follower)
        types["z"] = "float32"
        # An output that is also read inside keeps an EP from fusing it away.
        shown = [*(shown if draw.chance(_SHARE_PERCENT) else shown[1:]), "z"]
    graph = helper.make_graph(nodes, "form", [], [])
    fed: dict[str, Array] = {}
    for name, operand, constant in {one[0]: one for one in placed}.values():
        if operand is None:
            continue
        if constant:
            graph.initializer.append(tensor_proto(tensor(operand.array), name))
        else:
            graph.input.append(_declared(name, operand, draw))
            fed[name] = operand.array
    graph.initializer.extend(weights)
    for name in shown:
        declared = onnx.ValueInfoProto(name=name)
        if types[name]:
            declared = value_info(name, types[name], None)
        graph.output.append(declared)
    return Built(model=_checked(_model(graph, operator.domain, opset)), inputs=fed)


def _checked(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model with the shapes of its outputs, where onnx infers them: those of ONNX's own operators.

    Raises:
        ValueError: onnx finds a fault in it.
    """
    try:
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        for declared, found in zip(model.graph.output, inferred.graph.output, strict=True):
            declared.CopyFrom(found)
        if all(_has_shape(one.type) for one in model.graph.output):
            onnx.checker.check_model(model)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError) as error:
        raise ValueError(f"onnx refuses the form: {error}") from error
    return model


def _has_shape(declared: onnx.TypeProto) -> bool:
    return declared.WhichOneof("value") != "tensor_type" or bool(declared.tensor_type.HasField("shape"))


def _model(graph: onnx.GraphProto, domain: str, opset: int) -> onnx.ModelProto:
    own = opset if not domain else _PLAIN_OPSET
    imports = [helper.make_opsetid("", own)]
    if domain:
        imports.append(helper.make_opsetid(domain, opset))
    ir_version = _IR_OF_OPSET.get(own, _IR_VERSION)
    return helper.make_model(graph, ir_version=ir_version, opset_imports=imports, producer_name="ep-harness")


def _placed(form: Form, draw: ChoiceStream) -> Iterator[tuple[str, Operand | None, bool]]:
    """Yield the name of each input of the node, its value, and whether it is constant.

    At least one input is fed if any may be: otherwise the whole model would fold to a constant. Inputs with
    equal shapes and types may be one tensor that is used twice.
    """
    given = [operand for operand in form.inputs if operand is not None]
    free = [at for at, operand in enumerate(given) if operand.constant is None]
    constant = {at for at in free if draw.chance(_CONSTANT_PERCENT)}
    fed = {at for at, operand in enumerate(given) if operand.constant is False}
    if free and not fed and constant == set(free):
        constant.discard(free[0])
    number = 0
    seen: dict[Any, tuple[str, Operand]] = {}
    for operand in form.inputs:
        if operand is None:
            yield "", None, False
            continue
        is_constant = number in constant or bool(operand.constant)
        name = f"x{number}"
        number += 1
        key = (operand.dtype, operand.array.shape, is_constant)
        if operand.constant is None and key in seen and form.aliases and draw.chance(_ALIAS_PERCENT):
            yield (*seen[key], is_constant)
            continue
        seen.setdefault(key, (name, operand))
        yield name, operand, is_constant


def _follower(op: str, draw: ChoiceStream) -> tuple[onnx.NodeProto, list[onnx.TensorProto]]:
    """Return a node that reads the first output, a float32, with a constant if it takes two inputs."""
    if op not in {"Add", "Mul"}:
        return helper.make_node(op, ["y0"], ["z"]), []
    weight = tensor_proto(tensor(values(draw, "float32", ())), "w")
    return helper.make_node(op, draw.pick((["y0", "w"], ["w", "y0"])), ["z"]), [weight]


def _declared(name: str, operand: Operand, draw: ChoiceStream) -> onnx.ValueInfoProto:
    """Return the declaration of an input, whose sizes may be symbols."""
    shape: list[int | str] = list(operand.array.shape)
    if not operand.fixed and draw.chance(_SYMBOL_PERCENT):
        shape = [f"{name}_{at}" if draw.chance(60) else size for at, size in enumerate(shape)]
    return value_info(name, operand.dtype, shape)
