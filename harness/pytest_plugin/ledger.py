"""The records of a session's runs: the main process adds them to totals and to run folders."""

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.records.record import Record
from harness.core.text.errors import UsageError
from harness.core.text.visible_text import visible
from harness.plan.plan import Plan
from harness.pytest_plugin.benchmarks import add_benchmark, why_not_measured
from harness.pytest_plugin.items import CellItem, node_id
from harness.pytest_plugin.plans import plans_of
from harness.pytest_plugin.session import Matrices
from harness.run.news import News, RunResults
from harness.run.run_folder import RunFolder, resume_command
from harness.run.run_summary import no_evidence, summary_lines

_ATTRIBUTE = "ep_harness"

_EARLY = "ep_harness_early"


class _Enclosure(msgspec.Struct, frozen=True):
    """A matrix file, and all records that are new when a report is made: one write serves many of them."""

    matrix: str
    news: News


def enclose(report: pytest.TestReport, matrix: Path, news: News, *, travels: bool) -> None:
    """Attach news to a report; as text if the report goes to another process, because xdist carries text."""
    if not news.is_empty:
        enclosure = _Enclosure(str(matrix), news)
        setattr(report, _ATTRIBUTE, msgspec.json.encode(enclosure).decode() if travels else enclosure)


def mark_ended_early(report: pytest.TestReport) -> None:
    """Mark the report of an item that something, such as a timeout of pytest, ended while it waited."""
    setattr(report, _EARLY, True)


class _MatrixRun:
    """The run of one matrix, ``compared`` with baselines.

    ``benchmark`` gets each record with a latency; ``whole``: it has all cells.
    """

    def __init__(
        self,
        plan: Plan,
        out: Path | None,
        benchmark: Callable[[Record], None],
        compared: list[str],
        *,
        whole: bool,
    ) -> None:
        self.results = RunResults(plan, None if out is None else RunFolder.create(out, plan))
        self.folder, self.tally = self.results.folder, self.results.tally
        self._plan = plan
        self.ended_early = 0
        """Items that failed before their cells had a record; the table has those that came later."""
        self.timed = sum(plan.latency(cell) is not None for cell in plan.cells)
        self._benchmark = benchmark
        self._compared = compared
        self._whole = whole
        self._awaited = {cell.id for cell in plan.cells}

    @property
    def missing(self) -> int:
        return len(self._awaited)

    @property
    def without_evidence(self) -> tuple[str, ...]:
        # A selection by pytest is about single cells, and says nothing about targets.
        return self.tally.without_evidence() if self._whole else ()

    @property
    def resume_command(self) -> str:
        # Empty if the command cannot select the missing cells.
        if not (self.folder and self.missing and self._whole):
            return ""
        compared = (word for path in self._compared for word in ("--baseline", path))
        return resume_command(self._plan, self.folder.path, *compared)

    def add(self, news: News) -> None:
        """Add records. A second one for a cell, from a plugin that repeats tests, is ignored."""
        fresh = []
        for record in news.records:
            if record.cell in self._awaited:
                self._awaited.remove(record.cell)
                fresh.append(record)
        for record in self.results.add(msgspec.structs.replace(news, records=fresh)):
            if record.latency is not None:
                self._benchmark(record)


