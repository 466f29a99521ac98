"""One failure, from its confirmation to a fault: the steps of a triage in their order."""

import hashlib
import time
from collections.abc import Collection, Mapping, Sequence

import msgspec

from harness.core.errors import one_line
from harness.core.fault import Confirmation, Fault, Location, ReducedModel
from harness.core.scenario import PLAIN
from harness.core.verdict import Family, Verdict
from harness.triage.budget import Budget
from harness.triage.check import Check, worst_row
from harness.triage.confirm import confirm
from harness.triage.drawn import drawn, fingerprint
from harness.triage.explain import decomposed_operators, explain
from harness.triage.failure import Failure
from harness.triage.groups import Group
from harness.triage.hang_limits import LimitedTarget, safe_limits
from harness.triage.lab import Lab
from harness.triage.locate import Locator
from harness.triage.narrowed import narrowed, origins_of
from harness.triage.native import native_crash
from harness.triage.net import load
from harness.triage.preceding import MOST_NEEDED
from harness.triage.preceding_model import with_smaller_preceding
from harness.triage.sentence import CHARS, sentence_of
from harness.triage.settings import Progress
from harness.triage.single_runs import how_often, only_in_ways, single_runs
from harness.triage.smallest import Smallest, smallest_failing
from harness.triage.studied import Learnt, Reproduced, Request, Reruns, Studied
from harness.triage.subject import Subject
from harness.triage.transform.values import weights_of
from harness.triage.usage import counts_sessions, least_usage, needed_usage, usage_of

INFRASTRUCTURE = frozenset({Family.SKIPPED, Family.MISSING})
"""What says nothing about the failure: a target that is not there, an exception of the harness."""


