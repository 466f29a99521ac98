"""Programs that tests write, and start at once."""

import subprocess
from pathlib import Path


def write_program(path: Path, text: str) -> None:
    """Write a script and make it one that can be started.

    The system starts no file that a process has open for writing ("text file busy"). A process that another
    thread starts at that moment has open what this one has, until it runs its own program. So a child writes
    the file.
    """
    subprocess.run(["/bin/sh", "-c", 'printf %s "$1" >"$0"', path, text], check=True)
    path.chmod(0o755)
