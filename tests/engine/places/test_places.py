"""Places of a target: cells go to whoever is free, and what a machine does is not the provider's doing."""

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Cause, Verdict
from harness.core.text.errors import UsageError
from harness.engine.processes import launch
from harness.engine.tasks.events import Event, Finished, NotRun, PlaceChanged, TargetReady, Warned
from harness.engine.workers import process_pool, worker
from harness.places import place_state
from tests.kit import records_of, run_matrix, start_engine
from tests.programs import write_program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks at /proc")

Matrix = Callable[..., dict[str, Any]]


def place(name: str, **env: str) -> dict[str, Any]:
    return {"name": name, "command": sys.executable, "env": env}


def records(events: list[Event]) -> list[Record]:
    return records_of(events)


def changes(events: list[Event], what: str) -> list[PlaceChanged]:
    return [event for event in events if isinstance(event, PlaceChanged) and event.state == what]


def test_cells_go_to_all_places_and_name_them(tmp_path: Path, matrix: Matrix) -> None:
    found = records(run_matrix(tmp_path, matrix(16, "nap_in_run", 2, env={"FAKE_NAP": "0.05"})))
    assert {record.verdict for record in found} == {Verdict.PASS}
    assert len({record.cell for record in found}) == len(found) == 16
    by_place = Counter(record.place for record in found)
    assert set(by_place) == {"place-1", "place-2"}
    assert min(by_place.values()) >= 4


def test_four_places_work_at_the_same_time(tmp_path: Path, matrix: Matrix) -> None:
    found = records(run_matrix(tmp_path, matrix(16, "nap_in_run", 4)))
    shares = Counter(record.place for record in found)
    assert len(found) == 16
    assert len(shares) == 4  # each cell waits a second, so a place alone would have got all long before
    assert max(shares.values()) <= 8


def test_a_place_with_a_wrong_answer_is_named(tmp_path: Path, matrix: Matrix) -> None:
    places = [place("board-1"), place("board-2", FAKE_SHIFT="1"), place("board-3")]
    found = records(run_matrix(tmp_path, matrix(12, "nap_in_run", places)))
    wrong = [record for record in found if record.verdict is not Verdict.PASS]
    assert len(found) == 12
    assert {record.place for record in found} == {"board-1", "board-2", "board-3"}
    assert wrong == [record for record in found if record.place == "board-2"]
    for record in wrong:
        assert record.verdict is Verdict.MISMATCH
        assert record.fails_here_alone
        assert not record.flaky
        assert record.reason.startswith("fails on board-2 alone, and not on board-")
        assert [each.verdict for each in record.elsewhere] == [Verdict.PASS, Verdict.MISMATCH]


def test_a_fault_of_the_provider_is_repeated_once_and_stays(tmp_path: Path, matrix: Matrix) -> None:
    found = records(run_matrix(tmp_path, matrix(3, "off_by_one", 2)))
    for record in found:
        assert record.verdict is Verdict.MISMATCH
        assert [each.verdict for each in record.elsewhere] == [Verdict.MISMATCH]
        assert record.elsewhere[0].place != record.place
        assert not record.fails_here_alone
        assert not record.flaky


def test_a_failure_that_no_place_repeats_is_flaky(tmp_path: Path, matrix: Matrix) -> None:
    (record,) = records(run_matrix(tmp_path, matrix(1, "segvonce_in_run", 2)))
    assert record.verdict is Verdict.CRASH
    assert record.flaky
    assert not record.fails_here_alone
    assert len(record.elsewhere) == 2


def test_the_only_place_cannot_be_compared(tmp_path: Path, matrix: Matrix) -> None:
    (record,) = records(run_matrix(tmp_path, matrix(1, "off_by_one", 1)))
    assert record.verdict is Verdict.MISMATCH
    assert record.elsewhere == ()


