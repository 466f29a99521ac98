"""Locates a failure: the smallest part of a model that fails when it is fed with golden tensors.

The nodes of a model in topological order are halved. Each half gets the tensors that it reads from the CPU
EP, so an error of an earlier node cannot reach it. The half that fails is halved again.

If both halves are healthy and the whole is not, the failure needs nodes on both sides of the cut: an EP
compiles them together. Then the part shrinks from its ends, and after that node by node. Among the remaining
nodes, one may stand out: the one whose own results are wrong.

A wrong value may become NaN or another shape on its way to an output. The node that made it is guilty,
although alone it fails in another way than the cell. The smallest part that fails like the cell is then
reduced.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from harness.annex.triage.blame import blamed
from harness.annex.triage.cut import cut, needed
from harness.annex.triage.failure_check import FailureCheck, Match, failing_outputs
from harness.annex.triage.net import Net, load
from harness.annex.triage.net_tensors import NetTensors
from harness.annex.triage.reduction_settings import ComputeTensors
from harness.annex.triage.subject import Subject
from harness.annex.triage.time_budget import TimeBudget
from harness.core.records.fault import Location

MOST_SINGLE = 24
"""Largest number of trials in which single nodes are left out of a part that fails only as a whole."""

NodeNumbers = tuple[int, ...]


class NetPart(NamedTuple):
    """Some nodes, tried alone; without a match if their golden tensors are unknown."""

    numbers: NodeNumbers
    subject: Subject | None
    match: Match | None

    @property
    def fails(self) -> bool:
        """Whether the part fails as the cell does."""
        return self.match is not None and self.match.fails

    @property
    def by_noise(self) -> bool:
        """Whether it fails by limits of noise."""
        return self.match is not None and self.match.by_noise

    @property
    def wrong(self) -> bool:
        """Return whether it is wrong in any way by limits of noise."""
        return self.match is not None and self.match.wrong

    @property
    def error(self) -> float:
        """Its error as a multiple of its noise."""
        return self.match.error if self.match is not None else 0.0


class Located(NamedTuple):
    """The place of a failure, and the smallest part that has these nodes and fails like the cell."""

    location: Location
    part: NetPart


class Locator:
    """Finds the part of a model that fails.

    ``budget`` ends the search early; the nodes that remain then are a set that contains the failure.
    """

    def __init__(
        self,
        net: Net,
        check: FailureCheck,
        values: ComputeTensors,
        progress: Callable[[str], None],
        budget: TimeBudget,
    ) -> None:
        self._net = net
        self._check = check
        self._known = NetTensors(net, values)
        self._progress = progress
        self._budget = budget
        self._shown: NetPart | None = None

    def locate(self, whole: Match) -> Located:
        """Return the place of the failure; ``whole`` is the result of the whole model."""
        everything = NetPart(tuple(range(len(self._net.nodes))), self._net.subject(), whole)
        part = self._shown = self._restricted(everything)
        together = False
        while len(part.numbers) > 1 and not self._budget.spent:
            self._progress(f"locate: {len(part.numbers)} nodes hold the failure")
            half = self._half(part.numbers)
            if half is None:
                part, together = self._fused(part), True
                break
            part = self._taken(half)
        unfinished = len(part.numbers) > 1 and self._budget.spent
        return Located(self._location(part, together=together, unfinished=unfinished), self._shown)

    def _restricted(self, everything: NetPart) -> NetPart:
        """Return the nodes that the failing outputs depend on."""
        whole, of_outputs = everything.match, self._check.of_outputs
        failing = failing_outputs(whole.seen.record, self._check.policy) if whole and of_outputs else ()
        numbers = tuple(sorted(needed(self._net, failing))) if failing else everything.numbers
        if len(numbers) < len(everything.numbers):
            (part,) = self._try(numbers)
            if part.fails:
                return part
        return everything

    def _half(self, numbers: NodeNumbers) -> NetPart | None:
        """Return the half that fails; the earlier one if both do, None if neither does."""
        middle = len(numbers) // 2
        halves = numbers[:middle], numbers[middle:]
        first, second = self._try(*halves)
        if self._check.is_flaky and not (self._holds(first) or self._holds(second)):
            # Before a cut is blamed: a half alone may fail more rarely than the whole.
            first, second = self._try(*halves, check=self._check.surer())
        for half in (first, second):
            if half.fails:
                return half
        # The cell's own tolerance may pass a part whose error grows later on the way to an output.
        if first.by_noise or second.by_noise:
            return max(first, second, key=lambda half: (half.by_noise, half.error))
        return next((half for half in (first, second) if half.wrong), None)

    def _fused(self, part: NetPart) -> NetPart:
        """Shrink a part that only fails as a whole."""
        part = self._shrunk(part, at_start=True)
        part = self._shrunk(part, at_start=False)
        for number in part.numbers[1:-1][:MOST_SINGLE]:
            if self._budget.spent:
                break
            (found,) = self._try(tuple(one for one in part.numbers if one != number))
            if self._holds(found):
                part = self._taken(found)
        return part

    def _shrunk(self, part: NetPart, *, at_start: bool) -> NetPart:
        """Leave out as many nodes as possible at one end, found by bisection."""
        numbers = part.numbers
        least, most = 0, len(numbers) - 1
        while least < most and not self._budget.spent:
            count = (least + most + 1) // 2
            (found,) = self._try(numbers[count:] if at_start else numbers[: len(numbers) - count])
            if self._holds(found):
                least, part = count, self._taken(found)
            else:
                most = count - 1
        return part

    def _taken(self, part: NetPart) -> NetPart:
        """Continue with a part, which is reduced if it fails like the cell."""
        if part.fails or part.by_noise:
            self._shown = part
        return part

    def _holds(self, part: NetPart) -> bool:
        return part.fails or part.by_noise or part.wrong

    def _location(self, part: NetPart, *, together: bool, unfinished: bool) -> Location:
        nodes = [self._net.nodes[number] for number in part.numbers]
        if unfinished:
            return Location(
                nodes=tuple(node.name for node in nodes),
                op_types=tuple(node.op_type for node in nodes),
                exact=False,
                unfinished=True,
                error_ratio=part.error or None,
            )
        fused = nodes if together and len(nodes) > 1 else []
        if fused and self._check.of_first_values:
            one = blamed(self._net, part.numbers, self._check, self._known)
            if one is not None:
                nodes = [self._net.nodes[one.number]]
                fused = [] if one.alone else fused
        last = part.numbers[-1]
        before = tuple(sorted(needed(self._net, self._net.nodes[last].made)))
        after = tuple(range(last + 1, len(self._net.nodes)))
        wanted = [numbers for numbers in (before, after) if numbers and not self._budget.spent]
        results = dict(zip(wanted, self._try(*wanted), strict=True))
        names = tuple(node.name for node in nodes)
        return Location(
            nodes=names,
            op_types=tuple(node.op_type for node in nodes),
            exact=len(nodes) == 1,
            alone=self._holds(part) and len(nodes) == len(part.numbers),
            cumulative=self._holds(results[before]) if before in results else None,
            onwards=self._holds(results[after]) if after in results else None,
            fused=tuple(node.name for node in fused),
            fused_op_types=tuple(node.op_type for node in fused),
            error_ratio=part.error or None,
        )

    def _try(self, *parts: NodeNumbers, check: FailureCheck | None = None) -> tuple[NetPart, ...]:
        """Try parts side by side."""
        nets = [cut(self._net, numbers, self._known) for numbers in parts]
        subjects: list[Subject | None] = [None if net is None else net.subject() for net in nets]
        known = [subject for subject in subjects if subject is not None]
        matches = iter((check or self._check).matches(known))
        return tuple(
            NetPart(numbers, subject, next(matches) if subject is not None else None)
            for numbers, subject in zip(parts, subjects, strict=True)
        )


def narrowed(location: Location, smallest: Subject) -> Location:
    """Return a location with those of its nodes that are in the smallest model."""
    left = set(original_names(smallest).values())
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
        unfinished=location.unfinished and len(nodes) > 1,
        fused=fused if together else (),
        fused_op_types=fused_op_types if together else (),
    )


def _left(
    names: tuple[str, ...], op_types: tuple[str, ...], left: set[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    pairs = [pair for pair in zip(names, op_types, strict=True) if pair[0] in left]
    return tuple(name for name, _ in pairs), tuple(op_type for _, op_type in pairs)


def original_names(subject: Subject) -> dict[str, str]:
    """Return the name of each node -> its name in the model that the reduction began with."""
    return {node.name: subject.origins.get(node.name, node.name) for node in load(subject).nodes}
