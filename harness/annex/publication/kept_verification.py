"""What a site needs of each verified submission, kept in the cache: to verify is most of the work.

An entry is addressed by what was read and by what judged it, so it never has to be removed for being wrong.
"""

import datetime as dt
import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from harness.annex.conformance.harness_identity import own_sources
from harness.annex.conformance.level import Standing, case_key
from harness.annex.conformance.profiles.profile import Profile, profiles_folder
from harness.annex.conformance.submission import STATEMENT, SUBMITTED_RUN, Statement
from harness.annex.conformance.verify.finding import Finding, FindingWeight
from harness.annex.conformance.verify.opening import open_submission
from harness.annex.conformance.verify.submission_comparison import (
    ComparableParts,
    content_digest,
    measured_times,
)
from harness.annex.conformance.verify.verification import Verification, Verifier
from harness.core.files.writing import write_aside, writing
from harness.core.records.run_info import RunInfo
from harness.core.records.verdict import Verdict
from harness.corpus.caches.cache import ENVIRONMENT, cache_root
from harness.plan.device_identity import DeviceIdentity, device_identity_of
from harness.plan.surroundings import surroundings_of
from harness.report.runs.merged_run import target_settings

_DATED = frozenset({"future", "signature-unchecked", "waiver-expired"})
"""Findings that another day, or another machine, may not give."""


class KeptVerification(msgspec.Struct, frozen=True, kw_only=True):
    """One verified submission, without its records and files.

    Attributes:
        day: The day for which it was verified.
        dated: Whether another day may give other findings.
        content: SHA-256 over the names and contents of its files.
        names: Names of its files, sorted.
        findings: Of the submission alone, without a comparison with others.
        id: The first 16 hexadecimal digits of the SHA-256 of ``statement.json``; empty without one.
        statement: None if it cannot be read.
        verdicts: Of the cases of its profile, in order; empty if it is refused.
        reasons: Label of a case that does not pass -> the reason in its record.
        times: ``measured_times`` in little-endian order.
        records: Number of its records.
        has_plugin: Whether its provider came from a plugin library.
        simulated: The program that stands for its accelerator; empty without one, or if it is not known.
        facts: What its run tells about its device and provider, beyond the statement.
    """

    day: dt.date
    dated: bool
    content: str
    names: tuple[str, ...]
    findings: tuple[Finding, ...]
    id: str
    statement: Statement | None
    verdicts: tuple[Verdict, ...]
    reasons: Mapping[str, str]
    signer: str
    times: bytes
    records: int
    has_plugin: bool = False
    simulated: str = ""
    facts: DeviceIdentity = DeviceIdentity()

    @property
    def refused(self) -> bool:
        """Whether it is refused on its own account."""
        return any(one.weight is FindingWeight.REFUSED for one in self.findings)

    def compared(self, name: str) -> ComparableParts:
        """Return what of it is compared with others."""
        return ComparableParts(
            name=name,
            content=self.content,
            times=np.frombuffer(self.times, "<u8").astype(np.uint64),
            records=self.records,
            product=None if self.statement is None else self.statement.product,
            signer=self.signer,
            refused=self.refused,
        )


