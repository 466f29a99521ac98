"""The noise of a model from its samples, and errors as multiples of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.comparison.noise_limits import DEFAULT_LIMITS, rms_limit
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.noise.noise import NoiseRule, behaves_like, noise_of, with_noise
from harness.core.noise.spread import PROBES, spread_of
from harness.core.values.value import Array, Floats, NamedValues, Sequence, Tensor, tensor

SAMPLES = 8


def named(array: Array) -> NamedValues:
    return (("y", tensor(array)),)


def drawn(golden: Array, sigma: Array | float, levels: tuple[float, ...], seed: int = 0) -> list[NamedValues]:
    rng = np.random.default_rng(seed)
    noise = [level * sigma * rng.standard_normal(golden.shape) for level in levels for _ in range(SAMPLES)]
    return [named(golden), *(named((golden + one).astype(golden.dtype)) for one in noise)]


def amplitudes(*levels: float) -> tuple[float, ...]:
    return (0.0, *(level for level in levels for _ in range(SAMPLES)))


def spread(golden: Array, samples: list[NamedValues], *levels: float) -> Floats:
    return spread_of([named(golden)], samples, amplitudes(*levels), "float32").outputs[0]["y"]


def test_spread_is_the_noise_at_amplitude_one() -> None:
    golden = np.ones((50, 40))
    found = spread(golden, drawn(golden, 1e-3, (16.0,)), 16.0)
    assert found.shape == golden.shape
    assert np.sqrt(np.mean(found**2)) == pytest.approx(1e-3, rel=0.1)
    assert found.min() >= 0.2e-3


def test_healthy_noise_is_near_one_and_a_fault_far_off() -> None:
    golden = np.linspace(1, 2, 5000)
    found = spread(golden, drawn(golden, 1e-6, (16.0,)), 16.0)
    healthy = golden + 1e-6 * np.random.default_rng(7).standard_normal(golden.shape)
    rms, largest = noise_of(tensor(golden), tensor(healthy), found)
    assert rms == pytest.approx(1, rel=0.2)
    assert largest < 12
    faulty = healthy.copy()
    faulty[17] += 1e-4
    rms, largest = noise_of(tensor(golden), tensor(faulty), found)
    assert rms < DEFAULT_LIMITS.rms
    assert largest > DEFAULT_LIMITS.max
    rule = NoiseRule(precision="float32", spreads={"y": found})
    row = OutputMetrics(name="y", dtype="float64", shape=golden.shape)
    noise = with_noise(row, tensor(golden), tensor(faulty), rule).noise
    assert noise is not None
    assert noise.worst.startswith(" at (17,): got ")


def test_each_data_set_has_its_own_spread() -> None:
    one, two = np.ones(100), np.full(100, 2.0)
    samples = [*drawn(one, 1e-3, (16.0,)), *drawn(two, 1e-5, (16.0,))]
    levels = amplitudes(16.0)
    found = spread_of([named(one), named(two)], samples, (*levels, *levels), "float32")
    assert found.precision == "float32"
    assert found.nbytes == 2 * 100 * 8
    assert found.outputs[0]["y"].mean() == pytest.approx(1e-3, rel=0.3)
    assert found.outputs[1]["y"].mean() == pytest.approx(1e-5, rel=0.3)


def test_exact_results_pass_two_units_in_the_last_place_and_no_four() -> None:
    golden = np.float32(1) + np.arange(200, dtype=np.float32) / 256
    found = spread_of([named(golden)], [named(golden)], (0.0,), "float32").outputs[0]["y"]
    one = np.spacing(golden)
    for steps, passes in ((2, True), (4, False)):
        off = golden.copy()
        off[5] += steps * one[5]
        assert (noise_of(tensor(golden), tensor(off), found)[1] <= DEFAULT_LIMITS.max) is passes
    everywhere = golden + one
    assert noise_of(tensor(golden), tensor(everywhere), found)[0] > rms_limit(DEFAULT_LIMITS, golden.size)


def test_subnormal_numbers_may_be_flushed() -> None:
    golden = np.full(10, 1e-40, np.float32)
    found = spread_of([named(golden)], [named(golden)], (0.0,), "float32").outputs[0]["y"]
    rms, largest = noise_of(tensor(golden), tensor(np.zeros(10, np.float32)), found)
    assert rms < 1
    assert largest < 1


def test_an_element_that_jumps_may_jump_again_and_no_other_may() -> None:
    golden = np.zeros(1000)
    samples = drawn(golden, 0.0, (1.0, 8.0))
    jumping = golden.copy()
    jumping[3] = 1.0
    samples[-1] = named(jumping)  # once, and not at amplitude 1
    found = spread(golden, samples, 1.0, 8.0)
    assert noise_of(tensor(golden), tensor(jumping), found)[1] == pytest.approx(4)
    elsewhere = golden.copy()
    elsewhere[4] = 1.0
    assert noise_of(tensor(golden), tensor(elsewhere), found)[1] > 1e6


def test_jumps_do_not_widen_what_is_smooth() -> None:
    golden = np.ones(1000)
    samples = drawn(golden, 1e-6, (1.0, 8.0))
    for index in range(1, len(samples)):
        value = samples[index][0][1]
        assert isinstance(value, Tensor)
        value.array[:20] += 100.0 * (index % 2)
    found = spread(golden, samples, 1.0, 8.0)
    assert found[:20].min() > 50
    assert np.quantile(found[20:], 0.99) < 5e-6


def test_noise_that_overflows_excuses_nothing() -> None:
    golden = np.ones(100, np.float32)
    samples = drawn(golden, 1e-6, (16.0,))
    for _, value in (one[0] for one in samples[1:]):
        assert isinstance(value, Tensor)
        value.array[0], value.array[1] = np.inf, np.nan
    found = spread(golden, samples, 16.0)
    assert np.isfinite(found).all()
    assert found[:2].max() < 1e-5


def test_nan_and_infinity_of_the_golden_do_no_harm() -> None:
    golden = np.array([1.0, np.nan, np.inf, -np.inf], np.float32)
    found = spread(golden, drawn(golden, 1e-6, (16.0,)), 16.0)
    assert np.isfinite(found).all()
    assert (found > 0).all()
    assert noise_of(tensor(golden), tensor(golden.copy()), found) == (0.0, 0.0)


@pytest.mark.parametrize("golden", [np.array(2.0), np.zeros((0, 3))])
@pytest.mark.parametrize("levels", [(16.0,), (1.0, 8.0), ()])
def test_scalars_and_empty_outputs(golden: Array, levels: tuple[float, ...]) -> None:
    found = spread(golden, drawn(golden, 1e-6, levels), *levels)
    assert found.shape == golden.shape
    assert noise_of(tensor(golden), tensor(golden), found) == (0.0, 0.0)


def test_only_floats_that_keep_their_shape_have_a_spread() -> None:
    items = Sequence(items=(tensor(np.ones(2)), tensor(np.ones(3))))
    golden: NamedValues = (("index", tensor(np.ones(3, np.int64))), ("list", items), ("z", None))
    shorter = Sequence(items=(tensor(np.ones(2)), tensor(np.ones(2))))
    samples: list[NamedValues] = [golden, (*golden[:1], ("list", shorter), ("z", None))]
    assert list(spread_of([golden], samples, (0.0, 16.0), "float32").outputs[0]) == ["list[0]"]


@pytest.mark.parametrize(
    ("changed", "has_spread"),
    [
        ((-1,), True),
        (tuple(range(-SAMPLES // 2, 0)), True),
        (tuple(range(-SAMPLES, 0)), False),
        ((1,), False),
    ],
)
def test_amplified_noise_may_change_the_shape_now_and_then(
    changed: tuple[int, ...], *, has_spread: bool
) -> None:
    golden = np.ones(4)
    samples = drawn(golden, 1e-6, (1.0, 8.0))
    for index in changed:
        samples[index] = named(np.ones(3))
    found = spread_of([named(golden)], samples, amplitudes(1.0, 8.0), "float16").outputs[0]
    assert ("y" in found) is has_spread


@pytest.mark.parametrize(
    ("sigma", "measured"), [(1e-3, 1e-3), (0.1, 0.1), (100.0, None)], ids=["linear", "bent", "lost"]
)
def test_where_amplified_noise_is_too_large_draws_at_amplitude_1_count(
    sigma: float, measured: float | None
) -> None:
    golden = np.ones(1000)
    rng = np.random.default_rng(0)
    levels = (0.0, *(16.0,) * SAMPLES, *(1.0,) * PROBES)
    # What saturates: no draw moves by more than 2.
    samples = [named(golden + 2 * np.tanh(level * sigma * rng.standard_normal(1000) / 2)) for level in levels]
    found = spread_of([named(golden)], samples, levels, "float32").outputs[0]
    if measured is None:
        assert not found
    else:
        assert np.sqrt(np.mean(found["y"] ** 2)) == pytest.approx(measured, rel=0.2)


def test_a_model_that_computes_something_else_without_noise_has_no_spread() -> None:
    golden = np.ones(100)
    samples = drawn(golden, 1e-6, (16.0,))
    samples[0] = named(golden + 1e-4)
    assert spread_of([named(golden)], samples, amplitudes(16.0), "float32").outputs == ({},)


def test_figures_are_finite_whatever_the_error() -> None:
    golden, actual = np.array([1e300, 1.0]), np.array([-1e300, 1.0])
    assert all(np.isfinite(noise_of(tensor(golden), tensor(actual), np.full(2, 1e-300))))


def test_large_numbers_are_judged_like_others() -> None:
    golden = np.full(10, 1e250)
    actual = golden * (1 + 1e-3)
    rms, largest = noise_of(tensor(golden), tensor(actual), np.full(10, 1e245))
    assert rms == pytest.approx(100)
    assert largest == pytest.approx(100)


def test_few_elements_are_granted_more() -> None:
    assert rms_limit(DEFAULT_LIMITS, 1) == 2 * DEFAULT_LIMITS.rms
    assert rms_limit(DEFAULT_LIMITS, 10**6) == pytest.approx(DEFAULT_LIMITS.rms, rel=1e-2)
    assert rms_limit(DEFAULT_LIMITS, 0) == rms_limit(DEFAULT_LIMITS, 1)


@pytest.mark.parametrize(
    ("rms", "precision", "like"),
    [
        (0.0, "float32", "exact"),
        (1.3, "float32", "float32"),
        (2.0**13, "float32", "float16"),
        (2.0**16, "float32", "bfloat16"),
        (1e-4, "bfloat16", "float32"),
        (0.8, "float16", "float16"),
        (1e8, "float32", "none"),
        (17.0, "bfloat16", "none"),
    ],
)
def test_the_nearest_precision(rms: float, precision: str, like: str) -> None:
    assert behaves_like(rms, precision) == like


@given(st.integers(0, 2**32), st.floats(1e-6, 1e6))
def test_multiples_do_not_depend_on_the_unit(seed: int, unit: float) -> None:
    rng = np.random.default_rng(seed)
    golden = rng.standard_normal(50)
    found = spread(golden, drawn(golden, 1e-3, (16.0,), seed), 16.0)
    actual = golden + 1e-3 * rng.standard_normal(50)
    plain = noise_of(tensor(golden), tensor(actual), found)
    scaled = noise_of(tensor(unit * golden), tensor(unit * actual), unit * found)
    assert scaled == pytest.approx(plain, rel=1e-6)


def failing(golden: Array, actual: Array, found: Floats) -> bool:
    """Return whether an answer exceeds any of the limits."""
    rule = NoiseRule(precision="float32", spreads={"y": found})
    row = OutputMetrics(name="y", dtype="float32", shape=golden.shape)
    noise = with_noise(row, tensor(golden), tensor(actual), rule).noise
    assert noise is not None
    assert noise.each is not None
    limit = rms_limit(DEFAULT_LIMITS, golden.size)
    return max(noise.rms, noise.each) > limit or noise.max > DEFAULT_LIMITS.max


@pytest.mark.parametrize("factor", [0.0, 2.0, 1.0001])
def test_small_elements_of_a_wide_range_have_their_own_noise(factor: float) -> None:
    rng = np.random.default_rng(0)
    golden = np.exp(rng.uniform(-60, 60, 512)).astype(np.float32)
    found = spread(golden, drawn(golden, 1e-7 * golden, (16.0,)), 16.0)
    small = golden < np.median(golden)
    wrong = np.where(small, factor * golden, golden).astype(np.float32)
    assert failing(golden, wrong, found)
    healthy = (golden * (1 + 1e-7 * rng.standard_normal(512))).astype(np.float32)
    assert not failing(golden, healthy, found)


def test_small_elements_that_are_all_somewhat_off_are_found() -> None:
    golden = np.concatenate([np.full(100, 1e6), np.full(100, 1e-6)])
    found = spread(golden, drawn(golden, 1e-7 * golden, (16.0,)), 16.0)
    wrong = golden.copy()
    wrong[100:] *= 1 + 10e-7
    rms, largest = noise_of(tensor(golden), tensor(wrong), found)
    assert rms < 0.01
    assert largest < DEFAULT_LIMITS.max
    assert failing(golden, wrong, found)


def test_small_results_of_a_difference_are_as_uncertain_as_large_ones() -> None:
    rng = np.random.default_rng(1)
    golden = rng.standard_normal(2000)
    golden[:5] = 1e-9
    found = spread(golden, drawn(golden, 1e-6, (16.0,)), 16.0)
    assert not failing(golden, golden + 1e-6 * rng.standard_normal(2000), found)
    assert failing(golden, golden + 1e-4 * (golden == 1e-9), found)


def test_what_cancels_out_in_every_draw_has_the_noise_of_its_like() -> None:
    golden = np.full(400, 1.5)
    samples = drawn(golden, 1e-6, (16.0,))
    for _, value in (one[0] for one in samples):
        assert isinstance(value, Tensor)
        value.array[7] = 1.5
    found = spread(golden, samples, 16.0)
    assert found[7] == pytest.approx(1e-6 / 8, rel=0.3)


def test_zeros_beside_the_edge_of_a_relu_have_some_of_the_noise_of_small_numbers() -> None:
    rng = np.random.default_rng(2)
    before = rng.uniform(-1, 1, 4000)
    golden = np.maximum(before, 0)
    runs = [np.maximum(before + 1e-3 * rng.standard_normal(4000), 0) for _ in range(SAMPLES)]
    found = spread(golden, [named(golden), *map(named, runs)], 1.0)
    for seed in range(20):
        other = np.maximum(before + 1e-3 * np.random.default_rng(seed).standard_normal(4000), 0)
        assert not failing(golden, other, found)
    wrong = np.where(before < -0.5, 1e-2, golden)
    assert failing(golden, wrong, found)


def test_large_elements_of_a_wide_range_have_not_jumped() -> None:
    golden = np.logspace(-6, 6, 600)
    found = spread(golden, drawn(golden, 1e-7 * golden, (1.0, 8.0)), 1.0, 8.0)
    assert (found / golden).max() < 5e-7


def test_many_jumps_excuse_no_element_that_never_jumps() -> None:
    rng = np.random.default_rng(3)
    golden = rng.integers(1, 4, 1000).astype(np.float64)
    jumps = np.arange(1000) < 400
    samples = [golden + jumps * rng.integers(-1, 2, 1000) for _ in range(3 * SAMPLES)]
    found = spread(golden, [named(golden), *map(named, samples)], 1.0, 8.0, 8.0)
    assert noise_of(tensor(golden), tensor(golden + jumps), found)[1] <= 4
    assert noise_of(tensor(golden), tensor(golden + (np.arange(1000) == 999)), found)[1] > 1e6


def test_subnormal_float16_is_judged_by_its_own_resolution() -> None:
    golden = np.full(64, 2e-5, np.float16)
    found = spread_of([named(golden)], [named(golden)], (0.0,), "float16").outputs[0]["y"]
    flushed, doubled = np.zeros(64, np.float16), (2 * golden).astype(np.float16)
    assert noise_of(tensor(golden), tensor(flushed), found) == (0.0, 0.0)
    assert noise_of(tensor(golden), tensor(doubled), found)[1] > DEFAULT_LIMITS.max


def test_float64_may_be_copied_in_float32() -> None:
    golden = np.random.default_rng(4).standard_normal(500)
    found = spread_of([named(golden)], [named(golden)], (0.0,), "float32").outputs[0]["y"]
    assert not failing(golden, golden.astype(np.float32).astype(np.float64), found)
    assert failing(golden, golden.astype(np.float16).astype(np.float64), found)


@pytest.mark.parametrize(("steps", "known"), [(1, True), (60, True), (64, False)])
def test_a_few_elements_at_the_edge_of_a_step_have_the_noise_of_that_step(steps: int, *, known: bool) -> None:
    """The model without noise lies beyond the edge there, and no draw comes back."""
    golden = np.full(1000, 100.0)
    quiet = golden.copy()
    quiet[:steps] += 1e-3
    noise = np.random.default_rng(3).standard_normal((SAMPLES, 1000))
    noise[:, 500:] *= 1e5  # so that the norms are alike
    samples = [named(quiet), *(named(quiet + 1e-6 * one) for one in noise)]
    found = spread_of([named(golden)], samples, amplitudes(1.0), "float32").outputs[0]
    assert ("y" in found) is known
    if known:
        assert found["y"][:steps] == pytest.approx(1e-3, rel=1e-6)
        assert found["y"][steps:500].max() < 1e-5
