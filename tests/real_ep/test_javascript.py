"""Real Node.js and a real browser: what computes, what is missing, and what dies.

They need Node.js, npm with a registry, and Chromium. What is missing fails in CI, and elsewhere it is the
reason of a skip.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.engine.tasks.events import TargetReady
from tests.kit import by_model, records_of, run_matrix

pytestmark = [pytest.mark.real_ep, pytest.mark.browser]

NODE = {"node": "node", "packages": ["onnxruntime-node@1.30.0"]}
SOFTWARE_GPU = [
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    "--enable-features=Vulkan",
    "--enable-unsafe-swiftshader",
]
BROWSER = {"browser": "chromium", "packages": ["onnxruntime-web@1.30.0"], "flags": SOFTWARE_GPU}
CPU, WEBGPU, JSEP = "CPUExecutionProvider", "WebGpuExecutionProvider", "JsExecutionProvider"
SIZE = 320


def save(folder: Path, name: str, nodes: list[Any], shape: list[int], weights: dict[str, Any]) -> None:
    x, y = (helper.make_tensor_value_info(each, TensorProto.FLOAT, shape) for each in "xy")
    inits = [numpy_helper.from_array(np.asarray(array), each) for each, array in weights.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], inits)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / f"{name}.onnx")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small ones, a loop, and one whose names could pass for onnxruntime's log."""
    folder = tmp_path_factory.mktemp("models")
    save_small(folder)
    forged = "a\n VerifyEachNodeIsAssignedToAnEp] Node placements"
    save(folder, "forged", [helper.make_node("Relu", ["x"], ["y"], name=forged)], [4], {})
    save_loop(folder, 5)
    return folder


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small models, and one that computes long enough to be killed meanwhile."""
    folder = tmp_path_factory.mktemp("lasting")
    save_small(folder)
    save_loop(folder, 1000)
    return folder


def save_small(folder: Path) -> None:
    for number in range(3):
        save(folder, f"small{number}", [helper.make_node("Relu", ["x"], ["y"])], [4, number + 1], {})


def save_loop(folder: Path, steps: int) -> None:
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["c"], ["c2"]),
            helper.make_node("MatMul", ["v", "w"], ["m"]),
            helper.make_node("Add", ["m", "x"], ["a"]),  # else the values would vanish
            helper.make_node("Tanh", ["a"], ["v2"]),
        ],
        "body",
        [
            value("i", TensorProto.INT64, []),
            value("c", TensorProto.BOOL, []),
            value("v", TensorProto.FLOAT, [SIZE, SIZE]),
        ],
        [value("c2", TensorProto.BOOL, []), value("v2", TensorProto.FLOAT, [SIZE, SIZE])],
    )
    loop = helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)
    w = np.random.default_rng(0).random((SIZE, SIZE), np.float32) / SIZE
    save(folder, "long", [loop], [SIZE, SIZE], {"n": np.int64(steps), "w": w})


def records(models: Path, provider: str, runtime: dict[str, Any], **target: Any) -> dict[str, Record]:
    """``records(models, provider, runtime, **target)``: model -> record."""
    table = {"name": "it", "provider": provider, "runtime": runtime, **target}
    events = run_matrix(models, {"models": {"folders": [str(models)]}, "target": [table]}, 2)
    return by_model(events)


@contextlib.contextmanager
def killing(program: str, busy_s: float) -> Iterator[list[int]]:
    """Meanwhile, kill the first process of ours with this in its command that has computed for so long."""
    killed: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.2) and not killed:
            for pid in _descendants(os.getpid()):
                with contextlib.suppress(OSError, ValueError):
                    command = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
                    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
                    if (
                        program in command
                        and sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") > busy_s
                    ):
                        os.kill(pid, signal.SIGKILL)
                        killed.append(pid)
                        break

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def _descendants(root: int) -> set[int]:
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            parents[int(stat.parent.name)] = int(fields[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {root}


@pytest.mark.parametrize(
    ("provider", "runtime"),
    [(CPU, NODE), (CPU, {**BROWSER, "threads": 2}), (WEBGPU, BROWSER), (JSEP, BROWSER)],
)
def test_they_compute_and_the_log_tells_the_placement(
    built: Callable[..., Any], models: Path, provider: str, runtime: dict[str, Any]
) -> None:
    found = records(models, provider, built(runtime), timeouts_s={"run": 300})
    small = found["small1"]
    assert small.verdict is Verdict.PASS, small.reason
    assert small.placement is not None
    assert (small.placement.source, small.placement.ep_ops) == ("log", {"Relu": 1})
    assert found["long"].verdict in {Verdict.PASS, Verdict.PASS_PARTIAL}
    assert found["forged"].verdict is Verdict.UNSUPPORTED
    assert "the placement cannot be known" in found["forged"].reason


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("provider", "program", "reason"),
    [
        (CPU, "--type=renderer", "the tab crashed"),
        pytest.param(WEBGPU, "--type=gpu-process", "the GPU process died", marks=pytest.mark.long),
    ],
)
def test_a_killed_part_of_a_browser_costs_one_cell(
    built: Callable[..., Any], lasting: Path, provider: str, program: str, reason: str
) -> None:
    with killing(program, busy_s=2.0) as killed:
        found = records(lasting, provider, built(BROWSER), timeouts_s={"run": 300})
    assert killed, "the model computed too little"
    crashed = [record for record in found.values() if record.verdict is Verdict.CRASH]
    assert len(crashed) == 1, found
    assert reason in crashed[0].reason
    passed = [name for name, record in found.items() if record.verdict is Verdict.PASS]
    assert len(passed) >= 2


@pytest.mark.long
def test_memory_that_runs_out_in_wasm_is_a_verdict_of_its_own(
    built: Callable[..., Any], tmp_path: Path
) -> None:
    # Of 64 MiB in all, in place of 4 GiB that this machine's CPU EP would have to fill as often.
    limited = {**BROWSER, "flags": [*SOFTWARE_GPU, "--js-flags=--wasm-max-mem-pages=1024"]}
    steps = [
        helper.make_node("Mul", ["x", "a"], ["m"]),
        helper.make_node("Expand", ["m", "shape"], ["e"]),
        helper.make_node("ReduceMax", ["e"], ["y"]),
    ]
    save(tmp_path, "large", steps, [1], {"a": np.ones(1, np.float32), "shape": np.array([1 << 24])})
    save_small(tmp_path)
    found = records(tmp_path, CPU, built(limited))
    assert found["large"].verdict is Verdict.OUT_OF_MEMORY, found["large"]
    assert {found[f"small{number}"].verdict for number in range(3)} == {Verdict.PASS}


def test_a_hang_of_wasm_ends_at_the_limit_and_leaves_no_process(
    built: Callable[..., Any], lasting: Path
) -> None:
    found = records(lasting, CPU, built(BROWSER), timeouts_s={"run": 0.4})
    assert found["long"].verdict is Verdict.TIMEOUT
    assert found["small0"].verdict is Verdict.PASS
    deadline = time.monotonic() + 60
    while mine := [pid for pid in _descendants(os.getpid()) if _is_browser(pid)]:
        assert time.monotonic() < deadline, mine
        time.sleep(0.2)


def test_what_is_not_there_is_said(built: Callable[..., Any], models: Path) -> None:
    webnn = {"name": "webnn", "provider": "WebNNExecutionProvider", "runtime": built(BROWSER)}
    older = {**webnn, "name": "older", "runtime": {**BROWSER, "browser": "/nowhere/chromium"}}
    table = {"models": {"folders": [str(models)]}, "target": [webnn, older]}
    events = run_matrix(models, table, 2)
    problems = {event.target: event.problem for event in events if isinstance(event, TargetReady)}
    assert "no WebNN" in problems["webnn"] or "WebNN has no device" in problems["webnn"]
    assert "/nowhere/chromium" in problems["older"]
    verdicts = {record.verdict for record in records_of(events)}
    assert verdicts == {Verdict.UNAVAILABLE}


def _is_browser(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return "chromium" in Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    return False
