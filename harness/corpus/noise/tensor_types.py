"""What the tensors of a graph are, as far as a model and ONNX's schemas tell: types and sizes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.core.tolerance import UNIT_ROUNDOFF
from harness.corpus.noise.terms import Dims
from harness.corpus.schema_types import domain_of, output_types, tensor_text, type_text

if TYPE_CHECKING:
    import onnx

COMPUTED: dict[str, float] = {
    "tensor(float)": UNIT_ROUNDOFF["float32"],
    "tensor(float16)": UNIT_ROUNDOFF["float16"],
    "tensor(double)": UNIT_ROUNDOFF["float64"],
    "tensor(bfloat16)": UNIT_ROUNDOFF["bfloat16"],
}
"""Types that operators compute in -> unit roundoff."""

NUMBERS: dict[str, int] = {
    "tensor(float)": 1,
    "tensor(float16)": 10,
    "tensor(double)": 11,
    "tensor(bfloat16)": 16,
}
"""The same -> ``TensorProto.DataType``."""


def declared_types(graph: "onnx.GraphProto") -> dict[str, str]:
    """Types of what a graph declares; texts as in ``harness.corpus.schema_types``."""
    types = {info.name: type_text(info.type) for info in (*graph.value_info, *graph.output, *graph.input)}
    types.update({weight.name: tensor_text(weight.data_type) for weight in graph.initializer})
    for sparse in graph.sparse_initializer:
        types[sparse.values.name] = tensor_text(sparse.values.data_type)
    return types


def declared_sizes(graph: "onnx.GraphProto") -> dict[str, Dims]:
    """Sizes of what a graph declares."""
    sizes: dict[str, Dims] = {}
    for info in (*graph.value_info, *graph.output, *graph.input):
        if info.type.HasField("tensor_type") and info.type.tensor_type.HasField("shape"):
            sizes[info.name] = tuple(
                dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None
                for dim in info.type.tensor_type.shape.dim
            )
    sizes.update({weight.name: tuple(weight.dims) for weight in graph.initializer})
    return sizes


def result_types(
    node: "onnx.NodeProto",
    opsets: Mapping[str, int],
    types: Mapping[str, str],
    inner: Sequence[Mapping[str, str]],
) -> Iterator[tuple[str, str]]:
    """Name and type of each output of a node.

    What an operator that is not ONNX's gives counts as what the first float is that it takes.

    Args:
        node: The node.
        opsets: Domain -> version.
        types: Name -> type of what it may read.
        inner: The same for each of its bodies.
    """
    import onnx.defs

    domain = domain_of(node)
    try:
        schema = onnx.defs.get_schema(node.op_type, opsets.get(domain, 1), domain)
    except onnx.defs.SchemaError:
        first = next((types[name] for name in node.input if types.get(name) in COMPUTED), "")
        yield from ((name, first) for name in node.output if name)
    else:
        yield from output_types(node, schema, types, inner)