def test_another_version_is_told_before_the_first_cell(tmp_path: Path, matrix: Matrix) -> None:
    places = [place("new"), place("also-new"), place("old", FAKE_VERSION="1.30.2")]
    events = run_matrix(tmp_path, matrix(6, "fine", places))
    different = changes(events, "differs")
    first_cell = next(index for index, event in enumerate(events) if isinstance(event, Finished))
    assert different
    assert all(events.index(each) < first_cell for each in different)
    assert "onnxruntime: " in different[0].reason
    assert "1.30.2" in different[0].reason
    assert len(records(events)) == 6


def test_places_that_have_to_be_identical_refuse_the_run(tmp_path: Path, matrix: Matrix) -> None:
    places = {"identical": True, "each": [place("new"), place("old", FAKE_VERSION="1.30.2")]}
    events: list[Event] = []
    with pytest.raises(UsageError, match=r"(?s)differs from .*onnxruntime.*identical"):
        events += run_matrix(tmp_path, matrix(6, "fine", places))
    assert not records(events)


def test_a_killed_launcher_costs_the_place_and_no_verdict(
    tmp_path: Path, matrix: Matrix, launchers: Callable[[int], list[int]]
) -> None:
    engine = start_engine(tmp_path, matrix(10, "nap_in_run", 2))
    events: list[Event] = []
    for event in engine.events():
        if isinstance(event, Finished) and not records(events):
            os.kill(launchers(2)[0], signal.SIGKILL)
        events.append(event)
    found = records(events)
    assert len({record.cell for record in found}) == len(found) == 10
    assert {record.verdict for record in found} == {Verdict.PASS}
    assert sum(record.attempt > 1 for record in found) <= 1
    (lost,) = changes(events, "set aside")
    assert "the connection" in lost.reason


def test_a_killed_agent_costs_one_attempt(
    tmp_path: Path, matrix: Matrix, agents: Callable[[int], list[int]]
) -> None:
    engine = start_engine(tmp_path, matrix(10, "nap_in_run", 2))
    events: list[Event] = []
    for event in engine.events():
        if isinstance(event, Finished) and not records(events):
            os.kill(agents(2)[0], signal.SIGKILL)
        events.append(event)
    found = records(events)
    assert len({record.cell for record in found}) == len(found) == 10
    assert {record.verdict for record in found} == {Verdict.PASS}
    assert sum(record.attempt > 1 for record in found) <= 1
    assert not changes(events, "set aside")


def test_a_crash_of_the_provider_stays_a_crash(tmp_path: Path, matrix: Matrix) -> None:
    events = run_matrix(tmp_path, matrix(2, "segv_in_run", 2))
    for record in records(events):
        assert (record.verdict, record.cause) == (Verdict.CRASH, "SIGSEGV")
    assert not changes(events, "set aside")


def test_a_silent_place_is_set_aside_and_its_cells_run_elsewhere(
    tmp_path: Path,
    matrix: Matrix,
    launchers: Callable[[int], list[int]],
    stop: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launch, "BEAT_S", 0.3)
    monkeypatch.setattr(process_pool, "SILENT_S", 2.0)
    monkeypatch.setattr(worker, "LOOK_S", 0.2)
    engine = start_engine(tmp_path, matrix(14, "nap_in_run", 2))
    events: list[Event] = []
    stopped_at = told_after = 0.0
    for event in engine.events():
        if isinstance(event, Finished) and not stopped_at:
            stop(launchers(2)[0])
            stopped_at = time.monotonic()
        if isinstance(event, PlaceChanged) and event.state == "set aside":
            told_after = time.monotonic() - stopped_at
            assert "no sign of life" in event.reason
        events.append(event)
    found = records(events)
    assert len({record.cell for record in found}) == len(found) == 14
    assert {record.verdict for record in found} == {Verdict.PASS}
    assert told_after > 1.0


