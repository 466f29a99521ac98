"""Which verdicts are results, which of two is better, and why a cell has no result."""

from harness.core.verdict import Family, Verdict

_RANKS = {Family.FAILED: 0, Family.UNSUPPORTED: 1, Family.UNTESTED: 2, Family.PASSED: 3}
"""Higher is better. Families without a rank are no result."""

_GONE = {
    None: "no longer planned",
    Family.SKIPPED: "no longer tested: skipped as {}",
    Family.EXCLUDED: "no longer judged: excluded as {}",
    Family.MISSING: "no result now: {}",
}
"""Family in the new run -> why a cell has no result there; None for a cell that the new run does not plan."""

_NEW = {
    None: "not planned before",
    Family.SKIPPED: "not tested before: skipped as {}",
    Family.EXCLUDED: "not judged before: excluded as {}",
    Family.MISSING: "no result before: {}",
}
"""The same for the old run."""


def rank(verdict: Verdict) -> tuple[int, bool]:
    """Return the rank of a result; the higher one is better."""
    return _RANKS[verdict.family], verdict is Verdict.PASS


def why_gone(now: Verdict | None) -> tuple[str, ...]:
    """Return why a cell that had a result has none now; None stands for a cell that is not planned."""
    return _filled(_GONE, now)


def why_new(before: Verdict | None) -> tuple[str, ...]:
    """Return why a cell that has a result now had none; None stands for a cell that was not planned."""
    return _filled(_NEW, before)


def _filled(texts: dict[Family | None, str], verdict: Verdict | None) -> tuple[str, ...]:
    text = texts.get(verdict.family if verdict else None)
    return () if text is None else (text.format(verdict.value if verdict else ""),)
