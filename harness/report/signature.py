"""What makes two failures with one verdict the same: cause, phase, and the reason without its figures."""

from harness.core.cause import plain_cause
from harness.core.errors import one_line

_CHARS = 160


def signature_from(cause: str, phase: str, reason: str) -> str:
    """Return the signature of a failure in one line; the reason may have been plain before."""
    return one_line(": ".join(filter(None, (cause, phase, plain_cause(reason)))), _CHARS)
