"""``ep-harness replay``: the verdict ladder of a run, on any target, and nothing of the bundle is run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.annex.triage.bundle import ModelSource, PrecedingModel, write_bundle
from harness.annex.triage.bundle_files import read_bundle
from harness.annex.triage.bundle_replay import fault_state, same_message, staged
from harness.cli.main import main
from harness.core.records.verdict import Verdict
from harness.core.values.value import tensor
from harness.engine.tasks.events import Finished
from harness.plan.target import Target
from tests.annex.triage.bundle.relu_bundle import CPU, contents
from tests.kit import bare_record, placement_of

GONE, THERE, USAGE, UNKNOWN = 0, 1, 2, 3
WRONG_SHAPE = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[2,3] x, int64[1] s) => (float[n] y) { y = Reshape(x, s) }"""


def planted(**changes: Any) -> Any:
    """Contents that expect what the CPU EP does not give."""
    made = contents()
    return contents(expected=made.found, found=made.expected, **changes)


def test_a_planted_expectation_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = write_bundle(tmp_path / "F1", planted())
    (tmp_path / "F1" / "repro.py").write_text("raise SystemExit('run')", encoding="utf-8")
    assert main(["replay", str(archive)]) == THERE
    told = capsys.readouterr().out
    assert "fault there" in told
    assert "1 nodes on the EP" in told


def test_a_right_answer_is_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = PrecedingModel(model=contents().model, inputs=contents().inputs)
    archive = write_bundle(tmp_path / "F1", contents(preceding=(before,)))
    assert main(["replay", str(archive), "--json"]) == GONE
    told = json.loads(capsys.readouterr().out)
    assert told["state"] == "gone"
    assert told["record"]["verdict"] == "pass"


def test_another_target_judges_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = Target(name="there", provider=("NoSuchExecutionProvider",))
    archive = str(write_bundle(tmp_path / "F1", planted(target=target)))
    matrix = tmp_path / "m.toml"
    matrix.write_text(
        f'schema = 1\n[models]\nsuites = ["onnx-node"]\n[[target]]\nname = "mine"\nprovider = "{CPU}"\n',
        "utf-8",
    )
    assert main(["replay", archive]) == UNKNOWN
    assert "unavailable" in capsys.readouterr().out
    assert main(["replay", archive, "--target", f"{matrix}:mine"]) == THERE
    assert main(["replay", archive, "--provider", CPU]) == THERE


def test_wrong_arguments_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = str(write_bundle(tmp_path / "F1", planted()))
    for arguments in (
        ["--target", "m.toml"],
        ["--target", f"{tmp_path}/none.toml:x"],
        ["--target", "m.toml:x", "--option", "a=b"],
        ["--option", "a"],
    ):
        assert main(["replay", archive, *arguments]) == USAGE
        assert len(capsys.readouterr().err.splitlines()) <= 2
    assert main(["replay", str(tmp_path / "none")]) == USAGE


def test_a_model_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    archive = write_bundle(tmp_path / "F1", planted(model=ModelSource(content=b"no model")))
    assert main(["replay", str(archive)]) == USAGE


@pytest.fixture
def judged(tmp_path: Path) -> Callable[..., tuple[str, str]]:
    """Judge what the engine might say of a bundle of some verdict."""

    def judge(
        wanted: Verdict, got: Verdict, message: str = "", found: Any = None, reason: str = ""
    ) -> tuple[str, str]:
        write_bundle(tmp_path / "F1", contents(wanted, fault={"message": message}))
        bundle = read_bundle(tmp_path / "F1")
        record = bare_record(
            "model.onnx",
            got,
            suite="bundle",
            target="here",
            provider=CPU,
            expected=False,
            reason=reason,
            placement=placement_of({"Relu": 1}),
        )
        outputs = () if found is None else (("y", tensor(found)),)
        with staged(bundle, Target(name="here", provider=(CPU,))) as stage:
            return fault_state(bundle.manifest, stage.case, Finished(record=record, outputs=outputs))

    return judge


RIGHT = np.array([[0, 0, 0], [0, 1, 2]], np.float32)


@pytest.mark.parametrize(
    ("wanted", "got", "state"),
    [
        (Verdict.MISMATCH, Verdict.MISMATCH, "there"),
        (Verdict.MISMATCH, Verdict.NAN_MISMATCH, "there"),
        (Verdict.MISMATCH, Verdict.CRASH, "unknown"),
        (Verdict.MISMATCH, Verdict.ERROR, "unknown"),
        (Verdict.MISMATCH, Verdict.FALLBACK, "unknown"),
        (Verdict.MISMATCH, Verdict.UNSUPPORTED, "unknown"),
        (Verdict.MISMATCH, Verdict.UNAVAILABLE, "unknown"),
        (Verdict.MISMATCH, Verdict.INVALID_MODEL, "unknown"),
        (Verdict.CRASH, Verdict.CRASH, "there"),
        (Verdict.CRASH, Verdict.PASS, "gone"),
        (Verdict.CRASH, Verdict.MISMATCH, "gone"),
        (Verdict.CRASH, Verdict.HANG, "unknown"),
        (Verdict.CRASH, Verdict.FALLBACK, "unknown"),
        (Verdict.HANG, Verdict.HANG, "there"),
        (Verdict.UNSUPPORTED, Verdict.UNSUPPORTED, "there"),
        (Verdict.UNSUPPORTED, Verdict.PASS, "gone"),
        (Verdict.NONDETERMINISTIC, Verdict.NONDETERMINISTIC, "there"),
        (Verdict.NONDETERMINISTIC, Verdict.PASS_PARTIAL, "gone"),
        (Verdict.ERROR, Verdict.HARNESS_ERROR, "unknown"),
    ],
)
def test_a_fault_is_the_same_failure_or_none(
    judged: Callable[..., tuple[str, str]], wanted: Verdict, got: Verdict, state: str
) -> None:
    assert judged(wanted, got)[0] == state


def test_values_are_held_against_the_bundle_s_limits(judged: Callable[..., tuple[str, str]]) -> None:
    assert judged(Verdict.MISMATCH, Verdict.PASS, found=RIGHT)[0] == "gone"
    state, why = judged(Verdict.MISMATCH, Verdict.PASS, found=RIGHT + np.float32(0.1))
    assert state == "there"
    assert "limit" in why
    assert judged(Verdict.MISMATCH, Verdict.REFERENCE_DISPUTED, found=RIGHT)[0] == "gone"


def test_an_error_must_have_the_same_words(judged: Callable[..., tuple[str, str]]) -> None:
    message = "node <name> has no kernel for <n>"
    there = judged(Verdict.ERROR, Verdict.ERROR, message, reason="Node 'a' has no kernel for 17 at z.cc:3")
    assert there[0] == "there"
    assert judged(Verdict.ERROR, Verdict.ERROR, message, reason="out of memory")[0] == "unknown"
    assert same_message("", "anything")
