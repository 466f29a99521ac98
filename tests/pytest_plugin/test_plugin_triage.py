"""``--ep-triage``: faults at the end of a session."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.fault import decode_fault
from tests.pytest_plugin.projects import write_project

Run = Callable[..., Any]


PLANTED = Path(__file__).parents[1] / "annex" / "triage" / "planted_onnxruntime"
# It gives a wrong answer: a crash would cost each of some thirty trials a process.
MATRIX = f"""\
schema = 1
[models]
folders = ["models"]
exclude = ["broken.onnx"]
[[target]]
name = "planted"
provider = "CPUExecutionProvider"
[target.env]
PYTHONPATH = "{PLANTED.as_posix()}"
PLANTED_FAULT = '{{"kind": "scale", "op_type": "Relu", "factor": 2.0}}'
"""


@pytest.mark.parametrize("mode", [("-p", "no:xdist"), ("-p", "xdist", "-n", "1")], ids=["alone", "xdist"])
def test_failing_cells_are_explained(tmp_path: Path, run_warm: Run, mode: tuple[str, ...]) -> None:
    project = write_project(tmp_path / "project", MATRIX)
    done = run_warm(project, *mode, "m.toml", "-k", "relu or abs", "--ep-out", "run", "--ep-triage")
    assert done.code == 1, done.out + done.err
    (fault,) = (project / "run" / "triage" / "faults.jsonl").read_bytes().splitlines()
    found = decode_fault(fault)
    assert found.cells == ("models/relu.onnx[planted]",)
    assert found.location is not None
    assert found.location.op_types == ("Relu",)
    assert f"{found.id}  {found.sentence}" in done.out
    assert (project / "run" / "triage" / f"{found.id}.zip").is_file()


def test_a_triage_needs_a_run_folder(project: Path, run_warm: Run) -> None:
    done = run_warm(project, "m.toml", "--ep-triage")
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert "--ep-triage keeps faults in the run folder: add --ep-out DIR" in done.err
