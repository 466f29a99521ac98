"""The study of one model on one target: sessions in which inner tensors are outputs, and parts of the model.

Three kinds of trials give all figures, and each is judged like a cell of a run:

* The model with some of its inner tensors as further outputs gives what the provider made of its own inputs.
* Nodes side by side on golden inputs give what each of them makes alone.
* A partition on golden inputs gives what its nodes make as the EP compiles them.

Watching may change what an EP fuses, so the model's own outputs are compared with those of the model as it
is. If all inner tensors at once change them, those between partitions are watched first, which are there
anyhow, and the others in slices, which leave the other fusions.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from harness.annex.trace.keep_float32 import keep_advice
from harness.annex.trace.node_error import OF_INT8, delivered_by_most
from harness.annex.trace.node_rows import Measured, NodeRows
from harness.annex.trace.nodes_apart import nodes_apart, read_results
from harness.annex.trace.partition_rows import Compiled, border_of, compiled_partitions, members
from harness.annex.trace.partitions import partitions_of
from harness.annex.trace.segments import Segments
from harness.annex.trace.trace_finding import Traced, found_of
from harness.annex.triage.cut import needed
from harness.annex.triage.lab import CellAxes, Lab, Trial
from harness.annex.triage.net import Net, load
from harness.annex.triage.net_tensors import NetTensors
from harness.annex.triage.subject import Subject
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.precision import IN_MODEL
from harness.core.records.record import Record
from harness.core.records.trace import TogetherGuilty, TracedNode, TracedPartition, TracedTarget
from harness.core.records.verdict import Family
from harness.core.text.errors import one_line
from harness.core.values.value import value_bytes
from harness.core.verdicts.missing import Need
from harness.corpus.model.origins import RANDOM_OPERATORS

MOST_BYTES = 8 << 20
"""Bytes of the inner tensors of one trial: golden, result, noise and draws each have as many."""

_MOST_HELD = 64 << 20
"""Bytes of golden tensors that are held between trials; more are computed again."""

SLICES = 16
"""Slices in which the inner tensors are watched if as many as fit into a trial change what is computed."""

TRACE_NEEDS = frozenset({Need.NOISE, Need.WIDER})
"""Questions about a trial: those that give its error in multiples of the noise."""

TellPhase = Callable[[str], None]

_One = TypeVar("_One")


class TraceStudy:
    """Traces one model on one target of a lab."""

    def __init__(self, lab: Lab, subject: Subject, target: str, axes: CellAxes, progress: TellPhase) -> None:
        self.net: Net = load(subject)
        self._lab, self._subject, self._target, self._axes = lab, subject, target, axes
        self._progress = progress
        self._known = NetTensors(self.net, lab.values)
        self._sizes: dict[str, int] = {}
        self._is_int8 = IN_MODEL.get(dict(axes).get("precision", "")) == OF_INT8
        self._trials = 0
        self._unseen: dict[str, str] = {}
        constants = self._known.constants
        self._traced = [
            number
            for number, node in enumerate(self.net.nodes)
            if not set(node.made) <= constants and node.op_type not in RANDOM_OPERATORS
        ]

    def keep(self, result: TracedTarget, nodes: Sequence[TracedNode]) -> TracedTarget:
        """Return the result with the nodes that are to be kept in float32, if some restore the accuracy."""

        def attempt(subject: Subject, number: int) -> Record:
            return self._record(subject, number)

        found = keep_advice(self.net, nodes, result.delivers, attempt, self._progress)
        return msgspec.structs.replace(result, keep=found, sessions=self._trials)

    def run(self) -> tuple[TracedTarget, tuple[TracedNode, ...], tuple[TracedPartition, ...]]:
        """Return the result of the target, every node that depends on an input, and every known partition."""
        began = time.monotonic()
        own = self._record(self._subject)
        made: dict[int, list[OutputMetrics]] = {}
        problems: dict[int, str] = {}
        whole, disturbed = {row.name: row for row in own.outputs}, set[str]()
        if own.outputs and own.family is not Family.UNTESTED:
            made, problems = self._made()
            whole, disturbed = self._whole(own)
        delivers = (
            OF_INT8
            if self._is_int8
            else delivered_by_most((self.net.nodes[number].op_type, rows) for number, rows in made.items())
        )
        rows = NodeRows(net=self.net, known=self._known, delivers=delivers, target=self._name(), own=own)
        found = Measured(made=made, whole=whole, disturbed=disturbed, problems=problems, unseen=self._unseen)
        nodes = tuple(node for group in self._by_size(self._traced) for node in rows.of(group, found))
        segments = Segments(rows, self._record, self._progress)
        measured = bool(made or problems)
        compiled = tuple(compiled_partitions(rows, nodes, whole, segments)) if measured else ()
        partitions = tuple(one.row for one in compiled)
        traced = Traced(own=own, end=rows.end(), delivers=delivers, nodes=nodes, partitions=partitions)
        result = found_of(traced, self._together(traced, compiled, segments))
        placed = own.placement
        return (
            msgspec.structs.replace(
                result,
                target=self._name(),
                provider=own.provider,
                axes=dict(self._axes),
                onnxruntime=str(self._lab.fingerprints.get(self._target, {}).get("onnxruntime", "")),
                partitions=None if placed is None or placed.is_unknown else placed.partitions,
                sessions=self._trials,
                disturbed=sum(node.disturbed for node in nodes),
                seconds=round(time.monotonic() - began, 2),
            ),
            tuple(msgspec.structs.replace(node, guilty=node.node in result.guilty) for node in nodes),
            partitions,
        )

    # ---- what each node makes alone

    def _made(self) -> tuple[dict[int, list[OutputMetrics]], dict[int, str]]:
        """Return the rows of the results of each node on golden inputs, and why others have none."""
        found: dict[int, list[OutputMetrics]] = {}
        problems: dict[int, str] = {}
        for numbers in self._told("alone", self._by_size(self._traced)):
            self._make(numbers, found, problems)
            self._known.forget(_MOST_HELD)
        return found, problems

    def _make(
        self, numbers: Sequence[int], found: dict[int, list[OutputMetrics]], problems: dict[int, str]
    ) -> None:
        """Try nodes side by side; halve them where one of them spoils the trial of the others."""
        net = nodes_apart(self.net, numbers, self._known)
        record = None if net is None else self._record(net.subject())
        if record is not None and record.outputs:
            rows = {row.name: row for row in record.outputs}
            for number in numbers:
                names = read_results(self.net, self.net.nodes[number])
                found[number] = [rows[name] for name in names if name in rows]
        elif len(numbers) > 1:
            middle = len(numbers) // 2
            self._make(numbers[:middle], found, problems)
            self._make(numbers[middle:], found, problems)
        elif record is None:
            problems[numbers[0]] = "the CPU EP does not compute the tensors that it reads"
        else:
            problems[numbers[0]] = f"alone: {record.verdict}: {record.reason}"

    # ---- what the provider makes of its own inputs

    def _whole(self, own: Record) -> tuple[dict[str, OutputMetrics], set[str]]:
        """Return the rows of watched tensors, and those that cannot be watched without a change."""
        rows = {row.name: row for row in own.outputs}
        disturbed: set[str] = set()
        names = [name for number in self._traced for name in self._watchable(number) if name not in rows]
        left: list[list[str]] = []
        most = math.ceil(len(names) / SLICES)
        for part in self._told("watch", self._slices(names, len(names))):
            found = self._watch(own, part)
            if found is not None and found[1]:
                rows |= found[0]
            else:
                border = [name for name in part if name in self._between(own)]
                found = self._watch(own, border) if border else None
                seen = found[0] if found is not None and found[1] else {}
                rows |= seen
                left += self._slices([name for name in part if name not in seen], most)
        for part in self._told("watch in slices", left):
            found = self._watch(own, part)
            if found is None:
                continue
            rows |= found[0]
            if not found[1]:
                disturbed.update(part)
        return rows, disturbed

    def _watch(self, own: Record, names: Sequence[str]) -> tuple[dict[str, OutputMetrics], bool] | None:
        """Return the rows of some tensors, and whether the rest of the record is as without watching."""
        infos = {name: self._known.output(name) for name in names}
        infos = {name: info for name, info in infos.items() if info is not None}
        net = self.net.replace(
            outputs={**self.net.outputs, **infos},
            infos={name: info for name, info in self.net.infos.items() if name not in infos},
        )
        record = self._record(net.subject())
        rows = {row.name: row for row in record.outputs}
        if not rows:
            why = f"watched: {record.verdict}: {one_line(record.reason, 200)}"
            self._unseen.update(dict.fromkeys(names, why))
            return None
        same = all(_alike(row, rows.get(row.name)) for row in own.outputs)
        return {name: rows[name] for name in infos if name in rows}, same and _same_placement(own, record)

    def _between(self, own: Record) -> frozenset[str]:
        """Return the tensors that leave a partition."""
        parts = members(partitions_of(self.net, self._traced, own.placement))
        return frozenset(name for numbers in parts.values() for name in border_of(self.net, numbers)[1])

    def _watchable(self, number: int) -> Iterator[str]:
        types = self._known.types
        for name in read_results(self.net, self.net.nodes[number]):
            declared = types.get(name)
            if declared is None or declared.HasField("tensor_type"):
                yield name

    # ---- nodes that are wrong only together

    def _together(
        self, traced: Traced, compiled: Sequence[Compiled], segments: Segments
    ) -> TogetherGuilty | None:
        """Return the fewest nodes up to the first wrong one that are wrong together, if none is alone.

        They are a part of one partition where those are known, since an EP fuses nothing across its border.
        """
        if traced.guilty:
            return None
        first = traced.first_beyond
        home = next((one for one in compiled if first is not None and first.number in one.numbers), None)
        guilty = [one for one in compiled if one.row.guilty]
        if guilty and (first is None or home not in guilty):
            home, upto = guilty[0], guilty[0].wrong
        elif first is not None and (guilty or traced.end is None or traced.end.is_beyond):
            upto = self.net.nodes[first.number].made[0]
        else:
            return None
        inside = set(self._traced if home is None else home.numbers)
        found = segments.fewest(sorted(needed(self.net, [upto]) & inside))
        if found is None or home is None:
            return found
        is_all = guilty and len(found.nodes) == len(home.numbers)
        return None if is_all else msgspec.structs.replace(found, partition=home.row.number)

    # ---- trials

    def _record(self, subject: Subject, number: int = 0) -> Record:
        self._trials += 1
        trial = Trial(subject=subject, target=self._target, axes=self._axes, number=number)
        (seen,) = self._lab.run([trial])
        return seen.record

    def _name(self) -> str:
        axes = ",".join(f"{key}={value}" for key, value in self._axes)
        return f"{self._target}[{axes}]" if axes else self._target

    def _by_size(self, numbers: Sequence[int]) -> list[list[int]]:
        """Return nodes in groups whose results, and what they read, take ``MOST_BYTES`` at most."""
        groups: list[list[int]] = [[]]
        held = 0
        for number in numbers:
            node = self.net.nodes[number]
            size = self._nbytes([*read_results(self.net, node), *node.reads])
            if groups[-1] and held + size > MOST_BYTES:
                groups.append([])
                held = 0
            groups[-1].append(number)
            held += size
        return [group for group in groups if group]

    def _slices(self, names: Sequence[str], most: int) -> list[list[str]]:
        """Return tensors in slices of ``most`` and of ``MOST_BYTES`` at most, which follow each other."""
        slices: list[list[str]] = [[]]
        for name in names:
            full = len(slices[-1]) >= most or self._nbytes([*slices[-1], name]) > MOST_BYTES
            if slices[-1] and full:
                slices.append([])
            slices[-1].append(name)
        return [one for one in slices if one]

    def _nbytes(self, names: Sequence[str]) -> int:
        """Return the bytes of tensors; nothing for weights, which the model has anyhow."""
        missing = [name for name in names if name not in self._sizes and name not in self.net.weights]
        if missing:
            values = self._known.values(missing)
            self._sizes |= {name: value_bytes(values[name]) if name in values else 0 for name in missing}
        return sum(self._sizes.get(name, 0) for name in names)

    def _told(self, phase: str, parts: Sequence[_One]) -> Iterator[_One]:
        """Yield parts, and report how many are done and how long the rest takes."""
        began = time.monotonic()
        for done, part in enumerate(parts):
            rest = (time.monotonic() - began) / done * (len(parts) - done) if done else None
            left = "" if rest is None else f", some {rest:.0f} s left"
            self._progress(f"{phase}: {done + 1} of {len(parts)}{left}")
            yield part


def _alike(row: OutputMetrics, other: OutputMetrics | None) -> bool:
    """Whether two records have the same figures of an output; equal bits have."""
    return other is not None and (row.max_abs, row.rmse, row.cosine) == (
        other.max_abs,
        other.rmse,
        other.cosine,
    )


def _same_placement(own: Record, watched: Record) -> bool:
    one, other = own.placement, watched.placement
    if one is None or other is None or one.is_unknown:
        return True
    return (one.ep_ops, one.cpu_ops, one.partitions) == (other.ep_ops, other.cpu_ops, other.partitions)
