"""`ep-harness advise` on a folder of onnxruntime-genai: what it asks, and what it prints for the winner."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.annex.advise.candidates import Candidate
from harness.annex.advise.search_result import Advice, TriedCandidate
from harness.annex.made.decoders.roster import write_decoder
from harness.cli import main
from harness.core.agreement.agreement import Agreement
from harness.core.records.generation_figures import GenerationFigures, GenerationSpeed
from harness.core.timing.latency import latency_of
from harness.plan.target import Target
from tests.kit import bare_record, told_latency, write_model

CPU = "CPUExecutionProvider"
TINY = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[2] x) => (float[2] y) { y = Relu(x) }"""
SPEED = GenerationSpeed(
    first_token_ms={1: 0.5, 40: 12.25}, tokens_per_s={1: 512.4, 4: 2048.9}, cache_mib=0.125
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "llm"
    folder.mkdir()
    write_decoder("gqa-h64", folder)
    return folder


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Replace the search, which takes a minute: the CPU provider as it is wins. What it was asked for."""
    calls: dict[str, Any] = {}

    def search(suite: object, matrix: Any, **kwargs: Any) -> Advice:
        calls.update(kwargs, suite=suite, matrix=matrix)
        return Advice(
            ranked=(winner(),),
            fell_out=(),
            not_tried=(),
            targets={"cpu": Target(name="cpu", provider=(CPU,))},
            fingerprints={},
            stopped_by="end",
            elapsed_s=1.0,
        )

    monkeypatch.setattr("harness.annex.advise.command_advise.advise", search)
    return calls


def winner() -> TriedCandidate:
    record = bare_record(
        "model.onnx",
        suite="llm",
        target="cpu",
        provider=CPU,
        cell="llm/model.onnx[cpu,scenario=generate]",
        latency=latency_of(told_latency([2_000_000])),
        generation=GenerationFigures(speed=SPEED),
    )
    return TriedCandidate(candidate=Candidate(target="cpu"), record=record)


def test_a_folder_is_advised_on_as_its_decoder_generates_text(
    folder: Path, asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    assert main(["advise", str(folder), CPU]) == 0
    assert asked["scenario"] == "generate"
    assert asked["suite"].models() == ("model.onnx",)
    assert "shared_buffer" not in asked["matrix"].scenarios.generate.ways
    assert [entry.noise is not None for entry in asked["matrix"].tolerance] == [True]
    printed = capsys.readouterr().out
    words = " ".join(printed.split())
    assert "p50: median time of one token, with the text before it in the cache" in words
    assert (
        "speed: first token 12.25 ms after a prompt of 40; 512 tokens/s; 2,049 tokens/s with a batch of 4; "
        "cache 0.125 MiB"
    ) in words
    assert "one buffer for past and present gives the right results" in words
    code, _, genai = printed.partition("import onnxruntime as ort")[2].partition("or with onnxruntime-genai")
    program = f"import onnxruntime as ort{code}\nprint(len(generate([5, 6], 3)))\n"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, "5"), ran.stderr
    assert f"og.Config({str(folder)!r})" in genai
    assert '"past_present_share_buffer": true' in genai


def test_json_has_it_all(folder: Path, asked: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    assert main(["advise", str(folder), CPU, "--json"]) == 0
    assert asked
    told = json.loads(capsys.readouterr().out)
    assert told["winner"] == "cpu"
    assert told["text"]["sharing"] == {"state": "right", "reason": ""}
    assert told["text"]["speed"]["tokens_per_s"] == {"1": 512.4, "4": 2048.9}
    assert "def generate(prompt, new_tokens)" in told["text"]["decode_code"]
    assert told["text"]["genai_code"].endswith("model = og.Model(config)\n")


def test_a_broken_configuration_gets_two_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "genai_config.json").write_text('{"model": 1}', encoding="utf-8")
    assert main(["advise", str(folder), CPU]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"ep-harness: {folder / 'genai_config.json'}: model: ")
    assert "Model Builder" in second


def test_answers_stand_beside_the_time_of_each_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Agreement(output="scores", kind="top1", same=39, of=40)
    first = winner()
    record = msgspec.structs.replace(first.record, generation=None, agreement=(found,))
    ranked = (TriedCandidate(candidate=first.candidate, record=record),)

    def search(*_: object, **__: Any) -> Advice:
        return Advice(
            ranked=ranked,
            fell_out=(),
            not_tried=(),
            targets={"cpu": Target(name="cpu", provider=(CPU,))},
            fingerprints={},
            stopped_by="end",
            elapsed_s=1.0,
        )

    monkeypatch.setattr("harness.annex.advise.command_advise.advise", search)
    model = tmp_path / "m.onnx"
    write_model(model, TINY)
    assert main(["advise", str(model), CPU]) == 0
    told = capsys.readouterr().out
    assert " answers " in told
    assert " 39/40 " in told
    assert "answers: scores: top-1 the same in 39 of 40" in told
