"""Further tries of a failure show flakes, and change no verdict."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.core.records.verdict import Verdict
from harness.engine.tasks.events import Finished
from harness.run.artifacts import keep_artifacts

if TYPE_CHECKING:
    from tests.engine.scheduling.conftest import Bench

PASS, CRASH, ERROR = Verdict.PASS, Verdict.CRASH, Verdict.ERROR

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the fake needs POSIX")


def test_the_first_verdict_stays_and_retries_stop_at_a_difference(bench: "Bench", tmp_path: Path) -> None:
    bench.models("0_m", "1_stumble_in_run", "2_stumbletwice_in_run", "3_error_in_run")
    bench.models("4_segvonce_in_run", "5_segv_in_run", "6_zeros", "7_m")
    expect = [{"model": "6_zeros*", "verdict": "mismatch", "reason": "known"}]
    events = bench.run(bench.target("t", retries=2), bench.target("once"), expect=expect)
    found = bench.records(events)
    assert {
        name.removeprefix("t "): (record.verdict, *record.retries)
        for name, record in found.items()
        if name.startswith("t ")
    } == {
        "0_m": (PASS,),
        "1_stumble_in_run": (ERROR, PASS),
        "2_stumbletwice_in_run": (ERROR, ERROR, PASS),
        "3_error_in_run": (ERROR, ERROR, ERROR),
        "4_segvonce_in_run": (CRASH, PASS),
        "5_segv_in_run": (CRASH, CRASH, CRASH),
        "6_zeros": (Verdict.MISMATCH,),
        "7_m": (PASS,),
    }
    assert {name for name, record in found.items() if record.flaky} == {
        "t 1_stumble_in_run",
        "t 2_stumbletwice_in_run",
        "t 4_segvonce_in_run",
    }
    assert not any(record.retries for name, record in found.items() if name.startswith("once "))
    # The first process, and one after each of four crashes.
    fresh = [worker for worker in bench.launched if worker.queue and worker.queue.name == "t"]
    assert len(fresh) == 5
    (first,) = [
        event
        for event in events
        if isinstance(event, Finished) and (event.record.target, event.record.model[0]) == ("t", "1")
    ]
    assert first.record.reason == "Fail: it stumbled"
    record = keep_artifacts(tmp_path / "run", first, pytest.fail)
    assert (tmp_path / "run" / record.artifacts / "output.txt").read_text(encoding="utf-8") == "at first\n"
    assert (tmp_path / "run" / record.artifacts / "test_data_set_0" / "input_0.pb").is_file()


def test_a_retry_that_could_not_run_does_not_count(bench: "Bench") -> None:
    bench.models("0_m", "1_segv_in_run", "2_m")
    alone = bench.target("t", retries=2, env={"FAKE_FAULT": "single_in_register"})
    found = bench.records(bench.run(alone))
    assert {name: (record.verdict, record.retries) for name, record in found.items()} == {
        "t 0_m": (PASS, ()),
        "t 1_segv_in_run": (CRASH, ()),
        "t 2_m": (Verdict.UNAVAILABLE, ()),
    }
