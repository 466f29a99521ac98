"""The look of a verdict: a tone (the CSS class) and a symbol, because not everybody can read colour alone."""

from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict

PARTIAL = "partial"
WEAK = "weak"
"""A right answer by the EP that the golden cannot tell from wrong ones."""

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

TONES = tuple(SYMBOLS)
"""Every tone, in the order of the bars and of the legend."""


def tone(verdict: Verdict) -> str:
    """Return the family of a verdict, but ``partial`` for a partial pass."""
    return PARTIAL if verdict is Verdict.PASS_PARTIAL else Family(verdict.family).value


def tone_of(record: Record) -> str:
    """Return the tone of a cell: that of its verdict, but ``weak`` if it rests on a weak golden."""
    return WEAK if record.rests_on_weak_golden else tone(record.verdict)


def spoken(verdict: Verdict) -> str:
    """Return the verdict as words: ``pass partial`` for ``pass_partial``."""
    return verdict.value.replace("_", " ")
