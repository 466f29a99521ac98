"""A triage that is interrupted or killed, and continued: no trial is repeated, the same faults come out.

But for one that runs again in any triage: the bundle needs outputs, which are not kept.
"""

import json
import random
import signal
import time
from collections import Counter
from pathlib import Path

import msgspec

from benchmarks.detection.subjects import subjects
from benchmarks.triage.ep import Planted
from benchmarks.triage.run import Run
from harness.annex.triage.run_triage import WORK, read_faults
from harness.core.records.fault import FAULTS_FILE

MODEL, FAULT, GUILTY = "gpt-4", "stale-second-input", "layer2/mlp/Add"

POLL_S = 0.01


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What a triage left on disk.

    Attributes:
        faults: Ids.
        trials: Keys of its trials, each as often as it was written.
    """

    faults: tuple[str, ...]
    trials: Counter[str]

    @property
    def repeated(self) -> int:
        """Trials that were written more than once."""
        return sum(self.trials.values()) - len(self.trials)


class Interrupted:
    """A run with one failing cell, of which triages are stopped.

    Args:
        folder: For files.
    """

    def __init__(self, folder: Path) -> None:
        self._run = Run(folder)
        (model,) = subjects(folder / "subjects", [MODEL])
        self._run.add(MODEL, model.model())
        self._run.stand_in.plant(Planted(fault=FAULT, node=GUILTY, seed=0))
        self._run.start()

    def whole(self) -> Left:
        """Triage without an interruption."""
        self._run.triage("whole").wait()
        return self._left("whole")

    def stopped(self, after: int, by: signal.Signals) -> tuple[int, Left]:
        """Stop a triage after so many trials, and continue it.

        Returns:
            The trials that were on disk when it had ended, and what is there at last.
        """
        name = f"{by.name}-{after}"
        process = self._run.triage(name)
        while process.poll() is None and len(self._lines(name)) < after:
            time.sleep(POLL_S)
        process.send_signal(by)
        process.wait()
        before = len(self._lines(name))
        self._run.triage(name, "--resume").wait()
        return before, self._left(name)

    def _left(self, name: str) -> Left:
        keys = Counter(json.loads(line)["key"] for line in self._lines(name))
        faults = read_faults(self._run.folder / name / FAULTS_FILE)
        return Left(faults=tuple(fault.id for fault in faults), trials=keys)

    def _lines(self, name: str) -> list[bytes]:
        files = (self._run.folder / name / WORK).glob("*/trials.jsonl")
        lines = [line for path in files for line in path.read_bytes().splitlines()]
        return [line for line in lines if line.endswith(b"}")]


def draws(trials: int, count: int) -> list[int]:
    """Return numbers of trials after which to stop, drawn once and for all."""
    return sorted(random.Random(22).sample(range(1, trials), min(count, trials - 1)))  # noqa: S311 - no secret
