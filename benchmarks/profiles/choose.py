"""Choose cases: greedily those with most new faults for their bytes; check with held-out faults."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from benchmarks.profiles.finding import Finding
from benchmarks.profiles.plans import PLANS, SCENARIOS, Plan, feature_of, in_scope

BUDGET_BYTES = 880_000
"""Of the estimate: an archive has at most a million, and the estimate leaves out some headers."""

COVERED = 2
"""Cases that show each fault, if there are so many."""

PLAYED = 3
"""Core cases that each scenario plays: those with most operators for their bytes, among those where it runs."""

Ran = Collection[tuple[str, str, str]]
"""Suite, model and scenario of what a real EP passes."""

Shown = Mapping[tuple[str, str], frozenset[str]]
"""Suite and model -> all faults that the case shows, real ones included."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One case of a selection.

    Attributes:
        suite: Its suite.
        model: Its model.
        scenario: Its scenario.
        feature: ``core`` or a feature.
    """

    suite: str
    model: str
    scenario: str = "plain"
    feature: str = "core"

    @property
    def key(self) -> tuple[str, str]:
        """Suite and model."""
        return self.suite, self.model


def candidates(findings: Iterable[Finding], plan: Plan, shown: Shown) -> list[Finding]:
    """Return the cases that a profile may have: in scope, of one feature at most, that show a fault."""
    return [
        one
        for one in findings
        if not one.why_not and shown[one.key] and in_scope(one, plan) and feature_of(one, plan) is not None
    ]


def cover(found: Sequence[Finding], shown: Shown, kept: Collection[tuple[str, str]] = ()) -> list[Finding]:
    """Return cases that together show every fault ``COVERED`` times, as far as the bytes allow.

    The next one is always the one with most new faults for its bytes (greedy set cover with costs,
    Chvatal 1979, whose cost is within the harmonic number of the best). What shows a known fault again
    is another form of it, which finds more of the faults that nobody has planted.
    """
    chosen = [one for one in found if one.key in kept]
    times = Counter(fault for one in chosen for fault in shown[one.key])
    for wanted in range(1, COVERED + 1):
        taken = {one.key for one in chosen}
        room = BUDGET_BYTES - sum(one.nbytes for one in chosen)
        left = [one for one in found if one.key not in taken]
        while left:
            new = {one.key: sum(times[fault] < wanted for fault in shown[one.key]) for one in left}
            left = [one for one in left if new[one.key] and one.nbytes <= room]
            if not left:
                break
            best = max(left, key=lambda one: (new[one.key] / one.nbytes, one.key))
            chosen.append(best)
            times.update(shown[best.key])
            room -= best.nbytes
            left.remove(best)
    return chosen


def entries(label: str, chosen: Sequence[Finding], found: Sequence[Finding], ran: Ran) -> list[Entry]:
    """Return a profile's entries, with the scenarios that some core cases play.

    Args:
        label: The profile.
        chosen: Its cases.
        found: Its candidates: a scenario is played by another one where it runs in too few chosen ones.
        ran: The scenarios that run.
    """
    plan = PLANS[label]
    plain = [
        Entry(suite=one.suite, model=one.model, feature=feature_of(one, plan) or "core") for one in chosen
    ]
    keys = {one.key for one in chosen}
    core = [one for one in found if not feature_of(one, plan)]
    rich = sorted(core, key=lambda one: (one.key not in keys, -len(one.ops) / (2_000 + one.nbytes), one.key))
    played = [
        Entry(suite=one.suite, model=one.model, scenario=scenario, feature=scenario)
        for scenario in SCENARIOS
        for one in [one for one in rich if (*one.key, scenario) in ran][:PLAYED]
    ]
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


def held_out(found: Sequence[Finding], shown: Shown, kept: Collection[tuple[str, str]]) -> list[Held]:
    """Choose without some faults, and count how many of just those are found."""
    everything = {fault for one in found for fault in shown[one.key]}
    groups = {f"half {half}": {one for one in everything if _half(one) == half} for half in (0, 1)}
    for kind in sorted({one.partition(":")[0] for one in everything}):
        groups[f"kind {kind}"] = {one for one in everything if one.startswith(f"{kind}:")}
    results = []
    for what, out in groups.items():
        known = {one.key: shown[one.key] - out for one in found}
        chosen = cover(found, known, kept)
        seen = {fault for one in chosen for fault in shown[one.key]} & out
        results.append(Held(what=what, faults=len(out), found=len(seen)))
    return results


def _half(fault: str) -> int:
    return hashlib.sha256(fault.encode()).digest()[0] % 2
