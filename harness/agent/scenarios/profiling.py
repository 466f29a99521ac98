"""Scenario ``profiling``: two sessions side by side write a profile each, and a third one writes none.

The profiles of nodes are onnxruntime's, those of kernels the provider's. Events are compared with the runs of
their own file alone, so no clock but the session's decides.
"""

from __future__ import annotations

import collections
import json
import os
import time
from typing import Any

from harness.agent.difference import difference
from harness.agent.job_run import JobRun
from harness.agent.plain import conclude
from harness.agent.safe_text import clean
from harness.agent.session_profile import profile_folder
from harness.agent.session_run import Runner

_RUNS = (2, 3)
"""How often the two sessions with a profile run all data sets: what is booked to the other one shows."""

_SLACK_US, _SLACK = 100.0, 0.05
"""Microseconds, and share of a run, by which an event may lie beyond it: devices have clocks of their own."""


class ProfileError(Exception):
    """A profile is not that of its session."""


def play(job_run: JobRun) -> None:
    """Run three sessions in turns, end the profiles one after the other, and look at them.

    The results that are furthest from those of the session without a profile are judged.

    Raises:
        ProfileError: An event is another session's, or its time is negative or beyond its run.
    """
    job_run.create()
    pairs = [job_run.run(inputs) for inputs in job_run.job["data_sets"]]
    sessions = []
    for number in range(len(_RUNS)):
        job_run.enter("create")

        def ask(settings: Any, name: str = "side-%d" % number) -> None:
            settings.enable_profiling = True
            settings.profile_file_prefix = os.path.join(profile_folder(), name)

        job_run.adjust = ask
        try:
            sessions.append(job_run.open())
        finally:
            job_run.adjust = lambda _: None
    runners = [job_run.runner, *map(Runner, sessions)]
    spent_us = [0.0] * len(runners)
    worst: list[tuple[float, list[Any]]] = [(0.0, outputs) for _, outputs in pairs]

    def run_all(which: int) -> None:
        for index, (feeds, before) in enumerate(pairs):
            job_run.begin_run()
            started = time.perf_counter()
            outputs = runners[which](feeds)
            spent_us[which] += (time.perf_counter() - started) * 1e6
            apart = difference(before, outputs)
            if apart > worst[index][0]:
                worst[index] = (apart, outputs)

    for which in (1, 2, 0, 1, 2):
        run_all(which)
    first = _Profile(sessions[0].end_profiling())
    run_all(2)  # the first one has stopped and the other one goes on
    run_all(1)
    second = _Profile(sessions[1].end_profiling())
    job_run.facts.update(
        runs=[len(first.runs), len(second.runs)],
        node_events=[first.count("Node"), second.count("Node")],
        kernel_events=[first.count("Kernel"), second.count("Kernel")],
    )
    for profile, times, spent in zip((first, second), _RUNS, spent_us[1:]):
        profile.check(times * len(pairs), spent)
    _check_sides(first, second)
    apart = max(one for one, _ in worst)
    job_run.facts["equal_to_unprofiled"] = apart == 0
    if apart:
        job_run.facts["difference"] = apart
    job_run.result["outputs"] = [job_run.send(outputs) for _, outputs in worst]
    conclude(job_run)


def _check_sides(first: _Profile, second: _Profile) -> None:
    """Compare what two sessions of the same model booked in different numbers of runs."""
    for key in {**first.counts, **second.counts}:
        one, other = first.counts[key], second.counts[key]
        # A kernel may also be compiled or filled in a first run, so its events need not be in proportion.
        fits = one * _RUNS[1] == other * _RUNS[0] if key[0] == "Node" else 0 < one <= other
        if not fits:
            reason = "of two sessions, the one with %d runs has %d %s events of %s, the one with %d has %d"
            who = key[1] or "the provider"
            raise ProfileError(reason % (_RUNS[0], one, key[0].lower(), clean(who, 60), _RUNS[1], other))


class _Profile:
    """The events of one profile."""

    def __init__(self, path: str) -> None:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                events = json.load(file)
        except ValueError as error:
            raise ProfileError("the profile is no JSON: %s" % clean(error)) from error
        finally:
            if os.path.exists(path):
                os.unlink(path)
        self.events = [event for event in events if isinstance(event, dict) and event.get("ph") == "X"]
        self.runs = [(event["ts"], event["dur"]) for event in self.events if event.get("name") == "model_run"]
        self.counts: collections.Counter[tuple[str, str]] = collections.Counter(
            (event.get("cat", ""), (event.get("args") or {}).get("provider", ""))
            for event in self.events
            if event.get("cat") in ("Node", "Kernel")
        )

    def count(self, category: str) -> int:
        """Return how many events there are of ``Node`` or ``Kernel``."""
        return sum(number for (of, _), number in self.counts.items() if of == category)

    def check(self, runs: int, spent_us: float) -> None:
        """Check that there are so many runs, which took so long together, and that each event lies in one.

        Raises:
            ProfileError: It does not.
        """
        if len(self.runs) != runs:
            raise ProfileError(
                "the profile of a session that ran %d times has %d runs" % (runs, len(self.runs))
            )
        told_us = sum(duration for _, duration in self.runs)
        if told_us > spent_us * (1 + _SLACK) + _SLACK_US * runs:
            reason = "the profile's runs took %g us, the calls of them %g us"
            raise ProfileError(reason % (told_us, spent_us))
        for event in self.events:
            name = clean(event.get("name", ""), 80)
            if event["dur"] < 0 or event["ts"] < 0:
                reason = "the profile's event %s has the time %g us and the duration %g us"
                raise ProfileError(reason % (name, event["ts"], event["dur"]))
            if event.get("cat") in ("Node", "Kernel") and not any(
                _lies_in(event["ts"], event["dur"], *run) for run in self.runs
            ):
                reason = "the profile's event %s, of %g us at %g us, lies in none of the session's runs"
                raise ProfileError(reason % (name, event["dur"], event["ts"]))


def _lies_in(start: float, duration: float, run_start: float, run_duration: float) -> bool:
    slack = max(_SLACK_US, _SLACK * run_duration)
    return run_start - slack <= start and start + duration <= run_start + run_duration + slack
