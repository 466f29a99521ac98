"""The nodes of a trace with all that was measured about them."""

import functools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from harness.annex.trace.golden_range import clipped_share, golden_range, step_of
from harness.annex.trace.node_error import OF_INT8, error_of
from harness.annex.trace.nodes_apart import read_results
from harness.annex.trace.partitions import partitions_of
from harness.annex.triage.net import Net
from harness.annex.triage.net_node import NetNode
from harness.annex.triage.net_tensors import NetTensors
from harness.annex.triage.published_model import attribute_text
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.record import Record
from harness.core.records.trace import GoldenRange, TracedNode, TraceError
from harness.core.values.value import Tensor, Value


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What the trials of a trace gave.

    Attributes:
        made: Number of a node -> the rows of its results on golden inputs.
        whole: Tensor -> its row with inputs as the provider made them.
        disturbed: Tensors that cannot be watched without a change of what is computed.
        problems: Number of a node -> why it has no row in ``made``.
        unseen: Tensor -> why it has none in ``whole``.
    """

    made: Mapping[int, Sequence[OutputMetrics]]
    whole: Mapping[str, OutputMetrics]
    disturbed: Collection[str]
    problems: Mapping[int, str]
    unseen: Mapping[str, str]


class NodeRows(msgspec.Struct, kw_only=True, eq=False, dict=True):
    """Makes the rows of the nodes of one target, in the model's order.

    Attributes:
        known: Golden tensors.
        delivers: The precision whose noise errors are told in.
        own: The record of the model as it is.
    """

    net: Net
    known: NetTensors
    delivers: str
    target: str
    own: Record
    depths: dict[int, int] = {}
    errors: dict[str, TraceError] = {}

    @functools.cached_property
    def makers(self) -> dict[str, int]:
        """Return the number of the node that makes each tensor."""
        return self.net.makers()

    @functools.cached_property
    def computed(self) -> tuple[int, ...]:
        """Return the numbers of the nodes that depend on an input."""
        constants = self.known.constants
        return tuple(n for n, node in enumerate(self.net.nodes) if not set(node.made) <= constants)

    @functools.cached_property
    def partitions(self) -> dict[int, int]:
        """Return the partition of each node, as far as it is known."""
        return partitions_of(self.net, self.computed, self.own.placement)

    def end(self) -> TraceError | None:
        """Return the error of the model's own outputs; None if it has none."""
        return self.error(self.own.outputs)

    def error(self, rows: Sequence[OutputMetrics]) -> TraceError | None:
        """Return the error of some tensors together; None if there are none."""
        return error_of(rows, self.delivers, self._steps(row.name for row in rows)) if rows else None

    def of(self, numbers: Sequence[int], found: Measured) -> Iterator[TracedNode]:
        """Yield some nodes; those whose results they read came before."""
        wanted = [name for number in numbers for name in read_results(self.net, self.net.nodes[number])]
        self.known.values(wanted)  # all at once, so that the model runs once for them
        for number in numbers:
            yield self._row(number, found)

    def _row(self, number: int, found: Measured) -> TracedNode:
        net, node = self.net, self.net.nodes[number]
        names = read_results(net, node)
        sources = sorted(
            {self.makers[name] for name in node.reads if name in self.makers} & self.depths.keys()
        )
        self.depths[number] = 1 + max((self.depths[one] for one in sources), default=-1)
        read = [self.errors[name].noise for name in node.reads if name in self.errors]
        rows = [found.whole[name] for name in names if name in found.whole]
        steps = self._steps(names)
        self.errors |= {row.name: error_of([row], self.delivers, steps) for row in rows}
        values = self.known.values([*names, *(node.reads if node.op_type == "QuantizeLinear" else ())])
        first = values.get(names[0]) if names else None
        made = found.made.get(number)
        return TracedNode(
            target=self.target,
            number=number,
            depth=self.depths[number],
            node=node.name,
            op_type=node.op_type,
            attributes="; ".join(f"{one.name}={attribute_text(one)}" for one in node.proto().attribute),
            inputs=tuple(net.nodes[one].name for one in sources),
            dtype=first.dtype if isinstance(first, Tensor) else "",
            shape=first.array.shape if isinstance(first, Tensor) else (),
            partition=self.partitions.get(number),
            placed=_placed(node, self.own),
            inherited=max((noise for noise in read if noise is not None), default=None),
            whole=error_of(rows, self.delivers, steps) if rows else None,
            made=error_of(made, self.delivers, steps) if made else None,
            range=self._range(node, names, values),
            disturbed=not set(found.disturbed).isdisjoint(names),
            problem=found.problems.get(number, "")
            or next((found.unseen[name] for name in names if name in found.unseen and not rows), ""),
        )

    def _range(self, node: NetNode, names: Sequence[str], values: Mapping[str, Value]) -> GoldenRange | None:
        limits = golden_range((values.get(name) for name in names), self.delivers)
        clipped = clipped_share(self.net, node, values)
        return msgspec.structs.replace(limits or _NO_RANGE, clipped=clipped) if clipped else limits

    def _steps(self, names: Iterable[str]) -> dict[str, float]:
        """Return the relative errors that int8 gives tensors: their own steps, and those of operands."""
        if self.delivers != OF_INT8:
            return {}
        found: dict[str, float] = {}
        for name in names:
            read = self.net.nodes[self.makers[name]].reads if name in self.makers else frozenset[str]()
            values = self.known.values([name, *read])
            operands = max((step_of(values.get(one)) for one in read), default=0.0)
            found[name] = math.hypot(step_of(values.get(name)), operands)
        return found


_NO_RANGE = GoldenRange(low=0.0, high=0.0)


def _placed(node: NetNode, own: Record) -> Literal["ep", "cpu", "unknown"]:
    placement, operator = own.placement, node.op_type.rpartition(".")[2]
    if placement is None or placement.is_unknown:
        return "unknown"
    on_ep, on_cpu = placement.ep_ops.get(operator, 0), placement.cpu_ops.get(operator, 0)
    if placement.ep_nodes and not placement.cpu_nodes:
        return "ep"
    return "unknown" if bool(on_ep) == bool(on_cpu) else "ep" if on_ep else "cpu"
