"""Search for what honest runs do not show; each finding requires a person, none proves anything."""

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from harness.annex.conformance.level import case_key, case_label
from harness.annex.conformance.profiles.profile import Profile
from harness.annex.conformance.submission import STATEMENT, SUBMITTED_RECORDS, Statement
from harness.annex.conformance.verify.finding import Finding, finding
from harness.annex.conformance.verify.placement_check import has_too_many
from harness.core.records.record import Record
from harness.core.text.visible_text import visible
from harness.core.verdicts.judgement import is_rounded

PHASES = frozenset({"create", "first_run", "teardown"})

FEWEST_ALIKE = 3
"""Records with the same three times, to a ten-thousandth of a millisecond, from which on they look copied."""

FEWEST_EXACT = 200
"""Number of elements in outputs of rounding operators from which on it is odd that none differs from the
float64 answer.

Some single element may be exact by chance; hundreds are not, unless the provider computes in float64.
"""

_ROUNDING = re.compile(
    r"(?:com\.microsoft\.)?(?:Conv|ConvTranspose|Gemm|MatMul|FusedMatMul|Softmax|LogSoftmax|Exp|Log|Tanh|Sigmoid|Erf"
    r"|Gelu|LayerNormalization|BatchNormalization|InstanceNormalization|Attention|ReduceMean|ReduceSum|Sin|Cos)"
)


_QUANTIZING = re.compile(r"(?:com\.microsoft\.)?(?:\w*Quantize\w*|QLinear\w+|QGemm)")
"""Operators beside which most values lie on a grid, so that nearly all right answers are exact."""


def plausibility_findings(
    profile: Profile, statement: Statement, records: Sequence[Record]
) -> Iterator[Finding]:
    """Yield oddities in the records of one submission."""
    yield from _timings(records)
    yield from _processes(records)
    yield from _nodes(profile, records)
    yield from _exact(profile, records)
    yield from _hidden(statement)


def times_of(record: Record) -> tuple[float, ...]:
    """Return the measured times of a record; empty if one is missing."""
    times = record.timings_ms
    return tuple(times[phase] for phase in sorted(PHASES)) if set(times) == PHASES else ()


def _timings(records: Sequence[Record]) -> Iterator[Finding]:
    ran = [record for record in records if record.ended is None]
    for record in ran:
        phases = record.timings_ms
        if set(phases) != PHASES or min(phases.values()) <= 0:
            yield finding("timings", record.cell, f"expected {', '.join(sorted(PHASES))}, each above 0 ms")
        elif record.process is not None and record.process.took_ms < sum(phases.values()):
            yield finding("timings", record.cell, "its phases take longer than the whole cell")
        if not record.started:
            yield finding("timings", record.cell, "it ran, and has no start")
    counts = Counter(times_of(record) for record in ran if times_of(record))
    for equal, count in counts.items():
        if count >= FEWEST_ALIKE:
            yield finding("timings", SUBMITTED_RECORDS, f"{count} records have exactly the times {equal}")


def _processes(records: Sequence[Record]) -> Iterator[Finding]:
    """Check that sessions of one process start in their order.

    A system may reuse a pid; its sessions then start from 1 again.
    """
    of_process: dict[tuple[str, int], list[Record]] = defaultdict(list)
    for record in records:
        if record.process is not None and record.started:
            of_process[record.place, record.process.pid].append(record)
    for (_, pid), cells in of_process.items():
        ordered = sorted(cells, key=lambda one: (one.started, one.process.session if one.process else 0))
        sessions = [one.process.session for one in ordered if one.process]
        back = sum(one >= other for one, other in itertools.pairwise(sessions))
        if back > max(1, len(sessions) // 10):
            yield finding(
                "process", SUBMITTED_RECORDS, f"{back} cells of process {pid} start before an earlier session"
            )
        if min(pid, *sessions) < 1:
            yield finding("process", SUBMITTED_RECORDS, f"process {pid} has a session below 1")


def _nodes(profile: Profile, records: Sequence[Record]) -> Iterator[Finding]:
    cases = {case.key: case for case in profile.cases}
    for record in records:
        case = cases.get(case_key(record))
        if case is None or record.placement is None:
            continue
        if has_too_many(record.placement, case):
            placed = record.placement.ep_nodes + record.placement.cpu_nodes
            yield finding("too-many-nodes", case_label(case), f"{placed} of {sum(case.ops.values())} nodes")


def _exact(profile: Profile, records: Sequence[Record]) -> Iterator[Finding]:
    rounding = {
        case.key
        for case in profile.cases
        if any(_ROUNDING.fullmatch(op) for op in case.ops)
        and not any(_QUANTIZING.fullmatch(op) for op in case.ops)
    }
    rows = [
        row
        for record in records
        if record.ended is None and case_key(record) in rounding
        for row in record.outputs
        if is_rounded(row) and row.max_abs is not None
    ]
    elements = sum(row.elements for row in rows)
    if elements >= FEWEST_EXACT and all(row.max_abs == 0 for row in rows):
        what = f"none of {elements:,} elements of rounding operators differs from the float64 answer"
        yield finding("too-exact", SUBMITTED_RECORDS, what)


def _hidden(statement: Statement) -> Iterator[Finding]:
    texts = msgspec.json.encode(statement).decode()
    for text in _texts(msgspec.json.decode(texts)):
        if visible(text) != text or "\n" in text:
            yield finding("hidden-text", STATEMENT, text)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, below in value.items():
            yield key
            yield from _texts(below)
    elif isinstance(value, list):
        for below in value:
            yield from _texts(below)
