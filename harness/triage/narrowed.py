"""What is left of a location in the smallest model."""

import msgspec

from harness.core.fault import Location
from harness.triage.net import load
from harness.triage.subject import Subject


def narrowed(location: Location, smallest: Subject) -> Location:
    """Return a location with those of its nodes that the smallest model still has."""
    left = set(origins_of(smallest).values())
    kept = [index for index, name in enumerate(location.nodes) if name in left]
    if not kept or len(kept) == len(location.nodes):
        return location
    names = tuple(location.nodes[index] for index in kept)
    return msgspec.structs.replace(
        location,
        nodes=names,
        op_types=tuple(location.op_types[index] for index in kept),
        exact=len(kept) == 1,
        fused=names if location.fused and len(kept) > 1 else (),
    )


def origins_of(subject: Subject) -> dict[str, str]:
    """Return the name of each node -> its name in the model that the reduction began with."""
    return {node.name: subject.origins.get(node.name, node.name) for node in load(subject).nodes}
