"""A few of the odd models of the benchmark: none of them costs more than itself."""

from pathlib import Path

import onnx
import pytest

from benchmarks.odd_models.making import models
from harness.cli.main import main
from harness.core.records.verdict import Family
from harness.report.runs.read import read_run

pytestmark = pytest.mark.real_ep
COUNT = 250
MATRIX = """schema = 1
[models]
folders = ["models"]
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
timeouts_s = { run = 20 }
"""


def test_odd_models_end_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "models").mkdir()
    for name, model in models(COUNT, seed=20):
        onnx.save(model, tmp_path / "models" / f"{name}.onnx")
    (tmp_path / "m.toml").write_text(MATRIX, encoding="utf-8")
    out = tmp_path / "run"
    assert main(["run", str(tmp_path / "m.toml"), "--out", str(out), "--no-report"]) in {0, 1}
    records = read_run(out).records
    assert len(records) == COUNT
    assert [record.reason for record in records if record.family is Family.MISSING] == []
    assert "Traceback" not in capsys.readouterr().out
    assert sum(record.family is Family.PASSED for record in records) > COUNT / 10
