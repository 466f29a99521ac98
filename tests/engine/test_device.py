"""Devices: what counts as one, their slots across processes, and targets and runs that share one."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.verdict import Verdict
from harness.corpus.caches.cache import ENVIRONMENT, cache_root
from harness.engine.engine import Engine
from harness.engine.prepare import prepare
from harness.engine.tasks.configuration import cpu_configuration
from harness.engine.tasks.events import Event, Finished, Warned
from harness.engine.workers import worker
from harness.engine.workers.admission import Admission
from harness.engine.workers.device import NO_SLOT, Slot, Slots, device_of, uses_processor
from harness.engine.workers.queues import TaskQueue
from harness.engine.workers.worker import Worker
from harness.plan.file_format import Timeouts
from harness.plan.target import Runtime
from tests.kit import (
    FAKE_ENV,
    fake_target,
    of_folder,
    plan_of,
    records_of,
    run_matrix,
    start_engine,
    wait_for,
    write_model,
)

CUDA, TENSORRT, OPENVINO = "CUDAExecutionProvider", "TensorrtExecutionProvider", "OpenVINOExecutionProvider"
CPU = "CPUExecutionProvider"
POSIX = pytest.mark.skipif(os.name != "posix", reason="the fake needs POSIX")


def devices(provider: str, **settings: Any) -> list[str | None]:
    """The devices of a target's cells, in the order of the plan."""
    table = {"name": "t", "provider": provider, **settings}
    plan = plan_of({"schema": 1, "models": {"folders": ["m"]}, "target": [table]})
    return [device_of(plan.target(cell.target), cell) for cell in plan.cells]


@pytest.mark.parametrize(
    ("provider", "settings", "name"),
    [
        (CPU, {}, None),
        ("XnnpackExecutionProvider", {}, None),
        ("AzureExecutionProvider", {}, None),
        (OPENVINO, {"plugin": "p", "device": {"type": "CPU"}}, None),
        (OPENVINO, {"options": {"device_type": "cpu"}}, None),
        (OPENVINO, {"plugin": "p", "device": {"type": "GPU"}}, "intel type=GPU here"),
        (OPENVINO, {"options": {"device_type": "NPU"}}, "intel device_type=NPU here"),
        (CUDA, {}, "nvidia-gpu here"),
        (TENSORRT, {}, "nvidia-gpu here"),
        ([TENSORRT, CUDA, CPU], {}, "nvidia-gpu here"),
        (
            CUDA,
            {"options": {"device_id": 1, "arena_extend_strategy": "kSameAsRequested"}},
            "nvidia-gpu device_id=1 here",
        ),
        (TENSORRT, {"options": {"device_id": "1"}}, "nvidia-gpu device_id=1 here"),
        ("AcmeExecutionProvider", {"plugin": "acme"}, "AcmeExecutionProvider here"),
        (CUDA, {"runtime": {"python": "/opt/bin/python"}}, "nvidia-gpu here"),
        (CUDA, {"runtime": {"ssh": "me@board"}}, "nvidia-gpu me@board"),
        (CUDA, {"runtime": {"command": "docker exec -i box python"}}, "nvidia-gpu docker exec -i box python"),
        (CUDA, {"runtime": {"command": "env A=1 /opt/slurm/bin/srun --gres=gpu:1 python"}}, None),
        (CUDA, {"runtime": {"command": "srun python"}, "device_lock": "rig 7"}, "rig 7"),
        (CPU, {"runtime": {"ssh": "me@board"}}, None),
        (CUDA, {"device_lock": "rig 7"}, "rig 7"),
        (CUDA, {"device_lock": ""}, None),
        (CPU, {"device_lock": "rig 7"}, "rig 7"),
    ],
)
def test_what_a_target_occupies(provider: str, settings: dict[str, Any], name: str | None) -> None:
    assert devices(provider, **settings) == [name]


@pytest.mark.parametrize(
    ("provider", "settings", "uses"),
    [
        (CPU, {}, True),
        (CPU, {"runtime": {"python": "/opt/python"}}, True),
        (CPU, {"runtime": {"ssh": "board"}}, False),
        (CPU, {"runtime": {"agent": ["/opt/agent"]}}, False),
        (CPU, {"runtime": {"node": "20", "packages": ["onnxruntime-node@1.30.0"]}}, False),
        (CPU, {"memory_limit_mb": 4096}, False),
        (CPU, {"device_lock": "board"}, False),
        (CUDA, {}, False),
        ("StrangeExecutionProvider", {"plugin": "p"}, False),
    ],
)
def test_which_target_certainly_computes_on_the_processor(
    provider: str, settings: dict[str, Any], *, uses: bool
) -> None:
    table = {"name": "t", "provider": provider, **settings}
    plan = plan_of({"schema": 1, "models": {"folders": ["m"]}, "target": [table]})
    assert {uses_processor(plan.target(cell.target), cell) for cell in plan.cells} == {uses}


