"""Pytest on a small project, in a process that is warm, and in each of its modes."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.pytest_plugin.projects import (
    LIMIT_S,
    MODES,
    WARM,
    Ran,
    command,
    environment,
    run_pytest,
    write_project,
)


@pytest.fixture(scope="session")
def run_warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Ran]]:
    """``run_warm(folder, *arguments)``: ``run_pytest`` without the imports, which take most of a short run.

    For tests of anything but how a session starts.
    """
    if not hasattr(os, "fork"):
        yield run_pytest
        return
    texts = tmp_path_factory.mktemp("warm")
    process = subprocess.Popen(
        [sys.executable, "-c", WARM],
        env=environment() | {"OPENBLAS_NUM_THREADS": "1"},  # a process with threads cannot be forked
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )

    def run_forked(folder: Path, *arguments: str) -> Ran:
        assert process.stdin is not None
        assert process.stdout is not None
        printed = {name: texts / name for name in ("out", "err")}
        asked = {
            **{name: str(path) for name, path in printed.items()},
            "folder": str(folder),
            "env": environment(),
            "arguments": command(*arguments)[3:],
        }
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        if not select.select([process.stdout], [], [], LIMIT_S)[0]:
            process.kill()
            pytest.fail(f"the run does not end: {arguments}")
        code = int(process.stdout.readline())
        return Ran(code, *(path.read_text(encoding="utf-8") for path in printed.values()))

    with process:  # it ends with its input
        yield run_forked


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path / "project")


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Options that run pytest in one process, and in two."""
    return MODES[request.param]
