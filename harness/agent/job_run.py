"""The run of one job inside the target."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from harness.agent.input_guard import Fed
from harness.agent.manners import Manners
from harness.agent.safe_text import sendable
from harness.agent.session_profile import SessionProfile
from harness.agent.session_run import PROGRESS_S, Runner
from harness.agent.session_target import SessionTarget
from harness.agent.system import elapsed_ms
from harness.agent.wire import to_feed

Feeds = dict[str, Any]
RawOutputs = list[Any]


class JobRun:
    """One job in progress: its inputs, its result so far, and the session that is judged.

    Args:
        target: The provider.
        job: The job, with all its inputs.
        result: Receives the findings, one by one.
        enter: Reports a phase to the harness, which also shows that the job makes progress.
        manners: Records changes that the provider makes to its process; None if they are not watched.
    """

    def __init__(
        self,
        target: SessionTarget,
        job: dict[str, Any],
        result: dict[str, Any],
        enter: Callable[[str], None],
        manners: Manners | None = None,
    ) -> None:
        self.target = target
        self.job = job
        self.result = result
        self.enter = enter
        self.manners = manners
        self.files = target.files
        self.model: str | bytes = job["model"]
        """Path or bytes of the model; a scenario may replace it by another form of the model."""
        self.adjust: Callable[[Any], None] = lambda _: None
        """Changes the session options; a scenario may set it."""
        self.options: dict[str, str] | None = None
        """Provider options in place of the target's; a scenario may set them."""
        self.session: Any = None
        """The session that is judged; the agent closes it after the result."""
        self.runner: Any = None
        """The ``Runner`` of that session."""
        self.create_processor_ms = 0.0
        """Milliseconds of all processors in which that session was made."""
        self.run_ms = 0.0
        """Milliseconds of the latest run."""
        self.stopwatch: Any = None
        """A ``Stopwatch`` that times the runs, if the job asks for it."""
        self.profile: SessionProfile | None = None
        """Profile of the first run, if nothing else shows which provider ran each node."""
        self.reported_at = 0.0
        """When the latest run was reported, in seconds."""

    @property
    def facts(self) -> dict[str, Any]:
        """Return the scenario's observations by name: bool, int, float, text, or a list of one of these."""
        facts: dict[str, Any] = self.result.setdefault("scenario", {})
        return facts

    def open(self, profile: SessionProfile | None = None) -> Any:
        """Return a new session, which writes the profile if one is given."""

        def adjust(settings: Any) -> None:
            self.adjust(settings)
            if profile is not None:
                profile.begin(settings)

        return self.target.session(self.model, self.job, self.options, adjust=adjust)

    def create(self) -> None:
        """Create the session that is judged."""
        started, processor_s = time.perf_counter(), time.process_time()
        self.judge(self.open(self.profile))
        self.result["timings_ms"]["create"] = elapsed_ms(started)
        self.create_processor_ms = round((time.process_time() - processor_s) * 1000, 4)
        if self.manners is not None:
            self.manners.look("create", cheap=True)
        self.result["providers"] = sendable(self.session.get_providers())
        self.result["names"] = sendable(self.runner.names)

    def judge(self, session: Any) -> None:
        """Make a session the judged one."""
        self.session, self.runner = session, Runner(session)

    def close(self) -> None:
        """Close the judged session."""
        self.session = self.runner = None

    def run(self, inputs: list[Any]) -> tuple[Feeds, RawOutputs]:
        """Run the judged session on one data set, as a separate phase: a time limit applies to one run.

        Returns the inputs in the session's form, and the outputs in wire form.
        """
        self.begin_run()
        feeds = {name: to_feed(wire) for name, wire in inputs}
        fed = Fed(feeds)
        started = time.perf_counter()
        outputs = self.runner(feeds)
        self.run_ms = elapsed_ms(started)
        self.result["timings_ms"].setdefault("first_run", self.run_ms)
        self.look_at(fed)
        return feeds, outputs

    def look_at(self, fed: Fed) -> None:
        """Note which inputs of a run have changed since they were fed."""
        if self.manners is not None and (text := fed.overwritten()):
            self.manners.note("inputs", "run", text)

    def begin_run(self) -> None:
        """Report a run, which then has the whole time limit."""
        self.reported_at = time.perf_counter()
        self.enter("run")

    def further(self) -> None:
        """Report a further run, unless the latest report is recent.

        A report takes longer than a small model.
        """
        if time.perf_counter() - self.reported_at > PROGRESS_S:
            self.begin_run()

    def send(self, outputs: RawOutputs) -> RawOutputs:
        """Return outputs ready for a message: large tensors are written to files."""
        return [self.files.send(wire) for wire in outputs]

    def report_second(self, first: RawOutputs, second: RawOutputs) -> None:
        """Add the outputs of a further run to the result if they differ from the first run's."""
        if second != first and "second" not in self.result:
            self.result["second"] = self.send(second)