def test_an_axis_chooses_the_device_as_an_option_does() -> None:
    axes = {"option.device_id": ["0", "1"]}
    assert devices(CUDA, options={"device_id": "7"}, axes=axes) == [
        "nvidia-gpu device_id=0 here",
        "nvidia-gpu device_id=1 here",
    ]
    axes = {"option.device_type": ["CPU", "GPU"]}
    assert devices(OPENVINO, axes=axes) == [None, "intel device_type=GPU here"]


def test_two_jobs_of_slurm_on_one_machine_have_devices_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    assert devices(CUDA) == ["nvidia-gpu here, of Slurm job 17"]
    assert devices(CUDA, runtime={"ssh": "me@board"}) == ["nvidia-gpu me@board"]


def test_machines_that_share_a_home_folder_do_not_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Slots(tmp_path / "locks").take("npu", 1)
    assert ours is not None
    assert Slots(tmp_path / "locks").take("npu", 1) is None
    monkeypatch.setattr("platform.node", lambda: "another machine")
    theirs = Slots(tmp_path / "locks").take("npu", 1)
    assert theirs is not None
    for slot in (ours, theirs):
        slot.release()


def test_a_device_has_as_many_slots_as_its_workers(tmp_path: Path) -> None:
    slots = Slots(tmp_path / "locks")
    one, two = slots.take("npu", 2), slots.take("npu", 2)
    assert one is not None
    assert two is not None
    assert slots.take("npu", 2) is None
    assert Slots(tmp_path / "locks").take("npu", 1) is None
    other = slots.take("gpu", 1)
    assert other is not None
    one.release()
    again = slots.take("npu", 2)
    assert again is not None
    for slot in (two, other, again):
        slot.release()


def test_a_process_that_runs_alone_takes_all_of_a_device(tmp_path: Path) -> None:
    slots = Slots(tmp_path / "locks")
    second = slots.take("npu", 1), slots.take("npu", 2)
    assert second[0] is not None
    assert second[1] is not None
    second[0].release()
    assert slots.take_all("npu", 2) is None
    second[1].release()
    whole = slots.take_all("npu", 2)
    assert whole is not None
    assert slots.take("npu", 2) is None
    whole.release()
    again = slots.take("npu", 2)
    assert again is not None
    again.release()


def test_where_nothing_can_be_locked_the_system_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        Slots(tmp_path / "file" / "locks").take("npu", 1)


HOLDER = """
import pathlib, sys
from harness.engine.workers.device import Slots
slot = Slots(pathlib.Path(sys.argv[1])).take("npu", 1)
print(slot is not None, flush=True)
sys.stdin.read()
"""


