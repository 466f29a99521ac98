"""From an outcome to a record: the one place where verdicts are made.

Pure: what the target did, what the CPU provider did, and the tolerance come in; a record goes out.
"""

import functools
import re
from collections.abc import Mapping

import msgspec

from harness.core import wording
from harness.core.adjudicate import Ruling, of_failed
from harness.core.compare import Comparison
from harness.core.errors import one_line
from harness.core.hearing import Adjudication, Hearing
from harness.core.latency import Latency
from harness.core.nature import Nature
from harness.core.output_metrics import OutputMetrics
from harness.core.placed import placed
from harness.core.record import OptionEffect, Placement, Repeats
from harness.core.rejudge import WRONG_VALUES, is_in_doubt
from harness.core.repeats import several_results
from harness.core.scenario import Facts
from harness.core.spread import Spread
from harness.core.tolerance import default_tolerance
from harness.core.verdict import Family, Phase, Verdict
from harness.corpus.case import Case
from harness.corpus.revealed import hidden
from harness.engine.compare_precision import compare_precision
from harness.engine.compare_sets import compare_sets, noise_rule, with_told_noise
from harness.engine.essence import essence
from harness.engine.evidence import Evidence
from harness.engine.natures import draws, natures_of
from harness.engine.outcome import (
    Died,
    Hung,
    NamedValues,
    Outcome,
    Raised,
    Ran,
    Rejected,
    Unavailable,
    Unfeedable,
    Unsupported,
)
from harness.engine.rule import Rule, ToleranceFor
from harness.engine.witnesses import hear
from harness.golden.golden import Golden

_OUT_OF_MEMORY = re.compile(
    r"\bMemoryError\b|bad_alloc|bad allocation|out of memory|Failed to allocate memory|MemoryAllocation\b",
    re.IGNORECASE,
)
_FORM = frozenset({Verdict.SHAPE_MISMATCH, Verdict.DTYPE_MISMATCH})
_REFUSAL = re.compile(r"not (?:yet )?(?:supported|implemented)|unsupported|NOT_IMPLEMENTED", re.IGNORECASE)


