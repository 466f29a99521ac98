"""Names of files in a submission: which there are, and which are refused before anything is read."""

import re
from collections.abc import Iterable, Iterator

from harness.conformance.submission import (
    ATTESTATION,
    LOG,
    RECORDS,
    RUN,
    SIGSTORE_BUNDLE,
    SSH_SIGNATURE,
    STATEMENT,
    WAIVERS,
)
from harness.conformance.verify.finding import Finding, finding

NEEDED = (STATEMENT, RECORDS, RUN, LOG, ATTESTATION)
SIGNATURES = (SSH_SIGNATURE, SIGSTORE_BUNDLE)
KNOWN = frozenset({*NEEDED, *SIGNATURES, WAIVERS})

_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE)
"""Names that Windows keeps for devices, with any ending (learn.microsoft.com, "Naming Files")."""


def name_findings(names: Iterable[str]) -> Iterator[Finding]:
    """Yield what is wrong with the names of a submission's files, read with forward slashes."""
    seen: dict[str, str] = {}
    for name in names:
        if why := _unsafe(name):
            yield finding("unsafe-name", name, why)
        elif (other := seen.setdefault(name.casefold(), name)) != name:
            yield finding("duplicate-name", name, f"differs from {other!r} in case alone")
        elif name not in KNOWN:
            yield finding("unknown-file", name, f"a submission has only {', '.join(sorted(KNOWN))}")


def lacking(names: Iterable[str]) -> Iterator[Finding]:
    """Yield the files that are missing."""
    for name in NEEDED:
        if name not in names:
            yield finding("not-a-submission", name, "the file is missing")


def _unsafe(name: str) -> str:
    parts = name.split("/")
    if "\\" in name or ":" in name:
        return "a backslash or colon, which Windows reads as another place"
    if name.startswith("/"):
        return "an absolute name"
    if any(part in {"", ".", ".."} for part in parts):
        return "an empty part, . or .."
    if any(_RESERVED.fullmatch(part) or part != part.rstrip(". ") for part in parts):
        return "a name that Windows keeps for a device, or changes"
    if not name.isprintable():
        return "control or invisible characters"
    return ""
