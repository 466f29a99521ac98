"""`ep-harness judge` on runs of the CPU provider: the verdicts that another tolerance would have given."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from harness.cli import main
from harness.core.comparison.noise_limits import DEFAULT_LIMITS, rms_limit
from tests.kit import read_rows

MATRIX = """
schema = 1
models.folders = ["models"]
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
[[target]]
name = "basic"
provider = "CPUExecutionProvider"
axes = { graph_optimization = ["disabled"] }
[[tolerance]]
TOLERANCE
"""


def write_model(path: Path) -> None:
    """A product whose sums come out differently once onnxruntime has fused its scale into it."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((64, 64)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["x", "s"], ["a"]),
            helper.make_node("MatMul", ["a", "w"], ["b"]),
            helper.make_node("Softmax", ["b"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", 1, [8, 64])],
        [helper.make_tensor_value_info("y", 1, [8, 64])],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.array(0.37, np.float32), "s")],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), path)


def run(home: Path, tolerance: str) -> Path:
    out = home / f"run-{len(list(home.iterdir()))}"
    (home / "m.toml").write_text(MATRIX.replace("TOLERANCE", tolerance), encoding="utf-8")
    assert main(["run", str(home / "m.toml"), "--out", str(out), "--no-report"]) in {0, 1}
    return out


def verdicts(run: Path) -> dict[str, str]:
    rows: list[dict[str, Any]] = read_rows(run)
    return {row["cell"]: row["verdict"] for row in rows}


@pytest.fixture
def policy(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = tmp_path / "policy.toml"
        path.write_text(f"schema = 1\n[[tolerance]]\n{text}\n", encoding="utf-8")
        return str(path)

    return write


def test_a_run_judged_again_is_the_run_under_that_tolerance(
    tmp_path: Path, policy: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    write_model(tmp_path / "models" / "m.onnx")
    loose = run(tmp_path, "rtol = 1e-3\natol = 1e-5\ntable_only = true")
    tight = run(tmp_path, "rtol = 0.0\natol = 0.0\ntable_only = true")
    assert set(verdicts(loose).values()) == {"pass"}
    # A run compares with references: here the CPU provider without optimizations, which is what "basic" is.
    assert set(verdicts(tight).values()) == {"pass", "reference_disputed"}
    back = str(tmp_path / "back")
    assert (
        main(
            [
                "judge",
                str(tight),
                "--policy",
                policy("rtol = 1e-3\natol = 1e-5\ntable_only = true"),
                "--out",
                back,
            ]
        )
        == 0
    )
    assert verdicts(Path(back)) == verdicts(loose)
    capsys.readouterr()
    nothing = policy("rtol = 0.0\natol = 0.0\ntable_only = true")
    assert main(["judge", str(loose), "--policy", nothing, "--out", str(tmp_path / "judged")]) == 1
    message = capsys.readouterr().out
    assert "1  pass -> mismatch" in message
    assert "1 unexpected" in message
    assert "needs rtol" in message
    assert "1 were not compared with references; a run may find some of these disputed" in message
    judged = verdicts(tmp_path / "judged")
    assert judged == {
        cell: "mismatch" if verdict == "reference_disputed" else verdict
        for cell, verdict in verdicts(tight).items()
    }
    matrix = json.loads((tmp_path / "judged" / "run.json").read_text("utf-8"))["matrix"]
    assert matrix["tolerance"][-1]["rtol"] == 0.0
    # The new folder is a run like any other.
    assert main(["diff", str(loose), str(tmp_path / "judged")]) == 0
    assert main(["judge", str(loose), "--policy", nothing, "--out", str(tmp_path / "judged")]) == 2


def test_a_policy_speaks_of_some_cells(tmp_path: Path, policy: Callable[[str], str]) -> None:
    write_model(tmp_path / "models" / "m.onnx")
    loose = run(tmp_path, "rtol = 1e-3\natol = 1e-5")
    assert main(["judge", str(loose), "--policy", policy('target = "cpu"\nrtol = 0.0\natol = 0.0')]) == 0
    strict = 'target = "b*"\nrtol = 0.0\natol = 0.0'
    assert main(["judge", str(loose), "--policy", policy(strict)]) == 1
    assert main(["judge", str(loose), "--policy", policy('target = "b*"\nnoise = {}')]) == 0
    assert main(["judge", str(loose), "--policy", "polygraphy"]) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rtol = 0.1\natol = 3e-5", "tolerance[0].atol: 3e-05 cannot be judged from records"),
        ("rtol = 0.1\natoll = 1e-5", "did you mean 'atol'?"),
        ("rtol = 0.1", "tolerance[0]: the key 'atol' is missing"),
        ("noise = {}\nrtol = 0.1\natol = 0", "got noise and rtol and atol, which exclude each other"),
        ("table_only = true\nnoise = {}", "got noise and table_only, which exclude each other"),
        ('target = "nothing"\nrtol = 0.1\natol = 1e-5', "tolerance[0]: matches no cell of the run"),
    ],
)
def test_bad_policies(
    tmp_path: Path,
    policy: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
    text: str,
    message: str,
) -> None:
    write_model(tmp_path / "models" / "m.onnx")
    loose = run(tmp_path, "rtol = 1e-3\natol = 1e-5")
    assert main(["judge", str(loose), "--policy", policy(text)]) == 2
    assert message in capsys.readouterr().err


