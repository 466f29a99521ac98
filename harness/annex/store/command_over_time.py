"""A report of runs over months: the newest run in full, and the development up to it."""

from collections.abc import Sequence
from pathlib import Path

from harness.annex.store.command_query import note_unreadable
from harness.annex.store.store import Store, open_store
from harness.cli.output import notify
from harness.core.text.counted import plural
from harness.core.text.errors import UsageError
from harness.report.history.nights import with_nights
from harness.report.history.trend import trends
from harness.report.pages.history_page import write_history_page
from harness.run.annexes import ReportOverTime


def report_over_time(
    folder: Path, out: Path, formats: Sequence[str], *, store: Path | None, templates: Path | None
) -> tuple[Path, ...]:
    """Write the report of the newest run of each matrix, and a page with the trends of all runs.

    For a single matrix, the report shows the changes since the run before the newest.

    Returns:
        Return the first file of each format, and the page.
    """
    from harness.report.report_files import write_report  # its templates take 0.1 s to import

    with open_store(folder, store, notify) as opened:
        note_unreadable(opened)
        newest = _newest(opened)
        if not newest:
            hint = "see why: ep-harness query RUNS 'SELECT run, problem FROM runs'"
            raise UsageError.at(folder, "no run can be read", hint)
        shown = [paths[0] for paths in newest.values()]
        notify(
            f"{plural(len(opened.paths), 'run')} over time: {', '.join(path.name for path in shown)} in full"
        )
        before = next(iter(newest.values()))[1:] if len(newest) == 1 else []
        written = write_report(
            shown,
            out,
            formats,
            templates=templates,
            baseline=before[0] if before else None,
            history=opened,
            trends="history/index.html",
        )
        found, nights = with_nights(opened, trends(opened))
        page = write_history_page(found, nights, out / "history", templates=templates)
    return (*written, page)


def _newest(store: Store) -> dict[str, list[Path]]:
    """Return matrix -> its newest run and the one before."""
    found: dict[str, list[Path]] = {}
    rows = store.rows("SELECT matrix, name FROM run WHERE problem IS NULL ORDER BY first DESC, id DESC")
    for matrix, name in rows:
        paths = found.setdefault(matrix, [])
        if len(paths) < 2:  # noqa: PLR2004 - the newest and the one before
            paths.append(store.paths[name])
    return found


_: ReportOverTime = report_over_time
