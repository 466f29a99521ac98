"""Runs of the real engine with tensors of 2 MB, which travel as files: right, bounded, gone at the end."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.agent import tensor_files as agent_files
from harness.core.records.verdict import Verdict
from harness.engine.tasks.events import Event, Finished
from tests.kit import by_model, fake_target, of_folder, records_of, start_engine, write_model

FAULTS = {
    "": Verdict.PASS,
    "zeros": Verdict.MISMATCH,
    "jitter": Verdict.NONDETERMINISTIC,
    "segv_in_create": Verdict.CRASH,
    "kill_in_run": Verdict.CRASH,
    "error_in_run": Verdict.ERROR,
    "exit3_in_teardown": Verdict.PASS,
    "hang_in_run": Verdict.HANG,
}
TENSOR_BYTES = 500_000 * 4
PROCESSES = 8
"""At any time, at most: the target's, the CPU provider's, a spare one, and those that are just dying."""

FILES = 4 * (1 + 3)
"""Of one process: for each task in hand an input or three outputs, or both for a moment.

That of the CPU provider has more (30 were seen) when it is asked for noise, nine data sets at once; others
have less meanwhile.
"""

LARGEST_BYTES = 2 * TENSOR_BYTES
"""A wrong result makes the harness ask for the model in float64."""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the fake dies by POSIX signals")


def table(**target: Any) -> dict[str, Any]:
    return of_folder(fake_target(**{"timeouts_s": {"create": 20.0, "run": 2.0, "teardown": 2.0}, **target}))


def look(memory: Path) -> tuple[list[Path], int]:
    """The files of tensors in there, and how many folders of processes; either may go while one looks."""
    files: list[Path] = []
    processes = 0
    for folder, folders, names in os.walk(memory):
        files += [Path(folder, name) for name in names if name != "lock"]
        processes += len(folders) if Path(folder).parent == memory else 0
    return files, processes


def sizes(paths: list[Path]) -> Iterator[int]:
    """In bytes; a file can be gone by now."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            yield path.stat().st_size


def verdicts(events: list[Event]) -> dict[str, Verdict]:
    return {model: record.verdict for model, record in by_model(events).items()}


@pytest.mark.long
def test_each_fault_has_its_verdict_and_leaves_no_file(tmp_path: Path, memory: Path) -> None:
    for fault in FAULTS:
        for name in (f"2_{fault}", "3_after"):
            write_model(tmp_path / "models" / (fault or "none") / f"{name}.onnx", "big")
    engine = start_engine(tmp_path, table())
    events: list[Event] = []
    seen = 0
    for event in engine.events():
        events.append(event)
        now, processes = look(memory)
        seen += len(now)
        # What crashed processes had in hand is not among them.
        assert processes <= PROCESSES
        assert len(now) <= PROCESSES * FILES
        assert all(size <= LARGEST_BYTES for size in sizes(now))
    assert seen
    assert list(memory.iterdir()) == []
    found = verdicts(events)
    assert {fault: found[f"{fault or 'none'}/2_{fault}"] for fault in FAULTS} == FAULTS
    assert {found[f"{fault or 'none'}/3_after"] for fault in FAULTS} == {Verdict.PASS}


def test_a_run_that_is_broken_off_leaves_no_file(tmp_path: Path, memory: Path) -> None:
    for name in ("1_before", "2_hang_in_run", "3_after", "4_after"):
        write_model(tmp_path / "models" / f"{name}.onnx", "big")
    engine = start_engine(tmp_path, table(timeouts_s={"run": 60.0}))
    next(event for event in engine.events() if isinstance(event, Finished))
    engine.close()
    assert list(memory.iterdir()) == []


def test_a_target_elsewhere_gets_no_file_and_no_message_without_end(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_files, "INLINE_LIMIT", TENSOR_BYTES - 1)
    write_model(tmp_path / "models" / "1_small.onnx")
    write_model(tmp_path / "models" / "2_big.onnx", "big")
    # Any command that ends in a Python counts as elsewhere.
    events = []
    for event in start_engine(tmp_path, table(runtime={"command": "env python"})).events():
        events.append(event)
        assert not [path for path in look(memory)[0] if path.parent.name == "1"]
    assert verdicts(events) == {"1_small": Verdict.PASS, "2_big": Verdict.NO_GOLDEN}
    reasons = [record.reason for record in records_of(events)]
    assert "the inputs take more than the 1 MiB that fit into one message" in reasons
