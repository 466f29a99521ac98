"""Whether references dispute a golden; and that they excuse no faulty result."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.comparison import wording
from harness.core.comparison.tolerance import Tolerance, default_tolerance
from harness.core.records.reference_answer import EXPECTED, REFERENCE, Adjudication, Reference
from harness.core.values.value import Value, tensor
from harness.core.verdicts.adjudicate import NamedOutputs, adjudicate, beyond_uncertainty, reference_distances
from harness.core.verdicts.compare import compare_all
from harness.core.verdicts.dispute import check_golden

RANDOM = np.random.default_rng(5)
TRUTH = RANDOM.normal(size=1000)
BY = "float64"


def table(dtype: str) -> Tolerance:
    return default_tolerance(dtype, "float32")


def one(array: Any, dtype: type = np.float32) -> list[tuple[str, Value]]:
    return [("y", tensor(np.asarray(array).astype(dtype)))]


def noise(size: float) -> Any:
    return TRUTH * (1 + size * RANDOM.uniform(-1, 1, TRUTH.shape))


@dataclasses.dataclass
class Trial:
    """A golden, the result of an EP, and the truth."""

    golden: Any
    actual: Any
    truth: Any = None

    def reference(self, name: str, says: Any, *, is_golden_again: bool = False) -> Reference:
        golden = compare_all(one(says), one(self.golden), table)
        ep = compare_all(one(says), one(self.actual), table)
        compared = compare_all(one(self.golden), one(self.actual), table)
        return Reference(
            name=name,
            golden=reference_distances(golden, "y"),
            ep=reference_distances(ep, "y"),
            is_golden_again=is_golden_again,
            dwarfed=beyond_uncertainty(golden, compared, ep) if is_golden_again else (),
        )

    def disputed(self, *references: Reference) -> tuple[str, str]:
        compared = compare_all(one(self.golden), one(self.actual), table)
        assert compared.verdict
        rows: Sequence[Adjudication] = ()
        if self.truth is not None:
            rows = adjudicate(one(self.truth, np.float64), one(self.golden), one(self.actual), table, BY)
        found = check_golden(compared, references, rows)
        return ": ".join(filter(None, (found.disputed, found.difference))), found.note


def test_without_references_the_verdict_stands() -> None:
    assert Trial(TRUTH, TRUTH * 1.1).disputed() == ("", "")


def test_a_reference_that_agrees_with_the_ep_alone_disputes_the_golden() -> None:
    trial = Trial(golden=TRUTH * 1.1, actual=noise(1e-6))
    disputed, _ = trial.disputed(trial.reference("onnx.reference", TRUTH))
    assert disputed.startswith("the EP agrees with onnx.reference, the golden does not: ")
    assert " of 1,000 elements of 'y', by 0." in disputed


def test_a_reference_that_agrees_with_the_golden_ends_it() -> None:
    trial = Trial(golden=TRUTH, actual=TRUTH * 1.1, truth=TRUTH * 1.1)
    confirms, sides = trial.reference("expected", noise(1e-6)), trial.reference("onnx.reference", TRUTH * 1.1)
    assert trial.disputed(confirms, sides) == ("", "")
    assert trial.disputed(sides, confirms)[0]


def test_a_reference_alone_is_odd() -> None:
    trial = Trial(golden=TRUTH, actual=TRUTH * 1.1)
    assert trial.disputed(trial.reference("onnx.reference", -TRUTH)) == (
        "",
        "onnx.reference agrees with neither",
    )


def test_an_uncertain_golden_excuses_what_its_uncertainty_explains() -> None:
    golden = noise(1e-3)
    for actual, is_excused in ((noise(1e-3), True), (noise(0.5), False), (np.full(1000, np.nan), False)):
        trial = Trial(golden, actual)
        again = trial.reference("the CPU EP without optimizations", noise(1e-3), is_golden_again=True)
        assert bool(trial.disputed(again)[0]) == is_excused
    sure = trial.reference("the CPU EP without optimizations", golden, is_golden_again=True)
    assert trial.disputed(sure) == ("", "")


def test_a_result_nearer_to_float64_than_its_golden_is_excused() -> None:
    disputed, _ = Trial(golden=noise(1e-2), actual=noise(1e-4), truth=TRUTH).disputed()
    assert "output 'y' of the EP is nearer to float64 than the golden is: relative error " in disputed


def test_a_golden_that_is_no_answer_fails_no_ep() -> None:
    garbage = -TRUTH
    assert (
        Trial(golden=garbage, actual=TRUTH[::-1], truth=TRUTH)
        .disputed()[0]
        .startswith("output 'y' of the golden is as far from float64 as the EP's is: relative error ")
    )
    assert Trial(golden=garbage, actual=TRUTH * 100, truth=TRUTH).disputed() == ("", "")
    assert Trial(golden=TRUTH * 0.9, actual=-TRUTH, truth=TRUTH).disputed() == ("", "")
    trial = Trial(golden=garbage, actual=TRUTH[::-1], truth=TRUTH)
    assert trial.disputed(trial.reference("onnx.reference", -TRUTH)) == ("", "")


def test_float64_excuses_no_wrong_shape_and_no_wrong_nan() -> None:
    nan = TRUTH.copy()
    nan[0] = np.nan
    assert Trial(golden=noise(1e-2), actual=nan, truth=TRUTH).disputed() == ("", "")
    assert Trial(golden=nan, actual=TRUTH, truth=TRUTH).disputed() == ("", "")
    assert Trial(golden=noise(1e-2), actual=TRUTH[None], truth=TRUTH).disputed() == ("", "")


def test_outputs_that_did_not_fail_count_nothing() -> None:
    good, bad = tensor(TRUTH.astype(np.float32)), tensor((TRUTH * 1.1).astype(np.float32))
    golden: NamedOutputs = [("a", good), ("b", good)]
    actual: NamedOutputs = [("a", bad), ("b", good)]
    says: NamedOutputs = [("a", good), ("b", bad)]
    reference = Reference(
        name="w",
        golden=reference_distances(compare_all(says, golden, table), "ab"),
        ep=reference_distances(compare_all(says, actual, table), "ab"),
    )
    assert not check_golden(compare_all(golden, actual, table), [reference], ()).disputed


FAULTS: dict[str, Callable[[Any], Any]] = {
    "scaled": lambda y: y * 1.01,
    "last tile": lambda y: np.where(np.arange(y.size) >= y.size - 8, y * 1.1, y),
    "one element": lambda y: np.where(np.arange(y.size) == 3, y + 1, y),
    "zeros": np.zeros_like,
    "shifted": lambda y: np.roll(y, 1),
    "saturated": lambda y: np.clip(y, -1, 1),
    "negated": lambda y: -y,
}


@given(
    name=st.sampled_from(sorted(FAULTS)),
    noises=st.lists(st.floats(1e-8, 1e-6), min_size=3, max_size=3),
    seed=st.integers(0, 1 << 30),
)
def test_no_planted_fault_is_excused(name: str, noises: list[float], seed: int) -> None:
    random = np.random.default_rng(seed)
    truth = random.normal(size=200)
    golden, again, result = (truth * (1 + size * random.uniform(-1, 1, truth.shape)) for size in noises)
    trial = Trial(golden=golden, actual=FAULTS[name](result), truth=truth)
    references = (
        trial.reference("onnx.reference", truth),
        trial.reference("again", again, is_golden_again=True),
    )
    for asked in (references, references[1:], ()):
        assert trial.disputed(*asked)[0] == ""


@pytest.mark.parametrize(
    ("says", "golden", "words"),
    [
        ([1.0, 2.0], [1.0, 2.5], "1 of 2 elements of 'y', by 0.5 at most"),
        ([1.0, 2.0], [1.0, np.inf], "1 of 2 elements of 'y'"),
        ([1.0, 2.0], [1.0], "output 'y' has another shape or type"),
        ([1.0, 2.0], [1.0, 2.0], ""),
    ],
)
def test_the_first_difference_of_two_answers(says: Any, golden: Any, words: str) -> None:
    assert wording.first_difference(compare_all(one(says), one(golden), table).outputs) == words


# --- references that are not believed alone ---

DOUBT = "it is wrong, or not checked, for LRN-13"
BOTH = "onnx.reference agrees with the EP, but is not believed alone: "


def doubted(reference: Reference) -> Reference:
    return msgspec.structs.replace(reference, doubt=DOUBT)


def with_doubt(trial: Trial, *references: Reference, doubt: str = "") -> tuple[str, str]:
    """The check of the golden, with a float64 answer that may be doubted."""
    compared = compare_all(one(trial.golden), one(trial.actual), table)
    assert compared.verdict
    rows: Sequence[Adjudication] = ()
    if trial.truth is not None:
        rows = adjudicate(one(trial.truth, np.float64), one(trial.golden), one(trial.actual), table, BY)
    found = check_golden(compared, references, [msgspec.structs.replace(row, doubt=doubt) for row in rows])
    return found.disputed, found.note


def test_a_doubted_reference_alone_disputes_nothing() -> None:
    trial = Trial(golden=TRUTH, actual=TRUTH * 1.6)
    sides = trial.reference(REFERENCE, TRUTH * 1.6)
    assert with_doubt(trial, sides)[0]
    assert with_doubt(trial, doubted(sides)) == ("", BOTH + DOUBT)


def test_the_reference_alone_against_both_levels_of_optimization_disputes_nothing() -> None:
    trial = Trial(golden=TRUTH, actual=TRUTH * 1.6)
    sides = trial.reference(REFERENCE, TRUTH * 1.6)
    note = BOTH + "the CPU EP contradicts it at both levels of optimization"
    for again in (noise(1e-6), noise(2e-2)):
        assert with_doubt(trial, sides, trial.reference("again", again, is_golden_again=True)) == ("", note)
    # One level has the reference's answer: the optimizations are at fault.
    assert with_doubt(trial, sides, trial.reference("again", TRUTH * 1.6, is_golden_again=True))[0]
    # The makers of the model, and the CPU EP of the target's own runtime, are believed.
    again = trial.reference("again", noise(1e-6), is_golden_again=True)
    for name in (EXPECTED, "the CPU EP of the target's own runtime"):
        assert with_doubt(trial, trial.reference(name, TRUTH * 1.6), again)[0]


def test_a_second_reference_beside_a_doubted_one_disputes() -> None:
    trial = Trial(golden=TRUTH * 1.6, actual=TRUTH)
    sides = doubted(trial.reference(REFERENCE, TRUTH))
    again = trial.reference("again", noise(1e-6), is_golden_again=True)
    expected = trial.reference(EXPECTED, TRUTH)
    assert with_doubt(trial, expected, sides)[0].startswith("the EP agrees with the expected data")
    assert with_doubt(trial, sides, again)[0].startswith("the EP agrees with again")
    trial = Trial(golden=TRUTH * 1.6, actual=TRUTH, truth=TRUTH)
    assert "of the EP is nearer to float64" in with_doubt(trial, sides)[0]


def test_a_doubted_float64_answer_disputes_nothing() -> None:
    trial = Trial(golden=TRUTH, actual=TRUTH * 1.6, truth=TRUTH * 1.6)
    sides = doubted(trial.reference(REFERENCE, TRUTH * 1.6))
    assert with_doubt(trial, sides, doubt=DOUBT) == ("", BOTH + DOUBT)
    assert with_doubt(trial, doubt=DOUBT) == ("", "")
    assert with_doubt(trial)[0]
    no_answer = Trial(golden=-TRUTH, actual=TRUTH[::-1], truth=TRUTH)
    assert with_doubt(no_answer)[0]
    assert with_doubt(no_answer, doubt=DOUBT) == ("", "")


def test_float64_that_sides_with_the_golden_contradicts_the_reference() -> None:
    trial = Trial(golden=noise(1e-6), actual=TRUTH * 1.6, truth=TRUTH)
    sides = trial.reference(REFERENCE, TRUTH * 1.6)
    assert with_doubt(trial, sides) == ("", BOTH + "float64 is nearer to the golden")
    # Expected data are no computation: a CPU kernel may be wrong in both precisions.
    assert with_doubt(trial, trial.reference(EXPECTED, TRUTH * 1.6))[0]
    assert with_doubt(trial, sides, doubt=DOUBT)[0]  # doubted float64 contradicts nothing


@given(
    name=st.sampled_from(sorted(FAULTS)),
    seed=st.integers(0, 1 << 30),
    has_doubt=st.booleans(),
    has_truth=st.booleans(),
)
def test_a_reference_with_the_fault_of_the_ep_excuses_nothing(
    name: str, seed: int, *, has_doubt: bool, has_truth: bool
) -> None:
    random = np.random.default_rng(seed)
    truth = random.normal(size=200)
    golden, again, result = (truth * (1 + 1e-7 * random.uniform(-1, 1, truth.shape)) for _ in range(3))
    faulty = FAULTS[name](result)
    trial = Trial(golden, faulty, truth=truth if has_truth else None)
    sides = trial.reference(REFERENCE, faulty)
    asked = [trial.reference("again", again, is_golden_again=True)] if not has_doubt else []
    assert with_doubt(trial, doubted(sides) if has_doubt else sides, *asked)[0] == ""
