"""Scenario ``interleaved``: several sessions of the model are open at once, and run in turns.

This shows a provider that keeps state for a process instead of a session, or that computes only in the first
session of a process. Each session gets other inputs than the one before it, so that mixed up data are seen.
"""

from __future__ import annotations

from harness.agent.difference import difference
from harness.agent.faded import CROSS_TALK, faded
from harness.agent.job_run import Feeds, JobRun, RawOutputs
from harness.agent.plain import conclude
from harness.agent.session_run import Runner

SESSIONS = 3
"""Sessions that are open at once: a first, one that is closed before it, and one that outlives both."""


class OtherSessionError(Exception):
    """A session beside others computed something else than one alone."""


def play(job_run: JobRun) -> None:
    """Run one session alone, then all of them, while they are closed one by one; judge the furthest result.

    Raises:
        OtherSessionError: Results of other inputs than the given ones are far from those alone.
    """
    job_run.create()
    pairs = [job_run.run(inputs) for inputs in job_run.job["data_sets"]]
    other = faded(pairs[0][0])
    others_alone = job_run.runner(other) if other else []
    # What differs from run to run anyway is no matter of the company.
    wanders = difference(others_alone, job_run.runner(other)) if other else 0.0
    watch = _Watch(pairs, other, others_alone)
    runners = [job_run.runner]
    while len(runners) < SESSIONS:
        job_run.enter("create")
        runners.append(Runner(job_run.open()))
    watch.turn(job_run, runners)
    while len(runners) > 1:
        job_run.enter("teardown")
        if len(runners) < SESSIONS:  # the first is closed after a later one
            job_run.judge(runners[-1].session)
        runners.pop(1 if len(runners) == SESSIONS else 0)
        watch.turn(job_run, runners)
    apart = max(watch.apart)
    job_run.facts.update(sessions=SESSIONS, runs=watch.runs, equal_to_alone=apart == 0)
    if apart:
        job_run.facts["difference"] = apart
    if (
        watch.others_apart > CROSS_TALK >= max(apart, wanders)
    ):  # else the given inputs show it, and are judged
        reason = "beside other sessions of the model a result is off by %.3g of its largest value"
        raise OtherSessionError(reason % watch.others_apart)
    job_run.result["outputs"] = [job_run.send(outputs) for outputs in watch.worst]
    conclude(job_run)


class _Watch:
    """Runs sessions in turns, and keeps the results that are furthest from those of one session alone."""

    def __init__(self, pairs: list[tuple[Feeds, RawOutputs]], other: Feeds, others_alone: RawOutputs) -> None:
        self.pairs = pairs
        self.other = other
        self.others_alone = others_alone
        self.worst = [outputs for _, outputs in pairs]
        self.apart = [0.0] * len(pairs)
        self.others_apart = 0.0
        self.runs = 0

    def turn(self, job_run: JobRun, runners: list[Runner]) -> None:
        """Run the data sets in each session, and other inputs in the session after it."""
        for at, runner in enumerate(runners):
            for index, (feeds, alone) in enumerate(self.pairs):
                job_run.begin_run()
                self.runs += 1
                outputs = runner(feeds)
                apart = difference(alone, outputs)
                if apart > self.apart[index]:
                    self.apart[index], self.worst[index] = apart, outputs
                if self.other:
                    job_run.further()
                    others = runners[(at + 1) % len(runners)](self.other)
                    self.others_apart = max(self.others_apart, difference(self.others_alone, others))
