"""What makes two failures with one verdict the same: cause, phase, and the reason without its figures."""

import re

from harness.core.errors import one_line

_CHARS = 160

# Numbers and quoted names differ from cell to cell, and from night to night, although the reason is the same.
_VARYING = re.compile(
    r"0x[0-9a-fA-F]+|'[^']{0,200}'|\"[^\"]{0,200}\"|\([\d, ]*\)|[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?%?"
)


def plain_reason(reason: str) -> str:
    """Return a reason with ``#`` in place of each number and quoted name."""
    return _VARYING.sub("#", reason)


def signature_from(cause: str, phase: str, reason: str) -> str:
    """Return the signature of a failure in one line."""
    return one_line(": ".join(filter(None, (cause, phase, plain_reason(reason)))), _CHARS)