def test_a_model_that_hangs_is_the_providers(
    tmp_path: Path, matrix: Matrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "BEAT_S", 0.3)
    monkeypatch.setattr(process_pool, "SILENT_S", 2.0)
    monkeypatch.setattr(worker, "LOOK_S", 0.2)
    table = matrix(1, "hanggil_in_run", 2, timeouts_s={"run": 4.0})
    events = run_matrix(tmp_path, table)
    (record,) = records(events)
    assert record.verdict is Verdict.HANG
    assert [each.verdict for each in record.elsewhere] == [Verdict.HANG]
    assert not changes(events, "set aside")


def test_a_dead_place_does_not_stop_the_others(tmp_path: Path, matrix: Matrix) -> None:
    places = [{"name": "dead", "command": "false"}, {"name": "alive", "command": sys.executable}]
    events = run_matrix(tmp_path, matrix(8, "fine", places))
    assert {(record.verdict, record.place) for record in records(events)} == {(Verdict.PASS, "alive")}
    (dead,) = {event.place for event in changes(events, "set aside")}
    assert dead == "dead"


def test_places_that_never_work_make_the_target_unavailable(tmp_path: Path, matrix: Matrix) -> None:
    places = [{"name": "dead", "command": "false"}, {"name": "gone", "command": "/nowhere/python"}]
    events = run_matrix(tmp_path, matrix(3, "fine", places))
    found = records(events)
    assert [record.verdict for record in found] == [Verdict.UNAVAILABLE] * 3
    assert {record.cause for record in found} == {Cause.IMPORT_FAILED}
    assert "none of its places can be used" in found[0].reason
    assert "dead" in found[0].reason
    assert "gone" in found[0].reason
    (ready,) = [event for event in events if isinstance(event, TargetReady)]
    assert ready.problem


def test_without_any_place_left_cells_are_not_run(
    tmp_path: Path, matrix: Matrix, launchers: Callable[[int], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place_state, "RETRY_S", 0.2)
    switch = tmp_path / "off"
    script = tmp_path / "python"
    write_program(script, f'#!/bin/sh\n[ -e {switch} ] && exit 7\nexec {sys.executable} "$@"\n')
    engine = start_engine(tmp_path, matrix(20, "nap_in_run", {"count": 2, "command": str(script)}))
    events: list[Event] = []
    for event in engine.events():
        if isinstance(event, Finished) and not records(events):
            switch.touch()
            for launcher in launchers(2):
                os.kill(launcher, signal.SIGKILL)
        events.append(event)
    found, left = records(events), [event for event in events if isinstance(event, NotRun)]
    assert {record.verdict for record in found} == {Verdict.PASS}
    assert len(found) + len(left) == 20
    assert left
    assert {record.cell for record in found}.isdisjoint(event.cell for event in left)
    (warning,) = [event.message for event in events if isinstance(event, Warned)]
    assert "no place is left" in warning
    assert "--resume" in warning


def test_a_place_is_used_again_once_it_works(
    tmp_path: Path, matrix: Matrix, launchers: Callable[[int], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place_state, "RETRY_S", 0.2)
    engine = start_engine(tmp_path, matrix(6, "nap_in_run", 1))
    events: list[Event] = []
    for event in engine.events():
        if isinstance(event, Finished) and not records(events):
            os.kill(launchers(1)[0], signal.SIGKILL)
        events.append(event)
    assert [record.verdict for record in records(events)] == [Verdict.PASS] * 6
    assert len(changes(events, "set aside")) == 1


def test_local_places_have_variables_of_their_own(tmp_path: Path, matrix: Matrix) -> None:
    """Two devices of this machine, of which a variable chooses one."""
    places = [{"name": "gpu-0", "env": {"FAKE_SHIFT": 0}}, {"name": "gpu-1", "env": {"FAKE_SHIFT": 1}}]
    found = records(run_matrix(tmp_path, matrix(8, "nap_in_run", places)))
    assert {record.place for record in found if record.verdict is not Verdict.PASS} == {"gpu-1"}
