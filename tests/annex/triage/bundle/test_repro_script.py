"""``repro.py``: its exit code for each kind of failure, with the real CPU EP whose runs are bent."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.annex.triage.bundle import ModelSource, PrecedingModel, write_bundle
from harness.core.records.fault import Repetition, Usage
from harness.core.records.scenario import SCENARIOS
from harness.core.records.verdict import Verdict
from harness.core.values.value import Tensor, tensor
from harness.corpus.beside.data_sets import DataSet
from harness.plan.target import Target
from tests.annex.triage.bundle.relu_bundle import CPU, contents, model_bytes

GONE, THERE, CANNOT = 0, 1, 2
BENT = Path(__file__).parent / "bent"


def reproduce(folder: Path, bent: str = "", *arguments: str, **variables: str) -> tuple[int, str]:
    environment = {
        **os.environ,
        "BENT": bent,
        "PYTHONPATH": str(BENT),
        **variables,
    }
    command = [sys.executable, str(folder / "repro.py"), *arguments]
    done = subprocess.run(
        command, capture_output=True, check=False, encoding="utf-8", env=environment, cwd="/", timeout=120
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("verdict", "bent", "code"),
    [
        (Verdict.MISMATCH, "wrong", THERE),
        (Verdict.MISMATCH, "second", THERE),
        (Verdict.MISMATCH, "nan", THERE),
        (Verdict.MISMATCH, "", GONE),
        (Verdict.MISMATCH, "raises", CANNOT),
        (Verdict.MISMATCH, "segv", CANNOT),
        (Verdict.MISMATCH, "elsewhere", CANNOT),
        (Verdict.NAN_MISMATCH, "nan", THERE),
        (Verdict.SHAPE_MISMATCH, "shape", THERE),
        (Verdict.DTYPE_MISMATCH, "dtype", THERE),
        (Verdict.CRASH, "segv", THERE),
        (Verdict.CRASH, "", GONE),
        (Verdict.CRASH, "raises", CANNOT),
        (Verdict.ERROR, "raises", THERE),
        (Verdict.ERROR, "refuses", THERE),
        (Verdict.ERROR, "other", CANNOT),
        (Verdict.ERROR, "", GONE),
        (Verdict.ERROR, "abort", CANNOT),
        (Verdict.NONDETERMINISTIC, "random", THERE),
        (Verdict.NONDETERMINISTIC, "", GONE),
        (Verdict.FALLBACK_AT_RUN, "switches", THERE),
        (Verdict.FALLBACK_AT_RUN, "", GONE),
        (Verdict.HANG, "", GONE),
    ],
)
def test_the_exit_code(tmp_path: Path, verdict: Verdict, bent: str, code: int) -> None:
    message = "fail : node <n> is something wrong at <path>" if verdict is Verdict.ERROR else ""
    write_bundle(tmp_path / "F1", contents(verdict, fault={"message": message}))
    got, text = reproduce(tmp_path / "F1", bent)
    assert got == code, text
    assert ("FAULT GONE", "FAULT THERE", "CANNOT BE JUDGED HERE")[code] in text


def test_a_hang_is_ended(tmp_path: Path) -> None:
    write_bundle(tmp_path / "F1", contents(Verdict.HANG, time_limit_s=5.0))
    assert reproduce(tmp_path / "F1", "hang")[0] == THERE
    write_bundle(tmp_path / "F1", contents(time_limit_s=5.0))
    assert reproduce(tmp_path / "F1", "hang")[0] == CANNOT


def test_expected_found_and_limit_are_shown(tmp_path: Path) -> None:
    write_bundle(tmp_path / "F1", contents())
    _, text = reproduce(tmp_path / "F1", "wrong")
    assert 'at [0, 0]: expected "0.0", found "1.0"' in text
    assert "limit 0.001" in text
    assert "{'EP': 1, 'others': 0}" in text


def test_what_a_preceding_model_leaves_behind_shows(tmp_path: Path) -> None:
    alone = contents()
    write_bundle(tmp_path / "alone", alone)
    before = PrecedingModel(model=alone.model, inputs=alone.inputs)
    write_bundle(tmp_path / "after", contents(preceding=(before,)))
    for name, code in (("alone", GONE), ("after", THERE)):
        path = tmp_path / name / "manifest.json"
        path.write_text(path.read_text("utf-8").replace('"runs": 2', '"runs": 1'), encoding="utf-8")
        assert reproduce(tmp_path / name, "leak")[0] == code


def test_a_failure_that_comes_sometimes_is_tried_as_often_as_it_takes(tmp_path: Path) -> None:
    sometimes = Repetition(outcome="sometimes", trials=10, failures=3, repeats=3)
    write_bundle(tmp_path / "F1", contents(fault={"confirmation": sometimes}))
    code, text = reproduce(tmp_path / "F1")
    assert code == GONE
    assert text.count("FAULT GONE") == 3
    assert reproduce(tmp_path / "F1", "wrong")[1].count("FAULT THERE") == 1


def test_a_missing_provider_cannot_be_judged(tmp_path: Path) -> None:
    target = Target(name="there", provider=("NoSuchExecutionProvider",))
    write_bundle(tmp_path / "F1", contents(target=target))
    code, text = reproduce(tmp_path / "F1", "wrong")
    assert code == CANNOT
    assert "NoSuchExecutionProvider is not in this onnxruntime" in text


def test_a_missing_onnxruntime_cannot_be_judged(tmp_path: Path) -> None:
    write_bundle(tmp_path / "F1", contents())
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "onnxruntime.py").write_text("raise ImportError('broken')", encoding="utf-8")
    assert reproduce(tmp_path / "F1", PYTHONPATH=str(tmp_path / "none"))[0] == CANNOT


def test_what_was_a_path_has_to_be_given(tmp_path: Path) -> None:
    target = Target(name="here", provider=(CPU,), env={"VENDOR": "/opt/vendor/x.json", "MODE": "fast"})
    write_bundle(tmp_path / "F1", contents(target=target))
    code, text = reproduce(tmp_path / "F1", "wrong")
    assert code == CANNOT
    assert "set the environment variable VENDOR" in text
    assert reproduce(tmp_path / "F1", "wrong", VENDOR="/mine")[0] == THERE
    target = Target(name="here", provider=(CPU,), options={"cache": "/opt/cache"})
    write_bundle(tmp_path / "F1", contents(target=target))
    assert reproduce(tmp_path / "F1", "wrong")[0] == CANNOT
    assert reproduce(tmp_path / "F1", "wrong", "cache=/mine")[0] == THERE


NOT_ON_THE_CPU = {"ep_context", "cpu_fallback_disabled", "lifecycle"}


@pytest.mark.parametrize("scenario", sorted(SCENARIOS.keys() - {"plain", "generate"} - NOT_ON_THE_CPU))
def test_scenarios_are_played(tmp_path: Path, scenario: str) -> None:
    planted: dict[str, Any] = {"expected": contents().found, "found": contents().expected}
    write_bundle(tmp_path / "F1", contents(axes={"scenario": scenario}, **planted))
    code, text = reproduce(tmp_path / "F1")
    assert code == THERE, text


def test_a_scenario_is_played_with_its_figures(tmp_path: Path) -> None:
    planted: dict[str, Any] = {"expected": contents().found, "found": contents().expected}
    axes = {"scenario": "concurrent", "scenario.threads": "3", "scenario.runs": "2"}
    write_bundle(tmp_path / "F1", contents(axes=axes, **planted))
    assert reproduce(tmp_path / "F1")[1].count("a run in 3 threads") == 6
    axes = {"scenario": "sessions", "scenario.count": "4"}
    write_bundle(tmp_path / "F1", contents(axes=axes, **planted))
    text = reproduce(tmp_path / "F1")[1]
    assert [f"run {number}," in text for number in (4, 5)] == [True, False]


@pytest.mark.parametrize(("bent", "code"), [("", GONE), ("third", THERE), ("fourth", GONE)])
def test_other_inputs_run_before_the_first_ones_again(tmp_path: Path, bent: str, code: int) -> None:
    """Of a failure that needs two runs, the third run of the session is the second with the given inputs."""
    made = contents()
    ((_, given),) = made.inputs
    assert isinstance(given, Tensor)
    other = given.array[::-1, ::-1].copy()
    further = DataSet(
        name="", inputs=(("x", tensor(other)),), expected=(("y", tensor(np.maximum(other, 0))),)
    )
    write_bundle(tmp_path / "F1", contents(fault={"usage": Usage(runs=2)}, further=(further,)))
    got, text = reproduce(tmp_path / "F1", bent)
    assert got == code, text
    assert "ok     run 2" in text


def test_an_error_of_two_words_is_known_by_its_kind(tmp_path: Path) -> None:
    write_bundle(tmp_path / "F1", contents(Verdict.ERROR, fault={"message": "RuntimeError: used up"}))
    assert reproduce(tmp_path / "F1", "used")[0] == THERE


def test_a_result_that_differs_only_among_others_is_an_error(tmp_path: Path) -> None:
    message = (
        "_CrossTalkError: among concurrent runs a result is off by # of its largest value, "
        "which it is not alone"
    )
    made = contents()
    further = DataSet(name="", inputs=made.inputs, expected=made.expected)
    axes = {"scenario": "concurrent", "scenario.threads": "2", "scenario.runs": "2"}
    write_bundle(
        tmp_path / "F1", contents(Verdict.ERROR, fault={"message": message}, axes=axes, further=(further,))
    )
    assert reproduce(tmp_path / "F1", "third")[0] == THERE
    assert reproduce(tmp_path / "F1")[0] == GONE


def test_session_settings_reach_the_session(tmp_path: Path) -> None:
    axes = {
        "graph_optimization": "disabled",
        "execution_mode": "parallel",
        "intra_op_threads": "2",
        "session.disable_prepacking": "1",
    }
    write_bundle(tmp_path / "F1", contents(axes=axes))
    assert reproduce(tmp_path / "F1", "wrong")[0] == THERE


NARROW = """<ir_version: 10, opset_import: ["" : 21]>
agraph (bfloat16[4] x, int4[3] i) => (bfloat16[4] y, int4[3] j) {
    y = Identity(x) f = Cast<to=1>(i) j = Cast<to=22>(f) }"""


def test_types_that_numpy_lacks_go_in_and_out(tmp_path: Path) -> None:
    import ml_dtypes

    given = np.array([1, -2, 3, 0.5], ml_dtypes.bfloat16)
    whole = np.array([1, -8, 7], ml_dtypes.int4)
    inputs = (("x", tensor(given)), ("i", tensor(whole)))
    off = np.array([1, -8, 6], ml_dtypes.int4)
    made = contents(
        model=ModelSource(content=model_bytes(NARROW)),
        inputs=inputs,
        expected=(("y", tensor(given)), ("j", tensor(off))),
        found=(("y", tensor(given)), ("j", tensor(whole))),
        limits={"y": 0.0, "j": 0.0},
    )
    write_bundle(tmp_path / "F1", made)
    code, text = reproduce(tmp_path / "F1")
    assert code == THERE, text
    assert "WRONG  run 1, j: int4[3]" in text
    assert "ok     run 1, y: bfloat16[4]" in text
