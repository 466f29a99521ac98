"""Whether one cell became slower from one run to another by more than noise.

The times of consecutive runs are neither normal nor independent: they have a floor, a long tail, and
phases. So the answer comes from intervals of two quantiles, by a bootstrap of moving blocks, which keeps
neighbours together (Kuensch, "The jackknife and the bootstrap for general stationary observations", Annals
of Statistics 17, 1989). If a side has several runs of the harness, these are drawn first, because two
processes differ by more than the runs within one (Kalibera and Jones, "Rigorous benchmarking in reasonable
time", ISMM 2013).

The quantiles are the median and the lower decile. Disturbances only add to a time, so the fastest runs are
the least disturbed (Chen and Revels, "Robust benchmarking in noisy environments", arXiv:1608.04295). A
slower provider is slower in both; another busy process may leave the lower decile unchanged.

An interval is compared with a region around 1 in which a change is of no interest (Schuirmann's two one-
sided tests, 1987): wholly inside is *same*, wholly outside *slower* or *faster*, across its border
*unclear*.
"""

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.latency import Latency

FLOOR = 0.05
"""A change by this share or less is of no interest: the mere place of code and data in memory changes as much
(Mytkowicz et al., "Producing wrong data without doing anything obviously wrong!", ASPLOS 2009)."""

_FLOOR_MS = 0.01
"""A change by so many milliseconds or less is of no interest: the smallest models spend them in Python."""

_CONFIDENCE = 0.99
"""Of each interval; it is high because a report compares hundreds of cells."""

_RESAMPLES = 1000

FEWEST_RUNS = 10
"""Fewest samples of each side for an answer."""

_QUANTILES = (0.1, 0.5)

Verdict = Literal["slower", "faster", "same", "unclear"]
Floats = NDArray[np.float64]


class LatencyChange(msgspec.Struct, frozen=True, kw_only=True):
    """How a cell's latency changed.

    Attributes:
        verdict: ``unclear`` if noise hides the change, or the sides cannot be compared.
        ratio: Median after over median before; null if the latter is zero.
        low: Lower end of the interval of the ratio of medians; null without an interval.
        high: Its upper end.
    """

    verdict: Verdict
    ratio: float | None
    low: float | None
    high: float | None
    reason: str


def latency_change(before: Sequence[Latency], after: Sequence[Latency]) -> LatencyChange:
    """Compare one cell's latency before and after; the same samples always give the same answer.

    Each side is one run of the harness or, better, several.
    """
    medians = tuple(float(np.median(_pooled(side))) for side in (before, after))
    ratio = medians[1] / medians[0] if medians[0] else None
    if why_not := _not_comparable(before, after):
        return LatencyChange(verdict="unclear", ratio=ratio, low=None, high=None, reason=why_not)
    tail = (1 - _CONFIDENCE) / 2
    ratios = _quantiles(after) / _quantiles(before)
    low, high = np.quantile(ratios, (tail, 1 - tail), axis=0, method="nearest")
    verdict = _judged(low, high, 1 + max(FLOOR, _FLOOR_MS / min(medians)))
    reason = f"{medians[0]:.4g} ms became {medians[1]:.4g} ms: {low[-1]:.3g} to {high[-1]:.3g} times"
    if excuse := _excuse(verdict, before, after):
        verdict, reason = "unclear", f"{reason}, but {excuse}"
    elif verdict == "unclear":
        reason += f", and {low[0]:.3g} to {high[0]:.3g} times in the fastest runs"
    return LatencyChange(
        verdict=verdict, ratio=ratio, low=float(low[-1]), high=float(high[-1]), reason=reason
    )


def unlike(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return why the latencies of two environments of ``run.json`` cannot be compared; empty if they can.

    Versions of onnxruntime, of a provider or of a driver may differ: they are what is compared. Hardware,
    operating system and number of threads may not.
    """
    pairs = (
        (key, old, new) for (key, old), (_, new) in zip(_hardware(before), _hardware(after), strict=True)
    )
    return tuple(f"{key}: {old} became {new}" for key, old, new in pairs if old != new)


def _hardware(environment: Mapping[str, Any]) -> list[tuple[str, str]]:
    processor = environment.get("processor", "unknown")
    if isinstance(processor, dict):
        # Features are recorded since a later version, and follow from the model.
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
    fewest = min(len(_pooled(side)) for side in (before, after))
    if fewest < FEWEST_RUNS:
        return f"{fewest} of the {FEWEST_RUNS} timed runs that it takes to tell a change from noise"
    if not all(_pooled(side).min() > 0 for side in (before, after)):
        return "a run of 0 ms: the clock is too coarse"
    return ""


def _judged(low: Floats, high: Floats, bound: float) -> Verdict:
    """Return where the intervals of all quantiles lie; ``bound`` ends the region without interest."""
    if low.min() > bound:
        return "slower"
    if high.max() < 1 / bound:
        return "faster"
    return "same" if low.min() >= 1 / bound and high.max() <= bound else "unclear"


def _excuse(verdict: Verdict, before: Sequence[Latency], after: Sequence[Latency]) -> str:
    """Return what disturbed the slower side; only that could explain the difference."""
    suspects = {"slower": after, "faster": before}.get(verdict, ())
    if not any(latency.disturbed for latency in suspects):
        return ""
    return f"something else wanted the processors {'now' if verdict == 'slower' else 'before'}"


def _quantiles(side: Sequence[Latency]) -> Floats:
    """Return quantiles of resampled runs, shape ``(_RESAMPLES, len(_QUANTILES))``."""
    series = [np.asarray(latency.samples_ms) for latency in side]
    # The seed comes from the data: the sides draw independently, and their order does not matter.
    generator = np.random.default_rng([zlib.crc32(samples.tobytes()) for samples in series])
    if len(series) == 1:
        return _of(_blocks(series[0], _RESAMPLES, generator))
    drawn = generator.integers(0, len(series), (_RESAMPLES, len(series)))
    pools = (np.concatenate([_blocks(series[index], 1, generator)[0] for index in row]) for row in drawn)
    return np.concatenate([_of(pool[np.newaxis]) for pool in pools])


def _blocks(samples: Floats, count: int, generator: np.random.Generator) -> Floats:
    """Return ``count`` resamples of ``samples``, made of blocks of neighbours; the last block is cut."""
    length = math.ceil(len(samples) ** (1 / 3))
    starts = generator.integers(0, len(samples) - length + 1, (count, math.ceil(len(samples) / length)))
    indices = (starts[:, :, np.newaxis] + np.arange(length)).reshape(count, -1)
    return samples[indices[:, : len(samples)]]


def _of(resamples: Floats) -> Floats:
    quantiles: Floats = np.quantile(resamples, _QUANTILES, axis=1).T
    return quantiles


def _pooled(side: Sequence[Latency]) -> Floats:
    return np.concatenate([np.asarray(latency.samples_ms) for latency in side])
