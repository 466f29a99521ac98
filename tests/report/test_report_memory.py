"""The memory of each target's processes in the report."""

from collections.abc import Sequence
from pathlib import Path

from harness.core.records.record import ProcessState, Record
from harness.core.records.verdict import Verdict
from harness.report.pages.memory import target_memory
from harness.report.pages.overview import overview_view
from harness.report.runs.merge import merge
from harness.report.runs.merged_run import MergedRun
from harness.report.view import Report, build_report
from tests.kit import merged, record, run_of, site


def life(
    target: str, sessions: int, kib: float | None, *, start: float = 80, suite: str = "s"
) -> list[Record]:
    """The records of one process that gains so many KiB in each session."""
    return [
        record(
            f"m{session}",
            target=target,
            suite=suite,
            process=ProcessState(
                pid=7, session=session, rss_mib=None if kib is None else start + session * kib / 1024
            ),
        )
        for session in range(1, sessions + 1)
    ]


def report_of(run: MergedRun) -> Report:
    return build_report(run, lambda _folder, _record: "", {})


def told(report: Report) -> dict[str, tuple[str, str, str, bool]]:
    return {row.target: (row.peak, row.growth, row.reading, row.leaks) for row in target_memory(report)}


def test_every_kind_of_reading() -> None:
    records: Sequence[Record] = [
        *life("steady", 300, 0),
        *life("slow", 300, 16),
        *life("leaky", 400, 1024, start=2000),
        *life("shrinking", 300, -20),
        *life("hasty", 250, 1024),
        *life("fresh", 40, 600),
        *life("brief", 3, 0),
        *life("silent", 300, None),
        record(target="absent", verdict=Verdict.UNAVAILABLE),
    ]
    report = report_of(merged(records))
    assert told(report) == {
        "steady": ("80 MiB", "0 KiB", "no leak", False),
        "slow": ("85 MiB", "+16 KiB", "no leak", False),
        "leaky": ("2,400 MiB", "+1,024 KiB", "leaks: about 1,000 MiB in 1,000 sessions", True),
        "shrinking": ("80 MiB", "−20 KiB", "no leak", False),  # noqa: RUF001 - a typographic minus
        "hasty": ("330 MiB", "+1,024 KiB", "leaks: about 1,000 MiB in 1,000 sessions", True),
        "fresh": ("103 MiB", "+600 KiB", "grows, but not for long enough to tell a leak", False),
        "brief": ("80 MiB", "no data", "too few sessions to tell", False),
        "silent": ("no data", "no data", "the system does not tell", False),
    }
    (overview,) = overview_view(report)
    assert overview.leaking == ("leaky", "hasty")


def test_a_process_serves_all_columns_of_its_target() -> None:
    records = life("npu", 300, 100)
    other = [
        record(f"m{session}", target="npu", axes={"precision": "fp16"}, process=found.process)
        for session, found in enumerate(records)
        if session % 2
    ]
    whole = [found for session, found in enumerate(records) if not session % 2]
    report = report_of(merged([*whole, *other]))
    (row,) = target_memory(report)
    assert len(report.columns) == 2
    assert (row.memory.processes, row.memory.sessions, row.growth) == (1, 300, "+100 KiB")


def test_the_page_names_the_targets_that_leak(tmp_path: Path) -> None:
    report = report_of(merged([*life("ok", 300, 0), *life("bad", 400, 300)]))
    page = " ".join(site(tmp_path, report)["index.html"].split())
    assert '<a href="#memory"><strong>1 target leaks</strong></a>: bad.' in page
    assert '<strong class="badge bad">leaks: about 293 MiB in 1,000 sessions</strong>' in page
    assert "more than 64 KiB each (512 where no process came beyond its warm-up)" in page
    assert "over at least 20 sessions, and more than 32 MiB" in page


def test_a_run_that_tells_of_no_process_has_no_such_part(tmp_path: Path) -> None:
    page = site(tmp_path, report_of(merged([record()])))["index.html"]
    assert "#memory" not in page
    assert 'id="memory"' not in page


def test_shards_of_two_machines_may_have_the_same_process_ids() -> None:
    shards = [run_of(life("npu", 300, 100, suite=name), folder=name, plan=name) for name in ("one", "two")]
    (row,) = target_memory(report_of(merge(shards)))
    assert (row.memory.processes, row.memory.sessions, row.growth) == (2, 600, "+100 KiB")
