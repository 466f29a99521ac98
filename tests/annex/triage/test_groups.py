"""Groups of cells that failed alike."""

from typing import Any

import pytest

from harness.annex.triage.failure_groups import failing_groups
from harness.core.records.cell_end import CellEnd
from harness.core.records.record import ModelContent, Record
from harness.core.records.verdict import Phase, Verdict
from harness.plan.target import Target
from tests.kit import cpu_record


def content(**ops: int) -> ModelContent:
    return ModelContent(opsets={"ai.onnx": 20}, ops=ops)


def failed(model: str, verdict: Verdict, message: str = "", **fields: Any) -> Record:
    ended = CellEnd(how="raised", message=message) if message else None
    return cpu_record(model, verdict=verdict, expected=False, ended=ended, **fields)


def cells(groups: Any) -> list[list[str]]:
    return [[record.model for record in group.records] for group in groups]


def test_only_failures_are_grouped() -> None:
    records = [
        cpu_record("right"),
        cpu_record("refused", verdict=Verdict.UNSUPPORTED),
        cpu_record("skipped", verdict=Verdict.UNAVAILABLE),
        failed("wrong", Verdict.CRASH, cause="SIGSEGV"),
    ]
    assert cells(failing_groups(records)) == [["wrong"]]


def test_errors_are_grouped_by_what_they_say_without_numbers_and_paths() -> None:
    records = [
        failed("a", Verdict.ERROR, "/src/a.cc:12 no kernel for node 7"),
        failed("b", Verdict.ERROR, "/other/b.cc:340 no kernel for node 1024"),
        failed("c", Verdict.ERROR, "out of registers at node 7"),
    ]
    assert cells(failing_groups(records)) == [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    "other",
    [
        {"target": "gpu"},
        {"verdict": Verdict.HANG},
        {"phase": Phase.CREATE},
        {"cause": "SIGABRT"},
    ],
)
def test_what_failed_otherwise_is_another_group(other: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"phase": Phase.RUN, "cause": "SIGSEGV", "verdict": Verdict.CRASH}
    records = [failed("a", **usual), failed("b", **(usual | other)), failed("c", **usual)]
    assert cells(failing_groups(records)) == [["a", "c"], ["b"]]


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict.MISMATCH,
        Verdict.NAN_MISMATCH,
        Verdict.NONDETERMINISTIC,
        Verdict.SHAPE_MISMATCH,
        Verdict.DTYPE_MISMATCH,
    ],
)
def test_wrong_outputs_are_grouped_by_operators(verdict: Verdict) -> None:
    records = [
        failed("a", verdict, content=content(Relu=1, Conv=1)),
        failed("b", verdict, content=content(Conv=3, Relu=2)),
        failed("c", verdict, content=content(Conv=1)),
        failed("d", verdict),
    ]
    assert cells(failing_groups(records)) == [["c"], ["a", "b"], ["d"]]


def test_the_smallest_model_stands_for_a_group() -> None:
    records = [
        failed("unknown", Verdict.CRASH),
        failed("large", Verdict.CRASH, content=content(Relu=40)),
        failed("small", Verdict.CRASH, content=content(Relu=2)),
        failed("equal", Verdict.CRASH, content=content(Abs=1, Neg=1)),
    ]
    (group,) = failing_groups(records)
    assert [record.model for record in group.records] == ["equal", "small", "large", "unknown"]
    assert group.representative.model == "equal"


def test_of_models_with_as_many_nodes_a_quick_cell_stands_for_the_group() -> None:
    def cell(name: str, create_ms: float, scenario: str = "plain") -> Record:
        axes = {"scenario": scenario}
        timings = {"create": create_ms}
        return failed(name, Verdict.CRASH, content=content(Conv=2), axes=axes, timings_ms=timings)

    records = [cell("base", 900.0), cell("shared", 1.0, "concurrent"), cell("small", 20.0)]
    assert cells(failing_groups(records)) == [["small", "base"], ["shared"]]


def test_the_largest_group_comes_first_whatever_the_order() -> None:
    records = [
        failed("a", Verdict.HANG),
        failed("b", Verdict.CRASH),
        failed("c", Verdict.ERROR, "x"),
        failed("d", Verdict.CRASH),
    ]
    assert cells(failing_groups(records)) == [["b", "d"], ["a"], ["c"]]
    assert cells(failing_groups(records[::-1])) == [["b", "d"], ["a"], ["c"]]


