"""Which cells of a run became slower by more than noise, compared with one or several earlier runs.

The times of consecutive runs are neither normal nor independent: they have a floor, a long tail, and phases.
So two quantiles are compared, the median and the lower decile. How much these vary within a process comes
from a bootstrap of moving blocks, which keeps neighbours together (Kuensch, "The jackknife and the bootstrap
for general stationary observations", Annals of Statistics 17, 1989). Disturbances only add to a time, so the
fastest runs are the least disturbed (Chen and Revels, "Robust benchmarking in noisy environments",
arXiv:1608.04295). A slower provider is slower in both quantiles.

Two processes of one build differ by more than the runs within each (Kalibera and Jones, "Rigorous
benchmarking in reasonable time", ISMM 2013). So the logarithms of a quantile, one for each run, are compared
by Student's t, with the variance from run to run. Few runs tell little about it, so that of the other cells
counts as more degrees of freedom: as many as the variances of cells are alike (Smyth, "Linear models and
empirical Bayes methods", Statistical Applications in Genetics and Molecular Biology 3, 2004, section 6.2).
Without any runs to learn it from, ``USUAL_SPREAD`` counts as ten.

Of hundreds of equal cells some differ much by chance. All p-values of a run together decide which ones are
reported: ``harness.core.timing.student.discoveries``.
"""

import functools
import math
import statistics
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from harness.core.timing.latency import Latency
from harness.core.timing.student import critical, discoveries, survival, trigamma, trigamma_inverse
from harness.core.values.value import Floats

FLOOR = 0.05
"""A change by at most this share does not matter: the place of code and data in memory alone changes as
much (Mytkowicz et al., "Producing wrong data without doing anything obviously wrong!", ASPLOS 2009)."""

FLOOR_MS = 0.01
"""A change by at most so many milliseconds does not matter: the smallest models spend them in Python."""

USUAL_SPREAD = 0.03
"""Standard deviation of a cell's time from run to run, as a share, before runs have shown it."""

PRIOR_RUNS = 10
"""Degrees of freedom that ``USUAL_SPREAD`` counts for, and other cells in each if nothing shows how many."""

LARGEST_P = 0.0075
"""Largest p-value of a cell that counts as slower.

At most one in a hundred equal cells should; a quarter of that is a margin, because the variance is an
estimate.
"""

_OUTSIDE = 0.01
"""Share of the intervals that do not contain the true ratio."""

FALSE_SHARE = 0.05
"""Share of the cells reported as slower that may be equal ones, on average."""

_MISSED = 0.05
"""Share of the slowdowns of the promised size that are missed."""

_WIDE = 1.5
"""An interval that reaches further than this from 1 says nothing."""

_CLEARLY = 1.25
"""A median that grew by this factor counts as unclear, if nothing shows that it is noise."""

_RESAMPLES = 200
"""Number of resamples: enough to know a variance to a tenth."""

FEWEST_SAMPLES = 10
"""Least number of samples of each run for an answer."""

_QUANTILES = (0.1, 0.5)
_MEDIAN = _QUANTILES.index(0.5)

LatencyVerdict = Literal["slower", "faster", "same", "unclear"]
Pair = tuple[Sequence[Latency], Sequence[Latency]]


class LatencyChange(msgspec.Struct, frozen=True, kw_only=True):
    """How a cell's latency changed.

    Attributes:
        verdict: ``same`` if no change was found; ``unclear`` if noise hides what may be one, or the sides
            cannot be compared.
        may_be_slower: Whether an unclear one looks like a slowdown.
        ratio: Median after over median before; null if the latter is zero.
        low: Lower end of the 99 % interval of the ratio of medians; null without an interval.
        high: Its upper end.
        promise: The ratio from which on 95 % of the slowdowns are found if many cells have one; null
            likewise.
        promise_alone: The same if only this cell has one.
    """

    verdict: LatencyVerdict
    may_be_slower: bool = False
    ratio: float | None
    low: float | None
    high: float | None
    promise: float | None = None
    promise_alone: float | None = None
    reason: str


class _Evidence(msgspec.Struct, frozen=True):
    """What the runs of a cell show, for each quantile.

    Attributes:
        change: Logarithm of the ratio after to before, shape ``(Q,)``.
        nights: Deviations of the earlier runs from their mean, shape ``(runs, Q)``.
        squares: Sum of squares of the deviations from run to run, shape ``(Q,)``.
        degrees: Its degrees of freedom.
        within: Variance of a logarithm within a process, before and after, shape ``(2, Q)``.
        counts: Runs before and after.
    """

    change: Floats
    nights: Floats
    squares: Floats
    degrees: int
    within: Floats
    counts: tuple[int, int]

    @property
    def mean_within(self) -> Floats:
        mean: Floats = np.average(self.within, axis=0, weights=self.counts)
        return mean


