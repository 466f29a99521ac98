"""Fewer nodes: any part of the graph, with inputs or constants in place of the other nodes' results."""

from harness.annex.triage.context import Context
from harness.annex.triage.cut import cut
from harness.annex.triage.net import Net
from harness.annex.triage.search import Search, minimise

QUANTIZE = frozenset({"QuantizeLinear", "com.microsoft.QuantizeLinear"})
DEQUANTIZE = frozenset({"DequantizeLinear", "com.microsoft.DequantizeLinear"})


def fewer_nodes(net: Net, context: Context) -> Search:
    """Search for the smallest set of nodes; a tensor that they read from others becomes a graph input."""
    yield from _fewest_units(net, context, frozen=False)


def frozen_branches(net: Net, context: Context) -> Search:
    """Search for the smallest set of nodes; a tensor that they read from others becomes an initializer.

    Some tensors must be constant: weights, shapes, frozen branches.
    """
    yield from _fewest_units(net, context, frozen=True)


def quantized_units(net: Net) -> list[tuple[int, ...]]:
    """Return groups of nodes (indices) that go together: one each, but QuantizeLinear with its readers."""
    quantized = {
        name: index
        for index, node in enumerate(net.nodes)
        if node.op_type in QUANTIZE
        for name in node.outputs[:1]
    }
    units: dict[int, list[int]] = {}
    for index, node in enumerate(net.nodes):
        first = index
        if node.op_type in DEQUANTIZE:
            first = quantized.get(node.inputs[0], index) if node.inputs else index
        units.setdefault(first, []).append(index)
    return [tuple(unit) for unit in units.values()]


def _fewest_units(net: Net, context: Context, *, frozen: bool) -> Search:
    known = context.known(net)
    units = quantized_units(net)
    fixed = [unit for unit in units if any(context.must_stay(net, net.nodes[index]) for index in unit)]
    gone = set(fixed)

    def build(kept: tuple[tuple[int, ...], ...]) -> Net | None:
        return cut(net, {index for unit in (*fixed, *kept) for index in unit}, known, frozen=frozen)

    yield from minimise([unit for unit in units if unit not in gone], build)
