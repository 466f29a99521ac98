"""What Windows behind ssh is told: commands that cmd.exe and PowerShell read alike, and a batch file.

OpenSSH hands a command to cmd.exe, or to PowerShell if the machine is set up so. So a command begins with
``cmd /d /c``, and has no character that either of them changes. Everything else, such as variables, is in a
batch file, which cmd.exe alone reads.
"""

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import PurePath

WINDOWS_HOME = ".cache/ort-ep-harness/agents"
"""The folder of agents in the user's own folder, where ssh and scp begin."""

_BATCH = (
    "@echo off",
    "setlocal DisableDelayedExpansion",
    "chcp 65001 >nul",
    'cd /d "%~dp0"',
    "mkdir {folder}",
    "cd {folder}",
    "{variables}",
    "{agent} 2>output.txt",
    "set code=%ERRORLEVEL%",
    "type output.txt >&2",
    ">&2 echo.",
    'if "%code%"=="0" (>&2 echo {marker} ) else (>&2 echo {marker} exit code %code%)',
    "cd ..",
    "rmdir /s /q {folder}",
    'del "%~f0" & exit %code%',  # one line: cmd.exe reads the next one from a file that is gone
)

_READ_BY_CMD = re.compile(r'[()!^"<>&|]')
_SLASH = re.compile(r"(?<=\S)/")  # the first of a word begins an option
_PLAIN = re.compile(r"[^A-Za-z0-9._-]")


def is_for_windows(program: str) -> bool:
    """Return whether an agent is a program of Windows, by its name."""
    return PurePath(program.replace("\\", "/")).suffix.lower() == ".exe"


def plain_name(name: str) -> str:
    """Return a file's name for which no shell needs quotes."""
    return _PLAIN.sub("_", name)


def said(command: str) -> str:
    """Return a command of cmd.exe for either shell; ``/`` in a path becomes a backslash."""
    return "cmd /d /c " + _SLASH.sub(r"\\", command)


def escaped(word: str) -> str:
    """Return a word of a program's command line for a batch file."""
    return _literal(subprocess.list2cmdline([word]))


def batch_file(env: Mapping[str, str], words: Sequence[str], marker: str) -> str:
    """Return the batch file that runs an agent in an empty folder, reports its end, and deletes both.

    Args:
        env: Environment variables of the agent.
        words: The agent's command, ready for the batch file.
        marker: The first word of the report.

    Raises:
        ValueError: A variable has a line feed, which no batch file can set.
    """
    for name, value in env.items():
        if {"\n", "\r"} & set(value):
            raise ValueError(f"the variable {name} has a line feed, which cmd.exe on Windows cannot set")
    lines = "\r\n".join(_BATCH).format(
        folder=f"run-{marker}",
        marker=marker,
        variables="\r\n".join(f"set {_literal(f'{name}={value}')}" for name, value in env.items()) or "rem",
        agent=" ".join(words),
    )
    return lines + "\r\n"


def _literal(text: str) -> str:
    """Return text that cmd.exe leaves as it is in a batch file."""
    return _READ_BY_CMD.sub(r"^\g<0>", text).replace("%", "%%")
