"""Submissions of a folder, each read and verified once."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from harness.annex.conformance.level import CaseResult, ProfileResult
from harness.annex.conformance.profiles.profile import CORE, Profile
from harness.annex.conformance.submission import Statement
from harness.annex.conformance.verify.finding import Finding, FindingWeight
from harness.annex.conformance.verify.opening import open_submission, submissions_in
from harness.annex.conformance.verify.submission_comparison import compared_findings, content_digest
from harness.annex.conformance.verify.verification import bounded
from harness.annex.publication.entry import AcceptedSubmission
from harness.annex.publication.kept_verification import KeptVerification, KeptVerifications
from harness.annex.publication.outliers import outlier_findings
from harness.core.records.verdict import Verdict
from harness.core.text.errors import UsageError


class RefusedSubmission(msgspec.Struct, frozen=True, kw_only=True):
    """A submission that is not published: its folder or file, and why."""

    source: str
    reason: str


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a folder of submissions.

    Attributes:
        entries: The newest first.
        profiles: Label -> profile of every entry, sorted by label.
        files: Reads the files of an entry, name -> content; they are not kept in memory.
    """

    entries: tuple[AcceptedSubmission, ...]
    refused: tuple[RefusedSubmission, ...]
    profiles: Mapping[str, Profile]
    files: Callable[[AcceptedSubmission], Mapping[str, bytes]]


def gather(
    folder: Path, *, now: dt.datetime, signers: Path | None = None, profiles: Path | None = None
) -> Gathered:
    """Verify every submission directly in a folder: folders with a statement, and zips.

    What an earlier call found of the same bytes is read from the cache. Waivers expire by ``now``, a time
    with its zone. ``signers`` is a file as ``ssh-keygen`` reads it. ``profiles`` is the folder of the
    published profiles; the shipped ones by default.

    Raises:
        UsageError: There is no such folder, or no submission in it; or as ``verify_submissions`` does.
    """
    if not folder.is_dir():
        raise UsageError.at(folder, "there is no such folder")
    paths = submissions_in(folder)
    if not paths:
        hint = "a submission is a folder with statement.json, or a zip"
        raise UsageError.at(folder, "there is no submission in it", hint)
    verifications = KeptVerifications(signers, now, profiles)
    done = [verifications.of(path) for path in paths]
    names = [path.absolute().name for path in paths]
    shared = compared_findings([one.compared(name) for name, one in zip(names, done, strict=True)])
    accepted = _Accepted(verifications.profile)
    refused: list[RefusedSubmission] = []
    # Of two submissions with one statement the signed one counts: a copy without the signature must not
    # replace it.
    for at in sorted(range(len(done)), key=lambda each: not done[each].signer):
        one = done[at]
        if reason := accepted.add(one, bounded([*one.findings, *shared.get(at, ())]), paths[at]):
            refused.append(RefusedSubmission(source=names[at], reason=reason))
    odd = outlier_findings(tuple(accepted.entries.values()))
    entries = [_marked(one, odd.get(one.id, ())) for one in accepted.entries.values()]
    newest = sorted(entries, key=lambda one: (one.statement.created, one.id), reverse=True)
    known = {one.profile: verifications.profile(one.profile) for one in newest}
    return Gathered(
        entries=tuple(newest),
        refused=tuple(refused),
        profiles=dict(sorted(known.items())),
        files=accepted.files,
    )


class _Accepted:
    """The entries of a site, as they are found."""

    def __init__(self, profile: Callable[[str], Profile]) -> None:
        self.entries: dict[str, AcceptedSubmission] = {}
        self._profile = profile
        self._paths: dict[str, Path] = {}
        self._cases: dict[tuple[str, tuple[str, ...], tuple[Verdict, ...]], tuple[CaseResult, ...]] = {}

    def add(self, one: KeptVerification, findings: Sequence[Finding], path: Path) -> str:
        """Add a submission, or return why it is refused."""
        refusal = next((_told(each) for each in findings if each.weight is FindingWeight.REFUSED), "")
        if refusal or one.statement is None or not one.verdicts:
            return refusal or "it cannot be read"
        entry = self._entry(one, one.statement, findings)
        if self.entries.setdefault(entry.id, entry).content != entry.content:
            return "another submission has the same statement, with other files"
        self._paths.setdefault(entry.id, path)
        return ""

    def files(self, entry: AcceptedSubmission) -> Mapping[str, bytes]:
        """Read the files of an entry.

        Raises:
            UsageError: They changed since they were verified.
        """
        path = self._paths[entry.id]
        files = open_submission(path).files
        if content_digest(files) != entry.content:
            raise UsageError.at(path, "changed while the site was written", "run the command again")
        return files

    def _entry(
        self, one: KeptVerification, statement: Statement, findings: Sequence[Finding]
    ) -> AcceptedSubmission:
        # Equal results share one tuple: thousands of submissions have few.
        key = statement.profile.label, statement.claims, one.verdicts
        if key not in self._cases:
            profile = self._profile(statement.profile.label)
            required = {CORE, *profile.closed(statement.claims)}
            self._cases[key] = tuple(
                CaseResult(case=case, verdict=verdict, required=case.feature in required)
                for case, verdict in zip(profile.cases, one.verdicts, strict=True)
            )
        return AcceptedSubmission(
            id=one.id,
            statement=statement,
            # Verification refuses a statement with another level or other totals.
            result=ProfileResult(level=statement.level, features=statement.features, cases=self._cases[key]),
            reasons=one.reasons,
            content=one.content,
            names=one.names,
            marks=tuple(_told(each) for each in findings if each.weight is FindingWeight.MARKED),
            notes=tuple(_told(each) for each in findings if each.weight is FindingWeight.NOTED),
            has_plugin=one.has_plugin,
            signer=one.signer,
            simulated=one.simulated,
            facts=one.facts,
        )


def _marked(entry: AcceptedSubmission, findings: Sequence[Finding]) -> AcceptedSubmission:
    if not findings:
        return entry
    return msgspec.structs.replace(entry, marks=(*entry.marks, *map(_told, findings)))


def _told(each: Finding) -> str:
    return f"{each.name}: {each.where}: {each.what}"
