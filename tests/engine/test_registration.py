"""A plugin that dies or is refused while it is registered: what is told of it, and what is kept."""

import os
import sys
from pathlib import Path

import pytest

from harness.core.records.verdict import Cause, Verdict
from harness.engine.tasks.events import Finished
from harness.run.artifacts import keep_artifacts
from tests.kit import of_folder, run_matrix, write_model

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the crooked EP is compiled on POSIX systems")

FAULTS = ("abort_at_register", "wrong_api_version")


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory, crooked_ep: Path) -> dict[str, Finished]:
    home = tmp_path_factory.mktemp("registration")
    write_model(home / "models" / "one.onnx")
    usual = {"provider": "CrookedExecutionProvider", "plugin": str(crooked_ep)}
    targets = [{"name": fault, **usual, "env": {"CROOKED_EP_FAULT": fault}} for fault in FAULTS]
    events = run_matrix(home, of_folder(*targets), processes=2)
    found = {event.record.target: event for event in events if isinstance(event, Finished)}
    assert found.keys() == set(FAULTS)
    assert {event.record.verdict for event in found.values()} == {Verdict.UNAVAILABLE}
    return found


@pytest.mark.real_ep
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process read another one's stack")
def test_a_crash_at_registration_tells_function_and_library(
    cells: dict[str, Finished], crooked_ep: Path
) -> None:
    event = cells["abort_at_register"]
    assert event.record.cause == Cause.REGISTRATION_FAILED
    assert f"SIGABRT in end_by_abort of {crooked_ep.name}" in event.record.reason
    assert f"\t{crooked_ep.name}\t" in event.printed


@pytest.mark.real_ep
def test_no_device_keeps_what_onnxruntime_says_of_the_api(cells: dict[str, Finished]) -> None:
    record = cells["wrong_api_version"].record
    assert record.cause == Cause.NO_DEVICE
    assert "onnxruntime printed: The requested API version [999] is not available" in record.reason


@pytest.mark.real_ep
def test_what_it_printed_is_kept_once_for_all_cells_of_the_target(
    cells: dict[str, Finished], tmp_path: Path
) -> None:
    event = cells["abort_at_register"]
    kept = [keep_artifacts(tmp_path, event, pytest.fail) for _ in range(2)]
    assert kept[0] == kept[1]
    assert (tmp_path / kept[0].artifacts / "output.txt").read_text(encoding="utf-8") == event.printed
