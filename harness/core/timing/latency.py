"""Latency of a model's runs: turns the times that an agent measured into the figures of a record."""

import math
import statistics
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

MOST_TIMED_RUNS = 1000
"""Largest number of timed runs of one cell: each has its figure in the record."""

FEWEST_RUNS = {90: 10, 99: 100}
"""Percentile -> runs that it needs: with fewer it would only be another name for the slowest run."""

_DISTURBED = 0.1
"""Average number of threads waiting for a processor from which on a time is disturbed.

A single thread then waited for a tenth of the time.
"""

_NS_PER_MS = 1_000_000


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """The latency of one session's runs; every field is written, null where it is not known.

    A run begins with the call of the session and ends when its outputs are available: as numpy arrays if
    ``io`` is ``copied``, at their bound place if it is ``bound``.

    Attributes:
        runs: Runs that count.
        warm_up: Runs before them that do not count; the session's first runs, which decide the verdict, are
            not included.
        stopped_by: ``repeats``, or ``budget`` if the time ran out first.
        min_ms: The fastest run in milliseconds.
        p50_ms: Median.
        p90_ms: 90th percentile; null for fewer than 10 runs.
        p99_ms: 99th percentile; null for fewer than 100 runs.
        max_ms: The slowest run.
        mean_ms: Mean.
        stddev_ms: Standard deviation of the sample (n - 1); null for a single run.
        samples_ms: Every run that counts, in order.
        io: Whether inputs and outputs went through numpy arrays in host memory, or were bound.
        intra_op_threads: Threads within an operator that the session may use; 0 for onnxruntime's choice. A
            provider may have further threads.
        inter_op_threads: Threads across operators, likewise.
        waiting_threads: Average number of the process's threads that waited meanwhile for a processor because
            another process had it. Threads that wait because the process has more threads than there are
            processors do not count. Null if the system does not report it.
        processor_ms: Processor time of a run, of all threads of the process: the median of those that count.
            Null if it is unknown, or counted in steps that are longer than a run.
        host_peak_mib: Peak of the process's resident memory from before the session's creation to the last
            run, in MiB; null if the system does not report it.
        device_mib: Device memory that the process held after the last run, in MiB; null if unknown.
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
    processor_ms: float | None = None

    @property
    def disturbed(self) -> bool:
        """Whether other processes disturbed the runs; false if that is unknown."""
        return self.waiting_threads is not None and self.waiting_threads > _DISTURBED


_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]
_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]  # neither NaN nor infinite, which pass no limit
_Nanoseconds = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class TimedRuns(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Timed runs as an agent sends them; fields as in ``Latency``."""

    samples_ns: Annotated[list[_Nanoseconds], msgspec.Meta(min_length=1, max_length=MOST_TIMED_RUNS)]
    warm_up: _Count
    stopped_by: Literal["repeats", "budget"]
    io: Literal["copied", "bound"]
    intra_op_threads: _Count
    inter_op_threads: _Count
    waiting_threads: _Amount | None
    host_peak_mib: _Amount | None
    device_mib: _Amount | None
    processor_ms: _Amount | None = None


def latency_of(sent: object) -> Latency:
    """Return the figures of timed runs, which are ``TimedRuns`` or its JSON.

    Raises:
        ValueError: The message is not valid.
    """
    measured = msgspec.convert(sent, TimedRuns)
    samples = [ns / _NS_PER_MS for ns in measured.samples_ns]
    ordered = sorted(samples)
    same = [name for name in TimedRuns.__struct_fields__ if name != "samples_ns"]
    return Latency(
        runs=len(samples),
        min_ms=ordered[0],
        p50_ms=_rounded(percentile(ordered, 50)),
        p90_ms=_high(ordered, 90),
        p99_ms=_high(ordered, 99),
        max_ms=ordered[-1],
        mean_ms=_rounded(statistics.fmean(samples)),
        stddev_ms=_rounded(statistics.stdev(samples)) if len(samples) > 1 else None,
        samples_ms=tuple(samples),
        **{name: getattr(measured, name) for name in same},
    )


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return a percentile by linear interpolation between the two nearest of the sorted values.

    Type 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996; numpy's default.

    Args:
        ordered: At least one value, ascending.
        percent: From 0 to 100.
    """
    position = percent / 100 * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def _high(ordered: Sequence[float], percent: int) -> float | None:
    return _rounded(percentile(ordered, percent)) if len(ordered) >= FEWEST_RUNS[percent] else None


def _rounded(ms: float) -> float:
    """Round to a nanosecond, the unit of the samples."""
    return round(ms, 6)
