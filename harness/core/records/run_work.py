"""The amount of work of one run of a model. It decides how often the model is run; no clock does."""

from collections.abc import Mapping
from typing import Any

import msgspec

NODE_OPERATIONS = 10_000
"""Operations that every node adds to the count, whatever it computes.

Starting a node takes the CPU EP some microseconds, and a GPU tens of them: as much as some 10,000 elements.
"""

WORK_LIMIT = 1e10
"""Operations of one run up to which a model is run again, unless its target has its own limit.

ResNet-50 has 4.7e9, VGG-19 2.1e10. On one thread, onnxruntime's CPU EP executes some 1e10 in a second.
"""

MOST_OFTEN = 10
"""Runs of the smallest models."""

_TIERS = ((1e-3, MOST_OFTEN), (1e-1, 4), (1.0, 2))
"""Fraction of the limit -> how often a model is run: with the default limit up to 1e7, 1e9 and 1e10.

A run of less than 1e7 takes the CPU EP about a millisecond, a tenth of making its session. A fault in one of
five runs escapes 10 runs with a probability of ``0.8 ** 10 = 0.11``, 4 runs with 0.41, and two with 0.64.
"""

NOT_CHECKED = "not checked: "
"""Beginning of the text about checks that were left out."""

SECOND_RUN, OTHER_INPUTS, OTHER_BRANCH = "second run", "other inputs", "other branch"
"""Names of checks that may be left out, as records have them."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate of one run, the same on every machine.

    Attributes:
        multiply_adds: Multiplications with an addition, or other single steps on an element.
        nbytes: Bytes of operands and results, at every node.
        nodes: Nodes that run; those in the body of a loop count once for each iteration.
    """

    multiply_adds: float = 0.0
    nbytes: float = 0.0
    nodes: float = 0.0

    @property
    def operations(self) -> float:
        """All together: a moved byte counts as a multiply-add, and a node as ``NODE_OPERATIONS`` of them."""
        return self.multiply_adds + self.nbytes + NODE_OPERATIONS * self.nodes


class Unchecked(msgspec.Struct, frozen=True, kw_only=True):
    """A check that was left out.

    Attributes:
        check: The check, such as ``second run``.
        because: Why, in one line.
    """

    check: str
    because: str


def runs_of(work: Work, limit: float) -> int:
    """Return how often a model is run with its first data set: once if one run is beyond the limit."""
    return next((runs for part, runs in _TIERS if work.operations <= part * limit), 1)


def too_much(work: Work, limit: float) -> str:
    """Return why a model is not run again."""
    return (
        f"one run takes {work.operations:.2g} operations, more than {limit:.2g} "
        "(`work_limit` of the target changes that)"
    )


def unchecked_words(unchecked: tuple[Unchecked, ...]) -> str:
    """Return ``not checked: second run, other inputs; because one run takes ...``, or an empty text."""
    checks: dict[str, list[str]] = {}
    for one in unchecked:
        checks.setdefault(one.because, []).append(one.check)
    told = (f"{', '.join(names)}; because {because}" for because, names in checks.items())
    return "; ".join(f"{NOT_CHECKED}{each}" for each in told)


def short_of(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> tuple[Unchecked, ...]:
    """Return which of its requested runs a scenario has not done because its seconds ran out.

    Args:
        settings: The scenario's settings; empty if it has none.
        facts: What the scenario observed.
    """
    if "count" in settings:
        done, wanted, what = facts.get("count"), settings["count"], "sessions"
    elif "threads" in settings:
        done, wanted, what = facts.get("runs"), settings["threads"] * settings["runs"], "runs"
    else:
        return ()
    if not isinstance(done, int) or done >= wanted:
        return ()
    because = f"{settings['budget_s']:g} s were used up (`budget_s` of the scenario changes that)"
    return (Unchecked(check=f"{wanted - done:,} of {wanted:,} {what}", because=because),)
