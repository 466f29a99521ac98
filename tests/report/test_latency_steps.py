"""Since which night a cell is slower, and which version changed then: in a history, old ones included."""

import sqlite3
from pathlib import Path

import msgspec
import numpy as np
import pytest

from harness.annex.store.command_history import show_history
from harness.report.history.history_file import History
from harness.report.history.trend import trends
from harness.report.pages.history_page import write_history_page
from tests.kit import latency, record, write_run

NIGHTS, SINCE = 20, 12


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history in which one of two cells becomes slower by 15 %, with another onnxruntime."""
    folder = tmp_path_factory.mktemp("nights")
    generator = np.random.default_rng(5)
    with History(folder / "h.sqlite", create=True) as history:
        for night in range(NIGHTS):
            slower = 1.15 if night >= SINCE else 1.0
            records = [
                msgspec.structs.replace(
                    record(name, latency=latency(*(ms * by * generator.normal(1, 0.01, 12)).tolist())),
                    started=f"2026-11-{night + 1:02}T02:00:00Z",
                )
                for name, by in (("a", slower), ("b", 1.0))
                for ms in [10 * generator.normal(1, 0.02)]
            ]
            runtime = "1.31" if night >= SINCE else "1.30"
            history.add(write_run(folder / str(night), records, targets={"npu": {"onnxruntime": runtime}}))
    return folder / "h.sqlite"


def test_a_step_has_its_night_and_the_version_that_changed(database: Path) -> None:
    with History(database) as history:
        (step,) = trends(history).steps
    assert (step.cell, step.since.name, step.before.name) == ("onnx-node/a[npu]", str(SINCE), str(SINCE - 1))
    assert step.nights == NIGHTS - SINCE
    assert step.low < 1.15 < step.high
    assert step.changed == ("onnxruntime: 1.30 -> 1.31",)
    assert step.text.startswith("1")
    assert "slower since 2026-11-13T02:00:00Z (8 runs; " in step.text
    assert step.text.endswith("then changed: onnxruntime: 1.30 -> 1.31")


def test_it_is_on_the_screen_and_on_the_page(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show_history(None, database=database, store=None, target=None, cell=None, out=None, as_json=False)
    shown = capsys.readouterr().out
    assert "latency stepped: 1 time, the newest first" in shown
    assert "slower since 2026-11-13" in shown
    with History(database) as history:
        page = write_history_page(trends(history), (), tmp_path).read_text("utf-8")
    assert "Latency steps" in page
    assert "onnxruntime: 1.30 -&gt; 1.31" in page


def test_a_history_of_an_earlier_version_has_steps_too(database: Path, tmp_path: Path) -> None:
    """Its nights count alike, as their uncertainty is unknown."""
    old = tmp_path / "old.sqlite"
    old.write_bytes(database.read_bytes())
    with sqlite3.connect(old) as file:
        file.execute("DROP VIEW latencies")
        file.execute("DROP TABLE timed")
    with History(old) as history:
        (step,) = trends(history).steps
    assert step.since.name == str(SINCE)
