"""Programs that build environments: run one command at a time, which another thread can cancel."""

import os
import subprocess
import threading
from pathlib import Path

from harness.core.text.errors import HarnessError
from harness.runtimes.process_group import kill_group

INSTALL_LIMIT_S = 3600.0
"""Seconds that a command may take; the wheels of accelerators have gigabytes."""


class InstallError(HarnessError):
    """An environment cannot be built: why, in one line, and everything that the program printed."""

    def __init__(self, reason: str, printed: str = "") -> None:
        super().__init__(reason, printed)
        self.reason = reason
        self.printed = printed

    def __str__(self) -> str:
        return self.reason


class Installer:
    """Runs one program; another thread can cancel it. Its subclasses are the programs."""

    name = ""
    """Name of the program, for messages."""

    variables: dict[str, str] = {}  # noqa: RUF012 - a constant of each program
    """Environment variables for its commands."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._popen: subprocess.Popen[str] | None = None
        self._cancelled = False

    def program(self) -> str:
        """Return its path.

        Raises:
            InstallError: There is none.
        """
        raise NotImplementedError

    def reason(self, printed: str) -> str:
        """Return the error in its output, in one line."""
        raise NotImplementedError

    def run(self, *arguments: str, folder: Path) -> str:
        """Run a command and return what it prints on standard output.

        Args:
            arguments: The command without the program's name.
            folder: Its working folder. These programs read the configuration of a surrounding project, which
                must not be that of the harness's working folder.

        Raises:
            InstallError: There is no such program, it fails, or it was cancelled.
        """
        command = [self.program(), *arguments]
        with self._lock:
            if self._cancelled:
                raise InstallError("cancelled")
            popen = self._popen = subprocess.Popen(  # noqa: S603 - an argument list, never a shell
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                encoding="utf-8",
                errors="replace",
                env={**os.environ, **self.variables},
                # Ctrl-C is for the harness only, and a kill must reach the program's children.
                start_new_session=True,
            )
        with popen:
            try:
                out, printed = popen.communicate(timeout=INSTALL_LIMIT_S)
            except subprocess.TimeoutExpired:
                _kill(popen)
                raise InstallError(f"{self.name} was killed after {INSTALL_LIMIT_S:g} s") from None
            except BaseException:
                _kill(popen)
                raise
            finally:
                with self._lock:
                    self._popen = None
        if popen.returncode:
            reason = self.reason(printed) or f"{self.name} ended with code {popen.returncode}"
            raise InstallError(reason, printed)
        return out

    def cancel(self) -> None:
        """Kill the running command, and start no other."""
        with self._lock:
            self._cancelled = True
            if self._popen is not None:
                _kill(self._popen)


def _kill(popen: "subprocess.Popen[str]") -> None:
    if popen.poll() is None:
        kill_group(popen)
