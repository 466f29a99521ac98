"""What the judgement of a run with other inputs asks for, and what it leaves in doubt."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Phase, Verdict
from harness.core.values.value import Tensor, tensor
from harness.corpus.caches.cache import ENVIRONMENT
from harness.corpus.case import Case
from harness.corpus.derived.scenario_case import Inapplicable
from harness.engine.answers.other_inputs_case import with_other_inputs
from harness.engine.tasks.outcome import Died, Ending, Raised, Ran
from harness.engine.tasks.task import CellTask, QuestionKind
from tests.engine.test_next_step import ON_THE_EP, Court, computed, off_by

Array = np.ndarray[Any, Any]
RIGHT = off_by(0)
HEAD = '<ir_version: 9, opset_import: ["" : 17]>'

ON_RUN = Phase.RUN


@pytest.fixture(autouse=True)
def _isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))


def judge(
    court: Court, other: Callable[[Array], Array], first: Callable[[Array], Array] = RIGHT, error: str = ""
) -> Record:
    """The record of a cell whose EP gives what two functions make of the CPU EP's two answers.

    With an ``error`` it raises that for other inputs.
    """
    task = CellTask(cell=court.cells[0])
    court.pipeline.open += 1
    while court.pipeline.questions.awaits(task):
        court.settle()
    case = court.pipeline.case(task)
    assert isinstance(case, Case)
    others = with_other_inputs(case)
    assert isinstance(others, Case)
    outputs = [
        tuple(
            (name, tensor(change(value.array).astype(value.array.dtype)))
            for name, value in computed(one).outputs[0]
            if isinstance(value, Tensor)
        )
        for one, change in ((case, first), (others, other))
    ]
    given = None if error else outputs[1]
    ran = Ran(outputs=(outputs[0],), other=given, other_error=error, placement=ON_THE_EP, timings_ms={})
    court.pipeline.conclude(task, ran)
    court.settle()
    assert court.pipeline.open == 0
    return court.records[-1]


def give(folder: Path) -> None:
    """Give the model an input whose first row is positive, and its last one negative."""
    inputs = np.ones((4, 64), np.float32)
    inputs[-1] = -2
    data = folder / "models" / "test_data_set_0"
    data.mkdir(parents=True)
    (data / "input_0.pb").write_bytes(onnx.numpy_helper.from_array(inputs, "x").SerializeToString())


def test_equal_bits_ask_for_no_more_than_the_two_goldens(tmp_path: Path) -> None:
    court = Court(tmp_path)
    record = judge(court, RIGHT)
    assert record.verdict is Verdict.PASS
    assert (record.other, record.other_check) == ((), None)
    # The golden of this test has none for other inputs; an agent gives both at once.
    assert sorted(court.asked) == ["answer", "answer", "zeroed"]


def test_rounding_asks_for_the_noise_of_these_inputs_once(tmp_path: Path) -> None:
    court = Court(tmp_path)
    record = judge(court, off_by(3e-7))
    assert record.verdict is Verdict.PASS
    assert court.asked.count(QuestionKind.NOISE) == 1
    ((row,), check) = record.other, record.other_check
    assert row.noise is not None
    assert row.noise.rms > 0.2
    assert check is not None
    assert check.answered == ("noise",)
    again = Court(tmp_path)  # all is kept beside the golden of these inputs
    assert judge(again, off_by(3e-7)).other == record.other
    assert again.asked == []


def test_a_small_error_fails_as_it_does_for_the_first_inputs(tmp_path: Path) -> None:
    first = judge(Court(tmp_path), RIGHT, off_by(1e-3))
    other = judge(Court(tmp_path), off_by(1e-3))
    assert first.verdict is other.verdict is Verdict.MISMATCH
    assert other.reason.startswith("for other inputs in the same session: output 'y': ")
    assert other.other_check is not None
    assert other.other_check.reference_check is not None
    assert first.other == ()  # of a wrong answer nothing more is asked


def test_a_golden_that_references_dispute_for_these_inputs_accuses_nobody(tmp_path: Path) -> None:
    court = Court(tmp_path)

    def wrong_for_others(case: Case) -> Ending:
        answer = computed(case)
        if case.data_sets[0].name != "other":
            return answer
        ((name, value),) = answer.outputs[0]
        assert isinstance(value, Tensor)
        bent = tensor((value.array * 1.25).astype(value.array.dtype))
        return Ran(outputs=(((name, bent),),), placement=ON_THE_EP, timings_ms={})

    court.answers["answer"] = court.answers["repeated"] = wrong_for_others
    record = judge(court, RIGHT)
    assert record.verdict is Verdict.PASS, record.reason
    assert record.other[0].mismatched
    assert record.other_check is not None
    assert record.other_check.reference_check is not None


def test_a_golden_that_another_process_does_not_repeat_accuses_nobody(tmp_path: Path) -> None:
    court = Court(tmp_path)
    seen: list[int] = []

    def varies(case: Case) -> Ending:
        answer = computed(case)
        seen.append(1)
        ((name, value),) = answer.outputs[0]
        assert isinstance(value, Tensor)
        bent = tensor((value.array * (1 + 0.1 * len(seen))).astype(value.array.dtype))
        return Ran(outputs=(((name, bent),),), placement=ON_THE_EP, timings_ms={})

    court.answers["repeated"] = varies
    record = judge(court, off_by(0.2))
    assert record.verdict is Verdict.PASS, record.reason
    assert record.other_check is not None
    assert record.other_check.dispute


def refuses_others(case: Case) -> Ending:
    if case.data_sets[0].name != "other":
        return computed(case)
    return Raised(phase=ON_RUN, kind="InvalidArgument", message="indices out of range", data_set=0)


def dies_of_others(case: Case) -> Ending:
    return computed(case) if case.data_sets[0].name != "other" else Died(phase=ON_RUN, cause="SIGSEGV")


@pytest.mark.parametrize(
    ("answer", "why"), [(refuses_others, "indices out of range"), (dies_of_others, "crashed: SIGSEGV")]
)
def test_inputs_that_the_cpu_ep_does_not_take_are_told_and_not_judged(
    tmp_path: Path, answer: Callable[[Case], Ending], why: str
) -> None:
    court = Court(tmp_path)
    court.answers["answer"] = answer
    record = judge(court, off_by(0.5))
    assert record.verdict is Verdict.PASS
    assert record.other == ()
    assert record.other_check is not None
    assert why in record.other_check.unchecked


def test_a_nan_that_only_other_inputs_cause_is_told_and_not_judged(tmp_path: Path) -> None:
    model = f"""{HEAD} agraph (float[4, 64] x) => (float[1, 64] y) {{
        first = Constant<value_ints = [0]>() p = Gather(x, first) s = Sqrt(p) y = Identity(s) }}"""
    court = Court(tmp_path, model)
    give(tmp_path)
    record = judge(court, off_by(0.5))
    assert record.verdict is Verdict.PASS
    assert record.other == ()
    assert record.other_check is not None
    assert record.other_check.unchecked.endswith("for other inputs alone: y")


def test_values_that_onnx_leaves_undefined_for_these_inputs_accuse_nobody(tmp_path: Path) -> None:
    model = f"""{HEAD} agraph (float[4, 64] x) => (uint8[1, 64] y) {{
        first = Constant<value_ints = [0]>() p = Gather(x, first) y = Cast<to = 2>(p) }}"""
    court = Court(tmp_path, model)
    give(tmp_path)
    record = judge(court, lambda right: right + 1)
    assert record.verdict is Verdict.PASS
    assert record.other[0].mismatched
    assert record.other_check is not None
    assert "-2" in record.other_check.undefined["y"]


def test_only_an_only_data_set_has_other_inputs(tmp_path: Path) -> None:
    court = Court(tmp_path)
    case = court.pipeline.case(CellTask(cell=court.cells[0]))
    assert isinstance(case, Case)
    others = with_other_inputs(case)
    assert isinstance(others, Case)
    assert others.digest != case.digest
    twice = msgspec.structs.replace(case, data_sets=case.data_sets * 2)
    assert isinstance(with_other_inputs(twice), Inapplicable)


@pytest.mark.parametrize(
    ("error", "cpu", "told"),
    [
        ("Fail: no kernel", computed, ""),
        ("Fail: no kernel", refuses_others, "refused, by the CPU EP, too: Fail: no kernel"),
        (
            "Fail: Failed to allocate memory",
            computed,
            "refused, out of memory: Fail: Failed to allocate memory",
        ),
    ],
)
def test_an_error_for_other_inputs_is_the_eps_where_the_cpu_ep_computes_them(
    tmp_path: Path, error: str, cpu: Callable[[Case], Ending], told: str
) -> None:
    court = Court(tmp_path)
    court.answers["answer"] = cpu
    record = judge(court, RIGHT, error=error)
    assert record.other_check is not None
    assert record.other_check.unchecked == told
    if told:
        assert record.verdict is Verdict.PASS
    else:
        assert record.verdict is Verdict.ERROR
        assert record.reason == "for other inputs in the same session it raises Fail: no kernel"
