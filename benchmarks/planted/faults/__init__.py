"""The faults: kinds of wrong answers."""

from benchmarks.planted.faults.elements import elements
from benchmarks.planted.faults.fault import OTHER, SECOND, Fault
from benchmarks.planted.faults.implementations import implementations

__all__ = ["OTHER", "SECOND", "Fault", "faults"]


def faults() -> list[Fault]:
    """Return every kind."""
    return [*elements(), *implementations()]
