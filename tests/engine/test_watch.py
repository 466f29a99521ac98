"""What is slow and what hangs: a process at work, one that does nothing, and one that others starve."""

import multiprocessing
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.agent.work import ProcessWork, process_work
from harness.core.records.record import Record
from harness.core.records.verdict import Phase, Verdict
from harness.engine.measuring.early_end import ended
from harness.engine.processes import launch
from harness.engine.tasks.events import Event, Finished
from harness.engine.tasks.outcome import Hung
from harness.engine.workers import watch
from harness.engine.workers.watch import MOST_LIMITS, Watch, hung, lost_s
from tests.kit import FAKE_ENV, fake_target, records_of, run_matrix, write_model

LIMIT_S = 1.0
linux = pytest.mark.skipif(sys.platform != "linux", reason="the fake looks at /proc")


def worked(
    at_s: float, used_s: float, waited_s: float = 0.0, *, device_s: float = 0.0, of: int = 2
) -> ProcessWork:
    return ProcessWork(at_s=at_s, processor_s=used_s, waited_s=waited_s, device_s=device_s, processors=of)


def end(seen: Watch, rate: tuple[float, float, float]) -> tuple[float, Hung]:
    """When a phase ends whose process uses, waits and has a device at such rates, and how."""
    now = 0.0
    due: float | None = seen.limit_s / 10
    while due is not None:
        now = due
        used, waited, device = (now * each for each in rate)
        due = seen.look(now, worked(now, used, waited, device_s=device))
    return now, hung(Phase.RUN, seen.limit_s, seen, now, "")


@pytest.mark.parametrize(
    ("rate", "alone", "small", "took_s", "at_work"),
    [
        ((0.0, 0.0, 0.0), False, False, 60.0, False),
        ((0.02, 0.0, 0.0), False, False, 60.0, False),  # it looks every millisecond whether it may go on
        ((1.0, 0.0, 0.0), False, False, 60.0, True),
        ((0.0, 0.0, 0.9), False, False, 60.0, True),
        ((0.5, 0.5, 0.0), False, False, 114.0, True),  # half of its processor: nearly twice the limit
        ((0.01, 0.99, 0.0), False, False, 600.0, True),
        ((1.0, 0.0, 0.0), True, False, 600.0, False),
        ((0.0, 0.0, 0.0), True, False, 60.0, False),
        ((0.01, 0.99, 0.0), True, False, 600.0, True),  # alone, and starved by other programs all the same
        ((1.0, 0.0, 0.0), False, True, 60.0, False),
    ],
)
def test_a_limit_ends(
    rate: tuple[float, float, float], *, alone: bool, small: bool, took_s: float, at_work: bool
) -> None:
    found_s, how = end(Watch(limit_s=60.0, began=0.0, alone=alone, small=small), rate)
    assert found_s == pytest.approx(took_s, rel=0.03)
    assert how.at_work is at_work


def test_a_process_that_stops_working_hangs_even_if_it_worked_before() -> None:
    seen = Watch(limit_s=10.0, began=0.0)
    for now in range(1, 11):
        seen.look(now, worked(now, min(now, 4.0)))
    assert not seen.at_work


@pytest.mark.parametrize("work", [None, worked(1.0, 1.0)])
def test_a_process_that_cannot_be_watched_has_its_limit_and_hangs(work: ProcessWork | None) -> None:
    seen = Watch(limit_s=10.0, began=0.0, alone=True)
    assert [seen.look(now, work) for now in (9.5, 10.0)] == [10.0, None]
    how = hung(Phase.RUN, 10.0, seen, 10.0, "")
    assert (how.at_work, how.told) == (False, "it could not be seen here whether it still worked")


def test_the_first_news_from_elsewhere_may_be_of_an_earlier_model() -> None:
    seen = Watch(limit_s=10.0, began=0.0, is_here=False)
    for now, at_s, used_s in ((1.0, 90.0, 50.0), (2.0, 90.0, 50.0), (5.0, 100.0, 60.0), (9.0, 110.0, 60.0)):
        seen.look(now, worked(at_s, used_s))
    assert [work.at_s for work in seen.looks] == [100.0, 110.0]
    assert seen.at_work is False


@pytest.mark.parametrize(
    ("used_s", "waited_s", "processors", "lost"),
    [
        (10.0, 0.0, 2, 0.0),
        (2.5, 7.5, 2, 7.5),
        (20.0, 60.0, 2, 0.0),  # eight threads of its own on two processors
        (20.0 / 3, 40.0 / 3, 2, 20.0 / 3),  # two threads, each with a third of a processor
        (0.1, 0.2, 2, 0.2),  # it mostly sleeps
        (0.0, 0.0, 2, 0.0),
    ],
)
def test_what_others_take_is_told_from_what_it_takes_itself(
    used_s: float, waited_s: float, processors: int, lost: float
) -> None:
    passed = worked(0.0, 0.0, of=processors), worked(10.0, used_s, waited_s, of=processors)
    assert lost_s(*passed) == pytest.approx(lost)


def test_the_words_name_the_limit_and_a_higher_one() -> None:
    how = Hung(phase=Phase.RUN, limit_s=60.0, at_work=True, told="it used 30 s", took_s=60.0)
    facts = ended(how).ended
    assert facts is not None
    assert facts.how == "timed_out"
    assert facts.message == (
        "still at work in phase run at its limit of 60 s: it used 30 s; "
        "give it more: timeouts_s = { run = 600 }"
    )
    facts = ended(Hung(phase=Phase.RUN, limit_s=60.0, told="it used 0 s", took_s=180.0)).ended
    assert facts is not None
    assert facts.how == "hung"
    assert facts.message.startswith(
        "no end of phase run within 60 s; the process was killed, after 180 s; it used"
    )


