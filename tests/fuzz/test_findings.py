"""What is new, what fails alike, and what is not made again."""

from harness.core.record import SCHEMA, Ended, Record
from harness.core.verdict import Phase, Verdict
from harness.fuzz.candidates import Candidates
from harness.fuzz.coverage import ENOUGH, Coverage
from harness.fuzz.findings import EXPLAINS, KEPT_CELLS, Findings, signature


def record(number: int, choice: str, verdict: Verdict, message: str = "") -> Record:
    ended = Ended(how="raised", message=message) if message else None
    model = f"{number:06d}-{choice}"
    return Record(
        schema=SCHEMA,
        cell=f"fuzz-1/{model}[ep]",
        suite="fuzz-1",
        model=model,
        target="ep",
        provider="EP",
        verdict=verdict,
        family=verdict.family,
        expected=True,
        phase=Phase.RUN,
        ended=ended,
    )


def test_the_first_of_a_kind_is_new() -> None:
    coverage = Coverage()
    one = record(1, "Conv-22-float32", Verdict.PASS)
    assert coverage.add(one, 4)
    assert not coverage.add(one, 4)
    assert coverage.add(one, 3)
    assert coverage.add(record(2, "Conv-22-float32", Verdict.FALLBACK), 4)
    assert coverage.tried("ep", "Conv-22-float32") == 5  # one that fell back counts twice


def test_errors_are_grouped_by_what_they_say_and_values_by_the_operator() -> None:
    first = record(1, "Conv-22-float32", Verdict.ERROR, "cannot build node 7")
    second = record(2, "Conv-11-float32", Verdict.ERROR, "cannot build node 8")
    third = record(3, "Conv-11-float32", Verdict.MISMATCH)
    assert signature(first) == signature(second)
    assert signature(first) != signature(third)
    assert signature(third).message == ""


def test_only_some_cells_of_a_group_are_kept() -> None:
    findings = Findings()
    kept = [findings.add(record(number, "Add-14-int8", Verdict.MISMATCH)) for number in range(20)]
    assert sum(kept) == KEPT_CELLS
    assert not findings.add(record(30, "Add-14-int8", Verdict.PASS))


def test_what_a_known_fault_explains_is_not_made_again() -> None:
    coverage, findings = Coverage(), Findings()
    seed = Candidates(1, 0, ("ep", "other"))
    first = next(iter(seed.take(1, coverage, findings)))
    choice = first.model.partition("-")[2]
    for number in range(EXPLAINS):
        findings.add(record(number, choice, Verdict.MISMATCH))
    again = Candidates(1, 0, ("ep", "other"))
    cells = list(again.take(1, coverage, findings))
    assert [cell.target for cell in cells] == ["other"]
    assert again.passed_over == 1


def test_a_choice_that_was_tried_often_comes_seldom() -> None:
    coverage, findings = Coverage(), Findings()
    every = list(Candidates(1, 0, ("ep",)).take(300, coverage, findings))
    for _ in range(ENOUGH):
        for cell in every:
            coverage.add(record(1, cell.model.partition("-")[2], Verdict.PASS), 1)
    later = Candidates(1, 0, ("ep",))
    left = [cell for cell in later.take(100, coverage, findings) if cell in every]
    assert 0 < len(left) < 100


def test_only_the_operators_that_are_asked_for() -> None:
    cells = list(Candidates(1, 0, ("ep",), ("Conv", "Relu")).take(20, Coverage(), Findings()))
    assert len(cells) == 20
    assert {cell.model.split("-")[1] for cell in cells} == {"Conv", "Relu"}