class Study:
    """Triages one failure.

    Args:
        lab: Runs the trials.
        group: The cells that the failure stands for.
        failure: The representative.
        request: What is wanted.
        budget: Limit of time.
        tell: Receives what was learnt, one line each.
        reruns: Runs its cell once more.
    """

    def __init__(
        self,
        lab: Lab,
        group: Group,
        failure: Failure,
        request: Request,
        budget: Budget,
        tell: Learnt,
        reruns: Reruns,
    ) -> None:
        self._lab = lab
        self._group = group
        self._failure = failure
        self._request = request
        self._budget = budget
        self._tell = tell
        self._reruns = reruns
        self._preceding: tuple[Failure, ...] = ()
        self._limited: LimitedTarget | None = None
        self._began = time.monotonic()
        self._trials_before = lab.trials

    def run(self) -> Studied:
        """Return the fault; without a reduced model if the failure cannot be reproduced."""
        failure = self._failure
        if not failure.subjects:
            return self._inconclusive(_NOTHING, f"its model cannot be read: {failure.again.record.reason}")
        if failure.generation is not None:
            tried = self._in_single_run()
            if tried is not None:
                return self._only_in_ways(tried)
        for limited in (*self._lower_limits(), None):
            self._limited = limited
            subject, confirmation = self._confirmed()
            if subject is None:
                return self._inconclusive(confirmation, self._why_gone(confirmation))
            self._tell(f"confirm: fails {_how_often(confirmation)}")
            check = needed_usage(subject, self._check(confirmation.repeats))
            found = self._small(subject, check)
            if found is not None:
                return self._explained(subject, confirmation, found)
        raise AssertionError("without a lower limit, nothing is left to be proven")

    def _in_single_run(self) -> list[str] | None:
        """Go on with a single run that shows the failure of ways; if none does, return what was tried."""
        tried: list[str] = []
        for one in single_runs(self._failure, self._lab.golden):
            if tried and self._budget.spent:
                break
            failure, self._failure = self._failure, one.failure
            (match,) = self._check(1).matches(one.failure.subjects)
            if match.fails:
                self._tell(f"confirm: it fails in scenario plain, too: {one.words}")
                return None
            self._failure = failure
            tried.append(one.words)
        return tried

    def _only_in_ways(self, tried: Sequence[str]) -> Studied:
        self._tell("confirm: no single run shows it, so its cell is run again")
        confirmation = how_often(self._failure, self._reruns.again, self._budget)
        if confirmation.outcome == "never":
            self._preceding = self._reruns.preceding()
        why = only_in_ways(self._failure, tried)
        if self._preceding:
            return self._inconclusive(
                confirmation, f"it fails only after {len(self._preceding)} other cells: {why}"
            )
        return self._inconclusive(confirmation, f"fails {_how_often(confirmation)}: {why}")

    def _lower_limits(self) -> tuple[LimitedTarget, ...]:
        """Lower the limits of time for trials of a hang, as far as the CPU EP is much faster."""
        if self._failure.signature.verdict is not Verdict.HANG:
            return ()
        healthy_s = self._lab.cpu_seconds(self._failure.subjects[0])
        limits = tuple(safe_limits(self._request.limited, healthy_s))
        if limits:
            self._tell(
                f"confirm: the CPU EP takes {healthy_s:.2g} s, so a trial gets {limits[0].limit_s:g} s; "
                "what is found is tried once more with the full limit"
            )
        return limits

    def _small(self, subject: Subject, check: Check) -> "_Small | None":
        """Locate and reduce; None if it is no hang with the full limit of time."""
        (whole,) = check.matches([subject])
        located = Locator(load(subject), check, self._lab.values, self._tell, self._budget).locate(whole)
        location = located.location
        where = ", ".join(location.op_types[:4])
        self._tell(f"locate: {where}" + ("" if location.exact else f", {len(location.nodes)} nodes together"))
        start = Smallest(
            subject=located.part.subject or subject, match=located.part.match or whole, complete=False
        )
        proven = self._proven(start, check)
        if proven is None:
            return None
        keep = self._request.keep_weights
        found = smallest_failing(proven, check, location, self._budget, self._note, keep_weights=keep)
        if found.subject is not proven.subject:
            proven = self._proven(found, check)
            if proven is None:
                return None
        if check.limit_s is not None:  # it may be that the nodes behind are only slow
            location = msgspec.structs.replace(location, cumulative=None, onwards=None)
        return _Small(smallest=proven, check=check, location=narrowed(location, proven.subject))

    def _proven(self, found: Smallest, check: Check) -> Smallest | None:
        """Try a model with the full limit of time; None if it does not fail then."""
        if check.limit_s is None:
            return found
        (match,) = self._in_full(check).matches([found.subject])
        if match.fails:
            return msgspec.structs.replace(found, match=match)
        self._tell(f"locate: what took more than {check.limit_s:g} s is slow, and no hang; a higher limit")
        return None

    def _in_full(self, check: Check) -> Check:
        return msgspec.structs.replace(check, target=self._request.target, limit_s=None)

    def _explained(self, subject: Subject, confirmation: Confirmation, found: "_Small") -> Studied:
        """Reduce what surrounds the smallest model, vary it, and tell all that is known."""
        smallest, location = found.smallest, found.location
        check = self._least_use(found, confirmation)
        if check.after:
            note, keep = self._note, self._request.keep_weights
            check = with_smaller_preceding(smallest, check, self._budget, note, keep_weights=keep)
        conditions = self._group.conditions
        if not self._budget.spent:
            self._tell("explain: one thing at a time is varied", passing=True)
            conditions += explain(smallest.subject, check, self._request.variations, self._budget)
            decomposed = decomposed_operators(smallest.subject, check)
            location = msgspec.structs.replace(location, decomposed=decomposed)
        fault = self._fault(subject, smallest, check, confirmation, location)
        match, signature = smallest.match, self._failure.signature
        crash = native_crash(match.seen.printed) if signature.verdict is Verdict.CRASH else None
        fault = msgspec.structs.replace(fault, conditions=conditions, crash=crash)
        ended = match.seen.record.ended
        message = "" if ended is None else ended.message
        fault = msgspec.structs.replace(fault, sentence=sentence_of(fault, worst_row(match), message))
        reproduced = Reproduced(subject=smallest.subject, match=match, check=self._in_full(check))
        return Studied(fault=fault, failure=self._failure, reproduced=reproduced)

    def _least_use(self, found: "_Small", confirmation: Confirmation) -> Check:
        """Use a session as little as possible; a smaller use of a hang counts if the full limit shows it."""
        check = least_usage(found.smallest.subject, found.check, confirmation, self._budget)
        if check.axes != found.check.axes and self._proven(found.smallest, check) is None:
            return found.check
        if usage := usage_of(check.axes):
            self._tell(f"reduce: it fails only {usage.words}")
        return check

    def _confirmed(self) -> tuple[Subject | None, Confirmation]:
        """Return the data set that fails, and how often."""
        confirmation = _NOTHING
        for subject in self._failure.subjects:
            confirmation = self._repeated(subject)
            if confirmation.failures:
                return subject, confirmation
        preceding = self._reruns.preceding() if confirmation.outcome == "never" else ()
        self._preceding = preceding
        if 0 < len(preceding) <= MOST_NEEDED:
            self._tell(f"confirm: fails only after {', '.join(one.record.cell for one in preceding)}")
            for subject in self._failure.subjects:
                confirmation = self._repeated(subject)
                if confirmation.failures:
                    return subject, confirmation
        return None, confirmation

    def _repeated(self, subject: Subject) -> Confirmation:
        check = self._check(1)

        def attempt(number: int) -> Family | None:
            (seen,) = self._lab.run([check.trial(subject, number)])
            if check.match(subject, seen).fails:
                return Family.FAILED
            return None if seen.record.family in INFRASTRUCTURE else Family.PASSED

        return confirm(attempt)

    def _check(self, repeats: int) -> Check:
        failure = self._failure
        fresh = counts_sessions(failure.axes)
        # Targets whose processes serve only a few models have the full limit.
        limited = self._limited if not (fresh or self._preceding) else None
        return Check(
            lab=self._lab,
            signature=failure.signature,
            policy=failure.trial_policy,
            target=self._request.target if limited is None else limited.target.name,
            axes=failure.axes,
            repeats=repeats,
            after=tuple(one.subjects[0] for one in self._preceding),
            fresh=fresh,
            limit_s=None if limited is None else limited.limit_s,
        )

    def _note(self, progress: Progress) -> None:
        text = f"reduce: {progress.nodes} nodes left, {progress.trials} trials, {progress.transformation}"
        self._tell(text, passing=True)

    def _fault(
        self,
        before: Subject,
        smallest: Smallest,
        check: Check,
        confirmation: Confirmation,
        location: Location,
    ) -> Fault:
        failure, subject = self._failure, smallest.subject
        guilty = {name for name, first in origins_of(subject).items() if first in location.nodes}
        reduced = msgspec.structs.replace(_drawn(subject, before, guilty), complete=smallest.complete)
        preceding = zip(check.after, self._preceding, strict=True)
        scenario = dict(check.axes).get("scenario", PLAIN)
        return msgspec.structs.replace(
            self._bare(confirmation),
            id=fingerprint(reduced, failure.signature, failure.record.provider),
            location=location,
            reduced=reduced,
            preceding_reduced=tuple(_drawn(small, whole.subjects[0], ()) for small, whole in preceding),
            scenario="" if scenario == PLAIN else scenario,
            usage=usage_of(check.axes),
        )

    def _bare(self, confirmation: Confirmation) -> Fault:
        failure, record = self._failure, self._failure.record
        return Fault(
            id="",
            sentence="",
            signature=failure.signature,
            target=record.target,
            provider=record.provider,
            representative=record.cell,
            cells=tuple(one.cell for one in self._group.records),
            confirmation=confirmation,
            trials=self._lab.trials - self._trials_before,
            seconds=round(time.monotonic() - self._began, 1),
            preceding=tuple(one.record.cell for one in self._preceding),
            onnxruntime=str(self._request.fingerprint.get("onnxruntime", "")),
            library=_library(self._request.fingerprint),
        )

    def _inconclusive(self, confirmation: Confirmation, why: str) -> Studied:
        fault = msgspec.structs.replace(
            self._bare(confirmation),
            id="I" + hashlib.sha256(self._failure.record.cell.encode()).hexdigest()[:10],
            inconclusive=one_line(why, CHARS),
            sentence=one_line(f"Inconclusive: {self._failure.record.cell}: {why}", CHARS),
        )
        return Studied(fault=fault, failure=self._failure)

    def _why_gone(self, confirmation: Confirmation) -> str:
        again = self._failure.again.record
        if confirmation.outcome == "unknown":
            return f"the target could not be used: {again.verdict}: {again.reason}"
        if len(self._preceding) > MOST_NEEDED:
            return f"it fails only after {len(self._preceding)} other cells in the same process"
        if self._failure.fails_again:
            return "it fails in its own run, but not with one of its data sets in a session of its own"
        return f"it did not fail again in {confirmation.trials} trials; run once more, it is {again.verdict}"


class _Small(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest model, the check that it fails, and where the failure is in it."""

    smallest: Smallest
    check: Check
    location: Location


_NOTHING = Confirmation(outcome="unknown", trials=0, failures=0)


def _how_often(confirmation: Confirmation) -> str:
    return f"in {confirmation.failures} of {confirmation.trials} trials"


def _drawn(subject: Subject, before: Subject, guilty: Collection[str]) -> ReducedModel:
    return msgspec.structs.replace(drawn(subject, before, guilty), weights=weights_of(load(subject)))


def _library(fingerprint: Mapping[str, object]) -> str:
    """Return the version of the EP: that of its plugin, else of the onnxruntime that it is a part of."""
    plugin = fingerprint.get("plugin")
    if isinstance(plugin, Mapping) and plugin.get("version"):
        return str(plugin["version"])
    version = fingerprint.get("onnxruntime")
    return f"of onnxruntime {version}" if version else ""
