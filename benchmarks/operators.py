"""ONNX's operator tests on the CPU provider: the harness, a bare loop, and ONNX's own runner.

All take the same 1,884 models and turn by turn, since machines are shared and noisy; what counts is
ratios of medians. What is timed:

* *harness*: ``ep-harness run MATRIX`` and ``python -m pytest MATRIX``, whole processes from start to exit,
  with fresh ones for the provider, every model run again, placement, comparison, records on the disk. Suite
  and goldens are in the cache already; nothing else of an earlier run is.
* *bare loop*: bare_loop.py. The loop alone, everything imported and every tensor parsed before its clock
  starts: the hardest measure, for the harness's time holds all of that. And its whole process, like for like.
* *ONNX's runner*: ``onnx.backend.test`` with ``onnxruntime.backend`` as its documentation shows it, the
  node tests for the CPU only, whole processes: under pytest, under pytest without the tracebacks of the
  539 tests that fail (newer than this onnxruntime loads, or with inputs that its backend cannot feed;
  showing that is more than half of pytest's time), and under unittest. The cases come out of code at each
  start, which takes it some seconds; the harness has them in its cache. It skips as many tests as it runs:
  those for CUDA.

The processor time of all processes is told, too: unlike wall time it hardly depends on other load.

Exit code 1: more than 1.8 x the loop alone for the command, more than 2.1 x for pytest, or pytest less than
12 x faster than ONNX's runner under pytest.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path
from statistics import median

from processes import PLUGIN, Timed, bare, heading, progress, row, targets, timed, verdict

MATRIX = """
schema = 1
[models]
suites = ["onnx-node"]
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
"""
RUNNER = """
import sys, unittest
import onnx.backend.test
import onnxruntime.backend
tests = onnx.backend.test.BackendTest(onnxruntime.backend, __name__).include("_cpu$")
OnnxBackendNodeModelTest = tests.test_cases["OnnxBackendNodeModelTest"]
if __name__ == "__main__":
    unittest.main()
"""
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
WAYS: dict[str, tuple[str, ...]] = {
    "run": (sys.executable, "-m", "harness", "run"),
    "pytest": (*PYTEST, *PLUGIN),
}
"""How the harness is started, before the matrix."""
MORE = {"run": ("--out", "run", "--no-report"), "pytest": ("--ep-out", "run")}
"""Arguments behind the matrix."""
FAILURES = 1  # exit code of pytest and of unittest
MOST_TIMES_BARE = {"run": 1.8, "pytest": 2.1}
LEAST_TIMES_FASTER = 12


def main() -> int:
    """Measure and print; 1 where a figure is not what it should be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    parser.add_argument("--only", choices=("bare", "onnx"), help="what the harness is measured against")
    parser.add_argument("--onnx-rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        matrix = Path(folder) / "operators.toml"
        matrix.write_text(MATRIX, encoding="utf-8")
        runner = Path(folder) / "runner.py"
        runner.write_text(RUNNER, encoding="utf-8")
        for way in WAYS:
            through(way, matrix)  # fills the caches
        bare(targets()["cpu"], hold=False)  # and those of Python
        ours: dict[str, list[Timed]] = {way: [] for way in WAYS}
        loops = []
        for _ in range(arguments.rounds):
            for way, times in ours.items():
                times.append(through(way, matrix))
            if arguments.only != "onnx":
                loops.append(bare(targets()["cpu"], hold=False))
                progress(f"bare {loops[-1]}")
        harness = [one.seconds for one in ours["pytest"]]
        heading("CPU provider", "median", "fastest", "slowest", "processor", "pytest against it")
        for way, times in ours.items():
            used_s = [one.processor_s for one in times]
            show(f"harness by {way}, whole process", [one.seconds for one in times], harness, used_s)
        if loops:
            show("bare loop, alone", [loop.loop_s for loop in loops], harness)
            used_s = [loop.processor_s for loop in loops]
            show("bare loop, whole process", [loop.process_s for loop in loops], harness, used_s)
        ways = {} if arguments.only == "bare" else onnx_runner(runner, arguments.onnx_rounds)
        for way, times in ways.items():
            show(f"ONNX's runner, {way}, whole process", times, harness)
    met = True
    for way, times in ours.items() if loops else ():
        ratio = median(one.seconds for one in times) / median(loop.loop_s for loop in loops)
        met &= verdict(f"{way}: times the bare loop alone", ratio, MOST_TIMES_BARE[way])
    if ways:
        ratio = median(ways["pytest"]) / median(harness)
        met &= verdict("times faster than ONNX's runner", ratio, LEAST_TIMES_FASTER, at_least=True)
    return 0 if met else 1


def through(way: str, matrix: Path) -> Timed:
    """Run the matrix by the command or under pytest."""
    process = timed([*WAYS[way], matrix, *MORE[way]])
    progress(f"harness by {way} {process.seconds:.2f} s: {process.printed.strip().splitlines()[-1]}")
    return process


def onnx_runner(runner: Path, rounds: int) -> dict[str, list[float]]:
    """Seconds of ONNX's runner, by the way in which it is started."""
    ways: dict[str, list[str | Path]] = {
        "pytest": [*PYTEST, "-rN", runner],
        "pytest --tb=no": [*PYTEST, "-rN", "--tb=no", runner],
        "unittest": [sys.executable, runner, "-q"],
    }
    took_s: dict[str, list[float]] = {way: [] for way in ways}
    timed(ways["unittest"], codes=(FAILURES,))  # fills Python's cache
    for _ in range(rounds):
        for way, command in ways.items():
            process = timed(command, codes=(FAILURES,))
            took_s[way].append(process.seconds)
            counts = re.findall(r"\d+ \w+|\w+=\d+", process.printed.strip().rpartition("\n")[2])
            progress(f"ONNX's runner, {way} {process.seconds:.2f} s: {', '.join(counts)}")
    return took_s


def show(what: str, times: list[float], harness: list[float], used_s: list[float] | None = None) -> None:
    """Print a row: seconds, processor seconds, and how many times as long the harness takes under pytest."""
    ratio = median(harness) / median(times)
    processor = "" if used_s is None else f"{median(used_s):.2f} s"
    seconds = (f"{figure:.2f} s" for figure in (median(times), min(times), max(times)))
    row(what, *seconds, processor, f"{ratio:.2f} x")


if __name__ == "__main__":
    sys.exit(main())
