"""A session fails if processes of a target do not end cleanly, although every test passes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.pytest_plugin.projects import MODES, write_project

MATRIX = """\
schema = 1
[models]
folders = ["models"]
exclude = ["models/broken.onnx"]
[[target]]
name = "host"
provider = "CPUExecutionProvider"
env = { PYTHONPATH = "ends" }
"""
KNOWN = """
[[expect]]
target = "host"
verdict = "unclean_exit"
reason = "known"
"""
ENDS = "import atexit, os\natexit.register(os._exit, 7)\n"


@pytest.mark.parametrize(
    ("mode", "expect", "code"), [("alone", "", 1), ("alone", KNOWN, 0), ("xdist", "", 1)]
)
def test_the_ends_of_processes_decide_the_exit_code(
    tmp_path: Path, run_warm: Callable[..., Any], mode: str, expect: str, code: int
) -> None:
    ends = tmp_path / "ends"
    ends.mkdir()
    (ends / "sitecustomize.py").write_text(ENDS, encoding="utf-8")
    matrix = MATRIX.replace('"ends"', f'"{ends.as_posix()}"')
    project = write_project(tmp_path / "project", matrix + expect)
    found = run_warm(project, "m.toml", "-q", *MODES[mode])
    assert found.code == code, found.out
    assert "4 passed" in found.out
    assert "unclean_exit: host: a process that was asked to end ended while the process" in found.out
    assert ("as the matrix expects" in " ".join(found.out.split())) is bool(expect)
