"""However a session ends, the processes of its engines end with it."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.agent.system import usable_processors
from tests.pytest_plugin.projects import start_pytest, write_project

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


MATRIX = """\
schema = 1
[models]
folders = ["models"]
[[target]]
name = "host"
provider = "CPUExecutionProvider"
"""


@pytest.fixture
def endless(tmp_path: Path, endless_model: Path) -> Path:
    """A project whose fourth cell of six runs for ever."""
    project = write_project(tmp_path / "project", MATRIX)
    shutil.copy(endless_model, project / "models")
    return project


@pytest.fixture
def tag(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A variable by which the processes of a test are known; what is left of them is killed."""
    tag = {"EP_HARNESS_TEST": str(tmp_path)}
    yield tag
    for pid in processes(tag):
        os.kill(pid, signal.SIGKILL)


def processes(tag: dict[str, str]) -> list[int]:
    """The living processes that carry a tag in their environment."""
    (wanted,) = (f"{name}={value}".encode() for name, value in tag.items())
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def wait_for(condition: Callable[[], Any], limit_s: float = 60.0) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)


def recorded(project: Path) -> int:
    path = project / "run" / "records.jsonl"
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def test_an_interrupt_ends_every_process_soon(
    endless: Path, tag: dict[str, str], mode: tuple[str, ...]
) -> None:
    session = start_pytest(endless, *mode, "m.toml", "--ep-out", "run", **tag)
    wait_for(lambda: recorded(endless) >= 3)
    time.sleep(1)  # processes without work have ended by then
    started = time.monotonic()
    os.killpg(session.pid, signal.SIGINT)  # as a terminal does
    out, _ = session.communicate(timeout=60)
    assert time.monotonic() - started < 20
    assert session.returncode == pytest.ExitCode.INTERRUPTED, out
    wait_for(lambda: not processes(tag), limit_s=2)
    info = json.loads((endless / "run" / "run.json").read_text(encoding="utf-8"))
    assert info["complete"] is False
    assert "incomplete: " in out


TWO_TARGETS = (
    MATRIX
    + """\
[[target]]
name = "other"
provider = "CPUExecutionProvider"
env = { PYTHONPATH = '%s' }
[[exclude]]
target = "other"
model = ["broken.onnx", "endless.onnx", "neg.onnx", "relu.onnx"]
[[expect]]
target = "other"
verdict = "crash"
reason = "so that there are artifacts"
"""
)


@pytest.mark.skipif(usable_processors() < 2, reason="one target would wait for the other")
def test_what_is_known_at_an_interrupt_is_kept_and_the_rest_can_be_run(
    endless: Path, tag: dict[str, str]
) -> None:
    (endless / "m.toml").write_text(TWO_TARGETS % (endless / "late"), encoding="utf-8")
    (endless / "late").mkdir()
    (endless / "late" / "sitecustomize.py").write_text("import time; time.sleep(2)", encoding="utf-8")
    session = start_pytest(endless, "-p", "no:xdist", "m.toml", "--ep-out", "run", **tag)
    # Three cells of the first target come before the endless one, and those of the other after it. (Its
    # golden is endless, too: other models would wait for theirs.)
    wait_for(lambda: len(list((endless / "run").glob("artifacts/*/output.txt"))) == 2)
    assert recorded(endless) == 3
    os.kill(session.pid, signal.SIGINT)
    out, _ = session.communicate(timeout=60)
    assert session.returncode == pytest.ExitCode.INTERRUPTED, out
    assert recorded(endless) == 5
    assert "incomplete: 3 of 8 cells have no record" in out
    (line,) = [line for line in out.splitlines() if line.startswith("resume: ep-harness ")]
    command = [sys.executable, "-u", "-m", "harness", *shlex.split(line)[2:]]
    resumed = subprocess.Popen(command, cwd=endless, text=True, stdout=subprocess.PIPE, env=os.environ | tag)
    with resumed:
        assert resumed.stdout is not None
        assert any("5 of 8 cells have a record" in line for line in resumed.stdout)
        resumed.kill()


def test_a_failure_with_x_ends_the_engine_although_a_cell_runs(endless: Path, tag: dict[str, str]) -> None:
    matrix = endless / "m.toml"
    text = '[[expect]]\nmodel = "abs.onnx"\nverdict = "crash"\nreason = "no"\n'
    matrix.write_text(matrix.read_text(encoding="utf-8") + text, encoding="utf-8")
    session = start_pytest(endless, "-p", "no:xdist", "-x", "m.toml", **tag)
    out, _ = session.communicate(timeout=60)
    assert session.returncode == pytest.ExitCode.TESTS_FAILED
    assert "stopping after 1 failures" in out
    wait_for(lambda: not processes(tag), limit_s=2)


def test_a_worker_of_xdist_that_dies_costs_one_cell(endless: Path, tag: dict[str, str]) -> None:
    session = start_pytest(endless, "-p", "xdist", "-n", "2", "-v", "m.toml", "--ep-out", "run", **tag)
    # One worker has reported its share and closed its engine; the other waits for the endless model.
    wait_for(lambda: recorded(endless) >= 3 and len(parents(tag) - {session.pid}) == 1)
    (stuck,) = parents(tag) - {session.pid}
    os.kill(stuck, signal.SIGKILL)
    out, _ = session.communicate(timeout=60)
    assert session.returncode == pytest.ExitCode.TESTS_FAILED
    assert "crashed while running 'm.toml::models/endless.onnx[host]'" in out
    assert recorded(endless) == 5, out
    assert "incomplete: 1 of 6 cells have no record" in out


def parents(tag: dict[str, str]) -> set[int]:
    """Those of the processes that started others of them: pytest, and workers of xdist with an engine."""
    ids = processes(tag)
    found = set()
    for pid in ids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z" and int(fields[1]) in ids:
            found.add(int(fields[1]))
    return found
