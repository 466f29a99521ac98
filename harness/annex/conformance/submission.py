"""A submission: what a vendor submits for one profile; the public contract.

A folder, or a zip of it::

    statement.json          who, what, where, which result: ``Statement``
    records.jsonl           one record for each case, sorted by cell
    run.json                matrix and environment of the run
    waivers.toml            only if there are waivers
    logs/run.txt            what the run printed
    attestation.json        an in-toto Statement of the type Test Result, over the SHA-256 of all files above
    attestation.json.sig    its signature by ``ssh-keygen -Y sign``; or
    attestation.sigstore.json   the bundle of sigstore
"""

import datetime as dt
from enum import StrEnum
from typing import Any

import msgspec

from harness.core.files.json_schema import json_schema_of

STATEMENT_SCHEMA = 1

STATEMENT = "statement.json"
SUBMITTED_RECORDS = "records.jsonl"
SUBMITTED_RUN = "run.json"
WAIVERS = "waivers.toml"
LOG = "logs/run.txt"
ATTESTATION = "attestation.json"
SSH_SIGNATURE = "attestation.json.sig"
SIGSTORE_BUNDLE = "attestation.sigstore.json"

SSH_NAMESPACE = "ep-harness-submission"
"""The namespace of ``ssh-keygen -Y``, which keeps a signature for another purpose from being used here."""


class Level(StrEnum):
    """The result of a submission."""

    CONFORMANT = "conformant"
    """Every core case and every case of a claimed feature is right, and computed by the provider alone."""

    PARTIAL = "partial"
    """No answer is wrong, but some cases are refused, or not computed by the provider alone."""

    NOT = "not"
    """Some case failed, or has no verdict."""


class ProfileRef(msgspec.Struct, frozen=True, kw_only=True):
    """The profile that was run, by label, digest of its file's content, and digest of its archive."""

    label: str
    digest: str
    archive: str


class Product(msgspec.Struct, frozen=True, kw_only=True):
    """What is submitted.

    Attributes:
        vendor: Who is responsible for the submission, such as ``Qualcomm``; a person or project is fine.
        name: The product, such as ``QNN execution provider``.
        version: Its version, as its package or library reports it.
        contact: An address or URL for questions; may be empty.
    """

    vendor: str
    name: str
    version: str
    contact: str = ""


class SubmittedEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """The environment of the run, as the agent reports it in ``run.json``.

    Attributes:
        provider: The execution provider, such as ``QNNExecutionProvider``.
        provider_options: Its options.
        runtime: ``python``, ``node`` or ``browser``.
        onnxruntime: Its version.
        libraries: File name -> SHA-256 of the provider's libraries; empty in a browser.
        devices: The provider's devices, one line each.
        drivers: Driver -> version.
        packages: Package -> version.
        platform: System and machine.
    """

    provider: str
    provider_options: dict[str, str]
    runtime: str
    onnxruntime: str
    libraries: dict[str, str]
    devices: tuple[str, ...]
    drivers: dict[str, str]
    packages: dict[str, str]
    platform: str


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Cases of one feature.

    Attributes:
        cases: All of them.
        passed: Right, and computed by the provider alone.
        missing: Refused, or right but not computed, or not computed alone, by the provider.
        failed: Wrong, or the process died, hung or ran out of memory.
        open: Without a verdict about the provider: not run, skipped or excluded.
    """

    cases: int
    passed: int
    missing: int
    failed: int
    open: int


class Waiver(msgspec.Struct, frozen=True, kw_only=True):
    """The owner's words about a case that does not pass.

    A waiver is shown beside the result and never changes it.

    Attributes:
        case: Name of the case; ``*`` stands for any characters.
        issue: URL of the issue.
        expires: The day from which on the waiver no longer counts.
        words: The reason, in the owner's words.
    """

    case: str
    issue: str
    expires: dt.date
    words: str


class Harness(msgspec.Struct, frozen=True, kw_only=True):
    """The harness that ran.

    Attributes:
        version: Its release.
        sources: SHA-256 over its Python sources, which reveals a patched harness.
        unofficial: Why the run does not count as official; empty if it does.
    """

    version: str
    sources: str
    unofficial: tuple[str, ...] = ()


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """``statement.json``.

    Attributes:
        schema: Version of the form.
        created: UTC time, ISO 8601.
        product: What is submitted.
        environment: Where it ran.
        harness: The harness that ran.
        profile: The profile.
        claims: Extended features that the product claims, sorted.
        level: The result.
        features: Feature -> its totals; ``core`` first, the others in the order of the profile.
        missing: Names of the core and claimed cases that do not pass, sorted; with the scenario after a
            blank if it is not ``plain``.
        waivers: Copied from ``waivers.toml``.
        reproduce: The exact command, as a list of arguments.
    """

    schema: int
    created: str
    product: Product
    environment: SubmittedEnvironment
    harness: Harness
    profile: ProfileRef
    claims: tuple[str, ...]
    level: Level
    features: dict[str, Totals]
    missing: tuple[str, ...]
    waivers: tuple[Waiver, ...]
    reproduce: tuple[str, ...]


def encode_part(part: msgspec.Struct) -> bytes:
    """Return the content of ``statement.json`` or ``attestation.json``."""
    return msgspec.json.format(msgspec.json.encode(part), indent=2) + b"\n"


def statement_schema() -> dict[str, Any]:
    """Return the JSON Schema: docs/reference/statement.schema.json."""
    return json_schema_of(Statement, f"{STATEMENT} of a submission")
