"""Lower limits of time for trials of a hang: cheap, and never a slow model taken for a hang."""

from collections.abc import Callable
from typing import Any

import onnx
import pytest

from harness.annex.triage import hang_limits as module
from harness.annex.triage.hang_limits import LIMITS_S, MULTIPLE, limited_targets, safe_limits
from harness.core.records.fault import Fault, Usage
from harness.core.records.verdict import Phase, Verdict
from harness.plan.file_format import Timeouts
from harness.plan.target import Target
from tests.annex.triage.planted_faults import chain

LOW_S, FULL_S, BUDGET_S = 0.5, 2.0, 60.0

TriagePlanted = Callable[..., list[Fault]]


def target(**limits: float) -> Target:
    return Target(name="t", provider=("AnyExecutionProvider",), timeouts_s=Timeouts(**limits))


def test_only_lower_limits_are_tried() -> None:
    found = limited_targets(target(create=300.0, run=20.0))
    assert [one.limit_s for one in found] == [limit for limit in LIMITS_S if limit < 20]
    assert len({one.target.name for one in found}) == len(found)
    for one in found:
        assert one.target.timeouts_s == Timeouts(create=one.limit_s, run=one.limit_s)
    assert limited_targets(target(create=1.0)) == ()


def test_a_limit_is_a_multiple_of_what_is_healthy() -> None:
    limited = limited_targets(target())
    assert list(safe_limits(limited, 0.0)) == list(limited)
    slow = [one.limit_s for one in safe_limits(limited, LIMITS_S[0] / MULTIPLE * 1.01)]
    assert slow == list(LIMITS_S[1:])
    assert list(safe_limits(limited, 1e6)) == []
    assert list(safe_limits(limited, None)) == []


@pytest.fixture
def triage_hang(
    triage_planted: TriagePlanted, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Fault, list[str]]]:
    """Triage a hang with one lower limit; the fault, and what was told."""
    monkeypatch.setattr(module, "LIMITS_S", (LOW_S,))
    monkeypatch.setattr(module, "MULTIPLE", 1.0)  # other work on this machine makes the CPU EP slow

    def triage(
        planted: dict[str, Any], model: onnx.ModelProto, budget_s: float = BUDGET_S
    ) -> tuple[Fault, list[str]]:
        learnt: list[str] = []
        tables = {"timeouts_s": {"create": FULL_S, "run": FULL_S}}
        (fault,) = triage_planted(
            {"kind": "hang", **planted}, target=tables, learnt=learnt, budget_s=budget_s, m=model
        )
        assert not fault.inconclusive, fault.sentence
        assert fault.signature.verdict is Verdict.HANG
        return fault, learnt

    return triage


TriageHang = Callable[..., tuple[Fault, list[str]]]


@pytest.fixture
def model() -> onnx.ModelProto:
    return chain([("Neg", ["x"], ["a"], {}), ("Erf", ["a"], ["b"], {}), ("Tanh", ["b"], ["y"], {})])


def test_a_hang_is_explained(triage_hang: TriageHang, model: onnx.ModelProto) -> None:
    fault, learnt = triage_hang({"op_type": "Tanh", "phase": "run", "run": 2, "size": 2}, model)
    assert fault.signature.phase is Phase.RUN
    assert fault.usage == Usage(runs=2)
    assert fault.location is not None
    assert (fault.location.op_types, fault.location.exact) == (("Tanh",), True)
    assert fault.reduced is not None
    assert "Tanh" in [node.op_type for node in fault.reduced.nodes]
    assert any(f"a trial gets {LOW_S:g} s" in line for line in learnt)
    # What did not end within the lower limit may be slow: nothing is said about it.
    assert not any(condition.fails for condition in fault.conditions)
    (shape,) = [one.shape for one in fault.reduced.tensors if one.role == "input"]
    assert shape.startswith("2x")


@pytest.mark.long
def test_what_is_slow_is_not_taken_for_the_hang(triage_hang: TriageHang) -> None:
    model = chain([("Erf", ["x"], ["a"], {}), ("Tanh", ["a"], ["y"], {})])
    planted = {"op_type": "Tanh", "phase": "create", "slow": "Erf", "seconds": LOW_S * 2}
    fault, learnt = triage_hang(planted, model, 2 * BUDGET_S)  # all is done twice
    assert (fault.signature.phase, fault.usage) == (Phase.CREATE, None)
    assert any("is slow, and no hang" in line for line in learnt)
    assert fault.location is not None
    assert fault.location.op_types == ("Tanh",)
    assert fault.reduced is not None
    assert "Erf" not in [node.op_type for node in fault.reduced.nodes]
