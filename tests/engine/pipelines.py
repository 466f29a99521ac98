"""A pipeline without an engine: what it asks and queues waits for the test to answer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.core.records.record import Record
from harness.engine.answers.cases import Cases
from harness.engine.answers.references import References, Stores
from harness.engine.cell_pipeline import CellPipeline
from harness.engine.prepare import open_suites
from harness.engine.questions.next_step import NextStep
from harness.engine.steps.effects import Effects
from harness.engine.tasks.events import Event, Finished, Warned
from harness.engine.tasks.task import Task
from harness.golden.golden_cache import GoldenStore
from harness.plan.expand import expand
from tests.kit import make_matrix


class WaitingPipeline:
    """The pipeline of a matrix in a folder, with goldens of its own.

    Attributes:
        queue: Tasks that wait.
        records: Records of the cells that are finished.
        warnings: Messages so far.
    """

    def __init__(self, folder: Path, table: Mapping[str, Any]) -> None:
        matrix = make_matrix(table, folder / "m.toml")
        suites = open_suites(matrix)
        self.plan = expand(matrix, {name: suite.models() for name, suite in suites.items()})
        self.queue: list[Task] = []
        self.records: list[Record] = []
        self.warnings: list[str] = []
        names = ("cpu", "unoptimized", "onnx", "float64")
        stores = (GoldenStore({"by": name}, folder / "goldens") for name in names)
        references = References(Stores(*stores))
        cases = Cases(self.plan, suites, references, self.warnings.append)
        self.pipeline = CellPipeline(
            NextStep(self.plan, cases, references), Effects(self.plan), self.queue.append, self.announce
        )

    def announce(self, event: Event) -> None:
        if isinstance(event, Warned):
            self.warnings.append(event.message)
        else:
            assert isinstance(event, Finished), event
            self.records.append(event.record)
