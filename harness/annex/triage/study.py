"""One failure, from its confirmation to a fault: the steps of a triage in their order."""

import hashlib
import time
from collections.abc import Collection, Sequence

import msgspec

from harness.annex.triage.documented_errors import documented_error
from harness.annex.triage.explain import decomposed_operators, explain
from harness.annex.triage.failure import Failure
from harness.annex.triage.failure_check import FailureCheck
from harness.annex.triage.failure_groups import FailureGroup
from harness.annex.triage.hang_limits import LimitedTarget, safe_limits
from harness.annex.triage.lab import Lab
from harness.annex.triage.library import library_of
from harness.annex.triage.locate import Locator, narrowed, original_names
from harness.annex.triage.net import load
from harness.annex.triage.preceding import MOST_NEEDED, Reruns
from harness.annex.triage.preceding_model import with_smaller_preceding
from harness.annex.triage.published_model import drawn, fingerprint
from harness.annex.triage.reduction_settings import ReductionProgress
from harness.annex.triage.repetition import repeat_failure
from harness.annex.triage.same_fault import is_same_fault, needed_options
from harness.annex.triage.sentence import CHARS, sentence_of
from harness.annex.triage.session_use import counts_sessions, least_usage, needed_usage, usage_of
from harness.annex.triage.showing import showing_of
from harness.annex.triage.single_runs import how_often, only_in_ways, single_runs
from harness.annex.triage.smallest import Smallest, smallest_failing
from harness.annex.triage.study_request import Learnt, Reproduced, Studied, TriageRequest
from harness.annex.triage.subject import Subject
from harness.annex.triage.time_budget import TimeBudget
from harness.annex.triage.transform.values import weights_of
from harness.core.records.fault import Condition, Fault, Location, ReducedModel, Repetition
from harness.core.records.scenario import PLAIN
from harness.core.records.verdict import Family, Verdict
from harness.core.text.errors import one_line
from harness.core.verdicts.decide import decide
from harness.engine.processes.native_crash import native_crash

INFRASTRUCTURE = frozenset({Family.SKIPPED, Family.MISSING})
"""Verdicts that say nothing about the failure: a missing target, an exception of the harness."""


