"""Artifacts of a failing cell: its process's output, its inputs, the traceback of a harness exception."""

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from harness.core.records.record import Record
from harness.core.records.verdict import Family
from harness.core.values.value import value_bytes
from harness.core.verdicts.own_error import own_error, without_verdict
from harness.corpus.model.protos import encode
from harness.engine.tasks.events import Finished, ProcessEnded

_INPUTS_LIMIT = 16 << 20
"""Largest size of the inputs kept for one cell; the suite can make larger ones again."""


def keep_artifacts(folder: Path, finished: Finished, warn: Callable[[str], None]) -> Record:
    """Write the artifacts of a failing or unexpected cell, or of a target that died, below a run folder.

    Their folder is ``artifacts/<digest>/``, with the first 16 hexadecimal digits of the SHA-256 of the cell's
    id. It has ``output.txt``, ``test_data_set_N/input_M.pb``, and ``traceback.txt`` of a harness exception.
    All cells of a target that cannot be used share one folder, with its process's output; its name comes from
    the target and the reason. If the folder cannot be written, ``warn`` gets a line: the record matters more
    than its artifacts.

    Returns:
        Return the record, with the name of the folder if there is one; without a verdict if a harness
        exception prevents the writing.
    """
    record = finished.record
    died = record.lacks_target and bool(finished.printed)
    if record.expected and record.family is not Family.FAILED and not died:
        return record
    try:
        return _kept(folder, finished)
    except OSError as error:
        warn(f"artifacts of {record.cell} cannot be written: {error.strerror or error}")
        return record
    except Exception as error:  # noqa: BLE001 - affects this cell alone
        return record_without_verdict(folder, record, error)


def keep_exit(folder: Path, event: ProcessEnded) -> str:
    """Write the output of a process whose end was unclean; return its folder, or nothing without output."""
    if not event.printed:
        return ""
    name = f"artifacts/{hashlib.sha256(f'exit of {event.target}'.encode()).hexdigest()[:16]}"
    with contextlib.suppress(OSError):  # the unclean end itself matters more
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "output.txt").write_text(event.printed, encoding="utf-8", errors="replace")
        return name
    return ""


def record_without_verdict(folder: Path, record: Record, error: Exception) -> Record:
    """Return a record without a verdict in place of one that cannot be kept.

    Its artifacts have the traceback.
    """
    own = own_error(error)
    without = without_verdict(record, own)
    with contextlib.suppress(OSError):  # the record matters more
        return _kept(folder, Finished(record=without, traceback=own.traceback))
    return without


def _kept(folder: Path, finished: Finished) -> Record:
    record = finished.record
    about = f"{record.target}: {record.reason}" if record.lacks_target else record.cell
    name = f"artifacts/{hashlib.sha256(about.encode()).hexdigest()[:16]}"
    home = folder / name
    if record.lacks_target and (home / "output.txt").is_file():
        return msgspec.structs.replace(record, artifacts=name)
    home.mkdir(parents=True, exist_ok=True)
    (home / "cell.txt").write_text(record.cell + "\n", encoding="utf-8")
    (home / "output.txt").write_text(finished.printed, encoding="utf-8", errors="replace")
    if finished.traceback:
        (home / "traceback.txt").write_text(finished.traceback, encoding="utf-8", errors="replace")
    _write_inputs(home, finished)
    return msgspec.structs.replace(record, artifacts=name)


def _write_inputs(home: Path, finished: Finished) -> None:
    if finished.case is None:
        return
    types = {port.name: port.type for port in finished.case.ports}
    total = 0
    for index, data_set in enumerate(finished.case.data_sets):
        data_home = home / f"test_data_set_{index}"
        data_home.mkdir(exist_ok=True)
        for number, (name, value) in enumerate(data_set.inputs):
            total += value_bytes(value)
            if total > _INPUTS_LIMIT:
                return
            with contextlib.suppress(TypeError):  # the value's type differs from the model's declaration
                data = encode(value, types[name])
                (data_home / f"input_{number}.pb").write_bytes(data)
