"""The verdict of a cell, from its facts and a policy: the only place where verdicts are made.

Pure. A run decides so, and so does judging a finished run again: the facts are what a record publishes.
Each rule is one function; the first that applies gives the verdict. ``docs/reference/tolerances.md`` lists
the rules in the same order.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from harness.core import wording
from harness.core.adjudicate import Ruling, of_failed, rule
from harness.core.compare import Comparison
from harness.core.dispute import Held, Settlement, settle
from harness.core.errors import one_line
from harness.core.facts import UNREPEATABLE, Facts
from harness.core.hearing import EXPECTED, Adjudication, Apart
from harness.core.judged import Judged, judge_row, judge_rows, worst, wrong_for_other_inputs
from harness.core.lost import LOST, relative_error
from harness.core.output_metrics import OutputMetrics
from harness.core.placed import placed
from harness.core.policy import Policy
from harness.core.record import Ended
from harness.core.repeats import several_results
from harness.core.verdict import Phase, Verdict

WRONG_VALUES = frozenset(
    {Verdict.SHAPE_MISMATCH, Verdict.DTYPE_MISMATCH, Verdict.NAN_MISMATCH, Verdict.MISMATCH}
)
"""Verdicts that rest on a golden alone."""

REASON_CHARS = 300
"""Length of a reason with its notes."""

_FORM = frozenset({Verdict.SHAPE_MISMATCH, Verdict.DTYPE_MISMATCH})


class Found(NamedTuple):
    """A verdict and its reason, which may be empty."""

    verdict: Verdict
    reason: str


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of a cell.

    Attributes:
        verdict: One word.
        reason: One line for people; may be empty for a pass.
        outputs: The facts' outputs under the policy.
        again: The same of the second run.
        adjudication: Of the outputs that failed.
        suspicious: Why a right answer is marked; else empty.
    """

    verdict: Verdict
    reason: str = ""
    outputs: tuple[OutputMetrics, ...] = ()
    again: tuple[OutputMetrics, ...] = ()
    adjudication: tuple[Adjudication, ...] = ()
    suspicious: str = ""