@POSIX
def test_a_slot_ends_with_the_process_that_holds_it(tmp_path: Path) -> None:
    slots = Slots(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        assert slots.take("npu", 1) is None
        holder.send_signal(signal.SIGKILL)
    slot = slots.take("npu", 1)
    assert slot is not None
    slot.release()


def test_a_look_at_a_busy_device_is_due_once() -> None:
    held = Slots(cache_root() / "locks").take("rig 1", 1)
    assert held is not None
    warnings: list[str] = []
    admission = Admission(1, warnings.append)
    queue = TaskQueue("t", cpu_configuration(Runtime()), Timeouts(), device="rig 1")
    assert not admission.expire(time.monotonic())
    for _ in range(2):
        assert admission.admit(queue, (), ()) is None
    assert warnings == ["target t waits: another run uses its device (rig 1)"]
    due = admission.retry_at
    assert due is not None
    assert time.monotonic() < due
    assert not admission.expire(due - 0.01)
    assert admission.expire(due)
    assert not admission.expire(due)
    held.release()
    slot = admission.admit(queue, (), ())
    assert slot is not None
    slot.release()


class Turns:
    """Counts the slots that this process holds of each device."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.most: dict[str, int] = {}
        self.taken = 0
        self._held: dict[str, int] = {}
        self._lock = threading.Lock()
        take, release = Slots.take, Slot.release

        def counted_take(slots: Slots, device: str, count: int) -> Slot | None:
            with self._lock:
                slot = take(slots, device, count)
                if slot is not None:
                    self._count(device, 1)
            return slot

        def counted_release(slot: Slot) -> None:
            with self._lock:
                if slot is not NO_SLOT:
                    self._count(slot.device, -1)
                release(slot)

        patch.setattr(Slots, "take", counted_take)
        patch.setattr(Slot, "release", counted_release)

    def _count(self, device: str, change: int) -> None:
        self.taken += change > 0
        self._held[device] = self._held.get(device, 0) + change
        self.most[device] = max(self.most.get(device, 0), self._held[device])

    @property
    def all_given_back(self) -> bool:
        return not any(self._held.values())


@pytest.fixture
def turns() -> Iterator[Turns]:
    with pytest.MonkeyPatch.context() as patch:
        yield Turns(patch)


def matrix(*targets: dict[str, Any]) -> dict[str, Any]:
    tables = [fake_target(f"t{number}", **table) for number, table in enumerate(targets)]
    return of_folder(*tables)


def outcome(events: list[Event]) -> tuple[list[Verdict], list[str]]:
    """Verdicts and warnings."""
    return (
        [record.verdict for record in records_of(events)],
        [event.message for event in events if isinstance(event, Warned)],
    )


@POSIX
@pytest.mark.parametrize(
    ("settings", "most"),
    [({"renew_after": {"sessions": 2}}, 1), ({"workers": 2}, 2), ({"device_lock": ""}, 0)],
)
def test_targets_of_one_device_take_turns(
    tmp_path: Path, turns: Turns, settings: dict[str, Any], most: int
) -> None:
    for number in range(5):
        write_model(tmp_path / "models" / f"{number}_m.onnx")
    table = {"device_lock": "rig", **settings}
    verdicts, warnings = outcome(run_matrix(tmp_path, matrix(table, table)))
    assert verdicts == [Verdict.PASS] * 10
    assert warnings == [], "a process that is renewed, or a target that waits for another, is no news"
    assert turns.most.get("rig", 0) == most
    assert turns.all_given_back
    if "renew_after" in settings:
        assert turns.taken == 6, "three processes for each target"


@POSIX
def test_a_target_waits_for_a_device_that_another_run_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model(tmp_path / "models" / "1_m.onnx")
    serve, served = Worker.serve, []

    def watched(worker: Worker, queue: TaskQueue, slot: Slot, *where: Any) -> None:
        if not queue.is_reference:
            served.append(queue.name)
        serve(worker, queue, slot, *where)

    monkeypatch.setattr(Worker, "serve", watched)
    held = Slots(cache_root() / "locks").take("rig 2", 1)
    assert held is not None
    engine = start_engine(tmp_path, matrix({"device_lock": "rig 2"}, {"device_lock": "rig 3"}))
    events: list[Event] = []
    stream = engine.events()
    while not outcome(events)[0]:
        events.append(next(stream))
    time.sleep(0.5)  # some more looks at the device
    assert served == ["t1"]
    held.release()
    events += stream
    verdicts, warnings = outcome(events)
    assert verdicts == [Verdict.PASS] * 2
    assert warnings == ["target t0 waits: another run uses its device (rig 2)"]


@POSIX
def test_runs_take_turns_at_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "IDLE_S", 0.2)
    for name in ("1_gate_in_run", "2_m"):
        write_model(tmp_path / "models" / f"{name}.onnx")
    marker = tmp_path / "marker"
    env = "".join(f"{key} = '{value}'\n" for key, value in {**FAKE_ENV, "FAKE_MARKER": str(marker)}.items())
    text = f"schema = 1\n[models]\nfolders = ['models']\n[[target]]\nname = 't'\nprovider = '{CUDA}'\n"
    (tmp_path / "m.toml").write_text(f"{text}[target.env]\n{env}", encoding="utf-8")
    plan, suites = prepare(tmp_path / "m.toml")
    engine = Engine(plan, suites)
    finished = (event for event in engine.events() if isinstance(event, Finished))
    command = [
        sys.executable,
        "-m",
        "harness",
        "run",
        "m.toml",
        "--out",
        "run",
        "--model",
        "2_m*",
        "--no-report",
    ]
    with contextlib.closing(engine):
        engine.submit(plan.cells[:1])
        wait_for((tmp_path / "marker.waits").exists)
        with subprocess.Popen(
            command,
            cwd=tmp_path,
            env={**os.environ, ENVIRONMENT: str(cache_root()), "COLUMNS": "200", "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        ) as other:
            assert other.stdout is not None
            assert any("t waits: another run uses its device" in line for line in other.stdout)
            (tmp_path / "marker.open").touch()
            assert next(finished).record.verdict is Verdict.PASS
            printed = other.stdout.read()
        assert other.returncode == 0, printed
        engine.submit(plan.cells[1:])
        engine.drain()
        assert [event.record.verdict for event in finished] == [Verdict.PASS]
