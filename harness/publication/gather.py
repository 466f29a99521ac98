"""Submissions of a folder, each checked before it is published."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from harness.conformance.attestation import decode_attestation
from harness.conformance.level import case_key, result_of
from harness.conformance.submission import ATTESTATION, RECORDS, STATEMENT, decode_statement
from harness.conformance.verify.opening import open_submission
from harness.conformance.verify.sealed import digest_findings
from harness.core.errors import HarnessError, Problem, UsageError, one_line
from harness.core.record import decode_record
from harness.profiles.profile import Profile, load_profile
from harness.publication.entry import Checked, Entry

UNREADABLE = (HarnessError, msgspec.MsgspecError, ValueError)
"""What reading the files of a hostile submission may raise."""

Profiles = Callable[[str], Profile]

Verifier = Callable[[Sequence[Path]], Sequence[Checked]]
"""Returns what verification finds about each submission, in their order."""


class RefusedError(HarnessError):
    """A submission cannot be published; the text says why."""


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A submission that is not published: its folder or file, and why."""

    source: str
    reason: str


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder of submissions has; the newest entry first."""

    entries: tuple[Entry, ...]
    refused: tuple[Refused, ...]


def gather(folder: Path, profiles: Profiles = load_profile, verifier: Verifier | None = None) -> Gathered:
    """Read and check every submission directly in a folder: folders with a statement, and zips.

    Raises:
        UsageError: There is no such folder, or no submission in it.
    """
    if not folder.is_dir():
        raise UsageError(Problem(where=str(folder), what="there is no such folder"))
    entries: dict[str, Entry] = {}
    refused: list[Refused] = []
    paths = tuple(_submissions(folder))
    found = verifier(paths) if verifier else (None,) * len(paths)
    for path, checked in zip(paths, found, strict=True):
        try:
            if checked and checked.refused:
                raise RefusedError(checked.refused)
            entry = msgspec.structs.replace(read_entry(path, profiles), checked=checked)
            if (first := entries.get(entry.id)) and first.files != entry.files:
                raise RefusedError("another submission has the same statement, with other files")
            entries[entry.id] = entry
        except UNREADABLE as error:
            refused.append(Refused(source=path.name, reason=one_line(error)))
    if not entries and not refused:
        hint = "a submission is a folder with statement.json, or a zip"
        raise UsageError(Problem(where=str(folder), what="there is no submission in it", hint=hint))
    newest = sorted(entries.values(), key=lambda one: (one.statement.created, one.id), reverse=True)
    return Gathered(entries=tuple(newest), refused=tuple(refused))


def read_entry(path: Path, profiles: Profiles = load_profile) -> Entry:
    """Read one submission; its digests, profile, level and totals must hold.

    Raises:
        RefusedError: They do not.
    """
    opened = open_submission(path)
    if opened.findings:
        first = opened.findings[0]
        raise RefusedError(f"{first.where}: {first.what}")
    files = opened.files
    for wrong in digest_findings(files, decode_attestation(files[ATTESTATION])):
        raise RefusedError(f"{wrong.where}: {wrong.what}")
    statement = decode_statement(files[STATEMENT])
    profile = profiles(statement.profile.label)
    if (statement.profile.digest, statement.profile.archive) != (profile.digest, profile.archive):
        raise RefusedError(f"its profile is not the published {profile.label}")
    records = [decode_record(line) for line in files[RECORDS].splitlines() if line]
    keys = [case_key(record) for record in records]
    if sorted(keys) != sorted(case.key for case in profile.cases):
        raise RefusedError("the records are not one for each case of the profile")
    result = result_of(profile, statement.claims, records)
    stated = (statement.level, statement.features, statement.missing)
    if stated != (result.level, result.features, result.missing):
        raise RefusedError("level, totals or missing cases are not those of the records")
    return Entry(
        statement=statement, result=result, records=dict(zip(keys, records, strict=True)), files=files
    )


def _submissions(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.suffix == ".zip" or (path.is_dir() and (path / STATEMENT).exists()):
            yield path
