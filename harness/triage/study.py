"""One failure, from its confirmation to a fault: the steps of a triage in their order."""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from harness.core.errors import one_line
from harness.core.fault import Condition, Confirmation, Fault, Location
from harness.core.verdict import Family, Verdict
from harness.triage.budget import Budget
from harness.triage.check import Check, Match, worst_row
from harness.triage.confirm import confirm
from harness.triage.drawn import drawn, fingerprint
from harness.triage.explain import TargetVariation, decomposed_operators, explain
from harness.triage.failure import Failure
from harness.triage.groups import Group
from harness.triage.lab import Lab
from harness.triage.locate import Locator
from harness.triage.native import native_crash
from harness.triage.net import load
from harness.triage.preceding import MOST_NEEDED
from harness.triage.replaced import weights_of
from harness.triage.sentence import sentence_of
from harness.triage.settings import Progress
from harness.triage.smallest import Smallest, smallest_failing
from harness.triage.subject import Subject

INFRASTRUCTURE = frozenset({Family.SKIPPED, Family.MISSING})
"""What says nothing about the failure: a target that is not there, an exception of the harness."""


class Learnt(Protocol):
    """Receives what was learnt about a failure."""

    def __call__(self, text: str, *, passing: bool = False) -> None:
        """Take one line; a passing one is of interest only until the next."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a triage is asked for.

    Attributes:
        target: Name of the target in the lab.
        variations: Other targets on which the reduced model is tried.
        fingerprint: Environment of the target.
        keep_weights: Whether reduced models keep the weights of their models.
    """

    target: str
    variations: tuple[TargetVariation, ...] = ()
    fingerprint: Mapping[str, object] = {}
    keep_weights: bool = False


