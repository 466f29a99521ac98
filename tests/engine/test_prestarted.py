"""The process that starts before the harness knows what it is going to need."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.verdict import Verdict
from harness.engine.processes import prestarted
from harness.engine.processes.prestarted import PrestartedProcess, prestart, take_prestarted
from harness.engine.processes.process import AgentProcess
from tests.kit import records_of, run_matrix, write_model

HERE = """
schema = 1
[models]
folders = ["models"]
[[target]]
name = "far"
provider = "CPUExecutionProvider"
runtime = { command = "no-such-command" }
[[target]]
name = "here"
provider = "CPUExecutionProvider"
"""


@pytest.fixture(autouse=True)
def _none_left() -> Iterator[None]:
    yield
    while prestarted.untaken:
        prestarted.untaken.pop().discard()


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "m.toml"
    path.write_text(HERE, encoding="utf-8")
    return path


def ahead(matrix: Path) -> PrestartedProcess:
    prestart(matrix)
    (one,) = prestarted.untaken
    return one


def test_it_serves_the_first_cells_and_ends_with_the_run(matrix: Path) -> None:
    write_model(matrix.parent / "models" / "m.onnx")
    one = ahead(matrix)
    assert ahead(matrix) is one, "there is only one"
    found = records_of(run_matrix(matrix.parent, matrix.read_text()))
    (served,) = [record.process for record in found if record.verdict is Verdict.PASS]
    assert served is not None
    assert served.pid == one.process.pid
    assert is_gone(one.process.pid)
    assert not one.folder.exists()
    assert take_prestarted() is None


def test_messages_that_came_early_are_delivered_first(matrix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    came, taken, delivered = threading.Event(), threading.Event(), threading.Event()

    def serve(_process: AgentProcess, deliver: Callable[[Any], None]) -> None:
        deliver("early")
        came.set()
        assert taken.wait(30)
        deliver("late")
        delivered.set()

    monkeypatch.setattr(AgentProcess, "serve", serve)
    one = ahead(matrix)
    assert came.wait(30)
    messages: list[str] = []
    one.deliver_to(messages.append)
    assert messages == ["early"]
    taken.set()
    assert delivered.wait(30)
    assert messages == ["early", "late"]


def test_it_is_not_used_once_the_variables_have_changed(
    matrix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = ahead(matrix)
    monkeypatch.setenv("ORT_OF_TODAY", "1")
    assert take_prestarted() is None
    assert is_gone(one.process.pid)
    assert not one.folder.exists()


@pytest.mark.parametrize(
    "content",
    [
        HERE.rpartition("[[target]]")[0],
        '[[target]]\nname = "t"\nenv = { A = "1" }\n',
        "target = 3",
        "target = [3]",
        "[[target",
        b"\xff",
        None,
    ],
    ids=["elsewhere", "variables", "number", "numbers", "broken", "bytes", "missing"],
)
def test_none_starts_where_a_matrix_does_not_ask_for_it(tmp_path: Path, content: str | bytes | None) -> None:
    matrix = tmp_path / "m.toml"
    if content is not None:
        matrix.write_bytes(content.encode() if isinstance(content, str) else content)
    prestart(matrix)
    assert not prestarted.untaken


@pytest.mark.skipif(os.name != "posix", reason="asks for a process in the POSIX way")
def test_one_that_is_not_taken_ends_with_the_harness_and_leaves_nothing(matrix: Path) -> None:
    code = (
        "import pathlib, sys; from harness.engine.processes import prestarted as f\n"
        "f.prestart(pathlib.Path(sys.argv[1])); print(f.untaken[0].process.pid, f.untaken[0].folder)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, matrix], check=True, capture_output=True, text=True, timeout=60
    )
    pid, folder = done.stdout.split(maxsplit=1)
    deadline = time.monotonic() + 60
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.kill(int(pid), 0)
            time.sleep(0.01)
        pytest.fail("it is still there")
    assert not Path(folder.strip()).parent.exists()
    assert done.stderr == ""
