"""The cells before a failing one in its process: triage needs them if the failure does not appear alone.

Providers keep compiled programs and buffers for later sessions. Most cells have no kept record, so this file
lists their models by number; the suite of the run makes them again.
"""

import re
from collections import deque
from collections.abc import Collection, Iterator
from io import BytesIO
from pathlib import Path

import msgspec

from harness.annex.made.fuzz_suite import fuzz_name, model_number
from harness.annex.triage.preceding import EARLIER, earlier_cells
from harness.core.files.reading import MOST_FILE, read_regular
from harness.core.files.writing import writing
from harness.core.records.cell import AXIS_DEFAULTS, Cell
from harness.core.records.record import ProcessState, Record
from harness.core.verdicts.not_run import not_run

HISTORIES = "histories.jsonl"
"""File in the run folder; a line for each process with a finding, or several in the order of its sessions."""

_SUITE = re.compile(r"fuzz-[0-9]{1,19}")

_AXES = tuple(sorted(AXIS_DEFAULTS.items()))

PROCESSES = 32
"""Number of processes whose history is remembered, the latest ones: more than live at once."""


class ProcessHistory(msgspec.Struct, frozen=True, kw_only=True):
    """Cells of one process, in their order.

    Attributes:
        pid: The process, as in its records.
        cells: Number of the session in the process, and number of the model.
    """

    target: str
    pid: int
    cells: tuple[tuple[int, int], ...]


class Histories:
    """Remembers the cells of each process until one of them is a finding."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, int], deque[tuple[int, int]]] = {}
        self._wanted: set[tuple[str, int]] = set()

    def add(self, record: Record, *, is_finding: bool) -> None:
        """Remember a cell; if it is a finding, schedule its process's history for writing."""
        if record.process is None:
            return
        key = (record.target, record.process.pid)
        cells = self._cells.pop(key, None) or deque(maxlen=max(EARLIER))
        self._cells[key] = cells  # the latest one comes last
        cells.append((record.process.session, model_number(record.model)))
        if is_finding:
            self._wanted.add(key)
        if len(self._cells) > PROCESSES:
            oldest = next(iter(self._cells))
            if oldest not in self._wanted:
                del self._cells[oldest]

    def take(self) -> Iterator[ProcessHistory]:
        """Yield the histories to write that were not yielded yet."""
        for target, pid in sorted(self._wanted):
            yield ProcessHistory(target=target, pid=pid, cells=tuple(self._cells[target, pid]))
            self._cells[target, pid].clear()
        self._wanted.clear()


def write_histories(folder: Path, histories: Iterator[ProcessHistory]) -> None:
    """Append to the file of a run folder.

    Raises:
        UsageError: It cannot be written.
    """
    lines = [msgspec.json.encode(one) + b"\n" for one in histories]
    if lines:
        with writing(folder / HISTORIES), (folder / HISTORIES).open("ab") as file:
            file.write(b"".join(lines))


def earlier_of_all(folder: Path, kept: Collection[Record], record: Record) -> tuple[Record, ...]:
    """Return the cells that ran before a cell in its process, in their order, kept or not.

    Those that are not kept have records without a result. A truncated last line is left out.
    """
    if record.process is None or not _SUITE.fullmatch(record.suite):
        return ()
    process = (record.target, record.process.pid)
    known = {one.cell for one in kept}
    unkept: list[Record] = []
    for line in BytesIO(read_regular(folder / HISTORIES, MOST_FILE)):
        try:
            history = msgspec.json.decode(line, type=ProcessHistory)
        except ValueError:  # no JSON, or not UTF-8
            continue
        if (history.target, history.pid) == process:
            made = (_without_result(record, session, number) for session, number in history.cells)
            unkept += (one for one in made if one.cell not in known)
    return earlier_cells((*kept, *unkept), record)


def _without_result(record: Record, session: int, number: int) -> Record:
    """Return a cell of the same process; the name of the suite ends in the seed of its models."""
    name = fuzz_name(int(record.suite.rpartition("-")[2]), number)
    cell = Cell(suite=record.suite, model=name, target=record.target, axes=_AXES)
    process = record.process and ProcessState(pid=record.process.pid, session=session)
    return msgspec.structs.replace(not_run(cell, ""), process=process)
