"""Which places a target has: those of the matrix, of a file, or of a command that lists them."""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import IO, NamedTuple

from harness.core.files.reading import read_regular
from harness.core.text.errors import UsageError, one_line
from harness.plan.places import Place, Places, places_of_json
from harness.runtimes.process_group import kill_group

_MOST_BYTES = 16 << 20
"""Bytes of a list of places: that of 10,000 has some 2 MB."""


def list_places(places: Places, target: str) -> tuple[Place, ...]:
    """Return the places of a target; run its command, if it has one.

    Raises:
        UsageError: The file or the command's output is no list of places, or is not available.
    """
    if places.each:
        return places.each
    if places.file is not None:
        where = f"{places.file} (places of {target})"
        try:
            data = read_regular(Path(places.file), _MOST_BYTES)
        except OSError as error:
            what = f"it cannot be read: {one_line(error.strerror or error)}"
            raise UsageError.at(where, what) from error
        return places_of_json(data, where)
    where = f"{one_line(places.list[0], 60)} (places of {target})"
    ended = run_command(places.list, places.limit_s, Path(places.folder))
    if ended.problem:
        raise UsageError.at(where, ended.problem, "run it by hand; it has to print JSON")
    return places_of_json(ended.printed, where)


class CommandResult(NamedTuple):
    """The end of a command: its output, and the error; ``problem`` is empty without one."""

    printed: bytes = b""
    problem: str = ""


def run_command(command: tuple[str, ...], limit_s: float, folder: Path) -> CommandResult:
    """Run a command of the matrix, without a shell; at the limit, its processes end with it."""
    # Files, not pipes: a pipe stays open as long as any background process of the command.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(  # noqa: S603 - an argument list, never a shell
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=folder,
                start_new_session=os.name == "posix",
            )
        except (OSError, ValueError) as error:
            return CommandResult(problem=f"it cannot be started: {one_line(error)}")
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            kill_group(process)
            process.wait()
            return CommandResult(problem=f"it did not end within {limit_s:g} s")
        printed = _content(out)
        if code == 0:
            return CommandResult(printed)
        last = _content(err).decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
        return CommandResult(
            printed, f"exit code {code}" + (f"; it printed: {one_line(last)}" if last else "")
        )


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(_MOST_BYTES)
