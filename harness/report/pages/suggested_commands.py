"""What to do next about a report: commands to type, the most urgent first."""

import shlex
from collections.abc import Iterator

import msgspec

from harness.core.text.counted import plural
from harness.report.changes.run_diff import CellChangeKind
from harness.report.view import Report

_SHOWN_STEPS = 5


class SuggestedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One command, and what it is for."""

    why: str
    command: str


def suggested_commands(report: Report) -> tuple[SuggestedCommand, ...]:
    """Return the next steps, at least one."""
    return tuple(_steps(report))[:_SHOWN_STEPS]


def _steps(report: Report) -> Iterator[SuggestedCommand]:
    yield from _to_finish(report)
    yield from _to_explain(report)
    yield from _to_compare(report)


def _to_finish(report: Report) -> Iterator[SuggestedCommand]:
    run, matrix = _run_folder(report), report.matrix_path
    if not report.complete:
        yield _step("Finish the run: its figures are not final.", "run", matrix, "--resume", run)
    unused = {row.column.target for row in report.summary if row.skipped and not row.tried}
    if unused:
        count = plural(len(unused), "target")
        yield _step(f"See why {count} could not be used, and what to install.", "doctor", matrix)


def _to_explain(report: Report) -> Iterator[SuggestedCommand]:
    run = _run_folder(report)
    failed = sum(row.failed.count for row in report.summary)
    if report.unexpected_failures.count and not report.faults:
        count = plural(report.unexpected_failures.count, "unexpected failure")
        yield _step(f"Find the causes of {count}: guilty node, smallest model.", "triage", run)
    elif failed and not report.faults:
        yield _step(f"Find the causes of {plural(failed, 'failed cell')}.", "triage", run)
    if groups := report.unexpected_failures.shown:
        yield SuggestedCommand(
            why="Run the most frequent unexpected failure again.", command=groups[0].command
        )
    if others := report.unexpected_others.shown:
        why = "Run again what did not end as the matrix expects; if it was fixed, remove the entry."
        yield SuggestedCommand(why=why, command=others[0].command)


def _to_compare(report: Report) -> Iterator[SuggestedCommand]:
    run, failed = _run_folder(report), sum(row.failed.count for row in report.summary)
    if report.changes is None:
        yield _step("See what changed since an older run.", "diff", "OLD-RUN", run)
    elif report.changes.told(CellChangeKind.REGRESSED):
        yield _step("Fail a build on what got worse.", "gate", report.changes.old, run)
    if failed:
        yield _step(
            "Keep the failures that are known, so that only new ones are told.", "baseline", "write", run
        )
    if not failed and not report.unexpected and report.complete:
        yield _step("Try models that no suite has.", "fuzz", report.matrix_path)


def _step(why: str, *words: str) -> SuggestedCommand:
    return SuggestedCommand(why=why, command=shlex.join(["ep-harness", *words]))


def _run_folder(report: Report) -> str:
    """Return the run folder as it was given; only its name if it was an absolute path of this machine."""
    folder = report.run.folders[0]
    return folder.name if folder.is_absolute() else folder.as_posix()
