"""Nodes of a model as one model of their own, on golden inputs: what they make together.

Partitions, and nodes that are wrong only together, are tried in the same way: nothing inside is watched, so
that the EP may fuse it, and no error of another node reaches it.
"""

from collections.abc import Callable, Collection, Sequence

from harness.annex.trace.node_rows import NodeRows
from harness.annex.triage.cut import cut
from harness.annex.triage.subject import Subject
from harness.core.records.record import Record
from harness.core.records.trace import TogetherGuilty, TraceError
from harness.core.records.verdict import Family

_TOGETHER = 64
"""Largest number of nodes that are searched for together where each is right alone."""


class Segments:
    """Tries nodes of one model together on one target; ``attempt`` runs a model there."""

    def __init__(
        self, rows: NodeRows, attempt: Callable[[Subject], Record], progress: Callable[[str], None]
    ) -> None:
        self._rows, self._attempt, self._progress = rows, attempt, progress

    def record(self, numbers: Collection[int]) -> Record | None:
        """Return the record of some nodes; None if they cannot be cut out."""
        net = cut(self._rows.net, numbers, self._rows.known)
        return None if net is None else self._attempt(net.subject())

    def fewest(self, numbers: Sequence[int]) -> TogetherGuilty | None:
        """Return the fewest of the last nodes of a sequence that are wrong together, by doubling and halving.

        Return None if the last ``_TOGETHER`` of them are right.
        """
        last = self._rows.net.nodes[numbers[-1]].name if numbers else ""
        right, count = 1, 2
        wrong: TogetherGuilty | None = None
        while wrong is None and right < len(numbers) and count <= _TOGETHER:
            count = min(count, len(numbers))
            self._progress(f"together: {count} nodes up to {last}")
            wrong = self._wrong(numbers[-count:])
            if wrong is None:
                right, count = count, 2 * count
        while wrong is not None and count - right > 1:
            middle = (right + count) // 2
            fewer = self._wrong(numbers[-middle:])
            if fewer is None:
                right = middle
            else:
                count, wrong = middle, fewer
        return wrong

    def _wrong(self, numbers: Sequence[int]) -> TogetherGuilty | None:
        record = self.record(numbers)
        if record is None or record.family is Family.UNTESTED:
            return None
        error = self._rows.error(record.outputs)
        return None if error is None or not error.is_beyond else self._guilty(numbers, error)

    def _guilty(self, numbers: Sequence[int], error: TraceError) -> TogetherGuilty:
        nodes = [self._rows.net.nodes[number] for number in numbers]
        return TogetherGuilty(
            nodes=tuple(node.name for node in nodes),
            op_types=tuple(node.op_type for node in nodes),
            made=error,
        )
