"""A run of a suite on the fake EP, and the faults that its records show."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from harness.core.records.record import Record
from harness.core.records.verdict import Family
from harness.corpus.suites.suites import open_suite
from harness.golden.provenance import SESSION

ROOT = Path(__file__).resolve().parents[2]
PLANTED = Path(__file__).parent / "planted_onnxruntime"

MATRIX = """
schema = 1

[models]
suites = ["{suite}"]

[[target]]
name = "planted"
provider = "CPUExecutionProvider"
env = {{ PYTHONPATH = "{path}", PLANTED_FORMS_FILE = "{file}", PLANTED_FORMS_SESSION = '{session}' }}
"""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A failing cell of a model with a fault.

    Attributes:
        fault: Its name.
        model: The model.
        seconds: From the start of the run to the cell's.
    """

    fault: str
    model: str
    seconds: float


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a run shows.

    Attributes:
        suite: The suite.
        models: Cells with a record.
        befallen: Fault -> models that it befell.
        hits: Failing cells of these, in the order of time.
        healthy_failures: Models that fail although no fault befell them.
        seconds: From the first cell to the last.
    """

    suite: str
    models: int
    befallen: dict[str, int]
    hits: tuple[Hit, ...]
    healthy_failures: tuple[str, ...]
    seconds: float

    def found(self, within_s: float = float("inf")) -> set[str]:
        """Return the faults that were found within a time."""
        return {hit.fault for hit in self.hits if hit.seconds <= within_s}


def run(suite: str, folder: Path, limit_s: float) -> Result:
    """Run a suite on the fake EP for a time at most."""
    log = folder / "befallen.jsonl"
    text = MATRIX.format(suite=suite, path=f"{PLANTED}:{ROOT}", file=log, session=json.dumps(SESSION))
    (folder / "matrix.toml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "harness", "run", "matrix.toml", "--out", "run", "--no-report"]
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=os.environ, stdout=output, stderr=output)
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
    return _result(suite, folder / "run" / "records.jsonl", log)


def _result(suite: str, records: Path, log: Path) -> Result:
    opened = open_suite(suite)
    seen = dict(_befallen(log))
    hits, others, times = [], [], []
    befallen: dict[str, int] = {}
    found = [msgspec.json.decode(line, type=Record) for line in records.read_bytes().splitlines()]
    start = min(datetime.fromisoformat(record.started) for record in found if record.started)
    for record in found:
        digest = hashlib.sha256(opened.model_path(record.model).read_bytes()).hexdigest()
        fault = seen.get(digest)
        seconds = (datetime.fromisoformat(record.started) - start).total_seconds() if record.started else 0.0
        times.append(seconds)
        if fault is not None:
            befallen[fault] = befallen.get(fault, 0) + 1
        if record.verdict.family is Family.FAILED:
            if fault is None:
                others.append(record.model)
            else:
                hits.append(Hit(fault=fault, model=record.model, seconds=seconds))
    return Result(
        suite=suite,
        models=len(found),
        befallen=befallen,
        hits=tuple(sorted(hits, key=lambda hit: hit.seconds)),
        healthy_failures=tuple(others),
        seconds=max(times),
    )


def _befallen(log: Path) -> Iterator[tuple[str, str]]:
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
        told = json.loads(line)
        yield told["model"], told["fault"]
