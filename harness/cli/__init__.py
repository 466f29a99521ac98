"""Floor 4: the command `ep-harness`, a thin front end over the engine and the report."""

from harness.cli.main import main

__all__ = ["main"]
