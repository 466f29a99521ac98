"""Verify submissions: from files to findings, in the order of ``finding.KINDS``."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from harness.annex.conformance.attestation import Attestation
from harness.annex.conformance.level import ProfileResult, case_key, case_label, profile_result
from harness.annex.conformance.profile_matrix import profile_matrix
from harness.annex.conformance.profiles.profile import (
    Profile,
    ProfileCase,
    ProfileRules,
    decode_profile,
    profiles_folder,
)
from harness.annex.conformance.profiles.profile_suite import policy_of_case
from harness.annex.conformance.submission import (
    ATTESTATION,
    STATEMENT,
    SUBMITTED_RECORDS,
    SUBMITTED_RUN,
    WAIVERS,
    Statement,
)
from harness.annex.conformance.verify.against import model_faults, output_faults, shape_faults
from harness.annex.conformance.verify.case_check import case_findings
from harness.annex.conformance.verify.claims import claim_faults
from harness.annex.conformance.verify.figures_check import figure_faults
from harness.annex.conformance.verify.finding import Finding, FindingWeight, finding
from harness.annex.conformance.verify.frozen_cases import FrozenCase, frozen_cases
from harness.annex.conformance.verify.opening import open_submission
from harness.annex.conformance.verify.placement_check import placement_faults
from harness.annex.conformance.verify.plan_check import plan_findings
from harness.annex.conformance.verify.plausible import plausibility_findings
from harness.annex.conformance.verify.seal_check import digest_findings, seal_of
from harness.annex.conformance.verify.statement_check import (
    result_findings,
    run_findings,
    time_findings,
    waiver_findings,
)
from harness.annex.conformance.verify.strict_json import strict_decode
from harness.annex.conformance.verify.submission_comparison import (
    ComparableParts,
    compared_findings,
    content_digest,
    measured_times,
)
from harness.annex.conformance.verify.verdict_check import verdict_findings
from harness.core.records.record import Record
from harness.core.records.run_info import RunInfo
from harness.plan.matrix import Matrix

_MOST_RECORDS = 20_000
MOST_FINDINGS = 200


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one submission.

    Attributes:
        name: Name of the folder or zip.
        findings: In the order of the checks.
        statement: None if it cannot be read.
        result: The result, decided again; None if that is not possible.
        signer: Identity or fingerprint of the key; empty if nobody signed.
        records: The readable records.
        profile: The published profile; None if it is not known.
        files: Name -> content; empty if it cannot be opened.
    """

    name: str
    findings: tuple[Finding, ...]
    statement: Statement | None = None
    result: ProfileResult | None = None
    signer: str = ""
    records: tuple[Record, ...] = ()
    profile: Profile | None = None
    files: Mapping[str, bytes] = {}

    @property
    def outcome(self) -> str:
        """``refused``, ``marked`` or ``verified``."""
        weights = {one.weight for one in self.findings}
        return next(
            (str(w) for w in (FindingWeight.REFUSED, FindingWeight.MARKED) if w in weights), "verified"
        )


