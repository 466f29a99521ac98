"""Smaller dimensions: of inputs and initializers together, as far as the operators' shapes allow."""

import itertools
from collections.abc import Hashable, Iterator

from harness.annex.triage.context import Context
from harness.annex.triage.net import Net
from harness.annex.triage.net_resize import Attribute, Axis, Element, Spot, declared, resize_net
from harness.annex.triage.search import NetCandidate, Search, descend
from harness.annex.triage.transform.values import STRUCTURE
from harness.core.values.value import Tensor

MOST_TOGETHER = 8
"""Number of axes of one size up to which each pair of them is also tried."""

SpotSizes = dict[Spot, int]


def smaller_dimensions(net: Net, context: Context) -> Search:  # noqa: ARG001 - all are called alike
    """Make axes of one size shorter together, first all of them, then pairs and single ones.

    Equally large integers are changed with them at first: elements of small initializers, which may be
    shapes, and attributes. So do multiples. The shapes of all other tensors are inferred again; a
    contradiction excludes a candidate.
    """
    yield from descend(net, _alternatives)


def _alternatives(net: Net) -> Iterator[tuple[Hashable, NetCandidate]]:
    present = _spots(net)
    sizes = sorted(
        {size for spot, size in present.items() if not isinstance(spot, Attribute) and size > 1}, reverse=True
    )
    for size in sizes:
        for group in _groups(present, size):
            # Most groups contradict the shapes at any size; groups that do so at these sizes are left out.
            probes = {1, 2, 1 << (size - 1).bit_length() - 1, size - 1}
            if all(declared(net, _scaled(group, size, probe)) is None for probe in probes if probe < size):
                continue
            for target in _targets(size):
                yield (frozenset(group), target), resize_net(net, _scaled(group, size, target))


def _scaled(group: SpotSizes, size: int, target: int) -> SpotSizes:
    return {spot: found // size * target for spot, found in group.items()}


def _targets(size: int) -> list[int]:
    """Return sizes to try: 1, 2, 4 and so on, to find the order of magnitude in few trials.

    Then just below.
    """
    powers = [1 << exponent for exponent in range((size - 1).bit_length())]
    return list(dict.fromkeys([*powers, size * 3 // 4, size - 1]))


def _groups(present: SpotSizes, size: int) -> list[SpotSizes]:
    """Return groups that may become smaller together, largest groups first."""
    equal = {spot: found for spot, found in present.items() if found == size}
    axes: SpotSizes = {spot: found for spot, found in equal.items() if isinstance(spot, Axis)}
    multiples = {spot: found for spot, found in present.items() if found and found % size == 0}
    groups: list[SpotSizes] = [
        equal,
        {spot: found for spot, found in equal.items() if not isinstance(spot, Attribute)},
        axes,
        multiples,
        {spot: found for spot, found in multiples.items() if isinstance(spot, Axis)},
    ]
    if len(axes) <= MOST_TOGETHER:
        groups += [dict(pair) for pair in itertools.combinations(axes.items(), 2)]
    groups += [{spot: found} for spot, found in axes.items()]
    return list({frozenset(group): group for group in groups}.values())


def _spots(net: Net) -> SpotSizes:
    """Return everything that may be a size, with its size."""
    found: SpotSizes = {}
    for name, value in net.fed.items():
        if isinstance(value, Tensor):
            found |= {Axis(name, axis): size for axis, size in enumerate(value.array.shape)}
            found |= _elements(name, value)
    for weight in net.weights.values():
        if not weight.dtype:
            continue
        held = _elements(weight.name, weight.value(net.folder)) if weight.elements <= STRUCTURE else {}
        # The length of a shape or of axes is a rank, not a size.
        if not held or len(weight.shape) > 1:
            found |= {Axis(weight.name, axis): size for axis, size in enumerate(weight.shape)}
        found |= held
    for index, node in enumerate(net.nodes):
        for attribute in node.proto().attribute:
            if attribute.type == attribute.INT and attribute.i > 1:
                found[Attribute(index, attribute.name)] = attribute.i
    return found


def _elements(name: str, value: Tensor) -> SpotSizes:
    if value.dtype not in {"int32", "int64"} or value.array.size > STRUCTURE:
        return {}
    numbers = value.array.reshape(-1).tolist()
    return {Element(name, index): number for index, number in enumerate(numbers) if number > 1}
