"""The end of `ep-harness conform`: level, features, missing cases, waivers, and next steps."""

import datetime as dt
import shlex
from collections.abc import Iterator
from pathlib import Path

from harness.annex.conformance.level import Standing
from harness.annex.conformance.profiles.profile import JOINT
from harness.annex.conformance.submission import Level, Totals
from harness.annex.conformance.submit import Submission
from harness.annex.conformance.verify.finding import FindingWeight
from harness.annex.conformance.verify.verification import verify_submissions
from harness.annex.conformance.waivers import covers
from harness.cli.output import wrapped

_MOST_NAMED = 8
"""Largest number of named cases of a kind; the statement has all."""

_MEANINGS = {
    Level.CONFORMANT: "every required case is right, and computed by the provider alone",
    Level.PARTIAL: "no answer is wrong, but the provider does not compute every required case alone",
    Level.NOT: "a required case failed, or has no verdict",
}

_GRAVEST = (Standing.FAILED, Standing.OPEN, Standing.MISSING)
"""Standings that keep a product from being conformant, the gravest first."""

_WIDTH = 12
_COUNTS = ("cases", "passed", "missing", "failed", "open")


def verified(folder: Path) -> str:
    """Return the result of verifying a submission, in one line."""
    (found,) = verify_submissions([folder])
    reasons = [f"{one.where}: {one.what}" for one in found.findings if one.weight is not FindingWeight.NOTED]
    more = f"; and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return f"{found.outcome}: {reasons[0]}{more}" if reasons else found.outcome


def conform_summary(submission: Submission, folder: Path, outcome: str, today: dt.date) -> Iterator[str]:
    """Yield the last lines of the command, in 80 columns except for paths.

    ``outcome`` is from ``verified``.
    """
    statement, result = submission.statement, submission.result
    level = statement.level
    shown = "not conformant" if level is Level.NOT else str(level)
    yield from wrapped(f"{statement.profile.label}: {shown}: {_MEANINGS[level]}")
    yield ""
    yield from _table(statement.features, statement.claims)
    yield ""
    for standing in _GRAVEST:
        names = _named([f"{one.label} ({one.verdict})" for one in result.required(standing)])
        for number, line in enumerate(names):
            yield from wrapped(line, f"{'' if number else standing.value:<{_WIDTH}} ")
    for waiver in statement.waivers:
        expired = "expired" if waiver.expires <= today else f"until {waiver.expires}"
        covered = sum(covers(waiver, one.label) for one in result.cases)
        text = f"{waiver.case} ({covered} cases, {expired}): {waiver.words} {waiver.issue}"
        yield from wrapped(text, f"{'waiver':<{_WIDTH}} ")
    for why in statement.harness.unofficial:
        yield from wrapped(why, f"{'unofficial':<{_WIDTH}} ")
    yield from wrapped(outcome, f"{'verification':<{_WIDTH}} ")
    yield f"{'submission':<{_WIDTH}} {folder}"
    yield f"{'verify':<{_WIDTH}} ep-harness verify {shlex.quote(str(folder))}"


def _table(features: dict[str, Totals], claims: tuple[str, ...]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [("feature", *_COUNTS, "")]
    joint = [name for name in features if JOINT in name and name not in claims]
    for name, totals in features.items():
        role = "required" if name == "core" else "claimed" if name in claims else "not claimed"
        if name not in joint:
            rows.append((name, *(str(getattr(totals, count)) for count in _COUNTS), role))
    if joint:
        sums = (str(sum(getattr(features[name], count) for name in joint)) for count in _COUNTS)
        rows.append(("several at once", *sums, "not claimed"))
    width = max(len(row[0]) for row in rows)
    for name, *counts, role in rows:
        yield f"{name:<{width}} {' '.join(f'{count:>7}' for count in counts)}  {role}".rstrip()


def _named(labels: list[str]) -> Iterator[str]:
    yield from labels[:_MOST_NAMED]
    if len(labels) > _MOST_NAMED:
        yield f"and {len(labels) - _MOST_NAMED} more"
