"""What a process leaves behind that ends in its turn is told, and ended, although no cell's record has it."""

import sys
from pathlib import Path

import pytest

from harness.core.records.verdict import Verdict
from harness.engine.tasks.events import Warned
from tests.kit import fake_target, of_folder, records_of, run_matrix, write_model

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the system must show variables")


def test_detached_processes_are_told_with_their_target(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / "1_twelve_in_create.onnx")
    target = fake_target("ep")
    events = run_matrix(tmp_path, of_folder(target))
    (record,) = (record for record in records_of(events))
    assert record.verdict is Verdict.PASS
    (text,) = (event.message for event in events if isinstance(event, Warned))
    assert text.startswith(
        "target ep: a process ended, and it left 12 processes behind, which were ended: sleep"
    )
