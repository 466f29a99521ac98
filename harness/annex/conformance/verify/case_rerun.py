"""Compare some cases of a submission with a run of them on one's own device."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from harness.annex.conformance.level import case_key, case_label
from harness.annex.conformance.profiles.profile import Profile, ProfileCase
from harness.annex.conformance.profiles.profile_suite import policy_of_case
from harness.annex.conformance.submission import STATEMENT, SubmittedEnvironment
from harness.annex.conformance.verify.finding import Finding, finding
from harness.annex.conformance.verify.frozen_cases import FrozenCase
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.records.record import Record

_OF_DEVICE = ("provider", "provider_options", "runtime", "onnxruntime", "libraries", "devices", "drivers")
"""Facts of an environment that decide an answer, as far as they are known."""


def drawn_cases(profile: Profile, share: float, seed: int) -> tuple[ProfileCase, ...]:
    """Return a random share of a profile's cases, at least one, in the order of the profile."""
    count = max(1, math.ceil(share * len(profile.cases)))
    places = np.random.default_rng(seed).permutation(len(profile.cases))[:count]
    return tuple(profile.cases[place] for place in sorted(places))


def other_fields(told: SubmittedEnvironment, here: SubmittedEnvironment) -> tuple[str, ...]:
    """Return how the environment of a submission differs from the local one."""
    return tuple(field for field in _OF_DEVICE if getattr(told, field) != getattr(here, field))


def rerun_findings(
    profile: Profile,
    frozen: Mapping[str, FrozenCase],
    told: Sequence[Record],
    here: Sequence[Record],
    other: Sequence[str],
    seed: int,
) -> Iterator[Finding]:
    """Yield what a run of some cases shows; they were drawn with a seed.

    ``told`` are the records of the submission, ``here`` those of the run; ``other`` says how the two
    environments differ.
    """
    cases = {case.key: case for case in profile.cases}
    submitted = {case_key(record): record for record in told}
    same = 0
    for record in here:
        case, before = cases[case_key(record)], submitted.get(case_key(record))
        if before is None:
            continue
        policy = policy_of_case(profile.rules, case)
        found = [*_differences(before, record, frozen[case.name], policy)]
        same += not found
        for what in found:
            yield finding("rerun-elsewhere" if other else "rerun", case_label(case), what)
    where = f"though with other {', '.join(other)}" if other else "in the environment that it states"
    proof = "this shows that a device here computes them so, not that the submission's did"
    what = f"{same} of {len(here)} cases drawn with seed {seed} give the same here, {where}; {proof}"
    yield finding("rerun-same", STATEMENT, what)


def _differences(told: Record, here: Record, frozen: FrozenCase, policy: Policy) -> Iterator[str]:
    if told.verdict is not here.verdict:
        yield f"{told.verdict} in the submission, {here.verdict} here"
        return
    rows = {row.name: row for row in here.outputs}
    for before in told.outputs:
        now = rows.get(before.name)
        if now is None or before.max_abs is None or now.max_abs is None:
            continue
        allowed = _allowed(before, frozen, policy)
        if abs(before.max_abs - now.max_abs) > allowed:
            yield f"{before.name}: max_abs {before.max_abs:g}, here {now.max_abs:g}; {allowed:.3g} is noise"


def _allowed(row: OutputMetrics, frozen: FrozenCase, policy: Policy) -> float:
    """Return the allowed difference between two right answers: by noise, else by the tolerance."""
    leaf = frozen.leaves.get(row.name)
    if leaf is None or leaf.golden is None or not leaf.golden.size:
        return math.inf
    if leaf.spread is not None:
        return policy.limits.max * float(leaf.spread.max())
    tolerance = policy.tolerance_for(row.dtype)
    steps = policy.steps * leaf.steps[1] if leaf.steps is not None else 0.0
    return max(steps, tolerance.atol + tolerance.rtol * float(leaf.golden.max()))
