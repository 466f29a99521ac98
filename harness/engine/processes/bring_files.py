"""Bring the files of an agent to a machine behind ssh or adb, then become the connection to it.

It runs as a script of its own, so that a slow connection keeps nothing waiting, and needs only Python's
standard library. Each file has a folder named by its SHA-256, and comes once.
"""

import json
import os
import subprocess
import sys
from typing import Any

_NO_CONNECTION = 255
"""ssh's own exit code."""


def main(plan: dict[str, Any]) -> int:
    """Upload what is missing, and run the last command with this process's streams.

    Args:
        plan: ``files``, each with ``path`` here, ``asked``, a command that prints ``present`` if the file is
            there, and ``bring``, the commands that bring it, of which a single one reads it as its input;
            ``prepare``: commands to run before; ``then``: the last command; ``undo``: what to run if that
            finds no connection, and leaves what ``prepare`` has brought; empty for nothing.

    Returns:
        The exit code of the first command that fails, or of the last one.
    """
    for file in plan["files"]:
        code = _bring(file)
        if code:
            return code
    for command in plan["prepare"]:
        code = _quietly(command)
        if code:
            return code
    if os.name == "posix" and not plan["undo"]:
        os.execvp(plan["then"][0], plan["then"])  # noqa: S606 - an argument list, never a shell
    code = subprocess.call(plan["then"])  # noqa: S603 - as above
    if plan["undo"] and code == _NO_CONNECTION:
        _quietly(plan["undo"])
    return code


def _bring(file: dict[str, Any]) -> int:
    """Upload a file, unless it is there; it appears over there as a whole or not at all."""
    found = subprocess.run(file["asked"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)  # noqa: S603
    if b"present" in found.stdout:
        return 0
    if found.returncode not in {0, 1}:  # no connection
        return found.returncode
    if len(file["bring"]) == 1:
        with open(file["path"], "rb") as data:  # noqa: PTH123 - little is imported
            return subprocess.call(file["bring"][0], stdin=data)  # noqa: S603
    return next(filter(None, map(_quietly, file["bring"])), 0)


def _quietly(command: list[str]) -> int:
    return subprocess.call(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)  # noqa: S603


if __name__ == "__main__":
    try:
        sys.exit(main(json.loads(sys.argv[1])))
    except OSError as error:  # such as no ssh, or no adb, on this machine
        sys.exit(f"ep-harness: {error}")
