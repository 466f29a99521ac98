"""How a command is declared, so that all of them introduce themselves alike."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Commands = _SubParsersAction[argparse.ArgumentParser]


def add_command(commands: "Commands", name: str, summary: str, *, after: str = "") -> argparse.ArgumentParser:
    """Declare a command whose own help begins with what the list of commands says of it.

    Args:
        commands: Where it belongs.
        name: What is typed.
        summary: One line, without a full stop; at most 66 characters, so that it stays one at 80 columns.
        after: What stands below its arguments, such as the meaning of its exit codes.
    """
    return commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", epilog=after or None
    )
