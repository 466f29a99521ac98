"""What comes from outside: kills, an early end, and runs in which no process has anything to say."""

import os
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.verdict import Verdict
from harness.engine.tasks.events import Event, Warned
from tests.kit import (
    FAKE_ENV,
    by_model,
    of_folder,
    run_matrix,
    start_engine,
    wait_for,
    write_model,
)

CUDA = "CUDAExecutionProvider"
LINUX = pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
POSIX = pytest.mark.skipif(os.name != "posix", reason="kills by POSIX signals")


def verdicts(events: list[Event]) -> dict[str, tuple[Verdict, int]]:
    return {model: (record.verdict, record.attempt) for model, record in by_model(events).items()}


def matrix(env: dict[str, str], **settings: Any) -> dict[str, Any]:
    return of_folder({"name": "t", "provider": CUDA, "env": env, **settings})


def written_number(path: Path) -> int:
    wait_for(path.exists)
    return int(path.read_text(encoding="utf-8"))


def children() -> set[int]:
    """The processes below this one, zombies included, as far as they are the engine's."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            found.add(int(stat.parent.name))
    return found


@POSIX
def test_killing_the_agent_costs_one_more_attempt(tmp_path: Path) -> None:
    for name in ("1_before", "2_waitonce_in_run", "3_after", "4_last"):
        write_model(tmp_path / "models" / f"{name}.onnx")
    marker = tmp_path / "marker"
    engine = start_engine(tmp_path, matrix({**FAKE_ENV, "FAKE_MARKER": str(marker)}))
    os.kill(written_number(marker), signal.SIGKILL)
    assert verdicts(list(engine.events())) == {
        "1_before": (Verdict.PASS, 1),
        "2_waitonce_in_run": (Verdict.PASS, 2),
        "3_after": (Verdict.PASS, 1),
        "4_last": (Verdict.PASS, 1),
    }


@LINUX
def test_closing_in_mid_run_is_quick_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = children()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    for name in ("1_before", "2_waitonce_in_run", "3_after"):
        write_model(tmp_path / "models" / f"{name}.onnx")
    marker = tmp_path / "marker"
    engine = start_engine(tmp_path, matrix({**FAKE_ENV, "FAKE_MARKER": str(marker)}))
    wait_for(marker.exists)
    assert list(scratch.iterdir())
    started = time.monotonic()
    engine.close()
    assert time.monotonic() - started < 20.0
    assert "3_after" not in verdicts(list(engine.events()))
    assert children() <= before
    assert not list(scratch.iterdir())
    engine.close()


@LINUX
def test_closing_while_processes_start_leaves_none(tmp_path: Path) -> None:
    before = children()
    write_model(tmp_path / "models" / "1_one.onnx")
    engine = start_engine(tmp_path, matrix({**FAKE_ENV, "FAKE_FAULT": "hang_in_import"}))
    deadline = time.monotonic() + 60
    while children() <= before:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    started = time.monotonic()
    engine.close()
    assert time.monotonic() - started < 20.0
    assert children() <= before


@LINUX
def test_a_run_that_came_to_its_end_leaves_no_process(tmp_path: Path) -> None:
    before = children()
    write_model(tmp_path / "models" / "1_one.onnx")
    assert verdicts(run_matrix(tmp_path, matrix(FAKE_ENV))) == {"1_one": (Verdict.PASS, 1)}
    assert children() <= before


@pytest.mark.parametrize(
    "settings", [{"runtime": {"python": "gone/python"}}, {}], ids=["no python", "corrupt"]
)
def test_a_run_ends_although_no_process_sends_a_last_word(tmp_path: Path, settings: dict[str, Any]) -> None:
    write_model(tmp_path / "models" / "1_one.onnx")
    (tmp_path / "models" / "9_corrupt.onnx").write_bytes(b"\x00garbage")
    engine = start_engine(tmp_path, matrix(FAKE_ENV, **settings))
    events: list[Event] = []
    reader = threading.Thread(target=lambda: events.extend(engine.events()), daemon=True)
    reader.start()
    reader.join(30)
    assert not reader.is_alive()
    found = {name: verdict for name, (verdict, _) in verdicts(events).items()}
    unavailable = Verdict.UNAVAILABLE
    assert found == (
        {"1_one": unavailable, "9_corrupt": unavailable}
        if settings
        else {"1_one": Verdict.PASS, "9_corrupt": Verdict.INVALID_MODEL}
    )


@POSIX
def test_a_device_for_one_process_serves_with_one(tmp_path: Path) -> None:
    names = ["1_say_in_run", *(f"{index}_more" for index in range(2, 9))]
    for name in names:
        write_model(tmp_path / "models" / f"{name}.onnx")
    env = {**FAKE_ENV, "FAKE_MARKER": str(tmp_path / "marker"), "FAKE_FAULT": "single_in_register"}
    events = run_matrix(tmp_path, matrix(env, workers=2))
    assert verdicts(events) == dict.fromkeys(names, (Verdict.PASS, 1))
    for event in events:
        if isinstance(event, Warned):
            assert "runs with 1 process at once" in event.message
            assert "the device is busy" in event.message
