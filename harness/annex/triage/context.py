"""What transformations share: settings, nodes that must stay, and known facts about tensors."""

from collections.abc import Iterable

from harness.annex.triage.net import Net
from harness.annex.triage.net_node import NetNode, node_name
from harness.annex.triage.net_tensors import NetTensors
from harness.annex.triage.reduction_settings import ReductionSettings
from harness.corpus.model.nodes import all_nodes


class Context:
    """One for each reduction, with the net to begin with."""

    def __init__(self, net: Net, settings: ReductionSettings) -> None:
        self.settings = settings
        self._known: tuple[Net, NetTensors] | None = None
        keep = settings.keep
        self.kept = frozenset(name for name in origins(net) if keep(name)) if keep else frozenset[str]()

    def known(self, net: Net) -> NetTensors:
        """Return the known facts about the tensors of a net."""
        home = net.home or net
        if self._known is None or self._known[0] is not home:
            self._known = (home, NetTensors(home, self.settings.values))
        return self._known[1]

    def stays(self, net: Net, names: Iterable[str]) -> bool:
        """Whether one of these nodes must stay."""
        return any(net.origins.get(name, name) in self.kept for name in names)

    def must_stay(self, net: Net, node: NetNode) -> bool:
        """Whether a node or one in its bodies must stay."""
        return bool(self.kept) and self.stays(net, node.names)

    def is_complete(self, net: Net) -> bool:
        """Whether a net has every node that must stay."""
        return not self.kept or self.kept <= origins(net)


def origins(net: Net) -> set[str]:
    """Return the original names of a net's nodes, including those in bodies and functions."""
    names = set().union(*(node.names for node in net.nodes))
    for function in net.functions:
        names.update(node_name(node) for node in all_nodes(function.node))
    return {net.origins.get(name, name) for name in names}
