"""What misbehaviour must not cost: memory of the machine and of the harness, descriptors, threads, room."""

import gc
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Phase, Verdict
from harness.engine.processes.connection import Connection
from tests.kit import FAKE_ENV, of_folder, records_of, run_matrix, write_model

CUDA = "CUDAExecutionProvider"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
def run_models(tmp_path: Path) -> Callable[..., list[Record]]:
    """Run models of these names on the fake; their records in the order of the names."""

    def run(
        folder: str, names: list[str], env: dict[str, str] | None = None, **settings: Any
    ) -> list[Record]:
        home = tmp_path / folder
        for name in names:
            write_model(home / "models" / f"{name}.onnx")
        table = {**FAKE_ENV, "FAKE_MARKER": str(home / "marker"), **(env or {})}
        target = {"name": "t", "provider": CUDA, "env": table, **settings}
        events = run_matrix(home, of_folder(target))
        records = {record.model: record for record in records_of(events)}
        return [records[f"{name}.onnx"] for name in names]

    return run


def test_a_huge_allocation_fails_alone(run_models: Callable[..., list[Record]]) -> None:
    before, huge, after = run_models("huge", ["1_before", "2_huge_in_run", "3_after"], memory_limit_mb=8192)
    assert (huge.verdict, huge.phase) == (Verdict.OUT_OF_MEMORY, Phase.RUN)
    assert "Unable to allocate 64.0 GiB" in huge.reason
    assert "replaced" not in huge.reason
    assert before.verdict is after.verdict is Verdict.PASS


def test_a_flood_fills_neither_memory_nor_disk(
    run_models: Callable[..., list[Record]], tmp_path: Path
) -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # forget the peak so far
    before = peak_mib()
    records = run_models("flood", ["1_flood_in_run", "2_sizeup_in_create"])
    assert [record.verdict for record in records] == [Verdict.PASS] * 2
    assert peak_mib() - before < 50.0
    assert (tmp_path / "flood" / "marker").read_text(encoding="utf-8") == "0"


def peak_mib() -> float:
    """The most memory that this process has had, in MiB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def test_a_leak_shows_in_the_records(run_models: Callable[..., list[Record]]) -> None:
    names = [f"{number:02}_leaks" for number in range(40)]
    records = run_models("leak", names, {"FAKE_FAULT": "leak"})
    states = [record.process for record in records if record.process is not None]
    assert [state.session for state in states] == list(range(1, 41))
    assert len({state.pid for state in states}) == 1
    first, last = states[10].rss_mib, states[-1].rss_mib
    assert first is not None
    assert last is not None
    assert 28.0 < last - first < 35.0


def test_restarts_leave_nothing_behind(run_models: Callable[..., list[Record]]) -> None:
    run_models("warm", ["1_segv_in_run", "2_after"])
    before, kept = held(), connections()
    names = [f"{number:02}_{how}_in_run" for number in range(10) for how in ("segv", "exit3", "garbage")]
    records = run_models("many", names, workers=3)
    assert {record.verdict for record in records} == {Verdict.CRASH}
    deadline = time.monotonic() + 60.0
    while (after := held()) != before and time.monotonic() < deadline:
        time.sleep(0.05)  # what waits for the last ones is on its way out
    assert after == before
    # The fixture keeps the engine, and that the few that lived to the end.
    assert connections() < kept + 8


def held() -> tuple[int, int, int]:
    """Descriptors, threads and children of this process, without those of garbage."""
    gc.collect()
    children = [
        path.read_text(encoding="utf-8").split() for path in Path("/proc/self/task").glob("*/children")
    ]
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), sum(map(len, children))


def connections() -> int:
    """What is kept for a process, be it dead."""
    gc.collect()
    return sum(type(thing) is Connection for thing in gc.get_objects())
