"""Runs and triages of the stand-in by the harness's own commands."""

import os
import subprocess
import sys
from pathlib import Path

import onnx

from benchmarks.triage.ep import NAME, StandIn

MATRIX = """
schema = 1

[models]
folders = ["models"]

[[target]]
name = "{name}"
provider = "CPUExecutionProvider"
env = {{ PYTHONPATH = "{path}", PLANTED_FAULT_FILE = "{file}" }}
"""

COMMAND = """
import signal, sys
from harness.cli import main

# A benchmark in the background of a shell passes on that it ignores this signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main())
"""


class Run:
    """A run on the stand-in, to be triaged many times.

    Args:
        folder: For models, the run and its triages.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stand_in = StandIn(folder)
        (folder / "models").mkdir()

    def add(self, name: str, model: onnx.ModelProto) -> None:
        """Add a model before the run starts."""
        onnx.save(model, self.folder / "models" / f"{name}.onnx")

    def start(self) -> None:
        """Run all models."""
        env = self.stand_in.env
        text = MATRIX.format(name=NAME, path=env["PYTHONPATH"], file=env["PLANTED_FAULT_FILE"])
        (self.folder / "matrix.toml").write_text(text, encoding="utf-8")
        self._command("run", "matrix.toml", "--out", "run", "--no-report").wait()

    def triage(self, name: str, *more: str) -> "subprocess.Popen[bytes]":
        """Start a triage into a folder of this name."""
        return self._command("triage", "run", "--out", name, *more)

    def _command(self, *arguments: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-c", COMMAND, *arguments]
        with (self.folder / "output.txt").open("ab") as output:
            return subprocess.Popen(command, cwd=self.folder, env=os.environ, stdout=output, stderr=output)