def test_no_such_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", str(tmp_path), "--policy", "polygrafy"]) == 2
    assert "one of default, onnx-backend, onnxruntime-backend, polygraphy" in capsys.readouterr().err


def with_noise(run: Path, noise: dict[str, dict[str, float]]) -> None:
    """Write into the records of some targets what a run under limits of noise writes there."""
    lines = []
    for line in (run / "records.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        for output in row["outputs"]:
            # Where nothing differs, what is there need not be measured.
            output["frontier"] = [[0.0, 1e-6], [1e-7, 0.0]]
            output |= {"noise": None, "max_abs": 1e-7, "max_rel": 1e-6}
            if row["target"] in noise:
                output["noise"] = {"precision": "float32", **noise[row["target"]]}
        lines.append(json.dumps(row))
    (run / "records.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_a_run_is_judged_by_the_noise_that_it_tells_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_model(tmp_path / "models" / "m.onnx")
    out = run(tmp_path, "rtol = 1e-3\natol = 1e-5")
    with_noise(out, {})
    assert main(["judge", str(out), "--policy", "default"]) == 2
    assert "needs the rounding noise of the models, and no record has it" in capsys.readouterr().err
    with_noise(out, {"cpu": {"rms": 1.5, "max": 9.0}})
    assert main(["judge", str(out), "--policy", "default"]) == 0
    assert (
        "1 records lack the rounding noise of their model and keep their verdict" in capsys.readouterr().out
    )
    with_noise(out, {"cpu": {"rms": 1.5, "max": 9.0}, "basic": {"rms": 90.0, "max": 900.0}})
    assert main(["judge", str(out), "--policy", "default", "--out", str(tmp_path / "judged")]) == 1
    judged = verdicts(tmp_path / "judged")
    assert {cell.split("[")[1][:3]: verdict for cell, verdict in judged.items()} == {
        "cpu": "pass",
        "bas": "mismatch",
    }
    message = capsys.readouterr().out
    assert "output 'y': the error is 90 x the model's rounding noise at float32" in message
    assert f"at most 900 x (limits {rms_limit(DEFAULT_LIMITS, 8 * 64):.3g} and 32)" in message
    matrix = json.loads((tmp_path / "judged" / "run.json").read_text("utf-8"))["matrix"]
    assert matrix["tolerance"][-1]["noise"] == {"rms": DEFAULT_LIMITS.rms, "max": DEFAULT_LIMITS.max}
