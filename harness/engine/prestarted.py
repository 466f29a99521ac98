"""The prestarted: a process of the harness's own interpreter, started while the harness itself still imports.

Reading a matrix takes numpy and half of the package, some 0.4 s, and importing onnxruntime takes a process as
long. Side by side they take that time once. So this module imports little, and only guesses from the bare
TOML that the process will be needed; the first pool takes it in as a spare one, and ends it like any other.
"""

import contextlib
import os
import shutil
import sys
import tempfile
import threading
import tomllib
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.engine.process import AgentProcess


class PrestartedProcess:
    """An agent without variables of its own, whose words are kept until somebody wants to hear them.

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
        self._heard: list[Any] = []
        self._deliver: Callable[[Any], None] | None = None
        self.process = AgentProcess((sys.executable,), {}, self.folder)
        # The thread, and later the connection, hold on to this object and so to its folder.
        threading.Thread(target=self.process.serve, args=(self._hear,), daemon=True).start()

    @property
    def is_current(self) -> bool:
        """Whether a process that starts now would find the same environment variables."""
        return self._environment == dict(os.environ)

    def deliver_to(self, deliver: Callable[[Any], None]) -> None:
        """Have messages delivered from now on, those first that have come by now."""
        with self._lock:
            for message in self._heard:
                deliver(message)
            self._deliver = deliver

    def discard(self) -> None:
        """End it: nobody will hear of it."""
        self.process.kill()
        self.process.ended()

    def _hear(self, message: Any) -> None:
        with self._lock:
            if self._deliver is None:
                self._heard.append(message)
            else:
                self._deliver(message)


_ahead: list[PrestartedProcess] = []
"""The one that nobody has taken yet, if there is one."""


def run_ahead(matrix: Path) -> None:
    """Start a process ahead, if a matrix looks as if one of its targets could use it."""
    if not _ahead and _is_for_here(matrix):
        with contextlib.suppress(OSError):  # it goes without, or the lane will tell
            _ahead.append(PrestartedProcess())


def take_prestarted() -> PrestartedProcess | None:
    """The prestarted, for whoever asks first; None where it would not be what is started now."""
    if not _ahead:
        return None
    prestarted = _ahead.pop()
    if prestarted.is_current:
        return prestarted
    prestarted.discard()
    return None


def _is_for_here(matrix: Path) -> bool:
    """Whether a matrix has a target that runs in this interpreter, without variables of its own."""
    try:
        targets = tomllib.loads(matrix.read_bytes().decode("utf-8-sig")).get("target")
    except (OSError, ValueError, RecursionError):  # whoever reads it in earnest will say so
        return False
    tables = targets if isinstance(targets, list) else []
    return any(isinstance(table, dict) and not {"runtime", "env"} & table.keys() for table in tables)
