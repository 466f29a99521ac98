"""Scenario ``interleaved``: several sessions are open at once, and run in turns.

First they are sessions of the same model, with other inputs in each: mixed up data are seen. This shows a
provider that keeps state for a process instead of a session, or that computes only in the first session of a
process. Then they are sessions of the model and of a companion, a model of the same shapes with other weights
or activation functions. This shows a provider whose cache of kernels or constants takes shapes for identity.
"""

from __future__ import annotations

from harness.agent.company import BEHIND, Companion, afresh, companions_of, disturbed, opened, run_behind
from harness.agent.difference import difference
from harness.agent.faded import CROSS_TALK, faded
from harness.agent.furthest import Furthest
from harness.agent.job_run import Feeds, JobRun, RawOutputs
from harness.agent.plain import conclude
from harness.agent.session_run import Runner

SESSIONS = 3
"""Sessions that are open at once: a first, one that is closed before it, and one that outlives both."""


class OtherSessionError(Exception):
    """A session beside others computed something else than one alone."""


def play(job_run: JobRun) -> None:
    """Run one session alone, then beside others of the model, then beside each companion.

    The results that are furthest from those alone are judged.

    Raises:
        OtherSessionError: Results of other inputs or of a companion are far from those alone.
    """
    behind = job_run.job.get("scenario_settings", {}).get(BEHIND)
    if behind:  # in a fresh process
        held = run_behind(job_run, behind)
        job_run.create()
        job_run.result["outputs"] = [job_run.send(job_run.run(each)[1]) for each in job_run.job["data_sets"]]
        job_run.facts["sessions"] = 2 if held else 1
        conclude(job_run)
        return
    job_run.create()
    watch = _Watch(job_run, [job_run.run(inputs) for inputs in job_run.job["data_sets"]])
    _beside_itself(job_run, watch)
    for companion in companions_of(job_run, watch.pairs[0][0]):
        _beside(job_run, watch, companion)
    job_run.facts.update(sessions=SESSIONS, runs=watch.runs)
    watch.conclude(job_run, "equal_to_alone")
    if watch.others_apart > CROSS_TALK >= max(*watch.apart, watch.wanders):  # else the given inputs show it
        reason = "beside other sessions of the model a result is off by %.3g of its largest value"
        raise OtherSessionError(reason % watch.others_apart)
    if watch.wrong_companion and not watch.tells:
        reason = "a model of the same shapes %s is computed wrongly, only in the company of this model"
        raise OtherSessionError(reason % watch.wrong_companion)
    conclude(job_run)


def _beside_itself(job_run: JobRun, watch: _Watch) -> None:
    """Run several sessions of the model in turns, and close them one by one; the last one is judged."""
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


def _beside(job_run: JobRun, watch: _Watch, companion: Companion) -> None:
    """Run the model and a companion in turns; close the model first, and then, made again, the companion."""
    job_run.facts["companions"] = [*job_run.facts.get("companions", ()), companion.what]
    watch.company = "a model " + companion.what
    beside = opened(job_run, companion.model)
    found = [watch.run_beside(job_run, beside)]
    watch.turn(job_run, [job_run.runner])
    found.append(watch.run_beside(job_run, beside))
    job_run.enter("teardown")
    job_run.close()
    found.append(watch.run_beside(job_run, beside))
    job_run.enter("create")
    job_run.judge(job_run.open())
    watch.turn(job_run, [job_run.runner])
    found.append(watch.run_beside(job_run, beside))
    job_run.enter("teardown")
    del beside
    watch.turn(job_run, [job_run.runner])
    wrong = max(found, key=lambda outputs: difference(companion.expected, outputs))
    if not watch.tells and disturbed(job_run, companion, wrong):
        watch.wrong_companion = companion.what
        _in_other_order(job_run, watch, companion)


def _in_other_order(job_run: JobRun, watch: _Watch, companion: Companion) -> None:
    """Run the model behind the companion, in a fresh process: then the model is the one that may be wrong."""
    settings = {**job_run.job.get("scenario_settings", {}), BEHIND: companion.what}
    result = afresh(job_run, job_run.model, scenario="interleaved", scenario_settings=settings)
    if result["status"] == "ok":
        for index, outputs in enumerate(result["outputs"]):
            watch.in_company(index, outputs)


class _Watch(Furthest):
    """Runs sessions in turns, and keeps the results that are furthest from those of one session alone."""

    def __init__(self, job_run: JobRun, pairs: list[tuple[Feeds, RawOutputs]]) -> None:
        super().__init__(job_run, pairs)
        self.other = faded(pairs[0][0])
        self.others_alone = job_run.runner(self.other) if self.other else []
        self.others_apart = 0.0
        self.runs = 0
        self.company = "another session of the model"
        self.wrong_companion = ""

    def turn(self, job_run: JobRun, runners: list[Runner]) -> None:
        """Run the data sets in each session, and other inputs in the session after it."""
        for at, runner in enumerate(runners):
            for index, (feeds, _) in enumerate(self.pairs):
                job_run.begin_run()
                self.runs += 1
                self.in_company(index, runner(feeds))
                if self.other:
                    job_run.further()
                    others = runners[(at + 1) % len(runners)](self.other)
                    self.others_apart = max(self.others_apart, difference(self.others_alone, others))

    def run_beside(self, job_run: JobRun, beside: Runner) -> RawOutputs:
        """Return what a companion computes with the inputs of the first data set."""
        job_run.begin_run()
        self.runs += 1
        return beside(self.pairs[0][0])

    def in_company(self, index: int, outputs: RawOutputs) -> None:
        """Compare outputs of a data set with those of the session alone."""
        self.compare(index, outputs, "in the company of " + self.company)