class Ledger:
    """Takes the records out of the reports; ``paths`` are the named matrix files."""

    def __init__(self, config: pytest.Config, matrices: Matrices, paths: tuple[Path, ...]) -> None:
        self._config = config
        self._matrices = matrices
        self._runs: dict[str, _MatrixRun] = {}
        self._terminal: Any = None
        self._by_head = {node_id(config, path): path for path in paths}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Open the runs for the items of this process; with xdist it has none."""
        option = self._config.option
        stopped = session.testsfailed and not option.continue_on_collection_errors
        if not (option.collectonly or stopped):
            self._open((item.path, item.name) for item in session.items if isinstance(item, CellItem))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Open the runs for the items of xdist's workers."""
        if not self._runs:
            self._open(self._parsed(ids))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the records of a report, and remove them from it: the terminal keeps every report."""
        enclosed: _Enclosure | str | None = report.__dict__.pop(_ATTRIBUTE, None)
        if enclosed is not None:
            enclosure = _DECODER.decode(enclosed) if isinstance(enclosed, str) else enclosed
            _or_stop(lambda: self._runs[enclosure.matrix].add(enclosure.news))
        # A plugin that repeats the test has changed the outcome by now.
        if report.__dict__.pop(_EARLY, False) and report.failed:
            path = self._by_head.get(report.nodeid.partition("::")[0])
            if run := self._runs.get(str(path)):
                run.ended_early += 1

    @pytest.hookimpl(trylast=True, specname="pytest_runtest_logreport")
    def forget(self, report: pytest.TestReport) -> None:
        """Remove the reports of empty phases from the terminal, which would keep two for each cell."""
        if self._terminal is None:
            self._terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        silent = self._terminal.stats.get("") if self._terminal else None
        if (
            silent
            and silent[-1] is report
            and not report.sections
            and report.nodeid.partition("::")[0] in self._by_head
        ):
            silent.pop()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Close the runs, with the records of this process's engines that no report carried.

        A session with only skipped tests passes in pytest; if a whole matrix proves nothing, it fails. It
        also fails if processes do not end as the matrix expects, which is no single test's fault.
        """
        for path, run in self._runs.items():
            news = self._matrices.done_with(Path(path))
            _or_stop(functools.partial(run.add, news))
            _or_stop(run.results.finish)
        if session.exitstatus == pytest.ExitCode.OK and any(
            run.without_evidence or run.tally.unexpected_exits() for run in self._runs.values()
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write one table for each matrix; ``-qq`` hides it."""
        if self._config.get_verbosity() > -2:  # noqa: PLR2004 - -qq
            for path, run in self._runs.items():
                matrix = node_id(self._config, Path(path))
                terminalreporter.section(f"execution providers: {visible(matrix)}")
                for line in summary_lines(run.tally.rows(), run.missing):
                    terminalreporter.write_line(line)
                reason = why_not_measured(self._config) if run.timed else ""
                silent = run.without_evidence
                early = run.ended_early
                for label, value in (
                    ("ended early", f"{early:,} failed before the record came" if early else ""),
                    ("no evidence", no_evidence(silent) if silent else ""),
                    ("latency was not measured", reason),
                    ("records", "" if run.folder is None else str(run.folder.path)),
                    ("resume", run.resume_command),
                ):
                    if value:
                        terminalreporter.write_line(f"{label}: {value}")
                if run.folder is not None and self._config.getoption("ep_triage"):
                    from harness.run.annexes import find_fault_lines

                    terminalreporter.section(f"faults: {visible(matrix)}")
                    plan = plans_of(self._config).plan(Path(path))
                    for line in find_fault_lines()(plan.matrix, plan.suites, run.folder.path):
                        terminalreporter.write_line(line)

    def _open(self, selected: Iterable[tuple[Path, str]]) -> None:
        ids: dict[Path, set[str]] = {}
        for path, cell_id in selected:
            ids.setdefault(path, set()).add(cell_id)
        out = self._config.getoption("ep_out")
        for path, wanted in ids.items():
            plan = plans_of(self._config).plan(path)
            narrowed = Plan(matrix=plan.matrix, cells=tuple(cell for cell in plan.cells if cell.id in wanted))
            head = node_id(self._config, path)
            try:
                self._runs[str(path)] = _MatrixRun(
                    narrowed,
                    None if out is None else Path(out),
                    functools.partial(add_benchmark, self._config, head),
                    self._config.getoption("ep_baseline"),
                    whole=len(narrowed.cells) == len(plan.cells),
                )
            except UsageError as error:
                raise pytest.UsageError(*map(str, error.problems)) from error

    def _parsed(self, nodeids: Iterable[str]) -> Iterable[tuple[Path, str]]:
        for nodeid in nodeids:
            head, _, cell_id = nodeid.partition("::")
            if head in self._by_head:
                yield self._by_head[head], cell_id


def _or_stop(write: Callable[[], Any]) -> None:
    """End the session with one line, without a traceback, if the run folder cannot be written."""
    try:
        write()
    except UsageError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)


_DECODER = msgspec.json.Decoder(_Enclosure)
