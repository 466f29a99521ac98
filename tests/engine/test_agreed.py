"""Answers of tasks in facts: by default, as the matrix asks, over all data sets, with ties by noise."""

from typing import Any

import numpy as np
import pytest

from harness.core.agreement.agreement import Agreement
from harness.core.noise.spread import Spread
from harness.core.records.facts import Facts
from harness.core.records.verdict import Cause
from harness.core.values.value import Array, NamedValues, tensor
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.case import Case
from harness.corpus.model.origins import Origins
from harness.corpus.model.port import ValueType
from harness.engine.answers.evidence import CellRule, Evidence
from harness.engine.measuring.agreement_measure import with_agreement
from harness.engine.tasks.outcome import Ran, Unavailable
from harness.golden.golden_answer import Golden
from tests.kit import bare_case, model_facts, placement_of

SCORES = np.array([[3, 2, 1], [1, 3, 2]], np.float32)
OTHERS = np.array([[3, 2, 1], [3, 1, 2]], np.float32)


def case(tasks: dict[str, str] | None = None, heads: dict[str, Any] | None = None, **facts: Any) -> Case:
    return bare_case(
        outputs=("y", "z"),
        output_types=(ValueType(kind="tensor"),) * 2,
        data_sets=(DataSet(name="0", inputs=(), expected=()),),
        rtol=1e-3,
        atol=1e-7,
        digest="0",
        tasks=tasks or {},
        facts=model_facts(
            opsets={"": 17}, nodes=2, float_types=frozenset({"float32"}), heads=heads or {}, **facts
        ),
    )


def outputs(**arrays: Array) -> NamedValues:
    return tuple((name, tensor(array)) for name, array in arrays.items())


def measured(
    of: Case,
    golden: list[NamedValues],
    actual: list[NamedValues],
    rule: CellRule | None = None,
    **evidence: Any,
) -> tuple[Agreement, ...]:
    ran = Ran(
        outputs=tuple(actual),
        placement=placement_of({}, ep_nodes=1, partitions=1),
        timings_ms={},
    )
    known = Evidence(golden=Golden(status="ok", outputs=tuple(golden)), **evidence)
    return with_agreement(Facts(), of, ran, known, rule or CellRule()).agreement


GOLDEN, ACTUAL = outputs(y=SCORES), outputs(y=OTHERS)
HALF = Agreement(output="y", kind="top1", same=1, of=2)


def test_a_network_has_a_task_by_default_and_an_operator_has_none() -> None:
    assert measured(case(heads={"y": "linear"}), [GOLDEN], [ACTUAL]) == (HALF,)
    assert measured(case(), [GOLDEN], [ACTUAL]) == ()


def test_a_task_that_is_asked_for_needs_no_network() -> None:
    assert measured(case({"": "top1"}), [GOLDEN], [ACTUAL]) == (HALF,)
    assert measured(case({"y": "threshold:2.5"}), [GOLDEN], [ACTUAL])[0].same == 4


def test_a_task_that_is_asked_for_stands_for_the_default() -> None:
    both = {"y": "linear", "z": "linear"}
    golden, actual = outputs(y=SCORES, z=SCORES), outputs(y=OTHERS, z=SCORES)
    found = measured(case({"": "threshold:9"}, both), [golden], [actual])
    assert [(one.output, one.kind) for one in found] == [("y", "threshold:9"), ("z", "top1")]
    assert measured(case({"y": "none"}, both), [golden], [actual])[0].output == "z"
    assert measured(case({"": "none"}, both), [golden], [actual]) == ()


def test_data_sets_are_added_up() -> None:
    found = measured(case({"": "top1"}), [GOLDEN, GOLDEN], [GOLDEN, ACTUAL])
    assert found == (Agreement(output="y", kind="top1", same=3, of=4),)


def noise(spread: float, precision: str = "float32") -> Spread:
    return Spread(precision=precision, outputs=({"y": np.full(SCORES.shape, spread)},) * 2)


def test_the_noise_of_the_model_makes_ties() -> None:
    near = outputs(y=np.array([[3, 2, 1], [1, 3, 2.9]], np.float32))
    other = outputs(y=np.array([[3, 2, 1], [1, 2.9, 3]], np.float32))
    assert measured(case({"": "top1"}), [near], [other])[0].tied == 0
    assert measured(case({"": "top1"}), [near], [other], noise=noise(0.02))[0].tied == 1
    # Of another data set, too.
    assert measured(case({"": "top1"}), [near] * 2, [near, other], noise=noise(0.001))[0].tied == 0


def test_the_noise_of_a_coarser_precision_is_that_of_the_golden_by_the_ratio() -> None:
    near = outputs(y=np.array([[3, 2.9, 1]], np.float32))
    other = outputs(y=np.array([[2.9, 3, 1]], np.float32))
    spread = Spread(precision="bfloat16", outputs=({"y": np.full((1, 3), 0.5)},))
    assert measured(case({"": "top1"}), [near], [other], noise=spread)[0].tied == 0


@pytest.mark.parametrize(
    ("golden", "actual"),
    [
        (GOLDEN, outputs(y=OTHERS[:1])),
        (GOLDEN, outputs(z=OTHERS)),
        (outputs(y=np.array(1, np.float32)), outputs(y=np.array(1, np.float32))),
        ((("y", None),), ACTUAL),
    ],
)
def test_what_cannot_be_compared_has_a_reason_if_it_was_asked_for_and_else_nothing(
    golden: NamedValues, actual: NamedValues
) -> None:
    (found,) = measured(case({"": "top1"}), [golden], [actual])
    assert found.failed
    assert found.of == 0
    assert measured(case(heads={"y": "linear"}), [golden], [actual]) == ()


def test_boxes_are_found_with_their_scores() -> None:
    boxes = np.array([[0, 0, 9, 9], [20, 20, 30, 30]], np.float32)
    golden = outputs(y=np.array([0.9, 0.8], np.float32), z=boxes)
    actual = outputs(y=np.array([0.8, 0.9], np.float32), z=boxes + 1)
    found = measured(case({"": "boxes"}), [golden], [actual])
    assert found == (Agreement(output="z", kind="boxes", same=2, of=2),)


def test_random_numbers_and_generated_text_have_none() -> None:
    by_chance = case({"": "top1"}, origins=Origins(by_chance=("RandomNormal",)))
    assert measured(by_chance, [GOLDEN], [ACTUAL]) == ()
    played: Any = "what a cell of the scenario plays"
    assert measured(case({"": "top1"}), [GOLDEN], [ACTUAL], CellRule(generation=played)) == ()


def test_a_converted_model_is_compared_with_the_model_before() -> None:
    full = Golden(status="ok", outputs=(GOLDEN,))
    assert measured(case({"": "top1"}), [ACTUAL], [ACTUAL], full=full) == (HALF,)


def test_without_a_golden_there_is_no_figure() -> None:
    gone = Unavailable(cause=Cause.NO_DEVICE, reason="")
    assert with_agreement(Facts(), case({"": "top1"}), gone, Evidence(), CellRule()).agreement == ()
    refused = Evidence(golden=Golden(status="refused"))
    found = with_agreement(Facts(), case({"": "top1"}), _ran(), refused, CellRule())
    assert found.agreement == ()


def _ran() -> Ran:
    placed = placement_of({}, ep_nodes=1, partitions=1)
    return Ran(outputs=(ACTUAL,), placement=placed, timings_ms={})
