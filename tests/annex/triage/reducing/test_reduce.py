"""Whole reductions: how few trials they take, what they never yield, how they end."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from harness.annex.made.zoo.roster import build, zoo_models
from harness.annex.triage.context import origins
from harness.annex.triage.net import load
from harness.annex.triage.net_size import is_smaller
from harness.annex.triage.reduce import reduce, reduction
from harness.annex.triage.reduction_settings import ReductionProgress, ReductionSettings
from harness.annex.triage.subject import Subject
from harness.core.values.value import Array, Tensor
from tests.annex.triage.reducing.reductions import first_output, reduced

Judge = Callable[[onnx.ModelProto, dict[str, Array]], bool]


def zoo(name: str) -> tuple[onnx.ModelProto, dict[str, Array]]:
    graph = build(zoo_models()[name])
    return graph.model(name), graph.inputs


def subject_of(model: onnx.ModelProto, fed: dict[str, Array]) -> Subject:
    inputs = tuple((name, Tensor(dtype=_dtype(array), array=array)) for name, array in fed.items())
    return Subject(model=model.SerializeToString(), inputs=inputs)


def _dtype(array: Array) -> str:
    return str(array.dtype)


def has(*names: str) -> Judge:
    return lambda model, _: set(names) <= {node.name for node in model.graph.node}


def chain(length: int) -> Subject:
    """Blocks of four nodes with a branch each."""
    nodes = []
    last = "x"
    for number in range(length // 4):
        kinds = (
            ("Abs", [last]),
            ("Sin", [last]),
            ("Add", [f"a{number}", f"b{number}"]),
            ("Tanh", [f"c{number}"]),
        )
        for letter, (kind, inputs) in zip("abcd", kinds, strict=True):
            nodes.append(onnx.helper.make_node(kind, inputs, [f"{letter}{number}"], name=f"{kind}{number}"))
        last = f"d{number}"
    ports = [onnx.helper.make_tensor_value_info(name, 1, [2, 3]) for name in ("x", last)]
    graph = onnx.helper.make_graph(nodes, "chain", ports[:1], ports[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    return subject_of(model, {"x": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)})


def progress_of(subject: Subject, judge: Judge, **settings: Any) -> list[ReductionProgress]:
    told: list[ReductionProgress] = []
    steps = reduction(subject, ReductionSettings(**settings), told.append)
    answers = None
    while True:
        try:
            batch = next(steps) if answers is None else steps.send(answers)
        except StopIteration:
            return told
        answers = tuple(judge(one.proto(), {}) for one in batch)


def trials_until(subject: Subject, judge: Judge, nodes: int, **settings: Any) -> int:
    """How many candidates are tried before so few nodes are left."""
    told: list[ReductionProgress] = []
    steps = reduction(subject, ReductionSettings(**settings), told.append)
    answers = None
    while not told or told[-1].nodes > nodes:
        batch = next(steps) if answers is None else steps.send(answers)
        answers = tuple(judge(one.proto(), {}) for one in batch)
    steps.close()
    return told[-1].trials


@pytest.mark.parametrize("name", ["Abs0", "Sin17", "Add150", "Tanh299"])
def test_one_bad_node_of_1200_takes_few_trials(name: str) -> None:
    assert trials_until(chain(1200), has(name), 1) <= 2 * math.log2(1200) + 4


def test_two_bad_nodes_of_1200_take_few_trials() -> None:
    assert trials_until(chain(1200), has("Sin40", "Tanh222"), 2) <= 4 * math.log2(1200) + 4


def test_a_known_guilty_node_takes_one_trial() -> None:
    assert trials_until(chain(1200), has("Add150"), 1, keep={"Add150"}.__contains__) <= 4


def naive_trials(count: int, bad: set[int]) -> int:
    """Remove one node after the other, as long as the failure stays."""
    kept, trials = set(range(count)), 0
    for number in range(count):
        trials += 1
        if number not in bad:
            kept.discard(number)
    assert kept == bad
    return trials


def test_far_fewer_trials_than_one_node_at_a_time() -> None:
    assert trials_until(chain(1200), has("Add150"), 1) * 40 < naive_trials(1200, {602})


def test_a_wrong_operator_is_found_by_running_models() -> None:
    """The operator counts as wrong where another in its place makes a difference."""

    def wrong(model: onnx.ModelProto) -> onnx.ModelProto:
        other = onnx.ModelProto()
        other.CopyFrom(model)
        for node in other.graph.node:
            if node.op_type == "Softmax":
                node.op_type = "LogSoftmax"
        return other

    def judge(model: onnx.ModelProto, fed: dict[str, Array]) -> bool:
        right, bad = first_output(model, fed), first_output(wrong(model), fed)
        return right is not None and bad is not None and not np.allclose(right, bad, rtol=1e-3)

    smallest, tried = reduced(subject_of(*zoo("vit-small-op17")), judge)
    model = smallest.proto()
    assert [node.op_type for node in model.graph.node] == ["Softmax"]
    assert len(smallest.model) < 200
    assert len(tried) < 60
    onnx.checker.check_model(model, full_check=True)


def test_what_is_reduced_is_reduced() -> None:
    def judge(model: onnx.ModelProto, _: Any) -> bool:
        kinds = [node.op_type for node in model.graph.node]
        return kinds.count("MatMul") >= 2 and "Softmax" in kinds

    smallest, _ = reduced(subject_of(*zoo("bert-small-op17")), judge)
    again, _ = reduced(smallest, judge)
    assert again.digest == smallest.digest
    assert len(smallest.proto().graph.node) <= 4


@pytest.mark.parametrize("batch", [1, 4])
def test_the_same_answers_lead_to_the_same_candidates(batch: int) -> None:
    start = subject_of(*zoo("mobilenet-small-op17"))
    bad = start.proto().graph.node[20].name
    runs = [[one.digest for one in reduced(start, has(bad), batch=batch)[1]] for _ in range(2)]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == len(runs[0])


def test_candidates_of_a_batch_come_from_one_subject_and_are_smaller() -> None:
    start = subject_of(*zoo("unet-small-op17"))
    bad = start.proto().graph.node[9].name
    smallest, tried = reduced(start, has(bad), batch=8)
    one_by_one, _ = reduced(start, has(bad))
    assert len(smallest.proto().graph.node) == len(one_by_one.proto().graph.node) == 1
    assert all(is_smaller(load(one), load(start)) for one in tried)


def test_no_candidate_lacks_a_kept_node_or_is_empty() -> None:
    start = subject_of(*zoo("mnist-small-op12"))
    kept = {node.name for node in start.proto().graph.node[3:5]}
    smallest, tried = reduced(start, lambda *_: True, keep=kept.__contains__)
    assert all(kept <= origins(load(one)) for one in tried)
    assert origins(load(smallest)) == kept
    assert smallest.origins.keys() == {"n0", "n1"}
    _, tried = reduced(start, lambda *_: True)
    assert all(one.proto().graph.node for one in tried)


def test_a_model_that_cannot_be_smaller_is_returned_as_it_is() -> None:
    start = chain(8)
    smallest, _ = reduced(start, lambda *_: False)
    assert smallest is start


def test_progress_ends_with_completeness() -> None:
    told = progress_of(chain(16), has("Sin1"))
    assert [one.trials for one in told] == sorted(one.trials for one in told)
    assert told[-1].complete
    assert not any(one.complete for one in told[:-1])
    nodes = [one.nodes for one in told]
    assert nodes == sorted(nodes, reverse=True)


def test_a_limit_of_trials_ends_a_transformation_early() -> None:
    told = progress_of(chain(400), lambda *_: False, most_trials=3)
    names = [one.transformation for one in told if one.transformation]
    assert max(names.count(name) for name in names if name != "fewer_outputs") <= 3
    assert not told[-1].complete


def test_the_function_for_test_suites() -> None:
    model, fed = zoo("resnet-small-op17")

    def judge(model: onnx.ModelProto, fed: dict[str, Array]) -> bool:
        return {info.name for info in model.graph.input} == fed.keys() and any(
            node.op_type == "GlobalAveragePool" for node in model.graph.node
        )

    found = reduce(model, judge, fed)
    assert [node.op_type for node in found.model.graph.node] == ["GlobalAveragePool"]
    assert judge(found.model, found.inputs)
    made_up = reduce(model, judge, keep_weights=True)
    assert [node.op_type for node in made_up.model.graph.node] == ["GlobalAveragePool"]


def test_a_model_that_is_not_interesting_is_refused() -> None:
    with pytest.raises(ValueError, match="not interesting to begin with"):
        reduce(chain(8).proto(), lambda *_: False)
