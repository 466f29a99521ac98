"""Floor 4: the command `ep-harness`, a thin front end.

`commands` has every command by its name. Its declaration, such as `run_command`, imports nothing heavy; the
function that it calls is in the module beside it, such as `run`. What a user can correct, such as a wrong
argument or a file that cannot be read or written, is raised as ``UsageError``.
"""

from harness.cli.main import main

__all__ = ["main"]
