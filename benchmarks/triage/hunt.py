"""One planted fault, located and reduced by triage's own steps, in a lab that serves many faults."""

import math
import time

import msgspec

from benchmarks.triage.ep import NAME
from harness.annex.triage.failure_check import BY_NOISE, FailureCheck
from harness.annex.triage.lab import Lab, Trial
from harness.annex.triage.locate import Locator, narrowed
from harness.annex.triage.net import load
from harness.annex.triage.net_size import node_count
from harness.annex.triage.signature import signature_of
from harness.annex.triage.smallest import Smallest, smallest_failing
from harness.annex.triage.subject import Subject
from harness.annex.triage.time_budget import TimeBudget
from harness.core.comparison.policy import Policy
from harness.core.records.fault import Signature
from harness.core.records.verdict import Family


class NumberedCheck(FailureCheck, frozen=True, kw_only=True):
    """A check whose trials are those of one fault: a lab keeps results by what is in a trial.

    Attributes:
        first: Number of the first repetition.
    """

    first: int

    def trial(self, subject: Subject, number: int = 0) -> Trial:
        """Return the trial of a subject."""
        return super().trial(subject, self.first + number)


class Hunted(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one fault.

    Attributes:
        judged_by: ``tolerance`` where a cell fails without a word in the matrix, ``noise`` where its policy
            has to ask for limits of noise.
        signature: Of the model's failure.
        nodes: Names of the located nodes.
        exact: Whether location names one node.
        locating: Trials to locate.
        allowed: Trials that may be taken for that.
        reducing: Trials to reduce.
        nodes_before: Nodes of the model.
        nodes_after: Nodes of the smallest model.
        bytes_after: Its bytes.
        verdict_after: Of the smallest model, tried once more.
        complete: Whether nothing could make it smaller.
        seconds: What all of that took.
    """

    judged_by: str
    signature: Signature
    nodes: tuple[str, ...]
    exact: bool
    locating: int
    allowed: int
    reducing: int
    nodes_before: int
    nodes_after: int
    bytes_after: int
    verdict_after: str
    complete: bool
    seconds: float


def hunt(
    lab: Lab, subject: Subject, number: int, repeats: int = 1, known: Signature | None = None
) -> Hunted | None:
    """Locate and reduce the fault that the stand-in has now.

    Args:
        lab: With the stand-in as a target.
        subject: The model.
        number: Of the fault in its lab.
        repeats: Trials of each candidate before it counts as healthy.
        known: The failure's signature; that of the first trial that fails if left out.

    Returns:
        None if the model passes.
    """
    started = time.monotonic()
    first = number << 12
    check = _check_of(lab, subject, first, repeats, known)
    if check is None:
        return None
    (whole,) = check.matches([subject])
    net = load(subject)
    before = lab.trials
    located = Locator(net, check, lab.values, lambda _: None, TimeBudget(None)).locate(whole)
    locating = lab.trials - before
    start = Smallest(
        subject=located.part.subject or subject, match=located.part.match or whole, complete=False
    )
    found = smallest_failing(start, check, located.location, TimeBudget(None), lambda _: None)
    smallest = found.subject
    reducing = lab.trials - before - locating
    location = narrowed(located.location, smallest)
    last = msgspec.structs.replace(check, first=first + (1 << 11))
    (match,) = last.matches([smallest])
    decided = check.policy if match.fails else msgspec.structs.replace(BY_NOISE)
    return Hunted(
        judged_by=check.policy.judge_by,
        signature=check.signature,
        nodes=location.nodes,
        exact=location.exact,
        locating=locating,
        allowed=allowed_trials(len(net.nodes)),
        reducing=reducing,
        nodes_before=len(net.nodes),
        nodes_after=node_count(load(smallest)),
        bytes_after=len(smallest.model),
        verdict_after=signature_of(match.seen.record, decided, ()).verdict,
        complete=found.complete,
        seconds=round(time.monotonic() - started, 2),
    )


def allowed_trials(nodes: int) -> int:
    """Return how many trials may be taken to locate a failure among some nodes."""
    return math.floor(4 * math.log2(max(2, nodes)) + 20)


def _check_of(
    lab: Lab, subject: Subject, first: int, repeats: int, known: Signature | None
) -> NumberedCheck | None:
    """What failing means: by the default policy or, if that passes the model, by limits of noise."""
    trials = [Trial(subject=subject, target=NAME, number=first + number) for number in range(repeats)]
    seen = lab.run(trials)
    for policy in (Policy(), BY_NOISE):
        for one in seen:
            signature = signature_of(one.record, policy, ())
            if signature.verdict.family is Family.FAILED and signature == (known or signature):
                return NumberedCheck(
                    lab=lab,
                    signature=signature,
                    policy=policy,
                    target=NAME,
                    axes=(),
                    repeats=repeats,
                    first=first,
                )
    return None
