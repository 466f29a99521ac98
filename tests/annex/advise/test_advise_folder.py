"""What a folder's models ask for, each in its own order."""

from harness.annex.advise.candidates import Candidate, base_of
from harness.annex.advise.course import CandidateQueue, Course
from harness.annex.advise.folder_search import _Model
from harness.annex.advise.search_result import TriedCandidate
from harness.core.records.verdict import Verdict
from harness.plan.target import Target
from tests.kit import bare_record

TARGETS = (
    Target(name="cpu", provider=("CPUExecutionProvider",)),
    Target(name="openvino", provider=("OpenVINOExecutionProvider",)),
    Target(name="qnn", provider=("QNNExecutionProvider",)),
)


def asked(verdicts: dict[str, Verdict], simulated: dict[str, str]) -> list[Candidate]:
    """What a model asks for after these verdicts, where each try passes untimed."""
    bases = [base_of(target, 10.0) for target in TARGETS]
    model = _Model(
        "m", Course(CandidateQueue(TARGETS, bases, {"Conv"}, remedies_first=True), float("inf")), bases
    )
    for target, verdict in verdicts.items():
        plain = Candidate(target=target)
        model.verdicts[plain] = TriedCandidate(
            candidate=plain, record=bare_record("m", verdict, target=target)
        )
    model.begin(simulated, float("inf"))
    found = []
    while (candidate := model.next()) is not None:
        found.append(candidate)
        model.course.take(
            TriedCandidate(candidate=candidate, record=bare_record("m", target=candidate.target))
        )
    return found


def test_what_passes_is_timed_and_wrong_numbers_get_other_precisions() -> None:
    found = asked(
        {"cpu": Verdict.PASS, "openvino": Verdict.PRECISION_LOSS, "qnn": Verdict.PASS}, {"qnn": "x"}
    )
    assert found[0] == Candidate(target="cpu")
    assert {one.target for one in found} == {"cpu", "openvino"}
    of_openvino = [one for one in found if one.target == "openvino"]
    assert {one.changes[0][0] for one in of_openvino} == {"precision"}
    # The remedies come before what may be faster on the CPU.
    assert found[1 : 1 + len(of_openvino)] == of_openvino


def test_what_is_refused_gets_no_further_try() -> None:
    found = asked({"cpu": Verdict.PASS, "openvino": Verdict.ERROR, "qnn": Verdict.UNSUPPORTED}, {})
    assert {one.target for one in found} == {"cpu"}


def test_a_target_that_was_not_reached_has_a_row_all_the_same() -> None:
    bases = [base_of(target, 10.0) for target in TARGETS]
    model = _Model("m", Course(CandidateQueue(TARGETS, bases, ()), 0.0), bases)
    (cpu, *_) = model.choices("s", bases)
    assert (cpu.record.verdict, cpu.record.cell) == (Verdict.NOT_RUN, "s/m[cpu]")
    assert "--budget" in cpu.record.reason
