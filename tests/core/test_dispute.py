"""A disputed golden hides no faulty result."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import Tolerance, default_tolerance
from harness.core.records.reference_answer import Adjudication
from harness.core.values.value import tensor
from harness.core.verdicts.adjudicate import NamedOutputs, adjudicate, reference_distances
from harness.core.verdicts.compare import compare_all
from harness.core.verdicts.dispute import AgainstReference, Resolution, resolve
from harness.core.verdicts.judge_output import judge_rows

RANDOM = np.random.default_rng(3)
TRUTH = RANDOM.normal(size=500)
BY = "float64 on the CPU EP"


def table(dtype: str) -> Tolerance:
    return default_tolerance(dtype, "float32")


def named(dtype: type = np.float32, **arrays: Any) -> NamedOutputs:
    return [(name, tensor(np.asarray(array).astype(dtype))) for name, array in arrays.items()]


def off(size: float) -> Any:
    """The truth with relative errors of one size and alternating sign."""
    return TRUTH * (1 + size * RANDOM.choice([-1.0, 1.0], TRUTH.shape))


def checks(says: NamedOutputs, golden: NamedOutputs, actual: NamedOutputs) -> dict[str, AgainstReference]:
    names = [name for name, _ in golden]
    sides = [
        judge_rows(reference_distances(compare_all(says, of, table), names), Policy())
        for of in (golden, actual)
    ]
    return {one.row.name: AgainstReference(golden=one, ep=ep) for one, ep in zip(*sides, strict=True)}


def resolved(
    golden: Any, actual: Any, expected: Any = None, truth: Any = None, doubt: str = "", *, whole: bool = True
) -> Resolution | None:
    right, found = named(y=golden), named(y=actual)
    rows: Sequence[Adjudication] = ()
    if truth is not None:
        rows = adjudicate(named(np.float64, y=truth), right, found, table, BY)
        rows = [msgspec.structs.replace(row, doubt=doubt) for row in rows]
    says = checks(named(y=expected), right, found) if expected is not None else {}
    outputs = judge_rows(compare_all(right, found, table).outputs, Policy())
    return resolve(outputs, says, rows, whole=whole)


def finding(*arguments: Any, **options: Any) -> str:
    found = resolved(*arguments, **options)
    return "" if found is None else found.finding


def finding_by(judge: str, golden: Any, actual: Any) -> str:
    """With the truth as the only answer that is left."""
    return finding(golden, actual, **{judge: TRUTH})


def test_with_nothing_left_it_stays_open() -> None:
    assert resolved(off(1e-3), off(1e-2)) is None


@pytest.mark.parametrize("times", [7, 67])
@pytest.mark.parametrize("judge", ["expected", "truth", "both"])
def test_an_ep_much_further_off_than_the_disputed_golden_is_wrong(times: int, judge: str) -> None:
    found = resolved(
        off(3e-4),
        off(times * 3e-4),
        expected=TRUTH if judge != "truth" else None,
        truth=TRUTH if judge != "expected" else None,
    )
    assert found is not None
    assert found.finding == "wrong"
    assert (BY if judge == "truth" else "the EP differs from the expected data") in found.reason


@pytest.mark.parametrize("judge", ["expected", "truth"])
@pytest.mark.parametrize("size", [5e-4, 0.6])
def test_an_ep_as_far_off_as_the_golden_is_not_blamed(judge: str, size: float) -> None:
    assert finding_by(judge, off(size), off(1.2 * size)) == ""


def test_an_ep_that_agrees_with_the_expected_data_is_right() -> None:
    found = resolved(off(0.1), off(1e-6), expected=TRUTH)
    assert found == Resolution(finding="right", reason="right by the expected data")
    assert finding(off(1e-6), off(1e-6), expected=TRUTH) == "right"


def test_float64_alone_makes_nothing_right() -> None:
    assert finding_by("truth", off(0.1), off(1e-6)) == ""


def test_one_bad_element_is_seen() -> None:
    actual = off(3e-4)
    actual[7] += 1
    assert finding_by("expected", off(3e-4), actual) == "wrong"
    assert finding_by("truth", off(3e-4), actual) == "wrong"


@pytest.mark.parametrize("judge", ["expected", "truth"])
def test_a_nan_that_the_golden_has_not_is_wrong(judge: str) -> None:
    actual = off(1e-6)
    actual[0] = np.nan
    assert finding_by(judge, off(1e-6), actual) == "wrong"


def test_a_nan_that_the_golden_has_as_well_is_not_blamed() -> None:
    golden, actual = off(3e-4), off(3e-4)
    golden[3] = actual[0] = np.nan
    assert finding_by("expected", golden, actual) == ""


def test_one_nan_more_than_the_golden_has_is_wrong() -> None:
    golden, actual = off(3e-4), off(3e-4)
    golden[3] = actual[0] = actual[3] = np.nan
    assert finding_by("expected", golden, actual) == "wrong"


def test_a_wrong_shape_is_wrong_by_expected_data() -> None:
    assert finding(off(3e-4), TRUTH[None], expected=TRUTH) == "wrong"
    assert finding(off(3e-4)[None], TRUTH, expected=TRUTH) == "right"
    assert finding(off(3e-4)[None], off(0.1), expected=TRUTH) == ""  # the golden is the worse one


def test_answers_that_contradict_each_other_decide_nothing() -> None:
    ep = TRUTH * 1.5
    assert finding(TRUTH, ep, expected=ep) == "right"
    assert finding(TRUTH, ep, expected=ep, truth=TRUTH) == ""
    assert finding(ep, off(1e-6), expected=ep) == "wrong"
    assert finding(ep, off(1e-6), expected=ep, truth=TRUTH) == ""


def test_float64_that_is_doubted_counts_for_nothing() -> None:
    assert finding(off(1e-3), off(0.5), truth=TRUTH) == "wrong"
    assert finding(off(1e-3), off(0.5), truth=TRUTH, doubt="wrong for X-1") == ""


def test_an_output_of_which_nothing_is_known_makes_nothing_right() -> None:
    golden = named(y=off(0.1), z=TRUTH * 1.5)
    actual = named(y=TRUTH, z=TRUTH * 1.5)
    outputs = judge_rows(compare_all(golden, actual, table).outputs, Policy())
    says = checks(named(y=TRUTH, z=TRUTH), golden, actual)
    only_y = {"y": says["y"]}
    assert resolve(outputs, only_y, (), whole=True) is None
    assert resolve(outputs, says, (), whole=True) is None  # golden and EP are wrong alike in z
    # Where the dispute is about the outputs that fail, the golden judges the others.
    assert resolve(outputs, only_y, (), whole=False) is not None


@pytest.mark.parametrize(("wrong", "words"), [(0, "right"), (1, "")])
def test_integers_have_one_right_answer(wrong: int, words: str) -> None:
    right, found = named(np.int64, k=[1, 2, 9]), named(np.int64, k=[1, 2, 3 + wrong])
    truth = named(np.int64, k=[1, 2, 3])
    outputs = judge_rows(compare_all(right, found, table).outputs, Policy())
    rows = adjudicate(truth, right, found, table, BY)
    result = resolve(outputs, checks(truth, right, found), rows, whole=True)
    assert ("" if result is None else result.finding) == words


@given(
    scale=st.floats(1.05, 50),
    golden=st.floats(1e-4, 5e-3),
    seed=st.integers(0, 1 << 30),
    judge=st.sampled_from(["expected", "truth"]),
)
def test_no_dispute_hides_a_result_that_is_much_worse(
    scale: float, golden: float, seed: int, judge: str
) -> None:
    random = np.random.default_rng(seed)
    right = TRUTH * (1 + golden * random.choice([-1.0, 1.0], TRUTH.shape))
    assert finding_by(judge, right, TRUTH * scale) == "wrong"
