"""Latency: how long one run of a session takes, measured where it runs, one run after the other."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from typing import Any

from harness.agent.device_memory import device_mib
from harness.agent.run import in_wire_form, step_of
from harness.agent.system import usable_processors
from harness.agent.tensor_files import TensorFiles
from harness.agent.wire import to_feed

TELL_S = 0.1  # seconds after which the harness hears that runs go on: its time limit holds for one run


class HostPeak:
    """The most resident memory of this process from now on, where the system counts that.

    Linux does: "5" written to ``clear_refs`` sets ``VmHWM`` of ``status`` to what is resident (proc(5), since
    Linux 4.0). Windows and macOS know the peak of the whole life of a process only, in which other models had
    their job_run.
    """

    def __init__(self, folder: str = "/proc/self") -> None:
        self.status = os.path.join(folder, "status")
        try:
            with open(os.path.join(folder, "clear_refs"), "w", encoding="ascii") as file:
                file.write("5")
        except OSError:
            self.status = ""

    def mib(self) -> float | None:
        """In MiB; None where the system does not tell."""
        if self.status:
            try:
                with open(self.status, encoding="ascii", errors="replace") as file:
                    for line in file:
                        if line.startswith("VmHWM:"):
                            return round(int(line.split()[1]) / 1024, 2)
            except (OSError, ValueError, IndexError):
                pass
        return None


class Stopwatch:
    """Times the runs of one job; begun before its session is made.

    Args:
        settings: ``warm_up`` and ``repeats``, numbers of runs, and ``budget_s``.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.peak = HostPeak()

    def time_plain(
        self,
        session: Any,
        job: dict[str, Any],
        result: dict[str, Any],
        enter: Callable[[str], None],
        files: TensorFiles,
    ) -> None:
        """Time ``session.run`` on the first data set, from numpy arrays to numpy arrays."""
        names = [output.name for output in session.get_outputs()]
        types = [output.type.lower() for output in session.get_outputs()]
        feeds = {name: to_feed(wire) for name, wire in job["data_sets"][0]}
        step = step_of(session, names, types, feeds)
        enter("run")
        before = in_wire_form(step(), types)
        last = self.time(session, step, result, enter, "copied")
        # What is fast because it no longer computes shall not pass.
        after = in_wire_form(last, types)
        if after != before and "second" not in result:
            result["second"] = [files.send(wire) for wire in after]

    def time(
        self,
        session: Any,
        step: Callable[[], Any],
        result: dict[str, Any],
        enter: Callable[[str], None],
        io: str,
    ) -> Any:
        """Time ``step``, into the result; what came out of the last run.

        Args:
            session: What ``step`` runs.
            step: Runs once.
            result: Gets ``latency``.
            enter: Tells the harness of a phase.
            io: ``copied`` where a run takes and gives numpy arrays, ``bound`` where they are bound.
        """
        facts, outputs = measure(step, self.settings, enter)
        options = session.get_session_options()
        result["latency"] = {
            **facts,
            "io": io,
            "intra_op_threads": int(options.intra_op_num_threads),
            "inter_op_threads": int(options.inter_op_num_threads),
            "host_peak_mib": self.peak.mib(),
            "device_mib": device_mib(),
        }
        return outputs


def measure(
    step: Callable[[], Any], settings: dict[str, Any], enter: Callable[[str], None]
) -> tuple[dict[str, Any], Any]:
    """Time runs: some that do not count, then those that do.

    Half of the budget is for the runs that do not count, at most. One run always counts.

    Args:
        step: Runs once, and returns what came out.
        settings: ``warm_up`` and ``repeats``, numbers of runs, and ``budget_s``.
        enter: Tells the harness of a phase.

    Returns:
        What is known about the time, and what came out of the last run.
    """
    clock = time.perf_counter_ns
    enter("run")
    budget_ns = int(settings["budget_s"] * 1e9)
    samples: list[int] = []
    warm_up = 0
    since = Since()
    outputs = None
    collects = gc.isenabled()
    gc.collect()
    gc.disable()
    told = began = clock()
    try:
        while len(samples) < settings["repeats"]:
            now = clock()
            warming = warm_up < settings["warm_up"] and not samples and now - began < budget_ns // 2
            if samples and now - began >= budget_ns:
                break
            if now - told > TELL_S * 1e9:
                told = now
                enter("run")
            if not (warming or samples):
                since = Since()
            outputs = None  # what it takes to free them is no part of the next run
            started = clock()
            outputs = step()
            ended = clock()
            if warming:
                warm_up += 1
            else:
                samples.append(ended - started)
        waiting = since.waiting_threads()
    finally:
        if collects:
            gc.enable()
    facts = {
        "samples_ns": samples,
        "warm_up": warm_up,
        "stopped_by": "repeats" if len(samples) == settings["repeats"] else "budget",
        "waiting_threads": waiting,
    }
    return facts, outputs


class Since:
    """A moment from which on is asked who else wanted the processors."""

    def __init__(self) -> None:
        self.wait_ns = processor_wait_ns()
        self.ran_ns = time.process_time_ns()
        self.at_ns = time.perf_counter_ns()

    def waiting_threads(self) -> float | None:
        """How many threads have stood in line for a processor on average; None where nobody knows."""
        wait_ns, ran_ns, at_ns = processor_wait_ns(), time.process_time_ns(), time.perf_counter_ns()
        if self.wait_ns is None or wait_ns is None:
            return None
        elapsed_ns = max(1, at_ns - self.at_ns)
        return waiting_for_others(
            (wait_ns - self.wait_ns) / elapsed_ns, (ran_ns - self.ran_ns) / elapsed_ns, usable_processors()
        )


def waiting_for_others(waiting: float, running: float, processors: int) -> float:
    """Threads that stood in line for others, and not because their own process has too many of them.

    Args:
        waiting: Threads that stood in line, on average; less than nothing where some have ended meanwhile.
        running: Threads that ran, on average.
        processors: How many the process may use.
    """
    own = max(0.0, running + waiting - processors)
    return round(max(0.0, waiting - own), 4)


def processor_wait_ns(folder: str = "/proc/self/task") -> int | None:
    """How long the threads of this process have stood in line for a processor; None where nobody counts it.

    Linux does: the second figure of ``schedstat``, Documentation/scheduler/sched-stats.rst.
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
        except (OSError, ValueError, IndexError):  # it has ended, or the kernel does not count
            continue
    return total
