"""The figures of one output, against plain formulas, exact arithmetic and the rule that judges."""

import math
import warnings
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.core.comparison.metrics import ATOL_GRID, BLOCK, OutputFigures, any_finite, measure_error
from harness.core.comparison.tolerance import DEFAULTS, EXACT, Tolerance
from harness.core.values.value import BITS, DTYPES, Tensor, tensor

TOLERANCE = Tolerance(rtol=1e-3, atol=1e-3)
NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def doubles(*numbers: float) -> Tensor:
    return tensor(np.array(numbers, np.float64))


def figures(measured: OutputFigures) -> Iterator[float]:
    for value in msgspec.structs.astuple(measured):
        if isinstance(value, float):
            yield value
    for pair in measured.frontier:
        yield from pair


@st.composite
def any_pairs(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Two tensors of one type and shape with any bits, half of their elements equal."""
    name = draw(st.sampled_from(sorted(DTYPES)))
    dtype, size = DTYPES[name], draw(st.integers(0, 12))
    nbytes = size * dtype.itemsize
    left, right = (np.frombuffer(draw(st.binary(min_size=nbytes, max_size=nbytes)), "u1") for _ in range(2))
    if name == "bool" or name in BITS:
        left, right = left & np.uint8(1), right & np.uint8(1)
    mixed = np.where(np.arange(nbytes) // dtype.itemsize % 2 == 0, left, right)
    return Tensor(dtype=name, array=left.view(dtype)), Tensor(dtype=name, array=mixed.view(dtype))


@given(any_pairs(), st.sampled_from([EXACT, TOLERANCE]))
def test_nothing_infinite_or_nan_leaks_from_any_bits(
    pair: tuple[Tensor, Tensor], tolerance: Tolerance
) -> None:
    measured = measure_error(*pair, tolerance)
    assert all(map(math.isfinite, figures(measured)))
    assert 0 <= measured.special <= measured.mismatched <= pair[0].array.size
    assert measured.cosine is None or -1 <= measured.cosine <= 1
    assert (measured.headroom is None or measured.headroom > 1) == (measured.mismatched > 0)


@given(any_pairs())
def test_a_tensor_equals_itself(pair: tuple[Tensor, Tensor]) -> None:
    measured = measure_error(pair[0], pair[0], EXACT)
    zero = 0.0 if any_finite(pair[0]) else None
    assert (measured.mismatched, measured.special, measured.headroom) == (0, 0, 0.0)
    assert measured.max_abs == measured.rmse == zero
    assert (measured.sqnr_db, measured.delivered_bits) == (None, None)
    assert measured.cosine == (None if zero is None else 1.0)
    assert measured.frontier == ((0.0, 0.0),)


@pytest.mark.parametrize("size", [1, 60, BLOCK, BLOCK + 1, 3 * BLOCK - 7])
def test_figures_equal_the_plain_formulas(size: int) -> None:
    random = np.random.default_rng(size)
    golden = random.normal(size=size)
    actual = golden * (1 + 1e-3 * random.normal(size=size))
    measured = measure_error(tensor(golden), tensor(actual), TOLERANCE)
    error, allowed = abs(actual - golden), 1e-3 + 1e-3 * abs(golden)
    relative = error / abs(golden)
    norm = np.linalg.norm
    assert measured.mismatched == np.count_nonzero(error > allowed)
    assert measured.max_abs == error.max()
    assert measured.max_abs_at == error.argmax()
    assert measured.max_abs_allowed == allowed[error.argmax()]
    assert measured.max_rel == relative.max()
    assert measured.max_rel_at == relative.argmax()
    assert measured.headroom == (error / allowed).max()
    assert measured.rmse == pytest.approx(np.sqrt(np.mean(error**2)))
    assert measured.cosine == pytest.approx(golden @ actual / (norm(golden) * norm(actual)))
    assert measured.sqnr_db == pytest.approx(20 * np.log10(norm(golden) / norm(error)))
    assert measured.delivered_bits == pytest.approx(-np.log2(norm(error) / norm(golden)))


@pytest.mark.parametrize(("dtype", "bits"), [("float32", 25), ("float16", 12), ("bfloat16", 9)])
def test_delivered_bits_tell_the_rounding_of_a_type(dtype: str, bits: float) -> None:
    golden = np.random.default_rng(0).normal(size=4096)
    rounded = golden.astype(DTYPES[dtype]).astype(np.float64)
    assert measure_error(tensor(golden), tensor(rounded), EXACT).delivered_bits == pytest.approx(
        bits, abs=1.0
    )


@st.composite
def float_pairs(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    numbers = st.floats(-1e3, 1e3) | st.sampled_from([0.0, -0.0, 1e-7, 1e-5, 1.0])
    errors = st.sampled_from([0.0, 1e-7, 1e-5, 2.5e-3, 1.0]) | st.floats(-2, 2)
    size = draw(st.integers(0, 8))
    golden = draw(hnp.arrays(np.float64, size, elements=numbers))
    return tensor(golden), tensor(golden + draw(hnp.arrays(np.float64, size, elements=errors)))


@given(float_pairs(), st.sampled_from(ATOL_GRID), st.floats(0, 10))
def test_the_frontier_judges_as_the_tolerance_does(
    pair: tuple[Tensor, Tensor], atol: float, any_rtol: float
) -> None:
    golden, actual = pair
    frontier = dict(measure_error(golden, actual, EXACT).frontier)
    # The list ends where rtol reaches 0; from there on everything passes.
    settled = min((a for a, rtol in frontier.items() if rtol == 0.0), default=INF)
    limit = 0.0 if atol >= settled else frontier.get(atol)
    near = [] if limit is None else [limit * factor for factor in (0.5, 1 - 1e-9, 1 + 1e-9, 2)]
    error, magnitude = abs(actual.array - golden.array), abs(golden.array)
    for rtol in filter(math.isfinite, [any_rtol, *near]):
        # Where the last places of the error decide, rounding may take either side.
        slack = 2 * np.spacing(np.maximum(error, atol))
        with np.errstate(over="ignore"):  # a tiny golden asks for an enormous rtol
            tie = abs(error - (atol + rtol * magnitude)) <= slack
        if np.any(tie & (error > 0)):
            continue
        passes = measure_error(golden, actual, Tolerance(rtol=rtol, atol=atol)).mismatched == 0
        assert passes == (limit is not None and rtol >= limit)


@given(float_pairs())
def test_a_frontier_falls(pair: tuple[Tensor, Tensor]) -> None:
    frontier = measure_error(*pair, EXACT).frontier
    assert [atol for atol, _ in frontier] == sorted({atol for atol, _ in frontier} & set(ATOL_GRID))
    assert [rtol for _, rtol in frontier] == sorted((rtol for _, rtol in frontier), reverse=True)
    assert [rtol for _, rtol in frontier].count(0.0) <= 1


def test_the_grid_holds_zero_and_every_default_atol() -> None:
    assert ATOL_GRID[0] == 0.0
    assert {tolerance.atol for tolerance in DEFAULTS.values()} <= set(ATOL_GRID)


def test_a_frontier_entry_that_underflows_still_fails_at_zero() -> None:
    golden, actual = doubles(1e300, 0.0), doubles(1e300, 0.0)
    actual.array[0] = np.nextafter(1e300, INF)
    assert measure_error(golden, actual, EXACT).frontier[0][1] > 0
    tiny = measure_error(doubles(1e-320, 1e300), doubles(2e-320, 1e300), EXACT)
    assert tiny.mismatched == 1
    assert tiny.frontier[0][1] > 0


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
@given(data=st.data())
def test_integers_differ_as_in_python(dtype: type[np.integer[Any]], data: st.DataObject) -> None:
    info = np.iinfo(dtype)
    numbers = st.integers(int(info.min), int(info.max)) | st.sampled_from([int(info.min), int(info.max)])
    left, right = (data.draw(st.lists(numbers, min_size=3, max_size=3)) for _ in range(2))
    golden, actual = np.array(left, dtype), np.array(right, dtype)
    measured = measure_error(tensor(golden), tensor(actual), EXACT)
    errors = [abs(a - b) for a, b in zip(left, right, strict=True)]
    assert measured.mismatched == sum(error > 0 for error in errors)
    assert measured.max_abs == float(max(errors))
    wanted = [Fraction(error, abs(number)) for error, number in zip(errors, left, strict=True) if number]
    if wanted:
        assert measured.max_rel == pytest.approx(float(max(wanted)))


def test_neighbouring_large_integers_differ() -> None:
    golden = tensor(np.array([2**63], np.uint64))
    assert measure_error(golden, tensor(np.array([2**63 + 1], np.uint64)), EXACT).max_abs == 1.0


@pytest.mark.parametrize(
    ("golden", "actual", "special"),
    [
        ((NAN, 1.0), (NAN, 1.0), 0),
        ((INF, -INF), (INF, -INF), 0),
        ((INF, -INF), (-INF, INF), 2),
        ((NAN, 1.0), (1.0, NAN), 2),
        ((NAN, INF), (INF, INF), 1),
        ((1.0, 2.0), (INF, 2.0), 1),
    ],
)
def test_nan_and_infinity_are_matched_by_place_and_sign(
    golden: tuple[float, ...], actual: tuple[float, ...], special: int
) -> None:
    measured = measure_error(doubles(*golden), doubles(*actual), TOLERANCE)
    assert measured.special == measured.mismatched == special
    assert (measured.frontier == ()) == (special > 0)


def test_values_beside_nan_are_measured_over_the_finite_pairs() -> None:
    measured = measure_error(doubles(NAN, 1.0, 5.0, INF), doubles(NAN, 1.0, 7.0, 3.0), TOLERANCE)
    assert (measured.special, measured.special_at, measured.mismatched) == (1, 3, 2)
    assert (measured.max_abs, measured.max_abs_at) == (2.0, 2)
    assert (measured.max_rel, measured.max_rel_at) == (0.4, 2)
    assert measured.rmse == pytest.approx(math.sqrt(2))
    assert measured.headroom is None


def test_positions_count_from_the_start_across_blocks() -> None:
    golden = np.ones(3 * BLOCK, np.float32)
    actual = golden.copy()
    golden[5], actual[5] = NAN, NAN
    actual[BLOCK + 3] = 2.0
    actual[2 * BLOCK + 4] = NAN
    measured = measure_error(tensor(golden), tensor(actual), TOLERANCE)
    assert (measured.max_abs_at, measured.max_rel_at) == (BLOCK + 3, BLOCK + 3)
    assert (measured.special_at, measured.special, measured.mismatched) == (2 * BLOCK + 4, 1, 2)


def test_complex_differs_by_modulus_and_matches_infinity_part_by_part() -> None:
    golden, actual = tensor(np.array([3 + 4j, 0])), tensor(np.array([0, 0j]))
    measured = measure_error(golden, actual, TOLERANCE)
    assert (measured.max_abs, measured.max_rel, measured.mismatched) == (5.0, 1.0, 1)
    one = tensor(np.array([complex(INF, 1)]))
    assert measure_error(one, tensor(np.array([complex(1, INF)])), TOLERANCE).special == 1
    assert measure_error(one, one, TOLERANCE).special == 0
    huge = tensor(np.array([complex(1e308, 1.7e308)]))
    assert measure_error(huge, tensor(-huge.array), TOLERANCE).mismatched == 1


def test_signed_zeros_are_equal() -> None:
    measured = measure_error(doubles(0.0, -0.0), doubles(-0.0, 0.0), EXACT)
    assert (measured.mismatched, measured.max_abs, measured.cosine) == (0, 0.0, 1.0)


def test_an_error_where_golden_is_zero_is_absolute_only() -> None:
    measured = measure_error(doubles(0.0, 2.0), doubles(0.5, 2.0), Tolerance(rtol=0.1, atol=0.25))
    assert (measured.max_rel, measured.headroom, measured.mismatched) == (0.0, 2.0, 1)
    assert measured.frontier == ((1.0, 0.0),)
    unlimited = measure_error(doubles(0.0), doubles(0.5), Tolerance(rtol=0.1, atol=0.0))
    assert (unlimited.max_rel, unlimited.headroom, unlimited.mismatched) == (None, None, 1)
    assert (unlimited.cosine, unlimited.sqnr_db, unlimited.delivered_bits) == (None, None, None)


def test_a_difference_that_overflows_is_a_mismatch_without_figures() -> None:
    measured = measure_error(doubles(1.7e308), doubles(-1.7e308), TOLERANCE)
    assert measured.mismatched == 1
    assert (measured.max_abs, measured.max_rel, measured.rmse, measured.headroom) == (None, None, None, None)
    assert measured.frontier == ()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1, 1)])
def test_any_shape_can_be_measured(shape: tuple[int, ...]) -> None:
    value = tensor(np.ones(shape, np.float32))
    measured = measure_error(value, value, TOLERANCE)
    assert measured.mismatched == 0
    assert measured.max_abs == (0.0 if value.array.size else None)


def test_two_element_types_are_measured_by_value() -> None:
    golden, actual = tensor(np.array([1, 2], np.int64)), tensor(np.array([1.5, 2.0], np.float32))
    assert measure_error(golden, actual, EXACT).max_abs == 0.5
    assert (
        measure_error(tensor(np.array([-1], np.int8)), tensor(np.array([255], np.uint8)), EXACT).max_abs
        == 256
    )
