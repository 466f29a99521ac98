"""Errors of nodes in multiples of the noise at the delivered precision."""

import math

import msgspec
import pytest

from harness.annex.trace.node_error import delivered_by_most, error_of
from harness.core.comparison.output_metrics import Noise, OutputDetails, OutputMetrics

EXACT = OutputMetrics(name="e", dtype="float32", shape=(100,), elements=100, max_abs=0.0)


def row(relative: float, rms: float, *, like: str = "float32", noise: Noise | None = None) -> OutputMetrics:
    """An output of size 1 with a relative error, which is so many times its noise in float32."""
    return OutputMetrics(
        name="y",
        dtype="float32",
        shape=(10_000,),
        elements=10_000,
        max_abs=relative,
        rmse=relative,
        cosine=1.0,
        sqnr_db=-20 * math.log10(relative),
        delivered_bits=-math.log2(relative),
        noise=noise or Noise(precision="float32", rms=rms, max=2 * rms, each=rms, like=like),
    )


def test_an_error_of_its_noise_is_once_the_noise() -> None:
    error = error_of([EXACT, row(1e-7, 1.0)], "float32")
    assert error.noise is not None
    assert 0.95 < error.noise < 1.0  # a few elements have a wider limit
    assert not error.exact
    assert not error.is_beyond
    assert error_of([EXACT], "float32").exact


@pytest.mark.parametrize(("ulp", "beyond"), [(0.5, False), (2.0, False), (3.0, True)])
def test_an_error_in_the_last_places_is_rounding_though_nobody_draws_noise_for_it(
    ulp: float,
    beyond: bool,  # noqa: FBT001
) -> None:
    off = ulp * 2.0**-23
    bare = msgspec.structs.replace(row(off, 0.0), noise=None, frontier=((0.0, off), (off, 0.0)))
    bare = msgspec.structs.replace(bare, mismatched=int(beyond))
    assert error_of([bare], "float32").is_beyond is beyond
    assert error_of([bare], "bfloat16").is_beyond is beyond


def test_what_the_verdict_allows_without_noise_is_no_fault() -> None:
    off_by_one = OutputMetrics(
        name="q",
        dtype="int8",
        shape=(4,),
        elements=4,
        max_abs=1.0,
        details=OutputDetails(steps=1.0, granted=1.0),
    )
    error = error_of([off_by_one], "float32")
    assert (error.noise, error.exact, error.allowed, error.is_beyond) == (None, False, True, False)
    assert error_of([msgspec.structs.replace(off_by_one, mismatched=1)], "float32").is_beyond
    assert error_of([off_by_one, row(1e-2, 1e5)], "float32").is_beyond


def test_an_error_that_a_document_of_the_provider_allows_is_no_fault() -> None:
    allowed = Noise(precision="float32", rms=0.1, max=0.5, each=0.1, document="WGSL")
    noise = Noise(precision="float32", rms=50.0, max=300.0, each=76.0, like="float32", wider=(allowed,))
    error = error_of([row(4e-5, 50.0, noise=noise)], "float32")
    assert error.noise is not None
    assert 0 < error.noise < 1
    alone = msgspec.structs.replace(noise, wider=())
    assert error_of([row(4e-5, 50.0, noise=alone)], "float32").is_beyond


def test_noise_of_float32_is_scaled_to_what_the_target_delivers() -> None:
    fine = row(2.0**-9, 2.0**13, like="float16")  # once the noise of float16
    error = error_of([fine], "float16")
    assert error.noise is not None
    assert 0.8 < error.noise < 1.0
    assert error_of([fine], "float32").is_beyond


def test_one_rounding_of_what_is_only_copied_is_no_fault_at_a_coarser_precision() -> None:
    copied = row(2.0**-9 / 3**0.5, 8 * 2.0**16, like="none")  # float32 noise of a copy is an eighth of a unit
    error = error_of([copied], "bfloat16")
    assert error.noise is not None
    assert error.noise < 1.0


def test_the_own_noise_of_the_delivered_precision_comes_first() -> None:
    wider = Noise(precision="bfloat16", rms=0.5, max=1.0, each=0.5)
    noise = Noise(precision="float32", rms=3e4, max=6e4, each=3e4, wider=(wider,))
    error = error_of([row(2.5e-3, 0.0, noise=noise)], "bfloat16")
    assert error.noise is not None
    assert 0.45 < error.noise < 0.51


def test_nan_in_other_places_is_beyond_any_noise() -> None:
    nan = OutputMetrics(
        name="n", dtype="float32", shape=(4,), elements=4, max_abs=0.0, details=OutputDetails(special=2)
    )
    error = error_of([nan], "float32")
    assert (error.special, error.exact, error.is_beyond) == (2, False, True)


def test_most_nodes_that_sum_products_show_the_precision() -> None:
    half, single = row(2.0**-11, 2.0**13, like="float16"), row(1e-7, 1.0)
    # An EP may compute them alone in a coarser precision, whatever the other nodes show.
    assert delivered_by_most([("Conv", [half]), ("Gemm", [half]), *[("Add", [single])] * 9]) == "float16"
    # One wrong node among healthy ones has no majority.
    assert delivered_by_most([("Conv", [half]), ("Conv", [single]), ("Conv", [single])]) == "float32"
    # Without such nodes, all count.
    assert delivered_by_most([("Add", [half]), ("Mul", [half]), ("Relu", [EXACT])]) == "float16"
    assert delivered_by_most([("Relu", [EXACT])]) == "float32"


def test_a_quantized_result_is_off_by_steps_of_its_range_whatever_its_small_elements_are() -> None:
    # All of the error is in elements near 0: far beyond the noise of any floating type there.
    small = Noise(precision="float32", rms=1e5, max=1e7, each=1e7)
    step = 8.0 / 255 / 12**0.5
    error = error_of([row(step, 0.0, noise=small)], "int8", {"y": step})
    assert error.noise is not None
    assert 0.5 < error.noise < 1.0
    wrong = row(10 * step, 0.0, noise=Noise(precision="float32", rms=1e9, max=1e9))
    assert error_of([wrong], "int8", {"y": step}).is_beyond


def test_equal_texts_are_exact_and_others_are_beyond_any_noise() -> None:
    text = OutputMetrics(name="label", dtype="string", shape=(2,), elements=2)
    assert error_of([text], "float32").exact
    assert error_of([msgspec.structs.replace(text, mismatched=1)], "float32").is_beyond