class _Tested(msgspec.Struct, frozen=True):
    """The tests of a cell: p-values for slower and faster, for each quantile, and half of the interval."""

    slower: tuple[float, ...]
    faster: tuple[float, ...]
    half: float
    promise: float
    promise_alone: float


def latency_change(before: Sequence[Latency], after: Sequence[Latency]) -> LatencyChange:
    """Compare one cell's latency before and after, as the only cell of its run."""
    return latency_changes({"": (before, after)})[""]


def latency_changes(cells: Mapping[str, Pair]) -> dict[str, LatencyChange]:
    """Compare the latencies of all cells of a run; the same samples always give the same answer.

    Args:
        cells: Name -> its latency in the runs before, and in the new run or runs.
    """
    why_not = {name: _not_comparable(*pair) for name, pair in cells.items()}
    told = {name: _evidence(*pair) for name, pair in cells.items() if not why_not[name]}
    tested = dict(zip(told, _tests(list(told.values())), strict=True))
    # All quantiles must show the change: asking for any of them would be several tests.
    slower = discoveries({name: max(one.slower) for name, one in tested.items()}, FALSE_SHARE)
    faster = discoveries({name: max(one.faster) for name, one in tested.items()}, FALSE_SHARE)
    any_slower = discoveries({name: _any(one.slower) for name, one in tested.items()}, FALSE_SHARE)
    any_faster = discoveries({name: _any(one.faster) for name, one in tested.items()}, FALSE_SHARE)
    found = {}
    for name, (before, after) in cells.items():
        if name not in told:
            found[name] = _without_interval(before, after, why_not[name])
            continue
        one = tested[name]
        bound = math.log(1 + max(FLOOR, FLOOR_MS / min(_median(before), _median(after))))
        change = told[name].change
        verdict: LatencyVerdict = "same"
        if name in slower and max(one.slower) <= LARGEST_P and change.min() > bound:
            verdict = "slower"
        elif name in faster and max(one.faster) <= LARGEST_P and change.max() < -bound:
            verdict = "faster"
        # A single quantile: something slowed down a part of the runs.
        in_part = name in any_slower and bool(change.max() > bound)
        in_part = in_part or (name in any_faster and bool(change.min() < -bound))
        found[name] = _with_interval(
            before, after, told[name], one, verdict, in_part=verdict == "same" and in_part, bound=bound
        )
    return found


def median_error(latency: Latency) -> float | None:
    """Return the standard error of the logarithm of the median, within its process; None if unknown."""
    if len(latency.samples_ms) < FEWEST_SAMPLES or min(latency.samples_ms) <= 0:
        return None
    _, variances = _logs(latency.samples_ms)
    return math.sqrt(variances[_MEDIAN])


def _any(p_values: tuple[float, ...]) -> float:
    return len(p_values) * min(p_values)


