"""Check the fields that no figure decides: each is derived again, or cannot be in a submission."""

from collections.abc import Iterator

from harness.annex.conformance.verify.frozen_cases import FrozenCase
from harness.core.comparison.policy_terms import changed_terms
from harness.core.records.record import Record
from harness.core.records.scenario import GENERATE, PLAIN
from harness.core.records.verdict import Phase
from harness.plan.expectation import is_expected

_NOT_OF_A_PROFILE = ("approximate", "unconfirmed", "beyond", "own_precision", "finest", "remedy")
"""Facts from answers of a CPU provider, documents or generated inputs, which a profile does not have."""

_NO_ANSWER = ("own_cpu", "other_check")
"""Answers of the CPU EP, and facts about other inputs, which no run of a profile has."""

_NOT_OF_A_SUBMISSION = (
    "place",
    "elsewhere",
    "other_draws",
    "fixed",
    "latency",
    "node_times",
    "shape_times",
    "artifacts",
)
"""Fields of runs with places, generated inputs or measured times; folders of artifacts are left out."""

_AT_THE_END = (
    "golden",
    "golden_digest",
    "policy",
    "placement",
    "outputs",
    "again",
    "providers_changed",
)
"""Fields of a run that came to its end."""

_ASKED = frozenset({"noise"})
"""Questions that a profile lets a run ask, see ``harness.core.verdicts.missing.Need``."""

_UNTRIED = frozenset({"unavailable", "declared"})


def claim_faults(record: Record, frozen: FrozenCase) -> Iterator[tuple[str, str]]:
    """Yield what is wrong, as (name of the finding, description)."""
    yield from (("excuse", what) for what in (*_foreign(record), *_of_scenario(record), *_repeats(record)))
    if record.expected is not is_expected(None, record.verdict):
        yield "verdict", f"{record.verdict} is told as {'' if record.expected else 'not '}expected"
    yield from _early(record) if record.ended is not None else _whole(record, frozen)


def _foreign(record: Record) -> Iterator[str]:
    """Yield facts that no run of a profile finds out, and fields that no submission has."""
    for field in _NOT_OF_A_PROFILE:
        if value := getattr(record, field):
            yield f"{field} is {value}, which no record of a profile has"
    for field in _NO_ANSWER:
        if getattr(record, field) is not None:
            yield f"{field}, which no record of a profile has"
    for field in _NOT_OF_A_SUBMISSION:
        if getattr(record, field):
            yield f"{field}, which no record of a submission has"
    if others := sorted(set(record.answered) - _ASKED):
        yield f"answers were asked for that a profile does not need: {', '.join(others)}"


def _of_scenario(record: Record) -> Iterator[str]:
    scenario = record.axes.get("scenario", PLAIN)
    if record.generation is not None and scenario != GENERATE:
        yield f"generated text in the scenario {scenario}"
    if record.scenario and scenario == PLAIN:
        yield "observations of a scenario in a plain run"
    if record.attempt < 1 and (record.ended is None or record.ended.how not in _UNTRIED):
        yield f"attempt {record.attempt} of a cell that was tried"


def _early(record: Record) -> Iterator[tuple[str, str]]:
    for field in _AT_THE_END:
        if getattr(record, field):
            yield "excuse", f"{field} of a run that did not end"


def _whole(record: Record, frozen: FrozenCase) -> Iterator[tuple[str, str]]:
    """Yield what a run that came to its end cannot have, or must have."""
    if record.phase is not Phase.COMPARE or record.cause:
        yield "excuse", f"the phase {record.phase} or a cause of a run that came to its end"
    # Older versions did not write the next two, and a later one may have more settings.
    if record.golden_digest not in ("", frozen.golden):
        yield "outputs", f"the digest of the golden is {record.golden_digest}, not {frozen.golden}"
    right = {name: value for name, value in frozen.terms.items() if name in record.policy}
    if changes := changed_terms(right, {name: record.policy[name] for name in right}):
        yield "verdict", f"judged by another policy than that of the profile: {'; '.join(changes)}"


def _repeats(record: Record) -> Iterator[str]:
    repeats = record.repeats
    if repeats is None:
        return
    if not 1 <= repeats.distinct <= repeats.runs * repeats.sessions or repeats.bit_equal:
        yield f"{repeats.distinct} results of {repeats.sessions} sessions of {repeats.runs} runs"
    differ = bool(repeats.differing if repeats.differing is not None else repeats.distinct > 1)
    if len({bool(record.again), repeats.distinct > 1, differ}) > 1:
        rows = len(record.again)
        yield f"{repeats.distinct} results, {repeats.differing} differing runs, {rows} rows of a second one"
    if repeats.max_abs and not record.again:
        yield f"runs differ by {repeats.max_abs:g}, and no second one is stated"
