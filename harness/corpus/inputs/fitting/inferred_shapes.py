"""The shapes of a node's results by ONNX's own inference, for operators without a rule in the book."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from harness.corpus.model.nodes import domain_of
from harness.corpus.work.size import Dims

if TYPE_CHECKING:
    import onnx

    from harness.corpus.inputs.fitting.small_tensors import NumberArray


class _Known(Protocol):
    @property
    def dims(self) -> Dims | None: ...
    @property
    def numbers(self) -> "NumberArray | None": ...


def inferred_dims(
    node: "onnx.NodeProto", given: Sequence[_Known | None], opsets: Mapping[str, int]
) -> list[Dims | None]:
    """Return the extents of each result, None where ONNX does not tell; empty for an operator that it lacks.

    Inputs whose numbers are not known count as float32: shapes hardly ever depend on the element type.

    Args:
        node: A node without bodies.
        given: Its inputs; None for absent ones.
        opsets: Domain -> its version in the model.

    Raises:
        One of ``SIZE_ERRORS``: An input is missing, or an attribute makes no sense.
    """
    import onnx  # it takes 0.1 s, and models with test data do not come here

    domain = domain_of(node)
    if node.op_type == "STFT" and all(one.name != "onesided" for one in node.attribute):
        # The inference of onnx 1.23 takes 0 for it, and the operator 1.
        node = onnx.helper.make_node("STFT", node.input, node.output, onesided=1)
    try:
        schema = onnx.defs.get_schema(node.op_type, opsets.get(domain, 1), domain)
        types, data = {}, {}
        for name, one in zip(node.input, given, strict=False):
            if not name or one is None or one.dims is None:
                continue
            kind = int(onnx.TensorProto.FLOAT)
            if one.numbers is not None:
                data[name] = onnx.numpy_helper.from_array(one.numbers, name)
                kind = data[name].data_type
            types[name] = onnx.helper.make_tensor_type_proto(kind, one.dims)
        imports = [onnx.helper.make_opsetid(name, version) for name, version in opsets.items()]
        found = onnx.shape_inference.infer_node_outputs(schema, node, types, data, opset_imports=imports)
    except (onnx.defs.SchemaError, onnx.shape_inference.InferenceError, onnx.checker.ValidationError):
        return []
    return [_dims_of(found[name]) if name in found else None for name in node.output]


def _dims_of(declared: "onnx.TypeProto") -> Dims | None:
    tensor = declared.tensor_type
    if not tensor.HasField("shape"):
        return None
    dims = tuple(one.dim_value if one.HasField("dim_value") else -1 for one in tensor.shape.dim)
    return None if -1 in dims else dims
