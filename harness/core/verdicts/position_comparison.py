"""How the logits and the cache of one way compare with the golden, position by position. Pure.

A norm over all positions would dilute a single wrong one: every position is judged as an output of its own.
"""

import math
from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.comparison.metrics import widen, widen_tensor
from harness.core.comparison.noise_limits import rms_limit
from harness.core.comparison.policy import Policy
from harness.core.values.value import Array, Floats, Tensor
from harness.core.verdicts.judge_output import FAR_FROM_CPU

Flags = NDArray[np.bool_]

ONE_OF_MANY = 2.0
"""Factor of the limit of ``rms`` for a single position.

All elements of a position are sums over one hidden state, so their errors are not independent, and the
largest of many positions counts. Healthy results of CPU, QNN, OpenVINO and WebGPU reach 3.0 times the noise,
half of the limit.
"""

_MARGIN = 3.0
"""The order of two logits counts if they differ by more than this multiple of their noise.

It equals ``NoiseLimits.rms``, which a right result may reach.
"""

_BLOCK = 1 << 20
"""Logits that are processed at a time."""

_DIGITS = 6
"""Significant digits of the figures in a record."""


class ComparedPositions(msgspec.Struct, frozen=True, kw_only=True):
    """Tensors to compare, with the axis of the positions first and all others merged into one.

    Attributes:
        golden: ``(positions, elements)`` in float64.
        actual: The same of the EP.
        spread: The same of the model's noise; None if that is not known.
        dtype: Element type of the golden.
    """

    golden: Floats
    actual: Floats
    spread: Floats | None
    dtype: str


def positions_of(
    golden: Tensor, actual: Tensor, spread: Floats | None, axis: int
) -> ComparedPositions | None:
    """Return two tensors by position; None where their shapes differ, or where they have no such axis."""
    if golden.array.shape != actual.array.shape or golden.array.ndim <= axis:
        return None
    return ComparedPositions(
        golden=_by_position(widen_tensor(golden), axis),
        actual=_by_position(widen_tensor(actual), axis),
        spread=None if spread is None else _by_position(spread, axis),
        dtype=golden.dtype,
    )


def bad_positions(compared: ComparedPositions, policy: Policy) -> Flags:
    """Return for each position whether it fails under a policy."""
    golden, actual = compared.golden, compared.actual
    if golden.shape[1] == 0:
        return np.zeros(golden.shape[0], bool)
    with np.errstate(all="ignore"):
        finite, same = _finite_and_same(golden, actual)
        beyond_tolerance: Flags = finite & (np.abs(actual - golden) > _allowed(compared, policy))
    failed = np.any(beyond_tolerance, axis=1)
    if compared.spread is not None and policy.judge_by != "table":
        rms, largest = noise_by_position(compared)
        beyond = (rms > position_limit(policy, golden.shape[1])) | (largest > policy.limits.max)
        failed = beyond if policy.judge_by == "noise" else failed & beyond
    bad: Flags = failed | ~same.all(axis=1)
    return bad


def apart_positions(compared: ComparedPositions, policy: Policy) -> Flags:
    """Return for each position whether two results of one EP are further apart than rounding explains.

    The model's noise decides where it is known. Otherwise ``FAR_FROM_CPU`` times the relative tolerance
    limits each position as a whole: single elements near zero say nothing.
    """
    if compared.spread is not None:
        return bad_positions(compared, msgspec.structs.replace(policy, judge_by="noise"))
    one, other = compared.golden, compared.actual
    with np.errstate(all="ignore"):
        finite, same = _finite_and_same(one, other)
        error = np.linalg.norm(np.where(finite, other - one, 0.0), axis=1)
        size = np.linalg.norm(np.where(finite, one, 0.0), axis=1)
    apart: Flags = (error > FAR_FROM_CPU * policy.tolerance_for(compared.dtype).rtol * size) | ~same.all(
        axis=1
    )
    return apart


def worst_position(compared: ComparedPositions, policy: Policy) -> int | None:
    """Return the position with the largest error in units of the tolerance; None if nothing differs."""
    with np.errstate(all="ignore"):
        allowed = np.maximum(_allowed(compared, policy), np.finfo(np.float64).tiny)
        excess = np.abs(compared.actual - compared.golden) / allowed
    excess = np.nan_to_num(excess, nan=0.0, posinf=0.0).max(axis=1, initial=0.0)
    return int(excess.argmax()) if excess.size and excess.max() > 0 else None


def noise_by_position(compared: ComparedPositions) -> tuple[Floats, Floats]:
    """Return the error of each position in multiples of the model's noise, as ``with_noise`` has it.

    These are the root mean square of the error over that of the noise, and the largest error over the noise
    of that element; 0 where no element is finite on both sides.
    """
    assert compared.spread is not None  # noqa: S101 - callers have seen it
    spread = compared.spread
    with np.errstate(all="ignore"):
        error = np.abs(compared.actual - compared.golden)
        finite = np.isfinite(error)
        error = np.where(finite, error, 0.0)
        scale = max(float(spread.max(initial=0.0)), np.finfo(np.float64).tiny)
        squares = np.square(np.where(finite, spread, 0.0) / scale).sum(axis=1)
        rms = np.sqrt(np.square(error / scale).sum(axis=1) / np.where(squares > 0, squares, np.inf))
        largest = (error / spread).max(axis=1, initial=0.0)
    limit = np.finfo(np.float64).max
    return np.nan_to_num(rms, posinf=limit), np.nan_to_num(largest, posinf=limit)