def test_small_models_come_first_whatever_their_number() -> None:
    large = [failed(name, Verdict.CRASH, content=content(Mul=62)) for name in ("a", "b")]
    small = failed("z", Verdict.MISMATCH, content=content(Mul=1))
    assert cells(failing_groups([*large, small])) == [["z"], ["a", "b"]]


def at(fault: str, **more: str) -> dict[str, Any]:
    return {"axes": {"option.fault": fault, **more}, "content": content(Mul=1)}


def test_values_of_options_are_groups_that_are_alike() -> None:
    records = [
        failed("a", Verdict.MISMATCH, **at("1")),
        failed("b", Verdict.MISMATCH, **at("1")),
        failed("a", Verdict.MISMATCH, **at("2")),
        failed("a", Verdict.MISMATCH, **at("1", precision="ep:fp16")),
        failed("a", Verdict.NAN_MISMATCH, **at("1")),
    ]
    groups = failing_groups(records)
    assert sorted(len(group.records) for group in groups) == [1, 1, 1, 2]
    alike = {group.alike for group in groups if group.representative.verdict is Verdict.MISMATCH}
    assert len(alike) == 1


def test_other_values_in_the_run_are_conditions_for_free() -> None:
    records = [
        failed("a", Verdict.MISMATCH, **at("1")),
        cpu_record("a", **at("none")),
        cpu_record("a", **at("2")),
        cpu_record("a", **at("1", scenario="io_binding")),
        failed("b", Verdict.MISMATCH, **at("none")),
    ]
    groups = {group.representative.model: group for group in failing_groups(records)}
    assert [(one.kind, one.name, one.value, one.fails) for one in groups["a"].conditions] == [
        ("option", "fault", "not 1", False),
        ("scenario", "", "io_binding", False),
    ]
    assert groups["b"].conditions == ()


def test_an_option_that_fails_at_some_values_is_told_for_each() -> None:
    records = [
        failed("a", Verdict.MISMATCH, **at("1")),
        failed("a", Verdict.MISMATCH, **at("2")),
        cpu_record("a", **at("none")),
    ]
    group = next(one for one in failing_groups(records) if one.representative.axes["option.fault"] == "1")
    assert [(one.value, one.fails) for one in group.conditions] == [("2", True), ("none", False)]


def test_targets_that_differ_in_one_option_are_conditions_too() -> None:
    options = {"fast": {"mode": "fast"}, "slow": {}, "both": {"mode": "slow", "x": "1"}}
    targets = [
        Target(name=name, provider=("CPUExecutionProvider",), options=given)
        for name, given in options.items()
    ]
    others = [cpu_record("a", target=name) for name in ("slow", "both")]
    (group,) = failing_groups([failed("a", Verdict.MISMATCH, target="fast"), *others], (), targets)
    assert [(one.name, one.value, one.fails) for one in group.conditions] == [("mode", "not fast", False)]


def test_each_cell_that_is_asked_for_is_a_group() -> None:
    records = [failed(name, Verdict.CRASH) for name in "abc"]
    assert cells(failing_groups(records, ["m/a[cpu]", "m/c[cpu]"])) == [["a"], ["c"]]


def test_a_variant_is_held_against_its_original_on_the_same_target() -> None:
    records = [
        failed("000004-grown", Verdict.MISMATCH, target="gpu"),
        cpu_record("000004-grown"),
        failed("000005-variant-of-000004", Verdict.MISMATCH),
    ]
    (group,) = [one for one in failing_groups(records) if one.representative.target != "gpu"]
    (condition,) = group.conditions
    assert (condition.kind, condition.value, condition.fails) == ("original", "000004-grown", False)
    (single,) = failing_groups(records, [group.representative.cell])
    assert single == group


def test_an_original_that_says_nothing_is_no_condition() -> None:
    records = [
        cpu_record("000004-grown", verdict=Verdict.UNSUPPORTED),
        failed("000005-variant-of-000004", Verdict.MISMATCH),
        failed("000007-variant-of-operator-test", Verdict.CRASH),
    ]
    assert [group.conditions for group in failing_groups(records)] == [(), ()]
