"""The definition of a check, and the groups of checks."""

from collections.abc import Callable

import msgspec

from harness.annex.agent_check.bench import Bench

Run = Callable[[Bench], object]
"""The function of a check; its return value does not count."""


class AgentCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One check of a group. Its title is the required behaviour of the agent.

    ``run`` raises ``FaultError`` or ``NotDoneError``.
    """

    group: str
    title: str
    run: Run


class CheckGroup:
    """Collects the checks of one heading in the order of their definition."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checks: list[AgentCheck] = []

    def check(self, title: str) -> Callable[[Run], Run]:
        """Return a decorator that adds a function as a check."""

        def add(run: Run) -> Run:
            self.add(title, run)
            return run

        return add

    def add(self, title: str, run: Run) -> None:
        """Add a check."""
        self.checks.append(AgentCheck(group=self.name, title=title, run=run))
