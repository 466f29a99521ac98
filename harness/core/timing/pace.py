"""Which of several configurations is the fastest, from the medians of their timed runs; or that none is.

A round is one measurement of a configuration: some hundred runs of a session. Rounds of several
configurations that were taken in turns (A B B A) met the same state of the machine. What disturbs a round
only adds to its time, so a disturbed time is an upper bound.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from harness.core.timing.latency import Latency

INTERLEAVED = 0.05
"""Share by which medians of rounds that ran in turns differ by chance."""

_APART = 0.2
"""The same for single rounds, one after the other: nights of one machine differ by this much."""

_TWICE = 1.0
"""The same of rounds in turns that were disturbed: what took twice as long each time was not so by chance."""

NEAR_FASTEST = 1.5
"""Multiple of the fastest time within which a rival may turn out as fast when it is measured again."""

Rounds = Sequence[Latency]

_T = TypeVar("_T")


def calm(rounds: Rounds) -> tuple[Latency, ...]:
    """Return the rounds that no other process disturbed."""
    return tuple(one for one in rounds if not one.disturbed)


def is_reliable(rounds: Rounds) -> bool:
    """Return whether a time can be compared: at least one round is undisturbed."""
    return bool(calm(rounds))


def best_ms(rounds: Rounds) -> float | None:
    """Return the best median in milliseconds, of undisturbed rounds if there are any; None without rounds."""
    return min((one.p50_ms for one in calm(rounds) or rounds), default=None)


def beats(one: Rounds, other: Rounds) -> bool:
    """Return whether each median of ``one`` is below each of ``other``, by more than chance.

    The other's are those that no other process disturbed. Without any, rounds in turns have to be twice as
    long, and others tell nothing.
    """
    in_turns = min(len(one), len(other)) > 1
    mine, others, margin = calm(one) or one, calm(other), INTERLEAVED if in_turns else _APART
    if not others and in_turns:
        mine, others, margin = one, tuple(other), _TWICE
    if not mine or not others:
        return False
    return max(each.p50_ms for each in mine) * (1 + margin) < min(each.p50_ms for each in others)


def is_open(one: Rounds, other: Rounds) -> bool:
    """Return whether a disturbance hides if one is slower than the other; both have rounds."""
    if is_reliable(one) and is_reliable(other):
        return False
    as_fast = is_reliable(other) and _ms(one) <= _ms(other)
    return not (as_fast or beats(one, other) or beats(other, one))


def unbeaten(candidates: Sequence[_T], rounds_of: Callable[[_T], Rounds]) -> tuple[_T, ...]:
    """Return the candidates that no other one beats, in their order: the fastest one, or several equal ones.

    Return None if the fastest, or a rival near it, is not reliable: then the figures decide nothing. A single
    candidate needs no figures.
    """
    timed = [one for one in candidates if rounds_of(one)]
    least_ms = min((_ms(rounds_of(one)) for one in timed), default=0.0)
    near = [one for one in timed if _ms(rounds_of(one)) <= NEAR_FASTEST * least_ms]
    if len(timed) > 1 and not all(is_reliable(rounds_of(one)) for one in near):
        return ()
    return tuple(one for one in near if not any(beats(rounds_of(other), rounds_of(one)) for other in near))


def _ms(rounds: Rounds) -> float:
    return best_ms(rounds) or 0.0
