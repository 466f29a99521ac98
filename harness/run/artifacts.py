"""Artifacts of a failing cell: what its process printed, its inputs, the traceback of an own exception."""

import contextlib
import hashlib
from pathlib import Path

import msgspec

from harness.core.own_error import own_error, without_verdict
from harness.core.record import Record
from harness.core.value import value_bytes
from harness.core.verdict import Family
from harness.corpus.protos import encode
from harness.engine.events import Finished

INPUTS_LIMIT = 16 << 20
"""Bytes of inputs kept for one cell; larger ones can be had from the suite again."""


def keep_artifacts(folder: Path, finished: Finished) -> Record:
    """Write a failing or unexpected cell's artifacts below a run folder.

    They lie in ``artifacts/<digest>/``, the digest being the first 16 hexadecimal digits of the SHA-256 of
    the cell's id: ``output.txt``, ``test_data_set_N/input_M.pb``, and ``traceback.txt`` of an exception of
    the harness's own.

    Returns:
        The record, which names the folder where there is one. Where an exception of the harness's own
        prevents it, the record of a cell without a verdict.

    Raises:
        OSError: The folder cannot be written.
    """
    record = finished.record
    if record.expected and record.family is not Family.FAILED:
        return record
    try:
        return _kept(folder, finished)
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - it costs this cell alone
        return lost(folder, record, error)


def lost(folder: Path, record: Record, error: Exception) -> Record:
    """The record of a cell whose own one cannot be kept, with the traceback among its artifacts."""
    told = own_error(error)
    without = without_verdict(record, told)
    with contextlib.suppress(OSError):  # the record matters more
        return _kept(folder, Finished(record=without, traceback=told.traceback))
    return without


def _kept(folder: Path, finished: Finished) -> Record:
    record = finished.record
    name = f"artifacts/{hashlib.sha256(record.cell.encode()).hexdigest()[:16]}"
    home = folder / name
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
            if total > INPUTS_LIMIT:
                return
            with contextlib.suppress(TypeError):  # a value that its own model does not declare so
                data = encode(value, types[name])
                (data_home / f"input_{number}.pb").write_bytes(data)
