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

from harness.core.verdict import Verdict
from harness.engine import prestarted
from harness.engine.events import Event, Finished
from harness.engine.prestarted import PrestartedProcess, run_ahead, take_prestarted

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
def _nobody_ahead() -> Iterator[None]:
    yield
    while prestarted._ahead:
        prestarted._ahead.pop().discard()


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "m.toml"
    path.write_text(HERE, encoding="utf-8")
    return path


def ahead(matrix: Path) -> PrestartedProcess:
    run_ahead(matrix)
    (one,) = prestarted._ahead
    return one


def test_it_serves_the_first_cells_and_ends_with_the_run(
    matrix: Path, write_model: Callable[..., None], run_matrix: Callable[..., list[Event]]
) -> None:
    write_model(matrix.parent / "models" / "m.onnx")
    one = ahead(matrix)
    assert ahead(matrix) is one, "there is only one"
    found = [e.record for e in run_matrix(matrix.parent, matrix.read_text()) if isinstance(e, Finished)]
    (served,) = [record.process for record in found if record.verdict is Verdict.PASS]
    assert served is not None
    assert served.pid == one.process.pid
    assert one.process._popen.returncode is not None
    assert not one.folder.exists()
    assert take_prestarted() is None


def test_what_it_said_meanwhile_is_delivered_first(matrix: Path) -> None:
    one = ahead(matrix)
    deadline = time.monotonic() + 30
    while not one._heard and time.monotonic() < deadline:
        time.sleep(0.01)
    heard: list[Any] = []
    ended = threading.Event()

    def deliver(message: Any) -> None:
        heard.append(message[0])
        if message[0] == "ended":
            ended.set()

    one.deliver_to(deliver)
    assert heard == ["imported"]
    one.discard()
    assert ended.wait(10)
    assert heard == ["imported", "ended"]


def test_who_has_other_variables_by_now_does_without(matrix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = ahead(matrix)
    monkeypatch.setenv("ORT_OF_TODAY", "1")
    assert take_prestarted() is None
    assert one.process._popen.returncode is not None
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
    run_ahead(matrix)
    assert not prestarted._ahead


@pytest.mark.skipif(os.name != "posix", reason="asks for a process in the POSIX way")
def test_one_that_nobody_takes_ends_with_the_harness_and_leaves_nothing(matrix: Path) -> None:
    code = (
        "import pathlib, sys; from harness.engine import prestarted as f\n"
        "f.run_ahead(pathlib.Path(sys.argv[1])); print(f._ahead[0].process.pid, f._ahead[0].folder)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, matrix], check=True, capture_output=True, text=True, timeout=60
    )
    pid, folder = done.stdout.split(maxsplit=1)
    deadline = time.monotonic() + 10
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.kill(int(pid), 0)
            time.sleep(0.01)
        pytest.fail("it is still there")
    assert not Path(folder.strip()).parent.exists()
    assert done.stderr == ""
