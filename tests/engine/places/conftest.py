"""Matrices whose target has places: commands on this machine, each a launcher and an agent beside it."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit import FAKE_ENV, of_folder, write_model

Matrix = Callable[..., dict[str, Any]]
CUDA = "CUDAExecutionProvider"


@pytest.fixture
def matrix(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Make a matrix of models that do the same, for a target with places; keys of the target can be given."""

    def make(cells: int, fault: str, places: Any, **target: Any) -> dict[str, Any]:
        for number in range(cells):
            write_model(tmp_path / "models" / f"{number:03}_{fault}.onnx")
        env = {**FAKE_ENV, "FAKE_MARKER": str(tmp_path / "marker"), **target.pop("env", {})}
        if isinstance(places, int):
            places = {"count": places, "command": sys.executable}
        table = {"name": "far", "provider": CUDA, "env": env, "places": places, **target}
        return of_folder(table)

    return make


@pytest.fixture
def launchers() -> Callable[[int], list[int]]:
    """Wait for so many launchers that this process has started; their process ids."""

    def find(count: int) -> list[int]:
        deadline = time.monotonic() + 60
        while len(found := of_parent(os.getpid(), b"closefd")) < count:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return found

    return find


@pytest.fixture
def agents(launchers: Callable[[int], list[int]]) -> Callable[[int], list[int]]:
    """Wait for so many launchers; the process ids of the agents beside them."""
    return lambda count: [agent for each in launchers(count) for agent in of_parent(each, b"closefd")]


def of_parent(parent: int, word: bytes) -> list[int]:
    """Return the process ids of the children of a process that have a word in their command."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            isolated = b"-I" in (folder / "cmdline").read_bytes().split(b"\0") or parent != os.getpid()
            if int(fields[1]) == parent and word in (folder / "cmdline").read_bytes() and isolated:
                found.append(int(folder.name))
        except OSError:
            continue
    return sorted(found)


@pytest.fixture
def stop() -> Callable[[int], None]:
    """Stop a launcher and what it started, as a machine that has fallen silent."""

    def act(launcher: int) -> None:
        for process in (*of_parent(launcher, b""), launcher):
            os.kill(process, signal.SIGSTOP)

    return act
