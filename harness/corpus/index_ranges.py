"""Inputs that index a table of the model, such as the ids of tokens, and how many rows the table has.

Token ids go into a ``Gather`` on the embedding, whose shape is in the model: so the range of such an input is
known without its name, and without reading a weight.
"""

from typing import TYPE_CHECKING

from harness.corpus.port import model_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    import onnx

_LOOK_UPS = {
    "Gather": ((1, 0),),
    "GatherElements": ((1, 0),),
    "GatherBlockQuantized": ((1, 0),),
    "EmbedLayerNormalization": ((0, 2), (1, 4), (8, 3)),
}
"""Operator -> pairs of inputs: the indices, and the table that they index. The last two are onnxruntime's."""

_SAME_VALUES = frozenset(
    {"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Expand"}
)
"""Operators whose result holds no value that their first input does not."""

_SAME_SHAPE = frozenset({"Cast", "Identity", "DequantizeLinear"})
"""Operators through which a table may go on its way to where it is indexed."""


def index_ranges(graph: "onnx.GraphProto") -> dict[str, int]:
    """Input -> how many rows the smallest table has that it indexes; at least 1, other inputs left out.

    Only the main graph is looked at, not those inside ``If`` and ``Loop``.
    """
    origins = {info.name: info.name for info in graph.input}
    shapes = dict(_declared_shapes(graph))
    found: dict[str, int] = {}
    for node in graph.node:
        for indices, table in _LOOK_UPS.get(node.op_type, ()):
            if len(node.input) <= max(indices, table):
                continue
            origin, shape = origins.get(node.input[indices]), shapes.get(node.input[table], ())
            axis = next((one.i for one in node.attribute if one.name == "axis"), 0)
            if origin is not None and -len(shape) <= axis < len(shape) and shape[axis] > 0:
                found[origin] = min(shape[axis], found.get(origin, shape[axis]))
        if node.input and node.output:
            first, result = node.input[0], node.output[0]
            if node.op_type in _SAME_VALUES and first in origins:
                origins[result] = origins[first]
            if node.op_type in _SAME_SHAPE and first in shapes:
                shapes[result] = shapes[first]
        if node.op_type == "Constant" and node.output:
            shapes.update((node.output[0], tuple(a.t.dims)) for a in node.attribute if a.name == "value")
    return {model_text(name): rows for name, rows in found.items()}


def _declared_shapes(graph: "onnx.GraphProto") -> "Iterator[tuple[str, tuple[int, ...]]]":
    for info in (*graph.value_info, *graph.input):
        # A dimension without a number reads as 0, which is no table's.
        yield info.name, tuple(dim.dim_value for dim in info.type.tensor_type.shape.dim)
    for weight in graph.initializer:
        yield weight.name, tuple(weight.dims)
