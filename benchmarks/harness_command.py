"""Commands of the harness, as processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

_COMMAND = """
import signal, sys
from harness.cli import main

# A benchmark in the background of a shell passes on that it ignores this signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main())
"""


def start(folder: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    """Start ``ep-harness`` in a folder; what it prints goes to the end of ``output.txt`` there."""
    command = [sys.executable, "-c", _COMMAND, *arguments]
    with (folder / "output.txt").open("ab") as output:
        return subprocess.Popen(command, cwd=folder, env=os.environ, stdout=output, stderr=output)
