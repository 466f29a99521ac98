"""A triage that is interrupted or killed, and continued: no trial is repeated, and the same faults come out."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec
import onnx

from benchmarks.detection.subjects import subjects
from benchmarks.triage.ep import NAME, Planted, StandIn
from harness.triage.triage import read_faults

MODEL, FAULT, GUILTY = "gpt-4", "stale-second-input", "layer2/mlp/Add"

MATRIX = """
schema = 1

[models]
folders = ["models"]

[[target]]
name = "{name}"
provider = "CPUExecutionProvider"
env = {{ PYTHONPATH = "{path}", PLANTED_FAULT_FILE = "{file}" }}
"""

POLL_S = 0.01

COMMAND = """
import signal, sys
from harness.cli import main

# A benchmark in the background of a shell passes on that it ignores this signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main())
"""


class Triaged(msgspec.Struct, frozen=True, kw_only=True):
    """What a triage left on disk.

    Attributes:
        faults: Ids.
        trials: Keys of its trials, each as often as it was written.
    """

    faults: tuple[str, ...]
    trials: Counter[str]

    @property
    def repeated(self) -> int:
        """Trials that ran more than once."""
        return sum(self.trials.values()) - len(self.trials)


class Run:
    """A run with one failing cell, to be triaged many times.

    Args:
        folder: For the run and its triages.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "models").mkdir()
        (model,) = subjects(folder / "subjects", [MODEL])
        onnx.save(model.model(), folder / "models" / f"{MODEL}.onnx")
        stand_in = StandIn(folder)
        stand_in.plant(Planted(fault=FAULT, node=GUILTY, seed=0))
        env = stand_in.env
        text = MATRIX.format(name=NAME, path=env["PYTHONPATH"], file=env["PLANTED_FAULT_FILE"])
        (folder / "matrix.toml").write_text(text, encoding="utf-8")
        self._command("run", "matrix.toml", "--out", "run", "--no-report").wait()

    def triage(self, name: str, *more: str) -> subprocess.Popen[bytes]:
        """Start a triage into a folder of this name."""
        return self._command("triage", "run", "--out", name, *more)

    def left(self, name: str) -> Triaged:
        """Return what a triage left on disk."""
        keys = Counter(json.loads(line)["key"] for line in self._lines(name))
        faults = tuple(fault.id for fault in read_faults(self.folder / name / "faults.jsonl"))
        return Triaged(faults=faults, trials=keys)

    def stopped(self, name: str, after: int, by: signal.Signals) -> Triaged:
        """Stop a triage after so many trials, continue it, and return what is left on disk at last."""
        process = self.triage(name)
        while process.poll() is None and len(self._lines(name)) < after:
            time.sleep(POLL_S)
        process.send_signal(by)
        process.wait()
        self.triage(name, "--resume").wait()
        return self.left(name)

    def _lines(self, name: str) -> list[bytes]:
        lines = []
        for path in self.folder.glob(f"{name}/work/*/trials.jsonl"):
            lines += [line for line in path.read_bytes().splitlines() if line.endswith(b"}")]
        return lines

    def _command(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", COMMAND, *arguments]
        with (self.folder / "output.txt").open("ab") as output:
            return subprocess.Popen(command, cwd=self.folder, env=os.environ, stdout=output, stderr=output)


def draws(trials: int, count: int) -> list[int]:
    """Return numbers of trials after which to stop, drawn once and for all."""
    return sorted(random.Random(22).sample(range(1, trials), min(count, trials - 1)))  # noqa: S311 - no secret
