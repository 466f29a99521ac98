"""Tensors of 1 KB to 1 GB through the agent, against a plain pipe and against memcpy, in one run.

A one-node model (Relu on the CPU provider) takes a tensor in and gives one of the same size back, through a
real agent process and the harness's own job and outcome code. The plain pipe moves the same bytes there and
back: a process that reads them all with ``os.read``, keeps them, and writes them again with ``os.write``, up
to 1 MiB in one call. memcpy copies them twice, into memory that is there already.

The figure is about transport alone. From the time between the case and its outcome, what the model itself
takes is taken off: making a session, running it (twice where that is quick, as the agent does) and comparing
the two runs, all of which is done in the same round in this process. Not taken off, and so counted as
transport, are the pages of a mapped file that a run touches first and the agent's account of the nodes; and
this process touches every page of the output.

Rounds take turns, for machines are shared and noisy; medians of them are printed. Below 1 MB the fixed cost
of a job's messages rules, which a pipe without any messages does not have.

Exit code 1: less than half of the pipe's bandwidth from 1 MB on.
"""

import contextlib
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from processes import heading, progress, row, verdict

from harness.agent.wire import output_to_wire
from harness.core.values.value import Tensor, tensor
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.case import Case
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder
from harness.engine.processes.launch import launch_here
from harness.engine.processes.mapped_tensors import TensorHome, Tensors
from harness.engine.processes.messages import Envelope, JobResult
from harness.engine.processes.process import AgentProcess
from harness.engine.tasks.configuration import cpu_configuration
from harness.engine.tasks.outcome import Ran, from_result
from harness.engine.workers.job import JobDemands, job
from harness.plan.target import Runtime

Floats = NDArray[np.float32]

SIZES = {"1 KB": 1 << 10, "32 KB": 32 << 10, "1 MB": 1 << 20, "32 MB": 32 << 20, "256 MB": 256 << 20}
SIZES["1 GB"] = 1 << 30
WANTED_FROM = 1 << 20
WANTED_RATIO = 0.5
COPIES = 8  # of a tensor in memory at the same time, at most, here and in the agent
WARM_UPS = 3  # a virtual machine gets its memory from the host when it is first touched, which takes seconds
AT_ONCE = 1 << 20  # bytes asked of the pipe in one call
PAGE = 4096
ECHO = """
import os, sys
size, at_once = map(int, sys.argv[1:])
while True:
    parts, missing = [], size
    while missing:
        parts.append(os.read(0, min(at_once, missing)))
        missing -= len(parts[-1])
        if not parts[-1]:
            sys.exit()
    for part in map(memoryview, parts):
        while part:
            part = part[os.write(1, part):]
"""
MODEL = '<ir_version: 9, opset_import: ["" : 17]> g (float[N] x) => (float[N] y) { y = Relu(x) }'


def main() -> int:
    """Print the table; 1 where a figure is not what it should be."""
    heading("tensor", "job", "model", "transport", "", "pipe", "", "memcpy", "of the pipe")
    ratios: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder, agent(Path(folder)) as through_agent:
        for name, size in SIZES.items():
            if size * COPIES > free_memory():
                progress(f"{name} left out: less than {size * COPIES >> 30} GiB of memory are free")
                continue
            ratios[size] = measure(name, size, through_agent)
    least = min((ratio for size, ratio in ratios.items() if size >= WANTED_FROM), default=0.0)
    met = verdict("bandwidth of tensors from 1 MB on, of a pipe's", least, WANTED_RATIO, at_least=True)
    return 0 if met else 1


