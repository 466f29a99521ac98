"""What Slurm says about jobs, with a ``squeue`` of the test's own; ``tests/slurm`` has a real one."""

import os
import queue
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.verdict import Cause, Verdict
from harness.engine.processes.process import AgentProcess
from harness.engine.processes.slurm import (
    Queued,
    QueueWatch,
    Waiting,
    allocates,
    told_end,
    waiting_jobs,
)
from harness.engine.tasks.events import Noted
from harness.plan.target import Runtime
from tests.kit import fake_target, of_folder, records_of, run_matrix, write_model
from tests.programs import write_program

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Slurm is for POSIX")


@pytest.fixture
def squeue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with what squeue prints; it fails if the file is missing."""
    table = tmp_path / "table"
    home = tmp_path / "bin"
    home.mkdir()
    write_program(home / "squeue", f"#!/bin/sh\ncat {shlex.quote(str(table))}\n")
    monkeypatch.setenv("PATH", f"{home}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("harness.engine.processes.slurm.SLURM_LOOK_S", 0.05)
    return table


def row(session: object, job: str, reason: str) -> str:
    return f"{session!s:<64}{job:<64}{reason:<64}\n"


def test_waiting_jobs_are_known_by_their_session(squeue: Path) -> None:
    assert waiting_jobs() is None
    squeue.write_text(
        row(41, "17", "Resources")
        + row(42, "18_[3-8]", "ReqNodeNotAvail, UnavailableNodes:n[1-2]")
        + row("N/A", "19", "Priority")
        + "\n"
        + row(43, "20", "two  words"),
        encoding="utf-8",
    )
    assert waiting_jobs() == {
        41: Waiting("job 17", "Resources"),
        42: Waiting("job 18_[3-8]", "ReqNodeNotAvail, UnavailableNodes:n[1-2]"),
        43: Waiting("job 20", "two words"),
    }
    squeue.write_bytes(b"\xff\xfe" * 200)
    assert waiting_jobs() == {}


class Fake(AgentProcess):
    """A process that has not greeted yet."""

    greeted: Any = None

    def __init__(self) -> None:
        """Start nothing."""

    @property
    def pid(self) -> int:
        return 41

    @property
    def greeting(self) -> Any:
        return self.greeted


def test_a_watch_tells_what_changes_until_the_agent_greets(squeue: Path) -> None:
    told: queue.SimpleQueue[tuple[int, Queued]] = queue.SimpleQueue()
    watch, process = QueueWatch(lambda number, message: told.put((number, message))), Fake()
    squeue.write_text(row(41, "17", "Priority") + row(7, "1", "Resources"), encoding="utf-8")
    watch.watch(3, process)
    assert told.get(timeout=30) == (3, Queued(Waiting("job 17", "Priority")))
    squeue.write_text(row(41, "17", "Resources"), encoding="utf-8")
    assert told.get(timeout=30) == (3, Queued(Waiting("job 17", "Resources")))
    squeue.unlink()  # a controller that does not answer changes nothing
    with pytest.raises(queue.Empty):
        told.get(timeout=0.5)
    squeue.write_text("", encoding="utf-8")
    assert told.get(timeout=30) == (3, Queued(None))
    process.greeted = object()
    squeue.write_text(row(41, "17", "Resources"), encoding="utf-8")
    with pytest.raises(queue.Empty):
        told.get(timeout=0.5)
    watch.close()


def test_a_step_waits_within_its_allocation(
    squeue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    squeue.write_text(row(41, "17", "Priority"), encoding="utf-8")
    scontrol = tmp_path / "bin" / "scontrol"
    form = "StepId={} UserId=0 TimeLimit=UNLIMITED State={} Partition=test SrunHost:Pid=vm:{}\n"
    steps = form.format("32.0", "RUNNING", 1) + form.format("32.TBD", "PENDING", os.getpid())
    gone = form.format("32.TBD", "PENDING", 1 << 30)
    write_program(scontrol, f"#!/bin/sh\nprintf '%s' {shlex.quote(steps + gone)}\n")
    assert waiting_jobs() == {41: Waiting("job 17", "Priority")}
    monkeypatch.setenv("SLURM_JOB_ID", "32")
    assert waiting_jobs() == {
        41: Waiting("job 17", "Priority"),
        os.getsid(0): Waiting("a step of job 32", "the allocation has no room for it"),
    }


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("srun: Force Terminated job 1\n", ""),
        (
            "slurmstepd: error: *** STEP 16.0 ON n1 CANCELLED AT 2026-11-25T08:50:56 DUE TO TIME LIMIT ***\n",
            "STEP 16.0 ON n1 CANCELLED AT 2026-11-25T08:50:56 DUE TO TIME LIMIT",
        ),
        ("*** JOB 3 ON n1 CANCELLED ***\n*** STEP 4.0 ON n2 CANCELLED ***", "STEP 4.0 ON n2 CANCELLED"),
        ("*** stack smashing detected ***", ""),
    ],
)
def test_the_end_of_a_job_is_in_what_was_printed(printed: str, told: str) -> None:
    assert told_end(printed) == told


@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        (Runtime(command="srun python3"), True),
        (Runtime(command="nice /opt/slurm/bin/srun --quiet python3"), True),
        (Runtime(command="salloc -n1 srun python3"), True),
        (Runtime(command="docker exec -i srun-box python3"), False),
        (Runtime(command="sh -c 'unclosed"), False),
        (Runtime(ssh="srun"), False),
        (Runtime(), False),
    ],
)
def test_which_commands_allocate(runtime: Runtime, expected: bool) -> None:  # noqa: FBT001
    assert allocates(runtime) is expected


def test_a_run_tells_that_it_waits_and_gives_up_after_the_queues_limit(squeue: Path, tmp_path: Path) -> None:
    """The command leaves its own row, as its job does, and starts nothing."""
    write_model(tmp_path / "models" / "1_fine.onnx")
    script = tmp_path / "wait.py"
    script.write_text(
        f"import os, pathlib, time\nrow = str(os.getpid()).ljust(64) + {row('', '17', 'Priority')[64:]!r}\n"
        f"pathlib.Path({str(squeue)!r}).write_text(row)\ntime.sleep(1000)\n",
        encoding="utf-8",
    )
    target = fake_target(
        "npu",
        runtime={"command": f"{shlex.quote(sys.executable)} {shlex.quote(str(script))}"},
        timeouts_s={"start": 30.0, "queue": 0.5},
    )
    events = run_matrix(tmp_path, of_folder(target))
    assert [event.message for event in events if isinstance(event, Noted)] == [
        "target npu: job 17 waits in Slurm's queue: Priority"
    ]
    (record,) = (record for record in records_of(events))
    assert (record.verdict, record.cause) == (Verdict.UNAVAILABLE, Cause.NO_DEVICE)
    assert "job 17 waits in Slurm's queue: Priority, for 0.5 s, the limit timeouts_s.queue" in record.reason
