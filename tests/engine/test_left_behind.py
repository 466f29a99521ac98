"""What a process leaves behind that ends in its turn is told, and ended, although no cell's record has it."""

import sys
from pathlib import Path

import pytest

from harness.core.verdict import Verdict
from harness.engine.events import Warned
from tests.kit import FAKE_ENV, records_of, run_matrix, write_model

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the system must show variables")


def test_detached_processes_are_told_with_their_target(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / "1_twelve_in_create.onnx")
    target = {"name": "ep", "provider": "CUDAExecutionProvider", "env": FAKE_ENV}
    events = run_matrix(tmp_path, {"models": {"folders": ["models"]}, "target": [target]})
    (record,) = (record for record in records_of(events))
    assert record.verdict is Verdict.PASS
    (text,) = (event.message for event in events if isinstance(event, Warned))
    assert text.startswith(
        "target ep: a process ended, and it left 12 processes behind, which were ended: sleep"
    )
