"""2,000, 20,000 and 200,000 cells against an agent that answers at once: what the harness itself costs.

The agent is a real one, in a process of its own, on an onnxruntime of a few lines of Python that computes
at once (tests/engine/fake_onnxruntime). A tenth as many tiny models run at five optimization levels and in
two execution modes, each model with goldens of its own; these are in the cache before anything is timed.
Then as many cells are those of 10 and of 100 targets, with fewer models.

Measured, each in a process of its own: ``pytest --collect-only``, ``pytest``, ``ep-harness run`` without a
report, ``ep-harness report``; and pytest with as many test functions that do nothing, for machines differ,
and what pytest itself needs for a test is nothing that a harness below it could save. Wall time is from the
process's start to its exit, and the limits are about it. Processor time, peak of resident memory and the
largest number of open files are those of the harness's own process; the agent's processor time stands apart.
It works at the same time, and no cell can take less wall time than it takes the agent.

Linux only. Exit code 1: a figure is not what it should be.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from fake import FAKE, MODEL
from processes import PLUGIN, UNEXPECTED, heading, progress, row, timed, verdict

MATRIX = """
schema = 1
[models]
folders = ["models"]
[axes]
graph_optimization = ["disabled", "basic", "extended", "layout", "all"]
execution_mode = ["sequential", "parallel"]
"""
TARGET = """
[[target]]
name = "fake-{number}"
provider = "CUDAExecutionProvider"
env = {{ PYTHONPATH = {fake!r}, PYTHONDONTWRITEBYTECODE = "1" }}
"""
EMPTY = """
import pytest
@pytest.mark.parametrize("number", range({cells}))
def test_nothing(number):
    pass
"""
CELLS_PER_MODEL = 10
# Runs a module as `python -m` does, and leaves in a file what its process used.
MEASURED = """
import atexit, json, os, re, resource, runpy, sys, threading, time
from pathlib import Path
place, sys.argv = Path(sys.argv[1]), sys.argv[2:]
files = [0]
def count():
    while True:
        files[0] = max(files[0], len(os.listdir("/proc/self/fd")) - 1)
        time.sleep(0.1)
threading.Thread(target=count, daemon=True).start()
def leave():
    own, agents = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    peak_kib = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]
    seconds = [used.ru_utime + used.ru_stime for used in (own, agents)]
    place.write_text(json.dumps([*seconds, int(peak_kib) * 1024 / 1e6, files[0]]))
atexit.register(leave)
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
SIZES = (2000, 20_000, 200_000)
LARGEST = SIZES[-1]
TARGETS = (10, 100)
TARGETS_CELLS = 20_000
COLLECT_LIMIT_S = 12.0
CELL_LIMIT_MS = 0.5
REPORT_LIMIT_S = 40.0
PEAK_LIMIT_MB = 1200
FILES_LIMIT = 100
GROWTH_LIMIT = 12
"""Times the cost with a tenth of the cells."""
EMPTY_TESTS = "empty tests"


class Cost(NamedTuple):
    """Of one process: wall seconds, its and its agents' processor seconds, peak memory in MB, open files."""

    wall_s: float
    own_s: float
    agents_s: float
    peak_mb: float
    files: int


