"""Targets behind srun, on a real Slurm: verdicts as elsewhere, and no provider blamed for what Slurm did."""

import os
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Cause, Verdict
from harness.corpus.caches.cache import ENVIRONMENT
from harness.engine.tasks.events import Event, Noted
from tests.kit import FAKE_ENV, of_folder, records_of, run_matrix, start_engine, write_model
from tests.slurm.running import Running, until

if TYPE_CHECKING:
    from tests.slurm.slurm_cluster import Slurm


CUDA = "CUDAExecutionProvider"
SRUN = f"srun --quiet --gres=npu:1 {shlex.quote(sys.executable)}"
FAULTS = {
    "1_fine": (Verdict.PASS, ""),
    "2_segv_in_create": (Verdict.CRASH, "SIGSEGV"),
    "3_abort_in_run": (Verdict.CRASH, "SIGABRT"),
    "4_exit3_in_run": (Verdict.CRASH, "exit code 3"),
    "5_hanggil_in_run": (Verdict.HANG, ""),
    "6_error_in_run": (Verdict.ERROR, ""),
    "7_big": (Verdict.PASS, ""),
}
OF_EACH_CHANNEL = {"1_fine", "2_segv_in_create", "7_big"}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Of a target: the fake, and a cache of its own."""
    return {**FAKE_ENV, "FAKE_MARKER": str(tmp_path / "marker"), ENVIRONMENT: str(tmp_path / "far")}


def matrix(env: dict[str, str], **more: Any) -> dict[str, Any]:
    return of_folder({"name": "npu", "provider": CUDA, "runtime": {"command": SRUN}, "env": env, **more})


def by_model(records: list[Record]) -> dict[str, Record]:
    return {record.model.removesuffix(".onnx"): record for record in records}


def finished(events: list[Event]) -> dict[str, Record]:
    return by_model(records_of(events))


@pytest.mark.usefixtures("slurm")
@pytest.mark.parametrize("channel", ["", "line", "socket"])
def test_verdicts_are_those_of_any_target(channel: str, tmp_path: Path, env: dict[str, str]) -> None:
    # Each channel passes on how a process ends and large tensors; what is said of each end is the same.
    expected = {name: told for name, told in FAULTS.items() if not channel or name in OF_EACH_CHANNEL}
    for name in expected:
        write_model(tmp_path / "models" / f"{name}.onnx", "big" if name.endswith("big") else "")
    runtime = {"command": SRUN, **({"channel": channel} if channel else {})}
    found = finished(run_matrix(tmp_path, matrix(env, runtime=runtime, timeouts_s={"run": 5.0})))
    told = {name: (record.verdict, record.cause) for name, record in found.items()}
    assert told == expected
    # The fixture sees that no job outlives the run, that of the hanging process included.
    assert found["2_segv_in_create"].attempt == 1


def test_a_job_that_waits_is_shown_and_has_no_part_in_the_limit_of_the_start(
    slurm: "Slurm", tmp_path: Path, env: dict[str, str]
) -> None:
    write_model(tmp_path / "models" / "1_fine.onnx")
    slurm.occupy()
    run = Running(start_engine(tmp_path, matrix(env, timeouts_s={"start": 6.0})))
    until(lambda: any("Resources" in str(event) for event in run.events), "nothing says that it waits")
    (job,) = slurm.jobs("PENDING")
    time.sleep(6.0)
    slurm.clear_but(job)
    assert by_model(run.end())["1_fine"].verdict is Verdict.PASS
    (note,) = (event.message for event in run.events if isinstance(event, Noted))
    assert note == f"target npu: job {job} waits in Slurm's queue: Resources"


def test_waiting_has_a_limit_of_its_own(slurm: "Slurm", tmp_path: Path, env: dict[str, str]) -> None:
    write_model(tmp_path / "models" / "1_fine.onnx")
    slurm.occupy()
    record = finished(run_matrix(tmp_path, matrix(env, timeouts_s={"queue": 1.0})))["1_fine"]
    assert (record.verdict, record.cause) == (Verdict.UNAVAILABLE, Cause.NO_DEVICE)
    assert "waits in Slurm's queue: Resources" in record.reason
    assert "timeouts_s.queue" in record.reason
    assert slurm.jobs("PENDING") == []
    slurm.clear()


@pytest.mark.usefixtures("slurm")
def test_what_slurm_cannot_give_is_told_in_its_words(tmp_path: Path, env: dict[str, str]) -> None:
    write_model(tmp_path / "models" / "1_fine.onnx")
    runtime = {"command": SRUN.replace("npu:1", "npu:9")}
    record = finished(run_matrix(tmp_path, matrix(env, runtime=runtime)))["1_fine"]
    assert record.verdict is Verdict.UNAVAILABLE
    assert "Requested node configuration is not available" in record.reason


@pytest.mark.parametrize(
    "options", [(), ("-s", "KILL"), ("--full", "-s", "KILL")], ids=["term", "kill", "full"]
)
def test_a_cancelled_job_costs_a_second_try(
    options: tuple[str, ...], slurm: "Slurm", tmp_path: Path, env: dict[str, str]
) -> None:
    for name in ("1_waitonce_in_run", "2_fine"):
        write_model(tmp_path / "models" / f"{name}.onnx")
    run = Running(start_engine(tmp_path, matrix(env)))
    until((tmp_path / "marker").exists, "the model does not run")
    slurm.call("scancel", *options, *slurm.jobs("RUNNING"))
    found = by_model(run.end())
    assert {name: (record.verdict, record.attempt) for name, record in found.items()} == {
        "1_waitonce_in_run": (Verdict.PASS, 2),
        "2_fine": (Verdict.PASS, 1),
    }


def test_jobs_that_are_always_cancelled_are_no_fault_of_the_provider(
    slurm: "Slurm", tmp_path: Path, env: dict[str, str]
) -> None:
    for name in ("1_gate_in_run", "2_fine"):
        write_model(tmp_path / "models" / f"{name}.onnx")
    run = Running(start_engine(tmp_path, matrix(env)))
    for _ in range(2):
        waits = tmp_path / "marker.waits"
        until(waits.exists, "the model does not run")
        waits.unlink()
        slurm.call("scancel", *slurm.jobs("RUNNING"))
    found = by_model(run.end())
    assert found["2_fine"].verdict is Verdict.PASS
    lost = found["1_gate_in_run"]
    assert (lost.verdict, lost.cause, lost.attempt) == (Verdict.UNAVAILABLE, Cause.NO_DEVICE, 2)
    # Slurm's last words follow, if Slurm passes them on; tests/engine/test_slurm.py reads them.
    assert lost.reason.startswith("the connection was lost in phase run, and so it was in the try before")


def test_a_job_out_of_time_costs_a_second_try(slurm: "Slurm", tmp_path: Path, env: dict[str, str]) -> None:
    write_model(tmp_path / "models" / "1_waitonce_in_run.onnx")
    run = Running(start_engine(tmp_path, matrix(env)))
    until((tmp_path / "marker").exists, "the model does not run")
    (job,) = slurm.jobs("RUNNING")
    slurm.call("scontrol", "update", f"JobId={job}", "EndTime=now")
    record = by_model(run.end(180.0))["1_waitonce_in_run"]
    assert (record.verdict, record.attempt) == (Verdict.PASS, 2)
    assert slurm.job_state(job) == "TIMEOUT"


def test_a_killed_srun_costs_a_second_try(slurm: "Slurm", tmp_path: Path, env: dict[str, str]) -> None:
    write_model(tmp_path / "models" / "1_waitonce_in_run.onnx")
    engine = start_engine(tmp_path, matrix(env))
    run = Running(engine)
    until((tmp_path / "marker").exists, "the model does not run")
    (job,) = slurm.jobs("RUNNING")
    os.kill(slurm.submitter(job), signal.SIGKILL)
    record = by_model(run.end())["1_waitonce_in_run"]
    assert (record.verdict, record.attempt) == (Verdict.PASS, 2)


def test_a_node_that_dies_costs_a_second_try(slurm: "Slurm", tmp_path: Path, env: dict[str, str]) -> None:
    for name in ("1_waitonce_in_run", "2_fine"):
        write_model(tmp_path / "models" / f"{name}.onnx")
    run = Running(start_engine(tmp_path, matrix(env)))
    until((tmp_path / "marker").exists, "the model does not run")
    (job,) = slurm.jobs("RUNNING")
    node = slurm.node_of(job)
    slurm.kill_node(node)
    try:
        found = by_model(run.end(180.0))
    finally:
        slurm.revive_node(node)
    assert {name: record.verdict for name, record in found.items()} == {
        "1_waitonce_in_run": Verdict.PASS,
        "2_fine": Verdict.PASS,
    }
    assert found["1_waitonce_in_run"].attempt == 2


def test_a_run_that_ends_early_leaves_no_job(slurm: "Slurm", tmp_path: Path, env: dict[str, str]) -> None:
    write_model(tmp_path / "models" / "1_hanggil_in_run.onnx")
    engine = start_engine(tmp_path, matrix(env))
    until(lambda: slurm.jobs("RUNNING"), "no job runs")
    engine.close()
    assert slurm.wait_for_no_job(60.0) == []
    slurm.occupy()
    engine = start_engine(tmp_path, matrix(env))
    until(lambda: slurm.jobs("PENDING"), "no job waits")
    engine.close()
    until(lambda: not slurm.jobs("PENDING"), "the job still waits", 60.0)
    slurm.clear()
