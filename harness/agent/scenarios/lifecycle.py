"""Scenario ``lifecycle``: a plugin library is registered, used and unregistered, again and again.

Each order of the steps has a fresh process, whose end counts, too: libraries crash when they are unloaded, or
at the exit of a process that has unloaded them.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

from harness.agent.fresh_process import FreshPython, fresh_python
from harness.agent.job_run import JobRun
from harness.agent.lifecycle_process import ORDERS, SERVE_LIFECYCLE
from harness.agent.plain import conclude
from harness.agent.safe_text import clean
from harness.agent.system import scratch_folder
from harness.agent.target_errors import ApiMissingError, UnsupportedError
from harness.agent.tensor_files import TensorFiles

_PHASES = {
    **dict.fromkeys(("register", "register again", "register a copy", "session"), "create"),
    **dict.fromkeys(("run", "run after it"), "run"),
}
"""Step -> the phase whose time limit it has; others are a teardown."""

_MISUSE = ORDERS[-1]
_MISUSE_S = 10.0  # seconds after which a process that is misused is killed: a hang there is nobody's fault


class ProcessDied(Exception):  # noqa: N818 - the harness knows an end of a process by this name
    """The process that was watched died; the text is how, a colon, and where."""


class LifecycleError(Exception):
    """A step failed that an application may take."""


def play(job_run: JobRun) -> None:
    """Take the steps in each order; judge the results that are furthest from the first ones.

    Raises:
        LifecycleError: A step raises an error.
        ProcessDied: A process died, or ended with an exit code other than 0.
        UnsupportedError: The provider is no plugin library, or this onnxruntime unregisters none.
    """
    target, facts = job_run.target, job_run.facts
    if not target.registered:
        raise UnsupportedError("the provider is a part of onnxruntime, not a library that is registered")
    if not hasattr(target.ort, "unregister_execution_provider_library"):
        raise ApiMissingError("onnxruntime %s unregisters no libraries" % target.ort.__version__)
    rounds = job_run.job["scenario_settings"]["rounds"]
    facts.update(rounds=0, steps=[])
    worst: list[Any] = []
    furthest = -1.0
    for order in ORDERS:
        course = _Course(job_run, order)
        try:
            course.take(rounds if order == "in_rounds" else 1)
        finally:
            facts["steps"].append("%s: %s" % (order.replace("_", " "), course.told()))
        if order == _MISUSE:
            continue
        if course.error:
            raise LifecycleError("%s: %s" % (course.where(), course.error))
        if course.end != "exit code 0":
            raise ProcessDied("%s: %s" % (course.end, course.where()))
        if course.apart > furthest:
            furthest, worst = course.apart, course.outputs
    job_run.enter("create")
    job_run.create()
    job_run.result["outputs"] = [job_run.send(outputs) for outputs in worst]
    conclude(job_run)


class _Course:
    """One process, and what it told."""

    def __init__(self, job_run: JobRun, order: str) -> None:
        self.job_run = job_run
        self.order = order
        self.steps: list[str] = []
        self.rounds = 0
        self.outputs: list[Any] = []
        self.apart = 0.0
        self.error = self.failed_at = ""
        self.end = ""

    def take(self, rounds: int) -> None:
        """Start the process and follow it to its end."""
        target = self.job_run.target
        with scratch_folder() as folder, fresh_python(SERVE_LIFECYCLE) as fresh:
            files = TensorFiles([folder], "in", "the inputs")
            job = {key: value for key, value in self.job_run.job.items() if not key.startswith("scenario")}
            sets = [[(name, files.send(wire)) for name, wire in inputs] for inputs in job["data_sets"]]
            config = {**target.config, "tensor_folders": [folder]}
            guard = threading.Timer(_MISUSE_S, fresh.process.kill)
            if self.order == _MISUSE:
                guard.start()
            try:
                fresh.pipe.send((self.order, rounds, config, {**job, "data_sets": sets}))
                while True:
                    self._note(fresh.pipe.receive(), files)
            except (OSError, EOFError):  # it has ended
                self.end = _end(fresh)
            finally:
                guard.cancel()
            if self.end != "exit code 0":
                os.write(2, fresh.printed())

    def _note(self, message: list[Any], files: TensorFiles) -> None:
        kind, *rest = message
        facts = self.job_run.facts
        if kind == "step":
            self.steps.append(rest[0])
            phase = _PHASES.get(rest[0], "teardown")
            self.job_run.enter("create" if self.order == _MISUSE else phase)  # its limit is the longest
        elif kind == "round":
            self.rounds += 1
            facts["rounds"] = self.rounds
            stays = rest[0].pop("stays")
            if stays is not None:
                facts["stays_loaded"] = stays
            for name, value in rest[0].items():
                if value is not None:
                    facts.setdefault(name, []).append(value)
        elif kind == "told":
            facts[rest[0]] = rest[1]
        elif kind == "failed":
            self.error, self.failed_at = ": ".join(rest), self.steps[-1]
        elif kind == "outputs":
            difference, differing, outputs = rest
            for wire in (wire for values in outputs for wire in values):
                files.receive(wire)
            self.outputs = outputs
            self._compare(difference["difference"], differing)

    def _compare(self, apart: Any, differing: int) -> None:
        if self.order == _MISUSE:
            return
        self.apart = float(apart)
        if self.order == "in_rounds":
            self.job_run.facts.update(differing_rounds=differing, difference=apart)

    def told(self) -> str:
        """Return the steps and how the process ended, in words."""
        once = self.steps.index("unregister") + 1 if self.rounds else 0
        done = ["%d x (%s)" % (self.rounds, ", ".join(self.steps[:once]))] if self.rounds else []
        rest = self.steps[self.rounds * once :]
        return ", ".join(filter(None, [*done, *rest, self.error, self.end or "did not end"]))

    def where(self) -> str:
        """Return the step at which the process is, in words."""
        step = self.failed_at or (self.steps[-1] if self.steps else "start")
        of_round = " of round %d" % (self.rounds + 1) if self.order == "in_rounds" and step != "exit" else ""
        return "at %s%s, %s" % (step, of_round, self.order.replace("_", " "))


def _end(fresh: FreshPython) -> str:
    """Return how a process ended: a signal's name, or its exit code."""
    code = fresh.process.wait()
    if code >= 0:
        return "exit code %d" % code if code < 1 << 31 else "exit code 0x%X" % code
    try:
        return signal.Signals(-code).name
    except ValueError:
        return clean("signal %d" % -code)
