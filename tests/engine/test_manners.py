"""What a provider changes around it is told with the cell that did it, and harms no other cell."""

import contextlib
import sys
import time
from pathlib import Path

import pytest

from harness.core.records.verdict import Verdict
from harness.engine.tasks.events import Finished
from tests.kit import FAKE_ENV, of_folder, run_matrix, write_model

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux tells all of it")

BAD = {
    "roundup_in_create": ("fp_control", "create", "it changed rounding from to nearest to up"),
    "roundup_in_teardown": ("fp_control", "teardown", "it changed rounding from to nearest to up"),
    "locale_in_run": ("locale", "run", "it changed the locale of its process: C"),
    "chdir_in_create": ("directory", "create", "it changed the working directory to /"),
    "variables_in_run": (
        "environment",
        "run",
        "it changed the environment: OMP_NUM_THREADS, PYTHONPATH",
    ),
    "redirect_in_run": ("descriptors", "run", "it closed descriptor 0, redirected descriptor 2"),
    "handle_in_create": ("signals", "run", "the process blocked SIGUSR1, ignored SIGTERM"),
    "scribble_in_run": ("files", "teardown", "it wrote into the working directory: compiled.bin"),
    "outlaw_in_run": ("processes", "teardown", "it left a process behind: sleep"),
    "overwrite_in_run": ("inputs", "run", "it wrote into the input x"),
    "gib_in_create": ("memory", "run", "its memory rose by 1."),
    "flood_in_create": ("printed", "run", "it printed "),
    "limit_in_create": ("limits", "run", "it lowered the limit RLIMIT_FSIZE of its process"),
}

REPLACED = {"limit_in_create"}
"""Faults that cannot be put back."""


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Finished]:
    home = tmp_path_factory.mktemp("manners")
    for fault in BAD:
        for name in ("1_before", f"2_{fault}", "3_after"):
            write_model(home / "models" / fault / f"{name}.onnx")
    env = {**FAKE_ENV, "FAKE_MARKER": str(home / "marker")}
    target = {"name": "ep", "provider": "CUDAExecutionProvider", "env": env}
    matrix = of_folder(target)
    finished = [event for event in run_matrix(home, matrix) if isinstance(event, Finished)]
    wait_for_end(int((home / "marker.outlaw").read_text(encoding="utf-8")))
    return {event.record.model.removesuffix(".onnx"): event for event in finished}


def wait_for_end(pid: int) -> None:
    """Wait until a process has ended, as it does soon after the agent that it came from."""
    deadline = time.monotonic() + 60
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        while Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z":
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.mark.parametrize("fault", BAD)
def test_a_cell_is_told_what_it_changed_and_the_others_are_not(
    cells: dict[str, Finished], fault: str
) -> None:
    record = cells[f"{fault}/2_{fault}"].record
    kind, phase, text = BAD[fault]
    (manner,) = record.manners
    assert (manner.kind, manner.phase) == (kind, phase)
    assert manner.text.startswith(text)
    assert ("the process was replaced" in record.reason) is (fault in REPLACED)
    if fault != "overwrite_in_run":  # its further runs have other inputs
        assert record.verdict is Verdict.PASS
    for neighbour in ("1_before", "3_after"):
        record = cells[f"{fault}/{neighbour}"].record
        assert (record.verdict, record.manners, record.reason) == (Verdict.PASS, (), "")


def test_what_was_put_back_costs_no_process(cells: dict[str, Finished]) -> None:
    states = [cell.record.process for cell in cells.values()]
    assert len({state.pid for state in states if state is not None}) == 1 + len(REPLACED)
    assert all(state is not None and state.threads and state.descriptors for state in states)
