"""Tolerances by computing precision."""

import math
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.catalog.option import PrecisionMode
from harness.core.comparison.tolerance import (
    DEFAULTS,
    EXACT,
    FLOORS,
    Tolerance,
    computing_precision,
    default_tolerance,
)
from harness.core.values.value import DTYPES

TOLERANT = {"float64", "float32", "float16", "bfloat16", "complex64", "complex128"}


@pytest.mark.parametrize("precision", DEFAULTS)
@pytest.mark.parametrize("dtype", [*DTYPES, "string"])
def test_the_precision_decides_for_floats_and_all_else_is_exact(dtype: str, precision: str) -> None:
    wanted = DEFAULTS[precision] if dtype in TOLERANT else EXACT
    assert default_tolerance(dtype, precision) == wanted


def test_the_figures_are_those_of_onnxruntimes_operator_tests() -> None:
    assert default_tolerance("float32", "float32") == Tolerance(rtol=1e-4, atol=1e-5)
    assert default_tolerance("float32", "float16") == Tolerance(rtol=1e-3, atol=2.5e-3)
    assert default_tolerance("float32", "bfloat16") == Tolerance(rtol=1e-2, atol=2e-2)
    assert default_tolerance("float64", "float64") == Tolerance(rtol=1e-5, atol=1e-5)


def test_a_coarser_precision_never_has_a_tighter_tolerance() -> None:
    for finer, coarser in zip(list(DEFAULTS.values())[:-1], list(DEFAULTS.values())[1:], strict=True):
        assert finer.rtol <= coarser.rtol
        assert finer.atol <= coarser.atol


@pytest.mark.parametrize(
    ("types", "cell", "computing"),
    [
        ((), "float32", "float32"),
        (("float64",), "float32", "float32"),
        (("float64", "float16", "float32"), "float32", "float16"),
        (("float16", "bfloat16"), "as_model", "bfloat16"),
        (("float32",), "float16", "float16"),
        (("float32",), "tf32", "float16"),
        (("float16",), "bfloat16", "bfloat16"),
        (("bfloat16",), "float16", "bfloat16"),
        (("float32",), "int8", "bfloat16"),
        (("float32",), "mixed", "bfloat16"),
        (("bfloat16",), "float8", "float8"),
        (("float32",), "int4", "float8"),
        (("float8e4m3fn", "float4e2m1", "int8", "string"), "float32", "float32"),
        (("complex64",), "float32", "float32"),
    ],
)
def test_the_coarsest_computing_type_decides(types: tuple[str, ...], cell: str, computing: str) -> None:
    assert computing_precision(types, cell) == computing


@given(st.lists(st.sampled_from(sorted(DTYPES))), st.sampled_from(sorted(FLOORS)))
def test_computing_precision_is_never_finer_than_its_floor(types: list[str], cell: str) -> None:
    order = list(DEFAULTS)
    assert order.index(computing_precision(types, cell)) >= order.index(FLOORS[cell])
    assert computing_precision(types, cell) == computing_precision(reversed(types), cell)


def test_unknown_precisions_are_refused_with_the_valid_ones() -> None:
    with pytest.raises(ValueError, match="'fp32'; valid: as_model, float32, tf32, float16"):
        computing_precision((), "fp32")
    with pytest.raises(ValueError, match="'fp32'; valid: float64"):
        default_tolerance("float32", "fp32")


@pytest.mark.parametrize("bad", [-1e-9, math.nan, math.inf])
def test_a_tolerance_is_finite_and_not_negative(bad: float) -> None:
    with pytest.raises(ValueError, match="at least 0"):
        Tolerance(rtol=bad, atol=0.0)
    with pytest.raises(ValueError, match="at least 0"):
        Tolerance(rtol=0.0, atol=bad)


def test_every_precision_mode_has_its_tolerance() -> None:
    (computes,) = [field for field in msgspec.structs.fields(PrecisionMode) if field.name == "computes"]
    assert set(get_args(computes.type)) == FLOORS.keys()
    assert set(FLOORS.values()) <= DEFAULTS.keys()
