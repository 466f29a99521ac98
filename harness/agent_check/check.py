"""What a check is, and the two ways in which it ends early."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

Word = Literal[
    "greeting",  # the line with which it begins is missing or wrong
    "version",
    "token",
    "mode",
    "declines",
    "frame",  # something else than frames came
    "form",  # a message of no known form
    "order",  # a message at the wrong time
    "environment",
    "value",  # an output is wrong
    "placement",
    "upload",
    "refused",  # it refuses what every agent must do
    "accepted",  # it answers what it must refuse
    "error",  # an error is reported in another way than specified
    "end",  # it does not end when it must
    "died",  # it ends when it must not
    "time",  # nothing came in time
    "written",  # it wrote outside of its folders
]
"""What is wrong, in one word."""


Run = Callable[[Any], None]
"""What a check does, with the ``Bench``."""


class FaultError(Exception):
    """The agent does not follow the protocol; has the word for it, and a text."""

    def __init__(self, word: Word, text: str) -> None:
        super().__init__(text)
        self.word = word
        self.text = text


class NotDoneError(Exception):
    """The agent does not do what the check asks for, and says so; the text has its reason."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One check.

    Attributes:
        group: The heading under which it is shown.
        title: What the agent must do.
        run: Raises ``FaultError`` or ``NotDoneError``.
    """

    group: str
    title: str
    run: Run


class Group:
    """Collects the checks of one heading in the order of their definition."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checks: list[Check] = []

    def check(self, title: str) -> Callable[[Run], Run]:
        """Return a decorator that adds a function as a check."""

        def add(run: Run) -> Run:
            self.add(title, run)
            return run

        return add

    def add(self, title: str, run: Run) -> None:
        """Add a check."""
        self.checks.append(Check(group=self.name, title=title, run=run))
