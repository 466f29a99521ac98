"""The plugin EP in an onnxruntime whose record of nodes is incomplete, from a package index."""

import sys
from pathlib import Path

import numpy as np
import pytest

from harness.cli.main import main
from tests.crooked_ep.models import Small, write_model
from tests.crooked_ep.planted_run import PROVIDER
from tests.kit import read_records

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="compiled for Linux")]

HALF = Small(
    "float[64,64] a, float16[2,3] b",
    "float[64,64] y, float16[2,3] z",
    "y = Add(a, a)\nz = Erf(b)",
    (np.ones((64, 64), np.float32), np.full((2, 3), 0.5, np.float16)),
)


@pytest.mark.parametrize("version", ["1.24.4", "1.26.0"])
def test_float16_nodes_on_the_cpu_are_seen(crooked_ep: Path, tmp_path: Path, version: str) -> None:
    write_model(tmp_path / "half" / "one", HALF, "half")
    matrix = tmp_path / "matrix.toml"
    matrix.write_text(
        f"""schema = 1
models = {{ folders = ["half"] }}
[[target]]
name = "older"
provider = "{PROVIDER}"
plugin = "{crooked_ep}"
runtime = {{ packages = ["onnxruntime=={version}"] }}
""",
        encoding="utf-8",
    )
    assert main(["run", str(matrix), "--out", str(tmp_path / "run"), "--no-report"]) == 0
    (record,) = read_records(tmp_path / "run")
    assert record.verdict in {"pass_partial", "fallback"}, record.reason
    assert record.placement is not None
    assert record.placement.cpu_ops.get("Erf") == 1