def measure(name: str, size: int, through_agent: "Agent") -> float:
    """Print the row of one size; return the bandwidth as a share of the pipe's."""
    rounds = int(min(50, max(5, (1 << 30) / size)))
    data = np.random.default_rng(0).standard_normal(size // 4, np.float32)
    for _ in range(WARM_UPS):
        through_agent.round(data)
    with pipe(size) as through_pipe:
        measured = []
        for _ in range(rounds):
            total, own = through_agent.round(data)
            measured.append((total, own, total - own, through_pipe(data), memcpy(data)))
    medians = (statistics.median(column) for column in zip(*measured, strict=True))
    total, own, transport, piped, copied = medians
    ratio = piped / transport
    times_ms = [f"{seconds * 1e3:.1f} ms" for seconds in (total, own, transport, piped)]
    speeds = [speed(size, seconds) for seconds in (transport, piped, copied)]
    job, model, carried, through_pipe_ms = times_ms
    row(name, job, model, carried, speeds[0], through_pipe_ms, *speeds[1:], f"{ratio:.2f}")
    return ratio


def speed(size: int, seconds: float) -> str:
    """There and back."""
    return f"{2 * size / seconds / 1e9:5.2f} GB/s"


class Agent:
    """A real agent on the CPU provider, and a session in this process beside it."""

    def __init__(self, case: Case, process: AgentProcess, tensors: Tensors) -> None:
        import onnxruntime

        self._case = case
        self._process = process
        self._tensors = tensors
        self._heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._settings = onnxruntime.SessionOptions()
        self._settings.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession
        threading.Thread(target=process.serve, args=(self._heard.put,), daemon=True).start()
        process.send(("config", cpu_configuration(Runtime()).message(tensors.folders)))
        self._wait("ready")

    def round(self, data: Floats) -> tuple[float, float]:
        """Seconds from the case to its outcome, and how many of them the model itself takes."""
        case = msgspec.structs.replace(
            self._case, data_sets=(DataSet(name="made", inputs=(("x", tensor(data)),)),)
        )
        started = time.perf_counter()
        self._process.send(("job", 1, job(case, {}, self._tensors, JobDemands(other=False), local=True)))
        result = msgspec.convert((self._wait("result"),), Envelope).message
        if not isinstance(result, JobResult):
            raise TypeError(result)
        outcome = from_result(result.result, self._tensors)
        if not isinstance(outcome, Ran):
            raise TypeError(outcome)
        ((_, output),) = outcome.outputs[0]
        if not isinstance(output, Tensor):
            raise TypeError(output)
        output.array.view(np.uint8)[::PAGE].sum()
        total = time.perf_counter() - started
        self._wait("done")  # the session's end comes after the result, and so is no part of the time
        started = time.perf_counter()
        session = self._session(str(case.model_path), self._settings, providers=["CPUExecutionProvider"])
        kept = output_to_wire(session.run(["y"], {"x": data})[0])
        own = time.perf_counter() - started
        del kept, session
        return total, own

    def _wait(self, kind: str) -> Any:
        while True:
            message = self._heard.get(timeout=120)
            self._process.taken += 1
            if message[0] == kind:
                return message
            if message[0] not in {"imported", "phase"}:
                raise RuntimeError(message)


@contextlib.contextmanager
def agent(folder: Path) -> Iterator[Agent]:
    """Start an agent; its end is waited for."""
    import onnx
    import onnx.parser

    (folder / "models").mkdir()
    onnx.save(onnx.parser.parse_model(MODEL), folder / "models" / "relu.onnx")
    case = load_case(open_folder(folder / "models"), "relu.onnx", {})
    home = TensorHome()
    (folder / "worker").mkdir()
    tensors = home.open(folder / "worker")
    process = AgentProcess(launch_here((sys.executable,), {}, folder / "worker"))
    try:
        yield Agent(case, process, tensors)
        process.send(("stop",))
    finally:
        process.wait()
        home.close()


@contextlib.contextmanager
def pipe(size: int) -> Iterator[Any]:
    """A process that echoes ``size`` bytes at a time; called with an array it returns the seconds."""
    with subprocess.Popen(
        [sys.executable, "-c", ECHO, str(size), str(AT_ONCE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        there, back = process.stdin.fileno(), process.stdout.fileno()  # type: ignore[union-attr]

        def there_and_back(data: Floats) -> float:
            started = time.perf_counter()
            rest = data.view(np.uint8).data
            while rest:
                rest = rest[os.write(there, rest) :]
            parts, missing = [], size
            while missing:
                parts.append(os.read(back, min(AT_ONCE, missing)))
                missing -= len(parts[-1])
            return time.perf_counter() - started

        for _ in range(WARM_UPS):
            there_and_back(np.zeros(size // 4, np.float32))
        yield there_and_back


def memcpy(data: Floats) -> float:
    """Seconds for copying there and back, into memory that is there already."""
    copy = np.zeros_like(data)
    copy.fill(1)
    started = time.perf_counter()
    np.copyto(copy, data)
    np.copyto(copy, data)
    return time.perf_counter() - started


def free_memory() -> int:
    """Bytes of memory that can be had without pushing anything out."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return 8 << 30  # not Linux: take it that there is enough for all but the largest


if __name__ == "__main__":
    sys.exit(main())
