"""``where`` of ``[[expect]]`` in a run, judged again, and listed: one answer from all."""

import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli import main
from tests.kit import read_rows

Project = Callable[..., Path]

ENTRY = """
[[expect]]
model   = "abs*"
verdict = "crash"
reason  = "there"
where   = {{ {} }}
"""
HERE = f'architecture = "{platform.machine()}"'
POLICY = "schema = 1\n[[tolerance]]\ntarget = '*'\nrtol = 1e-3\natol = 1e-5\n"


@pytest.mark.parametrize(
    ("condition", "expected"), [(HERE, False), ('architecture = "none"', True), ('driver = ">=1"', True)]
)
def test_an_entry_counts_where_its_condition_holds(
    condition: str,
    expected: bool,  # noqa: FBT001
    project: Project,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    matrix, out = project(ENTRY.format(condition) + ENTRY.format(condition)), tmp_path / "run"
    assert main(["list", str(matrix)]) == 0
    assert main(["run", str(matrix), "--out", str(out), "--no-report"]) == int(not expected)
    printed = "".join(capsys.readouterr())
    assert printed.count("does not tell `driver`") == int("driver" in condition)
    rows = read_rows(out)
    assert {row["model"]: row["expected"] for row in rows} == {
        "abs.onnx": expected,
        "neg.onnx": True,
        "relu.onnx": True,
    }
    (tmp_path / "policy.toml").write_text(POLICY, encoding="utf-8")
    assert main(["judge", str(out), "--policy", str(tmp_path / "policy.toml")]) == int(not expected)


def test_a_record_keeps_what_judged_it(project: Project, tmp_path: Path) -> None:
    out = tmp_path / "run"
    main(["run", str(project()), "--out", str(out), "--no-report"])
    row = read_rows(out)[0]
    assert row["policy"]["precision"] == "float32"
    assert row["policy"]["judge_by"]
    assert len(row["golden_digest"]) == 16
    again = tmp_path / "again"
    (tmp_path / "policy.toml").write_text(POLICY, encoding="utf-8")
    main(["judge", str(out), "--policy", str(tmp_path / "policy.toml"), "--out", str(again)])
    judged = read_rows(again)[0]
    assert (judged["policy"]["fixed.rtol"], judged["policy"]["fixed.atol"]) == (1e-3, 1e-5)