class Judging(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules see: the facts, the policy, and each output under the policy.

    Attributes:
        fault: The fault that decides among the outputs; None where all are right.
        fault_again: The same of the second run.
        ruling: Whether the references dispute the golden that an output fails against.
        settled: What expected data or float64 find where the golden is disputed; None where they leave it
            open. If they find the EP right, ``fault`` is None.
    """

    facts: Facts
    policy: Policy
    outputs: tuple[Judged, ...] = ()
    again: tuple[Judged, ...] = ()
    fault: tuple[Verdict, str] | None = None
    fault_again: tuple[Verdict, str] | None = None
    ruling: Ruling = Ruling()
    settled: Settlement | None = None

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the outputs that fail."""
        return tuple(one.row.name for one in self.outputs if one.fault is not None)

    @property
    def dispute(self) -> str:
        """Why the golden judges no values; empty where it does."""
        return self.facts.dispute or ": ".join(filter(None, (self.ruling.disputed, self.ruling.far)))


Rule = Callable[[Judging], Found | None]


def decide(facts: Facts, policy: Policy) -> Decision:
    """Decide one cell.

    Args:
        facts: All that is known of it.
        policy: What it is judged by.
    """
    judging = judging_of(facts, policy)
    verdict, reason = next(found for each in RULES if (found := each(judging)) is not None)
    wrong = verdict in WRONG_VALUES or verdict is Verdict.REFERENCE_DISPUTED
    heard = facts.hearing.adjudication if facts.hearing is not None and wrong else ()
    rows = tuple(one.row for one in judging.outputs)
    return Decision(
        verdict=verdict,
        reason=_with_effect(one_line("; ".join(filter(None, (reason, facts.teardown)))), facts),
        outputs=rows,
        again=tuple(one.row for one in judging.again),
        adjudication=of_failed(heard, rows),
        suspicious="; ".join(one.suspicious for one in judging.outputs if one.suspicious)
        if not wrong
        else "",
    )


def judging_of(facts: Facts, policy: Policy) -> Judging:
    """Judge each output of a cell, and the golden where an output fails against it."""
    policy = msgspec.structs.replace(
        policy, converted=facts.converted, precision=facts.precision, delivers=facts.delivers
    )
    outputs, again = judge_rows(facts.outputs, policy), judge_rows(facts.again, policy)
    judging = Judging(
        facts=facts,
        policy=policy,
        outputs=outputs,
        again=again,
        fault=worst(outputs),
        fault_again=worst(again),
    )
    judging = msgspec.structs.replace(judging, ruling=_ruling(judging))
    settled = _settled(judging)
    is_right = settled is not None and settled.finding == "right"
    return msgspec.structs.replace(judging, settled=settled, fault=None if is_right else judging.fault)


# --- what never ran to its end ---


def harness_error(judging: Judging) -> Found | None:
    """An exception of the harness's own says nothing about the EP, and is never a pass."""
    return _ended(judging, "harness", Verdict.HARNESS_ERROR)


def not_tried(judging: Judging) -> Found | None:
    """The target cannot be used here, or the matrix declares that the cell is left out."""
    return _ended(judging, "unavailable", Verdict.UNAVAILABLE) or _ended(
        judging, "declared", Verdict.DECLARED
    )


def invalid_model(judging: Judging) -> Found | None:
    """The model cannot be read, or the CPU EP of the target's own runtime refuses it with an error, too.

    A converted model may lack kernels on the CPU EP; nothing else is left to doubt.
    """
    facts = judging.facts
    if found := _ended(judging, "broken_model", Verdict.INVALID_MODEL):
        return found
    ended, own = facts.ended, facts.own_cpu
    if ended is None or ended.how != "raised" or own is None or own.status != "refused":
        return None
    return None if _lacks_kernels(facts) else Found(Verdict.INVALID_MODEL, own.message)


def no_input(judging: Judging) -> Found | None:
    """No generated input runs on the CPU EP, so nothing is known of the model."""
    return _ended(judging, "no_input", Verdict.NO_INPUT)


def cpu_dies_too(judging: Judging) -> Found | None:
    """The CPU EP of the same runtime dies of the model, too, so that the EP is not to blame.

    An EP that refuses the model cleanly, or runs out of memory, is judged as such.
    """
    ended, own = judging.facts.ended, judging.facts.own_cpu
    if ended is None or own is None or own.status not in {"died", "lost"}:
        return None
    if ended.how == "raised" and (ended.out_of_memory or _is_refusal(judging.facts, ended)):
        return None
    if ended.how in {"died", "hung"} and own.status == "lost":
        return None
    if ended.how not in {"raised", "died", "hung"}:
        return None
    return Found(Verdict.NO_GOLDEN, f"{own.message}; and here: {ended.message}")


def out_of_memory(judging: Judging) -> Found | None:
    """Memory ran out, by what was raised or printed."""
    ended = judging.facts.ended
    if ended is None or not ended.out_of_memory or ended.how not in {"raised", "died"}:
        return None
    return Found(Verdict.OUT_OF_MEMORY, ended.message + ended.note)


def crash_or_hang(judging: Judging) -> Found | None:
    """The process died, or was killed at the time limit of a phase."""
    return _ended(judging, "died", Verdict.CRASH) or _ended(judging, "hung", Verdict.HANG)


def option_rejected(judging: Judging) -> Found | None:
    """A session can be made without an option, and not with it."""
    return _ended(judging, "rejected", Verdict.OPTION_REJECTED)


def refused(judging: Judging) -> Found | None:
    """The EP refuses the model cleanly while the session is created, or has no such scenario."""
    ended = judging.facts.ended
    if ended is not None and ended.how == "raised" and _is_refusal(judging.facts, ended):
        return Found(Verdict.UNSUPPORTED, ended.message + ended.note)
    return _ended(judging, "unsupported", Verdict.UNSUPPORTED)


def error(judging: Judging) -> Found | None:
    """The EP raised an error where the CPU EP works."""
    return _ended(judging, "raised", Verdict.ERROR)


def unfeedable(judging: Judging) -> Found | None:
    """The target's Python API cannot take or give a value: nothing is known about the EP."""
    return _ended(judging, "unfeedable", Verdict.NO_GOLDEN)


# --- what ran ---


def no_golden(judging: Judging) -> Found | None:
    """Neither the CPU EP nor the suite has an answer to compare with."""
    return None if judging.facts.golden else Found(Verdict.NO_GOLDEN, judging.facts.no_golden)


def disputed_golden(judging: Judging) -> Found | None:
    """The golden is in doubt whatever the EP gives, and neither expected data nor float64 can judge instead.

    It judges no values. It does judge shapes and types, unless the suite's data have those of the EP.
    """
    facts = judging.facts
    if not facts.dispute or judging.settled is not None:
        return None
    if judging.fault is not None and judging.fault[0] in _FORM:
        expected = _expected(judging)
        if not expected or any(held.ep.fault in _FORM for held in expected.values()):
            return None
    return Found(Verdict.REFERENCE_DISPUTED, facts.dispute)


def fallback_at_run(judging: Judging) -> Found | None:
    """The session changed its providers while it ran."""
    changed = judging.facts.providers_changed
    return Found(Verdict.FALLBACK_AT_RUN, changed) if changed else None


def undefined_input(judging: Judging) -> Found | None:
    """ONNX leaves the values of every failing output undefined for this input."""
    undefined = judging.facts.undefined
    if judging.fault is None or judging.fault[0] in _FORM or not undefined:
        return None
    if not all(name in undefined for name in judging.failed):
        return None
    return Found(Verdict.UNDEFINED_INPUT, undefined[judging.failed[0]])


def not_by_the_ep(judging: Judging) -> Found | None:
    """Without a node on the EP, a wrong or unsteady answer is that of the runtime's own CPU EP."""
    facts = judging.facts
    fault = judging.fault or judging.fault_again
    if facts.placement is None or facts.placement.ep_nodes or facts.is_cpu or fault is None:
        return None
    return Found(Verdict.REFERENCE_DISPUTED, f"no node ran on the EP, so the EP is not to blame: {fault[1]}")


def wrong_values(judging: Judging) -> Found | None:
    """An output fails, unless the golden that it fails against is disputed and nothing else can judge."""
    if judging.fault is None:
        return None
    verdict, why = judging.fault
    if judging.settled is not None:
        return Found(verdict, f"{judging.settled.reason}; the golden is disputed: {judging.dispute}")
    if judging.ruling.disputed:
        return Found(Verdict.REFERENCE_DISPUTED, judging.dispute)
    return Found(verdict, "; ".join(filter(None, (why, judging.ruling.note))))


def nondeterministic(judging: Judging) -> Found | None:
    """A further run differs by more than the policy allows, or at all where equal bits are asked for."""
    repeats = judging.facts.repeats
    if judging.fault_again is not None:
        verdict, why = judging.fault_again
        if _only_drawn(judging.again):
            return Found(verdict, f"in another run {why}")
        which = "a second run of the same session differs" if repeats is None else several_results(repeats)
        return Found(Verdict.NONDETERMINISTIC, f"{which}: {why}")
    if repeats is not None and repeats.bit_equal and repeats.distinct > 1:
        return Found(
            Verdict.NONDETERMINISTIC, f"{several_results(repeats)}, and the matrix asks for equal bits"
        )
    return None


def other_inputs(judging: Judging) -> Found | None:
    """For other inputs the session gives what it gave for the first ones, or is off by more than half."""
    placement = judging.facts.placement
    if placement is None or not (placement.ep_nodes or judging.facts.is_cpu):
        return None
    first = {row.name: row for row in judging.facts.outputs}
    wrong = [
        row for row in judging.facts.other if wrong_for_other_inputs(row, first.get(row.name), judging.policy)
    ]
    if not wrong:
        return None
    row = wrong[0]
    details = row.details
    stale = details is not None and details.stale
    error = relative_error(row.delivered_bits or 0.0)
    what = "is what the inputs before gave, bit for bit" if stale else f"has a relative error of {error:.2g}"
    return Found(Verdict.MISMATCH, f"for other inputs in the same session {wording.output(row.name)} {what}")


def right(judging: Judging) -> Found | None:
    """The answer is right; the verdict is about where the nodes ran."""
    placement = judging.facts.placement
    if placement is None:
        return Found(Verdict.HARNESS_ERROR, "the record tells neither how the cell ended nor where it ran")
    verdict, reason = placed(placement, converted=judging.facts.converted)
    settled = "" if judging.settled is None else judging.settled.reason
    if settled and judging.dispute:
        settled += f"; the golden is disputed: {judging.dispute}"
    remarks = [wording.remark(one.row) for one in judging.outputs if one.fault is None]
    delivered = sorted({one.delivered for one in judging.outputs if one.delivered})
    told = [f"the EP delivers {precision} by its own default" for precision in delivered]
    return Found(verdict, "; ".join(filter(None, (reason, settled, *told, *remarks))))


RULES: tuple[Rule, ...] = (
    harness_error,
    not_tried,
    option_rejected,
    invalid_model,
    no_input,
    cpu_dies_too,
    out_of_memory,
    crash_or_hang,
    refused,
    error,
    unfeedable,
    no_golden,
    disputed_golden,
    fallback_at_run,
    undefined_input,
    not_by_the_ep,
    wrong_values,
    nondeterministic,
    other_inputs,
    right,
)
"""In the order in which they are tried; the first that applies decides."""


def _with_effect(reason: str, facts: Facts) -> str:
    effect = facts.effect
    if effect is None or effect.seen:
        return reason
    options = one_line(", ".join(effect.options), 100)
    note = f"no effect seen: the outputs are bit-identical without {options}"
    room = REASON_CHARS - len(note) - len("; ")  # a long reason must not push the note out
    return "; ".join(filter(None, (one_line(reason, room), note)))


def _ended(judging: Judging, how: str, verdict: Verdict) -> Found | None:
    ended = judging.facts.ended
    if ended is None or ended.how != how:
        return None
    return Found(verdict, ended.message + ended.note)


def _lacks_kernels(facts: Facts) -> bool:
    own = facts.own_cpu
    return facts.converted and own is not None and own.message.startswith("NotImplemented")


def _is_refusal(facts: Facts, ended: Ended) -> bool:
    refuses = ended.kind == "NotImplemented" or ended.refused
    return facts.phase is Phase.CREATE and (_lacks_kernels(facts) or refuses)


def _expected(judging: Judging) -> dict[str, Held]:
    """How golden and EP compare with the expected data, under the policy; by output."""
    hearing = judging.facts.hearing
    policy = msgspec.structs.replace(judging.policy, converted=False)
    return {
        row.name: Held(golden=judge_row(golden[row.name], policy), ep=judge_row(row, policy))
        for one in (hearing.witnesses if hearing is not None else ())
        if one.name == EXPECTED and (golden := {row.name: row for row in one.golden})
        for row in one.ep
        if row.name in golden
    }


def _ruling(judging: Judging) -> Ruling:
    """What the references say of the outputs that fail under the policy."""
    hearing, fault = judging.facts.hearing, judging.fault
    if fault is None or fault[0] not in WRONG_VALUES or hearing is None or judging.facts.golden != "cpu":
        return Ruling()
    policy = msgspec.structs.replace(judging.policy, converted=False)
    witnesses = tuple(
        msgspec.structs.replace(
            witness,
            golden=tuple(_apart(row, policy) for row in witness.golden),
            ep=tuple(_apart(row, policy) for row in witness.ep),
        )
        for witness in hearing.witnesses
    )
    failed = Comparison(verdict=fault[0], message="", outputs=tuple(one.row for one in judging.outputs))
    return rule(failed, witnesses, hearing.adjudication)


def _settled(judging: Judging) -> Settlement | None:
    """What expected data and float64 find where the golden is disputed.

    They say nothing of a converted model, whose error is its precision's.
    """
    facts, fault = judging.facts, judging.fault
    if not judging.dispute or facts.hearing is None or facts.golden != "cpu" or facts.converted:
        return None
    if fault is not None and fault[0] not in WRONG_VALUES:
        return None
    # One of several answers of the CPU EP is no measure of what it gives, unless the EP's answer is lost.
    excused = LOST if facts.dispute == UNREPEATABLE else 0.0
    found = settle(
        judging.outputs,
        _expected(judging),
        facts.hearing.adjudication,
        whole=bool(facts.dispute),
        excused=excused,
    )
    # A further run that differs was not compared with the expected data.
    return None if found is not None and found.finding == "right" and facts.again else found


def _apart(row: Apart, policy: Policy) -> Apart:
    """A row under the policy, as far as it says whether two answers agree."""
    judged = judge_row(row, policy)
    return msgspec.structs.replace(row, mismatched=judged.row.mismatched if judged.fault else 0)


def _only_drawn(again: tuple[Judged, ...]) -> bool:
    """Whether all that is wrong are numbers drawn at random: others each time, and no less wrong."""
    return all(one.row.details and one.row.details.distribution for one in again if one.fault is not None)


WORDS: Mapping[str, str] = {each.__name__: (each.__doc__ or "").partition("\n")[0] for each in RULES}
"""Name of a rule -> what it says, for the documentation."""
