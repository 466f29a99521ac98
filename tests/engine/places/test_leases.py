"""`acquire` and `release`: each place is released as often as it was acquired, however the run ends."""

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.verdict import Verdict
from harness.engine.tasks.events import Finished, PlaceChanged, Warned
from harness.places import place_state
from tests.kit import records_of, run_matrix, start_engine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks at /proc")

Matrix = Callable[..., dict[str, Any]]

TELL = "import sys; open(sys.argv[1], 'a').write(' '.join(sys.argv[2:]) + '\\n')"


def leased(log: Path, count: int, **more: Any) -> dict[str, Any]:
    """Places whose commands write a line each."""
    words = [sys.executable, "-S", "-c", TELL, str(log)]
    return {
        "count": count,
        "command": sys.executable,
        "acquire": [*words, "take", "{name}"],
        "release": [*words, "give", "{name}"],
        **more,
    }


def lines(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


def test_each_place_is_acquired_and_released_once(tmp_path: Path, matrix: Matrix) -> None:
    log = tmp_path / "log"
    events = run_matrix(tmp_path, matrix(8, "fine", leased(log, 2)))
    assert [record.verdict for record in records_of(events)] == [Verdict.PASS] * 8
    assert Counter(lines(log)) == Counter(["take place-1", "take place-2", "give place-1", "give place-2"])


def test_an_interrupted_run_releases(tmp_path: Path, matrix: Matrix) -> None:
    log = tmp_path / "log"
    engine = start_engine(tmp_path, matrix(8, "hang_in_run", leased(log, 2)))
    for event in engine.events():
        if isinstance(event, PlaceChanged):
            break
    engine.close()
    assert Counter(lines(log)) == Counter(["take place-1", "take place-2", "give place-1", "give place-2"])


def test_a_place_that_is_lost_is_released_and_acquired_again(
    tmp_path: Path, matrix: Matrix, launchers: Callable[[int], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place_state, "RETRY_S", 0.2)
    log = tmp_path / "log"
    engine = start_engine(tmp_path, matrix(6, "nap_in_run", leased(log, 1)))
    count = 0
    for event in engine.events():
        if isinstance(event, Finished):
            count += 1
            if count == 1:
                os.kill(launchers(1)[0], signal.SIGKILL)
    assert count == 6
    assert lines(log) == ["take place-1", "give place-1"] * 2


def test_a_place_that_cannot_be_acquired_is_set_aside_and_undone(tmp_path: Path, matrix: Matrix) -> None:
    log = tmp_path / "log"
    refuse = TELL + "; sys.exit('no lease' if sys.argv[3] == 'place-1' else 0)"
    places = leased(log, 2, acquire=[sys.executable, "-S", "-c", refuse, str(log), "take", "{name}"])
    events = run_matrix(tmp_path, matrix(4, "nap_in_run", places))
    assert {record.place for record in records_of(events)} == {"place-2"}
    aside = [event for event in events if isinstance(event, PlaceChanged) and event.state == "set aside"]
    assert {event.place for event in aside} == {"place-1"}
    assert "no lease" in aside[0].reason
    taken, given = (
        Counter(line.split()[1] for line in lines(log) if word in line) for word in ("take", "give")
    )
    assert taken == given


def test_an_acquisition_has_a_limit(tmp_path: Path, matrix: Matrix) -> None:
    wait = [
        sys.executable,
        "-S",
        "-c",
        "import time, sys; time.sleep(60 * (sys.argv[1] == 'place-1'))",
        "{name}",
    ]
    places = {"count": 2, "command": sys.executable, "acquire": wait, "limit_s": 1.0}
    events = run_matrix(tmp_path, matrix(4, "nap_in_run", places))
    assert {record.place for record in records_of(events)} == {"place-2"}
    reasons = [event.reason for event in events if isinstance(event, PlaceChanged) and event.reason]
    assert any("did not end within 1 s" in reason for reason in reasons)


def test_a_release_that_fails_is_told(tmp_path: Path, matrix: Matrix) -> None:
    places = leased(tmp_path / "log", 1, release=["false"])
    events = run_matrix(tmp_path, matrix(1, "fine", places))
    assert [record.verdict for record in records_of(events)] == [Verdict.PASS]
    warnings = [event.message for event in events if isinstance(event, Warned)]
    assert warnings == ["place place-1 was not released: exit code 1"]
