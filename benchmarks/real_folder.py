"""A folder of models of 1 to 100 MB, four providers, three precisions: beside a script of bare loops.

The folder is made first (real_models.py). ``ep-harness run`` then runs it twice: with an empty cache, and
again. Counted in the harness's own process: models that it opens for reading, and the questions that it
asks beside the cells: goldens, float64, noise, conversions. The second run may open no model of the folder
and ask nothing again. Peak memory is read from the system for each kind of process. From each peak that of
a run with one tiny model is taken off: imports, libraries and devices.

The bare loops (bare_loop.py) get what the first run made: the converted models and the goldens, as files.
Each loop is one process; all four are started at once. A loop skips what its provider crashes or hangs on.

Linux only. Exit code 1: the second run reads or asks again, or the harness's process or an agent needs more
than twice the largest model, and an agent also more than the bare loop of its provider.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import onnx
from memory_watch import watched
from processes import FOUR, bare, heading, progress, row, targets, timed, verdict
from real_models import PACKAGES, models, shape_of, write

PRECISIONS = ("fp32", "fp16", "int8-dynamic")
SIMULATED = ("qnn-htp", "webgpu-swiftshader")
KEPT = ("runtimes", "bytecode")
"""Parts of the cache that are no models."""
MEMORY_LIMIT = 2.0
"""Times the largest model."""
CHECKS = ("repeated", "fused")
"""Kinds of questions that a failing cell asks anew in each run: whether the CPU EP repeats its golden."""
HELD = "test_relu"
"""The tiny model, by the name that bare_loop.py holds a session of."""
RELU = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"""
# Runs `ep-harness` and leaves in a file what its process opened and asked.
COUNTED = """
import atexit, json, re, runpy, sys
from collections import Counter
from pathlib import Path
place, folder, sys.argv = sys.argv[1], sys.argv[2], sys.argv[3:]
opened, asked = Counter(), Counter()
def hook(event, arguments):
    path = arguments[0] if event == "open" else ""
    if isinstance(path, str) and path.endswith(".onnx") and (arguments[1] or "r")[0] == "r":
        opened["folder" if path.startswith(folder) else path.rsplit("ort-ep-harness/")[-1].split("/")[0]] += 1
sys.addaudithook(hook)
from harness.engine.cell_pipeline import CellPipeline
from harness.engine.tasks.task import HOME
put = CellPipeline._put_question
def counted(self, question):
    elsewhere = question.runtime != HOME and question.kind == "answer"
    asked["answer of another runtime" if elsewhere else f"{question.kind} {question.noise_at}".strip()] += 1
    put(self, question)
CellPipeline._put_question = counted
def leave():
    Path(place).write_text(json.dumps({"opened": opened, "asked": asked}))
atexit.register(leave)
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


class Ran(NamedTuple):
    """One run: seconds, processor seconds, what the harness opened and asked, peak memory by process."""

    wall_s: float
    processor_s: float
    opened: Counter[str]
    asked: Counter[str]
    peak_mb: dict[str, float]


def main() -> int:
    """Measure and print; 1 where a figure is not what it should be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=300)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep folder, cache and runs there")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        return 0 if measure((chosen.keep or Path(scratch)).absolute(), chosen.models) else 1


def measure(home: Path, count: int) -> bool:
    """Print a row for each run; return whether the figures are as they should be."""
    largest_mb = make(home, count)
    # Of this process, too: it starts the bare loops in the environments of the cache.
    os.environ["EP_HARNESS_CACHE"] = str(home / "ort-ep-harness")
    for part in (home / "ort-ep-harness").glob("*"):
        if part.name not in KEPT:  # the first run has all to make
            shutil.rmtree(part) if part.is_dir() else part.unlink()
    tiny, matrix = (matrix_of(home, name) for name in ("tiny", "models"))
    base = run(home, tiny, "base")
    cold = run(home, matrix, "cold")
    warm = run(home, matrix, "warm")
    loops = four_loops(home)
    heading("", "wall", "processor", "models opened", "of the cache", "questions asked")
    for name, ran in {"first run": cold, "second run": warm}.items():
        others = ran.opened.total() - ran.opened["folder"]
        times = f"{ran.wall_s:.0f} s", f"{ran.processor_s:.0f} s"
        row(name, *times, ran.opened["folder"], others, _listed(ran.asked))
    row("four bare loops at once", f"{loops.wall_s:.0f} s", f"{loops.processor_s:.0f} s", "", "", "")
    print()
    heading("peak memory", "a tiny model", "first run", "second run", "bare loop")
    for kind in sorted({*cold.peak_mb, *warm.peak_mb}):
        peaks = (one.peak_mb.get(kind) for one in (base, cold, warm, loops))
        row(kind, *("" if peak is None else f"{peak:.0f} MB" for peak in peaks))
    print()
    met = verdict("models of the folder opened by the second run", warm.opened["folder"], 0)
    again = sum(count for kind, count in warm.asked.items() if kind.split()[0] not in CHECKS)
    met &= verdict("goldens, float64, noise and conversions made by the second run", again, 0)
    for name, ran in (("first", cold), ("second", warm)):
        beyond = (ran.peak_mb["harness"] - base.peak_mb["harness"]) / largest_mb
        met &= verdict(f"memory of the harness, times the largest model, {name} run", beyond, MEMORY_LIMIT)
        for kind in sorted({*ran.peak_mb} & {*loops.peak_mb}):
            share = ran.peak_mb[kind] / max(
                loops.peak_mb[kind], base.peak_mb.get(kind, 0.0) + MEMORY_LIMIT * largest_mb
            )
            met &= verdict(f"memory of {kind}, times what it may take, {name} run", share, 1.0)
    print(f"second run beside the bare loops: {warm.wall_s / loops.wall_s:.2f} x")
    return met


