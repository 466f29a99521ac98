"""When two failures with one verdict are the same: by cause, phase, and the reason without figures."""

from harness.core.findings.cause import plain_cause
from harness.core.text.errors import one_line

_CHARS = 160


def signature_from(cause: str, phase: str, reason: str) -> str:
    """Return the signature of a failure in one line; the reason may already be plain."""
    return one_line(": ".join(filter(None, (cause, phase, plain_cause(reason)))), _CHARS)
