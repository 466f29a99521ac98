"""The signature of a failure: what another trial must show to be the same failure."""

import re
from collections.abc import Collection

from harness.annex.triage.subject import Subject
from harness.core.comparison.policy import Policy
from harness.core.findings.cause import plain_cause
from harness.core.records.fault import Signature
from harness.core.records.record import Record
from harness.core.records.verdict import WRONG_NUMBERS, Verdict
from harness.core.verdicts.decide import decide
from harness.core.verdicts.judging import WRONG_VALUES
from harness.core.verdicts.run_rules import FOR_OTHER_INPUTS
from harness.corpus.model.nodes import all_nodes

AT_FIRST_RUN, AT_SECOND_RUN, AT_OTHER_INPUTS = "first run", "second run", "other inputs"

VALUE_VERDICTS = frozenset({*WRONG_NUMBERS, Verdict.NAN_MISMATCH, Verdict.NONDETERMINISTIC})
"""Verdicts about values, which depend on a policy."""

_OPERATOR = re.compile(r"(?:OpType:|\) Op \(|while running |implementation for )([A-Za-z_]\w*)")


def signature_of(record: Record, policy: Policy, names: Collection[str]) -> Signature:
    """Return the signature of a record under a policy.

    ``names`` are those of the model's nodes and tensors; in a message each of them counts as one word.
    """
    decision = decide(record, policy)
    verdict = decision.verdict
    if verdict in VALUE_VERDICTS or (verdict in WRONG_VALUES and _is_of_other_inputs(decision.reason)):
        return Signature(verdict=verdict, message=_run_of(verdict, decision.reason))
    ended = record.ended
    message = "" if ended is None or verdict in {Verdict.CRASH, Verdict.HANG} else ended.message
    return Signature(
        verdict=verdict, phase=record.phase, cause=record.cause, message=plain_cause(message, names)
    )


def names_of(subject: Subject) -> frozenset[str]:
    """Return the names that a message about a model may quote, including those in bodies and functions."""
    model = subject.proto()
    found: set[str] = {one.name for one in (*model.graph.input, *model.graph.initializer)}
    every = (*model.graph.node, *(node for function in model.functions for node in function.node))
    for node in all_nodes(every):
        found.update((node.name, *node.input, *node.output))
    return frozenset(found - {""})


def named_operator(message: str) -> str:
    """Return the operator that an error of onnxruntime names; the innermost of nested ones.

    It is empty if the error names none; a graph that a provider compiled does not count.
    """
    named = [name for name in _OPERATOR.findall(message) if "ExecutionProvider" not in name]
    return named[-1] if named else ""


def _run_of(verdict: Verdict, reason: str) -> str:
    if verdict is Verdict.NONDETERMINISTIC:
        return AT_SECOND_RUN
    return AT_OTHER_INPUTS if _is_of_other_inputs(reason) else AT_FIRST_RUN


def _is_of_other_inputs(reason: str) -> bool:
    return reason.startswith(FOR_OTHER_INPUTS)
