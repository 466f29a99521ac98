"""One submission as the site shows it, and what makes submissions comparable."""

import hashlib
import re
from collections.abc import Mapping

import msgspec

from harness.conformance.level import CaseResult, Result, Standing
from harness.conformance.submission import STATEMENT, Level, Statement
from harness.core.record import Record
from harness.profiles.profile import CORE
from harness.report.figures import Share

LEVEL_TONES = {Level.CONFORMANT: "passed", Level.PARTIAL: "partial", Level.NOT: "failed"}
"""Level -> tone of the report."""

LEVEL_WORDS = {
    Level.CONFORMANT: "conformant",
    Level.PARTIAL: "partly conformant",
    Level.NOT: "not conformant",
}


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What ``ep-harness verify`` finds about a submission.

    Attributes:
        refused: Why it is refused; empty if it is not.
        findings: What a reader has to know, one line each.
        signer: Identity or fingerprint of the key; empty if nobody signed.
    """

    refused: str = ""
    findings: tuple[str, ...] = ()
    signer: str = ""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A submission that passed the publisher's checks.

    Attributes:
        statement: What the vendor states.
        result: The result, counted again from the records.
        records: ``(case name, scenario)`` -> record.
        files: Name -> content of each of its files.
        checked: What its verification found; null if it was not verified.
    """

    statement: Statement
    result: Result
    records: Mapping[tuple[str, str], Record]
    files: Mapping[str, bytes]
    checked: Checked | None = None

    @property
    def id(self) -> str:
        """Its address on any site: the first 16 hexadecimal digits of the digest of its statement."""
        return hashlib.sha256(self.files[STATEMENT]).hexdigest()[:16]

    @property
    def label(self) -> str:
        """Product and version."""
        return f"{self.statement.product.name} {self.statement.product.version}"

    @property
    def level(self) -> Level:
        """The level, counted again."""
        return self.result.level

    @property
    def tone(self) -> str:
        """The tone of its level."""
        return LEVEL_TONES[self.level]

    @property
    def word(self) -> str:
        """Its level in words."""
        return LEVEL_WORDS[self.level]

    @property
    def share(self) -> Share:
        """Passed cases of core and claimed features."""
        required = [self.result.features[name] for name in (CORE, *self.statement.claims)]
        return Share(sum(one.passed for one in required), sum(one.cases for one in required))

    @property
    def not_passed(self) -> tuple[tuple[CaseResult, str], ...]:
        """Required cases that do not pass, each with the reason of its record."""
        return tuple(
            (one, record.reason if (record := self.records.get(one.case.key)) else "")
            for one in self.result.cases
            if one.required and one.standing is not Standing.PASSED
        )

    @property
    def place(self) -> tuple[str, ...]:
        """What must be equal for two versions of one provider to be compared."""
        where, product = self.statement.environment, self.statement.product
        options = (f"{key}={value}" for key, value in sorted(where.provider_options.items()))
        return (product.vendor, product.name, where.provider, where.runtime, *where.devices, *options)

    @property
    def order(self) -> tuple[object, ...]:
        """Sorts versions of one provider, the oldest first."""
        return (version_order(self.statement.product.version), self.statement.created, self.id)


def version_order(version: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key by which ``1.9`` is older than ``1.24`` and ``2.0rc1`` older than ``2.0``."""
    parts = re.findall(r"\d+|[A-Za-z]+", version)
    numbers = [(1, int(part), "") if part.isdecimal() else (-1, 0, part.casefold()) for part in parts]
    return (*numbers, (0, 0, ""))
