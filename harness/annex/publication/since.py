"""Since which version cases pass, and where they broke again: versions of one provider on one device."""

import itertools
from collections.abc import Iterable

import msgspec

from harness.annex.conformance.level import Standing
from harness.annex.conformance.profiles.profile import ProfileCase
from harness.annex.publication.entry import AcceptedSubmission
from harness.annex.publication.lines import Line


class PassingSince(msgspec.Struct, frozen=True, kw_only=True):
    """The versions in which some cases pass.

    Attributes:
        passes: Whether all of them pass in the newest version that tried them.
        since: The first submission since which all of them pass without a break; null if some does not.
        from_start: Whether that is the first version that tried them: it may have been so before.
        failed: The newest submission before ``since`` in which one fails; null if ``from_start``.
        broke: The newest submission in which one fails that passed before; null if none does.
    """

    passes: bool
    since: AcceptedSubmission | None
    from_start: bool
    failed: AcceptedSubmission | None
    broke: AcceptedSubmission | None


class CaseHistory(msgspec.Struct, frozen=True, kw_only=True):
    """One case over the versions of a line.

    Attributes:
        case: The case, as its newest submission has it.
        profile: Label of its profile.
        steps: ``(submission, whether the case passes)``; the oldest version first, each version once.
    """

    case: ProfileCase
    profile: str
    steps: tuple[tuple[AcceptedSubmission, bool], ...]


def case_histories(line: Line) -> tuple[CaseHistory, ...]:
    """Return the history of each case; of one version the newest submission of a profile counts."""
    found: dict[tuple[str, str], list[tuple[AcceptedSubmission, bool]]] = {}
    cases: dict[tuple[str, str], ProfileCase] = {}
    for version in reversed(line.versions):
        for profile, entries in version.entries.items():
            for one in entries[0].result.cases:
                cases[profile, one.label] = one.case
                passes = one.standing is Standing.PASSED
                found.setdefault((profile, one.label), []).append((entries[0], passes))
    return tuple(
        CaseHistory(case=cases[key], profile=key[0], steps=tuple(steps)) for key, steps in found.items()
    )


def since_of(histories: Iterable[CaseHistory]) -> PassingSince:
    """Return since when all of some cases pass; at least one case."""
    starts: list[AcceptedSubmission] = []
    failed: list[AcceptedSubmission] = []
    breaks: list[AcceptedSubmission] = []
    passes = True
    for history in histories:
        steps = history.steps
        place = len(steps)
        while place and steps[place - 1][1]:
            place -= 1
        if place < len(steps):
            starts.append(steps[place][0])
        else:
            passes = False
        if place:
            failed.append(steps[place - 1][0])
        pairs = itertools.pairwise(steps)
        breaks.extend(entry for (_, before), (entry, now) in pairs if before and not now)
    return PassingSince(
        passes=passes,
        since=newest_of(starts) if passes else None,
        from_start=passes and not failed,
        failed=newest_of(failed) if passes else None,
        broke=newest_of(breaks),
    )


def newest_of(entries: Iterable[AcceptedSubmission]) -> AcceptedSubmission | None:
    """Return the submission of the newest version; None without any."""
    return max(entries, key=lambda entry: entry.order, default=None)
