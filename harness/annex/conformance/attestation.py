"""The attestation of a submission: an in-toto Statement v1 with the predicate Test Result v0.1.

Forms: ``spec/v1/statement.md`` and ``spec/predicates/test-result.md`` of github.com/in-toto/attestation.
"""

import hashlib
from collections.abc import Mapping

import msgspec

from harness.annex.conformance.level import ProfileResult, Standing
from harness.annex.conformance.submission import Level, ProfileRef

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://in-toto.io/attestation/test-result/v0.1"

_RESULTS = {Level.CONFORMANT: "PASSED", Level.PARTIAL: "WARNED", Level.NOT: "FAILED"}


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource descriptor: a name and the SHA-256 of the content, as ``{"sha256": ...}``."""

    name: str
    digest: dict[str, str]


class TestResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The predicate.

    Attributes:
        result: ``PASSED`` for conformant, ``WARNED`` for partial, ``FAILED`` for not.
        configuration: The profile, and its archive.
        passed_tests: Labels of the required cases that pass, in the order of the profile.
        warned_tests: Those that are missing.
        failed_tests: Those that failed or are open.
    """

    __test__ = False  # it is no test class for pytest

    result: str
    configuration: tuple[Resource, ...]
    passed_tests: tuple[str, ...]
    warned_tests: tuple[str, ...]
    failed_tests: tuple[str, ...]


class Attestation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """``attestation.json``; its subject is every other file but signatures, sorted by name."""

    type_: str = msgspec.field(name="_type")
    subject: tuple[Resource, ...]
    predicate_type: str
    predicate: TestResult


def attestation_of(files: Mapping[str, bytes], profile: ProfileRef, result: ProfileResult) -> Attestation:
    """Return the attestation of a submission's files, without signatures, for the result of a profile."""
    return Attestation(
        type_=STATEMENT_TYPE,
        subject=tuple(
            Resource(name=name, digest={"sha256": hashlib.sha256(content).hexdigest()})
            for name, content in sorted(files.items())
        ),
        predicate_type=PREDICATE_TYPE,
        predicate=TestResult(
            result=_RESULTS[result.level],
            configuration=(
                Resource(name=profile.label, digest={"sha256": profile.digest}),
                Resource(name=f"{profile.label}.zip", digest={"sha256": profile.archive}),
            ),
            passed_tests=_labels(result, Standing.PASSED),
            warned_tests=_labels(result, Standing.MISSING),
            failed_tests=_labels(result, Standing.FAILED, Standing.OPEN),
        ),
    )


def _labels(result: ProfileResult, *standings: Standing) -> tuple[str, ...]:
    return tuple(one.label for one in result.cases if one.required and one.standing in standings)
