"""A new column of the table of cells takes one field, and nothing else."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from harness.core.records.verdict import Verdict
from harness.report.formats.cell_columns import VALUES, CellRow, RecordRow, view_columns
from tests.changed_package import changed_package
from tests.kit import record, write_run

FIELD = """\
    surprise: Annotated[
        str, CellColumn("What nobody expects.", lambda r: "" if r.expected else r.verdict.value, view=True)
    ]
"""
CHANGES = {
    "harness/report/formats/cell_columns.py": {'    golden: Annotated[str, CellColumn("Source of': FIELD}
}


def test_a_field_is_enough(tmp_path: Path) -> None:
    home = changed_package(tmp_path / "changed", CHANGES)
    records = [record("a", verdict=Verdict.CRASH, expected=False), record("b")]
    runs = write_run(tmp_path / "runs" / "run", records).parent
    env = {**os.environ, "PYTHONPATH": str(home)}

    def printed(*words: str) -> str:
        command = [sys.executable, "-m", "harness", *words]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    printed("report", str(runs), "--out", "out", "--format", "csv,json")
    table = (tmp_path / "out" / "cells.csv").read_text("utf-8-sig")
    assert [row["surprise"] for row in csv.DictReader(io.StringIO(table))] == ["crash", ""]
    cells = json.loads((tmp_path / "out" / "report.json").read_bytes())["cells"]
    assert [cell["surprise"] for cell in cells] == ["crash", ""]
    pytest.importorskip("duckdb")
    asked = "SELECT model, surprise FROM records ORDER BY model"
    rows = json.loads(printed("query", str(runs), asked, "--format", "json", "--store", "kept"))
    assert [row["surprise"] for row in rows] == ["crash", None]


def test_every_column_has_values_of_its_type() -> None:
    given = dict.fromkeys(set(CellRow.__struct_fields__) - VALUES.keys(), "")
    for made in (record("a"), record("b", verdict=Verdict.CRASH)):
        values = {name: value(made) for name, value in VALUES.items()}
        msgspec.convert(given | values, CellRow, strict=True)


def test_a_name_is_used_once() -> None:
    names = [one.name for one in view_columns()]
    assert len(names) == len(set(names))
    assert not set(RecordRow.__struct_fields__) - {"provider"} & set(names)
