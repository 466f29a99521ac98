"""Runs and triages of the stand-in by the harness's own commands."""

import subprocess
from pathlib import Path

import onnx

from benchmarks.harness_command import start
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
        start(self.folder, "run", "matrix.toml", "--out", "run", "--no-report").wait()

    def triage(self, name: str, *more: str) -> "subprocess.Popen[bytes]":
        """Start a triage into a folder of this name."""
        return start(self.folder, "triage", "run", "--out", name, *more)
