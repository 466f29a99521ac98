"""What is new, what fails alike, and what is not made again."""

import msgspec
import pytest

from harness.annex.fuzz import coverage as coverage_module
from harness.annex.fuzz.coverage import BRED, ENOUGH, Coverage, fused_in
from harness.annex.fuzz.findings import EXPLAINS, KEPT_CELLS, Findings, signature
from harness.annex.fuzz.next_models import Candidates
from harness.annex.made.fuzz_suite import is_graph, model_number
from harness.core.records.cell_end import CellEnd
from harness.core.records.facts import Placement
from harness.core.records.record import ModelContent, Record
from harness.core.records.verdict import Phase, Verdict
from tests.kit import bare_record


def record(
    number: int, choice: str, verdict: Verdict, message: str = "", content: ModelContent | None = None
) -> Record:
    ended = CellEnd(how="raised", message=message) if message else None
    model = f"{number:06d}-{choice}"
    return bare_record(model, verdict, suite="fuzz-1", phase=Phase.RUN, ended=ended, content=content)


def placement(**ops: int) -> Placement:
    nodes = sum(ops.values())
    return Placement(ep_nodes=nodes, cpu_nodes=0, ep_ops=ops, cpu_ops={}, partitions=1, source="assignment")


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
    kept = [findings.add(record(4 * number + 2, "Add-14-int8", Verdict.MISMATCH)) for number in range(20)]
    assert sum(kept) == KEPT_CELLS
    assert not findings.add(record(30, "Add-14-int8", Verdict.PASS))


def test_what_a_known_fault_explains_is_not_made_again() -> None:
    coverage, findings = Coverage(), Findings()
    seed = Candidates(1, 0, ("ep", "other"))
    first = next(cell for cell in seed.take(9, coverage, findings) if not is_graph(model_number(cell.model)))
    choice = first.model.partition("-")[2]
    for number in range(EXPLAINS):
        findings.add(record(number, choice, Verdict.MISMATCH))
    again = Candidates(1, 0, ("ep", "other"))
    cells = [cell for cell in again.take(9, coverage, findings) if cell.model == first.model]
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
    forms = [cell for cell in left if not is_graph(model_number(cell.model))]
    assert 0 < len(forms) < 50
    assert len(left) - len(forms) > 50  # graphs always come: none is like another one


def test_only_the_operators_that_are_asked_for() -> None:
    cells = list(Candidates(1, 0, ("ep",), ("Conv", "Relu")).take(20, Coverage(), Findings()))
    assert len(cells) == 20
    assert {cell.model.split("-")[1] for cell in cells} == {"Conv", "Relu"}


def test_a_graph_blames_an_operator_whose_forms_fail() -> None:
    findings = Findings()
    content = ModelContent(opsets={"ai.onnx": 17}, ops={"Abs": 1, "Conv": 2})
    findings.add(record(4, "grown", Verdict.MISMATCH, content=content))
    findings.add(record(2, "Conv-22-float32", Verdict.MISMATCH))
    findings.add(record(8, "grown", Verdict.MISMATCH, content=content))
    assert {group.operator: count for group, count in findings.groups.items()} == {"Abs Conv": 1, "Conv": 2}


def test_graphs_of_other_operators_are_other_groups() -> None:
    findings = Findings()
    for number, op in ((0, "Abs"), (4, "Conv")):
        content = ModelContent(opsets={"ai.onnx": 17}, ops={op: 1})
        findings.add(record(number, "grown", Verdict.MISMATCH, content=content))
    assert [group.operator for group in findings.groups] == ["Abs", "Conv"]


def test_a_graph_blames_the_operator_that_its_error_names() -> None:
    findings = Findings()
    said = "Node ({}_q) Op (QuantizeLinear) [TypeInferenceError] output_dtype INT8"
    for number, op in ((0, "Slice"), (4, "Reshape")):
        content = ModelContent(opsets={"ai.onnx": 17}, ops={"DequantizeLinear": 1, op: 1})
        findings.add(record(number, "grown", Verdict.ERROR, said.format(op), content))
    assert [(group.operator, count) for group, count in findings.groups.items()] == [("QuantizeLinear", 2)]


def test_a_fused_pattern_is_new_once_for_each_target_and_brings_more_of_its_choice() -> None:
    coverage = Coverage()
    content = ModelContent(opsets={"ai.onnx": 17}, ops={"Conv": 1, "Relu": 1})
    fused = msgspec.structs.replace(
        record(2, "Conv-22-float32", Verdict.PASS, content=content), placement=placement(FusedConv=1)
    )
    assert coverage.add(fused, 4)
    assert coverage.patterns == 2  # from Conv, and from Relu
    assert coverage.tried("ep", "Conv-22-float32") == 1 - BRED
    assert not coverage.add(fused, 4)
    assert coverage.add(msgspec.structs.replace(fused, target="other"), 4)
    assert coverage.patterns == 4


def test_compiled_graphs_are_new_once_whatever_their_numbers_and_sets_of_operators_are() -> None:
    coverage = Coverage()

    def ran(number: int, *ops: str) -> bool:
        content = ModelContent(opsets={"ai.onnx": 17}, ops=dict.fromkeys(ops, 1))
        one = record(4, "grown", Verdict.PASS, content=content)
        made = placement(**{f"EP-subgraph_{number}": 1})
        return coverage.add(msgspec.structs.replace(one, placement=made), 2)

    assert ran(7, "Conv", "Relu")
    assert ran(10, "Abs", "Conv")
    assert not ran(11, "Abs", "Relu")
    assert ran(12, "Abs", "Exp", "Relu")


def test_what_stays_as_it_was_is_no_pattern() -> None:
    content = ModelContent(opsets={"ai.onnx": 17}, ops={"Conv": 1, "Relu": 1})
    plain = record(2, "Conv-22-float32", Verdict.PASS, content=content)
    assert fused_in(msgspec.structs.replace(plain, placement=placement(Conv=1, Relu=1))) == frozenset()
    assert fused_in(plain) == frozenset()


def test_a_printed_line_is_new_once_whatever_its_numbers_are() -> None:
    coverage = Coverage()
    one = record(2, "Conv-22-float32", Verdict.PASS)
    assert coverage.add(one, 4, "warning: node 17 is slow\n")
    assert not coverage.add(one, 4, "warning: node 18 is slow\n\n")
    assert coverage.add(one, 4, "warning: node 18 has no kernel")
    assert coverage.lines == 2


def test_so_many_lines_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage_module, "MOST_LINES", 1)
    coverage = Coverage()
    one = record(2, "Conv-22-float32", Verdict.PASS)
    assert coverage.add(one, 4, "first")
    assert not coverage.add(one, 4, "second")
    assert coverage.lines == 1
