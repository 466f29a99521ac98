"""The prestarted process: an agent in the harness's own interpreter, started while the harness is importing.

Reading a matrix imports numpy and half of the package, some 0.4 s; a process takes as long to import
onnxruntime. In parallel they take that time only once. So this module imports little, and only guesses from
the bare TOML that the process will be needed. The first pool takes it as a spare, and ends it like any other
process.
"""

import contextlib
import os
import shutil
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.core.files.reading import MOST_SETTINGS, read_regular
from harness.core.files.toml_text import toml_table
from harness.engine.processes.launch import launch_here
from harness.engine.processes.process import AgentProcess


class PrestartedProcess:
    """An agent without its own variables, whose messages are kept until a pool takes it.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(self) -> None:
        scratch = tempfile.mkdtemp(prefix="ep-harness-")
        weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)
        self.folder = Path(scratch) / "ahead"
        self.folder.mkdir()
        self._environment = dict(os.environ)
        self._lock = threading.Lock()
        self._kept: list[Any] = []
        self._deliver: Callable[[Any], None] = self._kept.append
        self.process = AgentProcess(launch_here((sys.executable,), {}, self.folder))
        # The thread, and later the connection, keep this object alive, and so its folder.
        threading.Thread(target=self.process.serve, args=(self._on_message,), daemon=True).start()

    @property
    def is_current(self) -> bool:
        """Return whether a process that starts now would see the same environment variables."""
        return self._environment == dict(os.environ)

    def deliver_to(self, deliver: Callable[[Any], None]) -> None:
        """Deliver the messages kept so far, and those that follow."""
        with self._lock:
            for message in self._kept:
                deliver(message)
            self._deliver = deliver

    def discard(self) -> None:
        """End it; no pool takes it."""
        self.process.kill()
        self.process.wait()

    def _on_message(self, message: Any) -> None:
        with self._lock:
            self._deliver(message)


untaken: list[PrestartedProcess] = []
"""The process, until a pool takes it."""


def prestart(matrix: Path) -> None:
    """Start a process, if one of a matrix's targets seems to need it and none was started before."""
    if not untaken and _runs_here(matrix):
        prestart_here()


def prestart_here() -> None:
    """Start a process if none was started before: it will be needed."""
    if not untaken:
        with contextlib.suppress(OSError):  # the pool starts one later, and reports the error
            untaken.append(PrestartedProcess())


def take_prestarted() -> PrestartedProcess | None:
    """Return the prestarted process, once; None if a process that starts now would differ from it."""
    if not untaken:
        return None
    process = untaken.pop()
    if process.is_current:
        return process
    process.discard()
    return None


def _runs_here(matrix: Path) -> bool:
    """Return whether a matrix has a target that runs in this interpreter, without variables of its own."""
    return any(not {"runtime", "env", "places"} & table.keys() for table in target_tables(matrix))


def target_tables(matrix: Path) -> list[dict[str, Any]]:
    """Return the targets of a matrix file, unchecked; reading the matrix later reports errors."""
    try:
        targets = toml_table(read_regular(matrix, MOST_SETTINGS)).get("target")
    except (OSError, ValueError, RecursionError):
        return []
    return [table for table in targets if isinstance(table, dict)] if isinstance(targets, list) else []
