"""Random numbers: judged by range and distribution, never by value.

ONNX leaves the generator open, with a seed or without, so no two runtimes draw the same numbers. A right
generator passes the tests that any sample of the distribution passes. The bound on the probability that a
test here fails a right generator holds for any number of elements. It is not an approximation for many.
"""

import math
from collections.abc import Iterator

import msgspec
import numpy as np

from harness.core.comparison.metrics import widen_tensor
from harness.core.comparison.tolerance import UNIT_ROUNDOFF
from harness.core.values.value import Array, Floats, Tensor

_FALSE_ALARM = 1e-7
"""Probability that one test fails a right generator. No output meets ten of them, so all stay below 1e-6."""

_FEW = 4
"""Count of numbers from which on equality of all is no accident: each equality has a probability < 2^-7."""

_ENOUGH = 1 << 16
"""Count of numbers that are enough to judge a normal distribution; of more, every second, third and so on
is used."""


class Uniform(msgspec.Struct, frozen=True, kw_only=True, tag="uniform"):
    """RandomUniform, RandomUniformLike: evenly from ``low`` to ``high``."""

    low: float
    high: float


class Normal(msgspec.Struct, frozen=True, kw_only=True, tag="normal"):
    """RandomNormal, RandomNormalLike."""

    mean: float
    scale: float


class Bernoulli(msgspec.Struct, frozen=True, kw_only=True, tag="Bernoulli"):
    """Bernoulli: each element is 1 with its own probability, else 0."""

    probabilities: Array


class Multinomial(msgspec.Struct, frozen=True, kw_only=True, tag="multinomial"):
    """Multinomial: class numbers, drawn for each row with probabilities proportional to ``exp(logits)``."""

    logits: Array


class Dropped(msgspec.Struct, frozen=True, kw_only=True, tag="dropout"):
    """Dropout in training: an element of ``data`` is zero with probability ``ratio``, else scaled up.

    The output is its values or, with ``mask``, the mask of the kept elements. ``ratio`` is less than 1.
    """

    data: Array
    ratio: float
    mask: bool = False


