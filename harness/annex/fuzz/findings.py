"""Failing cells in groups, and what a group already explains."""

from collections import Counter

import msgspec

from harness.annex.fuzz.coverage import choice_in, operator_in
from harness.annex.made.fuzz_suite import is_graph, model_number
from harness.annex.triage.failure_groups import COMPARED
from harness.annex.triage.signature import named_operator
from harness.core.findings.cause import plain_cause
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict

KEPT_CELLS = 12
"""Number of kept cells of one group: triage takes the smallest, and a reader sees the pattern."""

_NAMED = 4
"""Number of a graph's operators that identify its group."""

EXPLAINS = 3
"""Number of a target's failures with one choice of operator, opset and types after which no more are made."""


class FindingSignature(msgspec.Struct, frozen=True, kw_only=True):
    """The common part of failures.

    Attributes:
        operator: The operator of the form. For a graph: the operator that the error names, or else one whose
            forms failed before, or else the first few of its operators by name.
        message: Message of an error, without names, numbers and paths; empty for wrong values.
    """

    target: str
    operator: str
    verdict: Verdict
    message: str = ""


def signature(record: Record) -> FindingSignature:
    """Return the signature of a failing cell."""
    message = "" if record.verdict in COMPARED or record.ended is None else record.ended.message
    return FindingSignature(
        target=record.target,
        operator=operator_in(record.model),
        verdict=record.verdict,
        message=plain_cause(message),
    )


class Findings:
    """Counts failing cells by signature."""

    def __init__(self) -> None:
        self.groups: Counter[FindingSignature] = Counter()
        self._faulty: set[tuple[str, str]] = set()
        self._failed: Counter[tuple[str, str]] = Counter()

    def add(self, record: Record) -> bool:
        """Count a cell, and return whether it is kept."""
        if record.family is not Family.FAILED:
            return False
        found = self._located(signature(record), record)
        self.groups[found] += 1
        self._failed[record.target, choice_in(record.model)] += 1
        return self.groups[found] <= KEPT_CELLS

    def _located(self, found: FindingSignature, record: Record) -> FindingSignature:
        """Return the signature of a cell; for a graph it blames an operator that is known to fail."""
        if not is_graph(model_number(record.model)):
            self._faulty.add((record.target, found.operator))
            return found
        if found.message and record.ended and (named := named_operator(record.ended.message)):
            return msgspec.structs.replace(found, operator=named)
        operators = sorted(record.content.ops) if record.content is not None else []
        known = [one for one in operators if (record.target, one) in self._faulty]
        blamed = " ".join((known or operators)[: 1 if known else _NAMED])
        return msgspec.structs.replace(found, operator=blamed or found.operator)

    def explains(self, target: str, choice: str) -> bool:
        """Return whether more models of a choice would show only known failures."""
        return self._failed[target, choice] >= EXPLAINS
