"""Floor 4: the command `ep-harness`, a thin front end.

`arguments` declares the commands. Each is a function that takes its arguments by name; their help texts give
the meaning. Errors that a user can correct, such as a wrong argument or an unreadable file, are raised as
``UsageError``.
"""

from harness.cli.main import main

__all__ = ["main"]