def unlike(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return why the latencies of two environments of ``run.json`` cannot be compared; empty if they can.

    Versions of onnxruntime, of a provider or of a driver may differ: they are the subject of the comparison.
    Hardware, operating system and number of threads may not.
    """
    pairs = (
        (key, old, new) for (key, old), (_, new) in zip(_hardware(before), _hardware(after), strict=True)
    )
    return tuple(f"{key}: {old} became {new}" for key, old, new in pairs if old != new)


def _hardware(environment: Mapping[str, Any]) -> list[tuple[str, str]]:
    processor = environment.get("processor", "unknown")
    if isinstance(processor, dict):
        # Later versions record features, which follow from the model.
        processor = {key: value for key, value in processor.items() if key != "features"}
    listed = environment.get("devices")
    entries = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    devices = [device for each in entries if isinstance(device := each.get("device"), dict)]
    # Other facts of a device may contain a driver's version.
    kinds = [{key: device.get(key) for key in ("type", "vendor_id", "device_id")} for device in devices]
    return [
        ("machine", str(environment.get("machine", "unknown"))),
        ("processor", str(processor)),
        ("system", str(environment.get("platform", "unknown")).partition("-")[0]),
        ("threads", str(environment.get("session", "unknown"))),
        ("devices", str(kinds)),
    ]


def _not_comparable(before: Sequence[Latency], after: Sequence[Latency]) -> str:
    both = (*before, *after)
    for field, what in (
        ("io", "inputs and outputs"),
        ("intra_op_threads", "threads within an operator"),
        ("inter_op_threads", "threads across operators"),
    ):
        values = {getattr(latency, field) for latency in both}
        if len(values) > 1:
            return f"measured in different ways: {what} {' and '.join(sorted(map(str, values)))}"
    fewest = min(len(latency.samples_ms) for latency in both)
    if fewest < FEWEST_SAMPLES:
        return f"{fewest} of the {FEWEST_SAMPLES} timed runs that it takes to tell a change from noise"
    if not all(min(latency.samples_ms) > 0 for latency in both):
        return "a run of 0 ms: the clock is too coarse"
    return ""


def _without_interval(before: Sequence[Latency], after: Sequence[Latency], why_not: str) -> LatencyChange:
    medians = _median(before), _median(after)
    ratio = medians[1] / medians[0] if medians[0] else None
    reason = f"{medians[0]:.4g} ms became {medians[1]:.4g} ms, but {why_not}"
    slower = ratio is not None and ratio > _CLEARLY and medians[1] - medians[0] > FLOOR_MS
    return LatencyChange(
        verdict="unclear", may_be_slower=slower, ratio=ratio, low=None, high=None, reason=reason
    )


def _with_interval(
    before: Sequence[Latency],
    after: Sequence[Latency],
    told: _Evidence,
    tested: _Tested,
    verdict: LatencyVerdict,
    *,
    in_part: bool,
    bound: float,
) -> LatencyChange:
    change = float(told.change[_MEDIAN])
    low, high = (math.exp(change + side * tested.half) for side in (-1, 1))
    reason = f"{_median(before):.4g} ms became {_median(after):.4g} ms: {low:.3g} to {high:.3g} times"
    slows = change > bound
    if excuse := _excuse(verdict, before, after):
        reason += f", but {excuse}"
        verdict = "unclear"
    elif in_part:
        reason += f", and {math.exp(told.change[1 - _MEDIAN]):.3g} times in the fastest runs"
        verdict = "unclear"
    elif verdict == "same" and abs(change) + tested.half > max(math.log(_WIDE), bound):
        verdict, slows = "unclear", change > math.log(_CLEARLY) and slows
    return LatencyChange(
        verdict=verdict,
        may_be_slower=verdict == "unclear" and slows,
        ratio=math.exp(change),
        low=low,
        high=high,
        promise=tested.promise,
        promise_alone=tested.promise_alone,
        reason=reason,
    )


def _excuse(verdict: LatencyVerdict, before: Sequence[Latency], after: Sequence[Latency]) -> str:
    """Return what disturbed the slower side; nothing else could explain the difference."""
    suspects = {"slower": after, "faster": before}.get(verdict, ())
    # If one of several runs was disturbed, this increases the variance, and explains nothing else.
    if not suspects or not all(latency.disturbed for latency in suspects):
        return ""
    return f"something else wanted the processors {'now' if verdict == 'slower' else 'before'}"


def _evidence(before: Sequence[Latency], after: Sequence[Latency]) -> _Evidence:
    sides = [np.array([_logs(latency.samples_ms) for latency in side]) for side in (before, after)]
    # Shape (runs, 2, quantiles): the logarithm, and its variance within the process.
    points, within = ([side[:, part] for side in sides] for part in (0, 1))
    deviations = [side - side.mean(axis=0) for side in points]
    return _Evidence(
        change=points[1].mean(axis=0) - points[0].mean(axis=0),
        nights=deviations[0],
        squares=sum((np.square(each).sum(axis=0) for each in deviations), np.zeros(len(_QUANTILES))),
        degrees=len(before) + len(after) - 2,
        within=np.array([side.mean(axis=0) for side in within]),
        counts=(len(before), len(after)),
    )


def _tests(cells: Sequence[_Evidence]) -> list[_Tested]:
    """Return the tests of each cell; the other cells contribute to its variance from run to run."""
    if not cells:
        return []
    between = [one.squares - one.degrees * one.mean_within for one in cells]
    total = np.sum(between, axis=0)
    degrees = sum(one.degrees for one in cells)
    counts = _independence(cells)
    # Degrees of freedom of what the other cells and ``USUAL_SPREAD`` tell together.
    known = [PRIOR_RUNS + counts * (degrees - one.degrees) for one in cells]
    expected = [
        np.maximum((PRIOR_RUNS * USUAL_SPREAD**2 + counts * (total - own)) / of, 0) + one.mean_within
        for one, own, of in zip(cells, between, known, strict=True)
    ]
    alike = _likeness_of_variances(cells, expected)
    level_alone = min(LARGEST_P, FALSE_SHARE / len(cells))
    return [
        _tested(one, its, min(alike, of), level_alone)
        for one, its, of in zip(cells, expected, known, strict=True)
    ]


def _independence(cells: Sequence[_Evidence]) -> float:
    """Return how independent cells are over the nights: 1 if all are independent, 0 if all move as one.

    The mean of independent cells varies less than each cell; the mean of cells that move together varies as
    much. Independent cells give one observation of a night each, the others give one observation together.
    """
    usual = statistics.mode(len(one.nights) for one in cells)
    nights = np.array([one.nights for one in cells if len(one.nights) == usual])
    count = len(nights)
    of_mean = float(count * np.square(nights.mean(axis=0)).sum())
    if count == 1 or not of_mean:
        return 1.0
    independent = float(np.square(nights).sum()) / of_mean
    return (min(max(independent, 1.0), count) - 1) / (count - 1)


def _likeness_of_variances(cells: Sequence[_Evidence], expected: Sequence[Floats]) -> float:
    """Return for how many degrees of freedom the expected variance counts in each cell.

    If all cells vary alike, the logarithms of their estimates scatter as chi-squared does. What they scatter
    more is the variance of the logarithm of the cells' own variances, hence the degrees. The estimate is
    uncertain, and too many degrees tell equal cells as slower: ``PRIOR_RUNS`` counts, unless that is more
    than a standard error from the estimate.
    """
    shown = [
        (one, its) for one, its in zip(cells, expected, strict=True) if one.degrees and one.squares.all()
    ]
    prior = trigamma(PRIOR_RUNS / 2)
    if len(shown) > 1:
        logs = np.array([np.log(one.squares / one.degrees / its) for one, its in shown])
        by_chance = statistics.fmean(trigamma(one.degrees / 2) for one, _ in shown)
        scatter = float(logs.var(axis=0, ddof=1).mean())
        error = math.sqrt(2 / (len(shown) - 1)) * max(scatter, by_chance)
        more = scatter - by_chance
        prior = min(max(prior, more - error), max(more, 0.0) + error)
    return 2 * trigamma_inverse(prior)


def _tested(one: _Evidence, expected: Floats, prior: float, level_alone: float) -> _Tested:
    """Test a cell.

    Args:
        one: What its runs show.
        expected: The variance of a quantile's logarithm that is expected, shape ``(Q,)``.
        prior: Degrees of freedom for which that counts.
        level_alone: The p-value from which on it is a discovery if no other cell is.
    """
    degrees = prior + one.degrees
    variance = (prior * expected + one.squares) / degrees
    noisier = np.maximum(0, one.within - one.mean_within)
    errors = np.sqrt(sum((variance + more) / count for more, count in zip(noisier, one.counts, strict=True)))
    # If nothing varies at all, any difference counts.
    with np.errstate(divide="ignore", invalid="ignore"):
        ts = [float(t) for t in np.nan_to_num(one.change / errors, nan=0.0, posinf=np.inf, neginf=-np.inf)]
    error = float(errors[_MEDIAN])
    found = critical(_MISSED, degrees)
    return _Tested(
        slower=tuple(survival(t, degrees) for t in ts),
        faster=tuple(survival(-t, degrees) for t in ts),
        half=critical(_OUTSIDE / 2, degrees) * error,
        promise=math.exp((critical(LARGEST_P, degrees) + found) * error),
        promise_alone=math.exp((critical(level_alone, degrees) + found) * error),
    )


@functools.lru_cache(maxsize=4096)
def _logs(samples_ms: tuple[float, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return logarithms of the quantiles of one run, and their variances within its process."""
    samples = np.asarray(samples_ms)
    # The seed comes from the data, so that the answer is always the same.
    resamples = _blocks(samples, _RESAMPLES, np.random.default_rng(zlib.crc32(samples.tobytes())))
    variances = np.log(np.quantile(resamples, _QUANTILES, axis=1)).var(axis=1)
    return tuple(np.log(np.quantile(samples, _QUANTILES)).tolist()), tuple(variances.tolist())


def _median(side: Sequence[Latency]) -> float:
    """Return the median of the runs' medians, in milliseconds."""
    return statistics.median(float(np.median(latency.samples_ms)) for latency in side)


def _blocks(samples: Floats, count: int, generator: np.random.Generator) -> Floats:
    """Return ``count`` resamples of ``samples``, made of blocks of neighbours.

    The last block is truncated.
    """
    length = math.ceil(len(samples) ** (1 / 3))
    starts = generator.integers(0, len(samples) - length + 1, (count, math.ceil(len(samples) / length)))
    indices = (starts[:, :, np.newaxis] + np.arange(length)).reshape(count, -1)
    return samples[indices[:, : len(samples)]]
