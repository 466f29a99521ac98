"""One odd model: an operator on odd inputs, bare or wrapped, from a seed."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import onnx
import onnx.defs
from onnx import TensorProto, helper

from benchmarks.odd_models.types import SHAPES, declared, special_constant

WRAPS = (
    "bare",
    "bare",
    "bare",
    "if",
    "loop",
    "function",
    "sequence",
    "optional",
    "constant",
    "twice",
    "cast",
)
"""How an operator stands in its model; bare ones are the most."""

MOST_OUTPUTS = 6
NEWEST_OPSET = 24
"""Newer operators are refused by the releases of onnxruntime that are at hand."""

FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64


def schemas() -> list[onnx.defs.OpSchema]:
    """Every version of every operator of ONNX, those of training left out."""
    found = onnx.defs.get_all_schemas_with_history()
    kept = [
        one
        for one in found
        if one.domain in {"", "ai.onnx.ml"} and not one.deprecated and one.since_version <= NEWEST_OPSET
    ]
    return sorted(kept, key=lambda one: (one.domain, one.name, one.since_version))


def models(count: int, seed: int) -> Iterator[tuple[str, onnx.ModelProto]]:
    """So many models with their names: each operator in turn, the first time in its newest version."""
    every = schemas()
    newest = {(one.domain, one.name): one for one in every}
    order = [*newest.values(), *every]
    for number in range(count):
        schema = order[number % len(order)]
        rng = random.Random(f"{seed}/{number}")  # noqa: S311 - nobody is to be fooled
        wrap = rng.choice(WRAPS) if number >= len(newest) else "bare"
        yield f"{number:05}_{schema.name}_{schema.since_version}_{wrap}", model(schema, wrap, rng)


def model(schema: onnx.defs.OpSchema, wrap: str, rng: random.Random) -> onnx.ModelProto:
    """A model of one operator, which need not be valid."""
    types = {one.type_param_str: rng.choice(sorted(one.allowed_type_strs)) for one in schema.type_constraints}
    inputs, names = _inputs(schema, types, rng)
    outputs = [f"y{index}" for index in range(_count(schema.outputs, schema.min_output, rng))]
    node = helper.make_node(schema.name, names, outputs, domain=schema.domain, **_attributes(schema, rng))
    untyped = rng.random() < 0.5  # noqa: PLR2004 - onnxruntime infers what a model leaves out
    infos = [
        onnx.ValueInfoProto(name=name) if untyped else _output(name, schema, index, types)
        for index, name in enumerate(outputs)
    ]
    graph = helper.make_graph([node], "odd", inputs, infos)
    functions: list[onnx.FunctionProto] = []
    opset = 1 if schema.domain else schema.since_version
    opsets = [helper.make_opsetid("", 18 if schema.domain else _opset(schema, rng))]
    if schema.domain:
        opsets.append(helper.make_opsetid(schema.domain, schema.since_version))
    if opset and outputs:
        _wrapped(graph, wrap, rng, functions, opsets)
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)


def _opset(schema: onnx.defs.OpSchema, rng: random.Random) -> int:
    """The version of the schema, or a newer one in which it may be another."""
    return rng.choice([schema.since_version, min(schema.since_version + 1, NEWEST_OPSET)])


def _inputs(
    schema: onnx.defs.OpSchema, types: dict[str, str], rng: random.Random
) -> tuple[list[onnx.ValueInfoProto], list[str]]:
    inputs, names = [], []
    same = rng.choice(SHAPES)
    for index in range(_count(schema.inputs, schema.min_input, rng)):
        formal = schema.inputs[min(index, len(schema.inputs) - 1)]
        text = types.get(formal.type_str, formal.type_str)
        shape = same if rng.random() < 0.6 else rng.choice(SHAPES)  # noqa: PLR2004 - most operators want equal ones
        info = declared(f"x{index}", text, shape)
        names.append("" if info is None else info.name)
        inputs += [] if info is None else [info]
    return inputs, names


def _count(formals: "Sequence[onnx.defs.OpSchema.FormalParameter]", least: int, rng: random.Random) -> int:
    """How many inputs or outputs there are; of variadic ones up to two more."""
    variadic = bool(formals) and formals[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic
    most = len(formals) + (rng.randint(0, 2) if variadic else 0)
    fewest = min(max(least, 0), most)
    return rng.randint(fewest, max(fewest, min(most, MOST_OUTPUTS)))


def _output(name: str, schema: onnx.defs.OpSchema, index: int, types: dict[str, str]) -> onnx.ValueInfoProto:
    formal = schema.outputs[min(index, len(schema.outputs) - 1)]
    info = declared(name, types.get(formal.type_str, formal.type_str), ())
    if info is None:
        return helper.make_tensor_value_info(name, FLOAT, None)
    if info.type.HasField("tensor_type"):
        info.type.tensor_type.ClearField("shape")  # left to inference
    return info


def _attributes(schema: onnx.defs.OpSchema, rng: random.Random) -> dict[str, Any]:
    """The required ones, with odd values; others sometimes."""
    kinds = onnx.defs.OpSchema.AttrType
    values: dict[object, object] = {
        kinds.INT: rng.choice([0, 1, -1, 2, 7]),
        kinds.INTS: rng.choice([[0], [1, 1], [-1], [2, 2], [1] * 4]),
        kinds.FLOAT: rng.choice([0.0, 0.5, -1.0, 1e30]),
        kinds.FLOATS: rng.choice([[0.5], [1.0, 1.0], [0.0]]),
        kinds.STRING: rng.choice(["", "linear", "NOTSET", "\u00e9"]),
        kinds.STRINGS: rng.choice([["a"], ["a", "b"]]),
    }
    found: dict[str, object] = {}
    for name, attribute in schema.attributes.items():
        wanted = attribute.required or rng.random() < 0.1  # noqa: PLR2004 - odd ones make most models invalid
        if not wanted:
            continue
        if attribute.type == kinds.GRAPH:
            found[name] = _body()
        elif attribute.type == kinds.TENSOR:
            found[name] = special_constant(rng, "value")
        elif attribute.type in values:
            found[name] = values[attribute.type]
    if "to" in found:
        found["to"] = rng.choice([1, 2, 6, 7, 9, 10, 11, 16, 17])
    return found


def _body() -> onnx.GraphProto:
    constant = helper.make_node("Constant", [], ["inside"], value_float=1.0)
    return helper.make_graph([constant], "body", [], [helper.make_tensor_value_info("inside", FLOAT, None)])


def _wrapped(
    graph: onnx.GraphProto,
    wrap: str,
    rng: random.Random,
    functions: list[onnx.FunctionProto],
    opsets: list[onnx.OperatorSetIdProto],
) -> None:
    """Change a graph of one node in place: the node within a body or a function, or something behind it."""
    first = graph.output[0].name
    if wrap == "if":
        node = graph.node.pop()
        bodies = [helper.make_graph([node], f"branch{number}", [], list(graph.output)) for number in range(2)]
        graph.input.append(helper.make_tensor_value_info("condition", BOOL, ()))
        outputs = [info.name for info in graph.output]
        graph.node.append(
            helper.make_node("If", ["condition"], outputs, then_branch=bodies[0], else_branch=bodies[1])
        )
    elif wrap == "loop":
        node = graph.node.pop()
        keep = helper.make_node("Identity", ["go"], ["on"])
        body_inputs = [
            helper.make_tensor_value_info("i", INT64, ()),
            helper.make_tensor_value_info("go", BOOL, ()),
        ]
        on = helper.make_tensor_value_info("on", BOOL, ())
        body = helper.make_graph([keep, node], "body", body_inputs, [on, *graph.output])
        graph.input.append(helper.make_tensor_value_info("trips", INT64, ()))
        names = [info.name for info in graph.output]
        graph.node.append(helper.make_node("Loop", ["trips", ""], names, body=body))
    elif wrap == "function":
        node = graph.node.pop()
        functions.append(
            helper.make_function("odd", "f", list(node.input), list(node.output), [node], list(opsets))
        )
        opsets.append(helper.make_opsetid("odd", 1))
        graph.node.append(helper.make_node("f", list(node.input), list(node.output), domain="odd"))
    elif wrap in {"sequence", "optional"}:
        kind = "SequenceConstruct" if wrap == "sequence" else "Optional"
        graph.node.append(helper.make_node(kind, [first], ["wrapped"]))
        graph.output[0].CopyFrom(onnx.ValueInfoProto(name="wrapped"))
    elif wrap == "constant" and graph.input:
        graph.initializer.append(special_constant(rng, graph.input[-1].name))
        del graph.input[-1]
    elif wrap == "twice":
        graph.output.append(graph.output[0])
    elif wrap == "cast":
        graph.node.append(helper.make_node("Cast", [first], ["cast"], to=rng.choice([1, 2, 7, 8, 9, 10, 16])))
        graph.output.append(onnx.ValueInfoProto(name="cast"))
