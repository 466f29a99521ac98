"""Places of a target behind srun: jobs, steps of one allocation, and what becomes of cells if one is lost."""

import collections
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.corpus.caches.cache import ENVIRONMENT
from harness.engine.tasks.events import Noted
from tests.kit import fake_target, of_folder, read_rows, start_engine, write_model
from tests.slurm.running import Running

if TYPE_CHECKING:
    from tests.slurm.slurm_cluster import Slurm


CUDA = "CUDAExecutionProvider"
PYTHON = shlex.quote(sys.executable)
SRUN = f"srun --quiet --gres=npu:1 {PYTHON}"
STEP = f"srun --exact --nodes=1 --ntasks=1 --gres=npu:1 {PYTHON}"


@pytest.fixture
def matrix(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Tables of a matrix whose models take a second each: they run some ten times."""

    def make(models: int, count: int, command: str = SRUN) -> dict[str, Any]:
        for number in range(models):
            write_model(tmp_path / "models" / f"{number:02}_nap_in_run.onnx")
        target = fake_target(
            "npu",
            places={"count": count, "name": "npu-{n}", "command": command},
            env={"FAKE_NAP": "0.1", ENVIRONMENT: str(tmp_path / "far")},
        )
        return of_folder(target)

    return make


def check(records: list[Record], models: int) -> collections.Counter[str]:
    """Every cell has one record, and the provider is blamed for nothing; records by place."""
    assert len({record.cell for record in records}) == len(records) == models
    assert {record.verdict for record in records} == {Verdict.PASS}
    return collections.Counter(record.place for record in records)


def test_each_place_is_a_job(slurm: "Slurm", tmp_path: Path, matrix: Callable[..., dict[str, Any]]) -> None:
    run = Running(start_engine(tmp_path, matrix(32, 4)))
    run.wait_for_records(8)
    nodes = sorted(slurm.node_of(job) for job in slurm.jobs("RUNNING"))
    assert nodes == ["n1", "n1", "n2", "n2"]
    by_place = check(run.end(), 32)
    assert set(by_place) == {"npu-1", "npu-2", "npu-3", "npu-4"}
    assert min(by_place.values()) >= 4


def test_places_that_wait_for_a_device_hold_nobody_up(
    slurm: "Slurm", tmp_path: Path, matrix: Callable[..., dict[str, Any]]
) -> None:
    run = Running(start_engine(tmp_path, matrix(40, 6)))
    by_place = check(run.end(), 40)
    assert len(by_place) == 4
    notes = [event.message for event in run.events if isinstance(event, Noted)]
    assert len(notes) >= 2
    # The first one waits for resources, and the others for their turn.
    assert any(note.endswith("waits in Slurm's queue: Resources") for note in notes)
    assert all("waits in Slurm's queue: " in note for note in notes)
    assert list(run.set_aside()) == []
    assert slurm.wait_for_no_job() == []


def test_steps_of_one_allocation(
    slurm: "Slurm",  # noqa: ARG001
    tmp_path: Path,
    matrix: Callable[..., dict[str, Any]],
) -> None:
    """The command of the how-to, with the devices of this cluster: one place more than there are."""
    table = matrix(24, 5, STEP)["target"][0]
    lines = [f"{key} = {json.dumps(value)}" for key, value in table["env"].items()]
    places = ", ".join(f"{key} = {json.dumps(value)}" for key, value in table["places"].items())
    (tmp_path / "my.toml").write_text(
        "schema = 1\n[models]\nfolders = ['models']\n[[target]]\nname = 'npu'\n"
        f"provider = '{CUDA}'\nplaces = {{ {places} }}\n[target.env]\n" + "\n".join(lines) + "\n",
        "utf-8",
    )
    program = Path(sys.executable).with_name("ep-harness")
    done = subprocess.run(
        [
            "salloc",
            "--nodes=2",
            "--ntasks-per-node=2",
            "--gres=npu:2",
            program,
            "run",
            "my.toml",
            "--out",
            "out",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = read_rows(tmp_path / "out")
    assert {record["verdict"] for record in found} == {"pass"}
    assert len(found) == 24
    assert len({record["place"] for record in found}) == 4
    assert "waits in Slurm's queue: the allocation has no room for it" in done.stdout


@pytest.mark.long
def test_a_cancelled_job_costs_its_place_a_while_and_no_cell(
    slurm: "Slurm", tmp_path: Path, matrix: Callable[..., dict[str, Any]]
) -> None:
    run = Running(start_engine(tmp_path, matrix(40, 4)))
    run.wait_for_records(8)
    slurm.call("scancel", slurm.jobs("RUNNING")[0])
    check(run.end(), 40)
    ((_, reason),) = run.set_aside()
    # Slurm's last words follow, if Slurm passes them on; tests/engine/test_slurm.py reads them.
    assert reason.startswith("the connection to it was lost")


@pytest.mark.parametrize("way", ["dies", "freezes"])
def test_a_node_that_fails_costs_its_places_a_while_and_no_cell(
    way: str, slurm: "Slurm", tmp_path: Path, matrix: Callable[..., dict[str, Any]]
) -> None:
    run = Running(start_engine(tmp_path, matrix(40, 4)))
    run.wait_for_records(8)
    began = time.monotonic()
    if way == "dies":
        slurm.kill_node("n2")
    else:
        slurm.signal_node("n2", signal.SIGSTOP)
    try:
        check(run.end(), 40)
    finally:
        if way == "freezes":
            slurm.kill_node("n2")
        slurm.revive_node("n2")
    assert len({place for place, _ in run.set_aside()}) == 2
    assert time.monotonic() - began < 180.0


@pytest.mark.long
def test_a_killed_srun_costs_its_place_a_while_and_no_cell(
    slurm: "Slurm", tmp_path: Path, matrix: Callable[..., dict[str, Any]]
) -> None:
    run = Running(start_engine(tmp_path, matrix(40, 4)))
    run.wait_for_records(8)
    os.kill(slurm.submitter(slurm.jobs("RUNNING")[0]), signal.SIGKILL)
    check(run.end(), 40)
    assert len(list(run.set_aside())) == 1
