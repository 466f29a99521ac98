"""Every scenario with the plugin EP, without a fault: nothing is told, on three releases of onnxruntime."""

import json
import sys
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.cli.targets import Tested
from harness.core.records.verdict import Family
from tests.crooked_ep.planted_run import PROVIDER
from tests.kit import read_records

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="compiled for Linux")]

FEWEST_PASSED = 160


@pytest.mark.parametrize("version", ["", "1.24.4", "1.27.0"])
def test_nothing_is_told_in_any_scenario(crooked_ep: Path, tmp_path: Path, version: str) -> None:
    target = {"name": "honest", "provider": PROVIDER, "plugin": str(crooked_ep)}
    lines = [*Tested(api=True).lines(), "[[target]]", *(f"{k} = {json.dumps(v)}" for k, v in target.items())]
    if version:
        lines.append(f'runtime = {{ packages = ["onnxruntime=={version}"] }}')
    (tmp_path / "matrix.toml").write_text("\n".join(lines), encoding="utf-8")
    assert main(["run", str(tmp_path / "matrix.toml"), "--out", str(tmp_path / "run"), "--no-report"]) == 0
    records = read_records(tmp_path / "run")
    assert not [record.cell for record in records if record.manners]
    assert sum(record.verdict.family is Family.PASSED for record in records) > FEWEST_PASSED
