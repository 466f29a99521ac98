"""The store of many runs: the first report, one run more, the history of a cell, an SQL query.

Writes 10 and then 1,000 runs of 10,000 short records each (10 million, 7.5 GB), the same bytes each time,
and removes them. Each step is a whole process. Its peak of resident memory is its own. Exit code 1 if a
limit is missed.

`python benchmarks/store.py [RUNS...]`; `--keep DIR` keeps the runs there, and uses those that it finds.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from processes import heading, progress, row, timed, verdict
from scale import MEASURED
from store_runs import make_runs

ADDED_LIMIT_S = 5.0
CELL_LIMIT_S = 1.0
PEAK_LIMIT_MB = 1000
CELL = "onnx-node/test_00000[npu-1]"
COUNTS = "SELECT target, verdict, count(*) AS cells, avg(headroom) FROM records GROUP BY ALL ORDER BY ALL"
TOTAL = "SELECT count(*) AS records FROM records"


class Cost(NamedTuple):
    """Of one process: wall and processor seconds, peak of its memory in MB, what it printed."""

    wall_s: float
    own_s: float
    peak_mb: float
    printed: str


def main() -> int:
    """Measure and print; 1 where a figure is not what it should be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=int, nargs="*", default=[10, 1000])
    parser.add_argument("--cells", type=int, default=10_000, help="of each run")
    parser.add_argument("--keep", type=Path, metavar="DIR")
    chosen = parser.parse_args()
    heading("runs", "step", "wall", "processor", "peak memory", "load")
    costs = {}
    for count in chosen.runs:
        with tempfile.TemporaryDirectory() as folder:
            runs = (chosen.keep or Path(folder, "runs")).absolute()
            there = len(list(runs.glob("*/run.json")))
            make_runs(runs, max(0, count - there), chosen.cells, there)
            costs[count] = measure(Path(folder), runs, count, chosen.cells)
    met = [judged(of_count, count * chosen.cells) for count, of_count in costs.items()]
    return 0 if all(met) else 1


def measure(folder: Path, runs: Path, count: int, cells: int) -> dict[str, Cost]:
    """Print a row for each step."""
    costs: dict[str, Cost] = {}

    def step(name: str, *command: str | Path) -> None:
        costs[name] = used = cost(folder, *command)
        load = f"{os.getloadavg()[0]:.1f}"
        row(f"{count:,}", name, f"{used.wall_s:.2f} s", f"{used.own_s:.2f} s", f"{used.peak_mb:.0f} MB", load)

    step("first report", "report", runs, "--out", folder / "report", "--over-time")
    step("report again", "report", runs, "--out", folder / "report", "--over-time")
    make_runs(runs, 1, cells, count)
    try:
        step("one run more", "query", runs, TOTAL, "--format", "csv")
        step("report with it", "report", runs, "--out", folder / "report", "--over-time")
        step("history of a cell", "history", "show", runs, "--cell", CELL, "--json")
        step("trends", "history", "show", runs)
        step("SQL: count by target and verdict", "query", runs, COUNTS)
        step(
            "SQL: all records to Parquet",
            "query",
            runs,
            "FROM records",
            "--format",
            "parquet",
            "--out",
            folder / "all",
        )
    finally:
        remove(runs / f"night-{count:04}")
    size_mb = sum(file.stat().st_size for file in folder.glob("cache/store/*/*")) / 1e6
    progress(f"store: {size_mb:.0f} MB; Parquet: {(folder / 'all').stat().st_size / 1e6:.0f} MB")
    # Lines about progress may stand before.
    found = costs["one run more"].printed.split()[-2:]
    printed = costs["history of a cell"].printed
    points = json.loads(printed[printed.index("{") :])["nightly.toml"]
    if found != ["records", str((count + 1) * cells)] or len(points) != count + 1:
        raise SystemExit(f"records: {found}; results of a cell: {len(points)}")
    return costs


def judged(costs: dict[str, Cost], records: int) -> bool:
    """Whether the figures of so many records are as they should be."""
    peak_mb = max(cost.peak_mb for cost in costs.values())
    limits = {
        "seconds with one run more": (costs["one run more"].wall_s, ADDED_LIMIT_S),
        "seconds for the report with one run more": (costs["report with it"].wall_s, ADDED_LIMIT_S),
        "seconds for the history of a cell": (costs["history of a cell"].wall_s, CELL_LIMIT_S),
        "MB of memory at most": (peak_mb, PEAK_LIMIT_MB),
    }
    met = [verdict(f"{records:,} records, {what}", *figure) for what, figure in limits.items()]
    return all(met)


def cost(folder: Path, *command: str | Path) -> Cost:
    """What a command costs."""
    used = folder / "used.json"
    process = timed(
        [sys.executable, "-c", MEASURED, used, "harness", *command],
        env={"EP_HARNESS_CACHE": str(folder / "cache")},
    )
    own_s, _, peak_mb, _ = json.loads(used.read_text(encoding="utf-8"))
    return Cost(process.seconds, own_s, peak_mb, process.printed)


def remove(run: Path) -> None:
    for file in run.iterdir():
        file.unlink()
    run.rmdir()


if __name__ == "__main__":
    sys.exit(main())