Distribution = Uniform | Normal | Bernoulli | Multinomial | Dropped


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The result of testing a sample.

    Attributes:
        misfit: Why it is not a sample of the distribution; empty where it may be.
        unseen: Difference of its cumulative distribution, or of its share of ones, below which a wrong
            distribution would pass. From 0 to 1; large for few numbers.
    """

    misfit: str
    unseen: float


def sampled(draw: Distribution, actual: Tensor) -> Sample:
    """Test a sample against its distribution; its shape and element type are right."""
    numbers = widen_tensor(actual).astype(np.float64).reshape(-1)
    with np.errstate(all="ignore"):  # a model's inputs may be anything, not only probabilities
        misfit = next(_misfits(draw, numbers, UNIT_ROUNDOFF.get(actual.dtype, 0.0)), "")
    return Sample(misfit=misfit, unseen=min(1.0, _departure(max(1, numbers.size))))


def name_of(draw: Distribution) -> str:
    """Return the distribution in a word."""
    return str(type(draw).__struct_config__.tag)


def _misfits(draw: Distribution, numbers: Floats, roundoff: float) -> Iterator[str]:
    if not numbers.size:
        return
    if not np.isfinite(numbers).all():
        yield f"{np.count_nonzero(~np.isfinite(numbers))} numbers are not finite"
        return
    match draw:
        case Uniform():
            yield from _misfits_uniform(draw, numbers, roundoff)
        case Normal():
            yield from _misfits_normal(draw, numbers, roundoff)
        case Bernoulli():
            yield from _misfits_shares(numbers, draw.probabilities.astype(np.float64).reshape(-1))
        case Multinomial():
            yield from _misfits_classes(numbers, draw.logits.astype(np.float64))
        case Dropped():
            yield from _misfits_dropped(draw, numbers, roundoff)


def _misfits_uniform(draw: Uniform, numbers: Floats, roundoff: float) -> Iterator[str]:
    slack = 4 * roundoff * max(abs(draw.low), abs(draw.high))
    outside = np.count_nonzero((numbers < draw.low - slack) | (numbers > draw.high + slack))
    if outside:
        yield f"{outside} numbers lie outside {draw.low:g} to {draw.high:g}"
    width = draw.high - draw.low
    if width > 0:
        yield from _misfits_continuous(
            numbers, np.clip((np.sort(numbers) - draw.low) / width, 0.0, 1.0), slack / width
        )


def _misfits_normal(draw: Normal, numbers: Floats, roundoff: float) -> Iterator[str]:
    if draw.scale <= 0:
        return
    numbers = numbers[:: -(-numbers.size // _ENOUGH)]
    z = np.sort(numbers - draw.mean) / draw.scale
    count = z.size
    coarse = roundoff * (abs(draw.mean) / draw.scale + 6)
    far = math.sqrt(2 * math.log(2 * count / _FALSE_ALARM)) + coarse
    if np.abs(z).max() > far:
        yield f"a number lies {np.abs(z).max():.3g} standard deviations from the mean"
    mean = abs(float(z.mean()))
    if mean > math.sqrt(2 * math.log(2 / _FALSE_ALARM) / count) + coarse:
        yield f"its mean lies {mean:.3g} standard deviations off"
    # Laurent and Massart (2000), lemma 1: tails of the chi-squared distribution.
    spread, x = float(np.dot(z, z)), math.log(2 / _FALSE_ALARM)
    margin = 2 * math.sqrt(count * x)
    if not count - margin <= spread * (1 + 8 * coarse) or spread / (1 + 8 * coarse) > count + margin + 2 * x:
        yield f"its variance is {spread / count:.3g} times what it should be"
    # Rounding moves an element, and the distribution by at most its density there.
    slack = roundoff * (0.4 * abs(draw.mean) / draw.scale + 0.25)
    yield from _misfits_continuous(
        numbers, np.array([0.5 * math.erfc(-one / math.sqrt(2)) for one in z]), slack
    )


def _misfits_continuous(numbers: Floats, cumulated: Floats, slack: float) -> Iterator[str]:
    """Yield why numbers that should all differ do not fit; ``cumulated`` is sorted."""
    count = numbers.size
    some = numbers[:4096]
    values = len(np.unique(some))
    # In a coarse type right numbers repeat. Only a single repeated value is certainly wrong.
    few = values < some.size / 2 if some.size * slack < 1 / 16 else values == 1
    if count >= _FEW and few:
        yield f"it holds {values} different numbers among {some.size}"
    # The probability that all n numbers miss a range to which a share of them belongs.
    for what, missed in (("small", cumulated[0]), ("large", 1 - cumulated[-1])):
        if count * math.log1p(-min(max(float(missed) - slack, 0.0), 1 - 1e-16)) < math.log(_FALSE_ALARM):
            yield f"no number is among the {missed:.0%} that are this {what}"
    ranks = np.arange(1, count + 1) / count
    gap = float(np.maximum(ranks - cumulated, cumulated - ranks + 1 / count).max())
    limit = _departure(count) + slack
    if gap > limit:
        yield f"its distribution is {gap:.3g} off, where {limit:.3g} would be chance"


def _misfits_shares(numbers: Floats, probabilities: Floats) -> Iterator[str]:
    """Yield why ones and zeros do not fit the probability of each."""
    if probabilities.shape != numbers.shape or not ((probabilities >= 0) & (probabilities <= 1)).all():
        return
    ones = numbers == 1
    other = np.count_nonzero(~ones & (numbers != 0))
    if other:
        yield f"{other} numbers are neither 0 nor 1"
        return
    impossible = np.count_nonzero((ones & (probabilities == 0)) | (~ones & (probabilities == 1)))
    if impossible:
        yield f"{impossible} numbers have the probability 0"
    with np.errstate(divide="ignore"):
        for what, logs in (("ones", np.log(probabilities)), ("zeros", np.log1p(-probabilities))):
            if (ones == (what == "ones")).all() and float(logs.sum()) < math.log(_FALSE_ALARM):
                yield f"it is all {what}"
    # Hoeffding (1963), theorem 2: the number of ones, and whether they follow their probabilities.
    for what, weights in (("", np.ones_like(probabilities)), (", weighted", 2 * probabilities - 1)):
        error = float(np.dot(weights, ones - probabilities))
        limit = math.sqrt(float(np.dot(weights, weights)) * math.log(2 / _FALSE_ALARM) / 2)
        if abs(error) > limit:
            which = "many" if error > 0 else "few"
            yield f"there are {abs(error):.3g} ones too {which}{what}, where {limit:.3g} would be chance"


def _misfits_classes(numbers: Floats, logits: Floats) -> Iterator[str]:
    if logits.ndim != 2 or not logits.size or numbers.size % len(logits):  # noqa: PLR2004 - batch and classes
        return
    classes = logits.shape[1]
    outside = np.count_nonzero((numbers < 0) | (numbers >= classes) | (numbers != np.floor(numbers)))
    if outside:
        yield f"{outside} numbers are no class from 0 to {classes - 1}"
        return
    rows = numbers.reshape(len(logits), -1).astype(np.int64)
    weights = np.exp(logits - logits.max(1, keepdims=True))
    probabilities = weights / weights.sum(1, keepdims=True)
    if not np.isfinite(probabilities).all():
        return
    count = rows.shape[1]
    # The bound holds for any distribution, and for all rows together.
    limit = _departure(count, _FALSE_ALARM / len(rows))
    for row, right in zip(rows, probabilities, strict=True):
        if right[row].min(initial=1.0) == 0:
            yield "it holds a class of probability 0"
        shares = np.bincount(row, minlength=classes) / count
        gap = float(np.abs(np.cumsum(shares) - np.cumsum(right)).max())
        if gap > limit:
            yield f"the classes of a row are {gap:.3g} off, where {limit:.3g} would be chance"
        is_one_class = count >= _FEW and len(set(row.tolist())) == 1
        if is_one_class and count * math.log(right.max()) < math.log(_FALSE_ALARM):
            yield f"a row holds class {row[0]} only"


def _misfits_dropped(draw: Dropped, numbers: Floats, roundoff: float) -> Iterator[str]:
    data = draw.data.astype(np.float64).reshape(-1)
    if data.shape != numbers.shape:
        return
    kept = numbers != 0
    if not draw.mask:
        scaled = data / (1 - draw.ratio)
        wrong = np.count_nonzero(kept & (np.abs(numbers - scaled) > 1e-6 + 16 * roundoff * np.abs(scaled)))
        if wrong:
            yield f"{wrong} numbers are neither 0 nor the input divided by {1 - draw.ratio:g}"
            return
        kept = kept[data != 0]  # an input of zero shows nothing
    yield from _misfits_shares(kept.astype(np.float64), np.full(kept.shape, 1 - draw.ratio))


def _departure(count: int, alarm: float = _FALSE_ALARM) -> float:
    """Return the largest departure of a sample: ``P(D > d) <= 2 exp(-2 n d^2)``, Massart (1990)."""
    return math.sqrt(math.log(2 / alarm) / (2 * count))
