"""How an agent times runs and measures memory."""

import ctypes
import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from harness.agent.device_memory import UNKNOWN_MEMORY, Process, load_nvml, of_drm, of_nvml
from harness.agent.latency_runs import HostPeak, processor_wait_ns, time_runs, waiting_for_others
from harness.agent.session_run import PROGRESS_S
from harness.agent.system import processor
from harness.core.records.shape_times import ShapeTime
from harness.core.timing.latency import latency_of
from harness.core.values.value import tensor
from tests.kit import parse

RELU = "g (float[N] x) => (float[N] y) { y = Relu(x) }"
X = {"x": tensor(np.linspace(-1, 1, 8, dtype=np.float32))}


def counted(
    settings: dict[str, Any], step: Callable[[], Any] = lambda: None
) -> tuple[dict[str, Any], int, int]:
    """The facts, how often ``step`` ran, and how often a phase was announced."""
    runs: list[None] = []
    phases: list[str] = []

    def one() -> None:
        assert not gc.isenabled()
        runs.append(None)
        step()

    facts, _ = time_runs(one, settings, phases.append)
    assert gc.isenabled()
    assert set(phases) == {"run"}
    return facts, len(runs), len(phases)


def test_runs_that_count_come_after_those_that_do_not() -> None:
    facts, runs, _ = counted({"warm_up": 3, "repeats": 5, "budget_s": 60.0})
    assert runs == 8
    assert (len(facts["samples_ns"]), facts["warm_up"], facts["stopped_by"]) == (5, 3, "repeats")


def test_processor_time_is_that_of_one_run_and_sleep_takes_none() -> None:
    facts, _, _ = counted(
        {"warm_up": 0, "repeats": 3, "budget_s": 60.0}, lambda: sum(range(1_000_000)) and None
    )
    assert facts["processor_ms"] is None or 0 < facts["processor_ms"] < 1_000
    facts, _, _ = counted({"warm_up": 0, "repeats": 3, "budget_s": 60.0}, lambda: time.sleep(0.05))
    assert (facts["processor_ms"] or 0.0) < min(facts["samples_ns"]) / 1e6


def test_the_warm_up_takes_no_more_than_half_of_the_budget() -> None:
    facts, _, _ = counted({"warm_up": 1000, "repeats": 1000, "budget_s": 0.4}, lambda: time.sleep(0.02))
    assert facts["stopped_by"] == "budget"
    assert facts["warm_up"] <= 10
    assert len(facts["samples_ns"]) >= 1


def test_one_run_counts_however_small_the_budget() -> None:
    facts, runs, _ = counted({"warm_up": 5, "repeats": 5, "budget_s": 1e-9})
    assert (runs, facts["warm_up"], len(facts["samples_ns"])) == (1, 0, 1)


def test_the_harness_hears_of_every_slow_run_so_that_its_limit_holds_for_one() -> None:
    settings = {"warm_up": 1, "repeats": 2, "budget_s": 60.0}
    _, runs, phases = counted(settings, lambda: time.sleep(PROGRESS_S * 1.2))
    assert phases >= runs == 3


def test_an_error_in_a_timed_run_is_not_kept_back() -> None:
    def fail() -> None:
        raise RuntimeError("worn out")

    with pytest.raises(RuntimeError, match="worn out"):
        time_runs(fail, {"warm_up": 0, "repeats": 1, "budget_s": 1.0}, lambda _: None)
    assert gc.isenabled()


def test_the_last_outputs_are_handed_out() -> None:
    numbers = iter(range(10))
    _, last = time_runs(lambda: next(numbers), {"warm_up": 2, "repeats": 3, "budget_s": 60.0}, lambda _: None)
    assert last == 4


@pytest.mark.real_ep
def test_a_job_without_a_request_has_no_latency(serve: Callable[..., Any]) -> None:
    assert "latency" not in serve(parse(RELU), X)


@pytest.mark.real_ep
def test_an_agent_times_a_session(serve: Callable[..., Any]) -> None:
    result = serve(parse(RELU), X, latency={"warm_up": 2, "repeats": 12, "budget_s": 60.0})
    assert result["status"] == "ok", result
    assert "second" not in result
    latency = latency_of(result["latency"])
    assert (latency.runs, latency.warm_up, latency.io) == (12, 2, "copied")
    assert (latency.intra_op_threads, latency.inter_op_threads) == (1, 1)
    assert latency.min_ms > 0
    if sys.platform == "linux":
        assert latency.host_peak_mib is not None
        assert latency.host_peak_mib > 1


@pytest.mark.real_ep
def test_each_shape_of_a_grid_is_timed(serve: Callable[..., Any]) -> None:
    sets = [{"x": tensor(np.ones(size, np.float32))} for size in (8, 1, 1000)]
    latency = {"warm_up": 1, "repeats": 6, "budget_s": 60.0, "grid": {"N": [1, 1000]}}
    result = serve(parse(RELU), *sets, scenario="dynamic_shapes", latency=latency)
    times = [msgspec.convert(one, ShapeTime) for one in result["shape_times"]]
    assert [one.runs for one in times] == [6, 6, 6]
    assert all(0 < one.low_ms <= one.p50_ms <= one.high_ms for one in times)
    del latency["grid"]
    assert "shape_times" not in serve(parse(RELU), *sets, scenario="dynamic_shapes", latency=latency)


def test_how_long_threads_stood_in_line(tmp_path: Path) -> None:
    assert processor_wait_ns(str(tmp_path / "nowhere")) is None
    assert processor_wait_ns(str(tmp_path)) is None
    for thread, line in (("1", "9 500 3\n"), ("2", "9 25 3\n"), ("3", ""), ("4", None)):
        (tmp_path / thread).mkdir()
        if line is not None:
            (tmp_path / thread / "schedstat").write_text(line, encoding="ascii")
    assert processor_wait_ns(str(tmp_path)) == 525


