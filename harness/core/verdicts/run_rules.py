"""Rules for cells that ran: is the answer right, and who computed it?"""

from harness.core.comparison import wording
from harness.core.records.facts import SIZED_BY_CHANCE, Facts, Repeats, facts_for_other_inputs
from harness.core.records.fixed_sizes import fixed_words
from harness.core.records.generation_figures import disagreeing, stages_on_cpu, where
from harness.core.records.precision import INTEGER_KERNELS
from harness.core.records.reference_answer import AS_USED
from harness.core.records.verdict import Verdict
from harness.core.text.counted import plural
from harness.core.verdicts.judge_output import wrong_for_other_inputs
from harness.core.verdicts.judgement import OutputJudgement
from harness.core.verdicts.judging import (
    OF_FORM,
    WRONG_VALUES,
    Judging,
    by_expected_data,
    is_as_used,
    judging_of,
)
from harness.core.verdicts.placement_verdict import verdict_by_placement
from harness.core.verdicts.ruling import Rule, Ruling

FOR_OTHER_INPUTS = "for other inputs in the same session"
"""The first words of a reason that is about other inputs."""

_STALE = "is the output for the inputs before, bit for bit"


def no_golden(judging: Judging) -> Ruling | None:
    """Neither the CPU EP nor the suite has an answer to compare with."""
    facts = judging.facts
    if facts.golden:
        return None
    told = disagreeing(facts.generation)
    return Ruling(Verdict.NO_GOLDEN, "; ".join(filter(None, (facts.no_golden, told))))


def disputed_golden(judging: Judging) -> Ruling | None:
    """The golden is in doubt whatever the EP gives, and neither expected data nor float64 can judge instead.

    Such a golden still judges shapes and types, unless the suite's data have those of the EP, or two runs of
    the CPU EP give different shapes: a voice is as long as the durations that were drawn for its sounds. It
    also judges outputs that no random numbers enter.
    """
    facts = judging.facts
    if not facts.dispute or judging.resolution is not None:
        return None
    fault = judging.fault[0] if judging.fault is not None else None
    by_chance = fault is Verdict.SHAPE_MISMATCH and facts.dispute.endswith(SIZED_BY_CHANCE)
    if facts.drawn and fault is not None and not by_chance:
        return None  # random numbers do not enter the output that fails
    if fault in OF_FORM and not by_chance:
        expected = by_expected_data(judging)
        if not expected or any(check.ep.fault in OF_FORM for check in expected.values()):
            return None
    return Ruling(Verdict.REFERENCE_DISPUTED, facts.dispute)


def fallback_at_run(judging: Judging) -> Ruling | None:
    """The session changed its providers while it ran."""
    changed = judging.facts.providers_changed
    return Ruling(Verdict.FALLBACK_AT_RUN, changed) if changed else None


def undefined_input(judging: Judging) -> Ruling | None:
    """ONNX leaves the values of every failing output undefined for this input."""
    undefined = judging.facts.undefined
    if judging.fault is None or judging.fault[0] in OF_FORM or not undefined:
        return None
    if not all(name in undefined for name in judging.failed):
        return None
    return Ruling(Verdict.UNDEFINED_INPUT, undefined[judging.failed[0]])


def not_by_the_ep(judging: Judging) -> Ruling | None:
    """A wrong or varying answer is that of the runtime's own CPU EP.

    No node ran on the EP. Or the CPU EP alone, as applications use it, is as wrong, and an operator with
    integer kernels was left to it.
    """
    facts = judging.facts
    fault = judging.fault or judging.fault_again
    if facts.placement is None or facts.placement.is_unknown or facts.is_cpu or fault is None:
        return None
    if not facts.placement.ep_nodes:
        told = "no node ran on the EP, so the EP is not to blame"
        return Ruling(Verdict.REFERENCE_DISPUTED, f"{told}: {fault[1]}")
    left = sorted(INTEGER_KERNELS & facts.placement.cpu_ops.keys())
    if not left or not judging.failed or not is_as_used(judging):
        return None
    told = f"{AS_USED} is as wrong alone, and {', '.join(left)} was left to it"
    return Ruling(Verdict.REFERENCE_DISPUTED, f"{told}, so the EP is not to blame: {fault[1]}")


def wrong_values(judging: Judging) -> Ruling | None:
    """An output fails, unless the golden that it fails against is disputed and nothing else can judge."""
    if judging.fault is None:
        return None
    verdict, why = judging.fault
    why = "; ".join(filter(None, (where(judging.facts.generation), why)))
    if only := judging.facts.scenario.get("only"):  # a scenario compares with a plain run of the same session
        why = f"only {only}: {why}"
    if judging.resolution is not None:
        return Ruling(verdict, f"{judging.resolution.reason}; the golden is disputed: {judging.dispute}")
    if judging.golden_check.disputed:
        return Ruling(Verdict.REFERENCE_DISPUTED, judging.dispute)
    return Ruling(
        verdict, "; ".join(filter(None, (why, judging.golden_check.note, _saturated(judging.facts))))
    )


def _saturated(facts: Facts) -> str:
    """Return what the CPU EP itself may do about wrong sums of 8-bit products; empty for any other EP."""
    if not facts.is_cpu or facts.placement is None or not INTEGER_KERNELS & facts.placement.ep_ops.keys():
        return ""
    return "sums of 8-bit products may saturate, which session.x64quantprecision = 1 avoids"


