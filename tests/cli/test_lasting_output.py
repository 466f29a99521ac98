"""A closed or full standard output changes neither what a command computes nor its exit code."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Project = Callable[..., Path]
Descriptor = Callable[[], contextlib.AbstractContextManager[int]]


@contextlib.contextmanager
def broken_pipe() -> Iterator[int]:
    read, write = os.pipe()
    os.close(read)
    yield write
    os.close(write)


@contextlib.contextmanager
def full_disk() -> Iterator[int]:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    yield descriptor
    os.close(descriptor)


TAKERS = [
    pytest.param(broken_pipe, id="broken pipe"),
    pytest.param(
        full_disk,
        id="full disk",
        marks=pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no such device"),
    ),
]


def harness(*arguments: str, stdout: int, flags: tuple[str, ...] = ()) -> tuple[int, list[str]]:
    """Return exit code and lines on standard error."""
    done = subprocess.run(
        [sys.executable, *flags, "-m", "harness", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize("taker", TAKERS)
def test_a_run_records_every_cell_and_keeps_its_exit_code(
    project: Project, tmp_path: Path, taker: Descriptor
) -> None:
    matrix = project('[[expect]]\nmodel = "models/abs.onnx"\nverdict = "crash"\nreason = "known bug"\n')
    out = tmp_path / "run"
    with taker() as stdout:
        code, told = harness("run", str(matrix), "--out", str(out), "--no-report", stdout=stdout)
    assert code == 1  # one unexpected verdict, as with any other output
    (line,) = told
    assert line.startswith("ep-harness: standard output cannot be written: ")
    assert len((out / "records.jsonl").read_bytes().splitlines()) == 3
    assert json.loads((out / "run.json").read_bytes())["complete"] is True


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("flags", [(), ("-u",)], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("command", [("list", "--suites"), ("--help",)], ids=" ".join)
def test_a_long_text_costs_one_line_and_no_exit_code(
    taker: Descriptor, flags: tuple[str, ...], command: tuple[str, ...]
) -> None:
    with taker() as stdout:
        code, told = harness(*command, stdout=stdout, flags=flags)
    assert code == 0
    (line,) = told
    assert line.startswith("ep-harness: standard output cannot be written: ")


@pytest.mark.skipif(sys.platform == "win32", reason="closes a descriptor by a shell of POSIX")
@pytest.mark.parametrize(("closed", "lines"), [(">&-", 1), (">&- 2>&-", 0), ("<&- >&- 2>&-", 0)])
def test_a_closed_descriptor_is_no_other_file(tmp_path: Path, closed: str, lines: int) -> None:
    out = tmp_path / "out"
    code = (
        "import os, sys; from harness.cli.lasting_output import lasting_output\n"
        f"with lasting_output(), open({str(out)!r}, 'wb') as file:\n"
        "    os.write(1, b'noise'); print('text'); file.write(str(file.fileno()).encode())\n"
    )
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, code],
        stderr=subprocess.PIPE,
        check=False,
    )
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == lines
    assert int(out.read_bytes()) > 2
