"""Places on the command line: what a run tells and keeps, and what doctor shows."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from harness.core.text.errors import EXIT_UNEXPECTED
from harness.report.runs.read import read_run
from tests.kit import FAKE_ENV, write_model

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="places here are POSIX commands")


@pytest.fixture
def rack(tmp_path: Path) -> Path:
    """A matrix with three places in a file: one computes wrongly, and is of another version."""
    for number in range(12):
        write_model(tmp_path / "models" / f"{number:02}_nap_in_run.onnx")
    wrong = {"FAKE_SHIFT": 1, "FAKE_VERSION": "1.30.2"}
    places: list[dict[str, Any]] = [
        {"name": name, "command": sys.executable, "env": wrong if name == "board-2" else {}}
        for name in ("board-1", "board-2", "board-3")
    ]
    (tmp_path / "boards.json").write_text(json.dumps(places), encoding="utf-8")
    env = ", ".join(f'{name} = "{value}"' for name, value in FAKE_ENV.items())
    text = f"""
schema = 1
[models]
folders = ["models"]
[[target]]
name = "far"
provider = "CUDAExecutionProvider"
env = {{ {env} }}
places = {{ file = "boards.json" }}
"""
    (tmp_path / "rack.toml").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_run_names_the_machine(rack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["run", str(rack / "rack.toml"), "--out", str(rack / "out")])
    out, told = capsys.readouterr()
    found = read_run(rack / "out")
    wrong = [record for record in found.records if not record.expected]
    assert code == EXIT_UNEXPECTED, told
    assert {record.place for record in found.records} == {"board-1", "board-2", "board-3"}
    assert {record.place for record in wrong} == {"board-2"}
    assert "fail there alone: the machine, not the EP" in out or "fails there alone: the machine" in out
    places = found.info.places["far"]
    assert set(places) == {"board-1", "board-2", "board-3"}
    assert any("onnxruntime: " in place.differs for place in places.values())
    differing = out.index("differs ")
    assert "1.30.2" in out[differing:]
    page = (rack / "out" / "report" / "cells.html").read_text(encoding="utf-8")
    assert "board-2" in page
    assert "fails on board-2 alone" in page


def test_doctor_tries_each_place(
    rack: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.studies.usable_providers.installed_plugins", lambda _catalog: ())
    assert main(["doctor", str(rack / "rack.toml"), "--json"]) == 0
    rows = {row["target"]: row for row in json.loads(capsys.readouterr().out) if row.get("target")}
    assert list(rows) == ["far at board-1", "far at board-2", "far at board-3"]
    assert rows["far at board-2"]["versions"]["onnxruntime"] == "1.30.2"


def test_a_bad_list_of_places_is_an_error_of_use(rack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (rack / "boards.json").write_text('[{"name": "board-1", "shh": "x"}]', encoding="utf-8")
    assert main(["run", str(rack / "rack.toml"), "--out", str(rack / "out")]) == 2
    told = capsys.readouterr().err
    assert "boards.json (places of far): [0].shh: unknown key" in told
    assert "Traceback" not in told
