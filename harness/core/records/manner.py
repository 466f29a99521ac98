"""Manners: unexpected changes that a provider makes to its process; marks beside a verdict."""

from collections.abc import Iterable

import msgspec

_KINDS = {
    "fp_control": "rounding, flushing of denormals to zero, or traps of floating-point arithmetic",
    "signals": "signals that are caught, ignored or blocked",
    "locale": "the locale of the C library",
    "directory": "the working directory",
    "environment": "variables of the environment",
    "descriptors": "what the descriptors 0 to 2 lead to",
    "file_mask": "the mask of new files",
    "limits": "a limit of the process that is lower",
    "files": "files in the working directory",
    "processes": "processes left behind",
    "leftovers": "threads or descriptors that each session leaves, or 16 descriptors at once",
    "inputs": "inputs that were written into",
    "printed": "more than 1 MiB of output",
    "memory": "GiB of memory for a small model",
}
"""Kind -> its meaning; the order is that of the documentation. An agent may send other kinds."""


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a cell changed.

    Attributes:
        kind: A key of ``_KINDS``.
        phase: The phase in which it appeared: ``register`` (before the first cell of the process),
            ``create``, ``run`` or ``teardown``.
        text: The change, in one line: ``it changed rounding from to nearest to up``.
    """

    kind: str
    phase: str
    text: str

    @property
    def words(self) -> str:
        """The text with its phase."""
        when = {"register": "when its library was loaded", "create": "when the session was made"}
        return f"{self.text} ({when.get(self.phase, f'in {self.phase}')})"


def manners_words(manners: Iterable[Manner]) -> str:
    """Return all in one line; empty without any."""
    return "; ".join(one.words for one in manners)
