"""How long a model's runs took: from the times that an agent measured to the figures of a record."""

import math
import statistics
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

MOST_RUNS = 1000
"""Runs of one cell that are timed at most: each leaves its figure in the record."""

FEWEST_RUNS = {90: 10, 99: 100}
"""Percentile -> runs without which it is none: of fewer it would be the slowest one, by another name."""

DISTURBED = 0.1
"""Threads standing in line for a processor, on average, from which on a time is not to be trusted: a single
thread was waiting for a tenth of it."""

NS_PER_MS = 1_000_000


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """The latency of one session's runs; every field is written, null where it is not known.

    A run begins with the call of the session and ends when its outputs are there: as numpy arrays where
    ``io`` is ``copied``, where they were bound to where it is ``bound``.

    Attributes:
        runs: Runs that count.
        warm_up: Runs before them that do not; besides the session's first ones, which the verdict is from.
        stopped_by: ``repeats``, or ``budget`` where the time was up before.
        min_ms: The fastest run in milliseconds.
        p50_ms: Median.
        p90_ms: 90th percentile; null of fewer than 10 runs.
        p99_ms: 99th percentile; null of fewer than 100 runs.
        max_ms: The slowest run.
        mean_ms: Mean.
        stddev_ms: Standard deviation of the sample (n - 1); null of a single run.
        samples_ms: Every run that counts, in their order.
        io: Whether inputs and outputs went through numpy arrays in host memory, or were bound.
        intra_op_threads: Threads within an operator that the session was allowed; 0 for onnxruntime's choice.
            What threads a provider has besides is its own business.
        inter_op_threads: Threads across operators, likewise.
        waiting_threads: How many threads of the process stood in line for a processor meanwhile, on average,
            because something else had it: those that it kept waiting itself, by having more threads than
            there are processors, do not count. Null where the system does not tell.
        host_peak_mib: Most resident memory of the process from before the session's creation to the last run,
            in MiB; null where the system does not tell.
        device_mib: Device memory that the process held after the last run, in MiB; null where nobody tells.
    """

    runs: int
    warm_up: int
    stopped_by: Literal["repeats", "budget"]
    min_ms: float
    p50_ms: float
    p90_ms: float | None
    p99_ms: float | None
    max_ms: float
    mean_ms: float
    stddev_ms: float | None
    samples_ms: tuple[float, ...]
    io: Literal["copied", "bound"]
    intra_op_threads: int
    inter_op_threads: int
    waiting_threads: float | None
    host_peak_mib: float | None
    device_mib: float | None

    @property
    def disturbed(self) -> bool:
        """Whether something was in the way; false where nobody knows."""
        return self.waiting_threads is not None and self.waiting_threads > DISTURBED


_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]
_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]  # neither NaN nor infinite, which satisfy no limit
_Nanoseconds = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class Measured(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an agent says about timed runs; fields as in ``Latency``."""

    samples_ns: Annotated[list[_Nanoseconds], msgspec.Meta(min_length=1, max_length=MOST_RUNS)]
    warm_up: _Count
    stopped_by: Literal["repeats", "budget"]
    io: Literal["copied", "bound"]
    intra_op_threads: _Count
    inter_op_threads: _Count
    waiting_threads: _Amount | None
    host_peak_mib: _Amount | None
    device_mib: _Amount | None


def latency_of(said: object) -> Latency:
    """The figures of what an agent said, as ``Measured`` or as it came.

    Raises:
        ValueError: It is nonsense.
    """
    measured = msgspec.convert(said, Measured)
    samples = [ns / NS_PER_MS for ns in measured.samples_ns]
    ordered = sorted(samples)
    return Latency(
        runs=len(samples),
        warm_up=measured.warm_up,
        stopped_by=measured.stopped_by,
        min_ms=ordered[0],
        p50_ms=_written(percentile(ordered, 50)),
        p90_ms=_far(ordered, 90),
        p99_ms=_far(ordered, 99),
        max_ms=ordered[-1],
        mean_ms=_written(statistics.fmean(samples)),
        stddev_ms=_written(statistics.stdev(samples)) if len(samples) > 1 else None,
        samples_ms=tuple(samples),
        io=measured.io,
        intra_op_threads=measured.intra_op_threads,
        inter_op_threads=measured.inter_op_threads,
        waiting_threads=measured.waiting_threads,
        host_peak_mib=measured.host_peak_mib,
        device_mib=measured.device_mib,
    )


def percentile(ordered: Sequence[float], percent: float) -> float:
    """A percentile by linear interpolation between the two nearest of the sorted values.

    Type 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996; numpy's default.

    Args:
        ordered: At least one value, ascending.
        percent: From 0 to 100.
    """
    position = percent / 100 * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def _far(ordered: Sequence[float], percent: int) -> float | None:
    return _written(percentile(ordered, percent)) if len(ordered) >= FEWEST_RUNS[percent] else None


def _written(ms: float) -> float:
    """To the nanosecond, which is what the samples are given in."""
    return round(ms, 6)
