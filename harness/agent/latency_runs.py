"""Latency: how long one run of a session takes, measured inside the target, one run after the other."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.agent.device_memory import device_mib
from harness.agent.session_run import PROGRESS_S
from harness.agent.system import usable_processors
from harness.agent.wire import to_feed

if TYPE_CHECKING:
    from harness.agent.job_run import JobRun


class HostPeak:
    """The peak of this process's resident memory from now on, if the system can reset the count.

    Linux can: "5" written to ``clear_refs`` sets ``VmHWM`` of ``status`` to the resident memory (proc(5),
    since Linux 4.0). Windows and macOS count over the whole life of a process, which includes other models.
    """

    def __init__(self, folder: str = "/proc/self") -> None:
        self.status = os.path.join(folder, "status")
        try:
            with open(os.path.join(folder, "clear_refs"), "w", encoding="ascii") as file:
                file.write("5")
        except OSError:
            self.status = ""

    def mib(self) -> float | None:
        """Return the peak in MiB; None if the system does not count it."""
        try:
            with open(self.status, encoding="ascii", errors="replace") as file:
                peaks = [line.split()[1] for line in file if line.startswith("VmHWM:")]
            return round(int(peaks[0]) / 1024, 2)
        except (OSError, ValueError, IndexError):
            return None


class Stopwatch:
    """Times the runs of one job, with the settings of ``time_runs``; created before the job's session."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.peak = HostPeak()

    def time_plain(self, job_run: JobRun) -> None:
        """Time ``session.run`` on the first data set, from numpy arrays to numpy arrays."""
        runner = job_run.runner
        step = runner.step({name: to_feed(wire) for name, wire in job_run.job["data_sets"][0]})
        job_run.enter("run")
        before = runner.in_wire_form(step())
        last = self.time(job_run, step, "copied")
        # Runs that became fast because they no longer compute must not pass.
        job_run.report_second(before, runner.in_wire_form(last))

    def time(self, job_run: JobRun, step: Callable[[], Any], io: str) -> Any:
        """Time ``step``, a run of the judged session, into the result; return the last run's outputs.

        ``io`` is ``copied`` if a run takes and returns numpy arrays, ``bound`` if they are bound.
        """
        facts, outputs = time_runs(step, self.settings, job_run.enter)
        options = job_run.session.get_session_options()
        job_run.result["latency"] = {
            **facts,
            "io": io,
            "intra_op_threads": int(options.intra_op_num_threads),
            "inter_op_threads": int(options.inter_op_num_threads),
            "host_peak_mib": self.peak.mib(),
            "device_mib": device_mib(),
        }
        return outputs


def time_runs(
    step: Callable[[], Any], settings: dict[str, Any], enter: Callable[[str], None]
) -> tuple[dict[str, Any], Any]:
    """Time runs: first those that do not count, then those that do.

    The runs that do not count get at most half of the budget. One run always counts.

    Args:
        step: Runs once, and returns the outputs.
        settings: ``warm_up`` and ``repeats``, numbers of runs, and ``budget_s``.
        enter: Reports a phase to the harness.

    Returns:
        Returns the facts about the time, and the outputs of the last run.
    """
    clock = time.perf_counter_ns
    enter("run")
    budget_ns = int(settings["budget_s"] * 1e9)
    samples: list[int] = []
    computed: list[int] = []
    warm_up = 0
    contention = _Contention()
    outputs = None
    collects = gc.isenabled()
    gc.collect()
    gc.disable()
    reported = began = clock()
    try:
        while len(samples) < settings["repeats"]:
            now = clock()
            warming = warm_up < settings["warm_up"] and not samples and now - began < budget_ns // 2
            if samples and now - began >= budget_ns:
                break
            if now - reported > PROGRESS_S * 1e9:
                reported = now
                enter("run")
            if not (warming or samples):
                contention = _Contention()
            outputs = None  # freeing them is not part of the next run
            computed_before = time.process_time_ns()
            started = clock()
            outputs = step()
            ended = clock()
            if warming:
                warm_up += 1
            else:
                samples.append(ended - started)
                computed.append(time.process_time_ns() - computed_before)
        waiting = contention.waiting_threads()
    finally:
        if collects:
            gc.enable()
    facts = {
        "samples_ns": samples,
        "warm_up": warm_up,
        "stopped_by": "repeats" if len(samples) == settings["repeats"] else "budget",
        "waiting_threads": waiting,
        # Windows counts in steps of 16 ms; a median of 0 says nothing.
        "processor_ms": round(statistics.median(computed) / 1e6, 6) or None,
    }
    return facts, outputs


class _Contention:
    """Measures, from its creation on, how much other processes wanted the processors."""

    def __init__(self) -> None:
        self.wait_ns = processor_wait_ns()
        self.ran_ns = time.process_time_ns()
        self.at_ns = time.perf_counter_ns()

    def waiting_threads(self) -> float | None:
        """Return how many threads waited for a processor on average; None if the system does not count it."""
        wait_ns, ran_ns, at_ns = processor_wait_ns(), time.process_time_ns(), time.perf_counter_ns()
        if self.wait_ns is None or wait_ns is None:
            return None
        elapsed_ns = max(1, at_ns - self.at_ns)
        return waiting_for_others(
            (wait_ns - self.wait_ns) / elapsed_ns, (ran_ns - self.ran_ns) / elapsed_ns, usable_processors()
        )


def waiting_for_others(waiting: float, running: float, processors: int) -> float:
    """Return how many threads waited for other processes, not for threads of their own process.

    ``waiting`` and ``running`` are average numbers of threads; ``waiting`` is negative if some have ended
    meanwhile.
    """
    own = max(0.0, running + waiting - processors)
    return round(max(0.0, waiting - own), 4)


def processor_wait_ns(folder: str = "/proc/self/task") -> int | None:
    """Return how long this process's threads have waited for a processor; None if it is not counted.

    Linux counts it: the second figure of ``schedstat``, Documentation/scheduler/sched-stats.rst.
    """
    total = None
    try:
        threads = os.listdir(folder)
    except OSError:
        return None
    for thread in threads:
        try:
            with open(os.path.join(folder, thread, "schedstat"), encoding="ascii") as file:
                total = (total or 0) + int(file.read().split()[1])
        except (OSError, ValueError, IndexError):  # the thread has ended, or the kernel does not count
            continue
    return total
