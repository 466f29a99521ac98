"""Places: eight against one, the cost of a cell at eight of them, and runs with a killer of agents.

Places are commands on this machine, each a launcher and an agent beside it, as on another machine. The agents
run on an onnxruntime of a few lines (tests/engine/fake_onnxruntime).

``sleep``: the provider waits half a second in each cell, which takes no processor: eight places against
one. ``overhead``: cells of no work, at 1, 8 and 64 places, on the same processors: whole processes of
``ep-harness run``. ``killer``: every two seconds one launcher or agent, chosen by a seed, gets SIGKILL.
Each cell must have one record, that of a healthy provider, and only cells in flight may run again.

Linux only. Exit code 1: a figure is not what it should be.
"""

import argparse
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import onnx
import onnx.parser
from fake import FAKE, MODEL
from processes import heading, row, verdict
from scale import cost

from harness.core.records.verdict import Verdict
from harness.engine.engine import Engine
from harness.engine.prepare import prepare
from harness.engine.tasks.events import Finished, PlaceChanged

MATRIX = """
schema = 1
[models]
folders = ["models"]
[axes]
graph_optimization = {levels}
execution_mode = {modes}
[[target]]
name = "fake"
provider = "CUDAExecutionProvider"
env = {{ PYTHONPATH = {fake!r}, PYTHONDONTWRITEBYTECODE = "1", FAKE_NAP = "{nap_s}" }}
places = {{ count = {places}, command = {python!r} }}
"""
LEVELS, MODES = ["disabled", "basic", "extended", "layout", "all"], ["sequential", "parallel"]
NAP_S = 0.5
PLACES = 8
MANY_PLACES = (1, PLACES, 64)
SPEED_LIMIT = 7.5
KILL_EVERY_S = 2.0
LOST_AT_ONCE = 2
"""Attempts that one kill may repeat: the cell in flight, and one whose place is lost just then."""


class Result(NamedTuple):
    """Of one run: seconds from its first record to its last, and what it has.

    Attributes:
        wall_s: Seconds from the first record to the last.
        records: Cell -> how often it was recorded.
        verdicts: Verdict -> cells.
        repeated: Cells with more than one attempt.
        set_aside: Times that a place was set aside.
    """

    wall_s: float
    records: Counter[str]
    verdicts: Counter[Verdict]
    repeated: int
    set_aside: int


