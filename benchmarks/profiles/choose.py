"""Choose cases: greedily those with most new faults for their time and bytes; check with held-out faults."""

import hashlib
import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from benchmarks.profiles.finding import Finding
from benchmarks.profiles.plans import PLANS, SCENARIOS, Plan, feature_of, in_scope
from harness.annex.conformance.freeze import CaseCandidate
from harness.core.records.scenario import SCENARIOS as HOW

BUDGET_BYTES = 985_000
"""Of the plain cases."""

ALL_BYTES = 997_000
"""With the data of scenarios: an archive has at most a million, and an estimate is not exact for these."""

BUDGET_TIME = 0.1
"""Part of the whole corpus's seconds that a profile takes at most."""

COVERED = 2
"""Cases that show each fault, if there are so many and limits allow."""

PLAYED = 3
"""Cases that play each scenario at most: those with most operators for their bytes, where it runs."""

MORE_DATA = 3
"""Bytes of a case whose scenario has data of its own, at most, in those of the plain case."""

Ran = Collection[tuple[str, str, str]]
"""Suite, model and scenario of what a real EP passes."""

Shown = Mapping[tuple[str, str], frozenset[str]]
"""Suite and model -> all faults that the case shows, real ones included."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What the plain cases of a profile take at most.

    Attributes:
        nbytes: Bytes in its archive.
        seconds: Seconds on the CPU EP.
    """

    nbytes: float
    seconds: float


def limits_of(corpus: Mapping[tuple[str, str], float]) -> Limits:
    """Return the limits of each profile, from the seconds of the whole corpus."""
    return Limits(nbytes=BUDGET_BYTES, seconds=BUDGET_TIME * sum(corpus.values()))


def candidates(findings: Iterable[Finding], plan: Plan, shown: Shown) -> list[Finding]:
    """Return the cases that a profile may have: in scope, of few features, that show a fault."""
    return [
        one
        for one in findings
        if not one.why_not and shown[one.key] and in_scope(one, plan) and feature_of(one, plan) is not None
    ]


def cover(
    found: Sequence[Finding],
    shown: Shown,
    limits: Limits,
    kept: Collection[tuple[str, str]] = (),
    covered: int = COVERED,
) -> list[Finding]:
    """Return cases that together show every fault ``covered`` times, as far as the limits allow.

    The next one is always the one with most new faults for its cost (greedy set cover with costs, Chvatal
    1979, whose cost is within the harmonic number of the best). The cost is the sum of the parts of both
    limits that it takes. What shows a known fault again is another form of it, which finds more of the faults
    that nobody has planted; it comes second, with what is left.
    """
    chosen = [one for one in found if one.key in kept]
    times = Counter(fault for one in chosen for fault in shown[one.key])
    spent = Limits(nbytes=sum(one.nbytes for one in chosen), seconds=sum(one.seconds for one in chosen))
    taken = {one.key for one in chosen}
    for wanted in range(1, covered + 1):
        # The worth of a case only falls, so an old one is a bound: only the first is reckoned anew.
        queue = [(-float("inf"), one.key, one) for one in found if one.key not in taken]
        while queue:
            _, key, one = heapq.heappop(queue)
            new = sum(times[fault] < wanted for fault in shown[key])
            after = Limits(nbytes=spent.nbytes + one.nbytes, seconds=spent.seconds + one.seconds)
            if not new or after.nbytes > limits.nbytes or after.seconds > limits.seconds:
                continue
            worth = -new / (one.nbytes / limits.nbytes + one.seconds / limits.seconds)
            if queue and (worth, key) > queue[0][:2]:
                heapq.heappush(queue, (worth, key, one))
                continue
            chosen.append(one)
            taken.add(key)
            times.update(shown[key])
            spent = after
    return chosen


def entries(label: str, chosen: Sequence[Finding], found: Sequence[Finding], ran: Ran) -> list[CaseCandidate]:
    """Return a profile's entries, with the scenarios that some of its cases play.

    Args:
        label: The profile.
        chosen: Its cases.
        found: Its candidates: a scenario is played by another one where it runs in too few chosen ones.
        ran: The scenarios that run.
    """
    plan = PLANS[label]
    plain = [
        CaseCandidate(suite=one.suite, model=one.model, feature=feature_of(one, plan) or "core")
        for one in chosen
    ]
    keys = {one.key for one in chosen}
    rich = sorted(found, key=lambda one: (one.key not in keys, -len(one.ops) / (2_000 + one.nbytes), one.key))
    room = ALL_BYTES - sum(one.nbytes for one in chosen)
    played: list[CaseCandidate] = []
    for scenario, feature in SCENARIOS.items():
        left = PLAYED
        for one in (one for one in rich if feature_of(one, plan) == feature):
            # Data of a scenario's own come with the model again.
            own = MORE_DATA * one.nbytes if HOW[scenario].other_data else one.nbytes * (one.key not in keys)
            if left and own <= room and (*one.key, scenario) in ran:
                played.append(
                    CaseCandidate(suite=one.suite, model=one.model, scenario=scenario, feature=scenario)
                )
                keys |= set() if HOW[scenario].other_data else {one.key}
                room -= own
                left -= 1
    return sorted([*plain, *played], key=lambda one: (one.suite, one.model, one.scenario))


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A check with faults that the choice did not know.

    Attributes:
        what: Which faults were held out.
        faults: How many of them the candidates show.
        found: How many of them the chosen cases show.
    """

    what: str
    faults: int
    found: int


def held_out(
    found: Sequence[Finding],
    shown: Shown,
    limits: Limits,
    kept: Collection[tuple[str, str]],
    covered: int = COVERED,
) -> list[Held]:
    """Choose without some faults, and count how many of just those are found."""
    everything = {fault for one in found for fault in shown[one.key]}
    groups = {f"half {half}": {one for one in everything if _half(one) == half} for half in (0, 1)}
    for kind in sorted({one.partition(":")[0] for one in everything}):
        groups[f"kind {kind}"] = {one for one in everything if one.startswith(f"{kind}:")}
    results = []
    for what, out in groups.items():
        known = {one.key: shown[one.key] - out for one in found}
        chosen = cover(found, known, limits, kept, covered)
        seen = {fault for one in chosen for fault in shown[one.key]} & out
        results.append(Held(what=what, faults=len(out), found=len(seen)))
    return results


def _half(fault: str) -> int:
    return hashlib.sha256(fault.encode()).digest()[0] % 2
