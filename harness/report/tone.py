"""How a verdict looks: a tone (the CSS class) and a symbol, so that colour never stands alone."""

from harness.core.record import Record
from harness.core.verdict import Family, Verdict

PARTIAL = "partial"
WEAK = "weak"
"""Of a right answer by the EP whose golden could not tell it from most wrong ones."""

TONES = ("passed", PARTIAL, WEAK, "untested", "unsupported", "failed", "excluded", "skipped", "missing")
"""Every tone, in the order of the bars and of the legend."""

SYMBOLS = {
    "passed": "✓",
    PARTIAL: "◐",
    WEAK: "◌",
    "untested": "○",
    "unsupported": "–",  # noqa: RUF001 - a typographic dash
    "failed": "✗",
    "excluded": "⊘",
    "skipped": "·",
    "missing": "?",
}


def tone(verdict: Verdict) -> str:
    """The verdict's family; only the two kinds of pass are told apart."""
    return PARTIAL if verdict is Verdict.PASS_PARTIAL else Family(verdict.family).value


def tone_of(record: Record) -> str:
    """The tone of a cell: that of its verdict, but where its golden is weak."""
    return WEAK if record.rests_on_weak_golden else tone(record.verdict)


def spoken(verdict: Verdict) -> str:
    """The verdict with its words apart: ``pass_partial`` reads ``pass partial``."""
    return verdict.value.replace("_", " ")
