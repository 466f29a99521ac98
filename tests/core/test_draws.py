"""Random numbers: samples of a distribution, and others."""

from typing import Any

import numpy as np
import pytest

from harness.core.comparison.random_outputs import (
    Bernoulli,
    Distribution,
    Dropped,
    Multinomial,
    Normal,
    Uniform,
    name_of,
    sampled,
)
from harness.core.comparison.tolerance import EXACT
from harness.core.records.verdict import Verdict
from harness.core.values.value import DTYPES, Tensor, tensor
from harness.core.verdicts.compare import compare_outputs

UNIFORM = Uniform(low=-2.0, high=6.0)
NORMAL = Normal(mean=3.0, scale=0.5)
CHANCES = np.linspace(0, 1, 4000)
LOGITS = np.log(np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]))
DATA = np.linspace(-3, 3, 4001, dtype=np.float32)


def draw(output_kind: Distribution, size: int, seed: int) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(seed)
    match output_kind:
        case Uniform():
            return random.uniform(output_kind.low, output_kind.high, size)
        case Normal():
            return random.normal(output_kind.mean, output_kind.scale, size)
        case Bernoulli():
            return random.random(output_kind.probabilities.shape) < output_kind.probabilities
        case Multinomial():
            return np.stack([random.choice(3, size, p=np.exp(row)) for row in output_kind.logits])
        case Dropped():
            kept = random.random(output_kind.data.shape) >= output_kind.ratio
            return kept if output_kind.mask else np.where(kept, output_kind.data / (1 - output_kind.ratio), 0)


def cast(numbers: np.ndarray[Any, Any], dtype: str) -> Tensor:
    return Tensor(dtype=dtype, array=numbers.astype(DTYPES[dtype]))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("size", [1, 2, 5, 24, 1000, 200_000])
@pytest.mark.parametrize("output_kind", [UNIFORM, NORMAL, Uniform(low=0, high=1), Normal(mean=0, scale=1)])
def test_right_generators_pass(output_kind: Distribution, size: int, dtype: str) -> None:
    for seed in range(1 if size > 1000 else 20):
        found = sampled(output_kind, cast(draw(output_kind, size, seed), dtype))
        assert found.misfit == "", seed


@pytest.mark.parametrize(
    "output_kind",
    [
        Bernoulli(probabilities=CHANCES),
        Bernoulli(probabilities=np.full((2, 5), 0.5)),
        Multinomial(logits=LOGITS),
        Dropped(data=DATA, ratio=0.25),
        Dropped(data=DATA, ratio=0.9, mask=True),
    ],
)
def test_right_choices_pass(output_kind: Distribution) -> None:
    for seed in range(50):
        assert sampled(output_kind, cast(draw(output_kind, 300, seed), "float32")).misfit == "", seed


@pytest.mark.parametrize(
    ("output_kind", "numbers", "misfit"),
    [
        (UNIFORM, np.full(4, 1.5), "1 different numbers among 4"),
        (UNIFORM, np.array([7.0]), "1 numbers lie outside -2 to 6"),
        (UNIFORM, 8 * draw(Uniform(low=0, high=1), 300, 0) ** 2 - 2, "its distribution is"),
        (UNIFORM, np.tile(draw(UNIFORM, 4, 0), 100), "4 different numbers among 400"),
        (UNIFORM, np.array([0.0, np.nan]), "1 numbers are not finite"),
        (NORMAL, draw(Normal(mean=0, scale=1), 10, 0), "standard deviations"),
        (NORMAL, draw(Normal(mean=3.3, scale=0.5), 200, 0), "its mean lies"),
        (NORMAL, draw(Normal(mean=3.0, scale=1.0), 200, 0), "its variance is"),
        (NORMAL, draw(Uniform(low=2.134, high=3.866), 3000, 0), "no number is among the 4%"),
        (NORMAL, draw(NORMAL, 500, 0).clip(2.4, None), "no number is among the 12% that are this small"),
        (UNIFORM, draw(UNIFORM, 500, 0).clip(None, 5.5), "no number is among the 6% that are this large"),
        (NORMAL, np.r_[draw(NORMAL, 10, 0), 40.0], "74 standard deviations from the mean"),
        (Bernoulli(probabilities=np.full(30, 0.5)), np.zeros(30), "it is all zeros"),
        (Bernoulli(probabilities=CHANCES), np.full(4000, 0.5), "4000 numbers are neither 0 nor 1"),
        (Bernoulli(probabilities=CHANCES), CHANCES == 0, "numbers have the probability 0"),
        (Bernoulli(probabilities=CHANCES[1:-1]), np.arange(3998) % 2, "ones too few, weighted"),
        (Bernoulli(probabilities=np.full(400, 0.3)), np.arange(400) % 2, "ones too many"),
        (Multinomial(logits=LOGITS), np.full((2, 3), 3), "6 numbers are no class from 0 to 2"),
        (Multinomial(logits=LOGITS), draw(Multinomial(logits=LOGITS[::-1]), 300, 0), "the classes of a row"),
        (Multinomial(logits=np.array([[0.0, -np.inf]])), np.array([[0, 1]]), "a class of probability 0"),
        (Dropped(data=DATA, ratio=0.25), DATA, "numbers are neither 0 nor the input divided by 0.75"),
        (Dropped(data=DATA, ratio=0.25), DATA / 0.75, "it is all ones"),
        (Dropped(data=DATA, ratio=0.9, mask=True), np.arange(4001) % 2, "ones too many"),
    ],
)
def test_wrong_ones_do_not(output_kind: Distribution, numbers: Any, misfit: str) -> None:
    assert misfit in sampled(output_kind, cast(np.asarray(numbers), "float32")).misfit


def test_few_numbers_tell_little_and_say_so() -> None:
    assert sampled(UNIFORM, cast(np.zeros(1), "float32")).unseen == 1.0
    assert sampled(UNIFORM, cast(draw(UNIFORM, 1000, 0), "float32")).unseen == pytest.approx(0.0917, abs=1e-3)


def test_values_never_count() -> None:
    golden, other = (tensor(draw(UNIFORM, 100, seed).astype(np.float32)) for seed in (1, 2))
    found = compare_outputs("y", golden, other, lambda _: EXACT, UNIFORM)
    (row,) = found.outputs
    assert found.verdict is None
    assert row.details is not None
    assert (row.details.distribution, row.mismatched, row.headroom) == (name_of(UNIFORM), 0, 0.0)


@pytest.mark.parametrize(
    ("array", "verdict"),
    [
        (np.zeros(3, np.float32), Verdict.SHAPE_MISMATCH),
        (np.zeros(4, np.float64), Verdict.DTYPE_MISMATCH),
        (np.full(4, np.nan, np.float32), Verdict.NAN_MISMATCH),
        (np.full(4, 9, np.float32), Verdict.MISMATCH),
    ],
)
def test_shape_and_type_count_as_ever(array: Any, verdict: Verdict) -> None:
    golden = tensor(draw(UNIFORM, 4, 0).astype(np.float32))
    assert compare_outputs("y", golden, tensor(array), lambda _: EXACT, UNIFORM).verdict is verdict
