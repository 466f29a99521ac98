"""The same cells on an idle machine and on a busy one: does load change checks or verdicts?

Some models of the default matrix, on all providers that run here, are run twice by ``ep-harness run``, with
an empty cache: alone, and beside processes that do nothing but count. Verdicts, reasons and the checks that
were made have to be equal, cell by cell.

Exit code 1: some cell differs.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness_command import start
from processes import verdict

_MATRIX = Path(__file__).resolve().parent.parent / "matrices" / "local.toml"
_COUNT = "while True: pass"
_COMPARED = ("verdict", "reason", "unchecked", "answered", "other_check", "weak_golden")
"""Fields of a record that load must not change; of its repeats how many there were."""

_MODELS = ("onnx-node/test_*[0-9]d", "onnx-light/light_s*")
"""72 operator tests and two networks."""

_NUMBER = re.compile(r"\d{8,}")
"""A number that a provider draws for the name of a node, and tells in a message."""

Record = dict[str, Any]


def main() -> int:
    """Run, compare and print; 1 where something differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--matrix", type=Path, default=_MATRIX)
    parser.add_argument("--model", action="append", help="globs of models, each in a run of its own")
    parser.add_argument("--busy", type=int, default=30, help="processes that count")
    options = parser.parse_args()
    models = options.model or _MODELS
    idle, idle_s, idle_load = _run(options.matrix, models)
    with _counting(options.busy):
        busy, busy_s, busy_load = _run(options.matrix, models)
    cells = Counter(str(record["target"]) for record in idle.values())
    print(f"{len(idle)} cells: {', '.join(f'{target} {count}' for target, count in cells.items())}")
    print(f"load {idle_load:.0f}: {idle_s:.0f} s; load {busy_load:.0f}: {busy_s:.0f} s")
    differing = 0
    for field in (*_COMPARED, "repeats"):
        differ = [cell for cell in idle if _of(idle[cell], field) != _of(busy.get(cell, {}), field)]
        print(f"{field:12} {len(differ)} differ")
        for cell in differ:
            print(f"  {cell}: {_of(idle[cell], field)!s:.200} | {_of(busy.get(cell, {}), field)!s:.200}")
        differing += len(differ)
    met = verdict(f"of {len(idle)} cells, fields that differ at a load of {busy_load:.0f}", differing, 0)
    return 0 if met and idle.keys() == busy.keys() else 1


def _of(record: Record, field: str) -> object:
    value = record.get(field)
    if isinstance(value, str):
        return _NUMBER.sub("N", value)
    if field == "repeats" and isinstance(value, dict):
        return value.get("runs"), value.get("sessions")
    return value


def _run(matrix: Path, models: Sequence[str]) -> tuple[dict[str, Record], float, float]:
    """Run some models with an empty cache. Return records by cell, the seconds, and the load in between."""
    records: dict[str, Record] = {}
    load, begun = 0.0, time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["EP_HARNESS_CACHE"] = str(folder / "cache")
        for index, glob in enumerate(models):
            out = folder / f"run{index}"
            run = start(folder, "run", str(matrix), "--model", glob, "--out", str(out))
            while run.poll() is None:
                time.sleep(1)
                load = max(load, os.getloadavg()[0])
            lines = (out / "records.jsonl").read_text(encoding="utf-8").splitlines()
            records |= {str(record["cell"]): record for record in map(json.loads, lines)}
    return records, time.monotonic() - begun, load


@contextmanager
def _counting(count: int) -> Iterator[None]:
    processes = [subprocess.Popen([sys.executable, "-c", _COUNT]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
