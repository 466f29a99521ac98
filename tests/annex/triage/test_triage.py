"""Whole triages of planted faults: the located node, the reduced model and the sentence."""

from collections.abc import Callable
from typing import Any

import onnx
import onnx.parser
import pytest

from harness.core.records.fault import Fault
from harness.core.records.verdict import Phase, Verdict
from tests.annex.triage.planted_faults import DEEP, chain, deep, only

TriagePlanted = Callable[..., list[Fault]]
Nodes = list[tuple[str, list[str], list[str], dict[str, Any]]]


def test_a_wrong_operator_is_found_alone(triage_planted: TriagePlanted) -> None:
    fault = only(triage_planted({"kind": "scale", "op_type": "Softplus", "factor": 1.01}, m=deep()))
    assert fault.signature.verdict is Verdict.MISMATCH
    assert fault.location is not None
    assert (fault.location.op_types, fault.location.exact, fault.location.alone) == (
        ("Softplus",),
        True,
        True,
    )
    assert fault.location.onwards in {False, None}
    assert fault.reduced is not None
    assert [node.op_type for node in fault.reduced.nodes] == ["Softplus"]
    assert "Softplus" in fault.sentence
    assert fault.confirmation.outcome == "always"


@pytest.mark.long
def test_a_wrong_value_that_becomes_nan_is_found_where_it_is_made(triage_planted: TriagePlanted) -> None:
    nodes: Nodes = [
        ("MatMul", ["x", "w1"], ["a"], {}),
        ("Abs", ["a"], ["b"], {}),
        ("Tanh", ["b"], ["c"], {}),
        ("Sqrt", ["c"], ["d"], {}),
        ("Erf", ["d"], ["y"], {}),
    ]
    fault = only(triage_planted({"kind": "scale", "op_type": "Abs", "factor": -1.01}, m=chain(nodes)))
    assert fault.signature.verdict is Verdict.NAN_MISMATCH
    assert fault.location is not None
    assert (fault.location.op_types, fault.location.exact, fault.location.alone) == (("Abs",), True, True)
    assert fault.reduced is not None
    left = [node.op_type for node in fault.reduced.nodes]
    assert (left[0], left[-1]) == ("Abs", "Sqrt")  # without it there is no NaN


@pytest.mark.long
def test_a_wrong_value_that_decides_on_a_shape_is_found_where_it_is_made(
    triage_planted: TriagePlanted,
) -> None:
    text = """<ir_version: 9, opset_import: ["" : 20]>
    chain (float[2, 8] x) => (float[n] y) <float zero = {0}, float one = {1}> {
        a = Neg(x) b = Softplus(a) c = Tanh(b) d = ReduceSum<keepdims = 0>(c) y = Range(zero, d, one)
    }"""
    model = onnx.parser.parse_model(text)
    fault = only(triage_planted({"kind": "scale", "op_type": "Softplus", "factor": 3.5}, m=model))
    assert fault.signature.verdict is Verdict.SHAPE_MISMATCH
    assert fault.location is not None
    assert (fault.location.op_types, fault.location.exact) == (("Softplus",), True)
    assert fault.reduced is not None
    left = [node.op_type for node in fault.reduced.nodes]
    assert (left[0], left[-1]) == ("Softplus", "Range")


def test_an_error_is_located_by_its_message(triage_planted: TriagePlanted) -> None:
    planted = {"kind": "error", "op_type": "Softplus", "phase": "run", "message": "no Softplus for node 17"}
    fault = only(triage_planted(planted, m=deep()))
    assert fault.signature.verdict is Verdict.ERROR
    assert fault.signature.phase is Phase.RUN
    assert fault.location is not None
    assert fault.location.op_types == ("Softplus",)
    assert "no Softplus for node 17" in fault.sentence


