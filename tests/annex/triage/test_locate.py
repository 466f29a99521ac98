"""Locating, with a check that knows which nodes are guilty: exact, in few trials, on graphs of any form."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from harness.annex.triage.failure_check import OUTPUTS, Match
from harness.annex.triage.lab import Seen
from harness.annex.triage.locate import Locator
from harness.annex.triage.net import Net, load
from harness.annex.triage.subject import Subject
from harness.annex.triage.time_budget import TimeBudget
from harness.core.comparison.output_metrics import OutputDetails, OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.records.fault import Location, Signature
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.core.values.value import Value, tensor
from tests.kit import cpu_record, placement_of

Graph = Sequence[tuple[str, ...]]
"""For each node the tensors that it reads; node 3 makes ``t3``."""

ON_EP = placement_of({"Sum": 1})


def model_of(graph: Graph, outputs: Collection[str] = ()) -> Subject:
    """A model of sums; without outputs, all that no node reads are such."""
    read = {name for inputs in graph for name in inputs}
    made = [f"t{number}" for number in range(len(graph))]
    wanted = outputs or [name for name in made if name not in read]
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Sum", inputs, [f"t{number}"], name=f"n{number}")
        for number, inputs in enumerate(graph)
    ]
    proto = helper.make_graph(
        nodes,
        "g",
        [value("x", TensorProto.FLOAT, [2])],
        [value(name, TensorProto.FLOAT, [2]) for name in wanted],
    )
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return Subject(model=model.SerializeToString(), inputs=(("x", tensor(np.ones(2, np.float32))),))


class FakeCheck:
    """Fails as a function of the nodes tells; counts trials."""

    def __init__(
        self, record: Record, fails: Callable[[Net], bool], by_noise: Any = None, wrong: Any = None
    ) -> None:
        self.policy = Policy()
        self.signature = Signature(verdict=record.verdict)
        self.of_outputs = record.verdict in OUTPUTS
        self.trials = 0
        self.is_flaky = self.of_first_values = False
        self._record = record
        self._fails = fails
        self._by_noise = by_noise or fails
        self._wrong = wrong or fails

    def surer(self) -> "FakeCheck":
        raise AssertionError("a steady failure needs no further repetitions")

    def matches(self, subjects: Sequence[Subject]) -> tuple[Match, ...]:
        self.trials += len(subjects)
        found = []
        for subject in subjects:
            onnx.checker.check_model(subject.proto())
            net = load(subject)
            assert net.nodes
            read = {name for node in net.nodes for name in node.reads}
            assert set(net.inputs) <= read | set(net.outputs)
            assert set(net.fed) == set(net.inputs)
            fails = self._fails(net)
            by_noise = fails or self._by_noise(net)
            error = 99.0 if by_noise else 1.0
            wrong = by_noise or self._wrong(net)
            seen = Seen(record=self._record)
            found.append(Match(fails=fails, by_noise=by_noise, wrong=wrong, error=error, seen=seen))
        return tuple(found)


def has(*names: str) -> Callable[[Net], bool]:
    """Whether all these nodes are in a net."""
    return lambda net: set(names) <= {node.name for node in net.nodes}


def has_any(*names: str) -> Callable[[Net], bool]:
    return lambda net: bool(set(names) & {node.name for node in net.nodes})


def all_values(_: Subject, names: Sequence[str]) -> Mapping[str, Value]:
    return {name: tensor(np.full(2, 0.5, np.float32)) for name in names}


def record(verdict: Verdict = Verdict.ERROR, **fields: Any) -> Record:
    return cpu_record("m", verdict=verdict, provider="AnyExecutionProvider", **fields)


ENDLESS = TimeBudget(None)


def located(
    subject: Subject, check: FakeCheck, values: Any = all_values, budget: TimeBudget = ENDLESS
) -> Location:
    locator = Locator(load(subject), check, values, lambda _: None, budget)  # type: ignore[arg-type]
    (whole,) = check.matches([subject])
    check.trials = 0
    return locator.locate(whole).location


def few(nodes: int) -> float:
    return 4 * math.log2(max(nodes, 2)) + 20


@st.composite
def graphs(draw: st.DrawFn, least: int = 1, most: int = 60) -> list[tuple[str, ...]]:
    """Random graphs without cycles: chains, fans, several outputs, parts that read only the input."""
    nodes = []
    for number in range(draw(st.integers(least, most))):
        known = ["x", *(f"t{earlier}" for earlier in range(number))]
        near = st.sampled_from(known[-4:])
        nodes.append(tuple(draw(st.lists(near | st.sampled_from(known), min_size=1, max_size=3))))
    return nodes


@settings(max_examples=30)
@given(st.data())
def test_the_guilty_node_is_found_in_few_trials(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    guilty = f"n{data.draw(st.integers(0, len(graph) - 1))}"
    check = FakeCheck(record(), has(guilty))
    location = located(model_of(graph), check)
    assert location.nodes == (guilty,)
    assert location.op_types == ("Sum",)
    assert location.exact
    assert location.alone
    assert location.cumulative
    assert location.onwards in {False, None}
    assert not location.fused
    assert check.trials <= few(len(graph))


@settings(max_examples=25)
@given(st.data())
def test_of_two_faults_one_is_found_and_the_other_told(data: st.DataObject) -> None:
    graph = data.draw(graphs(least=2))
    first, last = sorted(
        data.draw(st.lists(st.integers(0, len(graph) - 1), min_size=2, max_size=2, unique=True))
    )
    check = FakeCheck(record(), has_any(f"n{first}", f"n{last}"))
    location = located(model_of(graph), check)
    assert location.nodes == (f"n{first}",)
    assert location.exact
    assert location.onwards
    assert check.trials <= few(len(graph))


@settings(max_examples=25)
@given(st.data())
def test_fused_nodes_are_found_together(data: st.DataObject) -> None:
    graph = data.draw(graphs(least=2, most=26))
    pair = sorted(data.draw(st.lists(st.integers(0, len(graph) - 1), min_size=2, max_size=2, unique=True)))
    names = tuple(f"n{number}" for number in pair)
    check = FakeCheck(record(), has(*names))
    location = located(model_of(graph), check)
    assert location.nodes == names
    assert location.fused == names
    assert not location.exact
    assert location.alone
    assert check.trials <= few(len(graph))


def test_far_apart_nodes_that_are_fused_are_told_as_a_set_that_holds_them() -> None:
    graph = [("x",), *((f"t{number}",) for number in range(199))]
    check = FakeCheck(record(), has("n20", "n150"))
    location = located(model_of(graph), check)
    assert {"n20", "n150"} <= set(location.nodes)
    assert (location.nodes[0], location.nodes[-1]) == ("n20", "n150")
    assert check.trials <= few(200)


def test_twelve_hundred_nodes_take_few_trials() -> None:
    graph = [("x",), *((f"t{number}",) for number in range(1199))]
    check = FakeCheck(record(), has("n777"))
    assert located(model_of(graph), check).nodes == ("n777",)
    assert check.trials <= few(1200)


@settings(max_examples=25)
@given(st.data())
def test_golden_tensors_that_cannot_be_had_cost_exactness_and_nothing_else(data: st.DataObject) -> None:
    graph = data.draw(graphs(most=30))
    number = data.draw(st.integers(0, len(graph) - 1))
    lost = data.draw(st.sets(st.sampled_from([f"t{one}" for one in range(len(graph))])))

    def values(subject: Subject, names: Sequence[str]) -> Mapping[str, Value]:
        return {name: value for name, value in all_values(subject, names).items() if name not in lost}

    check = FakeCheck(record(), has(f"n{number}"))
    location = located(model_of(graph), check, values)
    assert f"n{number}" in location.nodes
    assert location.exact == (len(location.nodes) == 1)
    if not lost & {name for inputs in graph for name in inputs}:
        assert location.exact


def test_without_golden_tensors_the_whole_model_is_told() -> None:
    graph = [("x",), ("t0",), ("t1",)]
    check = FakeCheck(record(), has("n1"))
    location = located(model_of(graph), check, lambda *_: None)
    assert set(location.nodes) >= {"n1"}
    assert not location.exact or location.nodes == ("n1",)


def test_only_nodes_that_failing_outputs_depend_on_are_tried() -> None:
    """Two chains of one input; the output of the second is wrong."""
    graph = [("x",) if number < 2 else (f"t{number - 2}",) for number in range(16)]
    good = OutputMetrics(name="t14", dtype="float32", shape=(2,), elements=2, frontier=((0.0, 0.0),))
    bad = OutputMetrics(
        name="t15",
        dtype="float32",
        shape=(2,),
        elements=2,
        max_abs=0.5,
        mismatched=2,
        frontier=((1.0, 0.0),),
        details=OutputDetails(message="all differ"),
    )
    tried: list[set[str]] = []

    def fails(net: Net) -> bool:
        tried.append({node.name for node in net.nodes})
        return has("n7")(net)

    whole = record(Verdict.MISMATCH, placement=ON_EP, golden="cpu", outputs=(good, bad))
    location = located(model_of(graph), FakeCheck(whole, fails))
    assert location.nodes == ("n7",)
    assert tried[1] == {f"n{number}" for number in range(1, 16, 2)}


def test_a_part_whose_error_is_far_above_its_noise_is_followed() -> None:
    """Its own tolerance passes every part but the whole; the error grows on the way."""
    graph = [("x",), *((f"t{number}",) for number in range(9))]
    names = [f"n{number}" for number in range(10)]
    check = FakeCheck(record(), has(*names), by_noise=has("n3"))
    location = located(model_of(graph), check)
    assert location.nodes == ("n3",)
    assert location.alone
    assert location.error_ratio == 99.0


def test_a_failure_that_stays_in_the_rest_is_told() -> None:
    graph = [("x",), ("t0",), ("t1",), ("t2",)]
    location = located(model_of(graph), FakeCheck(record(), has("n3")))
    assert location.onwards is None  # nothing lies behind it
    location = located(model_of(graph), FakeCheck(record(), has("n0")))
    assert (location.cumulative, location.onwards) == (True, False)


def test_each_step_is_told() -> None:
    graph = [("x",), ("t0",), ("t1",), ("t2",)]
    told: list[str] = []
    check = FakeCheck(record(), has("n2"))
    locator = Locator(load(model_of(graph)), check, all_values, told.append, TimeBudget(None))  # type: ignore[arg-type]
    (whole,) = check.matches([model_of(graph)])
    locator.locate(whole)
    assert told == ["locate: 4 nodes hold the failure", "locate: 2 nodes hold the failure"]


def test_a_search_without_time_is_unfinished_and_tries_nothing_more() -> None:
    graph = [("x",), ("t0",), ("t1",), ("t2",)]
    check = FakeCheck(record(), has("n2"))
    locator = Locator(load(model_of(graph)), check, all_values, lambda _: None, TimeBudget(0))  # type: ignore[arg-type]
    (whole,) = check.matches([model_of(graph)])
    location = locator.locate(whole).location
    assert location.nodes == ("n0", "n1", "n2", "n3")
    assert (location.unfinished, location.exact, location.alone) == (True, False, None)
    assert location.cumulative is None


def test_the_part_that_fails_is_handed_on() -> None:
    graph = [("x",), ("t0", "x"), ("t1",)]
    check = FakeCheck(record(), has("n1"))
    locator = Locator(load(model_of(graph)), check, all_values, lambda _: None, TimeBudget(None))  # type: ignore[arg-type]
    (whole,) = check.matches([model_of(graph)])
    part = locator.locate(whole).part
    assert part.subject is not None
    model = part.subject.proto()
    assert [node.name for node in model.graph.node] == ["n1"]
    assert [info.name for info in model.graph.output] == ["t1"]
    assert {name for name, _ in part.subject.inputs} == {"t0", "x"}
    assert msgspec.structs.asdict(part.match)["fails"]  # type: ignore[arg-type]


@pytest.mark.parametrize("guilty", [0, 3, 6])
def test_the_node_that_made_a_wrong_value_is_told_if_it_fails_later_in_another_way(guilty: int) -> None:
    """A wrong value becomes NaN in a later node: what is reduced has both, for alone neither fails so."""
    graph = [("x",), *((f"t{number}",) for number in range(9))]
    check = FakeCheck(record(), has(f"n{guilty}", "n8"), wrong=has(f"n{guilty}"))
    subject = model_of(graph)
    locator = Locator(load(subject), check, all_values, lambda _: None, TimeBudget(None))  # type: ignore[arg-type]
    (whole,) = check.matches([subject])
    found = locator.locate(whole)
    assert (found.location.nodes, found.location.exact) == ((f"n{guilty}",), True)
    assert found.location.alone
    assert found.part.fails
    assert found.part.subject is not None
    held = {node.name for node in found.part.subject.proto().graph.node}
    assert held >= {f"n{guilty}", "n8"}


def test_without_time_a_set_is_told_that_holds_the_failure() -> None:
    graph = [("x",), *((f"t{number}",) for number in range(9))]
    check = FakeCheck(record(), has("n3"))
    location = located(model_of(graph), check, budget=TimeBudget(0))
    assert len(location.nodes) == 10
    assert not location.exact
    assert not location.fused  # nobody tried whether they fail apart
    assert check.trials <= 2


class FlakyCheck(FakeCheck):
    """Misses a failure in each part once, unless it repeats more."""

    def __init__(self, record: Record, fails: Callable[[Net], bool], sure: FakeCheck | None = None) -> None:
        super().__init__(record, lambda net: len(net.nodes) > 4 and fails(net))
        self.is_flaky = True
        self.sure = sure or FakeCheck(record, fails)
        self.asked = 0

    def surer(self) -> FakeCheck:
        self.asked += 1
        return self.sure


def test_a_half_that_fails_seldom_is_seen_before_a_cut_is_blamed() -> None:
    graph = [("x",), *((f"t{number}",) for number in range(15))]
    check = FlakyCheck(record(), has("n6"))
    location = located(model_of(graph), check)
    assert location.nodes == ("n6",)
    assert location.exact
    assert not location.fused
    assert check.asked > 0


def test_nodes_that_only_fail_together_still_do_after_more_repetitions() -> None:
    graph = [("x",), *((f"t{number}",) for number in range(15))]
    check = FlakyCheck(record(), has("n3", "n12"))
    location = located(model_of(graph), check)
    assert location.fused
    assert {"n3", "n12"} <= set(location.nodes)
    assert check.asked == 1
