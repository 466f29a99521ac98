"""Submissions of a folder, each read and verified once."""

import datetime as dt
import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from harness.annex.conformance.level import ProfileResult, Standing, case_key
from harness.annex.conformance.profiles.profile import Profile
from harness.annex.conformance.submission import STATEMENT, SUBMITTED_RUN
from harness.annex.conformance.verify.finding import Finding, FindingWeight
from harness.annex.conformance.verify.opening import submissions_in
from harness.annex.conformance.verify.verification import Verification, verify_submissions
from harness.annex.publication.entry import AcceptedSubmission
from harness.core.errors import UsageError
from harness.core.run_info import RunInfo
from harness.plan.surroundings import surroundings_of
from harness.report.merge import target_settings


class RefusedSubmission(msgspec.Struct, frozen=True, kw_only=True):
    """A submission that is not published: its folder or file, and why."""

    source: str
    reason: str


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a folder of submissions.

    Attributes:
        entries: The newest first.
        profiles: Label -> profile of every entry, sorted by label.
    """

    entries: tuple[AcceptedSubmission, ...]
    refused: tuple[RefusedSubmission, ...]
    profiles: Mapping[str, Profile]


def gather(
    folder: Path, *, now: dt.datetime, signers: Path | None = None, profiles: Path | None = None
) -> Gathered:
    """Verify every submission directly in a folder: folders with a statement, and zips.

    Waivers expire by ``now``, a time with its zone. ``signers`` is a file as ``ssh-keygen`` reads it.
    ``profiles`` is the folder of the published profiles; the shipped ones by default.

    Raises:
        UsageError: There is no such folder, or no submission in it; or as ``verify_submissions`` does.
    """
    if not folder.is_dir():
        raise UsageError.at(folder, "there is no such folder")
    entries: dict[str, AcceptedSubmission] = {}
    known: dict[str, Profile] = {}
    refused: list[RefusedSubmission] = []
    done = verify_submissions(submissions_in(folder), signers=signers, now=now, profiles=profiles)
    # Of two submissions with one statement the signed one counts: a copy without the signature must not
    # replace it.
    for one in sorted(done, key=lambda each: not each.signer):
        found = _entry(one)
        if isinstance(found, AcceptedSubmission) and one.profile is not None:
            if entries.setdefault(found.id, found).files == found.files:
                known[one.profile.label] = one.profile
                continue
            found = "another submission has the same statement, with other files"
        refused.append(RefusedSubmission(source=one.name, reason=str(found)))
    if not entries and not refused:
        hint = "a submission is a folder with statement.json, or a zip"
        raise UsageError.at(folder, "there is no submission in it", hint)
    newest = sorted(entries.values(), key=lambda one: (one.statement.created, one.id), reverse=True)
    return Gathered(entries=tuple(newest), refused=tuple(refused), profiles=dict(sorted(known.items())))


def _entry(one: Verification) -> AcceptedSubmission | str:
    """Return the entry of a submission, or why there is none."""
    refusal = next((_told(each) for each in one.findings if each.weight is FindingWeight.REFUSED), "")
    if refusal or one.statement is None or one.result is None:
        return refusal or "it cannot be read"
    run = msgspec.json.decode(one.files[SUBMITTED_RUN], type=RunInfo)
    return AcceptedSubmission(
        id=hashlib.sha256(one.files[STATEMENT]).hexdigest()[:16],
        statement=one.statement,
        result=one.result,
        reasons=_reasons(one, one.result),
        files=one.files,
        marks=tuple(_told(each) for each in one.findings if each.weight is FindingWeight.MARKED),
        notes=tuple(_told(each) for each in one.findings if each.weight is FindingWeight.NOTED),
        has_plugin=any("plugin" in target for target in run.targets.values()),
        signer=one.signer,
        simulated=_simulated(run, one.statement.environment.provider),
    )


def _simulated(run: RunInfo, provider: str) -> str:
    """Return the program that stands for the accelerator of a run's target; empty without one."""
    settings = target_settings(run.matrix)
    for name, fingerprint in run.targets.items():
        wanted = settings.get(name, {}).get("device")
        device = {str(key): str(value) for key, value in wanted.items()} if isinstance(wanted, dict) else {}
        if by := surroundings_of(fingerprint, (provider,), device).simulated_by:
            return by
    return ""


def _reasons(one: Verification, result: ProfileResult) -> dict[str, str]:
    told = {case_key(record): record.reason for record in one.records}
    return {
        each.label: told.get(each.case.key, "")
        for each in result.cases
        if each.standing is not Standing.PASSED
    }


def _told(each: Finding) -> str:
    return f"{each.name}: {each.where}: {each.what}"