def main() -> int:
    """Measure what is asked for; 1 where a figure is not what it should be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["sleep", "overhead", "killer"])
    parser.add_argument("--cells", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.what == "sleep":
            return not sleep(Path(folder), given.cells or 160, given.rounds or 3)
        if given.what == "overhead":
            return not overhead(Path(folder), given.cells or 20_000)
        return not killer(Path(folder), given.cells or 320, given.rounds or 20)


def sleep(folder: Path, cells: int, rounds: int) -> bool:
    """Compare the cells each second of eight places with those of one, in turns."""
    one = make(folder / "one", cells // PLACES, 1, fault="nap_in_run")
    eight = make(folder / "eight", cells, PLACES, fault="nap_in_run")
    run(eight)  # warms the cache of goldens
    ratios = []
    for number in range(rounds):
        alone, together = cells // PLACES / run(one).wall_s, cells / run(eight).wall_s
        ratios.append(together / alone)
        print(
            f"round {number + 1}: {alone:.2f} cells each second at one place, {together:.2f} at eight, "
            f"{ratios[-1]:.2f} x",
            flush=True,
        )
    median = statistics.median(ratios)
    return verdict("times as fast as one place", median, SPEED_LIMIT, at_least=True)


def overhead(folder: Path, cells: int) -> bool:
    """Print what a cell of no work costs at one place, at eight and at 64; the processors are the same."""
    heading("places", "cells", "wall", "per cell", "processor per cell", "peak memory", "open files")
    for places in MANY_PLACES:
        matrix = make(folder / f"{places}", cells, places, fault="fine")
        run: tuple[str | Path, ...] = ("harness", "run", matrix, "--no-report", "--out")
        cost(folder, *run, folder / f"warm-{places}")
        used = cost(folder, *run, folder / f"run-{places}")
        per_cell = (f"{1000 * seconds / cells:.3f} ms" for seconds in (used.wall_s, used.own_s))
        row(places, f"{cells:,}", f"{used.wall_s:.1f} s", *per_cell, f"{used.peak_mb:.0f} MB", used.files)
    return True


def killer(folder: Path, cells: int, rounds: int) -> bool:
    """Run while places are killed; whether every record is as in a quiet run."""
    matrix = make(folder, cells, PLACES, fault="nap_in_run")
    good = True
    for seed in range(1, rounds + 1):
        with killing(random.Random(seed)) as kills:  # noqa: S311 - a seed makes it repeatable
            result = run(matrix)
        once = set(result.records.values()) == {1} and len(result.records) == cells
        blamed = result.verdicts.total() - result.verdicts[Verdict.PASS]
        ok = once and not blamed and result.repeated <= LOST_AT_ONCE * len(kills)
        print(
            f"seed {seed}: {len(kills)} kills, {result.set_aside} times set aside, {result.repeated} cells "
            f"repeated, each recorded once: {once}, verdicts but pass: {blamed}, {result.wall_s:.0f} s",
            flush=True,
        )
        good &= ok
    return good


@contextmanager
def killing(chosen: random.Random) -> Iterator[list[int]]:
    """Kill a launcher or an agent every two seconds meanwhile; yields what was killed."""
    over, kills = threading.Event(), list[int]()

    def kill() -> None:
        while not over.wait(KILL_EVERY_S):
            launchers = children({os.getpid()})
            victims = sorted(launchers | children(launchers))
            if victims:
                kills.append(chosen.choice(victims))
                os.kill(kills[-1], signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield kills
    finally:
        over.set()
        thread.join()


def children(parents: set[int]) -> set[int]:
    """Return the living children of processes."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, *_ = path.read_text(encoding="utf-8").rpartition(")")[2].split()
            isolated = b"closefd" in (path.parent / "cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        if int(parent) in parents and state != "Z" and isolated:
            found.add(int(path.parent.name))
    return found


def make(folder: Path, cells: int, places: int, fault: str) -> Path:
    """Write models and a matrix for so many cells; return the matrix."""
    (folder / "models").mkdir(parents=True)
    points = len(LEVELS) * len(MODES)
    varied = cells % points == 0
    for number in range(cells // points if varied else cells):
        model = onnx.parser.parse_model(MODEL)
        onnx.save(model, folder / "models" / f"{number:05}_{fault}.onnx")
    text = MATRIX.format(
        levels=LEVELS if varied else LEVELS[-1:],
        modes=MODES if varied else MODES[:1],
        fake=str(FAKE),
        nap_s=NAP_S,
        places=places,
        python=sys.executable,
    )
    (folder / "matrix.toml").write_text(text, encoding="utf-8")
    return folder / "matrix.toml"


def run(matrix: Path) -> Result:
    """Run a matrix to its end."""
    plan, suites = prepare(matrix)
    engine = Engine(plan, suites)
    records, verdicts = Counter[str](), Counter[Verdict]()
    repeated = set_aside = 0
    first = last = 0.0
    try:
        engine.submit(plan.cells)
        engine.drain()
        for event in engine.events():
            if isinstance(event, Finished):
                last = time.monotonic()
                first = first or last
                records[event.record.cell] += 1
                verdicts[event.record.verdict] += 1
                repeated += event.record.attempt > 1
            elif isinstance(event, PlaceChanged):
                set_aside += event.state == "set aside"
    finally:
        engine.close()
    return Result(last - first, records, verdicts, repeated, set_aside)


if __name__ == "__main__":
    sys.exit(main())
