"""A kind of fault."""

from collections.abc import Callable

import msgspec

from benchmarks.planted.arithmetic import Array
from benchmarks.planted.subject import Subject

FIRST, SECOND, OTHER = "first", "second", "other"
"""The run that a fault is in: the first, a further one with the same inputs, or that with other inputs."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of fault.

    Attributes:
        name: As the page shows it.
        make: The wrong outputs of a subject; None where the fault does not apply.
        run: The run that is wrong; all others are honest.
        target: The provider that has it: see ``benchmarks.planted.court.TARGETS``.
    """

    name: str
    make: Callable[[Subject], list[Array] | None]
    run: str = FIRST
    target: str = "plain"
