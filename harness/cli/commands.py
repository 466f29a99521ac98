"""How a command is declared, so that all of them introduce themselves alike."""

import argparse
import math
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
    command = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", epilog=after or None
    )
    command.register("action", None, _Once)
    return command


def add_age(command: argparse.ArgumentParser) -> None:
    """Declare which entries of a cache go: those older than some days, as ``older_than``, or all."""
    which = command.add_mutually_exclusive_group()
    which.add_argument("--older-than", type=_days, default=30.0, metavar="DAYS", help="other than 30 days")
    which.add_argument("--all", action="store_const", const=0.0, dest="older_than", help="remove every one")


class _Once(argparse.Action):
    """Takes one value; of several, argparse would keep the last without a word."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse's signature
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Keep the value, unless there is one."""
        if option_string and getattr(namespace, self.dest) is not self.default:
            raise argparse.ArgumentError(self, "given twice, and takes one value")
        setattr(namespace, self.dest, values)


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = math.nan
    if not days >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of days; expected 0 or more")
    return days
