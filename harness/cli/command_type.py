"""What a command is: a value that its package registers, and from which `--help` and the parser are made."""

import argparse
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import msgspec

from harness.cli.options import GivenArguments, Once, Options, RunCommand

Aim: TypeAlias = Literal["begin", "cause", "compare", "publish", "share", "maintain", "other"]

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - it has no other name

_RUN = "run"
"""In the parsed values: the function that runs the command."""


class RegisteredCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What a name of the command line stands for. Its module imports nothing heavy before it runs.

    Attributes:
        summary: One line without a full stop, of at most 64 characters, which fit into 80 columns.
        aim: What a user wants who needs it: its section of `ep-harness --help`.
    """

    name: str
    summary: str
    aim: Aim = "other"

    def add_to(self, commands: Commands) -> None:
        """Add it to a parser."""
        raise NotImplementedError


class Command(RegisteredCommand, frozen=True, kw_only=True):
    """A command.

    Attributes:
        declare: Declares the arguments, and returns the function that runs the command with their values.
        exit_codes: Exit code -> what it means; empty where 0 is all there is to say.
    """

    declare: Callable[[Options], RunCommand]
    exit_codes: Mapping[int, str] = {}

    def add_to(self, commands: Commands) -> None:
        """Add it to a parser."""
        meanings = "\n".join(f"  {code}  {meaning}" for code, meaning in self.exit_codes.items())
        parser = commands.add_parser(
            self.name,
            help=self.summary,
            description=_sentence(self.summary),
            epilog=meanings and f"exit codes:\n{meanings}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.register("action", None, Once)
        parser.set_defaults(**{_RUN: self.declare(Options(parser))})


class CommandGroup(RegisteredCommand, frozen=True, kw_only=True):
    """A command that consists of further commands, such as `golden record` and `golden verify`.

    Attributes:
        commands: Their ``aim`` does not matter.
    """

    commands: tuple[Command, ...]

    def add_to(self, commands: Commands) -> None:
        """Add it to a parser."""
        parser = commands.add_parser(self.name, help=self.summary, description=_sentence(self.summary))
        below = parser.add_subparsers(required=True, metavar="COMMAND")
        for command in self.commands:
            command.add_to(below)


def run_parsed(values: argparse.Namespace) -> int:
    """Run the command of a command line, and return its exit code."""
    run: RunCommand = getattr(values, _RUN)
    return int(run(GivenArguments(values)))


def _sentence(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}."