class Reproduced(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest model of a fault.

    Attributes:
        subject: The model with its inputs.
        match: What it gave.
        check: The check that it fails.
        preceding: Cells whose models run before it.
    """

    subject: Subject
    match: Match
    check: Check
    preceding: tuple[Failure, ...] = ()


class Studied(msgspec.Struct, frozen=True, kw_only=True):
    """A fault with what its bundle needs.

    Attributes:
        fault: The fault, without a bundle.
        failure: The failure that was triaged.
        reproduced: Its smallest model; None if the failure did not appear again.
    """

    fault: Fault
    failure: Failure
    reproduced: Reproduced | None = None


class Study:
    """Triages one failure.

    Args:
        lab: Runs the trials.
        group: The cells that the failure stands for.
        failure: The representative.
        request: What is wanted.
        budget: Limit of time.
        tell: Receives what was learnt, one line each.
        find_preceding: Finds the cells without which the failure does not appear.
    """

    def __init__(
        self,
        lab: Lab,
        group: Group,
        failure: Failure,
        request: Request,
        budget: Budget,
        tell: Learnt,
        find_preceding: Callable[[], tuple[Failure, ...]] = tuple,
    ) -> None:
        self._lab = lab
        self._group = group
        self._failure = failure
        self._request = request
        self._budget = budget
        self._tell = tell
        self._find_preceding = find_preceding
        self._preceding: tuple[Failure, ...] = ()
        self._began = time.monotonic()
        self._trials_before = lab.trials

    def run(self) -> Studied:
        """Return the fault; without a reduced model if the failure cannot be reproduced."""
        failure = self._failure
        if not failure.subjects:
            return self._inconclusive(_NOTHING, f"its model cannot be read: {failure.again.record.reason}")
        subject, confirmation = self._confirmed()
        if subject is None:
            return self._inconclusive(confirmation, self._why_gone(confirmation))
        check = self._check(confirmation.repeats)
        (whole,) = check.matches([subject])
        self._tell(f"confirm: fails {_how_often(confirmation)}")
        locator = Locator(load(subject), check, self._lab.values, self._tell, self._budget)
        located = locator.locate(whole)
        location = located.location
        where = ", ".join(location.op_types[:4])
        self._tell(f"locate: {where}" + ("" if location.exact else f", {len(location.nodes)} nodes together"))
        start = Smallest(
            subject=located.part.subject or subject, match=located.part.match or whole, complete=False
        )
        found = smallest_failing(
            start, check, location, self._budget, self._note, keep_weights=self._request.keep_weights
        )
        smallest, match = found.subject, found.match
        location = narrowed(location, smallest)
        conditions: tuple[Condition, ...] = ()
        if not self._budget.spent:
            self._tell("explain: one thing at a time is varied", passing=True)
            conditions = explain(smallest, check, self._request.variations, self._budget)
            decomposed = decomposed_operators(smallest, check)
            location = msgspec.structs.replace(location, decomposed=decomposed)
        fault = self._fault(subject, smallest, confirmation, location, conditions, complete=found.complete)
        if failure.signature.verdict is Verdict.CRASH:
            fault = msgspec.structs.replace(fault, crash=native_crash(match.seen.printed))
        ended = match.seen.record.ended
        message = "" if ended is None else ended.message
        fault = msgspec.structs.replace(fault, sentence=sentence_of(fault, worst_row(match), message))
        reproduced = Reproduced(subject=smallest, match=match, check=check, preceding=self._preceding)
        return Studied(fault=fault, failure=failure, reproduced=reproduced)

    def _confirmed(self) -> tuple[Subject | None, Confirmation]:
        """The data set that fails, and how often."""
        confirmation = _NOTHING
        for subject in self._failure.subjects:
            confirmation = self._repeated(subject)
            if confirmation.failures:
                return subject, confirmation
        preceding = self._find_preceding() if confirmation.outcome == "never" else ()
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
        return Check(
            lab=self._lab,
            signature=failure.signature,
            policy=failure.trial_policy,
            target=self._request.target,
            axes=failure.axes,
            repeats=repeats,
            after=tuple(one.subjects[0] for one in self._preceding),
        )

    def _note(self, progress: Progress) -> None:
        text = f"reduce: {progress.nodes} nodes left, {progress.trials} trials, {progress.transformation}"
        self._tell(text, passing=True)

    def _fault(
        self,
        before: Subject,
        smallest: Subject,
        confirmation: Confirmation,
        location: Location,
        conditions: Sequence[Condition],
        *,
        complete: bool,
    ) -> Fault:
        failure = self._failure
        guilty = {
            smallest_name for smallest_name, first in _origins(smallest).items() if first in location.nodes
        }
        reduced = msgspec.structs.replace(
            drawn(smallest, before, guilty),
            complete=complete,
            weights=weights_of(load(smallest)),
        )
        scenario = dict(failure.axes).get("scenario", "plain")
        return msgspec.structs.replace(
            self._bare(confirmation),
            id=fingerprint(reduced, failure.signature, failure.record.provider),
            location=location,
            reduced=reduced,
            conditions=tuple(conditions),
            scenario="" if scenario == "plain" else scenario,
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
            inconclusive=one_line(why),
            sentence=one_line(f"Inconclusive: {self._failure.record.cell}: {why}"),
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


def narrowed(location: Location, smallest: Subject) -> Location:
    """Return a location with those of its nodes that the smallest model still has."""
    left = set(_origins(smallest).values())
    kept = [index for index, name in enumerate(location.nodes) if name in left]
    if not kept or len(kept) == len(location.nodes):
        return location
    names = tuple(location.nodes[index] for index in kept)
    return msgspec.structs.replace(
        location,
        nodes=names,
        op_types=tuple(location.op_types[index] for index in kept),
        exact=len(kept) == 1,
        fused=names if location.fused and len(kept) > 1 else (),
    )


_NOTHING = Confirmation(outcome="unknown", trials=0, failures=0)


def _how_often(confirmation: Confirmation) -> str:
    return f"in {confirmation.failures} of {confirmation.trials} trials"


def _origins(subject: Subject) -> dict[str, str]:
    """Name of each node -> its name in the model that the reduction began with."""
    return {node.name: subject.origins.get(node.name, node.name) for node in load(subject).nodes}


def _library(fingerprint: Mapping[str, object]) -> str:
    """Version of the EP: that of its plugin, else of the onnxruntime that it is a part of."""
    plugin = fingerprint.get("plugin")
    if isinstance(plugin, Mapping) and plugin.get("version"):
        return str(plugin["version"])
    version = fingerprint.get("onnxruntime")
    return f"of onnxruntime {version}" if version else ""