@pytest.mark.long
def test_values_of_an_option_that_fail_alike_are_one_fault(triage_planted: TriagePlanted) -> None:
    planted = {"kind": "scale", "op_type": "Tanh", "factor": 1.05}
    model = chain([("Relu", ["x"], ["a"], {}), ("Tanh", ["a"], ["y"], {})])
    varied = {"axes": {"option.mode": ["a", "b"]}, "unchecked_options": True}
    learnt: list[str] = []
    first, second = triage_planted(planted, target=varied, learnt=learnt, m=model)
    assert first.id == second.id
    assert (len(first.cells), len(second.cells)) == (1, 1)
    assert first.cells != second.cells
    assert [text for text in learnt if "here as well" in text] == [
        f"confirm: the fault of {first.representative}, here as well"
    ]


def test_a_crash_is_located(triage_planted: TriagePlanted) -> None:
    # Each trial that fails costs a process: a few nodes show it. Hangs: test_hang_limits.py.
    model = chain([*DEEP[:2], ("Sigmoid", ["b"], ["c"], {}), ("Erf", ["c"], ["y"], {})])
    planted = {"kind": "crash", "op_type": "Sigmoid", "phase": "create", "signal": "SIGSEGV"}
    fault = only(triage_planted(planted, budget_s=90, m=model))
    assert (fault.signature.verdict, fault.signature.phase) == (Verdict.CRASH, Phase.CREATE)
    assert fault.signature.cause == "SIGSEGV"
    assert fault.location is not None
    assert fault.location.op_types == ("Sigmoid",)


def test_a_fault_of_two_fused_nodes_names_both(triage_planted: TriagePlanted) -> None:
    one, other = "Softplus", "MatMul"
    planted = {"kind": "scale", "op_type": one, "with": other, "factor": 1.01}
    fault = only(triage_planted(planted, m=deep()))
    assert fault.location is not None
    assert not fault.location.exact
    assert set(fault.location.op_types) == set(fault.location.fused_op_types) == {one, other}
    assert "only if 2 nodes are compiled together" in fault.sentence


def test_of_two_nodes_that_fail_together_the_one_that_spoils_what_it_gets_is_named(
    triage_planted: TriagePlanted,
) -> None:
    fault = only(
        triage_planted({"kind": "scale", "op_type": "Add", "with": "Tanh", "factor": 1.01}, m=deep())
    )
    assert fault.location is not None
    assert (fault.location.op_types, fault.location.exact, fault.location.alone) == (("Add",), True, False)
    assert set(fault.location.fused_op_types) == {"Add", "Tanh"}
    assert "computes Add of" in fault.sentence
    assert "only if 2 nodes are compiled together" in fault.sentence


@pytest.mark.long
def test_an_optimizer_is_named(triage_planted: TriagePlanted) -> None:
    optimizer = "MatMulAddFusion"
    planted = {"kind": "scale", "op_type": "Tanh", "optimizer": optimizer, "factor": 1.01}
    fault = only(triage_planted(planted, m=deep()))
    gone = {(one.kind, one.name or one.value) for one in fault.conditions if one.fails is False}
    assert ("optimizer", optimizer) in gone
    assert ("graph_optimization", "disabled") in gone
    assert f"right without optimizer {optimizer}" in fault.sentence


def test_a_flaky_fault_is_located_with_repetitions(triage_planted: TriagePlanted) -> None:
    for _ in range(4):  # the run itself must have failed: one session of four does at the latest
        faults = triage_planted({"kind": "scale", "op_type": "Tanh", "factor": 1.01, "rate": 0.3}, m=deep())
        if faults:
            break
    fault = only(faults)
    assert fault.confirmation.outcome == "sometimes"
    assert fault.confirmation.repeats > 10
    assert fault.location is not None
    assert fault.location.op_types == ("Tanh",)


@pytest.mark.long
def test_a_composite_operator_is_taken_apart(triage_planted: TriagePlanted) -> None:
    model = chain([("Neg", ["x"], ["a"], {}), ("Gelu", ["a"], ["b"], {}), ("Abs", ["b"], ["y"], {})])
    fault = only(triage_planted({"kind": "scale", "op_type": "Gelu", "factor": 1.01}, m=model))
    assert fault.location is not None
    assert fault.location.decomposed == ("Gelu",)
    assert "right if Gelu is decomposed" in fault.sentence
