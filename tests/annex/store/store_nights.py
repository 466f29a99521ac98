"""Runs of one night for the store, and changes of their files."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from tests import kit

OUTPUT = OutputMetrics(name="y", dtype="float32", shape=(4,), delivered_bits=20.5, headroom=0.25, elements=4)


def record(model: str = "abs", verdict: Verdict = Verdict.PASS, **fields: Any) -> Record:
    """Return a record with one output where it passed, without placement and times."""
    usual: dict[str, Any] = {
        "placement": None,
        "timings_ms": {},
        "outputs": (OUTPUT,) if verdict.family is Family.PASSED else (),
    }
    return kit.record(model, verdict, **(usual | fields))


def write_folder(
    folder: Path,
    records: Sequence[Record],
    *,
    complete: bool = True,
    planned: Sequence[str] = (),
    runtime: str = "1.30",
) -> Path:
    """Write a run of one target, with its plan; ``planned`` are cells without a record."""
    targets = {"npu": {"onnxruntime": runtime}}
    return kit.write_run(folder, records, complete=complete, missing=planned, targets=targets)


def keep_times(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change a file, and give it back its time of modification."""
    before = path.stat()
    path.write_bytes(change(path.read_bytes()))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