@pytest.mark.parametrize(
    ("waiting", "running", "processors", "for_others"),
    [
        (0.0, 1.0, 2, 0.0),
        (0.5, 0.5, 2, 0.5),  # one thread on two processors
        (6.0, 2.0, 2, 0.0),  # eight threads on two processors without other programs
        (7.0, 1.0, 2, 1.0),  # another program has one of them
        (-0.1, 1.0, 2, 0.0),
    ],
)
def test_too_many_threads_disturb_only_their_own_process(
    waiting: float, running: float, processors: int, for_others: float
) -> None:
    assert waiting_for_others(waiting, running, processors) == for_others


def test_the_peak_of_memory_is_that_since_it_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "clear_refs").write_text("", encoding="ascii")
    (tmp_path / "status").write_text("VmPeak:\t  900000 kB\nVmHWM:\t   2048 kB\n", encoding="ascii")
    assert HostPeak(str(tmp_path)).mib() == 2.0
    assert (tmp_path / "clear_refs").read_text(encoding="ascii") == "5"


@pytest.mark.parametrize("status", ["", "VmHWM:\n", "VmHWM: many kB\n"])
def test_a_peak_that_is_not_reported_is_unknown(tmp_path: Path, status: str) -> None:
    (tmp_path / "clear_refs").write_text("", encoding="ascii")
    (tmp_path / "status").write_text(status, encoding="ascii")
    assert HostPeak(str(tmp_path)).mib() is None
    assert HostPeak(str(tmp_path / "elsewhere")).mib() is None


def client(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"pos:\t0\nflags:\t02100002\n{text}", encoding="utf-8")


def test_device_memory_as_the_kernel_counts_it(tmp_path: Path) -> None:
    folder = tmp_path / "fdinfo"
    assert of_drm(str(folder)) is None
    client(folder, "1", "")
    assert of_drm(str(folder)) is None
    amd = (
        "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t7\n"
        "drm-memory-vram:\t2048 KiB\ndrm-memory-gtt: \t4096 KiB\ndrm-memory-cpu: \t64 KiB\n"
    )
    client(folder, "3", amd)
    client(folder, "4", amd)  # the same one, duplicated
    assert of_drm(str(folder)) == 2048 << 10
    client(folder, "5", amd.replace("id:\t7", "id:\t8"))
    assert of_drm(str(folder)) == 4096 << 10
    xe = (
        "drm-driver:\txe\ndrm-client-id:\t1\ndrm-total-vram0:\t99 MiB\ndrm-resident-vram0:\t3 MiB\n"
        "drm-resident-system:\t1 MiB\ndrm-memory-vram0:\t50 MiB\n"
    )
    client(folder, "6", xe)
    assert of_drm(str(folder)) == (4096 << 10) + (3 << 20)


Count = Any  # a pointer to a c_uint


class Nvml:
    """What is used of NVML, called by C's rules: for each device of ``held``, processes ``(pid, bytes)``."""

    def __init__(self, *held: list[tuple[int, int]], fails: str = "") -> None:
        self.open = 0

        def init() -> int:
            self.open += fails != "init"
            return int(fails == "init")

        def shut_down() -> int:
            self.open -= 1
            return 0

        def count_devices(count: Count) -> int:
            count[0] = len(held)
            return 0

        def get_device(index: int, device: Any) -> int:
            device[0] = index + 1
            return 0

        def list_processes(device: int, count: Count, processes: Any) -> int:
            found = held[device - 1]
            assert count[0] >= len(found)
            for place, (pid, used) in enumerate(found):
                processes[place] = Process(pid=pid, used=used)
            count[0] = len(found)
            return int(fails == "processes")

        returned, number, handle = ctypes.c_int, ctypes.c_uint, ctypes.c_void_p
        form, pointer = ctypes.CFUNCTYPE, ctypes.POINTER
        self.nvmlInit_v2 = form(returned)(init)
        self.nvmlShutdown = form(returned)(shut_down)
        self.nvmlDeviceGetCount_v2 = form(returned, pointer(number))(count_devices)
        self.nvmlDeviceGetHandleByIndex_v2 = form(returned, number, pointer(handle))(get_device)
        self.nvmlDeviceGetComputeRunningProcesses_v3 = form(
            returned, handle, pointer(number), pointer(Process)
        )(list_processes)


def test_device_memory_as_nvml_counts_it() -> None:
    nvml = Nvml([(1, 1 << 20), (7, 2 << 20)], [(7, 3 << 20)])
    assert of_nvml(nvml, 7) == 5 << 20
    assert of_nvml(nvml, 8) is None
    assert nvml.open == 0
    assert of_nvml(Nvml([(7, UNKNOWN_MEMORY)]), 7) is None
    assert of_nvml(Nvml([(7, 1)], fails="processes"), 7) is None
    assert of_nvml(Nvml([(7, 1)], fails="init"), 7) is None
    assert of_nvml(None, 7) is None
    assert of_nvml(SimpleNamespace(), 7) is None
    assert ctypes.sizeof(Process) == 24
    assert load_nvml() is None or of_nvml(load_nvml(), 0) is None


@pytest.mark.skipif(sys.platform != "linux", reason="reads files of Linux")
def test_which_processor_it_was(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(
        "processor\t: 0\nmodel name\t: A: B (R) 9\n\nprocessor\t: 1\nmodel name\t: C\n", encoding="utf-8"
    )
    found = processor(str(cpuinfo))
    assert found["model"] == "A: B (R) 9"
    assert found["count"] >= 1
    assert processor(str(tmp_path / "nowhere"))["model"] == ""
