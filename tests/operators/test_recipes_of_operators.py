"""The recipes of CONTRIBUTING.md about operators, followed in a copy: one file each."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import harness

PRINT = """
from harness.corpus.noise.operator_rounding import INSIDE, UNITS
from harness.operators.book import find_operator
print(UNITS["Erf"], UNITS.get("Vendored"), "Vendored" in INSIDE, find_operator("vendor.Vendored") is not None)
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The modules that the noise of operators needs."""
    source = Path(harness.__file__).parent
    for name in ("core", "corpus", "operators"):
        shutil.copytree(
            source / name, tmp_path / "harness" / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    for file in source.glob("*.py"):
        shutil.copy(file, tmp_path / "harness")
    return tmp_path


def printed(folder: Path) -> list[str]:
    command = [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(folder)!r}){PRINT}"]
    return subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout.split()


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")


def test_the_noise_of_an_operator_and_a_new_operator_are_one_row_each(copy: Path) -> None:
    families = copy / "harness" / "operators" / "families"
    replace(families / "elementwise_rows.py", 'BookRow("Erf", units=4,', 'BookRow("Erf", units=8,')
    row = 'BookRow("Vendored", domains=("vendor",), units=3, rounds_inside=True),'
    replace(families / "contrib_rows.py", "ROWS = (\n", f"ROWS = (\n    {row}\n")
    assert printed(copy) == ["8", "3", "True", "True"]
