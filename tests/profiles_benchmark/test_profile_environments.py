"""The comparison of several Pythons tells what differs; the Pythons here only pretend to run."""

import json
import sys
from pathlib import Path

from benchmarks.profiles.environments import compare_environments
from harness.annex.conformance.profiles.profile import load_profile
from harness.annex.conformance.profiles.profile_suite import open_profile
from harness.plan.expand import expand
from tests.kit import Capture, make_matrix
from tests.programs import write_program

LABEL = "qdq@1"

PRETENDS = """#!{python}
import json, pathlib, sys
if sys.argv[1] == "-c":
    names = ("Python", "numpy", "onnx", "ml_dtypes", "msgspec", "onnxruntime")
    print(json.dumps(dict.fromkeys(names, "9.9")))
else:
    records = [
        {{"cell": f"qdq-1/a[{{target}},scenario=plain]", "verdict": {verdict!r}, "outputs": [{rmse}]}}
        for target in ("cpu", "cpu-numpy-1.26")
    ]
    pathlib.Path("run").mkdir()
    pathlib.Path("run/records.jsonl").write_text("".join(json.dumps(one) + "\\n" for one in records))
"""


def python(folder: Path, name: str, verdict: str, rmse: float) -> str:
    path = folder / name
    write_program(path, PRETENDS.format(python=sys.executable, verdict=verdict, rmse=rmse))
    return str(path)


def compared(folder: Path, *pythons: str) -> int:
    return compare_environments(pythons, [LABEL], folder / "out", qnn=False)


def test_equal_verdicts_and_metrics(tmp_path: Path, capsys: Capture) -> None:
    pythons = [python(tmp_path, name, "pass", 1e-7) for name in "ab"]
    assert compared(tmp_path, *pythons) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert len(rows) == 4
    assert rows[:2] == rows[2:]
    assert all(row.endswith("| 1 | 1 | `" + row.split("`")[-2] + "` | 0 |") for row in rows)


def test_another_verdict_is_an_error_and_named(tmp_path: Path, capsys: Capture) -> None:
    pythons = [python(tmp_path, "a", "pass", 1e-7), python(tmp_path, "b", "mismatch", 1e-7)]
    assert compared(tmp_path, *pythons) == 1
    assert "- qdq-1/a[cpu,scenario=plain]: pass, mismatch" in capsys.readouterr().out


def test_other_metrics_are_named(tmp_path: Path, capsys: Capture) -> None:
    pythons = [python(tmp_path, "a", "pass", 1e-7), python(tmp_path, "b", "pass", 2e-7)]
    assert compared(tmp_path, *pythons) == 0
    assert "other metrics" in capsys.readouterr().out.splitlines()[-1]


def test_the_matrix_has_just_the_cases_of_the_profile(tmp_path: Path, own_cache: Path) -> None:
    assert own_cache
    compared(tmp_path, python(tmp_path, "a", "pass", 0.0))
    path = tmp_path / "out" / f"0-{LABEL}" / "matrix.toml"
    matrix = make_matrix(path.read_text("utf-8"), path)
    suite = open_profile(LABEL)
    plan = expand(matrix, {suite.name: suite.models()})
    found = {(one.model, dict(one.axes)["scenario"]) for one in plan.cells if one.target == "cpu"}
    assert found == {case.key for case in load_profile(LABEL).cases}
    assert {json.dumps(one.runtime.packages) for one in matrix.targets if one.runtime.packages} == {
        '["onnxruntime==9.9", "numpy==1.26.4"]'
    }