class Judgement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A verdict with its grounds; fields as in ``harness.core.record.Record``."""

    verdict: Verdict
    phase: Phase | None = None
    cause: str = ""
    reason: str = ""
    placement: Placement | None = None
    outputs: tuple[OutputMetrics, ...] = ()
    again: tuple[OutputMetrics, ...] = ()
    golden: str = ""
    timings_ms: dict[str, float] = {}
    effect: OptionEffect | None = None
    latency: Latency | None = None
    scenario: Facts = {}
    repeats: Repeats | None = None
    no_spread: str = ""
    adjudication: tuple[Adjudication, ...] = ()
    hearing: Hearing | None = None


def judge(outcome: Outcome, case: Case, evidence: Evidence, rule: Rule) -> Judgement:
    """Judge one outcome.

    Args:
        outcome: What the target did.
        case: The model, with the suite's expected outputs.
        evidence: What it is held against.
        rule: How far it may lie from that.
    """
    if isinstance(outcome, Raised):
        return _raised(outcome, case, evidence)
    if isinstance(outcome, Ran) and evidence.full is not None:
        return _converted(outcome, case, evidence.full, evidence, rule)
    if isinstance(outcome, Ran):
        return _ran(outcome, case, evidence, rule)
    return judge_untried(outcome)


def is_inexact(judgement: Judgement) -> bool:
    """Whether a floating output was compared and differs from its golden: its noise is worth knowing."""
    return judgement.golden == "cpu" and any(
        output.max_abs and not output.dtype.startswith(("int", "uint", "bool"))
        for output in judgement.outputs
    )


def hides_ties(judgement: Judgement, case: Case) -> bool:
    """Whether a golden is about to fail a provider over positions chosen by values that nobody has seen."""
    wrong = judgement.verdict in {Verdict.MISMATCH, Verdict.SHAPE_MISMATCH}
    return wrong and judgement.golden == "cpu" and bool(hidden(case))


def needs_witnesses(judgement: Judgement) -> bool:
    """Whether a golden is about to fail a provider: others are heard before it does.

    So they are where it would do so under a usual tolerance, by which the run may be judged again.
    """
    if judgement.golden != "cpu" or judgement.verdict is Verdict.REFERENCE_DISPUTED:
        return False
    return fails(judgement) or any(map(is_in_doubt, judgement.outputs))


def loses(judgement: Judgement) -> bool:
    """Whether a converted model differs from what it was made of: the noise of that is worth telling."""
    errors = (output.precision_error for output in judgement.outputs)
    return any(error is not None and error.error for error in errors)


def fails(judgement: Judgement) -> bool:
    """Whether a golden fails a provider."""
    return judgement.golden == "cpu" and judgement.verdict in WRONG_VALUES


def with_shapes(judgement: Judgement, case: Case, refused: Mapping[str, str]) -> Judgement:
    """A judgement that says which shapes were run, and which the CPU provider refuses."""
    facts: Facts = {"shapes": tuple(data_set.name for data_set in case.data_sets)}
    if refused:
        facts["refused"] = tuple(refused.values())
    return msgspec.structs.replace(judgement, scenario=facts | judgement.scenario)


def judge_untried(outcome: Unavailable | Rejected | Died | Hung | Unfeedable | Unsupported) -> Judgement:
    """Judge an outcome that needs no answer to compare with."""
    if isinstance(outcome, Unavailable):
        phase = Phase.REGISTER if outcome.cause in {"no_device", "registration_failed"} else Phase.START
        return Judgement(
            verdict=Verdict.UNAVAILABLE, phase=phase, cause=outcome.cause, reason=essence(outcome.reason)
        )
    if isinstance(outcome, Rejected):
        reason = f"provider option {outcome.option!r} is refused: {outcome.reason}"
        return Judgement(verdict=Verdict.OPTION_REJECTED, phase=Phase.REGISTER, reason=essence(reason))
    if isinstance(outcome, Unsupported):
        return Judgement(
            verdict=Verdict.UNSUPPORTED,
            phase=outcome.phase,
            reason=essence(outcome.message),
            scenario=outcome.scenario,
        )
    if isinstance(outcome, Hung):
        reason = f"no end of phase {outcome.phase} within {outcome.limit_s:g} s; the process was killed"
        return Judgement(verdict=Verdict.HANG, phase=outcome.phase, reason=reason)
    if isinstance(outcome, Died):
        memory = _OUT_OF_MEMORY.search(outcome.printed)
        return Judgement(
            verdict=Verdict.OUT_OF_MEMORY if memory else Verdict.CRASH,
            phase=outcome.phase,
            cause=outcome.cause,
            reason=f"the process died in phase {outcome.phase}: {outcome.cause or 'it exited early'}",
        )
    return Judgement(verdict=Verdict.NO_GOLDEN, phase=Phase.RUN, reason=one_line(outcome.message))


def _raised(outcome: Raised, case: Case, evidence: Evidence) -> Judgement:
    text, reference = f"{outcome.kind}: {outcome.message}", evidence.reference
    # Of a converted model nothing is left to doubt: only kernels may be missing, on the CPU EP, too.
    lacks_kernels = evidence.converted and reference.message.startswith("NotImplemented")
    if reference.status == "refused" and not lacks_kernels:
        verdict = Verdict.INVALID_MODEL
        text = reference.message
    elif _OUT_OF_MEMORY.search(text):
        verdict = Verdict.OUT_OF_MEMORY
    elif outcome.phase is Phase.CREATE and (
        lacks_kernels or outcome.kind == "NotImplemented" or _REFUSAL.search(text)
    ):
        verdict = Verdict.UNSUPPORTED
    elif reference.status == "lost":
        # Only what the CPU EP computes is an EP's fault.
        verdict = Verdict.NO_GOLDEN
        text = f"{reference.message}; and here: {text}"
    else:
        verdict = Verdict.ERROR
    reason = essence(text, case.model_path)
    if verdict is not Verdict.INVALID_MODEL:
        reason = one_line(at_data_set(case, outcome.data_set) + reason)
    if outcome.sick:
        note = f"; the process was replaced: {one_line(essence(outcome.sick), 100)}"
        reason = one_line(reason, 300 - len(note)) + note
    return Judgement(verdict=verdict, phase=outcome.phase, reason=reason, scenario=outcome.scenario)


def at_data_set(case: Case, number: int | None) -> str:
    """Which data set was at work, to stand before a reason; empty where there is only one."""
    if number is None or not 0 <= number < len(case.data_sets) > 1:
        return ""
    return f"with {case.data_sets[number].name}: "


def _converted(outcome: Ran, case: Case, full: Golden, evidence: Evidence, rule: Rule) -> Judgement:
    """Judge the outputs of a model that was converted to another precision; see ``harness.core.precise``."""
    own = evidence.golden
    compared = again = None
    adjudication: tuple[Adjudication, ...] = ()
    if full.status != "ok":
        verdict, reason = Verdict.NO_GOLDEN, f"the CPU EP gives no golden: {full.message}"
    else:
        compare = functools.partial(
            compare_precision, tolerance_for=rule.tolerance_for, precision=rule.precision
        )
        natures = _natures(case, full.outputs, evidence, rule)
        outcome = _with_demand(outcome, rule, by_lot=draws(case, natures))
        owns = own.outputs if own.status == "ok" else None
        compared = compare(full.outputs, owns, outcome.outputs, natures=natures)
        if outcome.second is not None:
            again = compare(full.outputs[:1], owns and owns[:1], (outcome.second,), natures=natures[:1])
        if isinstance(evidence.spread, Spread):
            compared = with_told_noise(compared, full.outputs, outcome.outputs, evidence.spread)
        disputed = full.disputed or own.disputed
        verdict, reason = (
            (Verdict.REFERENCE_DISPUTED, disputed)
            if disputed
            else _wrong(outcome, compared, again) or placed(outcome.placement, converted=True)
        )
        if evidence.witnesses and verdict in WRONG_VALUES:
            known = functools.partial(
                compare_sets, tolerance_for=rule.tolerance_for, natures=natures, only_known=True
            )
            unit = functools.partial(default_tolerance, precision=rule.precision)
            heard = hear(case, full.outputs, outcome.outputs, compared, evidence.witnesses, known, unit)
            adjudication = of_failed(heard.adjudication, compared.outputs)
            verdict, reason = _under(heard.ruling, verdict, reason)
    return Judgement(
        verdict=verdict,
        phase=Phase.COMPARE,
        reason=one_line("; ".join(filter(None, (reason, outcome.teardown)))),
        placement=_with_shape_ops(outcome.placement, case),
        outputs=compared.outputs if compared else (),
        again=again.outputs if again else (),
        golden="cpu" if compared else "",
        timings_ms=outcome.timings_ms,
        latency=outcome.latency if verdict.family is Family.PASSED else None,
        scenario=outcome.scenario,
        repeats=outcome.repeats,
        adjudication=adjudication,
    )


def _ran(outcome: Ran, case: Case, evidence: Evidence, rule: Rule) -> Judgement:
    golden, tolerance_for = evidence.golden, rule.tolerance_for
    expected = tuple(data_set.expected for data_set in case.data_sets)
    if golden.status == "ok":
        answers, judged_by = golden.outputs, "cpu"
    elif all({name for name, _ in known} >= set(case.outputs) for known in expected):
        answers, judged_by = expected, "expected"
    else:
        answers, judged_by = (), ""
    placement = _with_shape_ops(outcome.placement, case)
    again: Comparison | None = None
    hearing: Hearing | None = None
    adjudication: tuple[Adjudication, ...] = ()
    if judged_by:
        natures = _natures(case, answers, evidence, rule)
        outcome = _with_demand(outcome, rule, by_lot=draws(case, natures))
        noise = noise_rule(evidence.spread, rule.noise) if isinstance(evidence.spread, Spread) else None
        compare = functools.partial(compare_sets, tolerance_for=tolerance_for, natures=natures, noise=noise)
        compared = compare(answers, outcome.outputs)
        if outcome.second is not None:
            again = compare(answers[:1], (outcome.second,), natures=natures[:1])
        verdict, reason = (
            _excused(outcome, case, golden, compared, tolerance_for)
            or _wrong(outcome, compared, again)
            or _right(placement, compared)
        )
        if evidence.witnesses and not golden.disputed:
            known = functools.partial(compare, only_known=True)
            unit = functools.partial(default_tolerance, precision=rule.precision)
            heard = hear(case, answers, outcome.outputs, compared, evidence.witnesses, known, unit)
            hearing = Hearing(verdict=verdict, witnesses=heard.witnesses, adjudication=heard.adjudication)
            if verdict in WRONG_VALUES:
                adjudication = of_failed(heard.adjudication, compared.outputs)
                verdict, reason = _under(heard.ruling, verdict, reason)
        outputs = compared.outputs
    else:
        verdict, reason, outputs = Verdict.NO_GOLDEN, f"the CPU EP gives no golden: {golden.message}", ()
    return Judgement(
        verdict=verdict,
        phase=Phase.COMPARE,
        reason=one_line("; ".join(filter(None, (reason, outcome.teardown)))),
        placement=placement,
        outputs=outputs,
        again=again.outputs if again else (),
        golden=judged_by,
        timings_ms=outcome.timings_ms,
        # How fast a wrong answer comes, or the CPU's in place of the provider's, is of no interest.
        latency=outcome.latency if verdict.family is Family.PASSED else None,
        scenario=outcome.scenario,
        repeats=outcome.repeats,
        no_spread=evidence.spread if rule.noise and isinstance(evidence.spread, str) else "",
        adjudication=adjudication,
        hearing=hearing,
    )


def _natures(
    case: Case, answers: tuple[NamedValues, ...], evidence: Evidence, rule: Rule
) -> tuple[Mapping[str, Nature], ...]:
    revealed = evidence.revealed
    return natures_of(
        case,
        answers,
        revealed=revealed.outputs if revealed and revealed.status == "ok" else (),
        steps=rule.steps,
        exact_inputs=rule.exact_inputs,
    )


def _with_demand(outcome: Ran, rule: Rule, *, by_lot: bool) -> Ran:
    """An outcome that says whether its runs have to give equal bits; those that draw numbers cannot."""
    if outcome.repeats is None or rule.repeat is None:
        return outcome
    repeats = msgspec.structs.replace(outcome.repeats, bit_equal=rule.repeat.bit_equal and not by_lot)
    return msgspec.structs.replace(outcome, repeats=repeats)


def _under(ruling: Ruling, verdict: Verdict, reason: str) -> tuple[Verdict, str]:
    """A verdict against a result once the witnesses are heard: a golden that they dispute fails nobody."""
    if ruling.disputed:
        return Verdict.REFERENCE_DISPUTED, ": ".join(filter(None, (ruling.disputed, ruling.far)))
    return verdict, "; ".join(filter(None, (reason, ruling.note)))


def _right(placement: Placement, compared: Comparison) -> tuple[Verdict, str]:
    """The verdict on a right answer, and what is to be known about how it was found right."""
    verdict, reason = placed(placement)
    return verdict, "; ".join(filter(None, (reason, *map(wording.remark, compared.outputs))))


def _excused(
    outcome: Ran, case: Case, golden: Golden, compared: Comparison, tolerance_for: ToleranceFor
) -> tuple[Verdict, str] | None:
    """A disputed golden judges no values; shapes and types it does, where the expected data agree."""
    if not golden.disputed:
        return None
    expected = tuple(data_set.expected for data_set in case.data_sets)
    if compared.verdict in _FORM:
        consent = compare_sets(expected, outcome.outputs, tolerance_for, only_known=True)
        if not any(expected) or consent.verdict in _FORM:
            return None
    return Verdict.REFERENCE_DISPUTED, golden.disputed


def _with_shape_ops(placement: Placement, case: Case) -> Placement:
    """A placement that says which operators on the CPU are there by design."""
    kept = placement.cpu_ops.keys() & case.facts.shape_only_ops if placement.cpu_ops else ()
    return msgspec.structs.replace(placement, shape_ops=tuple(sorted(kept))) if kept else placement


def _wrong(outcome: Ran, compared: Comparison, again: Comparison | None) -> tuple[Verdict, str] | None:
    """What is wrong with the result itself."""
    if outcome.providers_changed:
        return Verdict.FALLBACK_AT_RUN, outcome.providers_changed
    if compared.verdict is not None:
        # A wrong answer is the provider's even so: without it the CPU EP gives the right one.
        nowhere = "no node ran on the EP; " if not outcome.placement.ep_nodes else ""
        return compared.verdict, nowhere + compared.message
    repeats = outcome.repeats
    if again is not None and again.verdict is not None and _only_drawn(again):
        return again.verdict, f"in another run {again.message}"
    if again is not None and again.verdict is not None:
        which = "a second run of the same session differs" if repeats is None else several_results(repeats)
        return Verdict.NONDETERMINISTIC, f"{which}: {again.message}"
    if repeats is not None and repeats.bit_equal and repeats.distinct > 1:
        return Verdict.NONDETERMINISTIC, f"{several_results(repeats)}, and the matrix asks for equal bits"
    return None


def _only_drawn(again: Comparison) -> bool:
    """Whether all that is wrong are numbers drawn by lot, which are others each time, and no less wrong."""
    return all(row.details and row.details.distribution for row in again.outputs if row.mismatched)