def main() -> int:
    """Measure and print; 1 where a figure is not what it should be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cells", type=int, nargs="*", default=SIZES)
    parser.add_argument("--targets", type=int, nargs="*", default=TARGETS)
    chosen = parser.parse_args()
    costs: dict[int, dict[str, Cost]] = {}
    columns = ("wall", "per cell", "processor per cell", "agent's", "peak memory", "open files")
    heading("cells", "targets", "step", *columns)
    for cells in chosen.cells:
        with tempfile.TemporaryDirectory() as folder:
            costs[cells] = measure(Path(folder), cells)
    for targets in chosen.targets:
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder), TARGETS_CELLS, targets)
    return 0 if judged(costs) else 1


def judged(costs: dict[int, dict[str, Cost]]) -> bool:
    """Whether the figures are as they should be; those about most cells, where these were measured."""
    met = True
    for cells, steps in costs.items():
        files = max(cost.files for step, cost in steps.items() if step != EMPTY_TESTS)
        met &= verdict(f"open files of the harness, {cells:,} cells", files, FILES_LIMIT)
    if LARGEST in costs:
        steps = costs[LARGEST]
        met &= verdict(f"seconds to collect {LARGEST:,} cells", steps["collect"].wall_s, COLLECT_LIMIT_S)
        beyond_ms = 1000 * (steps["pytest"].wall_s - steps[EMPTY_TESTS].wall_s) / LARGEST
        met &= verdict("ms for each cell through pytest, beyond an empty test", beyond_ms, CELL_LIMIT_MS)
        met &= verdict(f"seconds to render {LARGEST:,} cells", steps["report"].wall_s, REPORT_LIMIT_S)
        peak_mb = max(cost.peak_mb for step, cost in steps.items() if step != EMPTY_TESTS)
        met &= verdict(f"MB of memory with {LARGEST:,} cells", peak_mb, PEAK_LIMIT_MB)
    for cells, steps in costs.items():
        for step, cost in steps.items() if cells * 10 in costs else ():
            growth = costs[cells * 10][step].own_s / cost.own_s
            what = f"{step}: processor time of {cells * 10:,} cells, times that of {cells:,}"
            met &= verdict(what, growth, GROWTH_LIMIT)
    return met


def measure(folder: Path, cells: int, targets: int = 1) -> dict[str, Cost]:
    """Print a row for each step; of several targets only the run and its report."""
    matrix = make(folder, cells, targets)
    (folder / "test_empty.py").write_text(EMPTY.format(cells=cells), encoding="utf-8")
    progress(f"{cells} cells, {targets} targets: goldens")
    run: tuple[str | Path, ...] = ("harness", "run", matrix, "--no-report", "--out")
    cost(folder, *run, folder / "warm")
    pytest: tuple[str | Path, ...] = ("pytest", *PLUGIN, matrix, "-q", "-p", "no:cacheprovider")
    steps: dict[str, tuple[str | Path, ...]] = {
        "run": (*run, folder / "run"),
        "report": ("harness", "report", folder / "run", "--out", folder / "report"),
    }
    if targets == 1:
        steps = {
            "collect": (*pytest, "--collect-only"),
            EMPTY_TESTS: ("pytest", folder / "test_empty.py", "-q", "-p", "no:cacheprovider"),
            "pytest": (*pytest, "--ep-out", folder / "pytest"),
            **steps,
        }
    costs = {}
    for step, command in steps.items():
        costs[step] = used = cost(folder, *command)
        per_cell = (
            f"{1000 * seconds / cells:.3f} ms" for seconds in (used.wall_s, used.own_s, used.agents_s)
        )
        rest = f"{used.peak_mb:.0f} MB", used.files
        row(f"{cells:,}", targets, step, f"{used.wall_s:.2f} s", *per_cell, *rest)
    return costs


def cost(folder: Path, *command: str | Path) -> Cost:
    """What running a module with arguments costs."""
    used = folder / "used.json"
    process = timed(
        [sys.executable, "-c", MEASURED, used, *command],
        env={"EP_HARNESS_CACHE": str(folder / "cache")},
        codes=(0, UNEXPECTED),
    )
    return Cost(process.seconds, *json.loads(used.read_text(encoding="utf-8")))


def make(folder: Path, cells: int, targets: int) -> Path:
    """Write the models and the matrix."""
    import onnx.parser

    model = onnx.parser.parse_model(MODEL)
    (folder / "models").mkdir()
    for number in range(cells // CELLS_PER_MODEL // targets):
        model.graph.doc_string = str(number)  # its digest is its own, and with it its golden
        (folder / "models" / f"{number:05}_ok.onnx").write_bytes(model.SerializeToString())
    matrix = folder / "scale.toml"
    tables = (TARGET.format(number=number, fake=str(FAKE)) for number in range(targets))
    matrix.write_text(MATRIX + "".join(tables), encoding="utf-8")
    return matrix


if __name__ == "__main__":
    sys.exit(main())