class FailureStudy(msgspec.Struct, eq=False):
    """Triages one failure, which represents the cells of a group."""

    lab: Lab
    group: FailureGroup
    failure: Failure
    request: TriageRequest
    budget: TimeBudget
    tell: Learnt
    reruns: Reruns
    preceding: tuple[Failure, ...] = ()
    limited: LimitedTarget | None = None
    began: float = msgspec.field(default_factory=time.monotonic)
    trials_before: int = 0

    def __post_init__(self) -> None:
        self.trials_before = self.lab.trials

    def run(self) -> Studied:
        """Return the fault; without a reduced model if the failure cannot be reproduced."""
        failure = self.failure
        if not failure.subjects:
            return self._inconclusive(_NOTHING, f"its model cannot be read: {failure.again.record.reason}")
        if why := _about_a_package(failure):
            return self._inconclusive(_NOTHING, why)
        if failure.generation is not None:
            tried = self._in_single_run()
            if tried is not None:
                return self._only_in_ways(tried)
        if (known := self._known()) is not None:
            return known
        for limited in (*self._lower_limits(), None):
            self.limited = limited
            subject, confirmation = self._confirmed()
            if subject is None:
                return self._inconclusive(confirmation, self._why_gone(confirmation))
            self.tell(f"confirm: fails {_how_often(confirmation)}")
            check = needed_usage(subject, self._check(confirmation.repeats))
            found = self._small(subject, check)
            if found is not None:
                return self._explained(subject, confirmation, found)
        raise AssertionError("without a lower limit, nothing is left to be proven")

    def _known(self) -> Studied | None:
        """Return a fault known at another point of the axes, if a trial shows it here."""
        for known in self.request.known:
            if self.budget.spent:
                break
            if is_same_fault(known, self._check(1), self.request.variations, self.budget):
                self.tell(f"confirm: the fault of {known.fault.representative}, here as well")
                bare = self._bare(known.fault.confirmation)
                names = ("representative", "cells", "trials", "seconds")
                own = {name: getattr(bare, name) for name in names}
                fault = msgspec.structs.replace(known.fault, **own)
                return msgspec.structs.replace(known, fault=fault, failure=self.failure)
        return None

    def _in_single_run(self) -> list[str] | None:
        """Continue with a single run that shows the failure of ways; if none does, return what was tried."""
        tried: list[str] = []
        for one in single_runs(self.failure, self.lab.golden):
            if tried and self.budget.spent:
                break
            failure, self.failure = self.failure, one.failure
            (match,) = self._check(1).matches(one.failure.subjects)
            if match.fails:
                self.tell(f"confirm: it fails in scenario plain, too: {one.words}")
                return None
            self.failure = failure
            tried.append(one.words)
        return tried

    def _only_in_ways(self, tried: Sequence[str]) -> Studied:
        self.tell("confirm: no single run shows it, so its cell is run again")
        confirmation = how_often(self.failure, self.reruns.again, self.budget)
        if confirmation.outcome == "never":
            self.preceding = self.reruns.preceding()
        why = only_in_ways(self.failure, tried)
        if self.preceding:
            return self._inconclusive(
                confirmation, f"it fails only after {len(self.preceding)} other cells: {why}"
            )
        return self._inconclusive(confirmation, f"fails {_how_often(confirmation)}: {why}")

    def _lower_limits(self) -> tuple[LimitedTarget, ...]:
        """Lower the time limits for trials of a hang, as far as the CPU EP is much faster."""
        if self.failure.signature.verdict is not Verdict.HANG:
            return ()
        healthy_s = self.lab.cpu_seconds(self.failure.subjects[0])
        limits = tuple(safe_limits(self.request.limited, healthy_s))
        if limits:
            self.tell(
                f"confirm: the CPU EP takes {healthy_s:.2g} s, so a trial gets {limits[0].limit_s:g} s; "
                "what is found is tried once more with the full limit"
            )
        return limits

    def _small(self, subject: Subject, check: FailureCheck) -> "_Small | None":
        """Locate and reduce; return None if it does not hang with the full time limit."""
        (whole,) = check.matches([subject])
        located = Locator(load(subject), check, self.lab.values, self.tell, self.budget).locate(whole)
        location = located.location
        where = ", ".join(location.op_types[:4])
        self.tell(f"locate: {where}" + ("" if location.exact else f", {len(location.nodes)} nodes together"))
        start = Smallest(
            subject=located.part.subject or subject, match=located.part.match or whole, complete=False
        )
        proven = self._proven(start, check)
        if proven is None:
            return None
        keep = self.request.keep_weights
        found = smallest_failing(proven, check, location, self.budget, self._note, keep_weights=keep)
        if found.subject is not proven.subject:
            proven = self._proven(found, check)
            if proven is None:
                return None
        if check.limit_s is not None:  # the nodes behind may only be slow
            location = msgspec.structs.replace(location, cumulative=None, onwards=None)
        return _Small(smallest=proven, check=check, location=narrowed(location, proven.subject))

    def _proven(self, found: Smallest, check: FailureCheck) -> Smallest | None:
        """Try a model with the full time limit; return None if it then does not fail."""
        if check.limit_s is None:
            return found
        (match,) = self._in_full(check).matches([found.subject])
        if match.fails:
            return msgspec.structs.replace(found, match=match)
        self.tell(f"locate: what took more than {check.limit_s:g} s is slow, and no hang; a higher limit")
        return None

    def _in_full(self, check: FailureCheck) -> FailureCheck:
        return msgspec.structs.replace(check, target=self.request.target, limit_s=None)

    def _explained(self, subject: Subject, confirmation: Repetition, found: "_Small") -> Studied:
        """Reduce what surrounds the smallest model, vary it, and collect everything known."""
        smallest, location = found.smallest, found.location
        check = self._least_use(found, confirmation)
        if check.after:
            note, keep = self._note, self.request.keep_weights
            check = with_smaller_preceding(smallest, check, self.budget, note, keep_weights=keep)
        conditions: tuple[Condition, ...] = ()
        if not self.budget.spent:
            conditions += documented_error(smallest.subject, check, self.failure.record.provider)
        if not self.budget.spent:
            self.tell("explain: one thing at a time is varied", passing=True)
            conditions += explain(smallest.subject, check, self.request.variations, self.budget)
        if not self.budget.spent:
            decomposed = decomposed_operators(smallest.subject, check)
            location = msgspec.structs.replace(location, decomposed=decomposed)
        tried = {(one.kind, one.name, one.value) for one in conditions}
        free = [one for one in self.group.conditions if (one.kind, one.name, one.value) not in tried]
        conditions = (*free, *conditions)
        options = needed_options(self.failure.axes, conditions)
        fault = self._fault(subject, smallest, check, confirmation, location, options)
        match, signature = smallest.match, self.failure.signature
        crash = native_crash(match.seen.printed) if signature.verdict is Verdict.CRASH else None
        fault = msgspec.structs.replace(fault, conditions=conditions, crash=crash)
        fault = msgspec.structs.replace(fault, sentence=sentence_of(fault, showing_of(smallest, check)))
        reproduced = Reproduced(subject=smallest.subject, match=match, check=self._in_full(check))
        return Studied(fault=fault, failure=self.failure, reproduced=reproduced)

    def _least_use(self, found: "_Small", confirmation: Repetition) -> FailureCheck:
        """Use a session as little as possible.

        For a hang, a smaller use counts only if the full limit shows it.
        """
        check = least_usage(found.smallest.subject, found.check, confirmation, self.budget)
        if check.axes != found.check.axes and self._proven(found.smallest, check) is None:
            return found.check
        if usage := usage_of(check.axes):
            self.tell(f"reduce: it fails only {usage.words}")
        return check

    def _confirmed(self) -> tuple[Subject | None, Repetition]:
        """Return the data set that fails, and how often."""
        confirmation = _NOTHING
        for subject in self.failure.subjects:
            confirmation = self._repeated(subject)
            if confirmation.failures:
                return subject, confirmation
        preceding = self.reruns.preceding() if confirmation.outcome == "never" else ()
        self.preceding = preceding
        if 0 < len(preceding) <= MOST_NEEDED:
            self.tell(f"confirm: fails only after {', '.join(one.record.cell for one in preceding)}")
            for subject in self.failure.subjects:
                confirmation = self._repeated(subject)
                if confirmation.failures:
                    return subject, confirmation
        return None, confirmation

    def _repeated(self, subject: Subject) -> Repetition:
        check = self._check(1)

        def attempt(number: int) -> Family | None:
            (seen,) = self.lab.run([check.trial(subject, number)])
            if check.match(subject, seen).fails:
                return Family.FAILED
            return None if seen.record.family in INFRASTRUCTURE else Family.PASSED

        return repeat_failure(attempt, lambda: self.budget.spent)

    def _check(self, repeats: int) -> FailureCheck:
        failure = self.failure
        fresh = counts_sessions(failure.axes)
        # Targets whose processes serve only a few models have the full limit.
        limited = self.limited if not (fresh or self.preceding) else None
        return FailureCheck(
            lab=self.lab,
            signature=failure.signature,
            policy=failure.trial_policy,
            target=self.request.target if limited is None else limited.target.name,
            axes=failure.axes,
            repeats=repeats,
            after=tuple(one.subjects[0] for one in self.preceding),
            fresh=fresh,
            limit_s=None if limited is None else limited.limit_s,
        )

    def _note(self, progress: ReductionProgress) -> None:
        text = f"reduce: {progress.nodes} nodes left, {progress.trials} trials, {progress.transformation}"
        self.tell(text, passing=True)

    def _fault(
        self,
        before: Subject,
        smallest: Smallest,
        check: FailureCheck,
        confirmation: Repetition,
        location: Location,
        options: Sequence[str],
    ) -> Fault:
        failure, subject = self.failure, smallest.subject
        found = () if location.unfinished else location.nodes
        guilty = {name for name, first in original_names(subject).items() if first in found}
        reduced = msgspec.structs.replace(_drawn(subject, before, guilty), complete=smallest.complete)
        preceding = zip(check.after, self.preceding, strict=True)
        scenario = dict(check.axes).get("scenario", PLAIN)
        return msgspec.structs.replace(
            self._bare(confirmation),
            id=fingerprint(reduced, failure.signature, failure.record.provider, options, scenario),
            location=location,
            reduced=reduced,
            preceding_reduced=tuple(_drawn(small, whole.subjects[0], ()) for small, whole in preceding),
            scenario="" if scenario == PLAIN else scenario,
            usage=usage_of(check.axes),
        )

    def _bare(self, confirmation: Repetition) -> Fault:
        failure, record = self.failure, self.failure.record
        return Fault(
            id="",
            sentence="",
            signature=failure.signature,
            target=record.target,
            provider=record.provider,
            representative=record.cell,
            cells=tuple(one.cell for one in self.group.records),
            confirmation=confirmation,
            trials=self.lab.trials - self.trials_before,
            seconds=round(time.monotonic() - self.began, 1),
            preceding=tuple(one.record.cell for one in self.preceding),
            onnxruntime=str(self.request.fingerprint.get("onnxruntime", "")),
            library=library_of(self.request.fingerprint, record.provider),
            unconfirmed=_why_unconfirmed(failure),
            fed=record.fed,
        )

    def _inconclusive(self, confirmation: Repetition, why: str) -> Studied:
        fault = msgspec.structs.replace(
            self._bare(confirmation),
            id="I" + hashlib.sha256(self.failure.record.cell.encode()).hexdigest()[:10],
            inconclusive=one_line(why, CHARS),
            sentence=one_line(f"Inconclusive: {self.failure.record.cell}: {why}", CHARS),
        )
        return Studied(fault=fault, failure=self.failure)

    def _why_gone(self, confirmation: Repetition) -> str:
        again = self.failure.again.record
        if confirmation.outcome == "unknown":
            return f"the target could not be used: {again.verdict}: {again.reason}"
        if len(self.preceding) > MOST_NEEDED:
            return f"it fails only after {len(self.preceding)} other cells in the same process"
        if self.failure.fails_again:
            return "it fails in its own run, but not with one of its data sets in a session of its own"
        return f"it did not fail again in {confirmation.trials} trials; run once more, it is {again.verdict}"


class _Small(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest model, the check that it fails, and the place of the failure in it."""

    smallest: Smallest
    check: FailureCheck
    location: Location


_NOTHING = Repetition(outcome="unknown", trials=0, failures=0)


def _about_a_package(failure: Failure) -> str:
    """Return why one model alone cannot show the failure; empty if it is not about a package."""
    case = failure.again.case
    if case is None or case.sibling is None:
        return ""
    if case.package is not None:
        return f"it is about a selection, not about one model: {failure.record.reason}"
    return (
        f"it is about two variants, this one and {case.sibling.reference}; to study this one by itself, "
        "list its folder under `folders` of a matrix"
    )


def _how_often(confirmation: Repetition) -> str:
    return f"in {confirmation.failures} of {confirmation.trials} trials"


def _drawn(subject: Subject, before: Subject, guilty: Collection[str]) -> ReducedModel:
    return msgspec.structs.replace(drawn(subject, before, guilty), weights=weights_of(load(subject)))


def _why_unconfirmed(failure: Failure) -> str:
    """Return why float64 does not confirm that wrong values are the EP's fault; empty where it does."""
    why = decide(failure.record, failure.policy).unconfirmed
    return f"float64 does not confirm it: {why}" if why else ""
