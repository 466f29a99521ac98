"""Operators on sequences, and those with bodies: a few nodes each, with tensors at both ends."""

from typing import TYPE_CHECKING, Any

from harness.corpus.element_types import NUMBERS
from harness.corpus.forms.setting import Form, Node, Setting

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
    operands = [element.drawn(dtype, shape) for _ in range(_COUNT)]
    made = Node(op="SequenceConstruct", inputs=tuple(f"x{at}" for at in range(_COUNT)), outputs=("s",))
    position = element.given_as("int64", draw.between(-_COUNT, _COUNT - 1))
    joined = Node(op="ConcatFromSequence", inputs=("t",), outputs=("y0",), attributes={"axis": 0})
    match setting.name:
        case "SequenceAt":
            nodes = (made, Node(op="SequenceAt", inputs=("s", "x3"), outputs=("y0",)))
            return Form(inputs=(*operands, position), nodes=nodes, types={0: dtype})
        case "SequenceLength":
            nodes = (made, Node(op="SequenceLength", inputs=("s",), outputs=("y0",)))
            return Form(inputs=tuple(operands), nodes=nodes, types={0: "int64"})
        case "SequenceErase":
            erased = Node(op="SequenceErase", inputs=("s", "x3"), outputs=("t",))
            return Form(inputs=(*operands, position), nodes=(made, erased, joined), types={0: dtype})
        case "SequenceInsert":
            inserted = Node(op="SequenceInsert", inputs=("s", "x0", "x3"), outputs=("t",))
            return Form(inputs=(*operands, position), nodes=(made, inserted, joined), types={0: dtype})
        case _:
            attributes: dict[str, Any] = {"axis": element.axis(len(shape))} | setting.maybe(
                30, {"new_axis": 1}
            )
            last = Node(op="ConcatFromSequence", inputs=("s",), outputs=("y0",), attributes=attributes)
            return Form(inputs=tuple(operands), nodes=(made, last), types={0: dtype})


def optional(setting: Setting) -> Form:
    """Return a form of an operator on optionals: one is made of a tensor, and asked or opened again."""
    # The schema of OptionalHasElement names no type of its input before version 18.
    dtype = setting.types.get("V") or setting.types.get("O") or setting.draw.pick(("float32", "int64"))
    value = setting.drawn(dtype, setting.shape(0, 4))
    name = setting.name if setting.name != "Optional" else "OptionalGetElement"
    result = "bool" if name == "OptionalHasElement" else dtype
    # From version 18 on, a tensor may come in place of an optional.
    if setting.name != "Optional" and setting.since >= _TENSOR_TOO and setting.draw.chance(50):
        return Form(
            inputs=(value,), nodes=(Node(op=name, inputs=("x0",), outputs=("y0",)),), types={0: result}
        )
    made = Node(op="Optional", inputs=("x0",), outputs=("o",))
    return Form(
        inputs=(value,), nodes=(made, Node(op=name, inputs=("o",), outputs=("y0",))), types={0: result}
    )


_TENSOR_TOO = 18


def split_to_sequence(setting: Setting) -> Form:
    """Return a form of SplitToSequence, whose parts are joined again."""
    draw = setting.draw
    dtype = setting.dtype(0)
    shape = list(setting.shape(1, 3))
    axis = draw.below(len(shape))
    parts = Node(op="SplitToSequence", inputs=("x0", "x1"), outputs=("s",), attributes={"axis": axis})
    joined = Node(op="ConcatFromSequence", inputs=("s",), outputs=("y0",), attributes={"axis": axis})
    size = setting.given_as("int64", draw.between(1, shape[axis]))
    return Form(inputs=(setting.drawn(dtype, shape), size), nodes=(parts, joined), types={0: dtype})


def branches(setting: Setting) -> Form:
    """Return a form of If, whose branches read tensors from outside."""
    from onnx import helper

    shape = setting.shape(0, 4)
    number = NUMBERS["float32"]
    condition = setting.given_as("bool", setting.draw.chance(50))
    ops = setting.draw.some(("Add", "Sub", "Mul"), 2)
    bodies = [
        helper.make_graph(
            [helper.make_node(op, ["x1", "x2"], [f"b{at}"])],
            f"branch{at}",
            [],
            [helper.make_tensor_value_info(f"b{at}", number, shape)],
        )
        for at, op in enumerate(ops)
    ]
    node = Node(
        op="If",
        inputs=("x0",),
        outputs=("y0",),
        attributes={"then_branch": bodies[0], "else_branch": bodies[1]},
    )
    operands = tuple(setting.drawn("float32", shape) for _ in range(2))
    return Form(inputs=(condition, *operands), nodes=(node,), types={0: "float32"})


def loop(setting: Setting) -> Form:
    """Return a form of Loop with a state, and a result of each step."""
    from onnx import helper

    shape = setting.shape(0, 3)
    trips = setting.given_as("int64", setting.draw.between(1, 5))
    on = setting.given_as("bool", True)  # noqa: FBT003 - a value
    nodes = [
        helper.make_node("Identity", ["c_in"], ["c_out"]),
        helper.make_node("Add", ["v_in", "x3"], ["v_out"]),
        helper.make_node("Mul", ["v_in", "x3"], ["each"]),
    ]
    body = _body(nodes, shape)
    node = Node(op="Loop", inputs=("x0", "x1", "x2"), outputs=("y0", "y1"), attributes={"body": body})
    operands = tuple(setting.drawn("float32", shape) for _ in range(2))
    return Form(inputs=(trips, on, *operands), nodes=(node,), outputs=2, types={0: "float32", 1: "float32"})


def _body(nodes: "list[onnx.NodeProto]", shape: tuple[int, ...]) -> "onnx.GraphProto":
    from onnx import helper

    number, flag = NUMBERS["float32"], NUMBERS["bool"]
    inputs = [
        helper.make_tensor_value_info("i", NUMBERS["int64"], ()),
        helper.make_tensor_value_info("c_in", flag, ()),
        helper.make_tensor_value_info("v_in", number, shape),
    ]
    outputs = [
        helper.make_tensor_value_info("c_out", flag, ()),
        helper.make_tensor_value_info("v_out", number, shape),
        helper.make_tensor_value_info("each", number, shape),
    ]
    return helper.make_graph(nodes, "body", inputs, outputs)
