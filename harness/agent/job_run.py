"""The run of one job inside the target."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.agent.profile import Profile
from harness.agent.system import elapsed_ms
from harness.agent.target import Target
from harness.agent.text import sendable

if TYPE_CHECKING:
    from harness.agent.latency import Stopwatch


class JobRun:
    """One job at work: what is asked, what has been found out, and the session that is judged.

    Args:
        target: The provider.
        job: The job, complete.
        result: Takes what is found out, as far as that goes.
        enter: Tells the harness of a phase, and with it that the job goes on.
    """

    def __init__(
        self, target: Target, job: dict[str, Any], result: dict[str, Any], enter: Callable[[str], None]
    ) -> None:
        self.target = target
        self.job = job
        self.result = result
        self.enter = enter
        self.files = target.files
        self.model: str | bytes = b""
        """What sessions are made of; a scenario may put another form of the model in its place."""
        self.adjust: Callable[[Any], None] = lambda _: None
        """What a scenario changes in the options of its sessions."""
        self.session: Any = None
        """The session that is judged; it ends after the result."""
        self.watch: Stopwatch | None = None
        """What times the runs, where that is asked for."""
        self.profile: Profile | None = None
        """What the judged session writes about its first run, where nothing else says where nodes went."""

    @property
    def facts(self) -> dict[str, Any]:
        """What is told about the scenario: bool, int, float, text, or a list of one of these, by name."""
        facts: dict[str, Any] = self.result.setdefault("scenario", {})
        return facts

    def begin(self) -> None:
        """Take the model as it came; measure from here on."""
        self.model = self.job["model"]
        if "latency" in self.job:
            from harness.agent.latency import Stopwatch

            self.watch = Stopwatch(self.job["latency"])

    def open(self, further: Callable[[Any], None] = lambda _: None) -> Any:
        """Make a session.

        Args:
            further: Changes its options once more.
        """

        def adjust(settings: Any) -> None:
            self.adjust(settings)
            further(settings)

        return self.target.session(self.model, self.job, adjust=adjust)

    def create(self) -> Any:
        """Make the session that is judged."""
        started = time.perf_counter()
        self.session = self.open() if self.profile is None else self.open(self.profile.begin)
        self.result["timings_ms"]["create"] = elapsed_ms(started)
        self.result["providers"] = sendable(self.session.get_providers())
        return self.session

    def end_profile(self) -> None:
        """Read the profile, if there is one."""
        if self.profile is not None:
            self.profile.end(self.session)
