"""uv, the program that builds environments: find it, and run one command at a time."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sysconfig
import threading
from pathlib import Path

from harness.core.errors import HarnessError, one_line
from harness.core.text import visible

LIMIT_S = 3600.0
"""Seconds that a command may take; the wheels of accelerators have gigabytes."""

SHOWN = 240
"""Characters of uv's error in a reason: a table shows it beside the requirements and a cause."""

_LAST_WORDS = re.compile(r"^(?:error: ?|\s*[x\u00d7] )(.*)", re.MULTILINE | re.DOTALL)
_BECAUSE = re.compile(r"\s*\n\s*(?:cause:|Caused by:|[╰└]─▶|├─▶)\s*")
_HINT = re.compile(r"\s*\n\s*(?=hint:)")
_DRAWING = re.compile(r"[│╰└├─▶]+")


class InstallError(HarnessError):
    """An environment cannot be built.

    Attributes:
        reason: Why, in one line.
        printed: Everything that uv printed.
    """

    def __init__(self, reason: str, printed: str = "") -> None:
        super().__init__(reason, printed)
        self.reason = reason
        self.printed = printed

    def __str__(self) -> str:
        return self.reason


class Uv:
    """Runs uv; another thread can cancel it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._popen: subprocess.Popen[str] | None = None
        self._cancelled = False

    def run(self, *arguments: str, folder: Path) -> str:
        """Run a command and return what it prints on standard output.

        Args:
            arguments: The command without the program's name.
            folder: Where it works. uv reads the configuration of a project around it, which must not be
                the one in which the harness is called.

        Raises:
            InstallError: There is no uv, it fails, or it was cancelled.
        """
        command = [find_uv(), *arguments]
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
                env={**os.environ, "NO_COLOR": "1", "UV_NO_PROGRESS": "1"},
                # Ctrl-C is for the harness only, and a kill must reach what uv starts.
                start_new_session=True,
            )
        try:
            out, printed = _talk(popen)
        finally:
            with self._lock:
                self._popen = None
        if popen.returncode:
            raise InstallError(last_words(printed) or f"uv ended with code {popen.returncode}", printed)
        return out

    def cancel(self) -> None:
        """Kill the running command, and start no other."""
        with self._lock:
            self._cancelled = True
            if self._popen is not None:
                _kill(self._popen)


def find_uv() -> str:
    """Return the uv that was installed with the harness, else the one on the path.

    Raises:
        InstallError: There is none.
    """
    places = (sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath))
    found = shutil.which("uv", path=os.pathsep.join(places))
    if found is None:
        raise InstallError("there is no uv to build it with; pip install uv")
    return found


def last_words(printed: str) -> str:
    """Return uv's error and its causes in one line."""
    text = visible(printed)
    found = _LAST_WORDS.search(text)
    error = found[1] if found else "\n".join(text.strip().splitlines()[-3:])
    error = _HINT.sub("; ", _BECAUSE.sub(": ", error))
    return one_line(_DRAWING.sub(" ", error), SHOWN)


def _talk(popen: "subprocess.Popen[str]") -> tuple[str, str]:
    with popen:
        try:
            return popen.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            _kill(popen)
            raise InstallError(f"uv was killed after {LIMIT_S:g} s") from None
        except BaseException:
            _kill(popen)
            raise


def _kill(popen: "subprocess.Popen[str]") -> None:
    if popen.poll() is not None:
        return
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(popen.pid, signal.SIGKILL)
    else:
        popen.kill()
