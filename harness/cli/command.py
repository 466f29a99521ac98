"""How a command is declared: its help, its exit codes, and the arguments that several commands share."""

import argparse
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Commands = _SubParsersAction[argparse.ArgumentParser]


def add_command(
    commands: "Commands", name: str, summary: str, call: str, exit_codes: dict[int, str] | None = None
) -> argparse.ArgumentParser:
    """Declare a command.

    Args:
        commands: Where it belongs.
        name: Its name on the command line.
        summary: One line, without a full stop; at most 64 characters, which fit into 80 columns.
        call: ``module.function`` that runs it.
        exit_codes: What its exit codes mean.
    """
    meanings = "\n".join(f"  {code}  {meaning}" for code, meaning in (exit_codes or {}).items())
    command = commands.add_parser(
        name,
        help=summary,
        description=_sentence(summary),
        epilog=meanings and f"exit codes:\n{meanings}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(call=call)
    command.register("action", None, _Once)
    return command


def add_group(commands: "Commands", name: str, summary: str) -> "Commands":
    """Declare a command that consists of further commands."""
    group = commands.add_parser(name, help=summary, description=_sentence(summary))
    return group.add_subparsers(required=True, metavar="COMMAND")


def add_json(command: argparse._ActionsContainer, text: str) -> None:
    """Declare ``--json``, as ``as_json``."""
    command.add_argument("--json", action="store_true", dest="as_json", help=text)


def add_age(command: argparse.ArgumentParser) -> None:
    """Declare how old the removed entries of a cache are, as ``older_than_days``."""
    which = command.add_mutually_exclusive_group()
    which.add_argument(
        "--older-than",
        type=_days,
        dest="older_than_days",
        default=30.0,
        metavar="DAYS",
        help="remove what has been unused for this many days; default: 30",
    )
    which.add_argument(
        "--all", action="store_const", const=0.0, dest="older_than_days", help="remove everything"
    )


class _Once(argparse.Action):
    """Takes one value; given twice, it is an error, where argparse would keep the last one."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse's signature
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Keep the value, unless there is one."""
        if option_string and getattr(namespace, self.dest) is not self.default:
            raise argparse.ArgumentError(self, "given twice; give it once")
        setattr(namespace, self.dest, values)


def _sentence(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}."


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = math.nan
    if not days >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of days; expected 0 or more")
    return days
