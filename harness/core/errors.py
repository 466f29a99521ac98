"""The errors that a person sees: what, where, got, valid, next step."""

import difflib
from collections.abc import Iterable, Sequence

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with what a person wrote.

    Attributes:
        where: File, or file and key path, such as ``local.toml: target[2].provider``.
        what: One sentence: what was found there and what is wrong with it.
        hint: What is valid, or what to do next; may be empty.
    """

    where: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" + (f"\n    {self.hint}" if self.hint else "")


class HarnessError(Exception):
    """Base of every error that is the user's to mend; shown without a traceback."""


class UsageError(HarnessError):
    """A wrong argument, path or file. Carries every problem found, not only the first.

    Attributes:
        problems: At least one problem, in the order in which they were found.
    """

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems: Sequence[Problem] = problems

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


def one_line(text: object, limit: int = 300) -> str:
    """Fold any text into one line of at most ``limit`` characters, marking what was cut."""
    line = " ".join(str(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def valid_names(got: str, valid: Iterable[str], limit: int = 8) -> str:
    """Say what would have been valid, with the nearest name first: ``did you mean ...? valid: ...``."""
    names = list(valid)
    near = difflib.get_close_matches(got, names, n=1, cutoff=0.6)
    listed = ", ".join(names[:limit]) + (f", … ({len(names)} in all)" if len(names) > limit else "")
    return (f"did you mean {near[0]!r}? " if near else "") + f"valid: {listed or 'none'}"
