"""onnx's checker and type inference in a process of their own."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import onnx
import pytest

from harness.annex.made.zoo.roster import build, zoo_models
from harness.annex.triage.onnx_process import OnnxProcess

VALID = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x) => (float[2,3] y) { a = Abs(x) y = Neg(a) }'
).SerializeToString()
CONTRADICTION = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x) => (float[4,5] y) { a = Abs(x) y = Neg(a) }'
).SerializeToString()


@pytest.fixture
def process() -> Iterator[OnnxProcess]:
    one = OnnxProcess()
    yield one
    one.close()


def test_answers_are_those_of_onnx(process: OnnxProcess) -> None:
    assert not process.problem(VALID)
    assert "No Op registered for Nix" in process.problem(VALID.replace(b"Neg", b"Nix"))
    inferred = process.inferred(VALID)
    assert inferred is not None
    assert [info.name for info in onnx.ModelProto.FromString(inferred).graph.value_info] == ["a"]
    assert process.inferred(CONTRADICTION) is None
    assert process.problem(b"no model")


def test_a_process_that_was_ended_is_started_again(
    process: OnnxProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: Any, **named: Any) -> "subprocess.Popen[bytes]":
        started.append(real(*arguments, **named))
        return started[-1]

    real = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", start)
    assert not process.problem(VALID)
    (first,) = started
    first.kill()
    first.wait()
    assert not process.problem(VALID)
    assert len(started) == 2


def test_a_model_that_crashes_onnx_costs_its_own_answer(
    process: OnnxProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(_: object, **named: Any) -> "subprocess.Popen[bytes]":
        return real([sys.executable, "-c", ""], **named)

    real = subprocess.Popen
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", dies)
        assert process.inferred(VALID) is None
        assert process.problem(VALID) == "onnx's checker crashed"
    assert not process.problem(VALID)


def test_onnx_answers_after_a_model_that_is_known_to_crash_it(process: OnnxProcess) -> None:
    process.inferred(build(zoo_models()["trees-small-op22"]).model("trees").SerializeToString())
    assert not process.problem(VALID)
