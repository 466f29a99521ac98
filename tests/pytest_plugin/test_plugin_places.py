"""Places under pytest: one engine knows all of them, however many workers there are."""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.pytest_plugin.scheduler import worker_share
from tests.kit import FAKE_ENV, read_records, write_model
from tests.programs import write_program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="places here are POSIX commands")


@pytest.fixture
def rack(tmp_path: Path) -> Path:
    """A matrix with two places, which leave a line in a file for each process that they start."""
    for number in range(12):
        write_model(tmp_path / "models" / f"{number:02}_nap_in_run.onnx")
    started = tmp_path / "started"
    script = tmp_path / "python"
    write_program(script, f'#!/bin/sh\necho "$EP_PLACE $$" >> {started}\nexec {sys.executable} "$@"\n')
    env = ", ".join(f'{name} = "{value}"' for name, value in FAKE_ENV.items())
    text = f"""
schema = 1
[models]
folders = ["models"]
[[target]]
name = "far"
provider = "CUDAExecutionProvider"
env = {{ {env} }}
places = {{ count = 2, command = "env EP_PLACE={{n}} {script}" }}
"""
    (tmp_path / "rack.toml").write_text(text, encoding="utf-8")
    return tmp_path


def test_two_places_get_two_processes(rack: Path, run_warm: Callable[..., Any]) -> None:
    done = run_warm(rack, "rack.toml", "--ep-out", "out", "-p", "xdist", "-n", "2")
    assert done.code == 0, done.out
    records = read_records(rack / "out")
    assert len({record.cell for record in records}) == len(records) == 12
    assert {record.place for record in records} == {"place-1", "place-2"}
    started = Counter(line.split()[0] for line in (rack / "started").read_text("utf-8").splitlines())
    assert started == {"1": 1, "2": 1}


def test_the_first_worker_gets_what_needs_one_engine() -> None:
    assert [list(worker_share(3, index, 2, together=True)) for index in range(2)] == [[0, 1, 2], []]
