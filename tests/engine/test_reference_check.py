"""Which references of a golden count, and that their names are those of the comparison."""

import functools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pytest

from harness.core.comparison.tolerance import Tolerance, default_tolerance
from harness.core.records.reference_answer import Adjudication
from harness.core.values.value import Value, tensor
from harness.core.verdicts.dispute import GoldenCheck, check_golden
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.case import Case
from harness.corpus.model.port import ValueType
from harness.engine.answers.compare_sets import compare_sets
from harness.engine.answers.evidence import Evidence
from harness.engine.measuring.reference_check import check_references
from harness.engine.tasks.task import QuestionKind
from harness.golden.golden_answer import Golden
from tests.kit import bare_case, model_facts

Outputs = tuple[tuple[tuple[str, Value], ...], ...]


def table(dtype: str) -> Tolerance:
    return default_tolerance(dtype, "float32")


def outputs(*numbers: float, dtype: type = np.float32) -> Outputs:
    """One data set for each number."""
    return tuple((("y", tensor(np.full(3, number, dtype))),) for number in numbers)


def golden(*numbers: float, dtype: type = np.float32) -> Golden:
    return Golden(status="ok", outputs=outputs(*numbers, dtype=dtype))


def case(expected: Outputs = ((), ())) -> Case:
    facts = model_facts()
    return bare_case(
        outputs=("y",),
        output_types=(ValueType(kind="tensor"),),
        data_sets=tuple(
            DataSet(name=str(number), inputs=(), expected=one) for number, one in enumerate(expected)
        ),
        facts=facts,
    )


class Checked(NamedTuple):
    """What the references come to."""

    ruling: GoldenCheck
    adjudication: tuple[Adjudication, ...]


def checked(
    right: Outputs,
    found: Outputs,
    references: dict[QuestionKind, Golden],
    expected: Outputs = ((), ()),
    doubts: Mapping[QuestionKind, str] = {},
) -> Checked:
    compared = compare_sets(right, found, table)
    assert compared.verdict
    known = functools.partial(compare_sets, tolerance_for=table, only_known=True)
    evidence = Evidence(references=references, doubts=doubts)
    check = check_references(case(expected), right, found, compared.outputs, evidence, known, "float32")
    assert check is not None
    return Checked(check_golden(compared, check.references, check.adjudication), check.adjudication)


GOLDEN, FOUND = outputs(1, 2), outputs(1, 3)


def test_nobody_has_anything_to_say() -> None:
    refused = Golden(status="refused", message="no kernel")
    check = checked(
        GOLDEN,
        FOUND,
        {QuestionKind.EVALUATED: refused, QuestionKind.FLOAT64: refused, QuestionKind.UNOPTIMIZED: refused},
    )
    assert (check.ruling.disputed, check.ruling.note, check.adjudication) == (
        "",
        "",
        (),
    )


@pytest.mark.parametrize("who", [QuestionKind.EVALUATED, QuestionKind.UNOPTIMIZED])
def test_whoever_agrees_with_the_ep_disputes_the_golden(who: QuestionKind) -> None:
    check = checked(GOLDEN, FOUND, {who: golden(1, 3)})
    assert check.ruling.disputed.startswith("the EP agrees with ")
    assert "of '1/y', by 1 at most" in check.ruling.difference


def test_expected_data_go_before_all_others() -> None:
    check = checked(
        GOLDEN,
        FOUND,
        {QuestionKind.EVALUATED: golden(1, 3), QuestionKind.FLOAT64: golden(1, 3, dtype=np.float64)},
        GOLDEN,
    )
    assert check.ruling.disputed == ""
    check = checked(GOLDEN, FOUND, {QuestionKind.EVALUATED: golden(1, 2)}, FOUND)
    assert "the EP agrees with the expected data" in check.ruling.disputed


def test_expected_data_that_lack_the_failed_output_are_not_checked() -> None:
    check = checked(GOLDEN, FOUND, {QuestionKind.EVALUATED: golden(1, 3)}, (GOLDEN[0], ()))
    assert "onnx.reference" in check.ruling.disputed


def test_float64_is_told_for_each_output_and_by_whom() -> None:
    truth = golden(1, 3, dtype=np.float64)
    check = checked(GOLDEN, FOUND, {QuestionKind.FLOAT64: truth})
    rows = [(row.output, row.by, row.nearer) for row in check.adjudication]
    assert rows == [("y", "float64 on the CPU EP", "equal"), ("1/y", "float64 on the CPU EP", "ep")]
    assert "nearer to float64 on the CPU EP than the golden is" in check.ruling.disputed
    refused = Golden(status="refused", message="no kernel")
    second = checked(
        GOLDEN,
        FOUND,
        {QuestionKind.FLOAT64: refused, QuestionKind.FLOAT64_EVALUATED: golden(1, 2, dtype=np.float64)},
    )
    assert [row.by for row in second.adjudication] == ["float64, node by node"] * 2
    assert (second.adjudication[1].nearer, second.ruling.disputed) == ("golden", "")


def test_a_doubt_reaches_the_answer_that_it_is_about() -> None:
    refused = Golden(status="refused", message="no kernel")
    doubts = {QuestionKind.EVALUATED: "wrong for A-1", QuestionKind.FLOAT64: "wrong for B-1"}
    answers = {
        QuestionKind.EVALUATED: golden(1, 3),
        QuestionKind.UNOPTIMIZED: golden(1, 2),
        QuestionKind.FLOAT64_EVALUATED: golden(1, 3, dtype=np.float64),
    }
    check = checked(GOLDEN, FOUND, {QuestionKind.EVALUATED: golden(1, 3)}, doubts=doubts)
    assert "not believed alone: wrong for A-1" in check.ruling.note
    assert {row.doubt for row in checked(GOLDEN, FOUND, answers, doubts=doubts).adjudication} == {""}
    by_reference = answers | {
        QuestionKind.FLOAT64_EVALUATED: refused,
        QuestionKind.FLOAT64: golden(1, 3, dtype=np.float64),
    }
    check = checked(GOLDEN, FOUND, by_reference, doubts=doubts)
    assert {row.doubt for row in check.adjudication} == {"wrong for B-1"}
    assert check.ruling.disputed == ""
