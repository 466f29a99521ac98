"""A disputed golden fails nobody, and hides no faulty result."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.adjudicate import EXPECTED, Named, adjudicate, rows_apart
from harness.core.compare import compare_all
from harness.core.dispute import Settlement, settle
from harness.core.hearing import Adjudication, Witness
from harness.core.tolerance import Tolerance, default_tolerance
from harness.core.value import tensor
from harness.core.verdict import Verdict

RANDOM = np.random.default_rng(3)
TRUTH = RANDOM.normal(size=500)
WHY = "the golden is uncertain"
BY = "float64 on the CPU EP"


def table(dtype: str) -> Tolerance:
    return default_tolerance(dtype, "float32")


def named(dtype: type = np.float32, **arrays: Any) -> Named:
    return [(name, tensor(np.asarray(array).astype(dtype))) for name, array in arrays.items()]


def off(size: float) -> Any:
    """The truth with relative errors of one size and alternating sign."""
    return TRUTH * (1 + size * RANDOM.choice([-1.0, 1.0], TRUTH.shape))


def witness(says: Named, golden: Named, actual: Named) -> Witness:
    names = [name for name, _ in golden]
    return Witness(
        name=EXPECTED,
        golden=rows_apart(compare_all(says, golden, table), names),
        ep=rows_apart(compare_all(says, actual, table), names),
    )


def settled(
    golden: Any,
    actual: Any,
    expected: Any = None,
    truth: Any = None,
    doubts: dict[str, str] | None = None,
) -> Settlement:
    right, found = named(y=golden), named(y=actual)
    compared = compare_all(right, found, table)
    assert compared.verdict
    rows: Sequence[Adjudication] = ()
    if truth is not None:
        rows = adjudicate(named(np.float64, y=truth), right, found, table, BY)
    says = witness(named(y=expected), right, found) if expected is not None else None
    return settle(compared.verdict, WHY, compared.outputs, says, rows, doubts or {})


def settled_by(judge: str, golden: Any, actual: Any) -> Settlement:
    """With the truth as the only judge that is left."""
    if judge == "expected":
        return settled(golden, actual, expected=TRUTH)
    return settled(golden, actual, truth=TRUTH)


def test_with_nothing_left_the_dispute_stays() -> None:
    assert settled(off(1e-3), off(1e-2)) == Settlement(verdict=Verdict.REFERENCE_DISPUTED, reason=WHY)


@pytest.mark.parametrize("times", [7, 67])
@pytest.mark.parametrize("judge", ["expected", "float64", "both"])
def test_an_ep_much_further_off_than_the_disputed_golden_fails(times: int, judge: str) -> None:
    found = settled(
        off(3e-4),
        off(times * 3e-4),
        expected=TRUTH if judge != "float64" else None,
        truth=TRUTH if judge != "expected" else None,
    )
    assert found.verdict is Verdict.MISMATCH
    assert found.judged_by == ("float64" if judge == "float64" else "expected")
    assert WHY in found.reason
    assert (BY if judge == "float64" else "the EP differs from the expected data") in found.reason


@pytest.mark.parametrize(("by", "words"), [("expected", EXPECTED), ("float64", BY)])
def test_an_ep_that_is_right_passes_by_what_is_left(by: str, words: str) -> None:
    found = settled_by(by, off(0.1), off(1e-6))
    assert (found.verdict, found.judged_by) == (None, by)
    assert found.reason.startswith(f"right by {words}")
    assert found.reason.endswith(WHY)


@pytest.mark.parametrize("by", ["expected", "float64"])
def test_an_ep_as_far_off_as_a_golden_that_rounds_is_not_blamed(by: str) -> None:
    found = settled_by(by, off(5e-4), off(6e-4))
    assert found.verdict is Verdict.REFERENCE_DISPUTED


def test_a_golden_that_is_plainly_wrong_is_no_measure_of_an_ep() -> None:
    assert settled(off(0.6), off(0.6), expected=TRUTH).verdict is Verdict.MISMATCH


def test_one_bad_element_is_seen_by_expected_data() -> None:
    actual = off(3e-4)
    actual[7] += 1
    assert settled(off(3e-4), actual, expected=TRUTH).verdict is Verdict.MISMATCH


def test_a_wrong_shape_and_a_wrong_nan_stand_by_expected_data() -> None:
    nan = TRUTH.copy()
    nan[0] = np.nan
    assert settled(off(3e-4), nan, expected=TRUTH).verdict is Verdict.NAN_MISMATCH
    assert settled(off(3e-4), TRUTH[None], expected=TRUTH).verdict is Verdict.SHAPE_MISMATCH


def test_judges_that_contradict_each_other_decide_nothing() -> None:
    found = settled(off(1e-6), off(0.1), expected=TRUTH * 1.5, truth=TRUTH)
    assert found.verdict is Verdict.MISMATCH  # both find the EP wrong
    ep = TRUTH * 1.5
    assert settled(TRUTH, ep, expected=ep, truth=TRUTH).verdict is Verdict.REFERENCE_DISPUTED


def test_float64_that_is_not_believed_judges_nobody() -> None:
    doubts = {BY: "not right for X-1"}
    assert settled(off(1e-3), off(0.5), truth=TRUTH, doubts=doubts).verdict is Verdict.REFERENCE_DISPUTED
    assert settled(off(0.5), off(1e-6), truth=TRUTH, doubts=doubts).verdict is Verdict.REFERENCE_DISPUTED


def test_an_output_of_which_nothing_is_known_passes_nobody() -> None:
    golden = named(y=off(0.1), z=TRUTH * 1.5)
    actual = named(y=TRUTH, z=TRUTH * 1.5)
    compared = compare_all(golden, actual, table)
    assert compared.verdict
    says = named(y=TRUTH, z=TRUTH)
    whole = witness(says, golden, actual)
    part = Witness(name=EXPECTED, golden=whole.golden[:1], ep=whole.ep[:1])
    assert settle(compared.verdict, WHY, compared.outputs, part, ()).verdict is Verdict.REFERENCE_DISPUTED
    # With the row of the other output it is seen that golden and EP are wrong alike.
    assert settle(compared.verdict, WHY, compared.outputs, whole, ()).verdict is Verdict.MISMATCH


@pytest.mark.parametrize(("wrong", "verdict"), [(0, None), (1, Verdict.MISMATCH)])
def test_integers_have_one_right_answer(wrong: int, verdict: Verdict | None) -> None:
    right, found = named(np.int64, k=[1, 2, 9]), named(np.int64, k=[1, 2, 3 + wrong])
    compared = compare_all(right, found, table)
    assert compared.verdict
    truth = named(np.int64, k=[1, 2, 3])
    rows = adjudicate(truth, right, found, table, BY)
    expected = witness(truth, right, found)
    assert settle(compared.verdict, WHY, compared.outputs, expected, rows).verdict is verdict
    alone = settle(compared.verdict, WHY, compared.outputs, None, rows).verdict
    assert alone is (Verdict.REFERENCE_DISPUTED if wrong else None)


@given(
    scale=st.floats(1.02, 50),
    golden=st.floats(1e-4, 5e-3),
    seed=st.integers(0, 1 << 30),
    judge=st.sampled_from(["expected", "float64"]),
)
def test_no_dispute_hides_a_result_that_is_clearly_worse(
    scale: float, golden: float, seed: int, judge: str
) -> None:
    random = np.random.default_rng(seed)
    right = TRUTH * (1 + golden * random.choice([-1.0, 1.0], TRUTH.shape))
    found = settled_by(judge, right, TRUTH * scale)
    assert found.verdict is Verdict.MISMATCH
