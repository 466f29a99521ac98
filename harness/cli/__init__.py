"""Floor 4: the command `ep-harness`, a thin front end.

`arguments` declares the commands; each is a function that takes its arguments by their names, with the
meaning that their help tells. What a user can correct, such as a wrong argument or a file that cannot be
read or written, they raise as ``UsageError``.
"""

from harness.cli.main import main

__all__ = ["main"]
