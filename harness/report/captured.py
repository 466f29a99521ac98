"""The output of a failing cell, cut to its beginning and end."""

from pathlib import Path

from harness.core.record import Record

EDGE_BYTES = 2048
"""Size of the shown beginning, and of the shown end, in bytes."""


def captured_output(run_folder: Path, record: Record) -> str:
    """Return an excerpt of ``artifacts/<digest>/output.txt``; empty if there is none.

    The path comes from a record, so a path out of the run folder (``..``, absolute, a symbolic link) is not
    followed.
    """
    if not record.artifacts:
        return ""
    try:
        root = run_folder.resolve()
        path = (root / record.artifacts / "output.txt").resolve()
        if not (path.is_relative_to(root) and path.is_file()):
            return ""
        size = path.stat().st_size
        with path.open("rb") as file:
            if size <= 2 * EDGE_BYTES:
                return _text(file.read(2 * EDGE_BYTES))
            head = file.read(EDGE_BYTES)
            file.seek(size - EDGE_BYTES)
            tail = file.read(EDGE_BYTES)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return ""
    return f"{_text(head)}\n… {size - 2 * EDGE_BYTES:,} bytes left out …\n{_text(tail)}"


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace").replace("\r\n", "\n").strip("\n")