class KeptVerifications:
    """Verifies submissions, or reads from the cache what an earlier run found of the same bytes.

    Args:
        signers: A file of allowed signers, as ``ssh-keygen`` reads it.
        now: The time, with its zone.
        profiles: Folder of the published profiles; the shipped ones by default.
    """

    def __init__(self, signers: Path | None, now: dt.datetime, profiles: Path | None) -> None:
        self._verifier = Verifier(signers, now, profiles)
        self._day = now.date()
        self._folder = cache_root() / "publication"
        self._judge = _judge_digest(signers, profiles or profiles_folder())
        self._decoder = msgspec.msgpack.Decoder(KeptVerification)

    def of(self, path: Path) -> KeptVerification:
        """Return the verification of a folder or zip.

        Raises:
            UsageError: As ``verify_submissions``, or the cache cannot be written.
        """
        read = _digest_of(path)
        if not read:
            return _kept(self._verifier.verify(path), self._day)
        key = hashlib.sha256(f"{read} {self._judge}".encode()).hexdigest()
        file = self._folder / key[:2] / key
        kept = self._read(file)
        if kept is None:
            kept = _kept(self._verifier.verify(path), self._day)
            if _digest_of(path) == read:  # else it changed meanwhile
                with writing(file, "the cache", f"set {ENVIRONMENT} to a folder that can be written"):
                    file.parent.mkdir(parents=True, exist_ok=True)
                    write_aside(file, msgspec.msgpack.encode(kept))
        return kept

    def profile(self, label: str) -> Profile:
        """Return the published profile of a submission that is not refused."""
        return self._verifier.profile(label)

    def _read(self, file: Path) -> KeptVerification | None:
        try:
            kept = self._decoder.decode(file.read_bytes())
        except (OSError, msgspec.MsgspecError):
            return None
        is_of_today = kept.day == self._day
        return kept if is_of_today or (not kept.dated and kept.day < self._day) else None


def _digest_of(path: Path) -> str:
    """Return the SHA-256 of a zip, or over the files of a folder; empty if it cannot be opened."""
    try:
        if path.is_file() and not path.is_symlink():
            return f"zip {hashlib.sha256(path.read_bytes()).hexdigest()}"
    except OSError:
        return ""
    files = open_submission(path).files
    return f"folder {content_digest(files)}" if files else ""


def _judge_digest(signers: Path | None, profiles: Path) -> str:
    """Return a digest of all that decides about a submission: the harness, the profiles, the signers."""
    total = hashlib.sha256(own_sources().encode())
    for path in (*sorted(profiles.glob("*@*.json")), *([signers] if signers is not None else [])):
        total.update(hashlib.sha256(path.read_bytes() if path.is_file() else b"").digest())
    total.update(b"signers" if signers is not None else b"")
    return total.hexdigest()


def _kept(one: Verification, day: dt.date) -> KeptVerification:
    refused = any(each.weight is FindingWeight.REFUSED for each in one.findings)
    readable = not refused and one.statement is not None and one.result is not None
    run = msgspec.json.decode(one.files[SUBMITTED_RUN], type=RunInfo) if readable else None
    statement = one.statement
    reasons = {case_key(record): record.reason for record in one.records}
    cases = one.result.cases if readable and one.result is not None else ()
    provider = statement.environment.provider if statement else ""
    simulated, facts = _device(run, provider) if run else ("", DeviceIdentity())
    return KeptVerification(
        day=day,
        dated=any(each.name in _DATED for each in one.findings) or bool(statement and statement.waivers),
        content=content_digest(one.files),
        names=tuple(sorted(one.files)),
        findings=one.findings,
        id=hashlib.sha256(one.files[STATEMENT]).hexdigest()[:16] if STATEMENT in one.files else "",
        statement=statement,
        verdicts=tuple(each.verdict for each in cases),
        reasons={
            each.label: reasons.get(each.case.key, "")
            for each in cases
            if each.standing is not Standing.PASSED
        },
        signer=one.signer,
        times=measured_times(one.records).astype("<u8").tobytes(),
        records=len(one.records),
        has_plugin=run is not None and any("plugin" in target for target in run.targets.values()),
        simulated=simulated,
        facts=facts,
    )


def _device(run: RunInfo, provider: str) -> tuple[str, DeviceIdentity]:
    """Return the program that stands for the accelerator of a run, empty without one, and its device."""
    settings = target_settings(run.matrix)
    found = DeviceIdentity()
    for name, fingerprint in run.targets.items():
        wanted = settings.get(name, {}).get("device")
        device = {str(key): str(value) for key, value in wanted.items()} if isinstance(wanted, dict) else {}
        if found == DeviceIdentity():
            found = device_identity_of(fingerprint, (provider,), device)
        if by := surroundings_of(fingerprint, (provider,), device).simulated_by:
            return by, found
    return "", found