@linux
def test_work_counts_a_process_and_what_it_started() -> None:
    program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    with subprocess.Popen([sys.executable, "-c", program], start_new_session=True) as process:
        try:
            until = time.monotonic() + 60.0
            while (work := process_work(process.pid)) and work.processor_s < 0.5 and time.monotonic() < until:
                time.sleep(0.05)
            assert work is not None
            assert work.processor_s >= 0.5
            assert work.processors == len(os.sched_getaffinity(0))
        finally:
            os.killpg(process.pid, 9)


def test_the_work_of_a_device_is_that_of_its_clients(tmp_path: Path) -> None:
    """Several files of a process may be of one client."""
    fields = ["0"] * 50
    (tmp_path / "7" / "fdinfo").mkdir(parents=True)
    (tmp_path / "7" / "stat").write_text(f"7 (a) b) {' '.join(fields)}\n", encoding="utf-8")
    for number, client in enumerate((5, 5, 6)):
        text = f"drm-client-id:\t{client}\ndrm-engine-render:\t2000000000 ns\ndrm-engine-capacity-x: 2\n"
        (tmp_path / "7" / "fdinfo" / str(number)).write_text(text, encoding="utf-8")
    work = process_work(7, str(tmp_path))
    assert work is not None
    assert work.device_s == 4.0


def test_nothing_is_known_of_a_process_that_is_gone(tmp_path: Path) -> None:
    assert process_work(7, str(tmp_path)) is None
    assert process_work(7, str(tmp_path / "no such folder")) is None


def spin(processor: int) -> None:
    os.sched_setaffinity(0, {processor})
    while True:
        pass


@pytest.fixture
def crowded() -> Iterator[int]:
    """A processor on which three other programs compute."""
    processor = max(os.sched_getaffinity(0))
    others = [multiprocessing.get_context("spawn").Process(target=spin, args=(processor,)) for _ in range(3)]
    for each in others:
        each.start()
    yield processor
    for each in others:
        each.kill()


@linux
def test_a_model_is_judged_by_what_its_process_does(
    tmp_path: Path, crowded: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "STARVED", 1.0)  # the machine of the tests is as busy as it is
    for name in ("1_burn_in_run", "2_hang_in_run", "3_spin_in_run", "4_fine"):
        write_model(tmp_path / "all" / f"{name}.onnx")
    env = {**FAKE_ENV, "FAKE_MARKER": str(tmp_path / "marker"), "FAKE_PROCESSOR": str(crowded)}
    limits = {"timeouts_s": {"run": LIMIT_S}, "provider": "CUDAExecutionProvider", "env": env}
    matrix = {
        "models": {"folders": ["all"]},
        "target": [{"name": "npu", **limits}, {"name": "alone", "alone": True, **limits}],
        "exclude": [{"target": "alone", "model": ["1*", "2*", "4*"]}],
        "expect": [
            {"model": "3*", "target": "npu", "verdict": "timeout", "reason": "slow"},
            {"model": "3*", "target": "alone", "verdict": "timeout", "reason": "wrong"},
        ],
    }
    found = found_in(run_matrix(tmp_path, matrix))
    assert {name: str(record.verdict) for name, record in found.items()} == {
        "all/1_burn_in_run.onnx[npu]": "pass",  # it needs 0.4 s of a processor of which it gets a quarter
        "all/2_hang_in_run.onnx[npu]": "hang",
        "all/3_spin_in_run.onnx[npu]": "timeout",
        "all/3_spin_in_run.onnx[alone]": "hang",
        "all/4_fine.onnx[npu]": "pass",
    }
    slow, alone = found["all/3_spin_in_run.onnx[npu]"], found["all/3_spin_in_run.onnx[alone]"]
    assert "timeouts_s = { run = 10 }" in slow.reason
    assert slow.phase is Phase.RUN
    assert slow.expected
    assert not alone.expected
    assert f"after {MOST_LIMITS * LIMIT_S:g}" in alone.reason


def found_in(events: list[Event]) -> dict[str, Record]:
    return {record.cell: record for record in records_of(events)}


def test_a_timeout_is_a_skip_that_was_tried() -> None:
    assert Verdict.TIMEOUT.family == "skipped"


@linux
def test_an_agent_elsewhere_is_watched_by_its_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its signs of life tell what the agent has used, and leave no trace in what it printed."""
    monkeypatch.setattr(launch, "BEAT_S", 0.1)
    for name in ("1_hang_in_run", "2_spin_in_run"):
        write_model(tmp_path / "all" / f"{name}.onnx")
    target = fake_target(
        "far", runtime={"command": shlex.quote(sys.executable)}, timeouts_s={"run": 2 * LIMIT_S}
    )
    events = run_matrix(tmp_path, {"models": {"folders": ["all"]}, "target": [target]})
    found = {name.partition("[")[0]: record for name, record in found_in(events).items()}
    assert found["all/1_hang_in_run.onnx"].verdict is Verdict.HANG
    assert "it used 0.0 s of processors" in found["all/1_hang_in_run.onnx"].reason
    assert found["all/2_spin_in_run.onnx"].verdict is Verdict.TIMEOUT
    assert not any("alive" in event.printed for event in events if isinstance(event, Finished))
