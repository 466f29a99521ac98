"""``--ep-triage``: faults at the end of a session."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.core.fault import decode_fault

Run = Callable[..., Any]


@pytest.mark.parametrize("mode", [("-p", "no:xdist"), ("-p", "xdist", "-n", "1")])
def test_failing_cells_are_explained(project: Path, run: Run, mode: tuple[str, ...]) -> None:
    done = run(project, *mode, "m.toml", "-k", "relu and abort", "--ep-out", "run", "--ep-triage")
    assert done.code == 1, done.out + done.err
    (fault,) = (project / "run" / "triage" / "faults.jsonl").read_bytes().splitlines()
    found = decode_fault(fault)
    assert found.cells == ("models/relu.onnx[abort]",)
    assert found.location is not None
    assert found.location.op_types == ("Relu",)
    assert f"{found.id}  {found.sentence}" in done.out
    assert (project / "run" / "triage" / f"{found.id}.zip").is_file()


def test_a_triage_needs_a_run_folder(project: Path, run: Run) -> None:
    done = run(project, "m.toml", "--ep-triage")
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert "--ep-triage keeps faults in the run folder: add --ep-out DIR" in done.err