def rms_of_worst(compared: ComparedPositions, policy: Policy) -> float:
    """Return the root mean square of the worst position, as a multiple of the noise.

    It is scaled to the limit for all elements, so that it exceeds that limit if the position exceeds its own.
    """
    rms, _ = noise_by_position(compared)
    positions, elements = compared.golden.shape
    scale = rms_limit(policy.limits, positions * elements) / position_limit(policy, elements)
    return float(rms.max(initial=0.0)) * scale


def position_limit(policy: Policy, elements: int) -> float:
    """Return the limit of the root mean square of one position of so many elements."""
    return ONE_OF_MANY * rms_limit(policy.limits, elements)


def divergence(golden: Tensor, actual: Tensor) -> tuple[float | None, ...]:
    """Return the Kullback-Leibler divergence of the two distributions by position, in nats.

    ``sum(p * (log p - log q))``: Kullback and Leibler, 1951, with ``p`` of the golden. Of several rows the
    largest counts; None where it is not finite. Logits are ``(rows, positions, vocabulary)`` on both sides.
    """
    if golden.array.tobytes() == actual.array.tobytes() and np.isfinite(golden.array).all():
        return (0.0,) * int(golden.array.shape[1])
    found: list[float | None] = []
    for block in _blocks(golden.array.shape):
        right = _log_softmax(widen(golden.array[:, block], golden.dtype))
        given = _log_softmax(widen(actual.array[:, block], actual.dtype))
        with np.errstate(all="ignore"):
            terms = np.where(right > -np.inf, np.exp(right) * (right - given), 0.0)
            totals = terms.sum(axis=-1).max(axis=0)
        found += [
            round_figure(max(0.0, total)) if math.isfinite(total) else None for total in totals.tolist()
        ]
    return tuple(found)


def agreement(compared: ComparedPositions, rows: int, count: int) -> float | None:
    """Return the share of positions with the same first ``count`` tokens, as sets.

    Return None if no position counts.

    Only those count at which the golden's margin behind the last of them exceeds the noise: two right results
    may order the others differently. So the vocabulary has to be larger than ``count``. The elements of a
    position are those of all rows.
    """
    positions, elements = compared.golden.shape
    vocabulary = elements // max(1, rows)
    if vocabulary <= count:
        return None
    shape = (positions * rows, vocabulary)
    golden, actual = compared.golden.reshape(shape), compared.actual.reshape(shape)
    order = np.argpartition(-golden, (count - 1, count), axis=1)
    lines = np.arange(len(golden))
    last, next_one = order[:, count - 1], order[:, count]
    with np.errstate(all="ignore"):
        margin = golden[lines, last] - golden[lines, next_one]
        if compared.spread is None:
            noise = np.zeros(len(golden))
        else:
            spread = compared.spread.reshape(shape)
            noise = _MARGIN * np.hypot(spread[lines, last], spread[lines, next_one])
        counts = margin > noise
    if not counts.any():
        return None
    given = np.argpartition(np.where(np.isnan(actual), np.inf, -actual), count - 1, axis=1)[:, :count]
    same = (np.sort(order[:, :count], axis=1) == np.sort(given, axis=1)).all(axis=1)
    return round_figure(float(np.mean(same[counts])))


def perplexity(logits: Tensor, tokens: Array) -> float | None:
    """Return the perplexity of texts: the exponential of the mean of ``-log p`` of each next token.

    Logits are ``(rows, positions, vocabulary)``, tokens ``(rows, positions)``. None if it is not finite, or
    if a text has a single token.
    """
    following = tokens[:, 1:, None].astype(np.int64)
    losses = [
        -np.take_along_axis(
            _log_softmax(widen(logits.array[:, :-1][:, block], logits.dtype)), following[:, block], -1
        ).ravel()
        for block in _blocks((len(tokens), tokens.shape[1] - 1, logits.array.shape[-1]))
    ]
    if not losses:
        return None
    with np.errstate(all="ignore"):
        found = float(np.exp(np.mean(np.concatenate(losses))))
    return round_figure(found) if math.isfinite(found) else None


def round_figure(number: float) -> float:
    """Return a figure with as many digits as a record needs."""
    return float(f"{number:.{_DIGITS}g}")


def _blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Return the positions in blocks: a vocabulary may have 200,000 tokens."""
    rows, positions, vocabulary = shape
    step = max(1, _BLOCK // max(1, rows * vocabulary))
    return (slice(start, start + step) for start in range(0, positions, step))


def _allowed(compared: ComparedPositions, policy: Policy) -> Floats:
    tolerance = policy.tolerance_for(compared.dtype)
    return tolerance.atol + tolerance.rtol * np.abs(compared.golden)


def _finite_and_same(one: Floats, other: Floats) -> tuple[Flags, Flags]:
    """Return which elements are finite on both sides, which others do not differ, and the two together."""
    finite = np.isfinite(one) & np.isfinite(other)
    return finite, finite | (one == other) | (np.isnan(one) & np.isnan(other))


def _by_position(array: Array, axis: int) -> Floats:
    moved = np.moveaxis(array, axis, 0)
    return np.ascontiguousarray(moved, np.float64).reshape(moved.shape[0], -1)


def _log_softmax(logits: Array) -> Floats:
    with np.errstate(all="ignore"):
        shifted = logits - logits.max(axis=-1, keepdims=True)
        found: Floats = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return found
