"""Triage of decoders that fail in ways: a single run shows the fault, or the record's words stand alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from harness.core.records.fault import Fault
from harness.core.records.verdict import Verdict
from tests import small_decoders

pytest.importorskip("onnxruntime")

TriagePlanted = Callable[..., list[Fault]]
TABLES: dict[str, Any] = {
    "axes": {"scenario": ["generate"]},
    "scenarios": {"generate": {"ways": ["at_once", "step"], "length": 16, "new_tokens": 4}},
    "tolerance": [{"noise": {}}],
}
TARGET = {"timeouts_s": {"create": 60, "run": 60}}


@pytest.fixture
def decoder(tmp_path: Path) -> onnx.ModelProto:
    small_decoders.counting(tmp_path / "made")
    return onnx.load(tmp_path / "made" / "model.onnx")


@pytest.fixture
def triage(triage_planted: TriagePlanted, decoder: onnx.ModelProto) -> Callable[..., tuple[Fault, list[str]]]:
    def run(fault: dict[str, Any]) -> tuple[Fault, list[str]]:
        learnt: list[str] = []
        (found,) = triage_planted(fault, tables=TABLES, target=TARGET, learnt=learnt, m=decoder)
        assert "scenario=generate" in found.representative
        return found, learnt

    return run


@pytest.mark.long
def test_a_fault_of_every_run_is_located_in_scenario_plain(triage: Callable[..., Any]) -> None:
    fault, learnt = triage({"kind": "scale", "op_type": "CumSum", "factor": 1.01})
    assert not fault.inconclusive, fault.sentence
    assert "confirm: it fails in scenario plain, too: the whole text of at_once" in learnt
    assert fault.location is not None
    assert fault.location.op_types == ("CumSum",)
    assert fault.scenario == ""
    assert [node.op_type for node in fault.reduced.nodes] == ["CumSum"]
    assert fault.bundle


def test_a_fault_of_what_is_cached_is_located_in_the_step_that_reads_it(triage: Callable[..., Any]) -> None:
    fault, learnt = triage({"kind": "scale", "op_type": "Identity", "factor": 1.01})
    assert not fault.inconclusive, fault.sentence
    assert "confirm: it fails in scenario plain, too: position 12 of step" in learnt
    assert fault.location is not None
    assert fault.location.op_types == ("Identity",)
    assert fault.confirmation.outcome == "always"


@pytest.mark.long
def test_an_error_of_a_step_is_found_without_the_words_of_its_way(triage: Callable[..., Any]) -> None:
    planted = {"kind": "error", "op_type": "CumSum", "phase": "run", "message": "no sums today"}
    fault, _ = triage(planted)
    assert not fault.inconclusive, fault.sentence
    assert fault.signature.verdict is Verdict.ERROR
    assert fault.location is not None
    assert fault.location.op_types == ("CumSum",)
    assert "no sums today" in fault.sentence


def test_a_failure_that_no_single_run_shows_is_told_with_its_place(triage: Callable[..., Any]) -> None:
    # Only from the fifth run of a session on: in the step of position 14.
    fault, _ = triage({"kind": "bend", "op_type": "CumSum", "factor": 1.5, "run": 5})
    assert fault.id.startswith("I")
    assert (fault.confirmation.outcome, fault.confirmation.trials) == ("always", 5)
    assert fault.inconclusive.startswith("fails in 5 of 5 trials: way step: logits wrong from position 14 on")
    assert "present.0.key" in fault.inconclusive
    tried = "the whole text of step; position 14 of step; positions 0 to 11 of step; position 12 of step"
    assert fault.inconclusive.endswith(f"with the CPU EP's cache, single runs do not fail: {tried}")
    assert fault.inconclusive in fault.sentence
