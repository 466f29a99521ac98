"""Bring the files of an agent to a machine behind ssh or adb, then become the connection to it.

It runs as a script of its own, so that a slow connection keeps nothing waiting, and needs only Python's
standard library. Each file has a folder named by its SHA-256, and comes once. Only ``mkdir``, ``test``,
``cat``, ``chmod`` and ``mv`` are needed over there.
"""

import json
import os
import shlex
import subprocess
import sys
from typing import Any


def main(plan: dict[str, Any]) -> int:
    """Upload what is missing, and run the last command with this process's streams.

    Args:
        plan: ``reach``: a command that hands its last argument to a shell over there; ``home``: the folder of
            agents, in the words of that shell; ``files``: pairs of a path here and a name below ``home``;
            ``push``: a command that copies a file, empty for one that has to go through ``reach``;
            ``prepare``: commands to run before; ``then``: the last command.

    Returns:
        The exit code of the first command that fails, or of the last one.
    """
    for path, name in plan["files"]:
        code = _bring(plan, path, name)
        if code:
            return code
    for command in plan["prepare"]:
        code = subprocess.call(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)  # noqa: S603
        if code:
            return code
    if os.name == "posix":
        os.execvp(plan["then"][0], plan["then"])  # noqa: S606 - an argument list, never a shell
    return subprocess.call(plan["then"])  # noqa: S603 - as above


def _bring(plan: dict[str, Any], path: str, name: str) -> int:
    """Upload a file, unless it is there; it appears over there as a whole or not at all."""
    folder = f"{plan['home']}/{name.partition('/')[0]}"
    there = f'"{folder}"/{shlex.quote(name.partition("/")[2])}'
    asked = [*plan["reach"], f"test -x {there} && echo present"]
    found = subprocess.run(asked, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)  # noqa: S603
    if b"present" in found.stdout:
        return 0
    if found.returncode not in {0, 1}:  # no connection
        return found.returncode
    new = f"{there}.$$" if not plan["push"] else f"{there}.{os.getpid()}"
    begin, end = f'umask 077; mkdir -p "{folder}"', f"chmod 700 {new} && mv {new} {there}"
    if plan["push"]:
        plain = f"{plan['home']}/{name}.{os.getpid()}"  # adb's folder has no character to quote
        return (
            subprocess.call([*plan["reach"], begin], stdin=subprocess.DEVNULL)  # noqa: S603
            or subprocess.call([*plan["push"], path, plain], stdout=subprocess.DEVNULL)  # noqa: S603
            or subprocess.call([*plan["reach"], end], stdin=subprocess.DEVNULL)  # noqa: S603
        )
    with open(path, "rb") as file:  # noqa: PTH123 - little is imported
        return subprocess.call([*plan["reach"], f"{begin} && cat >{new} && {end}"], stdin=file)  # noqa: S603


if __name__ == "__main__":
    try:
        sys.exit(main(json.loads(sys.argv[1])))
    except OSError as error:  # such as no ssh, or no adb, on this machine
        sys.exit(f"ep-harness: {error}")
