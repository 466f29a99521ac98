"""One published submission, in the form that the pages of a site need."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from harness.annex.conformance.level import CaseResult, ProfileResult, Standing
from harness.annex.conformance.profiles.profile import CORE
from harness.annex.conformance.submission import Level, Statement
from harness.plan.device_identity import DeviceIdentity
from harness.report.words.figures import Share

LEVEL_TONES = {Level.CONFORMANT: "passed", Level.PARTIAL: "partial", Level.NOT: "failed"}
"""Level -> tone of the report."""

LEVEL_WORDS = {
    Level.CONFORMANT: "conformant",
    Level.PARTIAL: "partly conformant",
    Level.NOT: "not conformant",
}

NO_CASE = ("computes none", "unsupported")
"""Word and tone of a partial level without one passed case."""

_NAMED_VENDOR = re.compile(r"^(\S+ \S+.*?) vendor_id \d+\b")
"""The number of a vendor, after its type and name."""

_NUMBER = re.compile(r" device_id 0\b")
"""The number of a device without one."""


class AcceptedSubmission(msgspec.Struct, frozen=True, kw_only=True):
    """A submission that verification did not refuse.

    Attributes:
        id: Its address on any site: the first 16 hexadecimal digits of the SHA-256 of its statement.
        result: The result, decided again from the records.
        content: SHA-256 over the names and contents of its files.
        names: Names of its files, sorted.
        reasons: Label of a case that does not pass -> the reason in its record.
        marks: Why a person has to examine it, one line each.
        has_plugin: Whether its provider came from a plugin library.
        signer: Identity or fingerprint of the key; empty if nobody signed.
        simulated: The program that stands for its accelerator; empty without one, or if it is not known.
        facts: What its run tells about its device and provider, beyond the statement.
    """

    id: str
    statement: Statement
    result: ProfileResult
    reasons: Mapping[str, str]
    content: str
    names: tuple[str, ...]
    marks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    has_plugin: bool = False
    signer: str = ""
    simulated: str = ""
    facts: DeviceIdentity = DeviceIdentity()

    @property
    def label(self) -> str:
        """Product and version."""
        return f"{self.statement.product.name} {self.statement.product.version}"

    @property
    def profile(self) -> str:
        """Label of its profile."""
        return self.statement.profile.label

    @property
    def level(self) -> Level:
        """The level, decided again."""
        return self.result.level

    @property
    def computes_none(self) -> bool:
        """Whether it is partial, and no required case passes."""
        return self.level is Level.PARTIAL and not self.share.count

    @property
    def tone(self) -> str:
        """The tone of its level."""
        return NO_CASE[1] if self.computes_none else LEVEL_TONES[self.level]

    @property
    def word(self) -> str:
        """Its level in words."""
        return NO_CASE[0] if self.computes_none else LEVEL_WORDS[self.level]

    @property
    def device(self) -> str:
        """Its devices in one line, without numbers that mean nothing to a reader; else its platform."""
        where = self.statement.environment
        devices = (_NUMBER.sub("", _NAMED_VENDOR.sub(r"\1", device)) for device in where.devices)
        told = ", ".join(dict.fromkeys(devices)) or where.platform
        return f"simulated: {told}" if self.simulated else told

    @property
    def share(self) -> Share:
        """Passed cases of core and claimed features."""
        required = [self.result.features[name] for name in (CORE, *self.statement.claims)]
        return Share(sum(one.passed for one in required), sum(one.cases for one in required))

    @property
    def not_passed(self) -> tuple[CaseResult, ...]:
        """Cases that do not pass, wrong answers first; within that in the order of the profile."""
        order = (Standing.FAILED, Standing.OPEN, Standing.MISSING)
        return tuple(one for standing in order for one in self.result.cases if one.standing is standing)

    @property
    def place(self) -> tuple[str, ...]:
        """The key that is equal for all versions of one provider on one device."""
        where, product = self.statement.environment, self.statement.product
        options = (f"{key}={value}" for key, value in sorted(where.provider_options.items()))
        return (product.vendor, product.name, where.provider, where.runtime, *where.devices, *options)

    @property
    def order(self) -> tuple[object, ...]:
        """Sorts submissions of one provider, the oldest version first."""
        where, product = self.statement.environment, self.statement.product
        versions = (version_order(product.version), version_order(where.onnxruntime))
        return (*versions, self.statement.created, self.id)


@lru_cache(maxsize=4096)
def version_order(version: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key by which ``1.9`` is older than ``1.24`` and ``2.0rc1`` older than ``2.0``."""
    parts = re.findall(r"\d+|[A-Za-z]+", version)
    numbers = [(1, int(part), "") if part.isdecimal() else (-1, 0, part.casefold()) for part in parts]
    return (*numbers, (0, 0, ""))


def newest_version(versions: Iterable[str]) -> str:
    """Return the newest of some versions; at least one."""
    return max(versions, key=version_order)


def anchor_of(label: str) -> str:
    """Return the id of a case on a page; it is the same on every page and in every site."""
    return f"case-{label.replace(' ', '+')}"