class _Read(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a submission that could be read."""

    statement: Statement | None = None
    attestation: Attestation | None = None
    run: RunInfo | None = None
    records: tuple[Record, ...] = ()
    findings: tuple[Finding, ...] = ()


class Verifier:
    """Verifies single submissions; a profile is read with the first submission about it.

    Args:
        signers: A file of allowed signers, as ``ssh-keygen`` reads it.
        now: The time, with its zone; the clock's by default.
        folder: Folder of the published profiles; the shipped ones by default.
    """

    def __init__(
        self, signers: Path | None = None, now: dt.datetime | None = None, folder: Path | None = None
    ) -> None:
        self.signers, self.now = signers, now or dt.datetime.now(dt.UTC)
        self.folder = folder or profiles_folder()
        self.labels = {path.stem for path in self.folder.glob("*@*.json")}
        self._profiles: dict[str, Profile] = {}
        self._frozen: dict[str, dict[str, FrozenCase]] = {}
        self._matrices: dict[str, Matrix] = {}

    def verify(self, path: Path) -> Verification:
        """Verify one submission by itself.

        Raises:
            UsageError: As ``verify_submissions``.
        """
        name, opened = path.absolute().name, open_submission(path)
        if not opened.files:
            return Verification(name=name, findings=opened.findings)
        return _verified(name, opened.files, _read(opened.files), self)

    def profile(self, label: str) -> Profile:
        """Return the profile of one of ``labels``, so that no other label becomes a path."""
        if label not in self._profiles:
            self._profiles[label] = decode_profile((self.folder / f"{label}.json").read_bytes())
        return self._profiles[label]

    def matrix(self, profile: Profile) -> Matrix:
        """Return the matrix of a profile on a target without settings."""
        if profile.label not in self._matrices:
            self._matrices[profile.label] = profile_matrix(profile)
        return self._matrices[profile.label]

    def frozen(self, profile: Profile) -> dict[str, FrozenCase]:
        """Return the frozen facts of a profile's cases."""
        if profile.label not in self._frozen:
            self._frozen[profile.label] = frozen_cases(profile, self.folder / f"{profile.label}.zip")
        return self._frozen[profile.label]


def verify_submissions(
    paths: Sequence[Path],
    *,
    signers: Path | None = None,
    now: dt.datetime | None = None,
    profiles: Path | None = None,
) -> tuple[Verification, ...]:
    """Verify submissions, and compare them with each other for copies and look-alikes.

    ``paths`` are folders or zips; the other arguments are those of ``Verifier``.

    Raises:
        UsageError: The file of signers is missing, there is no ``ssh-keygen``, or the archive of a profile
            is missing or altered.
    """
    verifier = Verifier(signers, now, profiles)
    done = [verifier.verify(path) for path in paths]
    found = compared_findings([compared_parts(one) for one in done])
    return tuple(
        msgspec.structs.replace(one, findings=bounded([*one.findings, *found.get(index, ())]))
        for index, one in enumerate(done)
    )


def compared_parts(one: Verification) -> ComparableParts:
    """Return what of a submission is compared with others."""
    return ComparableParts(
        name=one.name,
        content=content_digest(one.files),
        times=measured_times(one.records),
        records=len(one.records),
        product=None if one.statement is None else one.statement.product,
        signer=one.signer,
        refused=one.outcome == FindingWeight.REFUSED,
    )


def bounded(found: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the first findings; many that only require a person must not hide one that refuses."""
    if len(found) > MOST_FINDINGS:
        found = sorted(found, key=lambda one: one.weight is not FindingWeight.REFUSED)
    return tuple(found[:MOST_FINDINGS])


def _read(files: Mapping[str, bytes]) -> _Read:
    found: list[Finding] = []
    statement, _, fault = strict_decode(files[STATEMENT], Statement, STATEMENT)
    attestation, _, other = strict_decode(files[ATTESTATION], Attestation, ATTESTATION)
    run, _, third = strict_decode(files[SUBMITTED_RUN], RunInfo, SUBMITTED_RUN)
    found += [each for each in (fault, other, third) if each is not None]
    records: list[Record] = []
    # Only as many parts as are read: a megabyte may have a million lines.
    lines = files[SUBMITTED_RECORDS].split(b"\n", _MOST_RECORDS + 1)
    if len(lines) > _MOST_RECORDS:
        found.append(finding("too-large", SUBMITTED_RECORDS, f"more than {_MOST_RECORDS:,} lines"))
        lines = []
    if files[SUBMITTED_RECORDS] and not files[SUBMITTED_RECORDS].endswith(b"\n"):
        found.append(finding("not-json", SUBMITTED_RECORDS, "the last line has no end"))
    for number, line in enumerate(lines[:-1], start=1):
        record, _, fault = strict_decode(line, Record, f"{SUBMITTED_RECORDS}: line {number}")
        if fault is not None:
            found.append(fault)
        elif b"\r" in line:
            found.append(finding("not-json", f"{SUBMITTED_RECORDS}: line {number}", "a carriage return"))
        if record is not None:
            records.append(record)
    return _Read(
        statement=statement, attestation=attestation, run=run, records=tuple(records), findings=tuple(found)
    )


def _verified(name: str, files: Mapping[str, bytes], read: _Read, by: Verifier) -> Verification:
    found = [*read.findings]
    seal = seal_of(files, by.signers)
    if read.attestation is not None:
        found += digest_findings(files, read.attestation)
    found += seal.findings
    result = profile = None
    if read.statement is not None and read.attestation is not None and read.run is not None:
        profile = _profile(read.statement, by, found)
        if profile is not None and (claims := _claims(read.statement, profile, found)) is not None:
            found += _records(profile, read.statement, read.records, by.frozen(profile))
            result = profile_result(profile, claims, read.records)
            found += result_findings(read.statement, result, read.attestation)
            found += run_findings(read.statement, read.run, read.records)
            found += plan_findings(by.matrix(profile), profile, read.statement, read.run, read.records)
            found += (finding("unofficial", STATEMENT, why) for why in read.statement.harness.unofficial)
            found += time_findings(read.statement, read.records, by.now)
            found += waiver_findings(read.statement, files.get(WAIVERS), result, by.now)
            found += plausibility_findings(profile, read.statement, read.records)
    return Verification(
        name=name,
        findings=tuple(found),
        statement=read.statement,
        result=result,
        signer=seal.signer,
        records=read.records,
        profile=profile,
        files=files,
    )


def _profile(statement: Statement, by: Verifier, found: list[Finding]) -> Profile | None:
    """Return the published profile."""
    told = statement.profile
    if told.label not in by.labels:
        known = ", ".join(sorted(by.labels)) or "none"
        found.append(finding("unknown-profile", STATEMENT, f"{told.label}; this harness has {known}"))
        return None
    profile = by.profile(told.label)
    if told.digest != profile.digest:
        found.append(finding("profile-edited", STATEMENT, f"the digest of {told.label} is {profile.digest}"))
    if told.archive != profile.archive:
        found.append(finding("profile-edited", STATEMENT, f"the archive's digest is {profile.archive}"))
    return profile


def _claims(statement: Statement, profile: Profile, found: list[Finding]) -> tuple[str, ...] | None:
    claims, known = statement.claims, {feature.name for feature in profile.features}
    if claims != tuple(sorted(profile.closed(claims))) or not set(claims) <= known:
        what = f"claims {', '.join(claims)}; features: {', '.join(sorted(known)) or 'none'}, sorted, once"
        if missing := sorted(profile.closed(claims) - set(claims)):
            what += f"; missing, since all their parts are claimed: {', '.join(missing)}"
        found.append(finding("unknown-claim", STATEMENT, what))
        return None
    return claims


def _records(
    profile: Profile, statement: Statement, records: Sequence[Record], frozen: Mapping[str, FrozenCase]
) -> Iterator[Finding]:
    yield from case_findings(profile, statement, records)
    cases = {case.key: case for case in profile.cases}
    for record in records:
        case = cases.get(case_key(record))
        if case is not None:
            yield from _record(record, case, profile.rules, frozen[case.name])


def _record(record: Record, case: ProfileCase, rules: ProfileRules, frozen: FrozenCase) -> Iterator[Finding]:
    label, policy = case_label(case), policy_of_case(rules, case)
    yield from (finding("other-model", label, what) for what in model_faults(record, frozen))
    yield from (finding(name, label, what) for name, what in claim_faults(record, frozen))
    yield from verdict_findings(record, case, rules)
    for row in (*record.outputs, *record.again):
        for what in figure_faults(row, policy):
            yield finding("metrics", f"{label}: {row.name}", what)
    for name, kind, what in output_faults(record, frozen, policy):
        yield finding(kind, f"{label}: {name}", what)
    if record.placement is not None:
        for what in placement_faults(record.placement, record.provider):
            yield finding("placement", label, what)
        yield from (finding("placement", label, what) for what in shape_faults(record.placement, frozen))
