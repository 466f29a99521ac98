"""The models that must run before a failing one are reduced, too."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest

from harness.annex.triage.preceding_model import with_smaller_preceding
from harness.annex.triage.subject import Subject
from harness.annex.triage.time_budget import TimeBudget
from harness.core.records.fault import Fault
from harness.core.values.value import Tensor, tensor
from tests.annex.triage.planted_faults import chain, deep

Nodes = list[tuple[str, list[str], list[str], dict[str, Any]]]
TriagePlanted = Callable[..., list[Fault]]


class AfterCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Fails after models that have these operators, in this order."""

    after: tuple[Subject, ...]
    needed: tuple[str, ...]
    lab: Any = SimpleNamespace(values=None)
    tried: list[int] = msgspec.field(default_factory=list)

    def matches(self, subjects: Sequence[Subject]) -> tuple[Any, ...]:
        self.tried.append(len(subjects))
        found = all(op in operators(one) for op, one in zip(self.needed, self.after, strict=True))
        return tuple(SimpleNamespace(fails=found, by_noise=found) for _ in subjects)


def operators(subject: Subject) -> list[str]:
    return [node.op_type for node in subject.proto().graph.node]


@pytest.fixture
def before() -> Subject:
    return Subject(model=deep().SerializeToString(), inputs=(("x", tensor(np.ones((2, 8), np.float32))),))


def smaller(check: AfterCheck, failing: Subject, budget: TimeBudget | None = None) -> Any:
    match = SimpleNamespace(fails=True, by_noise=True)
    start: Any = SimpleNamespace(subject=failing, match=match)
    return with_smaller_preceding(start, check, budget or TimeBudget(None), lambda _: None)  # type: ignore[arg-type]


def test_each_preceding_model_is_reduced(before: Subject) -> None:
    check = AfterCheck(after=(before, before), needed=("Tanh", "Sigmoid"))
    found = smaller(check, before)
    assert [operators(one) for one in found.after] == [["Tanh"], ["Sigmoid"]]
    for one in found.after:
        ((_, value),) = one.inputs
        assert isinstance(value, Tensor)
        assert value.array.size == 1
    assert set(found.tried) == {1}


def test_without_time_they_stay(before: Subject) -> None:
    check = AfterCheck(after=(before,), needed=("Tanh",))
    assert smaller(check, before, TimeBudget(0)).after == (before,)


@pytest.mark.long
def test_the_bundle_has_a_small_pair(triage_planted: TriagePlanted, tmp_path: Any) -> None:
    planted = {"kind": "scale", "op_type": "Tanh", "after": "Sin", "factor": 1.01}
    nodes: Nodes = [("Sin", ["x"], ["a"], {}), ("Neg", ["a"], ["y"], {})]
    innocent, fails = chain([("Abs", ["x"], ["y"], {})]), chain([("Tanh", ["x"], ["y"], {})])
    (fault,) = triage_planted(planted, a=innocent, b=chain(nodes), c=fails)
    assert not fault.inconclusive, fault.sentence
    assert fault.location is not None
    assert fault.location.op_types == ("Tanh",)
    assert fault.preceding == ("models/b.onnx[planted]",)
    (reduced,) = fault.preceding_reduced
    assert [node.op_type for node in reduced.nodes] == ["Sin"]
    assert reduced.nodes_before == len(nodes)
    assert "after models/b.onnx[planted] (Sin) in the same process" in fault.sentence
    home = tmp_path / "triage" / fault.bundle / "preceding" / "0"
    assert [node.op_type for node in onnx.load(home / "model.onnx").graph.node] == ["Sin"]
