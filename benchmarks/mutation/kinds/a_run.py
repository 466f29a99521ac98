"""A run of models on the CPU provider: every cell has a record, none is lost, and the innocent pass."""

from pathlib import Path

import onnx
import onnx.parser

from benchmarks.mutation.attempt import Attempt
from harness.core.records.record import Record
from harness.core.records.verdict import Family
from harness.core.text.errors import UsageError
from harness.report.runs.read import read_run

MATRIX = """schema = 1
[models]
folders = ["models"]
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
timeouts_s = { run = 5, create = 20 }
"""
TEXT = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[2] x, float[2] z) => (float[2] y) { y = Add(x, z) }"""
INNOCENT = "innocent"
"""In the name of a model that nobody changed."""


def records_of_run(made: Attempt, matrix: str = MATRIX, **env: str) -> dict[str, Record]:
    """Run the models in ``models``; cell -> record."""
    (made.folder / "m.toml").write_text(matrix, encoding="utf-8")
    ended = made.run("run", "m.toml", "--out", "out", "--no-report", **env)
    try:
        data = read_run(made.folder / "out")
    except UsageError as error:
        made.expect(False, f"no run: {error}; {ended.err[-300:]}")  # noqa: FBT003 - what is right
        return {}
    found = {record.cell: record for record in data.records}
    made.expect(len(found) == data.info.cells, f"{data.info.cells - len(found)} cells have no record")
    for cell, record in found.items():
        made.expect(record.family is not Family.MISSING, f"{cell} is lost: {record.reason[:300]}")
        if INNOCENT in cell:
            passed = record.family is Family.PASSED
            made.expect(passed, f"{cell} is {record.verdict}: {record.reason[:200]}")
    return found


def write_innocent(folder: Path) -> None:
    """Write a model that has to pass, whatever lies beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(onnx.parser.parse_model(TEXT), folder / f"{INNOCENT}.onnx")
