"""Whether a new build is slower, of each cell: what `compare-speed` writes and a gate reads."""

from typing import Literal

import msgspec

SpeedVerdict = Literal["slower", "faster", "not_slower", "too_noisy", "not_measured"]
Clock = Literal["wall", "processor"]


class ClockChange(msgspec.Struct, frozen=True, kw_only=True):
    """How the time of a run changed, by one clock.

    Attributes:
        base_ms: Median over the processes of the base of the median of their runs.
        new_ms: The same of the new build.
        ratio: Time with the new build over time with the base: the estimate of Hodges and Lehmann.
        low: The least ratio, exceeded by the true one with the confidence of a *slower*; null with too few
            pairs.
        high: The largest ratio, with the confidence of a *not slower*; null likewise.
        p_slower: Probability of differences like these, if the builds are equal.
        p_faster: The same for the other direction.
        spread: Standard deviation of the logarithm of the ratio from pair to pair.
        drift: Ratio of the base's time in the last half of the pairs to that in the first half.
    """

    base_ms: float
    new_ms: float
    ratio: float
    low: float | None
    high: float | None
    p_slower: float
    p_faster: float
    spread: float
    drift: float


class SpeedChange(msgspec.Struct, frozen=True, kw_only=True):
    """What the pairs of one cell show.

    Attributes:
        verdict: ``too_noisy``: neither a change nor its absence is shown, and the time is over.
            ``not_measured``: a build has no right answer to time.
        clock: By which clock the verdict is; null without one.
        pairs: Number of pairs of fresh processes.
        changes: Clock -> how the time changed. Processor time is there if the cell computes on the processor.
        more_minutes: About how much longer it takes until there is a verdict; null if there is one.
        waiting_threads: Average number of threads that waited for a processor; null if unknown.
        reason: One sentence.
    """

    cell: str
    verdict: SpeedVerdict
    clock: Clock | None = None
    pairs: int = 0
    changes: dict[Clock, ClockChange] = {}
    more_minutes: float | None = None
    waiting_threads: float | None = None
    reason: str = ""


class SpeedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of two builds.

    Attributes:
        base: The build that is the measure, as it was given.
        new: The build that may be slower.
        seed: Of the order within the pairs.
        found_from: The slowdown from which on a *not slower* is wrong, as a share.
        false_alarms: Largest probability of any *slower* among equal builds.
        missed: Largest probability of a *not slower* for a cell that is slower by ``found_from``.
        minutes: How long it took.
        complete: False if it was interrupted.
    """

    schema: int = 1
    base: str
    new: str
    seed: int
    found_from: float
    false_alarms: float
    missed: float
    minutes: float
    complete: bool
    cells: tuple[SpeedChange, ...]
