"""Operators on sequences, and those with bodies: a few nodes each, with tensors at both ends."""

from typing import TYPE_CHECKING, Any

from harness.annex.made.forms.setting import Form, Setting
from harness.corpus.model.protos import value_info

if TYPE_CHECKING:
    import onnx

_COUNT = 3
"""Tensors of a sequence."""


def sequence(setting: Setting) -> Form:
    """Return a form of an operator on a sequence of three tensors, whose result becomes a tensor again."""
    draw = setting.draw
    dtype = setting.types.get("T") or draw.pick(("float32", "int64"))
    element = Setting(setting.operator, {**setting.types, "T": dtype}, draw)
    shape = list(setting.shape(1, 3))
    operands = tuple(element.drawn(dtype, shape) for _ in range(_COUNT))
    inputs, result = (*operands, element.given_as("int64", draw.between(-_COUNT, _COUNT - 1))), dtype
    made = _node("SequenceConstruct", "x0 x1 x2", "s")
    joined = _node("ConcatFromSequence", "t", "y0", axis=0)
    match setting.name:
        case "SequenceAt":
            nodes = [_node("SequenceAt", "s x3", "y0")]
        case "SequenceErase":
            nodes = [_node("SequenceErase", "s x3", "t"), joined]
        case "SequenceInsert":
            nodes = [_node("SequenceInsert", "s x0 x3", "t"), joined]
        case "SequenceLength":
            inputs, result, nodes = operands, "int64", [_node("SequenceLength", "s", "y0")]
        case _:
            attributes = {"axis": element.axis(len(shape))} | setting.maybe(30, {"new_axis": 1})
            inputs, nodes = operands, [_node("ConcatFromSequence", "s", "y0", **attributes)]
    return Form(inputs=inputs, nodes=(made, *nodes), types={0: result})


def optional(setting: Setting) -> Form:
    """Return a form of an operator on optionals: a tensor becomes one, which is tested or opened again."""
    # The schema of OptionalHasElement names no type of its input before version 18.
    dtype = setting.types.get("V") or setting.types.get("O") or setting.draw.pick(("float32", "int64"))
    value = setting.drawn(dtype, setting.shape(0, 4))
    name = setting.name if setting.name != "Optional" else "OptionalGetElement"
    result = "bool" if name == "OptionalHasElement" else dtype
    # From version 18 on, a tensor may replace an optional.
    if setting.name != "Optional" and setting.since >= _TENSOR_TOO and setting.draw.chance(50):
        nodes = [_node(name, "x0", "y0")]
    else:
        nodes = [_node("Optional", "x0", "o"), _node(name, "o", "y0")]
    return Form(inputs=(value,), nodes=tuple(nodes), types={0: result})


_TENSOR_TOO = 18


def split_to_sequence(setting: Setting) -> Form:
    """Return a form of SplitToSequence, whose parts are joined again."""
    draw = setting.draw
    dtype = setting.dtype(0)
    shape = list(setting.shape(1, 3))
    axis = draw.below(len(shape))
    nodes = (
        _node("SplitToSequence", "x0 x1", "s", axis=axis),
        _node("ConcatFromSequence", "s", "y0", axis=axis),
    )
    size = setting.given_as("int64", draw.between(1, shape[axis]))
    return Form(inputs=(setting.drawn(dtype, shape), size), nodes=nodes, types={0: dtype})


def branches(setting: Setting) -> Form:
    """Return a form of If, whose branches read tensors from outside."""
    from onnx import helper

    shape = setting.shape(0, 4)
    condition = setting.given_as("bool", setting.draw.chance(50))
    then, otherwise = (
        helper.make_graph(
            [_node(op, "x1 x2", f"b{at}")], f"branch{at}", [], [value_info(f"b{at}", "float32", shape)]
        )
        for at, op in enumerate(setting.draw.some(("Add", "Sub", "Mul"), 2))
    )
    node = _node("If", "x0", "y0", then_branch=then, else_branch=otherwise)
    operands = (setting.drawn("float32", shape) for _ in range(2))
    return Form(inputs=(condition, *operands), nodes=(node,), types={0: "float32"})


def loop(setting: Setting) -> Form:
    """Return a form of Loop with a state, and with a result of each step."""
    from onnx import helper

    shape = setting.shape(0, 3)
    trips = setting.given_as("int64", setting.draw.between(1, 5))
    on = setting.given_as("bool", True)  # noqa: FBT003 - a value
    steps = {"Add": "v_out", "Mul": "each"}
    body = helper.make_graph(
        [_node("Identity", "c_in", "c_out"), *(_node(op, "v_in x3", made) for op, made in steps.items())],
        "body",
        [value_info("i", "int64", ()), value_info("c_in", "bool", ()), value_info("v_in", "float32", shape)],
        [value_info("c_out", "bool", ()), *(value_info(made, "float32", shape) for made in steps.values())],
    )
    operands = (setting.drawn("float32", shape) for _ in range(2))
    node = _node("Loop", "x0 x1 x2", "y0 y1", body=body)
    return Form(inputs=(trips, on, *operands), nodes=(node,), outputs=2, types={0: "float32", 1: "float32"})


def _node(op: str, inputs: str, outputs: str, **attributes: Any) -> "onnx.NodeProto":
    from onnx import helper

    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)
