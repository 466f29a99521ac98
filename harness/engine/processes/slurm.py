"""Slurm: whether a command's job waits in the queue and why, and Slurm's message about a job that it ended.

A command such as ``srun --gres=npu:1 python3`` starts nothing before its job gets a node. So Slurm itself is
asked, as long as an agent has not greeted. Slurm identifies a job by the session of the process that
submitted it, and each command here has its own session.
"""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from harness.agent.posix import session_of_process
from harness.core.text.errors import one_line

if TYPE_CHECKING:
    from harness.engine.processes.process import AgentProcess
    from harness.plan.target import Runtime

LAUNCHERS = frozenset({"srun", "salloc"})
"""Programs that allocate nodes, and wait for them."""

JOB = "SLURM_JOB_ID"
"""The variable with the job of a process. Each task of an array is a job."""

SLURM_LOOK_S = 2.0
"""Seconds between two queries to Slurm: one for all processes, and none once all agents have greeted."""

ANSWER_S = 20.0
"""Seconds within which a controller answers; a busy one is asked again."""

_COLUMN = 64
"""Width of each column that squeue prints."""

# --me: only own jobs. Jobs also wait while their nodes are being booted.
_SQUEUE = (
    "squeue",
    "--me",
    "--noheader",
    "--states=PENDING,CONFIGURING",
    f"--Format=AllocSID:{_COLUMN},JobID:{_COLUMN},Reason:{_COLUMN}",
)

_SCONTROL = ("scontrol", "show", "steps", "--oneliner")
_STEP = re.compile(r"^StepId=(\d+)\S* .*\bState=PENDING .*\bSrunHost:Pid=\S+:(\d+)\b", re.MULTILINE)
"""A waiting step in scontrol's output: its job, and the process of its ``srun``."""

NO_ROOM = "the allocation has no room for it"
"""The reason why a step waits; Slurm gives none."""

_ENDED = re.compile(r"\*\*\* ((?:JOB|STEP) .{1,200}?) \*\*\*")


class Waiting(msgspec.Struct, frozen=True):
    """A job, or a step of one, that waits for nodes; the reason is Slurm's word, such as ``Resources``."""

    what: str
    reason: str

    def __str__(self) -> str:
        """Describe it in words."""
        return f"{self.what} waits in Slurm's queue: {self.reason}"


class Queued(msgspec.Struct, frozen=True):
    """Message: the job of a process waits, for a new reason; None if it no longer waits.

    No agent can send it: an agent's messages consist of texts, numbers and arrays.
    """

    waits: Waiting | None


def allocates(runtime: "Runtime") -> bool:
    """Return whether a process of a runtime takes an allocation, so that none is started in advance."""
    if runtime.command is None:
        return False
    try:
        return any(PurePath(word).name in LAUNCHERS for word in shlex.split(runtime.command))
    except ValueError:  # starting it reports the error
        return False


def told_end(printed: str) -> str:
    """Return Slurm's line about the end of a job from ``srun``'s output; empty without one.

    It is ``STEP 16.0 ON n2 CANCELLED AT 2026-11-25T08:50:56 DUE TO TIME LIMIT``, or names another cause.
    """
    found = _ENDED.findall(printed)
    return one_line(found[-1]) if found else ""


class QueueWatch:
    """Asks Slurm about processes whose agent has not greeted yet.

    ``deliver`` is called with the number of a process and a ``Queued``, from another thread.
    """

    def __init__(self, deliver: Callable[[int, Any], None]) -> None:
        self._deliver = deliver
        self._lock = threading.Lock()
        self._watched: dict[int, AgentProcess] = {}
        self._waiting: dict[int, Waiting] = {}
        """The last delivered state of each watched process."""
        self._runs = False
        self._closed = threading.Event()

    def watch(self, number: int, process: "AgentProcess") -> None:
        """Watch a process until its agent greets."""
        if os.name != "posix" or shutil.which(_SQUEUE[0]) is None:
            return
        with self._lock:
            self._watched[number] = process
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._run, name="ep-harness-squeue", daemon=True).start()

    def forget(self, number: int) -> None:
        """Stop watching a process."""
        with self._lock:
            self._watched.pop(number, None)
            self._waiting.pop(number, None)

    def close(self) -> None:
        """Stop asking."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(SLURM_LOOK_S):
            with self._lock:
                for number in [number for number, each in self._watched.items() if each.greeting is not None]:
                    del self._watched[number]
                    self._waiting.pop(number, None)
                if not self._watched:
                    self._runs = False
                    return
            jobs = waiting_jobs()
            if jobs is not None:
                self._compare(jobs)

    def _compare(self, jobs: dict[int, Waiting]) -> None:
        with self._lock:
            for number, process in self._watched.items():
                now = jobs.get(process.pid)
                if now != self._waiting.get(number):
                    self._deliver(number, Queued(now))
                self._waiting.pop(number, None)
                if now is not None:
                    self._waiting[number] = now


def waiting_jobs() -> dict[int, Waiting] | None:
    """Return what the user waits for, by the session that submitted it; None if Slurm does not answer.

    These are jobs, and within an allocation its steps.
    """
    table = _answer(_SQUEUE)
    steps = _answer(_SCONTROL) if JOB in os.environ else ""
    return None if table is None or steps is None else {**_jobs(table), **_steps(steps)}


def _answer(command: tuple[str, ...]) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments
            command, capture_output=True, check=False, timeout=ANSWER_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def _jobs(table: str) -> dict[int, Waiting]:
    rows = (
        [line[start : start + _COLUMN].strip() for start in range(0, 3 * _COLUMN, _COLUMN)]
        for line in table.splitlines()
    )
    return {
        int(session): Waiting(f"job {one_line(job)}", one_line(reason))
        for session, job, reason in rows
        if session.isdecimal()
    }


def _steps(text: str) -> dict[int, Waiting]:
    found = {}
    for step in _STEP.finditer(text):
        with contextlib.suppress(OSError):  # it has ended, or is on another machine
            found[session_of_process(int(step[2]))] = Waiting(f"a step of job {step[1]}", NO_ROOM)
    return found
