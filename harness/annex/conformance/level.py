"""The level of a result: pure, from a profile, the claimed features and the records.

It serves a vendor's run as well as the verification of its submission.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from enum import StrEnum

import msgspec

from harness.annex.conformance.profiles.profile import CORE, Profile, ProfileCase
from harness.annex.conformance.submission import Level, Totals
from harness.core.records.record import Record
from harness.core.records.scenario import PLAIN
from harness.core.records.verdict import Family, Verdict


class Standing(StrEnum):
    """How a verdict counts in a level; the names are those of ``Totals``."""

    PASSED = "passed"
    MISSING = "missing"
    FAILED = "failed"
    OPEN = "open"


_OF_FAMILY = {
    Family.PASSED: Standing.PASSED,
    Family.UNSUPPORTED: Standing.MISSING,
    Family.UNTESTED: Standing.MISSING,
    Family.FAILED: Standing.FAILED,
    Family.SKIPPED: Standing.OPEN,
    Family.EXCLUDED: Standing.OPEN,
    Family.MISSING: Standing.OPEN,
}

_OF_VERDICT = {Verdict.PASS_PARTIAL: Standing.MISSING}
"""Verdicts that count differently from their family."""


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one case.

    Attributes:
        verdict: Verdict of its record; ``not_run`` if it has none, or more than one.
        required: Whether the level depends on it: its feature is ``core``, or claimed.
    """

    case: ProfileCase
    verdict: Verdict
    required: bool

    @property
    def standing(self) -> Standing:
        """How the result counts."""
        return _OF_VERDICT.get(self.verdict, _OF_FAMILY[self.verdict.family])

    @property
    def label(self) -> str:
        """Its name, with the scenario after a blank if it is not ``plain``."""
        return case_label(self.case)


class ProfileResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a profile.

    Attributes:
        level: By the required cases alone.
        features: Feature -> its totals; ``core`` first, the others in the order of the profile.
        cases: Every case of the profile, in its order.
    """

    level: Level
    features: dict[str, Totals]
    cases: tuple[CaseResult, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Labels of the required cases that do not pass, sorted: ``Statement.missing``."""
        return tuple(
            sorted(one.label for one in self.cases if one.required and one.standing is not Standing.PASSED)
        )

    def required(self, standing: Standing) -> tuple[CaseResult, ...]:
        """Return the required cases of one standing, in the order of the profile."""
        return tuple(one for one in self.cases if one.required and one.standing is standing)


def case_label(case: ProfileCase) -> str:
    """Return the name of a case, with the scenario after a blank if it is not ``plain``."""
    return case.name if case.scenario == PLAIN else f"{case.name} {case.scenario}"


def case_key(record: Record) -> tuple[str, str]:
    """Return the ``ProfileCase.key`` of a record's case."""
    return record.model, record.axes.get("scenario", PLAIN)


def profile_result(profile: Profile, claims: Collection[str], records: Iterable[Record]) -> ProfileResult:
    """Return the level and totals of a result.

    Claims of several features at once count, too. A case without a record is open, and so is a case with
    several: none of them can be preferred. Records of other cases do not count.

    Raises:
        ValueError: A claim is not a feature of the profile.
    """
    unknown = sorted(set(claims) - {feature.name for feature in profile.features})
    if unknown:
        raise ValueError(f"{profile.label} has no feature {unknown[0]!r}")
    found: dict[tuple[str, str], list[Verdict]] = {}
    for record in records:
        found.setdefault(case_key(record), []).append(record.verdict)
    required = {CORE, *profile.closed(claims)}
    cases = tuple(
        CaseResult(case=case, verdict=_only(found.get(case.key, [])), required=case.feature in required)
        for case in profile.cases
    )
    return ProfileResult(level=_level(cases), features=_totals(profile, cases), cases=cases)


def _only(verdicts: list[Verdict]) -> Verdict:
    return verdicts[0] if len(verdicts) == 1 else Verdict.NOT_RUN


def _level(cases: Iterable[CaseResult]) -> Level:
    seen = {one.standing for one in cases if one.required}
    if seen & {Standing.FAILED, Standing.OPEN}:
        return Level.NOT
    return Level.PARTIAL if Standing.MISSING in seen else Level.CONFORMANT


def _totals(profile: Profile, cases: Iterable[CaseResult]) -> dict[str, Totals]:
    counts: dict[str, Counter[Standing]] = {CORE: Counter()}
    counts.update((feature.name, Counter()) for feature in profile.features)
    for one in cases:
        counts[one.case.feature][one.standing] += 1
    return {
        feature: Totals(
            cases=of_feature.total(), **{standing.value: of_feature[standing] for standing in Standing}
        )
        for feature, of_feature in counts.items()
    }
