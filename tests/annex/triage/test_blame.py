"""Which of several nodes makes the wrong value, with an EP that spoils one node beside another."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from harness.annex.triage.blame import DOMINANT, Blamed, blamed
from harness.annex.triage.net import Net, load
from harness.annex.triage.net_tensors import NetTensors
from harness.annex.triage.subject import Subject
from harness.core.values.value import Tensor, Value, tensor
from tests.annex.triage.planted_faults import chain

Nodes = list[tuple[str, list[str], list[str], dict[str, Any]]]

onnxruntime: Any = pytest.importorskip("onnxruntime")


def run(model: onnx.ModelProto, inputs: Any) -> tuple[tuple[str, Value], ...]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_outputs()]
    fed = {name: value.array for name, value in inputs if isinstance(value, Tensor)}
    return tuple(zip(names, map(tensor, session.run(names, fed)), strict=True))


class Ep:
    """A lab and a check in one: its EP multiplies what some nodes make if all of some others are there."""

    def __init__(self, factors: dict[str, float], beside: Sequence[str] = (), repeats: int = 1) -> None:
        self.factors = factors
        self.beside = set(beside)
        self.repeats = repeats
        self.trials = 0
        self.healthy_trials = 0
        """So many of the first trials show nothing."""
        self.lab = self

    def golden(self, subject: Subject) -> tuple[tuple[str, Value], ...]:
        return run(subject.proto(), subject.inputs)

    def trial(self, subject: Subject, _number: int) -> Subject:
        return subject

    def run(self, trials: Sequence[Subject], *, fresh: bool) -> list[Any]:
        assert fresh  # outputs are needed
        self.trials += len(trials)
        return [SimpleNamespace(outputs=run(self.spoilt(one.proto()), one.inputs)) for one in trials]

    def spoilt(self, model: onnx.ModelProto) -> onnx.ModelProto:
        names = {node.name for node in model.graph.node}
        if not self.beside <= names or self.trials <= self.healthy_trials:
            return model
        nodes = []
        for node in model.graph.node:
            nodes.append(node)
            if node.name in self.factors:
                out = node.output[0]
                node.output[0], factor = f"{out}_right", f"{out}_factor"
                value = np.array(self.factors[node.name], np.float32)
                model.graph.initializer.append(numpy_helper.from_array(value, factor))
                nodes.append(helper.make_node("Mul", [node.output[0], factor], [out]))
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        return model

    def match(self, subject: Subject, seen: Any) -> Any:
        golden = dict(self.golden(subject))
        wrong = any(not np.allclose(value.array, golden[name].array) for name, value in seen.outputs)  # type: ignore[union-attr]
        return SimpleNamespace(fails=wrong, by_noise=wrong, wrong=wrong)


@pytest.fixture
def net() -> Net:
    model = chain(
        [
            ("MatMul", ["x", "w1"], ["a"], {}),
            ("Tanh", ["a"], ["b"], {}),
            ("MatMul", ["b", "w2"], ["c"], {}),
            ("Erf", ["c"], ["y"], {}),
        ]
    )
    inputs = (("x", tensor(np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8))),)
    return load(Subject(model=model.SerializeToString(), inputs=inputs))


def values(subject: Subject, names: Sequence[str]) -> dict[str, Value]:
    model = subject.proto()
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return dict(run(model, subject.inputs))


def found(net: Net, ep: Ep, numbers: tuple[int, ...] = (0, 1, 2, 3)) -> Blamed | None:
    return blamed(net, numbers, ep, NetTensors(net, values))  # type: ignore[arg-type]


@pytest.mark.parametrize("beside", [["MatMul_a", "Erf_y"], ["MatMul_c"]])
def test_the_node_that_spoils_what_it_gets_is_named(net: Net, beside: list[str]) -> None:
    ep = Ep({"Erf_y": 1.5}, beside=beside)
    assert found(net, ep) == Blamed(number=3, alone=False)
    assert ep.trials == 2


def test_a_node_is_not_told_apart_from_one_that_reads_what_it_makes(net: Net) -> None:
    assert found(net, Ep({"Tanh_b": 1.5}, beside=["MatMul_c"])) is None
    assert found(net, Ep({"MatMul_a": 1.5}, beside=["MatMul_c"]), (0, 2)) == Blamed(number=0, alone=False)


def test_a_node_that_does_so_alone_needs_no_others(net: Net) -> None:
    assert found(net, Ep({"Tanh_b": 1.5})) == Blamed(number=1, alone=True)


def test_only_nodes_that_are_asked_about_are_looked_at(net: Net) -> None:
    assert found(net, Ep({"MatMul_c": 1.5}, beside=["Tanh_b"]), (1, 2)) == Blamed(number=2, alone=False)


def test_of_two_that_are_as_wrong_none_is_named(net: Net) -> None:
    assert found(net, Ep({"Tanh_b": 1.5, "Erf_y": 1.5})) is None


def test_one_that_is_much_worse_is_named(net: Net) -> None:
    small = 0.5 / DOMINANT / 2
    assert found(net, Ep({"MatMul_a": 1.5, "Erf_y": 1 + small})) == Blamed(number=0, alone=True)


def test_a_failure_that_is_gone_once_tensors_are_watched_names_none(net: Net) -> None:
    ep = Ep({"Tanh_b": 1.5})
    ep.healthy_trials = 1
    assert found(net, ep) is None
    assert ep.trials == 1


def test_a_flaky_failure_is_watched_more_often(net: Net) -> None:
    ep = Ep({"Tanh_b": 1.5}, repeats=4)
    ep.healthy_trials = 2
    assert found(net, ep) == Blamed(number=1, alone=True)
