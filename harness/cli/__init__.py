"""Floor 4: the command `ep-harness`, a thin front end.

`arguments` declares the commands; each is a function that takes its arguments by their names.
"""

from harness.cli.main import main

__all__ = ["main"]
