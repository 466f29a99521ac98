"""The check, with a lab that gives what a test wants."""

from collections.abc import Sequence
from typing import Any

import onnx.parser
import pytest

from harness.annex.triage.failure_check import FailureCheck, failing_outputs
from harness.annex.triage.lab import Seen, Trial
from harness.annex.triage.signature import AT_FIRST_RUN
from harness.annex.triage.subject import Subject
from harness.core.comparison.output_metrics import Noise, OutputDetails, OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.records.cell_end import CellEnd
from harness.core.records.facts import OtherCheck
from harness.core.records.fault import Signature
from harness.core.records.record import Record
from harness.core.records.verdict import Phase, Verdict
from tests.kit import cpu_record, placement_of

ON_EP = placement_of({"Relu": 1})


def subject_of(name: str) -> Subject:
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[2] x) => (float[2] {name}) {{ [node_{name}] {name} = Relu (x) }}""")
    return Subject(model=model.SerializeToString(), inputs=())


def row(name: str = "y", *, error: float = 0.0, noise: float = 1.0, mismatched: int = 0) -> OutputMetrics:
    return OutputMetrics(
        name=name,
        dtype="float32",
        shape=(2,),
        elements=2,
        max_abs=error,
        mismatched=mismatched,
        frontier=((1e-5, error), (10.0, 0.0)),
        delivered_bits=10.0 if error else None,
        noise=Noise(precision="float32", rms=noise, max=noise, like="float32"),
        details=OutputDetails(message="all differ") if error else None,
    )


class FakeLab:
    def __init__(self, answers: dict[str, list[Record]]) -> None:
        self.answers = answers
        self.calls: list[list[Trial]] = []

    def run(self, trials: Sequence[Trial]) -> tuple[Seen, ...]:
        self.calls.append(list(trials))
        return tuple(Seen(record=self._answer(trial)) for trial in trials)

    def _answer(self, trial: Trial) -> Record:
        answers = self.answers[trial.subject.proto().graph.output[0].name]
        return answers[min(trial.number, len(answers) - 1)]


def ran(*rows: OutputMetrics, **fields: Any) -> Record:
    return cpu_record(
        "m",
        provider="AnyExecutionProvider",
        phase=Phase.COMPARE,
        golden="cpu",
        placement=ON_EP,
        outputs=rows or (row(),),
        **fields,
    )


def raised(message: str, phase: Phase = Phase.RUN, how: Any = "raised") -> Record:
    return cpu_record("m", phase=phase, ended=CellEnd(how=how, message=message))


WRONG = Signature(verdict=Verdict.MISMATCH, message=AT_FIRST_RUN)


def check_of(lab: FakeLab, signature: Signature, **fields: Any) -> FailureCheck:
    given: dict[str, Any] = {"policy": Policy(), "target": "t", "axes": ()} | fields
    return FailureCheck(lab=lab, signature=signature, **given)  # type: ignore[arg-type]


def test_the_same_error_fails_whatever_node_it_names() -> None:
    signature = Signature(verdict=Verdict.ERROR, phase=Phase.RUN, message="no kernel for #")
    lab = FakeLab(
        {
            "y": [raised("no kernel for node_y")],
            "z": [raised("no kernel for node_y")],
            "w": [raised("no memory for node_w")],
        }
    )
    found = check_of(lab, signature).matches([subject_of("y"), subject_of("z"), subject_of("w")])
    assert [match.fails for match in found] == [True, False, False]
    assert not any(match.by_noise for match in found)


@pytest.mark.parametrize("phase", [Phase.CREATE, Phase.TEARDOWN])
def test_another_phase_is_another_failure(phase: Phase) -> None:
    signature = Signature(verdict=Verdict.ERROR, phase=Phase.RUN, message="no")
    (match,) = check_of(FakeLab({"y": [raised("no", phase)]}), signature).matches([subject_of("y")])
    assert not match.fails


def test_another_class_is_another_failure() -> None:
    lab = FakeLab({"y": [raised("no")], "z": [ran(row("z", error=1.0, noise=1e6, mismatched=2))]})
    error = Signature(verdict=Verdict.ERROR, phase=Phase.RUN, message="no")
    subjects = [subject_of("y"), subject_of("z")]
    assert [match.fails for match in check_of(lab, error).matches(subjects)] == [True, False]
    assert [match.fails for match in check_of(lab, WRONG).matches(subjects)] == [False, True]


BY_TABLE = Policy(judge_by="table")
"""A cell that a matrix judges by a table: a part of its model may fail by noise alone."""


def test_values_fail_by_tolerance_or_by_noise() -> None:
    lab = FakeLab(
        {
            "far": [ran(row(error=1.0, noise=1e6))],
            "near": [ran(row(error=1e-6, noise=1e6))],
            "right": [ran(row(error=1e-6, noise=1.0))],
        }
    )
    check = check_of(lab, WRONG, policy=BY_TABLE)
    found = check.matches([subject_of(name) for name in ("far", "near", "right")])
    assert [(match.fails, match.by_noise) for match in found] == [(True, True), (False, True), (False, False)]
    assert [match.error for match in found] == [1e6, 1e6, 1.0]


def test_a_flaky_failure_is_tried_again_until_it_fails() -> None:
    bad, good = ran(row(error=1.0, noise=1e6)), ran()
    lab = FakeLab({"early": [bad], "late": [good, good, bad], "never": [good]})
    found = check_of(lab, WRONG, repeats=4).matches([subject_of(name) for name in ("early", "late", "never")])
    assert [match.fails for match in found] == [True, True, False]
    assert [len(call) for call in lab.calls] == [3, 2, 2, 1]
    assert [trial.number for call in lab.calls for trial in call] == [0, 0, 0, 1, 1, 2, 2, 3]


def test_the_repetition_that_shows_most_is_kept() -> None:
    near = ran(row(error=1e-6, noise=1e6))
    lab = FakeLab({"y": [ran(), near, ran()]})
    (match,) = check_of(lab, WRONG, repeats=3, policy=BY_TABLE).matches([subject_of("y")])
    assert (match.fails, match.by_noise) == (False, True)
    assert match.seen.record is near


def test_a_trial_has_target_axes_and_what_runs_before() -> None:
    before = subject_of("before")
    lab = FakeLab({"y": [ran()]})
    axes = (("scenario", "concurrent"),)
    check_of(lab, WRONG, axes=axes, target="npu", after=(before,)).matches([subject_of("y")])
    ((trial,),) = lab.calls
    assert (trial.target, trial.axes, trial.after, trial.place) == ("npu", axes, (before,), "npu after 1")


def test_failing_outputs_are_named() -> None:
    record = ran(row("a"), row("b", error=1.0, noise=1e6), row("c"))
    assert failing_outputs(record, Policy()) == ("b",)
    assert failing_outputs(ran(row("a"), row("b")), Policy()) == ()
    bad = row("b", error=1.0, noise=1e6)
    assert failing_outputs(ran(row("a"), other=(bad,), other_check=OtherCheck()), Policy()) == ("b",)


def test_nothing_is_tried_for_nothing() -> None:
    lab = FakeLab({})
    assert check_of(lab, WRONG).matches([]) == ()
