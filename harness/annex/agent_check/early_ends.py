"""The two ways in which a check ends early."""

from typing import Literal

Word = Literal[
    "greeting",  # the line with which it begins is missing or wrong
    "version",
    "token",
    "mode",
    "declines",
    "frame",  # something other than frames came
    "form",  # a message of no known form
    "order",  # a message at the wrong time
    "budget",  # more messages about a job than the job allows
    "environment",
    "value",  # an output is wrong
    "placement",
    "upload",
    "refused",  # it refuses something that every agent must do
    "accepted",  # it answers something that it must refuse
    "error",  # an error is reported in another way than specified
    "end",  # it does not end when it must
    "died",  # it ends when it must not
    "time",  # nothing came in time
    "written",  # it wrote outside of its folders
]
"""The fault, in one word."""


class FaultError(Exception):
    """The agent does not follow the protocol; the error has the word for it, and a text."""

    def __init__(self, word: Word, text: str) -> None:
        super().__init__(text)
        self.word = word
        self.text = text


class NotDoneError(Exception):
    """The agent does not support what the check asks for, and says so; the text has its reason."""
