"""What is left of a location in the smallest model."""

import msgspec

from harness.core.fault import Location
from harness.triage.net import load
from harness.triage.subject import Subject


def narrowed(location: Location, smallest: Subject) -> Location:
    """Return a location with those of its nodes that the smallest model still has."""
    left = set(origins_of(smallest).values())
    nodes, op_types = _left(location.nodes, location.op_types, left)
    if not nodes:
        return location
    fused, fused_op_types = _left(location.fused, location.fused_op_types, left)
    together = len(fused) > 1
    return msgspec.structs.replace(
        location,
        nodes=nodes,
        op_types=op_types,
        exact=len(nodes) == 1,
        fused=fused if together else (),
        fused_op_types=fused_op_types if together else (),
    )


def _left(
    names: tuple[str, ...], op_types: tuple[str, ...], left: set[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    pairs = [pair for pair in zip(names, op_types, strict=True) if pair[0] in left]
    return tuple(name for name, _ in pairs), tuple(op_type for _, op_type in pairs)


def origins_of(subject: Subject) -> dict[str, str]:
    """Return the name of each node -> its name in the model that the reduction began with."""
    return {node.name: subject.origins.get(node.name, node.name) for node in load(subject).nodes}
