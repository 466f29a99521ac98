"""Decide the verdict of a cell, from its facts and a policy: the only place where verdicts are made.

Pure, and the same for a run and for judging a finished run again: a record publishes the facts.
"""

from typing import Any

import msgspec

from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.comparison.policy_terms import policy_terms
from harness.core.records.facts import Facts, OptionEffect, facts_for_other_inputs, shared
from harness.core.records.generation_figures import without_speed
from harness.core.records.record import Decision, Record
from harness.core.records.verdict import Family, Verdict
from harness.core.text.errors import one_line
from harness.core.verdicts.adjudicate import failed_only
from harness.core.verdicts.judging import WRONG_VALUES, Judging, judging_of
from harness.core.verdicts.rules import RULES
from harness.core.verdicts.ruling import Ruling

_REASON_CHARS = 300
"""Largest length of a reason with its notes."""


def decide(facts: Facts, policy: Policy) -> Decision:
    """Decide one cell."""
    judging = judging_of(facts, policy)
    verdict, reason, cause = _first(judging)
    wrong = verdict in WRONG_VALUES or verdict is Verdict.REFERENCE_DISPUTED
    weighed = facts.reference_check if wrong or judging.resolution is not None else None
    adjudication = () if weighed is None else weighed.adjudication
    rows = tuple(one.row for one in judging.outputs)
    found: dict[str, Any] = {
        "verdict": verdict,
        "cause": cause if facts.ended is None else facts.cause,
        "reason": _with_effect(one_line("; ".join(filter(None, (reason, facts.teardown)))), facts.effect),
        "outputs": rows,
        "again": tuple(one.row for one in judging.again),
        "other": _other_rows(facts, policy),
        "adjudication": failed_only(adjudication, rows),
        "approximate": ""
        if wrong
        else "; ".join(one.approximate for one in judging.outputs if one.approximate),
        "unconfirmed": _unconfirmed(judging) if verdict in WRONG_VALUES else "",
        "policy": policy_terms(judging.policy) if facts.ended is None else {},
    }
    if verdict.family is not Family.PASSED:
        # The speed of a wrong answer, or of the CPU EP in place of the provider, is of no use.
        found |= {
            "latency": None,
            "node_times": None,
            "shape_times": (),
            "generation": without_speed(facts.generation),
        }
    return Decision(**shared(facts, Facts) | found)


def verdict_of(facts: Facts, policy: Policy) -> Verdict:
    """Return the verdict alone, at half the cost of ``decide``."""
    return _first(judging_of(facts, policy)).verdict


def judged_again(record: Record, policy: Policy) -> Record:
    """Return the record as a run under the policy would have written it."""
    decision = decide(record, policy)
    verdict = decision.verdict
    fields = shared(decision, Decision)
    if verdict is record.verdict:
        fields["reason"] = record.reason
    return msgspec.structs.replace(record, family=verdict.family, **fields)


def _first(judging: Judging) -> Ruling:
    for each in RULES:  # a loop: a generator would cost as much as the rules
        if (found := each(judging)) is not None:
            return found
    raise LookupError("the last rule applies to every cell")


def _other_rows(facts: Facts, policy: Policy) -> tuple[OutputMetrics, ...]:
    if facts.other_check is None:  # a record of an older version stays as it is
        return facts.other
    return tuple(one.row for one in judging_of(facts_for_other_inputs(facts), policy).outputs)


def _unconfirmed(judging: Judging) -> str:
    """Return why float64 does not confirm that values are wrong: for the first inputs, or the other ones."""
    facts = judging.facts
    if judging.fault is not None or not facts.other:
        return judging.unconfirmed
    return judging_of(facts_for_other_inputs(facts), judging.policy).unconfirmed


def _with_effect(reason: str, effect: OptionEffect | None) -> str:
    if effect is None or effect.seen:
        return reason
    options = one_line(", ".join(effect.options), 100)
    note = f"no effect seen: the outputs are bit-identical without {options}"
    room = _REASON_CHARS - len(note) - len("; ")  # a long reason must not push the note out
    return "; ".join(filter(None, (one_line(reason, room), note)))
