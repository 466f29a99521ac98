"""Which verdicts are results, which of two is better, and why a cell has no result."""

from harness.core.records.verdict import Family, Verdict, is_result

_LOST_SHARE = 0.01
"""Part of the compute that leaves the EP before it counts: files have shares in whole thousandths."""

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


def is_worse(before: Verdict, after: Verdict, *, less: bool = False) -> bool:
    """Return whether a result is worse than before: of a lower rank, or in part with ``less`` on the EP.

    ``diff``, ``gate`` and baselines have this rule. What is no result is neither better nor worse.
    """
    if not (is_result(before) and is_result(after)):
        return False
    return rank(after) < rank(before) or (less and before is after is Verdict.PASS_PARTIAL)


def is_less(before: float | None, after: float | None) -> bool:
    """Return whether the EP has less of the compute than before; shares from 0 to 1, None if not known."""
    return before is not None and after is not None and after < before - _LOST_SHARE


def why_gone(now: Verdict | None) -> tuple[str, ...]:
    """Return why a cell that had a result has none now; None stands for a cell that is not planned."""
    return _filled(_GONE, now)


def why_new(before: Verdict | None) -> tuple[str, ...]:
    """Return why a cell that has a result now had none; None stands for a cell that was not planned."""
    return _filled(_NEW, before)


def _filled(texts: dict[Family | None, str], verdict: Verdict | None) -> tuple[str, ...]:
    text = texts.get(verdict.family if verdict else None)
    return () if text is None else (text.format(verdict.value if verdict else ""),)
