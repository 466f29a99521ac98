"""Make a submission from a finished run of a profile, and write it."""

import datetime as dt
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.annex.conformance.attestation import attestation_of
from harness.annex.conformance.harness_identity import this_harness
from harness.annex.conformance.level import ProfileResult, profile_result
from harness.annex.conformance.profiles.profile import Profile
from harness.annex.conformance.signing import sigstore_sign, ssh_sign
from harness.annex.conformance.submission import (
    ATTESTATION,
    LOG,
    SIGSTORE_BUNDLE,
    SSH_SIGNATURE,
    STATEMENT,
    STATEMENT_SCHEMA,
    SUBMITTED_RECORDS,
    SUBMITTED_RUN,
    WAIVERS,
    Product,
    ProfileRef,
    Statement,
    Waiver,
    encode_part,
)
from harness.annex.conformance.submission_scrub import scrubbed, scrubbed_line, scrubbed_text, without_folders
from harness.annex.conformance.submitted_environment import submitted_environment_of, version_of
from harness.core.files.writing import writing
from harness.core.records.record import Record, encode_record
from harness.core.records.run_info import RunInfo
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible

UNNAMED = "unnamed"
"""Name of a vendor that does not give one."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A vendor's claims about a run.

    Attributes:
        features: Extended features that the product claims.
        vendor: Who is responsible for it; empty if unnamed.
        product: Its name; empty for the provider's name.
        contact: An address or URL.
        waivers: Read from the file of ``waivers_content``.
        command: The command that ran, as a list of arguments.
    """

    profile: Profile
    features: frozenset[str] = frozenset()
    vendor: str = ""
    product: str = ""
    contact: str = ""
    waivers: tuple[Waiver, ...] = ()
    waivers_content: bytes = b""
    command: tuple[str, ...] = ()


class ProfileRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a profile on one target.

    Attributes:
        info: ``run.json``.
        records: The existing records of the profile's cases.
        told: The lines that the run printed.
    """

    target: str
    provider: str
    info: RunInfo
    records: tuple[Record, ...]
    told: Sequence[str]


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A submission: its result, its statement, and path -> content of its files, without a signature."""

    result: ProfileResult
    statement: Statement
    files: dict[str, bytes]


def submission_of(claim: Claim, run: ProfileRun, now: dt.datetime) -> Submission:
    """Return the submission of a run, complete or not; missing cases are open. ``now`` has a time zone.

    Raises:
        ValueError: A claimed feature is not one of the profile.
    """
    claim = msgspec.structs.replace(claim, features=claim.profile.closed(claim.features))
    result = profile_result(claim.profile, claim.features, run.records)
    statement = _statement(claim, run, result, now)
    files = {
        STATEMENT: encode_part(statement),
        SUBMITTED_RECORDS: b"".join(sorted_lines(run.records)),
        SUBMITTED_RUN: _run_json(run.info),
        LOG: "".join(f"{visible(scrubbed_text(line))}\n" for line in run.told).encode(),
    }
    if claim.waivers:
        files[WAIVERS] = claim.waivers_content
    attestation = attestation_of(files, statement.profile, result)
    files[ATTESTATION] = encode_part(attestation)
    return Submission(result=result, statement=statement, files=files)


def signed_by_ssh(submission: Submission, key: Path) -> Submission:
    """Return a submission with the signature of a key of OpenSSH.

    Raises:
        UsageError: It cannot be signed.
    """
    return _with_file(submission, SSH_SIGNATURE, ssh_sign(submission.files[ATTESTATION], key))


def signed_by_sigstore(submission: Submission) -> Submission:
    """Return a submission with a bundle of sigstore.

    Raises:
        UsageError: It cannot be signed.
    """
    return _with_file(submission, SIGSTORE_BUNDLE, sigstore_sign(submission.files[ATTESTATION]))


def write_submission(submission: Submission, folder: Path) -> None:
    """Write a submission into a new folder.

    Raises:
        UsageError: The folder exists, or cannot be written.
    """
    with writing(folder, "the submission", "choose another folder: --out"):
        folder.mkdir(parents=True)
        try:
            for name, content in submission.files.items():
                path = folder / name
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(content)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)  # an incomplete submission would block the next attempt
            raise


def sorted_lines(records: Sequence[Record]) -> list[bytes]:
    """Return the lines of ``records.jsonl``, sorted by cell; artifacts are left out, free texts scrubbed."""
    ordered = sorted(records, key=lambda record: record.cell)
    lines = (encode_record(msgspec.structs.replace(record, artifacts="")) for record in ordered)
    return [scrubbed_line(line) + b"\n" for line in lines]


def _statement(claim: Claim, run: ProfileRun, result: ProfileResult, now: dt.datetime) -> Statement:
    # In the form of ``run.json``, so that a verification finds the same.
    fingerprint: dict[str, Any] = scrubbed(dict(run.info.targets.get(run.target, {})))
    environment = submitted_environment_of(run.provider, fingerprint)
    profile = claim.profile
    name = f"{run.provider.removesuffix('ExecutionProvider')} execution provider"
    return Statement(
        schema=STATEMENT_SCHEMA,
        created=now.astimezone(dt.UTC).isoformat(timespec="seconds"),
        product=Product(
            vendor=_told(claim.vendor) or UNNAMED,
            name=_told(claim.product) or name,
            version=version_of(environment, fingerprint),
            contact=_told(claim.contact),
        ),
        environment=environment,
        harness=this_harness(),
        profile=ProfileRef(label=profile.label, digest=profile.digest, archive=profile.archive),
        claims=tuple(sorted(claim.features)),
        level=result.level,
        features=result.features,
        missing=result.missing,
        waivers=claim.waivers,
        reproduce=tuple(without_folders(word) for word in claim.command),
    )


def _run_json(info: RunInfo) -> bytes:
    plain = scrubbed(msgspec.to_builtins(info))
    return msgspec.json.format(msgspec.json.encode(plain), indent=1) + b"\n"


def _with_file(submission: Submission, name: str, content: bytes) -> Submission:
    return msgspec.structs.replace(submission, files={**submission.files, name: content})


def _told(text: str) -> str:
    return one_line(visible(text))
