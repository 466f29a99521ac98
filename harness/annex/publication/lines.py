"""Lines: the versions of one provider on one device, over time, by one signer.

A submission that another key or nobody signed belongs to another line, whatever its names, and is never the
newest of this one.
"""

import hashlib
import itertools
from collections.abc import Iterable, Mapping

import msgspec

from harness.annex.conformance.level import Standing
from harness.annex.publication.entry import AcceptedSubmission


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a provider.

    Attributes:
        entries: Label of a profile -> its submissions, the newest first.
    """

    label: str
    onnxruntime: str
    entries: Mapping[str, tuple[AcceptedSubmission, ...]]


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A provider on a device, by one signer, or by nobody.

    Attributes:
        id: Its address on any site: derived from what is equal in all versions, and from the signer.
        versions: The newest first.
        newest: Label of a profile -> its submission of the newest version that has one.
    """

    id: str
    versions: tuple[Version, ...]
    newest: Mapping[str, AcceptedSubmission]

    @property
    def one(self) -> AcceptedSubmission:
        """A submission of the newest version; device, options and vendor are the same in all."""
        return next(iter(self.versions[0].entries.values()))[0]

    @property
    def current(self) -> Version:
        """The newest version."""
        return self.versions[0]

    @property
    def newest_day(self) -> str:
        """The day of its newest submission."""
        return max(entry.statement.created for entry in self.newest.values())[:10]

    def of_profile(self, label: str) -> tuple[AcceptedSubmission, ...]:
        """Return the submissions of one profile, the newest version first."""
        return tuple(entry for version in self.versions for entry in version.entries.get(label, ()))


class CaseChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Cases that pass in one submission but not in an older one, and the reverse; by label."""

    older: AcceptedSubmission
    gained: tuple[str, ...]
    lost: tuple[str, ...]


def product_lines(entries: Iterable[AcceptedSubmission]) -> tuple[Line, ...]:
    """Return the lines, by vendor, product and signer; for equal names signed ones come first."""
    found: dict[tuple[tuple[str, ...], bool, str], list[AcceptedSubmission]] = {}
    for entry in entries:
        found.setdefault((entry.place, not entry.signer, entry.signer), []).append(entry)
    return tuple(_line(found[key]) for key in sorted(found))


def line_id(entry: AcceptedSubmission) -> str:
    """Return the address of a submission's line: derived from its place and its signer."""
    key = (entry.place, entry.signer) if entry.signer else entry.place
    return hashlib.sha256(msgspec.json.encode(key)).hexdigest()[:16]


def steps_of(line: Line) -> tuple[tuple[AcceptedSubmission, CaseChanges], ...]:
    """Return what changed from each submission of a profile to the next one, the newest first."""
    return tuple(
        (newer, changes_between(older, newer))
        for label in line.newest
        for newer, older in itertools.pairwise(line.of_profile(label))
    )


def changes_between(older: AcceptedSubmission, newer: AcceptedSubmission) -> CaseChanges:
    """Return the gains and losses of a submission relative to another one of its profile."""
    then, now = _passed(older), _passed(newer)
    return CaseChanges(older=older, gained=tuple(sorted(now - then)), lost=tuple(sorted(then - now)))


def _line(entries: list[AcceptedSubmission]) -> Line:
    versions: dict[tuple[str, str], dict[str, list[AcceptedSubmission]]] = {}
    newest: dict[str, AcceptedSubmission] = {}
    for entry in sorted(entries, key=lambda one: one.order, reverse=True):
        key = (entry.label, entry.statement.environment.onnxruntime)
        versions.setdefault(key, {}).setdefault(entry.profile, []).append(entry)
        newest.setdefault(entry.profile, entry)
    return Line(
        id=line_id(entries[0]),
        versions=tuple(
            Version(
                label=label,
                onnxruntime=runtime,
                entries={profile: tuple(each) for profile, each in sorted(found.items())},
            )
            for (label, runtime), found in versions.items()
        ),
        newest=dict(sorted(newest.items())),
    )


def _passed(entry: AcceptedSubmission) -> set[str]:
    return {one.label for one in entry.result.cases if one.standing is Standing.PASSED}
