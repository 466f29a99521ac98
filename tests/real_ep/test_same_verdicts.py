"""The smoke matrix gives the same verdicts through the command, through pytest, and through pytest-xdist."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.core.records.cell import parse_cell_id
from harness.data_files import data_root
from harness.plan.matrix import read_matrix
from tests.kit import read_rows

pytestmark = pytest.mark.real_ep

MATRIX = data_root() / "matrices" / "smoke.toml"
SUITES = {"pytest": "onnx-simple/", "xdist": "onnx-pytorch-operator/"}
"""Each way of pytest has one of the two suites; the command has both."""

TARGETS = ("cpu", "qnn-htp")
"""What pytest runs: one target that passes, and one that leaves much to the CPU. The command has all five."""

FRONT_ENDS = {
    "command": ["-m", "harness", "run", str(MATRIX), "--no-report", "--out"],
    "pytest": [
        "-m",
        "pytest",
        str(MATRIX),
        "-q",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        "-k",
        f"{SUITES['pytest']} and ({' or '.join(TARGETS)})",
        "--ep-out",
    ],
    "xdist": [
        "-m",
        "pytest",
        str(MATRIX),
        "-q",
        "-n",
        "2",
        "-p",
        "no:cacheprovider",
        "-k",
        f"{SUITES['xdist']} and ({' or '.join(TARGETS)})",
        "--ep-out",
    ],
}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, tuple[str, bool]]]:
    home = tmp_path_factory.mktemp("smoke")
    # Not what this very pytest run was started with.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    found = {}
    for name, arguments in FRONT_ENDS.items():
        command = [sys.executable, *arguments, str(home / name)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=600, cwd=home, env=environment
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
        found[name] = _read(home / name)
    return found


def _read(folder: Path) -> dict[str, tuple[str, bool]]:
    rows = read_rows(folder)
    return {row["cell"]: (row["verdict"], row["expected"]) for row in rows}


def test_each_front_end_has_every_cell(verdicts: dict[str, dict[str, tuple[str, bool]]]) -> None:
    assert len(verdicts["command"]) == 290
    assert len(verdicts["pytest"]) + len(verdicts["xdist"]) == 116
    assert min(map(len, verdicts.values())) > 40


def test_same_verdicts(verdicts: dict[str, dict[str, tuple[str, bool]]]) -> None:
    for name, suite in SUITES.items():
        by_command = {
            cell: found
            for cell, found in verdicts["command"].items()
            if cell.startswith(suite) and parse_cell_id(cell)[2] in TARGETS
        }
        assert verdicts[name] == by_command


def test_every_provider_was_there(
    verdicts: dict[str, dict[str, tuple[str, bool]]], elsewhere: dict[str, str]
) -> None:
    providers = {target.name: target.provider[0] for target in read_matrix(MATRIX).targets}
    # A cell alone may lack something else, such as the locale of its model.
    there = {
        parse_cell_id(cell)[2]
        for cell, (verdict, _) in verdicts["command"].items()
        if verdict != "unavailable"
    }
    unavailable = {provider for name, provider in providers.items() if name not in there}
    if unavailable - elsewhere.keys() and not os.environ.get("CI"):
        pytest.skip(f"{unavailable} are unavailable here")
    assert unavailable == elsewhere.keys()