def make(home: Path, count: int) -> float:
    """Write the models and a tiny one, unless they are there; return the size of the largest in MB."""
    wheels = home / "wheels"
    if not wheels.is_dir():
        command = ["uv", "pip", "install", "-q", "--no-deps", "--target", wheels, *PACKAGES]
        subprocess.run(command, check=True)
    shapes, sizes = set[str](), list[float]()
    for made in models(count, wheels):
        folder = home / "models" / made.name
        if not folder.is_dir():
            write(made, folder)
        sizes.append((folder / "model.onnx").stat().st_size / 1e6)
        shapes.add(shape_of(onnx.load(folder / "model.onnx")))
        progress(f"{made.name}: {sizes[-1]:.1f} MB")
    tiny = home / "tiny" / HELD
    if not tiny.is_dir():
        tiny.mkdir(parents=True)
        onnx.save(onnx.parser.parse_model(RELU), tiny / "model.onnx")
    print(
        f"{count} models, {len(shapes)} graphs that differ, {sum(sizes) / 1e3:.1f} GB, "
        f"{min(sizes):.1f} to {max(sizes):.1f} MB"
    )
    return max(sizes)


def matrix_of(home: Path, folder: str) -> Path:
    """Write the matrix of a folder: the four targets, three precisions."""
    text = FOUR.read_text(encoding="utf-8").replace('suites = ["onnx-node"]', f'folders = ["{folder}"]')
    text += f"\n[axes]\nprecision = {json.dumps(PRECISIONS)}\n"
    for name in SIMULATED:  # as in matrices/local.toml
        more = "work_limit = 1e8\ntimeouts_s = { run = 300, create = 300 }"
        text = text.replace(f'"{name}"\n', f'"{name}"\n{more}\n')
    path = home / f"{folder}.toml"
    path.write_text(text, encoding="utf-8")
    tomllib.loads(text)
    return path


def run(home: Path, matrix: Path, name: str) -> Ran:
    """Run a matrix as a whole process."""
    counts, out = home / f"{name}.json", home / "runs" / f"{name}-{time.time_ns()}"
    command: Sequence[str | Path] = [sys.executable, "-c", COUNTED, counts, home / "models"]
    command = [*command, "harness", "run", matrix, "--no-report", "--out", out]
    progress(f"{name} ...")
    with watched(os.getpid()) as peaks:
        process = timed(command, codes=(0, 1, 3))
    (home / "runs" / name).unlink(missing_ok=True)
    (home / "runs" / name).symlink_to(out.name)
    found = json.loads(counts.read_text(encoding="utf-8"))
    counted = (Counter(found[key]) for key in ("opened", "asked"))
    ran = Ran(process.seconds, process.processor_s, *counted, dict(peaks))
    progress(f"{process.printed[-600:]}\n{ran}")
    return ran


def four_loops(home: Path) -> Ran:
    """Run the bare loops at once over what the first run made."""
    timed([sys.executable, Path(__file__).with_name("real_loops.py"), home])
    skipped: dict[str, list[str]] = json.loads((home / "skipped.json").read_text(encoding="utf-8"))
    usable: dict[str, Any] = json.loads((home / "runs" / "warm" / "run.json").read_text(encoding="utf-8"))
    tables = [table for name, table in targets().items() if "unavailable" not in usable["targets"][name]]
    used: list[float] = []

    def loop(table: dict[str, Any]) -> None:
        found = bare(table, hold=True, folder=home / "loops", skip=skipped.get(table["name"], ()))
        progress(f"{table['name']}: bare {found}")
        used.append(found.processor_s)

    started = time.perf_counter()
    with watched(os.getpid()) as peaks:
        threads = [threading.Thread(target=loop, args=(table,)) for table in tables]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall_s = time.perf_counter() - started
    return Ran(wall_s, sum(used), Counter(), Counter(), dict(peaks))


def _listed(asked: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in asked.most_common()) or "none"


if __name__ == "__main__":
    sys.exit(main())
