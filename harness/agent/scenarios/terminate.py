"""Scenario ``terminate``: a run is told to end while a loop goes on, and a session while it is loaded.

The model is the body of a Loop, and the last input says how often it computes. Its pace is measured first.
The run that is told to end lasts a known multiple of the time after which it is told, so no load of the
machine decides the verdict.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from harness.agent.difference import difference
from harness.agent.job_run import Feeds, JobRun, RawOutputs
from harness.agent.plain import conclude
from harness.agent.safe_text import clean
from harness.agent.session_run import PROGRESS_S
from harness.agent.target_errors import UnsupportedError

_LEAST_S = 0.05
"""Seconds of a run from which on its pace is known."""

_LEAST_ITERATIONS = 4

_MOST_ITERATIONS = 1 << 26

_MULTIPLE = 8
"""How many times longer than the measured run the one lasts that is told to end."""

_TRIES = 4
"""How often the loop is made longer if it ends before it could be told."""


class TerminateIgnoredError(Exception):
    """A run went on to its end although it was told to end."""


class LoadNotCancelledError(Exception):
    """A session was made although its load was cancelled before it began."""


def play(job_run: JobRun) -> None:
    """Run, end a long run early, cancel a load, and run again; the last results are judged.

    Raises:
        TerminateIgnoredError: A run did not end when it was told to.
        LoadNotCancelledError: A session was made although its load was cancelled.
        UnsupportedError: The loop takes no time, so it cannot be ended early.
    """
    job_run.create()
    pairs = [job_run.run(inputs) for inputs in job_run.job["data_sets"]]
    counter = job_run.job["data_sets"][0][-1][0]  # the harness adds it as the last input
    _end_early(job_run, pairs[0][0], counter)
    again = [_run(job_run, feeds) for feeds, _ in pairs]
    apart = max(difference(before, after) for (_, before), after in zip(pairs, again))
    if _cancel_load(job_run):
        # The last session is one whose load was cancelled and begun again.
        job_run.enter("teardown")
        job_run.close()
        job_run.enter("create")
        job_run.judge(job_run.open())
        later = [_run(job_run, feeds) for feeds, _ in pairs]
        further = max(difference(before, after) for (_, before), after in zip(pairs, later))
        if further > apart:
            again, apart = later, further
    job_run.facts["equal_to_before"] = apart == 0
    if apart:
        job_run.facts["difference"] = apart
    job_run.result["outputs"] = [job_run.send(outputs) for outputs in again]
    conclude(job_run)


def _run(job_run: JobRun, feeds: Feeds) -> RawOutputs:
    job_run.begin_run()
    outputs: RawOutputs = job_run.runner(feeds)
    return outputs


def _end_early(job_run: JobRun, feeds: Feeds, counter: str) -> None:
    """Measure the pace of the loop, then tell a much longer run to end."""

    def timed(count: int) -> float:
        job_run.begin_run()
        started = time.perf_counter()
        job_run.runner({**feeds, counter: np.array(count, np.int64)})
        return time.perf_counter() - started

    count, took_s = 1, timed(1)
    while count < _LEAST_ITERATIONS or took_s < _LEAST_S:
        if count >= _MOST_ITERATIONS:
            raise UnsupportedError(
                "a loop of %d iterations takes no time: the model is computed once" % count
            )
        # A step of at most 16, so that a first slow run does not decide.
        count *= 2 if took_s > _LEAST_S / 16 else 16
        took_s = timed(count)
    for _ in range(_TRIES):
        cut = _Cut(job_run, {**feeds, counter: np.array(count * _MULTIPLE, np.int64)})
        cut.after(took_s / 2)
        job_run.facts.update(
            iterations=count * _MULTIPLE,
            iteration_ms=round(took_s / count * 1e3, 6),
            told_after_ms=round(cut.told_s * 1e3, 4),
            ended_after_ms=round(cut.ended_s * 1e3, 4),
        )
        if cut.error is not None:
            # A run that fails for another reason fails as any other.
            if "terminat" not in str(cut.error).lower():
                raise cut.error
            job_run.facts["message"] = clean(cut.error, 200)
            return
        # It went on for as long as it had gone before, so it did not merely come to its end.
        if cut.told_s and cut.ended_s >= 2 * cut.told_s:
            reason = "told to end after %.3g s, the run went on to its end, after %.3g s and %d iterations"
            raise TerminateIgnoredError(reason % (cut.told_s, cut.ended_s, count * _MULTIPLE))
        count, took_s = count * _MULTIPLE, cut.ended_s
    raise UnsupportedError("every loop ended before it could be told to, at last after %.3g s" % took_s)


class _Cut:
    """One run in a thread of its own, which is told to end."""

    def __init__(self, job_run: JobRun, feeds: Feeds) -> None:
        self.job_run = job_run
        self.feeds = feeds
        self.options: Any = job_run.target.ort.RunOptions()
        self.error: Exception | None = None
        self.told_s = 0.0
        """Seconds after which it was told; 0 if it had ended before."""
        self.ended_s = 0.0

    def after(self, wait_s: float) -> None:
        """Begin the run, tell it to end after so many seconds, and wait until it has ended."""
        self.job_run.begin_run()
        begun, ended = threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            self.started = time.perf_counter()
            try:
                self.job_run.runner.step(self.feeds, self.options)()
            except Exception as error:  # noqa: BLE001 - the caller tells what it is
                self.error = error
            self.ended_s = time.perf_counter() - self.started
            ended.set()

        threading.Thread(target=work, daemon=True).start()
        begun.wait()
        if not ended.wait(wait_s):
            self.options.terminate = True
            self.told_s = time.perf_counter() - self.started
        while not ended.wait(PROGRESS_S):
            pass  # the harness limits the time of a run


def _cancel_load(job_run: JobRun) -> bool:
    """Cancel the load of a session before it begins and in its middle; return whether this runtime can."""
    settings_type = job_run.target.ort.SessionOptions
    if not hasattr(settings_type, "set_load_cancellation_flag"):
        version = clean(job_run.target.ort.__version__)
        job_run.facts["load"] = "onnxruntime %s has no load cancellation in Python" % version
        return False
    if _cancelled(job_run, None) is None:
        raise LoadNotCancelledError("a session was made although its load was cancelled before it began")
    # In the middle a load may be past the last look at the flag: either end is right.
    middle = _cancelled(job_run, job_run.result["timings_ms"]["create"] / 2e3)
    job_run.facts.update(load="cancelled", load_in_the_middle="made" if middle is None else "cancelled")
    return True


def _cancelled(job_run: JobRun, wait_s: float | None) -> Exception | None:
    """Cancel a load before it begins, or after so many seconds; return its error, None if it succeeded."""
    timers = []

    def cancel(settings: Any) -> None:
        if wait_s is None:
            settings.set_load_cancellation_flag(True)
            return
        timer = threading.Timer(wait_s, settings.set_load_cancellation_flag, (True,))
        timer.daemon = True
        timers.append(timer)  # one for each try: a load with an entry that onnxruntime refuses is tried again
        timer.start()

    job_run.enter("create")
    job_run.adjust = cancel
    try:
        job_run.open()
    except Exception as error:
        if "cancel" not in ("%s %s" % (type(error).__name__, error)).lower():
            raise
        return error
    finally:
        job_run.adjust = lambda _: None
        for timer in timers:
            timer.cancel()
    return None
