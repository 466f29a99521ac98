"""How the processes of targets ended, in totals, exit code and run folder; which devices are simulated."""

from pathlib import Path

import msgspec
import pytest

from harness.core.records.run_info import RunInfo, TargetExit
from harness.core.records.verdict import Phase, Verdict
from harness.core.text.errors import EXIT_OK, EXIT_UNEXPECTED
from harness.engine.tasks.events import ProcessEnded
from harness.plan.expectation import ALL_CLEAN
from harness.plan.plan import Plan
from harness.run.exits import with_end
from harness.run.run_folder import RunFolder
from harness.run.run_summary import remarks
from harness.run.tally import Tally
from tests.kit import bare_record, plan_of

CLEAN = ProcessEnded(target="npu")
DIED = ProcessEnded(
    target="npu", phase=Phase.UNLOAD, cause="SIGSEGV", reason="it died: SIGSEGV", printed="free(): invalid"
)
KNOWN = (Verdict.UNCLEAN_EXIT,)
WEBGPU = {"device": {"type": "CPU", "description": "SwiftShader Device (Subzero)"}}


def known(event: ProcessEnded) -> ProcessEnded:
    return msgspec.structs.replace(event, expected=KNOWN)


def plan() -> Plan:
    table = {
        "schema": 1,
        "models": {"folders": ["m"]},
        "target": [{"name": "npu", "provider": "WebGpuExecutionProvider"}],
    }
    return plan_of(table)


def tally(*events: ProcessEnded) -> Tally:
    """The totals of a run in which every cell passed."""
    found = Tally(plan())
    for cell in plan().cells:
        found.add(bare_record(cell.model, suite="m", target="npu"))
    for event in events:
        found.ended(event)
    return found


def said(*events: ProcessEnded) -> list[tuple[str, str]]:
    return [*remarks(tally(*events).rows())]


@pytest.mark.parametrize(
    ("events", "ended", "unclean", "expected", "code"),
    [
        ([], 0, 0, True, EXIT_OK),
        ([CLEAN, CLEAN], 2, 0, True, EXIT_OK),
        ([CLEAN, DIED], 2, 1, False, EXIT_UNEXPECTED),
        ([DIED, CLEAN], 2, 1, False, EXIT_UNEXPECTED),
        ([known(CLEAN), known(DIED)], 2, 1, True, EXIT_OK),
        ([known(CLEAN)], 1, 0, False, EXIT_UNEXPECTED),
    ],
)
def test_exit_code(
    events: list[ProcessEnded], ended: int, unclean: int, *, expected: bool, code: int
) -> None:
    found = tally(*events)
    (row,) = found.rows()
    assert (row.exits.ended, row.exits.unclean, row.exits.expected) == (ended, unclean, expected)
    assert row.exits.verdict == (Verdict.UNCLEAN_EXIT if unclean else None)
    assert found.exit_code() == code


def test_the_first_unclean_end_is_told_with_how_many_there_were() -> None:
    later = msgspec.structs.replace(DIED, cause="hang", reason="it hangs", place="board-2")
    assert said(DIED, CLEAN, later) == [("unclean_exit", "npu: it died: SIGSEGV (2 of 3 processes)")]
    assert said(later) == [("unclean_exit", "npu: at place board-2: it hangs")]
    assert said(known(DIED)) == [("unclean_exit", "npu: it died: SIGSEGV, as the matrix expects")]
    assert said(known(CLEAN)) == [("unexpected", f"npu: {ALL_CLEAN}")]
    assert said(CLEAN) == []


def test_a_simulated_device_is_named() -> None:
    found = tally()
    found.ready("npu", {"devices": [WEBGPU]})
    assert [*remarks(found.rows())] == [("simulated", "npu (SwiftShader Device (Subzero)): no accelerator")]
    found.ready("npu", {"devices": [{"device": {"type": "GPU", "description": "Radeon RX 7900"}}]})
    assert [*remarks(found.rows())] == []


def read(folder: Path) -> RunInfo:
    return msgspec.json.decode((folder / "run.json").read_bytes(), type=RunInfo)


def test_ends_are_in_the_run_folder_and_go_on_when_it_is_resumed(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", plan())
    folder.ended(CLEAN)
    folder.ended(DIED)
    folder.finish()
    info = read(folder.path)
    found = info.exits["npu"]
    assert (folder.path / found.artifacts / "output.txt").read_text() == "free(): invalid"
    assert msgspec.structs.replace(found, artifacts="") == TargetExit(
        ended=2,
        unclean=1,
        verdict=Verdict.UNCLEAN_EXIT,
        phase=Phase.UNLOAD,
        cause="SIGSEGV",
        reason="it died: SIGSEGV",
        expected=False,
    )
    (folder.path / "records.jsonl").touch()
    again = RunFolder.reopen(folder.path, plan(), info, 0)
    again.ended(CLEAN)
    again.finish()
    assert read(folder.path).exits["npu"] == with_end(found, CLEAN)
    resumed = Tally(plan())
    resumed.resume(info)
    assert resumed.unexpected_exits() == ("npu",)
