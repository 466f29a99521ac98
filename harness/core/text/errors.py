"""Errors of use: what, where, got, valid, next step; and the exit codes of commands."""

import difflib
from collections.abc import Iterable, Sequence

import msgspec

_COMPARED = 200
"""Characters of a wrong name that are compared with valid ones: the time grows with the square of their
number."""

EXIT_OK = 0
EXIT_UNEXPECTED = 1
EXIT_USAGE = 2
EXIT_INCOMPLETE = 3
EXIT_INTERRUPTED = 130


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One fault in a file or in the arguments of a command.

    Attributes:
        where: File, or file and key path, such as ``local.toml: target[2].provider``.
        what: One sentence: the value there and what is wrong with it.
        hint: What is valid, or what to do next; may be empty.
    """

    where: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" + (f"\n    {self.hint}" if self.hint else "")


class HarnessError(Exception):
    """Base of every error that the user can correct; shown without a traceback."""


class UsageError(HarnessError):
    """A wrong argument, path or file, with every problem found, not only the first.

    Attributes:
        problems: At least one problem, in the order in which they were found.
    """

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems: Sequence[Problem] = problems

    @classmethod
    def at(cls, where: object, what: str, hint: str = "") -> "UsageError":
        """Return the error of a single problem; arguments are the fields of ``Problem``."""
        return cls(Problem(where=str(where), what=what, hint=hint))

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class UncontainedError(BaseException):
    """An exception while another one was being handled: the state is undefined."""


def one_line(text: object, limit: int = 300) -> str:
    """Fold any text into one line of at most ``limit`` characters; ``…`` marks a cut.

    Head and tail stay: the cause of nested errors comes last.
    """
    line = " ".join(str(text).split())
    if len(line) <= limit:
        return line
    tail = (limit - 1) // 2
    return f"{line[: limit - 1 - tail]}…{line[len(line) - tail :]}"


def valid_names(got: str, valid: Iterable[str], limit: int = 8) -> str:
    """Return what is valid, with the nearest name first: ``did you mean ...? valid: ...``."""
    names = list(valid)
    near = difflib.get_close_matches(got[:_COMPARED], names, n=1, cutoff=0.6)
    listed = ", ".join(names[:limit]) + (f", … ({len(names)} in all)" if len(names) > limit else "")
    return (f"did you mean {near[0]!r}? " if near else "") + f"valid: {listed or 'none'}"