def nondeterministic(judging: Judging) -> Ruling | None:
    """A further run differs by more than the policy allows, or at all if the matrix asks for equal bits."""
    repeats = judging.facts.repeats
    if judging.fault_again is not None:
        verdict, why = judging.fault_again
        if _only_random(judging.again):
            return Ruling(verdict, f"in another run {why}")
        which = "a second run of the same session differs" if repeats is None else _results(repeats)
        return Ruling(Verdict.NONDETERMINISTIC, f"{which}: {why}")
    if repeats is not None and repeats.bit_equal and repeats.distinct > 1:
        return Ruling(Verdict.NONDETERMINISTIC, f"{_results(repeats)}, and the matrix asks for equal bits")
    return None


def other_inputs(judging: Judging) -> Ruling | None:
    """For other inputs in the same session an output fails by the rules of the first, or the EP raises."""
    facts = judging.facts
    if facts.other_check is not None and facts.other_check.error:
        return Ruling(Verdict.ERROR, f"{FOR_OTHER_INPUTS} it raises {facts.other_check.error}")
    if not facts.other:
        return None
    if facts.other_check is None or facts.converted:
        return _beyond_doubt(judging)
    others = judging_of(facts_for_other_inputs(facts), judging.policy)
    found = next((found for each in _OF_VALUES if (found := each(others)) is not None), None)
    if found is None or found.verdict not in WRONG_VALUES:
        return None
    for one in others.outputs:
        if one.fault is not None and one.row.details is not None and one.row.details.stale:
            return Ruling(found.verdict, f"{FOR_OTHER_INPUTS} {wording.output(one.row.name)} {_STALE}")
    return Ruling(found.verdict, f"{FOR_OTHER_INPUTS}: {found.reason}")


def wrong_device(judging: Judging) -> Ruling | None:
    """The answer is right, but an input of the EP's lies on another device than the session was made for."""
    device = judging.facts.device
    if device is None or not device.wrong:
        return None
    return Ruling(Verdict.WRONG_DEVICE, f"{device.wrong}; asked for: {device.asked}")


def right(judging: Judging) -> Ruling | None:
    """The answer is right; the verdict is about where the nodes ran."""
    placement = judging.facts.placement
    if placement is None:
        return Ruling(Verdict.HARNESS_ERROR, "the record has neither how the cell ended nor where it ran")
    verdict, reason, cause = verdict_by_placement(placement, converted=judging.facts.converted)
    resolved = "" if judging.resolution is None else judging.resolution.reason
    if resolved and judging.dispute:
        resolved += f"; the golden is disputed: {judging.dispute}"
    remarks = [wording.remark(one.row) for one in judging.outputs if one.fault is None]
    delivered = sorted({one.delivered for one in judging.outputs if one.delivered})
    defaults = [f"the EP delivers {precision} by its own default" for precision in delivered]
    told = (
        stages_on_cpu(judging.facts.generation),
        reason,
        resolved,
        *defaults,
        *remarks,
        fixed_words(judging.facts.fixed),
    )
    return Ruling(verdict, "; ".join(filter(None, told)), cause)


_OF_VALUES: tuple[Rule, ...] = (disputed_golden, undefined_input, not_by_the_ep, wrong_values)
"""Those that judge the values of a run, in the order of ``RUN_RULES``; they also judge other inputs."""

RUN_RULES: tuple[Rule, ...] = (
    no_golden,
    disputed_golden,
    fallback_at_run,
    undefined_input,
    not_by_the_ep,
    wrong_values,
    nondeterministic,
    other_inputs,
    wrong_device,
    right,
)
"""All of them, in the order in which they are tried."""


def _beyond_doubt(judging: Judging) -> Ruling | None:
    """Judge other inputs without noise and references: of a converted model, or of an older record.

    A conversion to integers takes its ranges from the first inputs, and others may leave them.
    """
    facts, placement = judging.facts, judging.facts.placement
    if placement is None or not (placement.ep_nodes or placement.is_unknown or facts.is_cpu):
        return None
    first = {row.name: row for row in facts.outputs}
    for row in facts.other:
        if wrong_for_other_inputs(row, first.get(row.name), judging.policy):
            stale = row.details is not None and row.details.stale
            error = f"has a relative error of {row.relative_error or 1.0:.2g}"
            what = _STALE if stale else error
            return Ruling(Verdict.MISMATCH, f"{FOR_OTHER_INPUTS} {wording.output(row.name)} {what}")
    return None


def _only_random(again: tuple[OutputJudgement, ...]) -> bool:
    """Return whether only random numbers are wrong; their variation is right."""
    return all(one.row.details and one.row.details.distribution for one in again if one.fault is not None)


def _results(repeats: Repeats) -> str:
    """Return ``3 different results in 2 sessions of 10 runs each, up to 1.2e-07 from the first``.

    The number of differing runs follows in parentheses if it is known.
    """
    sessions = plural(repeats.sessions, "session")
    runs = "run" if repeats.runs == 1 else "runs each"
    far = "" if repeats.max_abs is None else f", up to {repeats.max_abs:.3g} from the first"
    further = repeats.sessions * repeats.runs - 1
    count = f" ({repeats.differing} of {further} further runs)" if repeats.differing and further > 1 else ""
    return f"{repeats.distinct} different results in {sessions} of {repeats.runs} {runs}{far}{count}"
