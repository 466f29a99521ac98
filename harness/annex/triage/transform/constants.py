"""Constant nodes as initializers."""

from harness.annex.triage.context import Context
from harness.annex.triage.cut import with_initializers
from harness.annex.triage.net import Net
from harness.annex.triage.net_node import NetNode, NetWeight, weight_of
from harness.annex.triage.search import NetCandidate, Search, minimise


def constants(net: Net, context: Context) -> Search:
    """Turn Constant nodes into initializers, except for sparse ones."""
    found = {
        weight.name: weight
        for node in net.nodes
        if node.op_type == "Constant" and not context.must_stay(net, node)
        for weight in [_weight(node)]
        if weight is not None and weight.name not in net.outputs
    }

    def build(kept: tuple[str, ...]) -> NetCandidate:
        gone = {name: weight for name, weight in found.items() if name not in kept}
        nodes = tuple(node for node in net.nodes if node.op_type != "Constant" or node.outputs[0] not in gone)
        return with_initializers(net.replace(nodes=nodes), gone.values())

    yield from minimise(tuple(found), build)


def _weight(node: NetNode) -> NetWeight | None:
    """Return the initializer that a Constant node can be; None for a sparse one."""
    import onnx.helper
    import onnx.numpy_helper

    for attribute in node.proto().attribute:
        if attribute.ref_attr_name or attribute.name == "sparse_value":
            return None
        if attribute.name == "value":
            proto = attribute.t
        else:
            held = onnx.helper.get_attribute_value(attribute)
            kind = attribute.name.removesuffix("s")
            number = _NUMBERS.get(kind)
            if number is None:
                return None
            many = attribute.name.endswith("s")
            proto = onnx.helper.make_tensor("", number, [len(held)] if many else [], held if many else [held])
        proto.name = node.outputs[0]
        return weight_of(proto)
    return None


_NUMBERS = {"value_float": 1, "value_int": 7, "value_string": 8}
"""Attribute -> ``TensorProto.DataType`` of its content, singly or as a list."""
