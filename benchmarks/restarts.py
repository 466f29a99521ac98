"""What a thousand crashes leave behind in the harness: descriptors, threads, memory.

Every model kills its process. They run through the real engine on an onnxruntime of a few lines, so that
nearly all the time goes into ends and starts of processes. The exit code is 1 where descriptors or threads
grew; memory is shown, for an allocator may keep some.
"""

import argparse
import gc
import sys
import tempfile
import threading
import time
from pathlib import Path

import onnx
import onnx.parser
from fake import FAKE, MODEL
from processes import verdict

from harness.core.records.verdict import Verdict
from harness.engine.engine import Engine
from harness.engine.prepare import prepare
from harness.engine.tasks.events import Finished

MATRIX = """
schema = 1
[models]
folders = ["models"]
[[target]]
name = "crashing"
provider = "CUDAExecutionProvider"
workers = 2
env = {{ PYTHONPATH = {fake!r}, PYTHONDONTWRITEBYTECODE = "1" }}
"""
WARM_UP = 20


def main() -> bool:
    """Print what was held before and after; whether it grew."""
    parser = argparse.ArgumentParser()
    parser.add_argument("restarts", type=int, nargs="?", default=1000)
    restarts = parser.parse_args().restarts
    with tempfile.TemporaryDirectory() as folder:
        crash(Path(folder, "warm"), WARM_UP)
        before = held()
        started = time.perf_counter()
        crash(Path(folder, "all"), restarts)
        took_s = time.perf_counter() - started
        after = settled(before)
    print(f"{restarts} restarts in {took_s:.0f} s, {1000 * took_s / restarts:.0f} ms each")
    for name, was, now in zip(("descriptors", "threads", "resident MiB"), before, after, strict=True):
        print(f"{name:<13} {was:>8.10g} before {now:>8.10g} after")
    for name, was, now in zip(("descriptors", "threads"), before, after, strict=False):
        verdict(f"{name} more after {restarts:,} crashes", now - was, 0)
    return grown(before, after)


def crash(folder: Path, times: int) -> None:
    """Run as many models, each of which segfaults."""
    model = onnx.parser.parse_model(MODEL).SerializeToString()
    (folder / "models").mkdir(parents=True)
    for number in range(times):
        (folder / "models" / f"{number}_segv_in_run.onnx").write_bytes(model)
    matrix = folder / "m.toml"
    matrix.write_text(MATRIX.format(fake=str(FAKE)), encoding="utf-8")
    plan, suites = prepare(matrix)
    engine = Engine(plan, suites)
    engine.submit(plan.cells)
    engine.drain()
    verdicts = [event.record.verdict for event in engine.events() if isinstance(event, Finished)]
    engine.close()
    if verdicts != [Verdict.CRASH] * times:
        sys.exit(f"{times} crashes were planned; the verdicts: {sorted(set(verdicts))}")


def settled(wanted: tuple[int, int, float]) -> tuple[int, int, float]:
    """What is held once the threads that see off the last processes are done, or after five seconds."""
    deadline = time.monotonic() + 5.0
    while grown(wanted, now := held()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return now


def grown(before: tuple[int, int, float], after: tuple[int, int, float]) -> bool:
    """Whether there are more descriptors or more threads."""
    return after[0] > before[0] or after[1] > before[1]


def held() -> tuple[int, int, float]:
    """Open descriptors, threads, and resident memory in MiB, of this process."""
    gc.collect()
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    resident_mib = int(status.partition("VmRSS:")[2].split()[0]) / 1024
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), round(resident_mib, 1)


if __name__ == "__main__":
    sys.exit(main())
